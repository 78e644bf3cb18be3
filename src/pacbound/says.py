"""What a certificate says, as data: sentences and the quantities in them.

Nobody parses English here. A sentence is a template whose names are filled with quantities, and a
quantity knows the number, how people write it, and to which side it may be rounded so that the
sentence stays true. The terminal, the page and `summary()` lay the same sentences out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from functools import lru_cache
from math import inf, isinf
from string import Formatter
from typing import Any, Literal

# Where a sentence stays true if the number is rounded; "exact" shows every digit.
Side = Literal["down", "up", "near", "exact"]

_ROUNDINGS = {"down": ROUND_FLOOR, "up": ROUND_CEILING, "near": ROUND_HALF_EVEN}


def four_digits(value: float, side: Side) -> str:
    """Four decimals, rounded to the side on which the sentence stays true.

    There are more where the value, or what it leaves to 1, would have fewer than two digits.
    "exact" writes all: where no other number carries the guarantee.

    Examples
    --------
    >>> four_digits(0.7356414794921875, "down"), four_digits(0.9999847412109375, "up")
    ('0.7356', '0.999985')
    """
    # What was typed: 0.95, not 0.9499999999999999556.
    number = Decimal(repr(float(value)))
    if side != "exact" and abs(number) < 1e15:
        small = min(abs(number), abs(1 - number)) or Decimal(1)
        places = max(4, 1 - small.adjusted())
        number = number.quantize(Decimal(1).scaleb(-places), _ROUNDINGS[side])
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


@dataclass(frozen=True)
class Quantity:
    """A number in a sentence: what it is, and the side to which it may be rounded.

    Examples
    --------
    >>> Quantity(0.95, "share").text, Quantity(12_000, "count").text
    ('95 %', '12,000')
    >>> Quantity(0.95, "often", "down").text, Quantity(0.0049, "often").text
    ('95 of 100', '5 of 1,000')
    """

    value: float
    form: Literal["count", "share", "often", "threshold", "amount"]
    side: Side = "near"

    @property
    def text(self) -> str:
        """The number as people read it."""
        if isinf(self.value):
            return "+inf" if self.value == inf else "-inf"
        if self.form == "count":
            return f"{int(self.value):,}"
        if self.form == "amount":
            return _amount(self.value)
        if self.form == "threshold":
            return four_digits(self.value, self.side)
        counted = _counted(self.value, self.side) if self.form == "often" else None
        if counted is not None:
            return counted
        shown = (Decimal(four_digits(self.value, self.side)) * 100).normalize()
        return f"{shown:f} %" + " of" * (self.form == "often")


def _counted(value: float, side: Side) -> str | None:
    """A share as people count, "95 of 100": what was seen is rounded, what is promised is not.
    None where that takes more than a million.
    """
    number = Decimal(repr(float(value)))
    for places in range(2, 7):
        of = Decimal(10) ** places
        whole = (number * of).to_integral_value(ROUND_HALF_EVEN)
        exactly = whole == number * of
        # What is seldom is not shown as never, nor what is usual as always.
        if exactly or (side == "near" and 0 < whole < of):
            return f"{int(whole):,} of {int(of):,}"
    return None


def _amount(value: float) -> str:
    """To four digits, or to a whole number of thousands."""
    return f"{value:,.0f}" if 9_999.5 <= abs(value) < 1e15 else f"{value:.4g}"


def count(value: int) -> Quantity:
    """A number of rows, labels, groups."""
    return Quantity(int(value), "count")


def share(value: float, side: Side = "near") -> Quantity:
    """A rate, written as a percentage."""
    return Quantity(float(value), "share", side)


def confidence(delta: float) -> Quantity:
    """1 - `delta`, never rounded up."""
    return Quantity(float(1 - Decimal(repr(float(delta)))), "share", "down")


Value = Quantity | str


@dataclass(frozen=True)
class Sentence:
    """A template in which every {name} is a quantity or a text; a name that is not there raises
    when the sentence is made.

    Examples
    --------
    >>> str(Sentence("At most {xi} are missed.", {"xi": share(0.05)}))
    'At most 5 % are missed.'
    """

    template: str
    values: Mapping[str, Value] = field(default_factory=dict)

    def __post_init__(self) -> None:
        missing = names_in(self.template) - self.values.keys()
        if missing:
            raise KeyError(f"{self.template!r} needs {min(missing)}.")

    def __str__(self) -> str:
        return "".join(value.text if isinstance(value, Quantity) else value for value in self)

    def in_unit(self, scale: float) -> Sentence:
        """The same with thresholds of scores that are written from 0 to `scale`."""
        values = {name: in_unit(value, scale) for name, value in self.values.items()}
        return Sentence(self.template, values)

    def __iter__(self) -> Iterator[Value]:
        """Its parts in order: texts, and the quantities between them."""
        for text, name, _, _ in Formatter().parse(self.template):
            if text:
                yield text
            if name is not None:
                yield self.values[name]


def in_unit(value: Value, scale: float | None) -> Value:
    """A threshold as a table holds scores that are written from 0 to `scale`; anything else as it
    is.

    Examples
    --------
    >>> in_unit(Quantity(0.0869, "threshold"), 100).text, in_unit(count(3), 100).text
    ('8.69', '3')
    """
    if isinstance(value, Quantity) and value.form == "threshold":
        return replace(value, value=value.value * (scale or 1.0))
    return value


def with_counts(values: Mapping[str, Value]) -> dict[str, Value]:
    """The values, and each share once more as people count, under "often" and its name.

    Examples
    --------
    >>> str(Sentence("At most {often xi} are missed.", with_counts({"xi": share(0.05, "up")})))
    'At most 5 of 100 are missed.'
    """
    counted = {
        f"often {name}": replace(value, form="often")
        for name, value in values.items()
        if isinstance(value, Quantity) and value.form == "share"
    }
    return {**values, **counted}


@lru_cache(maxsize=1024)
def names_in(template: str) -> frozenset[str]:
    """The names that a template must be given."""
    return frozenset(name for _, name, _, _ in Formatter().parse(template) if name is not None)


@dataclass(frozen=True)
class Says:
    """What a certificate says, in the order in which people want it.

    Attributes
    ----------
    title : Sentence
        What was counted and what was asked for.
    heading : Sentence
        The claim in a few words, whether or not it is certified.
    plain : Sentence
        What is certified, or not shown, in a sentence for people who read no other.
    costs : Sentence or None
        What acting on it takes, as seen on these rows; it is not certified.
    rule : Sentence or None
        What to do: the threshold and what it is for. A refusal has none.
    promise : Sentence or None
        What is certified.
    refused : tuple of Sentence
        Why nothing is certified, what it would take, and what to do instead.
    seen : tuple of Sentence
        What was seen on these rows; it is not certified.
    groups : tuple of Sentence
        A line for each group.
    table : tuple of tuple of str
        Lines of a table, the first of which has the names of its columns; () if there is none.
    caption : Sentence or None
        What the table shows, if no other sentence says it.
    notes : tuple of Sentence
        What a reader should know beside it: a draw, a claim of no use, a suspicion.
    """

    title: Sentence
    heading: Sentence
    plain: Sentence
    costs: Sentence | None = None
    rule: Sentence | None = None
    promise: Sentence | None = None
    refused: tuple[Sentence, ...] = ()
    seen: tuple[Sentence, ...] = ()
    groups: tuple[Sentence, ...] = ()
    table: tuple[tuple[str, ...], ...] = ()
    caption: Sentence | None = None
    notes: tuple[Sentence, ...] = ()

    def in_unit(self, scale: float) -> Says:
        """The same with thresholds as the table holds scores, in which `scale` stands for 1."""
        unit = (
            f"Scores and thresholds are as the table holds them, where {exact(scale)} stands for 1."
        )
        said: dict[str, Any] = {
            name: tuple(
                part.in_unit(scale) if isinstance(part, Sentence) else part for part in value
            )
            if isinstance(value, tuple)
            else value and value.in_unit(scale)
            for name, value in vars(self).items()
        }
        return Says(**{**said, "notes": (*said["notes"], Sentence(unit))})

    def lines(self) -> list[str]:
        """All of it, a sentence to a line, as `summary()` shows it."""
        return [
            str(self.title),
            f"{'REFUSED: ' if self.refused else ''}{self.in_short}",
            *self.in_full(),
        ]

    @property
    def in_short(self) -> str:
        """The plain sentence, and what acting on it takes."""
        return " ".join(str(part) for part in (self.plain, self.costs) if part is not None)

    def in_full(self) -> list[str]:
        """All that follows the plain sentence."""
        return [
            *map(str, self.refused),
            *(str(part) for part in (self.rule, self.promise) if part is not None),
            *map(str, self.seen),
            *(f"  {line}" for line in self.groups),
            *([] if self.caption is None else [f"{self.caption}:"]),
            *aligned(self.table),
            *map(str, self.notes),
        ]


def aligned(table: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table, with an empty line around it.

    Examples
    --------
    >>> aligned([("bin", "rows"), ("[0, 1]", "100")])
    ['', '     bin  rows', '  [0, 1]   100', '']
    """
    if not table:
        return []
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = ("  ".join(map(str.rjust, line, widths)) for line in table)
    return ["", *(f"  {line}" for line in lines), ""]


def exact(number: float) -> str:
    """`number` in the fewest digits that read back as the same number."""
    short = f"{number:g}"
    return short if float(short) == number else repr(float(number))


def in_short(number: float) -> str:
    """`number` exactly, if that takes few digits, and else in four that say no less."""
    told = exact(number)
    if len(told) <= 8:
        return told
    rounded = Context(prec=4, rounding=ROUND_CEILING).create_decimal_from_float(number)
    return f"{float(rounded):g}"


def likelihood(delta: float) -> str:
    """1 - `delta` as people read it: in digits where few of them are exact, never rounded."""
    text = f"{1 - delta:.6g}"
    return text if Decimal(text) == 1 - Decimal(repr(delta)) else f"1 - {exact(delta)}"
