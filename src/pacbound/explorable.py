"""How a certificate is explored: what its counts would give at other values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True)
class Reading:
    """What is decided at one pair of values: in words for people, one for each name of the
    explorer; and what a trade-off is drawn of, from the least to the most that it can be.
    """

    verdict: str
    values: tuple[str, ...]
    drawn: tuple[float, float] | None = None


@dataclass(frozen=True)
class Explorable:
    """How a certificate is explored.

    `dial` is the name of what is asked for beside delta, None if there is nothing; `at` decides,
    and gives a value for each of the `names`; `drawn` is the name of what a trade-off is drawn of:
    a share of the rows, or an `amount`.
    `whole` says that the certificate keeps all counts, so that looser values can be told too.
    """

    dial: str | None
    names: tuple[str, ...]
    at: Callable[[Any, float | None, float], Reading]
    drawn: str = ""
    amount: bool = False
    whole: bool = False


CERTIFIED: Final = "certified"
REFUSED: Final = "refused"
UNTOLD: Final = "not told by the counts in this certificate"
HOPELESS: Final = "refused, whatever is seen: no look of the plan could pass"
