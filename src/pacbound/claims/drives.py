"""Drives: rollouts with the shield on, at one threshold after the other, the most cautious first.

A drive at a threshold passes if the upper bound on its rate of unsafe rollouts, at the full delta,
is at most xi. The walk ends at the first drive that fails, and the last that passed is certified.
Let the next threshold and the number of its rollouts follow from all earlier drives: given these,
the first threshold whose true rate is above xi passes with a chance of at most delta, and unless it
does nothing false is claimed. So no correction is needed. Nothing is simulated and no label of
recoverability is needed, but a lower threshold than the certified one is not covered: a backup that
begins earlier may fail more often.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import inf
from typing import Any, Final, Unpack

import numpy as np

from pacbound.claims.assumptions import in_plain_words
from pacbound.claims.certificate import Certificate
from pacbound.claims.claim import Cells, Claim, Procedure, Told, Values, certify_passed
from pacbound.claims.shield import Horizon, told_by_task
from pacbound.claims.tables import head
from pacbound.documents import Json, Reader, encode_float
from pacbound.errors import CertificateError, InvalidValueError
from pacbound.fields import Field, Fields, Tables
from pacbound.figure import Figure
from pacbound.figures.thresholds import rates_of_drives
from pacbound.forms import DELTA, Ask, Choice, Threshold, Whole, xi_ask
from pacbound.procedures.threshold import allowed_events, least_without_event
from pacbound.says import Quantity, Says, Sentence, Value, confidence, count, exact, share
from pacbound.tally.questions.drives import DRIVES, MOST_DRIVES
from pacbound.tally.row_options import RowOptions
from pacbound.tally.tally import Tally, require_is_tally
from pacbound.watch import ColumnWatch

NAME: Final = "drives/fixed-sequence/1"
PASSED, FAILED, UNTESTED = "passed", "failed", "not tested"


# What a shield does at a threshold that no danger is compared with.
_RULES: Final = {
    -inf: "Hand over to the backup at once, whatever the danger; it keeps control until reset.",
    inf: "Hand over to the backup only where a reading of the danger fails.",
}


class DrivesCertificate(Certificate):
    """With probability at least 1 - delta at most a share xi of the rollouts is unsafe under the
    shield at `threshold`, and at no other threshold.

    `certify_drives` makes such a certificate, and `load_certificate` reads one; `pacbound.Shield`
    takes it. A refusal has `certified` False and the threshold -inf: a shield then always brakes,
    which is not certified either.

    Attributes
    ----------
    by : Claim
        What is claimed, and how it is decided and said.
    values : mapping
        Everything that the document holds of it, by name: what was asked for, the counts of each
        drive and its verdict.
    provenance : Provenance
        Where the certificate comes from.
    draw : None
        Rollouts are counted as they were driven.
    loaded : mapping or None
        The document that it was read from; None if it was made in this process.

    Examples
    --------
    >>> threshold = [0.2] * 100 + [0.4] * 100
    >>> unsafe = [False] * 190 + [True] * 10
    >>> certificate = certify_drives(threshold, unsafe, xi=0.1, delta=0.05)
    >>> certificate.certified, certificate.threshold, certificate.driven
    (True, 0.2, (0.2, 0.4))
    """

    is_shield = True

    @property
    def xi(self) -> float:
        """The share of the rollouts that may be unsafe."""
        return float(self.values["xi"])

    @property
    def horizon(self) -> int | None:
        """The most steps of a rollout, if it was said."""
        found = self.values["horizon"]
        return None if found is None else int(found)

    @property
    def threshold(self) -> float:
        """The only danger that a shield may fire at; -inf if the claim is refused."""
        self.require_intact()
        return float(self.values["threshold"])

    @property
    def drives(self) -> tuple[Values, ...]:
        """Each drive in order: `threshold`, `rollouts`, `unsafe` (with those that were `lost`),
        how many are `allowed`, and the `verdict`.
        """
        return tuple(self.values["drives"])

    @property
    def driven(self) -> tuple[float, ...]:
        """The thresholds that were driven, in order."""
        return tuple(drive["threshold"] for drive in self.drives)


_DRIVES = Tables(
    Fields(
        (
            Field("threshold", Threshold(), counted=True),
            Field("rollouts", Whole(1), counted=True),
            Field("unsafe", Whole(), counted=True),
            Field("lost", Whole(), counted=True),
            Field("allowed", Whole(-1)),
            Field("verdict", Choice((PASSED, FAILED, UNTESTED))),
        )
    )
)


class DrivesClaim(Claim[DrivesCertificate]):
    """At most xi of the rollouts are unsafe under the shield at the last threshold that passed."""

    kind = "drives"
    command = "drives"
    help = (
        "Certify the last threshold of a shield at which few rollouts were unsafe, from rollouts "
        "with the shield on."
    )
    question = DRIVES
    certificate = DrivesCertificate
    by_groups = False
    asks = (
        xi_ask("The share of the rollouts that may be unsafe: 0.1"),
        DELTA,
        Ask(
            "horizon",
            Horizon(1),
            "The most steps of a rollout; the claim names it. Taken from the file if it is an .npz "
            "of `ShieldedRollouts.save`.",
            None,
            shown="Rollouts",
        ),
    )
    procedures: Mapping[str, Procedure] = {
        NAME: Procedure(
            NAME,
            (
                "rollouts-under-shield",
                "asked-beforehand",
                "drives-beforehand",
                "every-driven-rollout-counts",
                "only-this-threshold",
                "shield-latches",
            ),
        )
    }

    def told(self, data: Any) -> Told:
        """What drove, and for how many steps, if all files keep it; it must be the same."""
        return told_by_task(data)

    def fields(self, procedure: Procedure) -> Fields:
        """The drives in order, and the threshold that is certified."""
        return Fields(
            (
                *head(self, procedure, self.asks),
                Field("drives", _DRIVES, counted=True),
                Field("threshold", Threshold()),
            ),
            agree=_agree,
        )

    def counted(self, evidence: Tally, wishes: Values) -> dict[str, Any]:
        """The rollouts of each drive, and what was asked for."""
        require_is_tally(evidence)
        if evidence.kind != DRIVES.kind or not evidence.rows:
            raise InvalidValueError(
                f"{evidence!r} is not a tally of drives with rollouts: count with threshold and "
                "unsafe."
            )
        seen = [
            (float(name), evidence.counts[evidence.cells[:, 0] == place].sum(axis=0).tolist())
            for place, name in enumerate(evidence.groups)
        ]
        drives = [
            {"threshold": g, "rollouts": safe + bad + lost, "unsafe": bad + lost, "lost": lost}
            for g, (safe, bad, lost) in sorted(seen)
        ]
        asked = {"kind": self.kind, "procedure": NAME, "n": evidence.rows}
        return {**wishes, **asked, "drives": drives}

    def decided(self, values: Values) -> dict[str, Any]:
        """The verdict on each drive, up to the first that fails, and the last that passed."""
        drives, threshold, ended = [], -inf, False
        for drive in values["drives"]:
            allowed = allowed_events(drive["rollouts"], rate=values["xi"], delta=values["delta"])
            verdict = UNTESTED if ended else PASSED if drive["unsafe"] <= allowed else FAILED
            ended = verdict != PASSED
            threshold = drive["threshold"] if verdict == PASSED else threshold
            drives.append({**drive, "allowed": allowed, "verdict": verdict})
        return {
            **values,
            "assumes": self.procedures[values["procedure"]].assumes,
            "certified": drives[0]["verdict"] == PASSED,
            "drives": drives,
            "threshold": threshold,
        }

    # ---- what engines read

    def says(self, certificate: DrivesCertificate) -> Says:
        """The certificate in words."""
        filled = self._filled(certificate)
        drives = "drive" if len(certificate.drives) == 1 else "drives"
        title = Sentence(
            f"Drives certificate: {{n}} rollouts in {{drives}} {drives}, xi {{xi}}, "
            "delta {delta}",
            filled,
        )
        table = tuple(_table(certificate.drives))
        caption = Sentence("On these rollouts, in the order driven")
        heading = Sentence("Shield driven with at most {xi} unsafe", filled)
        plain = in_plain_words(
            certificate, "at most {often xi} rollouts{horizon} are unsafe", filled, "rollouts"
        )
        if not certificate.certified:
            why = self._refused(certificate, filled)
            return Says(title, heading, plain, refused=why, table=table, caption=caption)
        rule = _RULES.get(
            certificate.values["threshold"],
            "Hand over to the backup once the danger reaches {threshold}; it keeps control until "
            "reset.",
        )
        promise = (
            "With probability at least {confidence} over the draw of these rollouts, at most {xi} "
            "of all rollouts{horizon} are then unsafe."
        )
        notes = (Sentence(text, filled) for text in _notes(certificate))
        return Says(
            title,
            heading,
            plain,
            None,
            Sentence(rule, filled),
            Sentence(promise, filled),
            table=table,
            caption=caption,
            notes=tuple(notes),
        )

    def _filled(self, certificate: DrivesCertificate) -> dict[str, Value]:
        values, last = certificate.values, _ended(certificate.drives)
        asked = {ask.name: ask.said(values[ask.name]) for ask in self.asks}
        return {
            **asked,
            "horizon": "" if certificate.horizon is None else asked["horizon"],
            "n": count(certificate.n),
            "drives": count(len(certificate.drives)),
            "confidence": confidence(certificate.delta),
            "threshold": Quantity(values["threshold"], "threshold", "exact"),
            "failed": Quantity(last["threshold"], "threshold", "exact"),
            "rollouts": count(last["rollouts"]),
            "unsafe": count(last["unsafe"]),
            "allowed": count(max(0, last["allowed"])),
            "lost": count(sum(drive["lost"] for drive in certificate.drives)),
        }

    def _refused(
        self, certificate: DrivesCertificate, filled: Mapping[str, Value]
    ) -> tuple[Sentence, ...]:
        first = certificate.drives[0]
        needed = least_without_event(certificate.xi, certificate.delta) if certificate.xi else None
        if not certificate.xi:
            why = "No number of rollouts can certify xi = 0."
        elif first["allowed"] < 0:
            why = (
                "{rollouts} rollouts at {failed} cannot certify {xi}, even if none is unsafe. "
                "{needed} would do if none is; plan for more."
            )
        else:
            why = (
                "The first drive, at {failed}, failed: {unsafe} of {rollouts} rollouts were "
                "unsafe (limit: {allowed})."
            )
        return (
            Sentence(why, {**filled, "needed": count(needed or 0)}),
            Sentence(
                "A shield then always brakes, which is not certified either. To drive again, at "
                "whatever threshold, is another claim: its delta adds to this one."
            ),
            Sentence("A refusal does not show that the policy is unsafe."),
        )

    def figures(self, certificate: DrivesCertificate) -> Iterable[Figure]:
        """The share of unsafe rollouts of each drive, and the most that would have passed."""
        drives = certificate.drives
        yield rates_of_drives(
            certificate.driven,
            [drive["unsafe"] for drive in drives],
            [drive["rollouts"] for drive in drives],
            [drive["allowed"] for drive in drives],
            [drive["verdict"] for drive in drives],
            xi=certificate.xi,
        )

    def watch(self, certificate: DrivesCertificate) -> ColumnWatch:
        """Whether rollouts under the shield are unsafe, at the certified threshold."""
        text = "at most {xi} of the rollouts are unsafe"
        return ColumnWatch(
            "A monitored shield",
            "unsafe",
            rate=certificate.xi,
            claimed=str(Sentence(text, {"xi": share(certificate.xi, "up")})),
            outcomes=("safe", "unsafe"),
        )

    def thresholds(self, certificate: DrivesCertificate) -> dict[str, Json]:
        """The threshold."""
        return {"threshold": encode_float(certificate.values["threshold"])}

    def cells(self, certificate: DrivesCertificate) -> Cells:
        """The rollouts of each drive."""
        return {
            f"threshold {exact(drive['threshold'])}": {
                name: drive[name] for name in ("rollouts", "unsafe", "lost")
            }
            for drive in certificate.drives
        }

    def numbers(self, certificate: DrivesCertificate) -> list[tuple[str, str]]:
        """What was asked for and decided."""
        rows, *asked = super().numbers(certificate)
        return [
            ("Rollouts driven", rows[1]),
            *asked,
            ("Drives", f"{len(certificate.drives):,}"),
            ("Threshold", Quantity(certificate.values["threshold"], "threshold", "exact").text),
        ]


def _agree(part: Reader, values: Values) -> None:
    """Thresholds rise, and the rollouts of all drives are n."""
    drives = values["drives"]
    thresholds = np.array([drive["threshold"] for drive in drives])
    rising = len(drives) <= MOST_DRIVES and bool((thresholds[1:] > thresholds[:-1]).all())
    fitting = all(drive["lost"] <= drive["unsafe"] <= drive["rollouts"] for drive in drives)
    if not rising or not fitting:
        raise CertificateError(
            f"{part.place('drives')}: expected thresholds that rise, and no more unsafe or lost "
            "rollouts than were driven."
        )
    total = sum(drive["rollouts"] for drive in drives)
    if total != values["n"]:
        raise CertificateError(
            f"{part.place('drives')} hold {total} rollouts: expected n = {values['n']}."
        )


def _ended(drives: Sequence[Values]) -> Values:
    """The drive that failed, or the last one."""
    return next((drive for drive in drives if drive["verdict"] == FAILED), drives[-1])


def _table(drives: Sequence[Values]) -> Iterable[tuple[str, ...]]:
    yield "threshold", "rollouts", "unsafe", "allowed", "verdict"
    for drive in drives:
        numbers = (f"{drive[name]:,}" for name in ("rollouts", "unsafe"))
        allowed = "none" if drive["allowed"] < 0 else f"{drive['allowed']:,}"
        limit = Quantity(drive["threshold"], "threshold", "exact").text
        yield limit, *numbers, allowed, drive["verdict"]


def _notes(certificate: DrivesCertificate) -> Iterable[str]:
    drives = certificate.drives
    if certificate.values["threshold"] == -inf:
        yield "Only to brake at once is certified. No threshold of the danger is covered."
    else:
        yield (
            "Only {threshold} is certified. A lower threshold is not covered: a backup that begins "
            "earlier may fail more often. Nor is one that was not driven."
        )
    if _ended(drives)["verdict"] == FAILED:
        yield (
            "The drive at {failed} failed: {unsafe} of {rollouts} rollouts were unsafe (limit: "
            "{allowed}). Nothing more can be added to this claim, that threshold included."
        )
    else:
        yield (
            "Every drive passed. A higher threshold may be driven next and added, with a number of "
            "rollouts that is fixed before; this threshold stays certified whatever comes."
        )
    if any(drive["verdict"] == UNTESTED for drive in drives):
        yield "What was driven after it was not tested."
    if any(drive["lost"] for drive in drives):
        yield "{lost} rollouts without an outcome count as unsafe."


CLAIM = DrivesClaim()


def certify_drives(
    threshold: Any = None,
    unsafe: Any = None,
    *,
    xi: float,
    delta: float,
    horizon: int | None = None,
    data: Any = None,
    **rows: Unpack[RowOptions],
) -> DrivesCertificate:
    """The last threshold of a shield that passed its drive: at most a share `xi` of rollouts is
    unsafe under the shield at that threshold, with probability at least 1 - `delta`.

    A drive is a number of rollouts with the shield *on*, at one threshold. Begin with the most
    cautious threshold, and go up. A drive passes if few enough of its rollouts are unsafe; the
    first that fails ends the walk, and the last that passed is certified, at the full `delta`. No
    simulator is needed, nothing is restored and no state is labelled: a log of real rollouts will
    do. The rollouts are independent draws from what will be met in use, with the same policy,
    backup and danger model, and every rollout that was started counts.

    The next threshold, and how many rollouts it gets, may be chosen after the drives before it, but
    before its own first rollout. A drive may be ended early as failed, never as passed: the
    rollouts that it still was to have are entered without an outcome, and count as unsafe. After a
    failure nothing more is tested: driving the failed threshold again, pooled or fresh, would break
    the guarantee. Where all thresholds were declared beforehand, the same seeds may be driven at
    each; otherwise the rollouts of every drive are new.

    Only the certified threshold is claimed. A lower one brakes earlier, and a backup that begins
    earlier may fail more often. `certify_shield` covers all lower ones, from labels of
    recoverability.

    Parameters
    ----------
    threshold
        The threshold that the shield was set to in each rollout, in the order driven. 0 to 1; -inf
        for a shield that always brakes, +inf for the policy alone but where a reading of the danger
        fails. It rises from drive to drive. A threshold that was skipped is not claimed. Numbers
        count at their exact value: a column of float32 holds 0.30000001192092896 where 0.3 was
        meant, and that is certified. With `data`, the name of its column.
    unsafe
        Whether each rollout was unsafe; one without an outcome was lost, and is unsafe. It is
        missing as None, NaN, or an empty cell.
    xi
        The share of the rollouts that may be unsafe: 0.1
    delta
        The chance that the claim is wrong: 0.01
    horizon
        The most steps of a rollout, which then stands in the claim. `ShieldedRollouts.certify`
        fills it in, and `data` that was saved as .npz says it.
    data
        A frame (pandas, Polars, PyArrow), a path, several paths in the order driven, or a Tally.
        Frames of DuckDB and Spark have no order, and are refused.
    **rows
        How rows are read, see `RowOptions`. Rollouts are not drawn: no clusters, no weights.

    Returns
    -------
    DrivesCertificate
        The threshold, with the counts of each drive. A refusal has `certified` False and the
        threshold -inf; `summary()` says why.

    Raises
    ------
    InvalidValueError, InvalidTypeError
        If a threshold is lower than the one before it, so that it was driven again or the order is
        another; if a value cannot be what it should be. The message names the value, its row and
        the remedy.

    Examples
    --------
    300 rollouts at each of three thresholds, of which the last fails:

    >>> threshold = np.repeat([0.3, 0.5, 0.7], 300)
    >>> unsafe = np.arange(900) % 300 < np.repeat([5, 16, 40], 300)
    >>> certificate = certify_drives(threshold, unsafe, xi=0.1, delta=0.01)
    >>> print(certificate.summary())
    Drives certificate: 900 rollouts in 3 drives, xi 10 %, delta 1 %
    In the long run, in runs like these, at most 10 of 100 rollouts are unsafe (99 % confidence).
    Hand over to the backup once the danger reaches 0.5; it keeps control until reset.
    ...
    >>> [drive["verdict"] for drive in certificate.drives]
    ['passed', 'passed', 'failed']
    """
    return certify_passed(CLAIM, locals())
