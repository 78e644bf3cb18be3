"""Counting inside any dataframe engine: pandas, Polars (eager and lazy), PyArrow, DuckDB relations,
PySpark.

The rows stay where they are, and are looked at once: they are checked, put into cells and counted
in the same pass, and only counts come back. The integers are those that the arrays would give. A
frame's rows have no order and no fingerprint, so an error names the column, the number of bad
values and an example, and a frame that is counted twice goes unnoticed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pacbound.errors import InvalidValueError, MissingDependencyError

try:
    import narwhals as _narwhals  # noqa: F401, RUF100
except ImportError:
    raise MissingDependencyError.for_extra("narwhals", "frames", "Counting dataframes") from None

from pacbound.tally.arrays import CORRECT, FINE, SAFE, bins_for
from pacbound.tally.exits import exit_layout
from pacbound.tally.frames.cells import cell_key, cells_of, check_scores
from pacbound.tally.frames.columns import number, open_frame
from pacbound.tally.frames.counts import counted
from pacbound.tally.frames.groups import GROUP, group_name, group_places
from pacbound.tally.frames.outcomes import OUTCOME, Answers, Flag, Outcome
from pacbound.tally.frames.rollouts import DANGER, check_dangers, danger_key
from pacbound.tally.grids import Bins, DyadicGrid
from pacbound.tally.sparse import tabulated
from pacbound.tally.tally import Kind, Tally
from pacbound.tally.uses import models_columns, outcome_columns, use_of

_SCORE = "score"


def count_frame(frame: Any, *, kind: str | None = None, **columns: Any) -> Tally:
    """Count a frame for the use that the named columns belong to."""
    uses: dict[str, Callable[..., Tally]] = {
        "calibration": count_calibration_frame,
        "abstention": count_abstention_frame,
        "cascade": count_cascade_frame,
        "shield": count_shield_frame,
    }
    return uses[use_of(columns, kind)](frame, **columns)


def count_calibration_frame(
    frame: Any,
    *,
    confidence: str,
    correct: str | None = None,
    prediction: str | None = None,
    label: str | None = None,
    group: str | None = None,
    n_bins: int = 20,
    edges: Any = None,
) -> Tally:
    """Right and wrong predictions per bin of confidence, and per group where a column of groups is
    named.
    """
    if isinstance(edges, str):
        raise InvalidValueError(
            f"edges={edges!r} needs all rows at once: load them, or take edges from other data."
        )
    grid = bins_for(n_bins=n_bins, edges=edges, scores=None)
    return _count_confidence(
        "calibration", grid, frame, confidence, outcome_columns(correct, prediction, label), group
    )


def count_abstention_frame(
    frame: Any,
    *,
    confidence: str,
    correct: str | None = None,
    prediction: str | None = None,
    label: str | None = None,
    group: str | None = None,
) -> Tally:
    """Right and wrong predictions per fine cell of confidence."""
    return _count_confidence(
        "abstention", FINE, frame, confidence, outcome_columns(correct, prediction, label), group
    )


def count_cascade_frame(
    frame: Any, *, confidences: Sequence[str], predictions: Sequence[str], label: str
) -> Tally:
    """What early exits' answers do against the slow model's; columns in the order of the models.

    The label may be missing where all predictions agree.
    """
    exits, answers = models_columns(confidences, predictions)
    grid, names = exit_layout(len(exits))
    table = open_frame(frame, [*exits, *answers, label])
    outcome, scores = (
        Answers(table, answers, label),
        {f"{_SCORE}{m}": number(table, name) for m, name in enumerate(exits)},
    )
    counts = counted(
        table,
        {**{key: cell_key(score, grid) for key, score in scores.items()}, OUTCOME: outcome.code},
    )
    codes = outcome.checked(counts)
    for (key, score), name in zip(scores.items(), exits, strict=True):
        check_scores(counts, key, table, score, name)
    cells = np.column_stack([cells_of(counts.numbers(key), grid) for key in scores])
    return Tally(
        "cascade",
        grid,
        names,
        int(counts.rows.sum()),
        *tabulated(cells, codes, counts.rows, len(names)),
    )


def count_shield_frame(
    frame: Any, *, score: str, unsafe: str, final_score: str | None = None
) -> Tally:
    """Safe and unsafe rollouts per fine cell of the running maximum of the danger; -inf is a
    rollout lost at its start.

    With `final_score`, unsafe rollouts are counted by that column instead; it may be empty for safe
    ones.
    """
    table = open_frame(frame, [score, unsafe, *([] if final_score is None else [final_score])])
    flag = Flag(table, unsafe)
    counts = counted(
        table, {DANGER: danger_key(table, score, flag, final_score), OUTCOME: flag.code}
    )
    codes = flag.checked(counts)
    check_dangers(counts, table, score, flag, final_score)
    cells = cells_of(counts.numbers(DANGER), FINE)[:, None]
    return Tally(
        "shield", FINE, SAFE, int(counts.rows.sum()), *tabulated(cells, codes, counts.rows, 2)
    )


def _count_confidence(
    kind: Kind,
    grid: Bins | DyadicGrid,
    frame: Any,
    confidence: str,
    outcome_columns: list[str],
    group: str | None,
) -> Tally:
    table = open_frame(frame, [confidence, *outcome_columns, *([] if group is None else [group])])
    score = number(table, confidence)
    outcome: Outcome = Flag(table, outcome_columns[0])
    if len(outcome_columns) == 2:
        outcome = Answers(table, outcome_columns[:1], outcome_columns[1])
    groups = {} if group is None else {GROUP: group_name(table, group)}
    counts = counted(table, {_SCORE: cell_key(score, grid), OUTCOME: outcome.code, **groups})
    codes = outcome.checked(counts)
    check_scores(counts, _SCORE, table, score, confidence)
    cells, rows = cells_of(counts.numbers(_SCORE), grid), int(counts.rows.sum())
    if group is None:
        return Tally(kind, grid, CORRECT, rows, *tabulated(cells[:, None], codes, counts.rows, 2))
    names, places = group_places(counts, group)
    seen = tabulated(np.column_stack([places, cells]), codes, counts.rows, 2)
    return Tally(kind, grid, CORRECT, rows, *seen, "groups", names)
