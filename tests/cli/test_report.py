"""`pacbound report`: a page for people, with the exit codes of `pacbound verify`."""

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Run

from pacbound import Monitor, certify_shield


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A certificate of each fate, and the state of a monitor."""
    certified = certify_shield([0.1] * 500, [False] * 500, xi=0.02, delta=0.01)
    certified.save(tmp_path / "certified.json")
    certify_shield([0.1] * 5, [False] * 5, xi=0.02, delta=0.01).save(tmp_path / "refused.json")
    document = json.loads((tmp_path / "certified.json").read_text(encoding="utf-8"))
    document["claim"]["xi"] = 0.001
    (tmp_path / "forged.json").write_text(json.dumps(document), encoding="utf-8")
    (tmp_path / "broken.json").write_text("{", encoding="utf-8")
    monitor = Monitor(certified, delta=0.01)
    monitor.update([False] * 100)
    monitor.save(tmp_path / "state.json")
    return tmp_path


@pytest.mark.parametrize(
    ("names", "code"),
    [
        (["certified"], 0),
        (["refused"], 3),
        (["broken"], 2),
        (["missing", "certified"], 2),
        (["forged"], 1),
        (["certified", "refused"], 3),
        (["certified", "broken", "refused", "forged"], 1),
    ],
)
def test_the_exit_code_is_that_of_verify_and_the_page_is_written(
    folder: Path, pacbound: Run, names: list[str], code: int
) -> None:
    paths = [f"{name}.json" for name in names]
    pacbound("verify", *paths, code=code)
    pacbound("report", *paths, "-o", "report.html", code=code)
    assert (folder / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_programs_read_what_was_written(folder: Path, pacbound: Run) -> None:
    done = pacbound("report", "certified.json", "forged.json", "-o", "out.html", "--json", code=1)
    printed = json.loads(done.stdout)
    assert printed["report"] == "out.html"
    assert printed["bytes"] == (folder / "out.html").stat().st_size
    first, second = printed["certificates"]
    assert (first["certificate"], first["ok"], first["certified"]) == ("certified.json", True, True)
    assert (second["ok"], second["certified"]) == (False, False)
    assert second["problems"]


def test_a_folder_is_all_of_its_certificates_and_the_sum_of_their_deltas(
    folder: Path, pacbound: Run
) -> None:
    (folder / "sample").mkdir()
    for name in ("certified", "refused"):
        (folder / f"{name}.json").rename(folder / "sample" / f"{name}.json")
    done = pacbound("report", "sample", "-o", "out.html", code=3)
    assert "is at most 0.02, the sum of their deltas, of refusals too." in done.stdout
    printed = json.loads(pacbound("report", "sample", "-o", "out.html", "--json", code=3).stdout)
    assert printed["delta"] == 0.02
    assert [one["certificate"] for one in printed["certificates"]] == [
        "certified.json",
        "refused.json",
    ]


def test_the_state_of_a_monitor_is_drawn(folder: Path, pacbound: Run) -> None:
    pacbound("report", "certified.json", "--monitor", "state.json", "-o", "out.html")
    assert "Evidence over time" in (folder / "out.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["refused.json", "--monitor", "state.json"], "not on this page"),
        (["certified.json", "--monitor", "nowhere.json"], "nowhere.json"),
        (["certified.json", "--monitor", "certified.json"], "not the state of a monitor"),
    ],
)
def test_a_monitor_that_does_not_belong_is_bad_usage_and_writes_nothing(
    folder: Path, pacbound: Run, arguments: list[str], said: str
) -> None:
    done = pacbound("report", *arguments, "-o", "out.html", code=2)
    assert said in done.stderr
    assert not (folder / "out.html").exists()
