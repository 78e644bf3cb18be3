"""A budget of delta: what was spent on the same rows is remembered, and more is refused."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pacbound import Budget, Tally, calibrate, certify_shield, certify_together
from pacbound.errors import (
    CertificateError,
    InvalidTypeError,
    InvalidValueError,
    OverspentError,
)

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


def test_the_same_claim_is_the_same_look(budget: Budget) -> None:
    for _ in range(5):
        assert budget.spend(calibrate(SCORES, RIGHT, delta=0.2)) == 0.1
    assert budget.spent(calibrate(SCORES, RIGHT, delta=0.01)) == 0.2


def test_other_rows_have_a_budget_of_their_own(budget: Budget) -> None:
    budget.spend(calibrate(SCORES, RIGHT, delta=0.3))
    assert budget.spend(calibrate(OTHER, RIGHT, delta=0.3)) == 0.0


def test_rows_drawn_by_another_seed_are_the_same_rows(budget: Budget) -> None:
    clusters = RNG.integers(0, 200, size=600)
    budget.spend(calibrate(SCORES, RIGHT, delta=0.2, clusters=clusters, seed=0))
    with pytest.raises(OverspentError):
        budget.spend(calibrate(SCORES, RIGHT, delta=0.2, clusters=clusters, seed=1))


def test_a_claim_on_several_sources_is_spent_on_each(budget: Budget) -> None:
    first = Tally.from_arrays(confidence=SCORES, correct=RIGHT)
    second = Tally.from_arrays(confidence=OTHER, correct=RIGHT)
    budget.spend(first + second, 0.2)
    for tally in (first, second):
        with pytest.raises(OverspentError):
            budget.spend(tally, 0.2)
        assert budget.spent(tally) == 0.2


def test_a_tally_spends_each_time(budget: Budget) -> None:
    tally = Tally.from_arrays(confidence=SCORES, correct=RIGHT)
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
        (calibrate(SCORES, RIGHT, delta=0.1), 0.1, "leave it out"),
        (Tally.from_arrays(confidence=SCORES, correct=RIGHT), None, "no delta of its own"),
        (Tally.from_arrays(confidence=SCORES, correct=RIGHT), 1.5, "delta=1.5"),
        (Tally.from_arrays(confidence=[0.5], correct=[True]), 0.1, "no fingerprint"),
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
    with pytest.raises(CertificateError):
        budget.spend(calibrate(SCORES, RIGHT, delta=0.01))


SPENDER = """
import sys
import numpy as np
from pacbound import Budget, Tally
from pacbound.errors import OverspentError
rows = np.random.default_rng(5).uniform(size=100)
tally = Tally.from_arrays(scores=rows, unsafe=rows > 2)
budget, done = Budget(sys.argv[1], delta=0.3), 0
for _ in range(20):
    try:
        budget.spend(tally, 0.01)
    except OverspentError:
        continue
    done += 1
print(done)
"""


def test_processes_that_spend_at_once_do_not_overspend(tmp_path: Path) -> None:
    command = [sys.executable, "-c", SPENDER, str(tmp_path / "budget.json")]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    spent = [int(process.communicate()[0]) for process in running]
    assert sum(spent) == 30
