"""What can be certified: one module for each kind, and the only list of kinds.

A line here and a module of that name (with _ for -) that has a `CLAIM` are all it takes. The line
is what `pacbound --help` says, so that listing the commands loads no module.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

CLAIMS: dict[str, str] = {
    "sets": "A set of labels for every row: few sets miss the true one.",
}
"""The kinds, each with its line in `pacbound --help`."""


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
