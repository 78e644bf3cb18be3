"""Which rows of a cascade are worth a label next, and what a later look may not change.

Nothing is remembered: the rows that are wanted follow from the table with the labels that it has.
That all looks at all sets of labels hold together is Theorem L of docs/proofs.md. It needs that all
looks are about the same rows and the same question, and that a label is the row's own: these are
what an earlier certificate is compared for.

A row is worth its label if it exits early with an answer that differs from the slow model's, at a
step that could still pass: all others change no test that decides. With two models those are the
differing rows down to the end of the walk with every open row counted as a gain. They are wanted
from the top down, because a label in a high cell counts at every step below it. With more models
they are the rows that count along the path that would end cheapest if every open row were a gain
(for xi = 0, only at that end). If none of them is open, that path ends there already, and no other
could end cheaper: so there is a row to ask for until no label can change the thresholds.

Which rows are asked for is a matter of cost alone: the claim holds for every set of labels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pacbound.claims.cascade.certificate import unit_costs
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.procedures.cascade import (
    Asked,
    CascadeDecision,
    GroupCounts,
    decide,
    paths_of,
    settled,
    walks_from_counts,
)
from pacbound.procedures.joint_walk import JointWalk, exits_along
from pacbound.tally.questions.cascade import (
    CASCADE,
    FINE,
    LABELLED_OUTCOMES,
    ONLY_FAST,
    ONLY_SLOW,
    CascadeQuestion,
    are_graded,
    at_best,
    at_worst,
    with_unlabelled,
)
from pacbound.tally.table import merge_cells

if TYPE_CHECKING:
    from pacbound.tally.count import Kept

Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]


def counted(given: Mapping[str, Any], data: Any) -> tuple[CascadeQuestion, Kept]:
    """All rows as they are judged, in order; groups are refused."""
    if given.get("groups") is not None:
        raise InvalidTypeError(
            "rows_to_label takes no groups: a label may matter to one group and not to another. "
            "Leave groups out, and label what matters to all rows together."
        )
    # Loaded here, because whoever verifies a certificate counts nothing.
    from pacbound.tally.count import Kept, count_rows  # noqa: PLC0415

    kept = Kept()
    passed = {name: value for name, value in given.items() if value is not None}
    if not isinstance(question := count_rows(CASCADE, passed, data, kept)[0], CascadeQuestion):
        raise InvalidTypeError(f"{question.kind} rows have no labels to ask for.")
    return question, kept


def open_rows(
    rows: tuple[CascadeQuestion, Kept],
    wishes: Mapping[str, Any],
    *,
    declined: Sequence[int] | Integers = (),
    doubt: Any = None,
) -> Integers:
    """The rows that are worth a label, the most wanted first."""
    question, kept = rows
    cells = np.concatenate([one.cells for one in kept.judged])
    outcomes = np.concatenate([one.outcomes for one in kept.judged])
    places = np.arange(len(cells)) if kept.places is None else kept.places
    surer = np.zeros(len(cells)) if doubt is None else _doubts(doubt, places)
    gone = np.isin(places, [*declined, *kept.declined.tolist()])
    open_, hoped = _hopes(outcomes, question, gone)
    asked = Asked(wishes["xi"], wishes["delta"], wishes["costs"] or unit_costs(question.exits))
    # A number for each joint cell, since numbers are quicker to sort than rows of a table.
    _, first, at = np.unique(
        np.ravel_multi_index(tuple(cells.T + 1), (question.grid.n_cells + 2,) * question.exits),
        return_index=True,
        return_inverse=True,
    )
    counts = (_counts(at, each, question) for each in (outcomes, hoped))
    now, best = (_decided(cells[first], each, asked) for each in counts)
    if best.cells is None or settled(now, best):
        return np.zeros(0, dtype=np.int64)
    first = _first_steps(cells, open_, best, question, xi=wishes["xi"])
    found = np.flatnonzero(first >= 0)
    return places[found[np.lexsort((found, surer[found], first[found]))]]


def _doubts(slow_confidence: Any, places: Integers) -> NDArray[np.float64]:
    given = np.asarray(slow_confidence, dtype=np.float64)
    if given.ndim != 1 or (places.size and len(given) <= places[-1]) or np.isnan(given).any():
        raise InvalidValueError(
            f"slow_confidence of shape {given.shape} is not one number for each row: expected the "
            "slow model's confidence in all rows, none of them missing."
        )
    return np.asarray(given[places])


def _hopes(outcomes: Integers, question: CascadeQuestion, gone: Mask) -> tuple[Mask, Integers]:
    """The exits of each row at which a label could make a gain of a loss, (exits, rows), and the
    outcome that each row could have at best; a row that is `gone` is lost for good.
    """
    exits = question.exits
    if question.takes_losses:
        open_ = (outcomes > 2 * FINE).T & ~gone
        return open_, np.where(gone[:, None], at_worst(outcomes), at_best(outcomes))
    base = len(LABELLED_OUTCOMES)
    # Rows without a label come after those with one, by which of their exits differ.
    differ = np.maximum(outcomes - base**exits + 1, 0)
    open_ = np.stack([(differ >> (exits - 1 - m)) & 1 == 1 for m in range(exits)])
    gains, losses = (
        _joint(np.where(open_, outcome, 0), base) for outcome in (ONLY_FAST, ONLY_SLOW)
    )
    hoped = np.where(differ > 0, np.where(gone, losses, gains), outcomes)
    return open_ & ~gone, hoped


def _joint(places: Integers, base: int) -> Integers:
    joint = np.zeros(places.shape[1], dtype=np.int64)
    for single in places:
        joint = joint * base + single
    return joint


def _counts(cells: Integers, outcomes: Integers, question: CascadeQuestion) -> Integers:
    """What is counted of each cell."""
    if question.takes_losses:
        return merge_cells(cells[:, None], question.loss_sums(outcomes))[1]
    width = len(question.outcomes)
    found = np.bincount(cells * width + outcomes, minlength=(int(cells.max()) + 1) * width)
    return found.reshape(-1, width).astype(np.int64)


def _decided(cells: Integers, counts: Integers, asked: Asked) -> CascadeDecision:
    walks = walks_from_counts(cells, with_unlabelled(counts, cells.shape[1]))
    rows = counts[:, 0] if are_graded(counts, cells.shape[1]) else counts
    return decide([GroupCounts(int(rows.sum()), walks)], asked)[0]


def _first_steps(
    cells: Integers, open_: Mask, best: CascadeDecision, question: CascadeQuestion, *, xi: float
) -> Integers:
    """The step of the path with the best possible end at which each row begins to count, -1 for one
    that counts at none of its steps down to that end.
    """
    path = paths_of(question.exits)[best.chosen].cells
    end = np.flatnonzero((path >= np.array(best.cells)[:, None]).all(axis=0))[-1]
    first, until = exits_along(path, cells)
    counts = open_ & (first < until) & (first <= end)
    if xi == 0:
        # Each declared threshold is tested by itself, whatever came before it.
        counts &= until > end
    begins = np.where(counts, first, path.shape[1]).min(axis=0)
    return np.where(counts.any(axis=0), begins, -1)


# ---- what stands between two looks

_ASKED = ("xi", "delta", "costs", "claim", "n")


def changed_since(before: Mapping[str, Any], now: Mapping[str, Any]) -> str | None:
    """Why the values of a certificate cannot be a later look at the rows of an earlier one; None if
    they can. More labels only turn what counts as lost into a loss for good, a gain or neither.
    """
    for name in _ASKED:
        if before.get(name) != now.get(name):
            return f"{name} was {_said(before.get(name))} and is {_said(now.get(name))}"
    if [table["group"] for table in before["tables"]] != [t["group"] for t in now["tables"]]:
        return "the groups are others"
    for was, is_ in zip(before["tables"], now["tables"], strict=True):
        if len(was["walks"]) != len(is_["walks"]):
            return "the number of models is another"
        for earlier, later in zip(was["walks"], is_["walks"], strict=True):
            wrong = _changed_walk(earlier, later, graded=now["graded"] is not None)
            if wrong is not None:
                return wrong
    return None


def _changed_walk(was: JointWalk, now: JointWalk, *, graded: bool) -> str | None:
    """The same of the steps that both walks hold."""
    steps = {tuple(step): place for place, step in enumerate(now.cells.T.tolist())}
    both = [
        (place, steps[tuple(step)])
        for place, step in enumerate(was.cells.T.tolist())
        if tuple(step) in steps
    ]
    one, other = was.take([i for i, _ in both]), now.take([j for _, j in both])
    if (one.exits != other.exits).any():
        return "other rows leave at a threshold"
    if (one.only_slow > other.only_slow).any() or (one.only_fast > other.only_fast).any():
        return "a label was changed or taken away"
    # A grade may make a gain of what was no loss.
    gained = 0 if graded else 1
    if (one.lost + gained * one.only_fast < other.lost + gained * other.only_fast).any():
        return "a label was changed"
    return None


def _said(value: Any) -> str:
    return "not given" if value is None else str(value)
