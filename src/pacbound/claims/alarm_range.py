"""Alarm ranges: thresholds that miss few positives and raise few false alarms, both at once.

The misses fall and the false alarms rise as the threshold falls. A claim about misses that holds at
a threshold holds at all lower ones; a claim about false alarms, at all higher ones. Each has a
share of delta, so with probability at least 1 - delta both are right (`pacbound.procedures.union`),
and then both rates are kept at every threshold from that of the false alarms up to that of the
misses. If the first is above the second there is none, and the range is refused. Any threshold
between may be chosen, in sight of everything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Any, Literal, Unpack

from pacbound.claims import false_alarms, recall, shield
from pacbound.claims.assumptions import in_plain_words
from pacbound.claims.certificate import Certificate
from pacbound.claims.claim import Cells, Claim, Procedure, Values, certify_passed
from pacbound.claims.false_alarms import FalseAlarmCertificate, rows_or_rollouts
from pacbound.claims.recall import RecallCertificate
from pacbound.claims.shield import Rate, ShieldCertificate
from pacbound.claims.tables import (
    DRAWN,
    head,
    histogram_cells,
    histograms_of,
    require_lost,
    require_total,
)
from pacbound.documents import Reader
from pacbound.errors import CertificateError, InvalidTypeError, InvalidValueError
from pacbound.fields import Field, Fields, Histogram
from pacbound.figure import Figure, Range
from pacbound.figures import Curve, Named
from pacbound.figures.thresholds import Rate as AllowedRate
from pacbound.figures.thresholds import rates_by_threshold
from pacbound.forms import DELTA, Ask, Choice, Shares, Threshold, Whole, xi_ask
from pacbound.forms import RATE as ALLOWED_RATE
from pacbound.forms import SHARE as REQUIRED_SHARE
from pacbound.procedures import union
from pacbound.procedures.threshold import TOP
from pacbound.says import Quantity, Says, Sentence, Side, Value, confidence, count, share
from pacbound.stats.arguments import real_number
from pacbound.tally.questions.flagged_scores import ROLLOUTS as ALARMED_ROLLOUTS
from pacbound.tally.questions.flagged_scores import SCORE_BY_POSITIVE
from pacbound.tally.row_options import RowOptions
from pacbound.tally.tally import Tally

# The names of the two claims.
MISSES, FALSE_ALARMS = "misses", "false-alarms"
Misses = RecallCertificate | ShieldCertificate


class AlarmRangeCertificate(Certificate):
    """With probability at least 1 - delta every threshold from `lowest` to `highest` keeps both
    claims at once: few positives (unsafe rollouts) are missed, and few negatives (safe rollouts)
    raise an alarm.

    The two claims are certificates of their own, `misses` and `false_alarms`, about the same rows,
    and share delta. Any threshold of the range may be chosen, in sight of everything. `Shield`
    takes `misses`, whose threshold is `highest`. `certify_alarm_range` makes such a certificate,
    and `load_certificate` reads one.

    A refusal has `certified` False, `lowest` +inf and `highest` -inf: no threshold is known to keep
    both. A claim of the two that is certified stays right alone.

    Attributes
    ----------
    by : Claim
        What is claimed, and how it is decided and said.
    values : mapping
        Everything that the document holds of it, by name: what was asked for, the counts and the
        range.
    provenance : Provenance
        Where the certificate comes from.
    draw : Drawn or None
        How the rows were drawn from others; None if all rows of the data were counted as they are.
    loaded : mapping or None
        The document that it was read from; None if it was made in this process.

    Examples
    --------
    >>> score = [0.9] * 300 + [0.6] * 5 + [0.1] * 695
    >>> positive = [True] * 300 + [False] * 700
    >>> found = certify_alarm_range(score, positive, target=0.95, xi=0.05, delta=0.02)
    >>> found.certified, round(found.lowest, 3), round(found.highest, 3)
    (True, 0.1, 0.9)
    >>> found.holds(0.5), found.holds(0.95)
    (True, False)
    """

    @property
    def misses(self) -> Misses:
        """The claim about the positives, or the unsafe rollouts, that raise no alarm."""
        self.require_verified()
        found: Any = self.inside[MISSES]
        kept: Misses = found
        return kept

    @property
    def false_alarms(self) -> FalseAlarmCertificate:
        """The claim about the negatives, or the safe rollouts, that raise one."""
        self.require_verified()
        found: Any = self.inside[FALSE_ALARMS]
        kept: FalseAlarmCertificate = found
        return kept

    @property
    def lowest(self) -> float:
        """The lowest threshold that keeps both claims; +inf if there is none."""
        self.require_intact()
        return float(self.values["lowest"])

    @property
    def highest(self) -> float:
        """The highest threshold that keeps both claims, +inf if no alarm need ever be raised; -inf
        if there is none.
        """
        self.require_intact()
        return float(self.values["highest"])

    def holds(self, threshold: float) -> bool:
        """Whether both claims hold at a threshold.

        Parameters
        ----------
        threshold
            An alarm is raised at or above it.

        Returns
        -------
        bool
            True from `lowest` to `highest`; never if the range is refused.

        Raises
        ------
        CertificateError
            If the certificate does not follow from its own counts.
        """
        self.require_verified()
        number = real_number(threshold, "threshold", "a threshold")
        return self.lowest <= number <= self.highest

    @cached_property
    def inside(self) -> Mapping[str, Certificate]:
        """The two certificates."""
        return {
            name: claim.certificate(by=claim, values=values, provenance=self.provenance)
            for name, (claim, values) in _both(self.values).items()
        }

    def words(self) -> str:
        """The range in words, and both claims."""
        inside = (f"\n{name}: {one.words()}" for name, one in reversed([*self.inside.items()]))
        return "\n".join([super().words(), *inside])


def _both(values: Values) -> dict[str, tuple[Claim[Any], dict[str, Any]]]:
    """The claims of a range with all that their documents would hold; false alarms first, as
    names are sorted.
    """
    procedure = CLAIM.procedures[values["procedure"]]
    shares = values["shares"] or {MISSES: 1.0, FALSE_ALARMS: 1.0}
    levels = dict(zip(shares, union.shares(values["delta"], [*shares.values()]), strict=True))
    counted = {
        "n": values["n"],
        "scope": "top",
        "drawn": values["drawn"],
        "group_thresholds": "common",
        "small_groups": "refuse",
        "looks": None,
        "tables": [{"group": None, "counts": values["counts"]}],
    }
    claims: dict[str, tuple[Any, Values]] = {
        FALSE_ALARMS: (false_alarms.CLAIM, {"xi": values["xi"]}),
        MISSES: procedure.misses(values),
    }
    return {
        name: (
            claim,
            claim.decided(
                claim.named({**counted, **asked, "delta": levels[name]}, procedure.question.kind)
            ),
        )
        for name, (claim, asked) in claims.items()
    }


def _missed_rows(values: Values) -> tuple[Any, Values]:
    return recall.CLAIM, {"target": values["target"]}


def _missed_rollouts(values: Values) -> tuple[Any, Values]:
    rate = values["rate"] or "all"
    return shield.CLAIM, {"xi": values["missed"], "rate": rate, "horizon": None}


@dataclass(frozen=True)
class RangeProcedure(Procedure):
    """What is counted, what rows are called, and the claim about those that are missed."""

    question: Any = SCORE_BY_POSITIVE
    rows: str = "rows"
    misses: Callable[[Values], tuple[Any, Values]] = _missed_rows
    # Of rollouts, misses may be counted among all: one is drawn before its outcome is looked at.
    trials: tuple[str, ...] = ("negative", "positive")

    @property
    def among(self) -> tuple[str, ...]:
        """Both outcomes, for rows: each claim has trials of its own."""
        return self.trials


ROWS = RangeProcedure(
    "alarm-range/union-bound/1",
    (*(name for name in recall.ASSUMES if name != "asked-beforehand"), "claims-beforehand"),
)
ROLLOUTS = RangeProcedure(
    "alarm-range/rollouts/1",
    (
        *(name for name in shield.ASSUMES if name != "asked-beforehand"),
        "lost-rollouts-alarm",
        "score-of-whole-rollout",
        "compared-in-float64",
        "claims-beforehand",
    ),
    question=ALARMED_ROLLOUTS,
    rows="rollouts",
    misses=_missed_rollouts,
    trials=(),
)


class AlarmRangeClaim(Claim[AlarmRangeCertificate]):
    """Misses and false alarms of the same rows."""

    kind = "alarm-range"
    command = "alarm-range"
    help = (
        "Certify the scores from which alarms may be raised, so that at most xi of the negatives "
        "raise one and few positives are missed."
    )
    question = SCORE_BY_POSITIVE
    asks = (
        xi_ask("The share of the negatives that may raise an alarm: 0.05"),
        Ask(
            "target",
            REQUIRED_SHARE,
            "Rows: the share of the positives to be flagged: 0.95",
            None,
            shown="target: the least share of the positives",
        ),
        Ask(
            "missed",
            ALLOWED_RATE,
            "Rollouts: the share that may be unsafe: 0.05",
            None,
            shown="missed: the most rollouts that may be unsafe",
        ),
        Ask(
            "rate",
            Choice(("all", "among-unsafe")),
            "Rollouts: what misses are counted among, all rollouts or the unsafe ones.",
            None,
            shown="Rollouts that missed is a share of",
        ),
        DELTA,
        Ask(
            "shares",
            Shares((MISSES, FALSE_ALARMS)),
            "How much of delta each claim gets, in proportion: misses=2,false-alarms=1",
            None,
            shown="Shares of delta",
        ),
    )
    procedures: Mapping[str, RangeProcedure] = {one.name: one for one in (ROWS, ROLLOUTS)}
    certificate = AlarmRangeCertificate
    by_groups = False

    @property
    def questions(self) -> tuple[Any, ...]:
        """Rows, or rollouts."""
        return tuple(one.question for one in self.procedures.values())

    def question_of(self, certificate: AlarmRangeCertificate) -> Any:
        """What was counted for the certificate."""
        return self.procedures[certificate.values["procedure"]].question

    def fields(self, procedure: Procedure) -> Fields:
        """The counts once, and the range that both claims leave."""
        question = self.procedures[procedure.name].question
        counts = Histogram(question.outcomes, TOP, question.lowest_cell)
        return Fields(
            (
                *head(self, procedure, self.asks),
                DRAWN,
                Field("counts", counts, counted=True),
                Field("allowed_false_alarms", Whole(-1)),
                Field("allowed_misses", Whole(-1)),
                Field("lowest", Threshold(TOP)),
                Field("highest", Threshold(TOP)),
            ),
            agree=_agree,
        )

    def require_columns(self, given: Set[str], wishes: Values) -> None:
        """Raise if the columns are not those of rows, or of rollouts, with rates of theirs."""
        wrong = rows_or_rollouts(given)
        if wrong is not None:
            raise InvalidTypeError(wrong)
        _require_rates(wishes, rollouts="unsafe" in given)

    def drawn_among(self, wishes: Values, question: Any) -> tuple[str, ...]:  # noqa: ARG002
        """Both outcomes of rows; rollouts are drawn before their outcome is looked at."""
        return (ROLLOUTS if question.kind == ALARMED_ROLLOUTS.kind else ROWS).among

    def counted(self, evidence: Tally, wishes: Values) -> dict[str, Any]:
        """The histogram, and what was asked for."""
        rollouts = evidence.kind == ALARMED_ROLLOUTS.kind
        _require_rates(wishes, rollouts=rollouts)
        procedure = ROLLOUTS if rollouts else ROWS
        if evidence.scope != "top":
            raise InvalidValueError("A range is of all rows together: count them without groups.")
        ((_, counts),) = histograms_of(evidence, procedure.question)
        return {**self.counted_values(procedure.name, evidence, wishes), "counts": counts}

    def decided(self, values: Values) -> dict[str, Any]:
        """Both claims, and the thresholds that keep both."""
        both = {name: decided for name, (_, decided) in _both(values).items()}
        alarms, misses = (both[name]["tables"][0] for name in (FALSE_ALARMS, MISSES))
        lowest, highest = alarms["threshold"], misses["threshold"]
        certified = all(one["certified"] for one in both.values()) and lowest <= highest
        procedure = self.procedures[values["procedure"]]
        return {
            **values,
            "assumes": self.assumed(procedure.assumes, values["drawn"]),
            "certified": certified,
            "allowed_false_alarms": alarms["allowed"],
            "allowed_misses": misses["allowed"],
            "lowest": lowest if certified else inf,
            "highest": highest if certified else -inf,
        }

    def says(self, certificate: AlarmRangeCertificate) -> Says:
        """The range; both claims say the rest themselves."""
        values = certificate.values
        unit = self.procedures[values["procedure"]].rows
        title = Sentence(
            f"Alarm range certificate: misses and false alarms of the same {{n}} {unit}, delta "
            "{delta}",
            {"n": count(certificate.n), "delta": DELTA.said(values["delta"])},
        )
        sides: dict[str, Side] = {"xi": "up", "target": "down", "missed": "up"}
        filled: dict[str, Value] = {
            name: share(values[name], side)
            for name, side in sides.items()
            if values[name] is not None
        }
        found = "at least {often target} positives raise an alarm"
        alarms = "at most {often xi} negatives do"
        heading = "Alarm range: at least {target} found, at most {xi} false alarms"
        if values["target"] is None:
            found = (
                "at most {often missed} rollouts are unsafe"
                if values["rate"] != "among-unsafe"
                else "at most {often missed} unsafe rollouts raise no alarm"
            )
            alarms = "at most {often xi} safe rollouts raise an alarm"
            heading = "Alarm range: at most {missed} missed, at most {xi} false alarms"
        plain = in_plain_words(certificate, f"{found}, and {alarms}", filled, unit)
        called = Sentence(heading, filled)
        if not certificate.certified:
            return Says(title, called, plain, refused=(Sentence(*_why(certificate)),))
        ends = {
            "lowest": Quantity(values["lowest"], "threshold", "up"),
            "highest": Quantity(values["highest"], "threshold", "down"),
            "confidence": confidence(values["delta"]),
        }
        up_to = "on, or never raise one" if values["highest"] == inf else "up to {highest}"
        return Says(
            title,
            called,
            plain,
            None,
            Sentence(f"Use any threshold from {{lowest}} {up_to}, and alarm from there on.", ends),
            Sentence(
                f"With probability at least {{confidence}} over the draw of these {unit}, both "
                "claims below hold at all of these thresholds.",
                ends,
            ),
        )

    def says_nothing(self, certificate: AlarmRangeCertificate) -> str | None:
        """Why the rows tell nothing about one of its claims; None if they tell about both."""
        found = (member.says_nothing() for member in certificate.inside.values())
        return next((why for why in found if why is not None), None)

    def figures(self, certificate: AlarmRangeCertificate) -> Iterable[Figure]:
        """False alarms and misses by threshold, each as its claim counts them."""
        alarms, misses = certificate.false_alarms, certificate.misses
        curve = alarms.alarm_curve()
        if isinstance(misses, RecallCertificate):
            words, allowed, among = ("negatives", "positives missed"), 1 - misses.target, 1.0
        else:
            of_all = misses.rate == "all"
            words = "safe rollouts", "unsafe rollouts missed" + (", of all" if of_all else "")
            allowed, among = misses.xi, alarms.positives / misses.n if of_all else 1.0
        rates = [
            AllowedRate(
                Curve(f"{words[0]} with an alarm", curve.false_alarms),
                Named(alarms.xi, f"{share(alarms.xi).text} of them allowed"),
            ),
            AllowedRate(
                Curve(words[1], (1 - curve.found) * among),
                Named(allowed, f"{share(allowed).text} allowed"),
            ),
        ]
        ends = certificate.lowest, min(certificate.highest, 1.0)
        lowest, highest = (
            Quantity(ends[0], "threshold", "up"),
            Quantity(ends[1], "threshold", "down"),
        )
        yield rates_by_threshold(
            curve.thresholds,
            rates,
            title="False alarms and misses by threshold",
            caption="Lines show what was seen. "
            + (
                "Both levels are certified in the range."
                if certificate.certified
                else "Nothing is certified."
            ),
            certified=Range(*ends, "certified", f"certified: {lowest.text} to {highest.text}")
            if certificate.certified
            else None,
        )

    def watch(self, certificate: AlarmRangeCertificate) -> str:  # noqa: ARG002
        """Each claim has bets of its own."""
        return (
            "its two claims are watched apart. Monitor certificate.misses and "
            "certificate.false_alarms, each with its share of delta, or pass the range to "
            "BundleMonitor"
        )

    def cells(self, certificate: AlarmRangeCertificate) -> Cells:
        """How many rows of each outcome are in each cell of the score."""
        return histogram_cells([{"group": None, **certificate.values}], TOP)

    def numbers(self, certificate: AlarmRangeCertificate) -> list[tuple[str, str]]:
        """What was asked for, and the range."""
        lowest = Quantity(certificate.values["lowest"], "threshold", "up")
        highest = Quantity(certificate.values["highest"], "threshold", "down")
        ends = [("Lowest threshold", lowest.text), ("Highest threshold", highest.text)]
        return [*super().numbers(certificate), *ends]


def _agree(part: Reader, values: Values) -> None:
    """Counts add up to n, and the rates are those of rows, or of rollouts."""
    require_total(part, values, [values["counts"]], "counts")
    rollouts = values["procedure"] == ROLLOUTS.name
    if rollouts:
        require_lost(part, ALARMED_ROLLOUTS, values["counts"])
    _require_rates(values, rollouts=rollouts, place=part.place("rate"))


def _require_rates(asked: Values, *, rollouts: bool, place: str = "") -> None:
    given = {name for name in ("target", "missed", "rate") if asked[name] is not None}
    fits = "missed" in given and "target" not in given if rollouts else given == {"target"}
    if fits:
        return
    why = (
        "For rollouts pass missed, the share of them that may be unsafe under the shield, and no "
        "target."
        if rollouts
        else "For rows pass target, the share of the positives that must raise an alarm, and "
        "neither missed nor rate."
    )
    if place:
        raise CertificateError(f"{place} does not fit. {why}")
    raise InvalidTypeError(why)


def _why(certificate: AlarmRangeCertificate) -> tuple[str, dict[str, Quantity]]:
    """Why there is no range, as a template and its quantities."""
    refused = [name for name, one in certificate.inside.items() if not one.certified]
    if refused:
        return f"{' and '.join(refused)} alone cannot be certified, see below.", {}
    seen = (
        "On these rows some threshold keeps both rates as they were seen, so more rows may help."
        if _is_seen(certificate)
        else "On these rows no threshold keeps both rates even as they were seen: it takes a "
        "better score, or other rates."
    )
    lowest, highest = (
        Quantity(certificate.inside[name].values["tables"][0]["threshold"], "threshold", "exact")
        for name in (FALSE_ALARMS, MISSES)
    )
    return (
        "No threshold keeps both. To miss few it must be at most {highest}, and to raise few "
        f"false alarms at least {{lowest}}. {seen}",
        {"lowest": lowest, "highest": highest},
    )


def _is_seen(certificate: AlarmRangeCertificate) -> bool:
    """Whether some threshold keeps both rates as these rows have them. It is not certified."""
    alarms: Any = certificate.inside[FALSE_ALARMS]
    curve, values = alarms.alarm_curve(), certificate.values
    missed = 1.0 - curve.found
    allowed = values["missed"] if values["target"] is None else 1.0 - values["target"]
    if values["target"] is None and values["rate"] != "among-unsafe":
        missed = missed * alarms.positives / certificate.n
    return bool(((missed <= allowed) & (curve.false_alarms <= values["xi"])).any())


CLAIM = AlarmRangeClaim()


def certify_alarm_range(  # noqa: PLR0913
    score: Any = None,
    positive: Any = None,
    *,
    unsafe: Any = None,
    xi: float,
    target: float | None = None,
    missed: float | None = None,
    rate: Rate | None = None,
    delta: float,
    shares: Mapping[Literal["misses", "false-alarms"], float] | None = None,
    data: Any = None,
    **rows: Unpack[RowOptions],
) -> AlarmRangeCertificate:
    """The thresholds at which at most a share `xi` of the negatives raises an alarm *and* at least
    a share `target` of the positives does, with probability at least 1 - `delta`.

    Both claims hold at every threshold of the range at once, so that any of them may be chosen, in
    sight of everything. The rows must be independent draws from the data the model will meet in
    use, untouched by training or model choice, and not chosen for labelling by their score. `xi`,
    `target`, `delta` and `shares` are fixed beforehand. If no threshold keeps both, the range is
    refused.

    With `unsafe` in place of `positive`, rows are rollouts of a policy without its shield, as in
    `certify_shield` and `certify_false_alarms`, and `missed` stands in place of `target`.

    Parameters
    ----------
    score
        The score of each row, 0 to 1, high means positive. For rollouts, the maximum of the danger
        over the whole of a safe one. With `data`, the name of its column.
    positive
        Whether each row is positive: booleans, or numbers that are 0 or 1.
    unsafe
        In place of `positive`, for rollouts: whether each has an un-recoverable state.
    xi
        The share of the negatives that may raise an alarm: 0.05
    target
        Rows: the share of the positives to be flagged: 0.95
    missed
        Rollouts: the share that may be unsafe: 0.05
    rate
        Rollouts: what `missed` is a share of, "all" rollouts (if left out) or "among-unsafe".
    delta
        The chance that the claim is wrong: 0.01
    shares
        How much of delta each claim gets, in proportion: positive numbers for "misses" and
        "false-alarms". Equal shares if left out.
    data
        A frame (pandas, Polars, PyArrow, DuckDB, PySpark), a path, several paths, or a Tally.
    **rows
        How rows are read and drawn, see `RowOptions`.

    Returns
    -------
    AlarmRangeCertificate
        The range, `lowest` to `highest`, and the two certificates, `misses` and `false_alarms`. A
        refusal has `certified` False, `lowest` +inf and `highest` -inf; its summary says why.

    Raises
    ------
    InvalidValueError, InvalidTypeError
        If scores or flags cannot be what they should be; the message names the value, its row and
        the remedy. If `target` is missing for rows, or `missed` for rollouts.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> positive = rng.random(20_000) < 0.02
    >>> score = np.where(positive, rng.beta(6, 2, size=20_000), rng.beta(1, 6, size=20_000))
    >>> found = certify_alarm_range(score, positive, xi=0.1, target=0.9, delta=0.01)
    >>> print(f"any threshold from {found.lowest:.3f} to {found.highest:.3f}")
    any threshold from 0.325 to 0.476

    To ask for too much of this score is refused:

    >>> certify_alarm_range(score, positive, xi=0.01, target=0.99, delta=0.01).certified
    False
    """
    return certify_passed(CLAIM, locals())
