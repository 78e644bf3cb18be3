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


# The kinds that a command certifies, each with its line.
CLAIMS: dict[str, ClaimLine] = {
    "abstention": ClaimLine("abstain", "The confidence at which to answer: few answers are wrong."),
    "calibration": ClaimLine(
        "calibrate", "An interval for the true confidence of every bin of scores."
    ),
    "cascade": ClaimLine("cascade", "Where fast models may answer for a slow one: little is lost."),
    "recall": ClaimLine("recall", "The score at which to flag: few positives are missed."),
    "false-alarms": ClaimLine(
        "false-alarms", "The score at which to flag: few negatives are flagged."
    ),
    "shield": ClaimLine("shield", "The danger at which a policy must brake: few rollouts crash."),
    "pass-rate": ClaimLine("rate", "That enough of all rows pass, whatever passing means."),
    "forks": ClaimLine("forks", "The danger at which to brake, from rollouts that were forked."),
    "precision": ClaimLine("precision", "The score at which to flag: few flags are in vain."),
    "sets": ClaimLine("sets", "A set of labels for every row: few sets miss the true one."),
    "replacement": ClaimLine("compare", "Whether a new model may replace the old one."),
}

# All kinds. A batch is answered, not counted, and a bundle is made of other certificates.
KINDS: tuple[str, ...] = (*CLAIMS, "batch", "bundle")


def claims_of(question: str) -> list[str]:
    """The kinds that can be certified from a tally of a question, that of its own name first.

    Parameters
    ----------
    question
        The kind of a tally.

    Returns
    -------
    list of str
        Some of `CLAIMS`; none if there is no such claim.

    Examples
    --------
    >>> claims_of("recall")[:2]
    ['recall', 'false-alarms']
    """
    counted = {kind: [one.kind for one in claim_of(kind).questions] for kind in CLAIMS}
    found = [kind for kind, questions in counted.items() if question in questions]
    return sorted(found, key=lambda kind: counted[kind][0] != question or kind != question)


def claim_of(kind: str) -> Any:
    """The claim of a kind.

    Parameters
    ----------
    kind
        One of `KINDS`.

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
