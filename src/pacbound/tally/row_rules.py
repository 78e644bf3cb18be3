"""What a certificate adds to a row: columns whose values depend on scores by comparisons alone.

A rule is plain data, so that it means the same wherever it is followed: here, on arrays, and inside
a dataframe engine (`pacbound.tally.frames.rule_columns`). Nothing is computed in either place,
values are only chosen, and scores are compared in float64, so all engines agree to the last bit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.sources.values import MISSING, Values
from pacbound.tally.classes import ClassRule, Vocabulary, class_of
from pacbound.tally.grids import AtomBins, Bins

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

EXIT = "pac_exit"
# The model that answers each row, counted from 0, and its answer.
PREDICTION = "pac_prediction"


@dataclass(frozen=True)
class Limit:
    """A number that a score may be beyond: at it, too, if it is `closed`."""

    value: float
    closed: bool = False


@dataclass(frozen=True)
class RowSteps:
    """The values of each added column by how many of the rising `limits` a score is beyond."""

    limits: tuple[Limit, ...]
    values: Mapping[str, tuple[float | int, ...]]

    @classmethod
    def of_bins(cls, grid: Bins, values: Mapping[str, NDArray[Any]]) -> RowSteps:
        """Values for the bins of a grid, (edge, next edge] each, or an edge by itself."""
        edges = grid.edges.tolist()
        limits = (
            [Limit(edge, closed) for edge in edges for closed in (True, False)]
            if isinstance(grid, AtomBins)
            else [Limit(edge) for edge in edges[1:-1]]
        )
        return cls(tuple(limits), {name: tuple(row.tolist()) for name, row in values.items()})

    @classmethod
    def together(cls, named: Mapping[str, RowSteps]) -> RowSteps:
        """The columns of several rules of one score, each with the name of its rule behind it."""
        limits = sorted(
            {limit for one in named.values() for limit in one.limits},
            key=lambda limit: (limit.value, not limit.closed),
        )
        beyond = [limits[:place] for place in range(len(limits) + 1)]
        values = {
            f"{column}_{name}": tuple(
                row[sum(one in met for one in steps.limits)] for met in beyond
            )
            for name, steps in named.items()
            for column, row in steps.values.items()
        }
        return cls(tuple(limits), values)

    def of_arrays(self, scores: Sequence[Floats]) -> dict[str, NDArray[Any]]:
        """The values of some rows, whose scores were checked."""
        (column,) = scores
        at = np.array([limit.value for limit in self.limits if limit.closed])
        above = np.array([limit.value for limit in self.limits if not limit.closed])
        place = np.searchsorted(at, column, side="right") + np.searchsorted(above, column)
        return {name: np.array(row)[place] for name, row in self.values.items()}


@dataclass(frozen=True)
class Exits:
    """The first of several scores to reach its threshold; if none does, how many there are."""

    thresholds: tuple[float, ...]

    @property
    def values(self) -> Mapping[str, tuple[int, ...]]:
        """What the one added column may hold."""
        return {EXIT: tuple(range(len(self.thresholds) + 1))}

    def of_arrays(self, scores: Sequence[Floats]) -> dict[str, NDArray[Any]]:
        """The exits of some rows, whose scores were checked."""
        exits = np.full(len(scores[0]), len(self.thresholds), dtype=np.int64)
        for m in reversed(range(len(self.thresholds))):
            exits[scores[m] >= self.thresholds[m]] = m
        return {EXIT: exits}


@dataclass(frozen=True)
class RowRule:
    """What is added to a row, by its group where there are groups; `instead` is what a row of any
    other group gets.
    """

    scores: int
    whole: RowSteps | Exits | None = None
    groups: Mapping[str, RowSteps | Exits] | None = None
    instead: RowSteps | Exits | None = None
    # What the scores are called, in certificates and as a column.
    role: str = "confidence"
    # What rows are that get a 1, for those who count them: "answered".
    ones: str | None = None
    # What becomes of rows of other groups, in words: they "are not answered".
    others: str = ""

    @property
    def added(self) -> tuple[str, ...]:
        """The names of the columns."""
        part = self.whole if self.groups is None else self.instead
        return () if part is None else tuple(part.values)

    def of_arrays(
        self, scores: Sequence[Floats], groups: NDArray[np.str_] | None = None
    ) -> dict[str, NDArray[Any]]:
        """The columns of some rows, whose scores were checked."""
        if self.groups is None or groups is None or self.instead is None:
            if self.whole is None:
                raise InvalidTypeError("The rule goes by groups: pass the group of each row.")
            return self.whole.of_arrays(scores)
        found = self.instead.of_arrays(scores)
        names, codes = np.unique(groups, return_inverse=True)
        # The rows of each group lie together in this order.
        order = np.argsort(codes, kind="stable")
        ends = np.searchsorted(codes[order], np.arange(len(names) + 1))
        for place, name in enumerate(names.tolist()):
            if name in self.groups:
                rows = order[ends[place] : ends[place + 1]]
                here = self.groups[name].of_arrays([column[rows] for column in scores])
                for column, values in here.items():
                    found[column][rows] = values
        return found

    def strange(self, groups: NDArray[np.str_]) -> NDArray[np.bool_]:
        """Which rows are of a group that the rule does not know."""
        return ~np.isin(groups, list(self.groups or ()))


def answers_of(
    columns: Sequence[Values], exits: Integers, names: Sequence[str], start: int = 0
) -> NDArray[Any]:
    """What the answering model predicted for each row, as it stands in its column; `names` are
    those of the columns, for messages.
    """
    answers = np.empty(len(exits), dtype=object)
    for model, (values, name) in enumerate(zip(columns, names, strict=True)):
        rows = np.flatnonzero(exits == model)
        # What is not a class raises here, with its row.
        codes = Vocabulary(ClassRule(as_written=True)).codes(values, name, start)
        missing = rows[codes[rows] == MISSING]
        if missing.size:
            raise InvalidValueError(
                f"{name}[{start + missing[0]}] is missing ({missing.size} such values), and "
                "this model answers there."
            )
        written = [
            value if isinstance(value, str) else class_of(value) for value in values.distinct
        ]
        answers[rows] = Values(written, values.places[rows]).column
    return _of_one_type(answers, names)


def _of_one_type(answers: NDArray[Any], names: Sequence[str]) -> NDArray[Any]:
    found = answers.tolist()
    if all(isinstance(value, str) for value in found):
        return np.array(found, dtype=np.str_)
    if any(isinstance(value, str) for value in found):
        raise InvalidTypeError(
            f"{', '.join(names)} hold numbers and text, which are never equal: name classes one "
            "way."
        )
    least, most = min(found, default=0), max(found, default=0)
    if least < -(2**63) or most >= 2**64 or (least < 0 and most >= 2**63):
        raise InvalidTypeError(
            f"{', '.join(names)} hold {least} and {most}, and no type holds both: write all "
            "predictions with one type."
        )
    return np.array(found, dtype=np.uint64 if most >= 2**63 else np.int64)
