"""What the library would decide from the counts of a certificate at other values of xi and delta.

Nothing of it is certified: xi and delta must be fixed before labels are seen. The procedures decide
again, from the counts that the certificate holds, and nothing here knows any statistics. As many
values are tried as take a few seconds, by the certificate's own account of its work. Where the
certificate keeps the counts only down to its own decision, all values are at least as strict as its
own.

On the page native sliders choose among the values, which a script looks up. Without the script the
values of the certificate itself stand there. All values are in a table, too.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from pacbound.claims.certificate import Certificate
from pacbound.explorable import Explorable, Reading
from pacbound.figure import Axis, Boxes, Column, Dots, Figure, Line, Mark, Panel
from pacbound.report.page.markup import Markup, folded, table, tag
from pacbound.says import exact, in_short

WARNING: Final = (
    "Look, but do not choose here. The claim holds for the {asked} that were fixed before the "
    "labels were seen. Others, picked after a look at these very rows, carry no guarantee: use "
    "them to plan the next certificate, on fresh rows."
)
# What the values of one certificate may take, by its own account; a busy machine takes longer.
SECONDS: Final = 5.0

# The seconds that `Certificate.work` counts in.
_UNIT_OF_WORK: Final = 10.0

# Seconds that the region of an exact cascade takes however few its rows are.
_LEAST: Final = 0.08

_NEXT_TO_NOTHING: Final = 1e-3
# Seconds that deciding takes for each group, whatever its rows are.
_EACH_GROUP: Final = 0.005

_STRICTER: Final = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
_LOOSER: Final = (1.25, 1.5, 2.0)
_DELTAS: Final = (0.001, 0.01, 0.1, 1.0)
_LOOSER_DELTAS: Final = (3.0, 10.0)
_LARGEST_DELTA: Final = 0.5
# A smaller one leaves nothing for each of many bins.
_SMALLEST_DELTA: Final = 1e-300
# How many values of xi and of delta are tried, the stricter ones and the own; the first that does
# not take too long.
_SHAPES: Final = ((10, 4), (10, 3), (5, 3), (5, 2), (5, 1), (2, 1))


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
    # About how long it took, by the certificate's own account.
    seconds: float


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


def explorable(certificate: Certificate) -> Explorable | str:
    """How `certificate` is explored, or why it cannot be."""
    if not certificate.certified:
        return (
            "A refusal is not explored: another xi, chosen after the labels were seen, would carry "
            "no guarantee."
        )
    found: Explorable | str = certificate.by.explorable(certificate)
    return found


def trade_off(explorer: Explorer) -> Figure | None:
    """What a stricter or looser claim would cost at the certificate's own delta, if there is a
    trade-off to be drawn.
    """
    way, (own, level) = explorer.explorable, explorer.own
    tried = [
        (value, row[level])
        for value, row in zip(explorer.dial, explorer.readings, strict=True)
        if value is not None
    ]
    ends = [reading.drawn or (np.nan, np.nan) for _, reading in tried]
    if sum(reading.drawn is not None for _, reading in tried) < 2:
        return None
    x, (low, high) = np.array([value for value, _ in tried]), np.transpose(ends)
    middle, mine = (low + high) / 2, x == explorer.dial[own]
    order = np.argsort(x)
    marks: list[Mark] = []
    if (low < high).any():
        marks.append(Boxes(x, x, low, high, "seen", "anywhere between these ends"))
    name = f"at delta = {in_short(explorer.deltas[level])} (no guarantee)"
    marks.append(Line(x[order], middle[order], "seen", name))
    marks.append(Dots(x, middle, "seen"))
    if np.isfinite(middle[mine]).any():
        marks.append(Dots(x[mine], middle[mine], "certified", f"{way.dial} of this certificate"))
    words = [[exact(value), reading.verdict, *reading.values] for value, reading in tried]
    columns = zip([str(way.dial), "Verdict", *way.names], zip(*words, strict=True), strict=True)
    return Figure(
        f"{way.drawn} against {way.dial}",
        f"What the same counts would give at another {way.dial}. It must be chosen before the "
        "labels are seen: a point picked here carries no guarantee.",
        Axis.around(str(way.dial), x),
        [Panel(Axis.around(way.drawn, [*low, *high], percent=not way.amount), marks)],
        [Column(name, values, "text") for name, values in columns],
    )


def explorer_html(found: Explorer | str, place: str, drawn: Markup | None = None) -> Markup | None:
    """The sliders of one certificate, with what is `drawn` of them, or the sentence that says why
    there are none.
    """
    if not found:
        return None
    heading = tag("h3", "Explorer", id=f"{place}-explorer")
    if isinstance(found, str):
        return tag("div", heading, tag("p", found))
    way, (own, level) = found.explorable, found.own
    asked = "delta" if way.dial is None else f"{way.dial} and delta"
    sliders = [] if way.dial is None or len(found.dial) < 2 else [_slider(found, place, "dial")]
    if len(found.deltas) > 1:
        sliders.append(_slider(found, place, "delta"))
    reading = found.readings[own][level]
    outputs = [
        tag("div", tag("dt", name), tag("dd", value, data_output=number))
        for number, (name, value) in enumerate(zip(way.names, reading.values, strict=True))
    ]
    return tag(
        "section",
        heading,
        tag(
            "p",
            tag("strong", "Before you move anything: "),
            WARNING.format(asked=asked),
            class_="warning",
        ),
        *sliders,
        tag("p", _said(found, own, level), data_status=True, role="status"),
        tag("dl", *outputs, class_="outputs"),
        tag("noscript", tag("p", "Without scripts the sliders do nothing; the table has it all.")),
        folded("All values", _table(found)),
        drawn,
        _data(found),
        class_="explorer",
        aria_labelledby=f"{place}-name {place}-explorer",
    )


def _slider(found: Explorer, place: str, which: str) -> Markup:
    is_dial = which == "dial"
    values = found.dial if is_dial else found.deltas
    own = found.own[0 if is_dial else 1]
    name = str(found.explorable.dial) if is_dial else "delta"
    shown = (exact if is_dial else in_short)(float(values[own] or 0))
    control = f"{place}-{which}"
    return tag(
        "div",
        tag("label", name, for_=control),
        tag(
            "input",
            type="range",
            id=control,
            min=0,
            max=len(values) - 1,
            step=1,
            value=own,
            data_dial=which,
            aria_valuetext=shown,
            autocomplete="off",
        ),
        tag("output", shown, for_=control, data_shown=which),
        class_="dial",
    )


def _said(found: Explorer, at: int, level: int) -> str:
    """The sentence that says what is looked at."""
    value, reading = found.dial[at], found.readings[at][level]
    asked = "" if value is None else f"{found.explorable.dial} = {exact(value)}, "
    own = " (this certificate)" if (at, level) == found.own else " (not this certificate)"
    return f"At {asked}delta = {in_short(found.deltas[level])}{own}: {reading.verdict}."


def _table(found: Explorer) -> Markup:
    asked = [] if found.explorable.dial is None else [found.explorable.dial]
    rows = [
        [
            *([] if value is None else [exact(value)]),
            in_short(delta),
            reading.verdict,
            *reading.values,
        ]
        for value, row in zip(found.dial, found.readings, strict=True)
        for delta, reading in zip(found.deltas, row, strict=True)
    ]
    head = [*asked, "delta", "Verdict", *found.explorable.names]
    return table("All values of the explorer", head, rows)


def _data(found: Explorer) -> Markup:
    """What the script looks up, as JSON that cannot end its element."""

    def written(at: int, level: int, reading: Reading) -> list[object]:
        return [_said(found, at, level), *reading.values]

    data = {
        "dial": [None if value is None else exact(value) for value in found.dial],
        "delta": [in_short(value) for value in found.deltas],
        "own": list(found.own),
        "found": [
            [written(at, level, reading) for level, reading in enumerate(row)]
            for at, row in enumerate(found.readings)
        ],
    }
    text = json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    return tag("script", Markup(text), type="application/json")
