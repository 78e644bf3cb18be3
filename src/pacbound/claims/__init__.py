"""What can be certified: one module for each kind, and the only list of kinds.

A line here and a module of that name (with _ for -) that has a `CLAIM` are all it takes. The line
has the command and what `pacbound --help` says of it, so that listing the commands loads no module.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple


class ClaimLine(NamedTuple):
    """The command that certifies a kind, and its line in `pacbound --help`."""

    command: str
    help: str


CLAIMS: dict[str, ClaimLine] = {
    "abstention": ClaimLine("abstain", "The confidence at which to answer: few answers are wrong."),
    "calibration": ClaimLine(
        "calibrate", "An interval for the true confidence of every bin of scores."
    ),
    "sets": ClaimLine("sets", "A set of labels for every row: few sets miss the true one."),
}
"""The kinds, each with its line."""


def claim_of(kind: str) -> Any:
    """The claim of a kind.

    Parameters
    ----------
    kind
        One of `CLAIMS`.

    Returns
    -------
    Claim
        What its module declares.

    Examples
    --------
    >>> claim_of("sets").help.startswith("Certify the probability")
    True
    """
    return import_module(f"{__name__}.{kind.replace('-', '_')}").CLAIM


def kind_of(command: str) -> str | None:
    """The kind that a command certifies.

    Parameters
    ----------
    command
        The name of a command, as it is typed.

    Returns
    -------
    str or None
        One of `CLAIMS`; None if the command is not made from a claim.

    Examples
    --------
    >>> kind_of("sets"), kind_of("verify")
    ('sets', None)
    """
    return next((kind for kind, line in CLAIMS.items() if line.command == command), None)
