"""The values of xi and delta that an explorer offers, and what was found at each pair of them.

As many values are tried as take a few seconds, by the certificate's own account of its work. Where
the certificate keeps the counts only down to its own decision, all values are at least as strict as
its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from pacbound.claims.certificate import Certificate
from pacbound.explorable import Explorable, Reading

SECONDS: Final = 5.0
"""What the values of one certificate may take, by its own account; a busy machine takes longer."""

_UNIT_OF_WORK: Final = 10.0
"""The seconds that `Certificate.work` counts in."""

_LEAST: Final = 0.08
"""Seconds that the region of an exact cascade takes however few its rows are."""

_NEXT_TO_NOTHING: Final = 1e-3
_EACH_GROUP: Final = 0.005
"""Seconds that deciding takes for each group, whatever its rows are."""

_STRICTER: Final = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
_LOOSER: Final = (1.25, 1.5, 2.0)
_DELTAS: Final = (0.001, 0.01, 0.1, 1.0)
_LOOSER_DELTAS: Final = (3.0, 10.0)
_LARGEST_DELTA: Final = 0.5
_SMALLEST_DELTA: Final = 1e-300
"""A smaller one leaves nothing for each of many bins."""
_SHAPES: Final = ((10, 4), (10, 3), (5, 3), (5, 2), (5, 1), (2, 1))
"""How many values of xi and of delta are tried, the stricter ones and the own; the first that does
not take too long."""


@dataclass(frozen=True)
class Explorer:
    """What was found: `readings[i][j]` at the i-th value of the dial and the j-th delta.

    The dial has the one value None where a claim has nothing to ask for beside delta. `own` are the
    places of the certificate's own values.
    """

    explorable: Explorable
    dial: tuple[float | None, ...]
    deltas: tuple[float, ...]
    own: tuple[int, int]
    readings: tuple[tuple[Reading, ...], ...]
    seconds: float
    """About how long it took, by the certificate's own account."""


def explored(
    certificate: Certificate,
    way: Explorable,
    *,
    seconds: float = SECONDS,
    progress: Callable[[float], None] | None = None,
) -> Explorer | None:
    """What the counts of `certificate` give over a grid of values; None if not even a few of them
    can be tried in so many `seconds`.
    """
    own, delta = _own(certificate, way)
    for shape in _SHAPES:
        dial, deltas = _values(own, delta, way, shape)
        took = _seconds(certificate, way, dial, deltas)
        if took <= seconds:
            break
    else:
        return None
    readings = []
    for done, value in enumerate(dial):
        readings.append(tuple(way.at(certificate, value, level) for level in deltas))
        if progress is not None:
            progress((done + 1) / len(dial))
    place = dial.index(own), deltas.index(delta)
    return Explorer(way, dial, deltas, place, tuple(readings), took)


def longest(certificate: Certificate, way: Explorable) -> float:
    """About how many seconds the finest grid would take."""
    return _seconds(certificate, way, *_values(*_own(certificate, way), way, _SHAPES[0]))


def _own(certificate: Certificate, way: Explorable) -> tuple[float | None, float]:
    """The values that the certificate was asked for."""
    own = None if way.dial is None else float(certificate.values[way.dial])
    return own, certificate.delta


def _values(
    own: float | None, delta: float, way: Explorable, shape: tuple[int, int]
) -> tuple[tuple[float | None, ...], tuple[float, ...]]:
    dial = (None,) if own is None else _dial(own, way, shape[0])
    return dial, _deltas(delta, way, shape[1])


def _dial(own: float, way: Explorable, most: int) -> tuple[float | None, ...]:
    """Values around the own one, from the strictest on: of xi rising, of a target falling."""
    factors = _STRICTER[:: -(len(_STRICTER) // most)][::-1]
    looser = _LOOSER if way.whole and most > len(_LOOSER) else ()
    if way.dial == "target":
        values = [
            own if factor == 1 else round(1 - _near((1 - own) * factor, own, factor), 15)
            for factor in (*factors, *looser)
        ]
        return tuple(sorted({value for value in values if 0 < value < 1}, reverse=True))
    values = [_near(own * factor, own, factor) for factor in (*factors, *looser)]
    return tuple(sorted({value for value in values if value == own or 0 < value < 1}))


def _deltas(own: float, way: Explorable, most: int) -> tuple[float, ...]:
    looser = _LOOSER_DELTAS if way.whole and most > 1 else ()
    factors = (*_DELTAS[-most:], *looser)
    values = {_near(own * factor, own, factor) for factor in factors}
    return tuple(sorted(v for v in values if v == own or _SMALLEST_DELTA <= v <= _LARGEST_DELTA))


def _near(value: float, own: float, factor: float) -> float:
    """A number that people can read near `value`; the own one as it is."""
    return own if factor == 1 else float(f"{value:.3g}")


def _seconds(
    certificate: Certificate,
    way: Explorable,
    dial: tuple[float | None, ...],
    deltas: tuple[float, ...],
) -> float:
    least = _EACH_GROUP * len(getattr(certificate, "groups", ()))
    total = 0.0
    for value in dial:
        for level in deltas:
            asked: Any = {"delta": level}
            asked |= {} if way.dial is None else {way.dial: value}
            work = certificate.by.work({**certificate.values, **asked})
            region = _LEAST if work > _NEXT_TO_NOTHING else 0.0
            total += max(least, region, _UNIT_OF_WORK * work)
    return total
