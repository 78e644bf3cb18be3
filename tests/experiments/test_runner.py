"""All exhibits: what is run, what is left out, and what is done already."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import pytest
from experiments.__main__ import EXHIBITS, INPUTS, Exhibit, command, is_done, main

EXHIBIT = Exhibit("experiments.x", "x", ("outputs", "top-five"), ("apis",))
NOTHING: dict[str, Path | None] = dict.fromkeys(INPUTS)


def test_every_exhibit_is_a_module_and_reads_known_inputs() -> None:
    for exhibit in EXHIBITS:
        assert find_spec(exhibit.module) is not None
        assert {*exhibit.reads, *exhibit.takes} <= set(INPUTS)
    assert len({exhibit.made for exhibit in EXHIBITS}) == len(EXHIBITS)


def test_every_exhibit_has_a_quick_version() -> None:
    assert [exhibit.made for exhibit in EXHIBITS if exhibit.quick is None] == []


def test_an_exhibit_without_its_data_is_left_out_and_says_why() -> None:
    assert command(EXHIBIT, NOTHING, Path("o"), quick=False) == (
        "for want of --outputs and --top-five"
    )


def test_what_is_given_is_handed_on() -> None:
    given = {**NOTHING, "outputs": Path("a.npz"), "top-five": Path("b.npz"), "apis": Path("c.npz")}
    assert command(EXHIBIT, given, Path("o"), quick=False) == (
        [
            "-m",
            "experiments.x",
            "--outputs",
            "a.npz",
            "--top-five",
            "b.npz",
            "--apis",
            "c.npz",
            "--out",
            "o",
        ]
    )


def test_a_clone_has_the_top_five_too(tmp_path: Path) -> None:
    given = {**NOTHING, "outputs": tmp_path}
    assert command(EXHIBIT, given, Path("o"), quick=False) == (
        f"-m experiments.x --outputs {tmp_path} --out o".split()
    )


def test_a_quick_run_needs_no_data() -> None:
    assert command(EXHIBIT, NOTHING, Path("o"), quick=True) == (
        ["-m", "experiments.x", "--quick", "--out", "o"]
    )
    slow = Exhibit("experiments.x", "x", quick=None)
    assert command(slow, NOTHING, Path("o"), quick=True) == "it has no quick version"


@pytest.mark.parametrize(
    ("recorded", "expected"),
    [
        ("python -m experiments.x --outputs a.npz --top-five b.npz", True),
        ("python -m experiments.x --outputs other.npz --top-five b.npz", False),
        ("python -m experiments.x --quick", False),
    ],
)
def test_done_is_what_the_same_command_left(tmp_path: Path, recorded: str, expected: bool) -> None:
    given = {**NOTHING, "outputs": Path("/far/a.npz"), "top-five": Path("/far/b.npz")}
    found = command(EXHIBIT, given, tmp_path, quick=False)
    assert isinstance(found, list)
    assert not is_done(EXHIBIT, found, tmp_path)
    (tmp_path / "x.json").write_text(json.dumps({"command": recorded}))
    assert not is_done(EXHIBIT, found, tmp_path), "the report is written last"
    (tmp_path / "x.md").write_text("")
    assert is_done(EXHIBIT, found, tmp_path) is expected


def test_nothing_is_run_without_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--only", "imagenet_ablation", "--out", str(tmp_path)]) == 0
    assert "left out, for want of --outputs" in capsys.readouterr().out


@pytest.mark.parametrize("exhibit", EXHIBITS, ids=lambda exhibit: exhibit.made)
def test_what_is_committed_is_known_as_done_by_those_who_have_its_data(exhibit: Exhibit) -> None:
    given: dict[str, Path | None] = {
        "outputs": Path("imagenet_val_34nets.npz"),
        "top-five": Path("imagenet_val_resnet_top5.npz"),
        "apis": Path("frugalml_apis.npz"),
        "logits": Path("cifar10_resnet_logits.npz"),
        "data": Path("data"),
    }
    results = Path(__file__).parents[2] / "experiments" / "results"
    found = command(exhibit, given, results, quick=False)
    assert isinstance(found, list)
    assert is_done(exhibit, found, results)
