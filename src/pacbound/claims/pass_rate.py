"""Pass rates: of all rows enough pass, whatever a row is and passing means.

There is no score, so all rows are in the one cell below the grid, where a threshold claim either
holds or is refused. `threshold` records under which shield rollouts were driven; it is not tested.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf, isinf
from typing import Any, Unpack

from pacbound.claims.assumptions import SAMPLE
from pacbound.claims.claim import Values, certify
from pacbound.claims.rates import Rate
from pacbound.claims.threshold import ThresholdClaim, ThresholdProcedure
from pacbound.claims.threshold_certificate import ThresholdCertificate
from pacbound.claims.threshold_words import ClaimWords
from pacbound.documents import Reader
from pacbound.forms import DELTA, Ask, Number, target_ask
from pacbound.says import Side, exact
from pacbound.tally.questions.passed import PASSED
from pacbound.tally.row_options import RowOptions


class Driven(Number):
    """The threshold that a shield was set to."""

    def legal(self, value: float) -> bool:
        """Whether a shield can be set to it."""
        return 0 <= value <= 1 or isinf(value)

    def expected(self, name: str) -> str:  # noqa: ARG002
        """What a shield can be set to, in words."""
        return "0 to 1, -inf if it always braked, +inf if it never did"

    def read(self, part: Reader, key: str) -> Any:
        """The number, or nothing; infinite ones are text in a document."""
        return None if part.raw(key) is None else part.number(key)

    def said(self, value: Any, side: Side) -> str:  # noqa: ARG002
        """What the shield does."""
        if value == -inf:
            return "Hand over to the backup at once; it keeps control until reset."
        if value == inf:
            return "Hand over to the backup only where a reading of the danger fails."
        return (
            f"Hand over to the backup once the danger reaches {exact(value)}; it keeps control "
            "until reset."
        )


class RateCertificate(ThresholdCertificate):
    """With probability at least 1 - delta at least a share target of all rows pass, in each group
    where there are groups.

    `certify_rate` makes such a certificate, and `load_certificate` reads one. `pacbound.Shield`
    takes one of rollouts that were driven under a shield (`threshold=`), as a shield of that
    threshold and of no lower one.

    Attributes
    ----------
    by : Claim
        What is claimed, and how it is decided and said.
    values : mapping
        Everything that the document holds of it, by name: what was asked for and the counts.
    provenance : Provenance
        Where the certificate comes from.
    draw : Drawn or None
        How the rows were drawn from others; None if all rows of the data were counted as they are.
    loaded : mapping or None
        The document that it was read from; None if it was made in this process.

    Examples
    --------
    >>> certificate = certify_rate([True] * 580 + [False] * 20, target=0.95, delta=0.05)
    >>> certificate.certified, certificate.number("passed"), certificate.allowed
    (True, 580, 20)
    """

    target: float

    @property
    def is_shield(self) -> bool:  # type: ignore[override]
        """Whether it is about rollouts under a shield of one threshold."""
        return self.values.get("threshold") is not None

    @property
    def threshold(self) -> float:
        """The threshold that the rollouts were driven under: -inf (always brake) if the claim is
        refused, NaN if none was recorded.
        """
        self.require_intact()
        driven = self.values.get("threshold")
        return float("nan") if driven is None else float(driven) if self.certified else -inf


WORDS = ClaimWords(
    about="{n} rows",
    heading="At least {target} pass",
    plain="at least {often target} rows pass",
    rule="{threshold}",
    promise="at least {target} of all rows pass",
    seen="{events} of {trials} did not pass (limit: {allowed}).",
    instead="Nothing is certified.",
    group="{group}: {events} of {trials} did not pass (limit: {allowed}).",
    refusals={
        "none": "There are no rows, so nothing is known.",
        "too-few": "{trials} rows cannot certify {target}, even if all pass.",
        "unavoidable": "{unavoidable} of {trials} rows did not pass; {allowed} are allowed.",
    },
)
ROWS = ThresholdProcedure(
    "pass-rate/binomial/1",
    (*SAMPLE, "missing-did-not-pass"),
    rate=Rate("all", "failed", unavoidable_first=True),
    words=WORDS,
    seen_as=("passed", "failed"),
)
DRIVEN = replace(
    ROWS,
    name="pass-rate/under-shield/1",
    assumes=(
        "independent-rows",
        "rollouts-under-shield",
        "asked-beforehand",
        "driven-beforehand",
        "every-driven-rollout-counts",
        "only-this-threshold",
        "shield-latches",
    ),
    asks=("threshold",),
)


class RateClaim(ThresholdClaim[RateCertificate]):
    """Enough of all rows pass."""

    def as_asked(self, wishes: Values, question: Any) -> Any:
        """Under a shield a row is a rollout: a log with a row for each step is refused."""
        return question if wishes["threshold"] is None else replace(question, of_rollouts=True)


CLAIM = RateClaim(
    kind="pass-rate",
    command="rate",
    help="Certify that at least the target share of all rows pass.",
    question=PASSED,
    asks=(
        target_ask("The share of the rows that must pass: 0.95"),
        DELTA,
        Ask(
            "threshold",
            Driven("the threshold of a shield", -inf, inf, "[]"),
            "The threshold of the shield under which rollouts were driven; it is recorded, and not "
            "tested.",
            None,
            shown="Threshold of the shield",
        ),
    ),
    procedures={one.name: one for one in (ROWS, DRIVEN)},
    curves=(),
    certificate=RateCertificate,
    applied=None,
    scored=False,
)


def certify_rate(
    passed: Any = None,
    *,
    target: float,
    delta: float,
    threshold: float | None = None,
    groups: Any = None,
    data: Any = None,
    **rows: Unpack[RowOptions],
) -> RateCertificate:
    """That at least a share `target` of all rows pass, in every group where there are groups, with
    probability at least 1 - `delta`.

    The rows must be independent draws from what will be met in use, untouched by training or model
    choice, and `target`, `delta`, the groups and the number of rows were fixed without them. Every
    row that was drawn counts: one without an outcome did not pass. What is certified is `target`;
    the share that passed among these rows is not.

    Parameters
    ----------
    passed
        Whether each row passed: booleans, or numbers that are 0 or 1; None or NaN where a row has
        no outcome, which counts as not passed. With `data`, the name of its column.
    target
        The share of the rows that must pass: 0.95
    delta
        The chance that the claim is wrong: 0.01
    threshold
        Where rows are rollouts under a shield, the threshold that it was set to. It is recorded,
        and not tested: the claim is about a shield of this threshold, and of no lower one, and
        `Shield` takes the certificate. A log with a row for each step is refused.
    groups
        The group of each row, or a mapping from names to truth values where groups overlap. Every
        group must keep the rate, or the claim is refused.
    data
        A frame (pandas, Polars, PyArrow, DuckDB, PySpark), a path, several paths, or a Tally.
    **rows
        How rows are read and drawn, see `RowOptions`.

    Returns
    -------
    RateCertificate
        The counts, and whether they show it. A refusal has `certified` False; `summary()` says why,
        and how many rows would do.

    Raises
    ------
    InvalidValueError, InvalidTypeError
        If outcomes cannot be what they should be; the message names the value, its row and the
        remedy.

    Examples
    --------
    >>> print(certify_rate([True] * 580 + [False] * 20, target=0.95, delta=0.05))
    Pass rate certificate: 600 rows, target 95 %, delta 5 %
    In the long run, on data like these, at least 95 of 100 rows pass (95 % confidence).
    With probability at least 95 % over the draw of these rows, at least 95 % of all rows pass.
    On these rows: 20 of 600 did not pass (limit: 20).
    """
    asked = {"target": target, "delta": delta, "threshold": threshold}
    return certify(CLAIM, {"passed": passed, "groups": groups}, asked, data, rows)
