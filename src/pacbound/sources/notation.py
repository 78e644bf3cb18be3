"""How a table is written, where its name does not say it: what stands between the values, what
stands for the decimal point, and what a score of 1 is written as.

Nothing is guessed. A table that is not written as it is said to be raises, with the option that
would help where that can be told.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from math import isfinite
from typing import Any, Final, TypedDict

import numpy as np
from numpy.typing import NDArray

from pacbound.errors import InvalidTypeError, InvalidValueError

TRUE: Final = ("1", "true", "t", "yes", "1.0")
# How truth values are written in text.
FALSE: Final = ("0", "false", "f", "no", "0.0")

DECIMALS: Final = (".", ",")
# What usually stands between values, the likeliest first.
USUAL: Final = (";", "\t", "|", ",")

_SPELLED: Final = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "pipe": "|"}


class NotationOptions(TypedDict, total=False):
    """How the tables are written; every function that counts the rows of tables takes these."""

    # What stands between the values of text tables, if not what the file's name says.
    delimiter: str | None
    # What stands for the decimal point in text tables: "." or ",".
    decimal: str | None
    # What a score of 1 is written as: 100 for percentages.
    scale: float | None


@dataclass(frozen=True)
class Notation:
    r"""How a table is written. What is None is what the file's name says, or as usual.

    Attributes
    ----------
    delimiter : str or None
        What stands between the values of delimited text.
    decimal : str or None
        "." or ",", in numbers of delimited text; classes and names are left as they are.
    scale : float or None
        What a score of 1 is written as. Every score is divided by it once, in float64.

    Examples
    --------
    >>> Notation.of(delimiter="tab", scale=100)
    Notation(delimiter='\t', decimal=None, scale=100.0)
    """

    delimiter: str | None = None
    decimal: str | None = None
    scale: float | None = None

    @classmethod
    def of(cls, delimiter: Any = None, decimal: Any = None, scale: Any = None) -> Notation:
        """The notation from the arguments of a public function."""
        return cls(_delimiter(delimiter), _decimal(decimal), _scale(scale))

    @property
    def is_about_text(self) -> bool:
        """Whether it says something that only delimited text can be."""
        return self.delimiter is not None or self.decimal is not None


# Nothing special is said.
PLAIN: Final = Notation()

OPTIONS: Final = tuple(field.name for field in fields(Notation))


def refuse_notation(written: Mapping[str, Any]) -> None:
    """Refuse what is said of tables where arrays were passed."""
    for name, value in written.items():
        if value is not None:
            remedy = "pass the scores divided by it" if name == "scale" else "leave it out"
            raise InvalidTypeError(f"{name} is about tables, and arrays were passed: {remedy}.")


def unscaled(numbers: NDArray[Any], scale: float | None) -> NDArray[Any]:
    """The scores that `numbers` are written for: each divided once, in float64.

    The quotient of two float64 is correctly rounded everywhere, so 29 in a hundred is the score
    0.29 and falls where 0.29 does, in whatever it is counted.
    """
    return numbers if scale is None else np.asarray(numbers, dtype=np.float64) / scale


def shown(name: str, scale: float | None) -> str:
    """What a column of scores is called in messages about its scores."""
    return name if scale is None else f"{name} / {scale:g}"


def delimiter_hint(columns: Sequence[str], delimiter: str) -> str | None:
    """What to do about a header that was read as a single column, if another sign than was thought
    probably stands between its names.
    """
    others = (sign for sign in USUAL if sign != delimiter and sign in columns[0])
    sign = next(others, None) if len(columns) == 1 else None
    if sign is None:
        return None
    word = "tab" if sign == "\t" else sign
    return f"{sign!r} seems to stand between them: pass --delimiter {word!r} (delimiter={sign!r})."


def _delimiter(value: Any) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise InvalidTypeError(f"delimiter={value!r} is not text: expected for example ';'.")
    sign = _SPELLED.get(value.lower(), value)
    usual = len(sign) == 1 and sign.isascii() and (sign == "\t" or sign.isprintable())
    if not usual or sign.isalnum() or sign in "\"'.-+_ ":
        raise InvalidValueError(
            f"delimiter={value!r} cannot stand between values: expected one sign such as ';', '|' "
            "or 'tab'."
        )
    return sign


def _decimal(value: Any) -> str | None:
    if value is None or value in DECIMALS:
        return None if value is None else str(value)
    raise InvalidValueError(
        f"decimal={value!r} does not stand for a decimal point: expected '.' or ','."
    )


def _scale(value: Any) -> float | None:
    if value is None:
        return None
    numbers = (int, float, np.integer, np.floating)
    is_number = isinstance(value, numbers) and not isinstance(value, bool)
    if not (is_number and isfinite(value) and value > 0):
        raise (InvalidValueError if is_number else InvalidTypeError)(
            f"scale={value!r} is not a number that a score of 1 is written as: expected a number "
            "above 0, such as 100 for percentages."
        )
    return float(value)
