"""`pacbound abstain` and `pacbound apply` of its certificate, end to end."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from pacbound import certify_abstention, load_certificate
from pacbound.claims.abstention import AbstentionCertificate

Run = Callable[..., subprocess.CompletedProcess[str]]

COLUMNS = ("--confidence", "c", "--correct", "ok")
CLAIM = ("--xi", 0.15, "--delta", 0.05)
LOOSE = ("--xi", 0.25, "--delta", 0.05)


def _arrays(path: Path) -> tuple[list[float], list[bool], list[str]]:
    rows = [line.split(",") for line in path.read_text().splitlines()[1:]]
    return (
        [float(row[0]) for row in rows],
        [row[1] == "1" for row in rows],
        [row[4] for row in rows],
    )


def test_the_certificate_from_a_file_makes_the_claim_of_the_arrays(
    pacbound: Run, predictions: Path
) -> None:
    confidence, correct, places = _arrays(predictions)
    done = pacbound("abstain", predictions, *COLUMNS, *CLAIM, "-o", "a.json")
    assert "Answer where the confidence is at least" in done.stdout
    expected = certify_abstention(confidence, correct, xi=0.15, delta=0.05)
    folder = predictions.parent
    assert load_certificate(folder / "a.json").claim_digest == expected.claim_digest
    classes = ("--confidence", "c", "--prediction", "pred", "--label", "y", "--groups", "place")
    pacbound("abstain", predictions, *classes, *LOOSE, "-o", "g.json")
    grouped = certify_abstention(confidence, correct, groups=places, xi=0.25, delta=0.05)
    assert load_certificate(folder / "g.json").claim_digest == grouped.claim_digest
    pacbound("verify", "a.json", "g.json")


def test_applying_adds_the_decision_to_every_row_in_order(pacbound: Run, predictions: Path) -> None:
    pacbound("abstain", predictions, *COLUMNS, *CLAIM, "-o", "a.json")
    done = pacbound("apply", "a.json", predictions, "-o", "out.csv")
    assert "of them are answered" in done.stdout
    certificate = load_certificate(predictions.parent / "a.json")
    assert isinstance(certificate, AbstentionCertificate)
    confidence, _, _ = _arrays(predictions)
    lines = (predictions.parent / "out.csv").read_text().splitlines()
    assert lines[0].endswith(",pac_answer")
    decided = [line.rsplit(",", 1)[1] for line in lines[1:]]
    assert decided == [str(int(answer)) for answer in certificate.answers(confidence)]
    assert [line.rsplit(",", 1)[0] for line in lines] == predictions.read_text().splitlines()


def test_rows_of_a_group_that_was_not_certified_are_not_answered(
    pacbound: Run, predictions: Path, tmp_path: Path
) -> None:
    pacbound("abstain", predictions, *COLUMNS, "--groups", "place", *LOOSE, "-o", "g.json")
    (tmp_path / "new.csv").write_text("c,place\n1.0,north\n1.0,moon\n")
    done = pacbound("apply", "g.json", "new.csv", "-o", "out.csv", "--json")
    said = json.loads(done.stdout)
    assert (said["rows"], said["answered"], said["uncertified_groups"]) == (2, 1, ["moon"])
    assert (tmp_path / "out.csv").read_text().splitlines()[1:] == ["1.0,north,1", "1.0,moon,0"]
    done = pacbound("apply", "g.json", "new.csv", "-o", "b.csv", "--strict", code=2)
    assert "'moon', a group that was not certified" in done.stderr
    assert not (tmp_path / "b.csv").exists()


def test_a_refusal_ends_with_3_and_says_what_it_would_take(
    pacbound: Run, predictions: Path
) -> None:
    done = pacbound(
        "abstain", predictions, *COLUMNS, "--xi", 0.001, "--delta", 0.01, "-o", "a.json", code=3
    )
    assert "rows would do" in done.stdout
    pacbound("verify", "a.json", code=3)
    pacbound("apply", "a.json", predictions, "-o", "out.csv")
    lines = (predictions.parent / "out.csv").read_text().splitlines()[1:]
    assert {line.rsplit(",", 1)[1] for line in lines} == {"0"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--confidence", "c"), "Pass either correct"),
        (("--confidence", "nope", "--correct", "ok"), "nope"),
        ((*COLUMNS, "--first-threshold", 2), "--first-threshold=2.0 is not a score"),
    ],
)
def test_bad_usage_ends_with_2(
    pacbound: Run, predictions: Path, options: tuple[object, ...], message: str
) -> None:
    done = pacbound("abstain", predictions, *options, *CLAIM, "-o", "a.json", code=2)
    assert message in done.stderr
    assert not (predictions.parent / "a.json").exists()
