"""Prediction sets: how often does the probability of the true label stay below a threshold?

A row brings a probability for each label and its true label: the name of its column, or its place,
counted from 0. Numbers are places only if no column has a number for its name. What is counted is
the probability of the true label. Where there is none (the label is missing or has no column, or
its probability is NaN) the row is in the cell -1: it is missed at every threshold, so nothing is
lost by labelling some rows only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.sources.values import MISSING
from pacbound.tally.classes import (
    Class,
    Evidence,
    NotAClassError,
    Vocabulary,
    class_of_text,
)
from pacbound.tally.columns import (
    Floats,
    Integers,
    Rows,
    Slot,
    as_array,
    checked_scores,
    numeric,
    same_length,
)
from pacbound.tally.grids import DyadicGrid
from pacbound.tally.questions.question import Judged, Question, RowColumn

if TYPE_CHECKING:
    from pacbound.tally.frames.engine_rows import EngineRows


@dataclass(frozen=True, kw_only=True)
class LabelScores(Question):
    """Rows per fine cell of the probability of their true label.

    Examples
    --------
    >>> question = LABEL_SCORES.of_columns(probability=["cat", "dog"], label="animal")
    >>> question.names, question.outcomes
    (('cat', 'dog'), ('labelled',))
    """

    names: tuple[str, ...] = ()

    def _named(self, named: Mapping[str, Any]) -> Self:
        """The question about a table: a column for each label, which are named by the columns."""
        columns = named["probability"]
        names = [columns] if isinstance(columns, str) else list(columns)
        _require_several(len(names))
        _require_told_apart(names, named["label"])
        return replace(self, names=tuple(names), slots=_slots(names, named["label"]))

    def _passed(self, passed: Mapping[str, Any]) -> tuple[Self, dict[str, Any]]:
        """The question about (n, L) probabilities and (n,) labels, which are places, or names where
        the probabilities are a frame.
        """
        matrix = numeric(as_array(passed["probability"], "probability"), "probability")
        if matrix.ndim != 2:
            raise InvalidValueError(
                f"probability has shape {matrix.shape}: expected (rows, labels), a column for each "
                "label."
            )
        _require_several(matrix.shape[1])
        slots = _slots([f"probability[:, {k}]" for k in range(matrix.shape[1])], "label")
        same_length(probability=matrix, label=np.asarray(passed["label"]))
        arrays = {**dict(zip(slots, matrix.T, strict=False)), "label": passed["label"]}
        names = _names_of(passed["probability"], matrix.shape[1])
        return replace(self, names=names, slots=slots), arrays

    def judge(
        self,
        rows: Rows,
        vocabulary: Vocabulary,
        evidence: Evidence,
    ) -> Judged:
        """The cell of the probability of each row's label."""
        codes = rows.classes("label", vocabulary)
        # Not all that the vocabulary has: rows that were not drawn brought classes, too.
        self._see(vocabulary.classes(np.unique(codes).tolist()), evidence)
        places = self._places(vocabulary.names())
        scores = self._of_label(rows, np.where(codes == MISSING, MISSING, places[codes]))
        cells = np.where(scores == -np.inf, -1, self.grid.cells(np.maximum(scores, 0.0)))
        counted = np.zeros(len(rows), dtype=np.int64)
        judged = Judged(len(rows), cells[:, None], counted, told=(scores, codes + 1))
        return self._in_groups(rows, judged)

    def lacks_labels(self, cells: Integers, counts: Integers) -> bool:  # noqa: ARG002
        """Whether a row counts as missed because it has no label."""
        return bool((cells[:, -1] < 0).any())

    def judge_inside(self, rows: EngineRows, evidence: Evidence) -> Judged:
        """The same inside an engine, which looks at the labels first."""
        for slot in self.slots:
            if slot.startswith(_PROBABILITY):
                rows.number(slot)
        label = rows.answers(["label"], None, Evidence())
        (column,) = label.columns
        classes = sorted(label.predicted(column), key=lambda each: (isinstance(each, str), each))
        self._see(classes, evidence)
        chosen = {
            each: f"{_PROBABILITY}{place}"
            for each, place in zip(classes, self._places(classes).tolist(), strict=False)
            if place != MISSING
        }
        key = rows.label_key(label, chosen, self.grid)
        counts = rows.count({"cell": key, **self._group_keys(rows)})
        cells = rows.label_cells(counts, "cell", label, chosen, self.grid)
        outcomes = np.zeros(len(cells), dtype=np.int64)
        return self._counted_inside(rows, counts, cells[:, None], outcomes)

    def _places(self, classes: Sequence[Class]) -> Integers:
        """The column of each class that was met, -1 for none; and for a missing one at the end."""
        width = sum(key.startswith(_PROBABILITY) for key in self.slots)
        named = {name: place for place, name in enumerate(self.names)}
        numbers = _numbers_of(self.names) or {place: place for place in range(width)}
        found = [
            named.get(name, MISSING) if isinstance(name, str) else numbers.get(name, MISSING)
            for name in classes
        ]
        return np.array([*found, MISSING], dtype=np.int64)

    def _see(self, classes: Iterable[Class], evidence: Evidence) -> None:
        """Let `evidence` take in the labels, none of which may be beyond the places of columns."""
        seen = set(classes)
        width = sum(key.startswith(_PROBABILITY) for key in self.slots)
        beyond = [name for name in seen if isinstance(name, int) and name >= width]
        if beyond and not _numbers_of(self.names):
            raise InvalidValueError(
                f"label holds {max(beyond)}, and the places of {width} columns are 0 to "
                f"{width - 1}: subtract 1 if labels count from 1. If it stands for a label "
                f"that has no column, pass missing={max(beyond)}: such rows count as missed."
            )
        evidence.labelled |= seen

    def require_possible(self, evidence: Evidence) -> None:
        """Refuse labels of which none has a column."""
        classes = sorted(evidence.labelled, key=lambda each: (isinstance(each, str), each))
        width = sum(key.startswith(_PROBABILITY) for key in self.slots)
        if classes and (self._places(classes)[:-1] == MISSING).all():
            listed = ", ".join(map(repr, classes[:3]))
            known = ", ".join(self.names[:3]) or f"0 to {width - 1}"
            raise InvalidValueError(
                f"label holds {listed}, and no column is for these: expected the names of the "
                f"columns ({known}), or their places from 0."
            )

    def _of_label(self, rows: Rows, places: Integers) -> Floats:
        scores = np.full(len(rows), -np.inf)
        for key in self.slots:
            if key.startswith(_PROBABILITY):
                here = np.flatnonzero(places == int(key.removeprefix(_PROBABILITY)))
                column = np.asarray(rows.numbers(key), dtype=np.float64)[here]
                known = ~np.isnan(column)
                scores[here[known]] = checked_scores(column[known], rows.name(key))
        return scores


_PROBABILITY = "probability "


def _slots(names: Sequence[str], label: str) -> dict[str, Slot]:
    slots = {f"{_PROBABILITY}{k}": Slot("number or nothing", name) for k, name in enumerate(names)}
    return {**slots, "label": Slot("class", label)}


def _numbers_of(names: Sequence[str]) -> dict[int, int]:
    """The places of the columns that have a number for their name, by this number."""
    found: dict[int, int] = {}
    for place, name in enumerate(names):
        with suppress(NotAClassError):
            read = class_of_text(name)
            if isinstance(read, int):
                if read in found:
                    raise InvalidValueError(
                        f"probability names {names[found[read]]!r} and {name!r}, which are both "
                        f"the label {read}: expected a column for each label."
                    )
                found[read] = place
    return found


def _names_of(probability: Any, labels: int) -> tuple[str, ...]:
    """The names of the columns of a frame; none if they only count from 0, or it is not a frame."""
    columns = getattr(probability, "columns", None)
    names = () if columns is None else tuple(columns)
    are_names = all(isinstance(name, (str, int, np.integer)) for name in names)
    if len(names) != labels or not are_names or names == tuple(range(labels)):
        return ()
    _require_told_apart([str(name) for name in names], None)
    return tuple(map(str, names))


def _require_told_apart(names: Sequence[str], label: str | None) -> None:
    """Refuse columns of which two are for one label, or one is the label itself."""
    if label in names:
        raise InvalidValueError(
            f"label and one column of probability are both {label!r}: name the column of the true "
            "labels."
        )
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InvalidValueError(
            f"probability names {twice!r} twice: expected a column for each label."
        )


def _require_several(labels: int) -> None:
    if labels < 2:
        raise InvalidTypeError(
            f"probability has {labels} column: expected one for each label, at least two. For a "
            "sigmoid pass [1 - p, p]."
        )


LABEL_SCORES = LabelScores(
    kind="sets",
    what="A table of probabilities",
    columns=(
        RowColumn(
            "probability",
            "The probability of each label, one column per label.",
            "number",
            several=True,
        ),
        RowColumn(
            "label", "The true label of each row: its column's name, or its place from 0.", "class"
        ),
    ),
    outcomes=("labelled",),
    labelled_by=("label",),
    labels_may_be_missing=True,
    lowest_cell=-1,
    # Networks that are sure give a true label 10^-5 or less where they err: cells of 2^-16 are too
    # wide for that. Below 2^-5 they are narrower, by the size of the score, 90,000 in all.
    grid=DyadicGrid(30, digits=12),
)
