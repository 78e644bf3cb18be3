"""What may keep a row of a frame from having an outcome, and what is said about it.

A flaw is an expression that is 1 for the rows that have it, so that they are counted in the same
pass as the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce

import narwhals as nw

from pacbound.errors import InvalidTypeError, InvalidValueError, PacboundError
from pacbound.tally.frames.classes import Classes
from pacbound.tally.frames.columns import Frame, one_where
from pacbound.tally.frames.counts import extreme


@dataclass(frozen=True)
class Flaw:
    """What may be wrong with a row, as 1 and 0, and the error for a number of such rows."""

    flag: nw.Expr
    error: Callable[[int], PacboundError]


def missing_class(column: Classes, remedy: str) -> Flaw:
    """No class where one is needed."""
    return Flaw(
        column.missing,
        lambda rows: InvalidValueError(
            f"{column.name} has {rows} missing values (null or NaN): {remedy}"
        ),
    )


def no_class(column: Classes, frame: Frame) -> Flaw:
    """A value that names no class."""
    odd = column.missing if column.odd is None else column.odd

    def error(rows: int) -> PacboundError:
        if not column.comparable:
            return InvalidTypeError(
                f"{column.name} holds {rows} values of type {column.dtype}, which no prediction is "
                "equal to: name classes one way."
            )
        example = extreme(frame, column.value, odd == 1, greatest=True)
        return InvalidValueError(
            f"{column.name} holds {example} ({rows} such values), which is no class: expected "
            "whole numbers below 2**53, or integers, or names."
        )

    return Flaw(odd, error)


def no_label(label: Classes, agree: Sequence[nw.Expr]) -> Flaw:
    """No label where predictions differ."""
    differ = reduce(nw.Expr.__or__, (one_where(same) == 0 for same in agree))
    return Flaw(
        nw.when(differ).then(label.missing).otherwise(nw.lit(0)),
        lambda rows: InvalidValueError(
            f"{label.name}: {rows} rows have no label although predictions differ: label them. "
            "Dropping them, or labelling only some, would void the guarantee."
        ),
    )
