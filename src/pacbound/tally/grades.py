"""How answers were graded: by whom, and on which scale.

A grade becomes a quality from 0 to 1. It counts on its level, or on the one below it where grades
are not declared, so that nothing is claimed that the grades do not say.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pacbound.documents import Json, Reader
from pacbound.errors import CertificateError, InvalidTypeError, InvalidValueError
from pacbound.stats.arguments import real_number
from pacbound.tally.columns import Floats, Integers, Rows
from pacbound.tally.grids import MOST_GRADES

LONGEST_JUDGE: Final = 200

# How far a grade may be from the declared one that it stands for, as a share of a step.
NEAR: Final = 1e-6


@dataclass(frozen=True)
class Graded:
    """How outcomes were graded, as a tally and a certificate keep it.

    A scale that lists its grades, such as 1, 2, 3, 4, 5, declares them: each is a level of its own.
    A scale of two ends declares nothing; a grade then counts on the finer level below it.

    Attributes
    ----------
    by : str or None
        Who graded: a judge, a rubric, people. None if nobody said.
    scale : tuple of float
        The worst and the best grade; or all of them, where they are declared.

    Examples
    --------
    >>> graded = Graded(by="gpt-judge 3", scale=(1.0, 5.0))
    >>> graded.quality(np.array([1.0, 4.0, 5.0]), "grade")
    array([0.  , 0.75, 1.  ])
    """

    by: str | None = None
    scale: tuple[float, ...] = (0.0, 1.0)

    @classmethod
    def of(cls, given: Mapping[str, Any], scale: tuple[float, ...] | None = None) -> Graded:
        """As the arguments of a public function say; on the `scale` if they say nothing of it."""
        said = given.get("quality_scale")
        return cls(judge_name(given.get("graded_by")), scale_of(scale if said is None else said))

    @property
    def declared(self) -> bool:
        """Whether the scale lists all grades."""
        return len(self.scale) > 2

    def steps(self, fine: int) -> int:
        """The number of the best level: that of the last grade, or `fine` if none are declared."""
        return len(self.scale) - 1 if self.declared else fine

    def quality(self, grades: NDArray[Any], name: str, start: int = 0) -> Floats:
        """Grades as qualities from 0 to 1, NaN where one is missing."""
        worst, best = self.scale[0], self.scale[-1]
        found = np.asarray(grades, dtype=np.float64)
        bad = np.flatnonzero((found < worst) | (found > best))
        if bad.size:
            raise self.beyond(f"{name}[{start + bad[0]}] is {found[bad[0]]!s}", bad.size)
        quality = np.asarray((found - worst) / (best - worst))
        if self.declared:
            places = quality * self.steps(0)
            strange = np.flatnonzero(np.abs(places - np.rint(places)) > NEAR)
            if strange.size:
                where = f"{name}[{start + strange[0]}] is {found[strange[0]]!s}"
                raise self.undeclared(where, strange.size)
        return quality

    def levels(self, quality: NDArray[np.float64], fine: int) -> Integers:
        """The level of each quality: its own where grades are declared, else the one below it."""
        places = quality * self.steps(fine)
        return (np.rint(places) if self.declared else np.floor(places)).astype(np.int64)

    def beyond(self, said: str, values: int) -> InvalidValueError:
        """The error for so many grades beyond the scale, after what is said of one of them."""
        return InvalidValueError(
            f"{said} ({values} such values): expected grades from {self.scale[0]:g} to "
            f"{self.scale[-1]:g}. If they go from 1 to 5, pass quality_scale=(1, 5) "
            "(--quality-scale 1,5)."
        )

    def undeclared(self, said: str, values: int) -> InvalidValueError:
        """The error for so many grades that the scale does not list, after one of them."""
        listed = ", ".join(f"{grade:g}" for grade in self.scale[:12])
        return InvalidValueError(
            f"{said} ({values} such values), and quality_scale lists other grades: {listed}. For "
            "grades between them pass the worst and the best alone."
        )


def require_adding(one: Graded | None, other: Graded | None) -> None:
    """Raise unless rows that were graded like this may be added."""
    if one != other:
        raise InvalidValueError(
            f"Outcomes that were graded in different ways do not add: {described(one)} and "
            f"{described(other)}. Count all of them with one judge and one scale."
        )


def described(graded: Graded | None) -> str:
    """How outcomes were graded, for a message."""
    if graded is None:
        return "outcomes that were not graded"
    by = "" if graded.by is None else f" by {graded.by}"
    return f"graded{by} from {graded.scale[0]:g} to {graded.scale[-1]:g}"


def judge_name(by: Any) -> str | None:
    """Who graded, as it is kept; None if nobody said."""
    if by is None:
        return None
    text = by.strip() if isinstance(by, str) else ""
    if not text or len(text) > LONGEST_JUDGE or not text.isprintable():
        raise InvalidValueError(
            f"graded_by={by!r} does not say who graded: expected a text on one line, of at most "
            f"{LONGEST_JUDGE} characters, such as 'two annotators' or 'judge-model 2024-05'."
        )
    return text


def scale_of(scale: Any) -> tuple[float, ...]:
    """The worst and the best grade, or all that are declared: 0 and 1 if nothing is said."""
    if scale is None:
        return 0.0, 1.0
    shape = () if isinstance(scale, (str, bytes)) else np.shape(scale)
    if len(shape) != 1 or not 2 <= len(scale) <= MOST_GRADES:
        raise InvalidTypeError(
            f"quality_scale={scale!r} is not a scale: expected the worst and the best grade, such "
            "as (1, 5); or all that there are, (1, 2, 3, 4, 5)."
        )
    grades = tuple(real_number(grade, "quality_scale", "a grade") for grade in scale)
    if not is_scale(grades):
        raise InvalidValueError(
            f"quality_scale={scale!r} does not rise in equal steps: expected the worst grade first "
            "and the best last, such as (1, 5) or (1, 2, 3, 4, 5). If 1 is the best grade, pass "
            "the grades negated."
        )
    return grades


def is_scale(grades: Sequence[float]) -> bool:
    """Whether grades rise from a worst to a best one in equal steps."""
    if not 2 <= len(grades) <= MOST_GRADES or not -inf < grades[0] < grades[-1] < inf:
        return False
    step = (grades[-1] - grades[0]) / (len(grades) - 1)
    return all(abs(b - a - step) <= NEAR * step for a, b in pairwise(grades))


def graded_to_dict(graded: Graded) -> dict[str, Json]:
    """As documents hold it."""
    return {"by": graded.by, "scale": list(graded.scale)}


def graded_from(part: Reader) -> Graded:
    """What a document says of how outcomes were graded."""
    scale = part.numbers("scale")
    by = None if part.raw("by") is None else part.text("by")
    named = by is None or (0 < len(by) <= LONGEST_JUDGE and by == by.strip() and by.isprintable())
    if not is_scale(scale) or not named:
        raise CertificateError(f"{part.place('scale' if named else 'by')} has an impossible value.")
    return Graded(by, tuple(scale))


def graded_quality(rows: Rows, slot: str, graded: Graded) -> Floats:
    """The quality of each row's answer; no grade may be missing."""
    quality = graded.quality(rows.numbers(slot), rows.name(slot), rows.start)
    missing = np.flatnonzero(np.isnan(quality))
    if missing.size:
        raise not_graded(f"{rows.name(slot)}[{rows.start + missing[0]}] is missing", missing.size)
    return quality


def not_graded(said: str, rows: int) -> InvalidValueError:
    """The error for so many rows without a grade."""
    return InvalidValueError(
        f"{said} ({rows} such rows): every row needs a quality. Grade them; to drop rows because "
        "they were not graded voids the guarantee unless that has nothing to do with how good they "
        "are."
    )


def not_preferred(said: str, rows: int, known: Iterable[str]) -> InvalidValueError:
    """The error for so many rows whose preferred model is not one of those that are known."""
    listed = ", ".join(map(repr, known))
    return InvalidValueError(f"{said} ({rows} such rows): expected one of {listed}, or nothing.")
