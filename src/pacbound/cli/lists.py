"""Lists on the command line: names or numbers with commas between them."""

from __future__ import annotations

from pacbound.errors import InvalidValueError


def names(text: str) -> list[str]:
    """The names in `text`."""
    return [part.strip() for part in text.split(",")]


def whole_numbers(text: str, option: str) -> list[int]:
    """The whole numbers in `text`; `option` is for the message."""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise InvalidValueError(
            f"{option} {text} is not a list of whole numbers: expected for example 500,1000,2000"
        ) from None


def numbers(text: str, option: str) -> list[float]:
    """The numbers in `text`; `option` is for the message."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise InvalidValueError(
            f"{option} {text} is not a list of numbers: expected for example 0,0.5,1"
        ) from None
