"""What a value may be, stated once.

A form checks a value that a user passes, reads it from a document, writes it, and says it in a
sentence. What is asked for (`Ask`) and what a document holds (`pacbound.fields`) both have one.

An `Ask` is something that a user may ask for when certifying. It gives the keyword of the verb
with its check, the option of the command and the key of the document.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from inspect import Parameter
from itertools import pairwise
from math import ceil, inf, nextafter
from typing import Any, Final, Literal

from pacbound.documents import Json, Reader, encoded
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.says import Quantity, Side, Value, count, share
from pacbound.stats.arguments import one_of, real_number, whole_number


class Form:
    """What a document holds at a key. That it can hold it is checked before it is read, by
    `exact_verifier.require_shape`.
    """

    def read(self, part: Reader, key: str) -> Any:
        """The value at a key of a document; a list as a tuple."""
        value = part.raw(key)
        return tuple(value) if isinstance(value, list) else value

    def write(self, value: Any) -> Json:
        """The value as JSON holds it: arrays and tuples as lists, infinities as text."""
        return encoded(value)

    def counted(self, value: Any) -> Json:
        """The part of it that was counted or asked for, and not computed."""
        return self.write(value)


class AskedForm(Form, ABC):
    """What a user may pass, too; `check` raises with the name and the remedy."""

    # What the command line reads before `check` sees it.
    option: Any = str

    @abstractmethod
    def check(self, value: Any, name: str) -> Any:
        """The value, if it is one that may be asked for."""

    def parsed(self, text: Any) -> Any:
        """What the command line has read, as `check` takes it."""
        return text

    def said(self, value: Any, side: Side) -> Value:  # noqa: ARG002
        """The value as a part of a sentence."""
        return str(value)


@dataclass(frozen=True)
class Number(AskedForm):
    """A number between two ends; `ends` says which of them belong to it, as in "(]".

    Examples
    --------
    >>> Number("a rate", 0, 1, "[)").check(0.02, "xi")
    0.02
    """

    what: str
    low: float
    high: float
    ends: str = "()"
    remedy: str = ""
    option = float

    def legal(self, value: float) -> bool:
        """Whether it lies between the ends."""
        above = self.low <= value if self.ends[0] == "[" else self.low < value
        return above and (value <= self.high if self.ends[1] == "]" else value < self.high)

    def expected(self, name: str) -> str:
        """The ends, in words."""
        if self.high == inf:
            return f"{self.low:g} or more" if self.ends[0] == "[" else f"more than {self.low:g}"
        low, high = ("<=" if end in "[]" else "<" for end in self.ends)
        return f"{self.low:g} {low} {name} {high} {self.high:g}"

    def check(self, value: Any, name: str) -> float:
        """The number as a float."""
        number = real_number(value, name, self.what)
        if not self.legal(number):
            remedy = f" {self.remedy.format(name=name)}" if self.remedy else ""
            raise InvalidValueError(
                f"{name}={value} is not {self.what}: expected {self.expected(name)}.{remedy}"
            )
        return number

    def said(self, value: Any, side: Side) -> Value:
        """A percentage."""
        return share(value, side)


@dataclass(frozen=True)
class Start(Number):
    """A threshold to start from, on the grid of 1/`top`: rounded `up`, or down."""

    top: int = 2**16
    up: bool = False

    def check(self, value: Any, name: str) -> float:
        """The threshold on the grid."""
        cell = super().check(value, name) * self.top
        return (ceil(cell) if self.up else int(cell)) / self.top

    def said(self, value: Any, side: Side) -> Value:  # noqa: ARG002
        """With all its digits: no other threshold was tested."""
        return Quantity(value, "threshold", "exact")


@dataclass(frozen=True)
class Whole(AskedForm):
    """A whole number of at least `least`."""

    least: int = 0
    option = int

    def check(self, value: Any, name: str) -> int:
        """The number as an int."""
        return whole_number(value, name, least=self.least)

    def said(self, value: Any, side: Side) -> Value:  # noqa: ARG002
        """With commas between thousands."""
        return count(value)


@dataclass(frozen=True)
class Wholes(AskedForm):
    """Whole numbers that rise, each at least 1, as a tuple."""

    def check(self, value: Any, name: str) -> tuple[int, ...]:
        """The numbers; a plan of looks stands for its looks."""
        given = getattr(value, "looks", value)
        try:
            listed = () if isinstance(given, (str, bytes)) else tuple(given)
        except TypeError:
            listed = ()
        if not listed:
            raise InvalidTypeError(
                f"{name}={value!r} is not a list of whole numbers: expected one such as [100, 200]."
            )
        numbers = tuple(whole_number(number, name, least=1) for number in listed)
        if any(b <= a for a, b in pairwise(numbers)):
            raise InvalidValueError(f"{name}={value!r}: expected numbers that rise, at least one.")
        return numbers

    def parsed(self, text: Any) -> Any:
        """Numbers with commas between them."""
        if text is None:
            return None
        parts = [part.strip() for part in str(text).split(",")]
        return [int(part) for part in parts] if all(map(str.isdecimal, parts)) else text

    def said(self, value: Any, side: Side) -> str:  # noqa: ARG002
        """A list with commas."""
        return ", ".join(f"{number:,}" for number in value)


@dataclass(frozen=True)
class Shares(AskedForm):
    """A positive number for each of a few names: how something is shared among them."""

    names: tuple[str, ...]

    def check(self, value: Any, name: str) -> dict[str, float]:
        """The numbers by name, in the order of the names."""
        if not isinstance(value, Mapping):
            raise InvalidTypeError(
                f"{name} is of type {type(value).__name__}: expected a mapping from each of "
                f"{', '.join(map(str, self.names))} to its share."
            )
        if value.keys() != set(self.names):
            raise InvalidValueError(
                f"{name} names {', '.join(map(str, value)) or 'nothing'}: expected a share for "
                f"each of {', '.join(map(str, self.names))}."
            )
        numbers = {
            key: real_number(value[key], f"{name}[{key!r}]", "a share") for key in self.names
        }
        if not all(0 < number < inf for number in numbers.values()):
            raise InvalidValueError(f"{name}={value} are not shares: expected positive numbers.")
        return numbers

    def parsed(self, text: Any) -> Any:
        """Names and numbers with commas between them, such as a=2,b=1."""
        if text is None or isinstance(text, Mapping):
            return text
        parts = [part.partition("=") for part in str(text).split(",")]
        try:
            return {key.strip(): float(number) for key, _, number in parts}
        except ValueError:
            return text

    def said(self, value: Any, side: Side) -> str:  # noqa: ARG002
        """A list of names and numbers."""
        return ", ".join(f"{key} {number:g}" for key, number in value.items())


@dataclass(frozen=True)
class Choice(AskedForm):
    """One of a few words."""

    allowed: tuple[str, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "option", Literal[self.allowed])

    def check(self, value: Any, name: str) -> str:
        """The word."""
        return str(one_of(value, self.allowed, name))


class TruthValue(Form):
    """True or false."""


class Text(Form):
    """Any text."""


class Integers(Form):
    """A list of whole numbers, also negative ones, as a tuple."""


class Numbers(Form):
    """A list of numbers, as a tuple."""

    def read(self, part: Reader, key: str) -> tuple[float, ...]:
        """The numbers."""
        return tuple(part.numbers(key))


class Threshold(Form):
    """A number from 0 to 1, or an infinite one."""

    def read(self, part: Reader, key: str) -> float:
        """The number."""
        return part.number(key)


# The default of what must be passed.
REQUIRED: Final[Any] = Parameter.empty


@dataclass(frozen=True)
class Ask:
    """Something that may be asked for.

    Attributes
    ----------
    name : str
        The keyword of the verb and the key of the document; the option has - for _.
    form : AskedForm
        What it may be.
    help : str
        The option's line, and the parameter's first sentence.
    default : object
        What is asked for if it is left out; `REQUIRED` if it must be passed.
    side : str
        Where a sentence may round it to: "at least {target}" down, "at most {xi}" up.
    option : bool
        Whether the command line has it; what a table says of itself needs none.
    shown : str
        What a page calls it, if not by its name.
    """

    name: str
    form: AskedForm
    help: str
    default: Any = REQUIRED
    side: Side = "near"
    option: bool = True
    shown: str = ""

    def checked(self, value: Any, *, shown_as: str | None = None) -> Any:
        """The value, or the error; the command line passes "--target" for `shown_as`."""
        if value is REQUIRED:
            raise InvalidTypeError(f"{self.name} is missing. {self.help}")
        if value is None and self.default is None:
            return None
        return self.form.check(value, shown_as or self.name)

    def said(self, value: Any) -> Value:
        """The value as a part of a sentence."""
        return "none" if value is None else self.form.said(value, self.side)


def checked(asks: Sequence[Ask], given: Mapping[str, Any]) -> dict[str, Any]:
    """All that was asked for, checked before a row is read."""
    return {ask.name: ask.checked(given.get(ask.name, ask.default)) for ask in asks}


def allowed_rate(asked: Mapping[str, Any], *, up: bool = False) -> float:
    """The share that may go wrong: `xi`, or what `target` leaves to 1.

    That is rounded down, so that no less is tested than is claimed; or `up`, so that a monitor bets
    against no more than is claimed.
    """
    if "target" not in asked:
        return float(asked["xi"])
    exact = 1 - Fraction(asked["target"])
    near = float(exact)
    if up:
        return near if Fraction(near) >= exact else nextafter(near, 1.0)
    return near if Fraction(near) <= exact else nextafter(near, 0.0)


CHANCE = Number(
    "a failure probability",
    0,
    0.5,
    "(]",
    "{name} is the chance that the claim is wrong; for 95 % confidence pass {name}=0.05.",
)
RATE = Number("a rate to be kept", 0, 1, "[)", "To allow 2 % pass {name}=0.02.")
SHARE = Number("a share that can be certified", 0, 1, "()", "To find 95 % pass {name}=0.95.")

DELTA = Ask(
    "delta",
    CHANCE,
    "The chance that the claim is wrong: 0.01",
    side="up",
    shown="delta: the chance that the claim is wrong",
)
THRESHOLDS = Ask(
    "group_thresholds",
    Choice(("common", "own")),
    "With groups: one common threshold that every group keeps, or their own ones.",
    default="common",
    shown="Thresholds of the groups",
)
SMALL_GROUPS = Ask(
    "small_groups",
    Choice(("refuse", "leave-out")),
    "With groups: leave-out leaves those with too few trials to pass at all uncertified; refuse "
    "refuses the claim.",
    default="refuse",
    shown="Where a group has too few rows",
)


def xi_ask(help: str) -> Ask:  # noqa: A002
    """At most this share."""
    return Ask("xi", RATE, help, side="up", shown="xi: the most that may go wrong")


def target_ask(help: str) -> Ask:  # noqa: A002
    """At least this share."""
    return Ask("target", SHARE, help, side="down", shown="target: the least share")


def looks_ask(unit: str) -> Ask:
    """Planned looks at a growing sample."""
    help_ = f"Planned looks, numbers of {unit}, fixed beforehand: 100,200"
    return Ask("looks", Wholes(), help_, None, shown="Planned looks")
