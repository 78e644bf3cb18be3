"""A column of classes in the place of truth values: one class is what counts, all others are not.

Labels are mostly names: "ill" and "healthy". `positive_class` says which of them is meant, by the
one rule of equality (`pacbound.tally.classes`). A class that no row has is refused, because a
misspelt one would make every row negative; where all classes are listed, it may be absent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.sources.values import MISSING, Values
from pacbound.tally.classes import Class, ClassRule, Vocabulary, both_readings, some
from pacbound.tally.columns import Slot
from pacbound.tally.row_options import POSITIVE


@dataclass(frozen=True)
class PositiveClass:
    """The class that counts, and those that were seen.

    Examples
    --------
    >>> from pacbound.sources.values import values_of
    >>> ill = PositiveClass.of("ill", ClassRule())
    >>> ill.flags(values_of(["ill", "healthy"], "y"), "y")
    array([ True, False])
    """

    given: Any
    meant: frozenset[Class]
    rule: ClassRule
    seen: set[Class] = field(default_factory=set, compare=False)

    @classmethod
    def of(cls, given: Any, rule: ClassRule) -> PositiveClass:
        """The class that a user names."""
        if not isinstance(given, (str, int, float, np.generic)) or given == "":
            raise InvalidTypeError(
                f"positive_class={given!r} is not a class: expected the one that counts, as the "
                "column spells it, for example 'ill'."
            )
        return cls(given, both_readings([given], POSITIVE), rule)

    def flags(self, values: Values, name: str, start: int = 0) -> NDArray[np.bool_]:
        """Whether each row is of this class; a missing class raises."""
        vocabulary = Vocabulary(self.rule)
        codes = vocabulary.codes(values, name, start)
        missing = np.flatnonzero(codes == MISSING)
        if missing.size:
            raise InvalidValueError(
                f"{name}[{start + missing[0]}] is missing ({missing.size} such rows): every row "
                "needs its class. To drop rows because their class is missing voids the guarantee, "
                "unless that has nothing to do with the class."
            )
        self.seen.update(vocabulary.classes(np.unique(codes).tolist()))
        return np.isin(codes, [vocabulary.code(found) for found in self.meant])

    def require_seen(self, name: str) -> None:
        """Raise if no row is of this class, unless it is listed."""
        known = self.seen | (self.rule.classes or frozenset())
        if self.seen and not known & self.meant:
            raise InvalidValueError(
                f"positive_class={self.given!r} is in no row of {name}, which holds "
                f"{some(self.seen)}: name one of these. If it is only absent here, list all "
                "classes with classes=."
            )


def by_class(
    slots: Mapping[str, Slot], flags: Iterable[str], given: Any, rule: ClassRule
) -> dict[str, Slot]:
    """The columns of a question, the first of its `flags` being a column of classes, of which
    `given` is the one that counts.
    """
    named = [key for key in flags if key in slots]
    if not named:
        raise InvalidTypeError(
            f"positive_class={given!r} says which class counts in a column of truth values, and "
            "there is none here: leave it out."
        )
    slot = replace(slots[named[0]], positive=PositiveClass.of(given, rule))
    return {**slots, named[0]: slot}
