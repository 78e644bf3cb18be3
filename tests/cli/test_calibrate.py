"""`pacbound calibrate`, `apply` and `verify`, end to end."""

import csv
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from pacbound import calibrate, load_certificate
from pacbound.claims.calibration_certificate import CalibrationCertificate

Run = Callable[..., subprocess.CompletedProcess[str]]

CALIBRATE = ("--confidence", "c", "--correct", "ok", "--delta", "0.01")


def columns(path: Path) -> dict[str, list[str]]:
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return {name: [row[name] for row in rows] for name in rows[0]}


def test_the_certificate_from_a_file_makes_the_claim_of_the_arrays(
    pacbound: Run, predictions: Path
) -> None:
    pacbound("calibrate", predictions, *CALIBRATE, "--n-bins", 10, "-o", "cal.json")
    table = columns(predictions)
    arrays = calibrate(
        np.array(table["c"], dtype=float), np.array(table["ok"], dtype=int), delta=0.01, n_bins=10
    )
    assert load_certificate(predictions.parent / "cal.json").claim_digest == arrays.claim_digest


def test_prediction_and_label_stand_for_correct(pacbound: Run, predictions: Path) -> None:
    pacbound("calibrate", predictions, *CALIBRATE, "-o", "a.json")
    pacbound(
        "calibrate",
        predictions,
        "--confidence",
        "c",
        "--prediction",
        "pred",
        "--label",
        "y",
        "--delta",
        "0.01",
        "-o",
        "b.json",
    )
    one, other = (load_certificate(predictions.parent / name) for name in ("a.json", "b.json"))
    assert one.claim_digest == other.claim_digest


def test_a_label_written_with_a_point_is_the_same_class(pacbound: Run, tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("c,pred,y\n0.9,3,3.0\n0.8,2,3.0\n")
    done = pacbound(
        "calibrate",
        "p.csv",
        "--confidence",
        "c",
        "--prediction",
        "pred",
        "--label",
        "y",
        "--delta",
        "0.1",
        "--json",
    )
    assert json.loads(done.stdout)["claim"]["tables"][0]["counts"]["right"] == [0, 1]


def test_csv_and_npz_and_several_files_agree(pacbound: Run, predictions: Path) -> None:
    folder, table = predictions.parent, columns(predictions)
    confidence, correct = np.array(table["c"], dtype=float), np.array(table["ok"], dtype=int)
    np.savez(folder / "whole.npz", c=confidence, ok=correct)
    np.savez(folder / "one.npz", c=confidence[:100], ok=correct[:100])
    np.savez(folder / "two.npz", c=confidence[100:], ok=correct[100:])
    pacbound("calibrate", predictions, *CALIBRATE, "-o", "a.json")
    pacbound("calibrate", "whole.npz", *CALIBRATE, "-o", "b.json")
    pacbound("calibrate", "one.npz", "two.npz", *CALIBRATE, "-o", "c.json")
    assert (
        len(
            {
                load_certificate(folder / name).claim_digest
                for name in ("a.json", "b.json", "c.json")
            }
        )
        == 1
    )


def test_counting_one_file_twice_is_refused(pacbound: Run, predictions: Path) -> None:
    done = pacbound("calibrate", predictions, predictions, *CALIBRATE, code=2)
    assert "twice" in done.stderr


def test_apply_adds_the_interval_and_keeps_every_row_as_it_was(
    pacbound: Run, predictions: Path
) -> None:
    folder = predictions.parent
    pacbound("calibrate", predictions, *CALIBRATE, "-o", "cal.json")
    pacbound("apply", "cal.json", predictions, "-o", "out.csv")
    before, after = columns(predictions), columns(folder / "out.csv")
    assert {name: after[name] for name in before} == before
    certificate = load_certificate(folder / "cal.json")
    assert isinstance(certificate, CalibrationCertificate)
    interval = certificate.interval(np.array(before["c"], dtype=float))
    assert (np.array(after["pac_lower"], dtype=float) == interval[:, 0]).all()
    assert (np.array(after["pac_upper"], dtype=float) == interval[:, 1]).all()


def test_apply_works_on_arrays_whatever_their_names(pacbound: Run, tmp_path: Path) -> None:
    np.savez(tmp_path / "rows.npz", c=[0.9, 0.1, 0.5], ok=[1, 0, 1])
    pacbound("calibrate", "rows.npz", *CALIBRATE, "-o", "cal.json")
    np.savez(tmp_path / "plain.npz", c=[0.3, 1.0])
    with np.load(tmp_path / "plain.npz") as plain:
        assert plain.files == ["c"]
    pacbound("apply", "cal.json", "plain.npz", "-o", "out.npz")
    with np.load(tmp_path / "out.npz") as out:
        assert out["c"].tolist() == [0.3, 1.0]
        assert out["pac_lower"].tolist() == [0.0, 0.0]
        assert np.isnan(out["pac_estimate"]).all()


def test_groups_go_through_calibrate_and_apply(pacbound: Run, predictions: Path) -> None:
    pacbound("calibrate", predictions, *CALIBRATE, "--groups", "place", "-o", "cal.json")
    pacbound("apply", "cal.json", predictions, "-o", "out.csv")
    certificate = load_certificate(predictions.parent / "cal.json")
    assert isinstance(certificate, CalibrationCertificate)
    assert certificate.groups == ("north", "south")
    table = columns(predictions.parent / "out.csv")
    expected = certificate.interval(np.array(table["c"], dtype=float), groups=table["place"])
    assert (np.array(table["pac_lower"], dtype=float) == expected[:, 0]).all()


def test_verify_says_what_was_changed_and_the_worst_code_counts(
    pacbound: Run, predictions: Path
) -> None:
    folder = predictions.parent
    pacbound("calibrate", predictions, *CALIBRATE, "-o", "good.json")
    document = json.loads((folder / "good.json").read_text())
    document["claim"]["tables"][0]["counts"]["right"][0] += 1
    (folder / "changed.json").write_text(json.dumps(document))
    (folder / "broken.json").write_text((folder / "good.json").read_text()[:200])
    assert "verified" in pacbound("verify", "good.json").stdout
    assert "claim_digest" in pacbound("verify", "good.json", "changed.json", code=1).stderr
    pacbound("verify", "good.json", "broken.json", code=2)
    pacbound("verify", "good.json", "changed.json", "broken.json", code=1)
    lines = pacbound("verify", "--json", "good.json", "changed.json", code=1).stdout.splitlines()
    assert [json.loads(line)["ok"] for line in lines] == [True, False]


def test_a_changed_certificate_is_not_applied(pacbound: Run, predictions: Path) -> None:
    folder = predictions.parent
    pacbound("calibrate", predictions, *CALIBRATE, "-o", "cal.json")
    (folder / "cal.json").write_text(
        (folder / "cal.json").read_text().replace('"delta": 0.01', '"delta": 0.001')
    )
    done = pacbound("apply", "cal.json", predictions, "-o", "out.csv", code=1)
    assert "not applied" in done.stderr
    assert not (folder / "out.csv").exists()


@pytest.mark.parametrize(
    ("content", "arguments", "message"),
    [
        ("", CALIBRATE, "is empty"),
        ("c,ok\n", CALIBRATE, "no rows"),
        ("c,ok\n0.5,1\n0.6\n", CALIBRATE, "Expected 2 columns, got 1"),
        ("c,ok\n0.5,1\nabc,0\n", CALIBRATE, r"c[1] is 'abc', which is not a number"),
        ("c,ok\n0.5,1\n,0\n", CALIBRATE, "c[1] is ''"),
        ("c,ok\n0.5,1\nnan,0\n", CALIBRATE, "c[1] is nan"),
        ("c,ok\n0.5,1\n1.5,0\n", CALIBRATE, "c[1] is 1.5"),
        ("c,ok\n0.5,maybe\n", CALIBRATE, "ok[0] is 'maybe'"),
        ("c,ok\n0.5,\n", CALIBRATE, "ok[0] is missing"),
        ("c,right\n0.5,1\n", CALIBRATE, "no column 'ok'"),
        ("c,ok,ok\n0.5,1,1\n", CALIBRATE, "2 columns named 'ok'"),
        ("c;ok\n0.5;1\n", CALIBRATE, "no column 'c'"),
        ("c,ok\n0.5,1\n", (*CALIBRATE[:-1], "1.2"), "delta=1.2 is not a failure probability"),
        ("c,ok\n0.5,1\n", (*CALIBRATE, "--n-bins", "0"), "--n-bins=0 is not a number of bins"),
        ("c,ok\n0.5,1\n", (*CALIBRATE, "--edges", "0,a,1"), "expected numbers from 0 to 1 such as"),
        (
            "c,ok\n0.5,1\n",
            (*CALIBRATE, "--edges", "0,1,0.5"),
            "run from 0.0 to 0.5|not increasing",
        ),
        ("c,ok\n0.5,1\n", ("--confidence", "c", "--delta", "0.1"), "either correct, or both"),
        (
            "c,ok\n0.5,1\n",
            ("--confidence", "c", "--prediction", "ok", "--delta", "0.1"),
            "either correct, or both",
        ),
    ],
)
def test_bad_input_is_explained_and_leaves_nothing_behind(
    pacbound: Run, tmp_path: Path, content: str, arguments: tuple[str, ...], message: str
) -> None:
    (tmp_path / "rows.csv").write_text(content)
    done = pacbound("calibrate", "rows.csv", *arguments, "-o", "cal.json", code=2)
    assert any(part in done.stderr for part in message.split("|")), done.stderr
    assert done.stdout == ""
    assert [path.name for path in tmp_path.iterdir()] == ["rows.csv"]


@pytest.mark.parametrize("name", ["missing.csv", "folder", "rows.xlsx"])
def test_files_that_are_no_tables_are_refused(pacbound: Run, tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "rows.xlsx").write_bytes(b"PK")
    pacbound("calibrate", name, *CALIBRATE, code=2)


def test_a_truncated_npz_and_a_pickled_one_are_refused(pacbound: Run, tmp_path: Path) -> None:
    np.savez(tmp_path / "rows.npz", c=np.random.default_rng(0).random(1000), ok=np.ones(1000))
    whole = (tmp_path / "rows.npz").read_bytes()
    (tmp_path / "cut.npz").write_bytes(whole[: len(whole) // 2])
    assert "cut short" in pacbound("calibrate", "cut.npz", *CALIBRATE, code=2).stderr
    np.savez(
        tmp_path / "objects.npz", c=np.array([{"a": 1}], dtype=object), ok=[1], allow_pickle=True
    )
    pacbound("calibrate", "objects.npz", *CALIBRATE, code=2)


@pytest.mark.slow
def test_an_error_half_way_through_apply_leaves_no_file(pacbound: Run, predictions: Path) -> None:
    folder = predictions.parent
    pacbound("calibrate", predictions, *CALIBRATE, "-o", "cal.json")
    rows = "c\n" + "0.5\n" * 2_000_000 + "oops\n"
    (folder / "long.csv").write_text(rows)
    done = pacbound("apply", "cal.json", "long.csv", "-o", "out.csv", code=2)
    assert "c[2000000] is 'oops'" in done.stderr
    assert sorted(path.name for path in folder.iterdir()) == [
        "cal.json",
        "long.csv",
        "predictions.csv",
    ]


def test_an_existing_column_is_not_overwritten(pacbound: Run, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("c,ok,pac_lower\n0.5,1,7\n")
    pacbound("calibrate", "rows.csv", *CALIBRATE, "-o", "cal.json")
    assert (
        "already has a column"
        in pacbound("apply", "cal.json", "rows.csv", "-o", "out.csv", code=2).stderr
    )


def test_an_interrupt_ends_with_130_and_no_output(predictions: Path) -> None:
    folder = predictions.parent
    code, errors = 0, ""
    # On a busy machine the command may be done before the interrupt arrives; then it is given more
    # to do.
    for rows in (3_000_000, 20_000_000):
        (folder / "long.csv").write_text("c,ok\n" + "0.5,1\n" * rows)
        code, errors = _interrupted(folder)
        if code != 0:
            break
        (folder / "cal.json").unlink()
    assert code == 130
    assert "interrupted" in errors
    assert not (folder / "cal.json").exists()


def _interrupted(folder: Path) -> tuple[int, str]:
    # Whoever runs the tests in the background may have them ignore interrupts, and children inherit
    # that.
    program = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from "
        "pacbound.cli import main; main()"
    )
    command = [
        sys.executable,
        "-c",
        program,
        "calibrate",
        "long.csv",
        *CALIBRATE,
        "-o",
        "cal.json",
    ]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True) as process:
        while process.poll() is None and "long.csv" not in _open_files(process.pid):
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=120)
    return process.returncode, errors


def _open_files(pid: int) -> str:
    links = []
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        try:
            links.append(str(entry.readlink()))
        except FileNotFoundError:
            continue
    return " ".join(links)


def test_usage_errors_and_help_have_their_codes(pacbound: Run) -> None:
    pacbound("calibrate", code=2)
    pacbound("no-such-verb", code=2)
    assert "calibrate" in pacbound("--help").stdout
    assert pacbound("--version").stdout.startswith("pacbound ")


def test_stderr_stays_clean_when_all_is_well(pacbound: Run, predictions: Path) -> None:
    assert pacbound("calibrate", predictions, *CALIBRATE, "-o", "cal.json").stderr == ""
    assert pacbound("apply", "cal.json", predictions, "-o", "out.csv").stderr == ""
    assert pacbound("verify", "cal.json").stderr == ""


@pytest.mark.slow
def test_ten_thousand_rows_in_many_batches_keep_their_order(pacbound: Run, tmp_path: Path) -> None:
    """Enough text that Arrow hands it over in several batches."""
    rows = 60_000
    filler = "x" * 300
    (tmp_path / "rows.csv").write_text(
        "i,c,ok,f\n" + "".join(f"{i},{i / rows},{i % 2},{filler}\n" for i in range(rows))
    )
    pacbound("calibrate", "rows.csv", *CALIBRATE, "-o", "cal.json")
    pacbound("apply", "cal.json", "rows.csv", "-o", "out.csv")
    assert columns(tmp_path / "out.csv")["i"] == [str(i) for i in range(rows)]
