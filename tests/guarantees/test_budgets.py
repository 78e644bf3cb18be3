"""A budget keeps its promise: of the claims that were spent from it, some is false with probability
at most its delta, however many models were tried on the same rows.

Each law gives the models true rates that their claims just miss, so that each claim is false about
as often as its own delta allows. Of twenty claims one is false in most samples: the budget has to
refuse all but two of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from pacbound import Budget, calibrate, certify_abstention
from pacbound.claims.certificate import Certificate
from pacbound.errors import OverspentError

RUNS = 40
MODELS = 20
ROWS = 300
DELTA = 0.1
EACH = 0.05

XI = 0.0101
"""No error in 300 rows certifies this error rate at 0.05."""
TOO_HIGH = 0.0102

Claims = Iterator[tuple[Certificate, bool]]
"""Certificates in the order in which they are spent, each with whether its claim is false."""


def answers_of(rng: np.random.Generator) -> NDArray[np.bool_]:
    """Whether each model is right in each row; the first always is, and all others err too
    often.
    """
    right = rng.random((ROWS, MODELS)) >= TOO_HIGH
    right[:, 0] = True
    return right


def about_column(path: Path, model: int) -> tuple[Certificate, bool]:
    made = certify_abstention("score", f"model_{model}", data=str(path), xi=XI, delta=EACH)
    return made, made.certified and model > 0


def in_columns_of_one_file(rng: np.random.Generator, path: Path) -> Claims:
    columns = {f"model_{model}": right for model, right in enumerate(answers_of(rng).T)}
    np.savez(path, score=np.ones(ROWS), **columns)
    yield from (about_column(path, model) for model in range(MODELS))


def in_columns_that_are_added_to_a_file(rng: np.random.Generator, path: Path) -> Claims:
    columns = {}
    for model, right in enumerate(answers_of(rng).T):
        columns[f"model_{model}"] = right
        np.savez(path, score=np.ones(ROWS), **columns)
        yield about_column(path, model)


def as_arrays(rng: np.random.Generator, path: Path) -> Claims:
    for _ in range(MODELS):
        score, right = rng.random(ROWS), rng.random(ROWS) < 0.5
        made = calibrate(score, right, delta=EACH, n_bins=1, side="lower")
        yield made, bool(made.bins.lower[0] > 0.5)


def as_arrays_that_are_equal_where_models_agree(rng: np.random.Generator, path: Path) -> Claims:
    score = rng.random(ROWS)
    for model, right in enumerate(answers_of(rng).T):
        made = certify_abstention(score, right, xi=XI, delta=EACH, first_threshold=0.0)
        yield made, made.certified and model > 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "models",
    [
        in_columns_of_one_file,
        in_columns_that_are_added_to_a_file,
        as_arrays,
        as_arrays_that_are_equal_where_models_agree,
    ],
)
def test_twenty_models_on_the_same_rows_make_a_false_claim_as_rarely_as_the_budget_says(
    tmp_path: Path, models: Callable[[np.random.Generator, Path], Claims]
) -> None:
    false = 0
    for run in range(RUNS):
        budget = Budget(tmp_path / f"{run}.json", delta=DELTA)
        inside = []
        for made, is_false in models(np.random.default_rng(run), tmp_path / "held_out.npz"):
            with suppress(OverspentError):
                budget.spend(made)
                inside.append(is_false)
        assert len(inside) == DELTA / EACH
        false += any(inside)
    assert binom.sf(false - 1, RUNS, DELTA) > 0.001, f"a false claim in {false} of {RUNS} runs"
