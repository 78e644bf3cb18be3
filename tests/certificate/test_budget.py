"""A budget of delta: what was spent on the same rows is remembered, and more is refused."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest

from pacbound import (
    Budget,
    Tally,
    calibrate,
    certify_alarm_range,
    certify_cascade,
    certify_sets,
    certify_shield,
    certify_together,
    load_certificate,
)
from pacbound.cascade import BatchSession
from pacbound.cascade.batches.records import records_of_files
from pacbound.cascade.rows import ReadingOptions
from pacbound.claims.bundle import CertificateBundle
from pacbound.errors import (
    CertificateError,
    InvalidTypeError,
    InvalidValueError,
    OverspentError,
)
from pacbound.sources.notation import PLAIN
from pacbound.tally.classes import ClassRule

RNG = np.random.default_rng(0)
SCORES = RNG.uniform(size=600)
RIGHT = RNG.random(600) < SCORES
OTHER = RNG.uniform(size=600)


@pytest.fixture
def budget(tmp_path: Path) -> Budget:
    return Budget(tmp_path / "budget.json", delta=0.3)


def test_three_tenths_are_three_times_a_tenth(budget: Budget) -> None:
    left = [budget.spend(calibrate(SCORES, RIGHT, delta=0.1, n_bins=bins)) for bins in (2, 3, 4)]
    assert left == [0.2, 0.1, 0.0]
    with pytest.raises(OverspentError, match=r"0\.3 of 0\.3 is spent"):
        budget.spend(calibrate(SCORES, RIGHT, delta=1e-9))


def in_file(path: Path, *, correct: str = "a", delta: float = 0.2, **options: Any) -> Any:
    """A claim on a file in which two models are equally often right."""
    np.savez(path, c=np.ones(600), a=RIGHT, b=RIGHT[::-1])
    named: dict[str, Any] = {"confidence": "c", "correct": correct}
    return calibrate(**named, data=str(path), delta=delta, **options)


def test_the_same_claim_from_the_same_columns_of_a_file_is_the_same_look(
    budget: Budget, tmp_path: Path
) -> None:
    for _ in range(3):
        assert budget.spend(in_file(tmp_path / "rows.npz")) == 0.1
    assert budget.spent(in_file(tmp_path / "rows.npz", delta=0.01)) == 0.2


def test_another_column_with_equal_counts_is_another_look(budget: Budget, tmp_path: Path) -> None:
    first, other = (in_file(tmp_path / "rows.npz", correct=column) for column in "ab")
    assert first.claim_digest == other.claim_digest
    budget.spend(first)
    with pytest.raises(OverspentError):
        budget.spend(other)


def test_another_question_about_the_same_column_is_another_look(
    budget: Budget, tmp_path: Path
) -> None:
    budget.spend(in_file(tmp_path / "rows.npz"))
    with pytest.raises(OverspentError):
        budget.spend(in_file(tmp_path / "rows.npz", side="lower"))


def test_columns_whose_names_hold_commas_are_not_taken_for_others(
    budget: Budget, tmp_path: Path
) -> None:
    answers = RNG.integers(0, 3, size=600)
    columns: dict[str, Any] = dict.fromkeys(("f", "x,s", "f,x", "s", "y"), answers)
    np.savez(tmp_path / "t.npz", c=SCORES, **columns)
    made = [
        certify_cascade(
            data=str(tmp_path / "t.npz"),
            confidence=["c"],
            prediction=pair,
            label="y",
            xi=0.1,
            delta=0.2,
        )
        for pair in (["f", "x,s"], ["f,x", "s"])
    ]
    assert made[0].provenance.columns == made[1].provenance.columns
    budget.spend(made[0])
    with pytest.raises(OverspentError):
        budget.spend(made[1])


def test_columns_of_sets_whose_names_hold_commas_are_not_taken_for_others(
    budget: Budget, tmp_path: Path
) -> None:
    columns: dict[str, Any] = {"a": SCORES, "b,c": 1 - SCORES, "a,b": SCORES, "c": 1 - SCORES}
    np.savez(tmp_path / "t.npz", y=np.zeros(600, dtype=int), **columns)
    for pair in (["a", "b,c"], ["a,b", "c"]):
        made = certify_sets(pair, "y", data=str(tmp_path / "t.npz"), xi=0.5, delta=0.1)
        assert made.provenance.columns == {}
        budget.spend(made)
    assert budget.spent(made) == 0.2


def test_a_batch_does_not_say_which_answers_it_was_compared_with(
    budget: Budget, tmp_path: Path
) -> None:
    """Two slow models that differ only outside the sample give the same certificate."""
    np.savez(tmp_path / "t.npz", c=SCORES, p=np.zeros(600, dtype=int))
    rule = ClassRule.of(None, None)
    for _ in range(2):
        session = BatchSession.of_records(
            records_of_files(str(tmp_path / "t.npz"), "c", "p", ReadingOptions(rule, PLAIN, None)),
            {"xi": 0.5, "delta": 0.1, "sample": None, "looks": 1, "whole_ties": False},
            rng=np.random.default_rng(0),
            journal=None,
            columns={"confidence": "c", "prediction": "p"},
        )
        while not session.done:
            rows = session.ask()
            session.tell(rows, [0] * len(rows))
        budget.spend(session.result().certificate)
    assert budget.spent(session.result().certificate) == 0.2


@pytest.mark.parametrize("sample", [None, "March"])
def test_arrays_say_nothing_of_their_model_so_that_each_spending_counts(
    budget: Budget, sample: str | None
) -> None:
    made = calibrate(SCORES, RIGHT, delta=0.2, sample=sample)
    budget.spend(made)
    with pytest.raises(OverspentError):
        budget.spend(made)


def test_labels_from_a_frame_are_not_known_again(budget: Budget, tmp_path: Path) -> None:
    np.savez(tmp_path / "rows.npz", c=SCORES)
    answers = polars.DataFrame({"pac_row": np.arange(600), "a": RIGHT})
    named: dict[str, Any] = {"confidence": "c", "correct": "a"}
    made = calibrate(**named, data=str(tmp_path / "rows.npz"), delta=0.2, answers=answers)
    budget.spend(made)
    with pytest.raises(OverspentError):
        budget.spend(made)


def test_tallies_do_not_say_which_column_they_are_of_so_that_each_claim_counts(
    budget: Budget, tmp_path: Path
) -> None:
    in_file(tmp_path / "rows.npz")
    for column in "ab":
        tally = Tally.count(
            "calibration", data=str(tmp_path / "rows.npz"), confidence="c", correct=column
        )
        made = calibrate(data=tally, delta=0.2)
        if column == "b":
            with pytest.raises(OverspentError):
                budget.spend(made)
        else:
            budget.spend(made)


def test_rows_that_nobody_named_are_no_other_rows(budget: Budget, tmp_path: Path) -> None:
    budget.spend(calibrate(SCORES, RIGHT, delta=0.2))
    frame = polars.DataFrame({"c": OTHER, "a": RIGHT})
    named: dict[str, Any] = {"confidence": "c", "correct": "a"}
    for other in (
        calibrate(OTHER, RIGHT, delta=0.2),
        calibrate(**named, data=frame, delta=0.2),
        in_file(tmp_path / "other.npz"),
        calibrate(OTHER, RIGHT, delta=0.2, sample="March"),
    ):
        with pytest.raises(OverspentError, match=r"0\.2 of 0\.3 is spent on"):
            budget.spend(other)


def test_samples_of_two_names_have_a_budget_each(budget: Budget) -> None:
    assert budget.spend(calibrate(SCORES, RIGHT, delta=0.3, sample="March")) == 0.0
    assert budget.spend(calibrate(OTHER, RIGHT, delta=0.2), sample="April") == 0.1
    with pytest.raises(OverspentError, match="on the sample 'April'"):
        budget.spend(calibrate(OTHER, RIGHT, delta=0.2, sample="April"))
    # On whatever rows: it may be on those of March.
    with pytest.raises(OverspentError, match="on the sample 'March'"):
        budget.spend(calibrate(OTHER, RIGHT, delta=0.01))
    assert [(part.samples, part.spent) for part in budget.by_sample()] == [
        (("March",), 0.3),
        (("April",), 0.2),
    ]


def test_a_claim_that_names_no_sample_counts_for_every_sample(budget: Budget) -> None:
    budget.spend(calibrate(SCORES, RIGHT, delta=0.1, sample="March"))
    assert budget.spend(calibrate(SCORES, RIGHT, delta=0.1)) == 0.1
    with pytest.raises(OverspentError):
        budget.spend(calibrate(OTHER, RIGHT, delta=0.25, sample="April"))
    assert budget.spend(calibrate(OTHER, RIGHT, delta=0.2, sample="April")) == 0.0
    parts = {part.samples: (part.spent, part.left) for part in budget.by_sample()}
    assert parts == {(): (0.1, 0.0), ("March",): (0.2, 0.1), ("April",): (0.3, 0.0)}
    assert budget.on_sample("May").left == 0.2


def test_spellings_of_one_name_are_one_sample(budget: Budget) -> None:
    budget.spend(calibrate(SCORES, RIGHT, delta=0.2, sample="Held-out,  März"))
    with pytest.raises(OverspentError, match="on the sample 'Held-out,  März'"):
        budget.spend(calibrate(SCORES, RIGHT, delta=0.2), sample=" held-out, Ma\u0308rz ")


def test_two_names_of_one_file_are_names_of_one_sample(budget: Budget, tmp_path: Path) -> None:
    budget.spend(in_file(tmp_path / "rows.npz", sample="March", n_bins=3, delta=0.1))
    budget.spend(calibrate(SCORES, RIGHT, delta=0.2, sample="April"))
    with pytest.raises(OverspentError, match="'March', 'April', which are the same rows"):
        budget.spend(in_file(tmp_path / "rows.npz", sample="April", delta=0.1))
    # Nothing was spent, so that the names are two again.
    assert budget.spend(calibrate(SCORES, RIGHT, delta=0.1, sample="April")) == 0.0


def test_a_file_of_a_named_sample_belongs_to_it(budget: Budget, tmp_path: Path) -> None:
    budget.spend(in_file(tmp_path / "rows.npz", sample="March"))
    budget.spend(calibrate(OTHER, RIGHT, delta=0.3, sample="April"))
    assert budget.spend(in_file(tmp_path / "rows.npz", correct="b", delta=0.1)) == 0.0
    with pytest.raises(OverspentError, match="on the sample 'March'"):
        budget.spend(in_file(tmp_path / "rows.npz", correct="b", delta=0.01))


def test_a_part_of_the_rows_in_a_named_file_does_not_tell_where_the_rest_is(
    budget: Budget, tmp_path: Path
) -> None:
    in_file(tmp_path / "rows.npz")
    part = Tally.count("calibration", data=str(tmp_path / "rows.npz"), confidence="c", correct="a")
    budget.spend(part, 0.1, sample="March")
    budget.spend(calibrate(OTHER, RIGHT, delta=0.3, sample="April"))
    with pytest.raises(OverspentError, match="on the sample 'April'"):
        budget.spend(part + Tally.count("calibration", confidence=OTHER, correct=RIGHT), 0.1)


def test_the_same_look_may_be_named_later(budget: Budget, tmp_path: Path) -> None:
    budget.spend(in_file(tmp_path / "rows.npz"))
    assert budget.spend(in_file(tmp_path / "rows.npz"), sample="March") == 0.1
    assert budget.spend(calibrate(OTHER, RIGHT, delta=0.3, sample="April")) == 0.0
    assert budget.on_sample("march").spent == 0.2
    # It would be on April, too, which is full.
    with pytest.raises(OverspentError, match="which are the same rows"):
        budget.spend(in_file(tmp_path / "rows.npz"), sample="April")


def test_a_certificate_that_is_called_otherwise_counts_for_both_names(budget: Budget) -> None:
    budget.spend(calibrate(SCORES, RIGHT, delta=0.1, sample="March"))
    budget.spend(calibrate(OTHER, RIGHT, delta=0.1, sample="April"), sample="May")
    budget.spend(calibrate(OTHER, RIGHT, delta=0.1), sample="April")
    assert {part.samples: part.spent for part in budget.by_sample()} == {
        ("March",): 0.1,
        ("May", "April"): 0.2,
    }


def test_rows_drawn_by_another_seed_are_the_same_rows(budget: Budget) -> None:
    clusters = RNG.integers(0, 200, size=600)
    budget.spend(calibrate(SCORES, RIGHT, delta=0.2, clusters=clusters, seed=0))
    with pytest.raises(OverspentError):
        budget.spend(calibrate(SCORES, RIGHT, delta=0.2, clusters=clusters, seed=1))


def test_a_claim_on_several_samples_is_spent_on_each_and_makes_them_one(budget: Budget) -> None:
    march, april = (
        Tally.count("calibration", confidence=scores, correct=RIGHT) for scores in (SCORES, OTHER)
    )
    bundle = CertificateBundle.of(
        {
            "a": calibrate(data=march, delta=0.1, sample="March"),
            "b": calibrate(data=april, delta=0.1, sample="April"),
        },
        delta=0.2,
    )
    budget.spend(bundle)
    for tally, sample in ((march, "March"), (april, "April")):
        assert budget.spent(tally, sample=sample) == 0.2
        with pytest.raises(OverspentError):
            budget.spend(tally, 0.2, sample=sample)


def test_a_bundle_names_the_samples_of_all_its_claims_or_of_none(
    budget: Budget, tmp_path: Path
) -> None:
    claims: dict[str, Any] = {
        "a": partial(calibrate, SCORES, RIGHT, sample="March"),
        "b": partial(certify_alarm_range, SCORES, RIGHT, xi=0.5, target=0.5),
    }
    partly, all_named = (
        certify_together(claims, delta=0.1, sample=sample) for sample in (None, "April")
    )
    for bundle, name in ((partly, "partly.json"), (all_named, "all.json")):
        bundle.save(tmp_path / name)
    for made in (partly, load_certificate(tmp_path / "partly.json")):
        with pytest.raises(InvalidValueError, match="another does not name its sample"):
            budget.spend(made)
        assert budget.spent(made, sample="May") == 0.0
    loaded = load_certificate(tmp_path / "all.json")
    assert isinstance(loaded, CertificateBundle)
    assert loaded.verify()
    for made in (all_named, loaded):
        assert made.provenance.sample == "April"
        assert [one.provenance.sample for one in made.members.values()] == ["March", None]
    assert loaded.summary() == all_named.summary()
    for made in (all_named, loaded):
        budget.spend(made)
    assert [part.samples for part in budget.by_sample()] == [("April", "March")]
    assert budget.on_sample("March").spent == 0.2


def test_a_tally_spends_each_time(budget: Budget) -> None:
    tally = Tally.count("calibration", confidence=SCORES, correct=RIGHT)
    assert [budget.spend(tally, 0.1), budget.spend(tally, 0.1)] == [0.2, 0.1]


def test_a_bundle_spends_its_whole_delta(budget: Budget) -> None:
    bundle = certify_together(
        {
            "a": lambda delta: calibrate(SCORES, RIGHT, delta=delta),
            "b": lambda delta: certify_shield(SCORES, RIGHT, xi=0.9, delta=delta),
        },
        delta=0.25,
    )
    budget.spend(bundle)
    assert budget.spent(bundle) == 0.25


def test_a_budget_is_kept_in_its_file(tmp_path: Path, budget: Budget) -> None:
    budget.spend(calibrate(SCORES, RIGHT, delta=0.2))
    again = Budget(tmp_path / "budget.json")
    assert again.delta == 0.3
    with pytest.raises(OverspentError):
        again.spend(calibrate(SCORES, RIGHT, delta=0.2, n_bins=7))


@pytest.mark.parametrize(
    ("what", "delta", "message"),
    [
        (calibrate(SCORES, RIGHT, delta=0.1), 0.1, "leave delta out"),
        (Tally.count("calibration", confidence=SCORES, correct=RIGHT), None, "no delta of its own"),
        (Tally.count("calibration", confidence=SCORES, correct=RIGHT), 1.5, "delta=1.5"),
        ("certificate.json", None, "nothing to spend on"),
    ],
)
def test_what_cannot_be_spent_is_refused(
    budget: Budget, what: Any, delta: float | None, message: str
) -> None:
    with pytest.raises((InvalidValueError, InvalidTypeError), match=message):
        budget.spend(what, delta)


def test_a_budget_that_is_not_there_needs_a_delta(tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError, match="There is no budget"):
        Budget(tmp_path / "none.json")
    with pytest.raises(InvalidValueError, match="cannot be locked"):
        Budget(tmp_path / "no" / "folder.json", delta=0.1)


def test_a_budget_is_not_raised_afterwards(tmp_path: Path, budget: Budget) -> None:
    assert Budget(tmp_path / "budget.json", delta=0.3).delta == 0.3
    with pytest.raises(InvalidValueError, match=r"is of delta = 0\.3, not 0\.5"):
        Budget(tmp_path / "budget.json", delta=0.5)


@pytest.mark.parametrize("change", [{"delta": 0.9}, {"looks": []}, {"format": "x"}, {"schema": 2}])
def test_a_changed_budget_is_refused(
    tmp_path: Path, budget: Budget, change: dict[str, Any]
) -> None:
    budget.spend(calibrate(SCORES, RIGHT, delta=0.2))
    document = json.loads((tmp_path / "budget.json").read_text())
    (tmp_path / "budget.json").write_text(json.dumps({**document, **change}))
    with pytest.raises(CertificateError, match="Restore an intact copy"):
        budget.spend(calibrate(SCORES, RIGHT, delta=0.01))


@pytest.mark.parametrize("size", [0, 40, -1])
def test_a_budget_that_was_cut_short_is_refused(tmp_path: Path, budget: Budget, size: int) -> None:
    budget.spend(calibrate(SCORES, RIGHT, delta=0.2))
    whole = (tmp_path / "budget.json").read_text().rstrip()
    (tmp_path / "budget.json").write_text(whole[:size])
    for use in (lambda: budget.spend(calibrate(SCORES, RIGHT, delta=0.01)), budget.by_sample):
        with pytest.raises(CertificateError, match="Restore an intact copy"):
            use()
    assert (tmp_path / "budget.json").read_text() == whole[:size]


def test_a_certificate_whose_provenance_was_changed_is_not_spent(
    tmp_path: Path, budget: Budget
) -> None:
    calibrate(SCORES, RIGHT, delta=0.2, sample="March").save(tmp_path / "c.json")
    text = (tmp_path / "c.json").read_text()
    (tmp_path / "c.json").write_text(text.replace("March", "April"))
    with pytest.raises(CertificateError, match="provenance of this certificate was changed"):
        budget.spend(load_certificate(tmp_path / "c.json"))


SPENDER = """
import sys
import numpy as np
from pacbound import Budget, Tally
from pacbound.errors import OverspentError
rows = np.random.default_rng(5).uniform(size=100)
tally = Tally.count("shield", rows, rows > 2)
budget, done = Budget(sys.argv[1], delta=0.3), 0
for _ in range(20):
    try:
        budget.spend(tally, 0.01)
    except OverspentError:
        continue
    done += 1
print(done)
"""


@pytest.mark.slow
def test_processes_that_spend_at_once_do_not_overspend(tmp_path: Path) -> None:
    command = [sys.executable, "-c", SPENDER, str(tmp_path / "budget.json")]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    spent = [int(process.communicate()[0]) for process in running]
    assert sum(spent) == 30
