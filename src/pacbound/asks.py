"""What a user asks for when certifying.

One `Ask` gives the keyword of the verb with its check, the option of the command, the key of the
document, and the dial of the explorer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from inspect import Parameter
from math import nextafter
from typing import Any, Final

from pacbound.errors import InvalidTypeError
from pacbound.forms import AskedForm, Choice, Number, Wholes
from pacbound.says import Side, Value

REQUIRED: Final[Any] = Parameter.empty
"""The default of what must be passed."""


@dataclass(frozen=True)
class Dial:
    """The range of the explorer's slider; `log` makes its steps even in the logarithm."""

    low: float
    high: float
    log: bool = False


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
    dial : Dial or None
        The range of its slider in the explorer, if it has one.
    side : str
        Where a sentence may round it to: "at least {target}" down, "at most {xi}" up.
    option : bool
        Whether the command line has it; what a table says of itself needs none.
    """

    name: str
    form: AskedForm
    help: str
    default: Any = REQUIRED
    dial: Dial | None = None
    side: Side = "near"
    option: bool = True

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
    dial=Dial(1e-6, 0.5, log=True),
    side="up",
)
THRESHOLDS = Ask(
    "group_thresholds",
    Choice(("common", "own")),
    "With groups: one common threshold that every group keeps, or their own ones.",
    default="common",
)


def xi_ask(help: str) -> Ask:  # noqa: A002
    """At most this share."""
    return Ask("xi", RATE, help, dial=Dial(0.001, 0.5, log=True), side="up")


def target_ask(help: str) -> Ask:  # noqa: A002
    """At least this share."""
    return Ask("target", SHARE, help, dial=Dial(0.5, 0.999), side="down")


def looks_ask(unit: str) -> Ask:
    """Planned looks at a growing sample."""
    return Ask(
        "looks", Wholes(), f"Planned looks, numbers of {unit}, fixed beforehand: 100,200", None
    )
