"""The explorer on the page: native sliders, and the values that a script looks up.

Without the script the values of the certificate itself stand there. All values are in a table, too.
"""

from __future__ import annotations

import json
from typing import Final

from pacbound.explorable import Reading
from pacbound.report.page.explorer.grid import Explorer
from pacbound.report.page.markup import Markup, folded, table, tag
from pacbound.says import exact

WARNING: Final = (
    "Look, but do not choose here. The claim holds for the {asked} that were fixed before the "
    "labels were seen. Others, picked after a look at these very rows, carry no guarantee: use "
    "them to plan the next certificate, on fresh rows."
)


def explorer(found: Explorer | str, place: str) -> Markup | None:
    """The sliders of one certificate, or the sentence that says why there are none."""
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
        _data(found),
        class_="explorer",
        aria_labelledby=f"{place}-explorer",
    )


def _slider(found: Explorer, place: str, which: str) -> Markup:
    is_dial = which == "dial"
    values = found.dial if is_dial else found.deltas
    own = found.own[0 if is_dial else 1]
    name = str(found.explorable.dial) if is_dial else "delta"
    shown = exact(float(values[own] or 0))
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
    return f"At {asked}delta = {exact(found.deltas[level])}{own}: {reading.verdict}."


def _table(found: Explorer) -> Markup:
    asked = [] if found.explorable.dial is None else [found.explorable.dial]
    rows = [
        [*([] if value is None else [exact(value)]), exact(delta), reading.verdict, *reading.values]
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
        "delta": [exact(value) for value in found.deltas],
        "own": list(found.own),
        "found": [
            [written(at, level, reading) for level, reading in enumerate(row)]
            for at, row in enumerate(found.readings)
        ],
    }
    text = json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    return tag("script", Markup(text), type="application/json")
