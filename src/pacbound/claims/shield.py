"""Shields: the danger at which a policy must hand over to braking, so that few rollouts are unsafe.

The plain and the shielded rollout coincide until the shield fires, so a shielded rollout can be
unsafe only if the plain one is and every danger before its first un-recoverable state stayed below
the threshold. That is one count among all rollouts, monotone in the threshold. Misses among the
unsafe rollouts alone are another rate.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain
from math import inf
from os import PathLike
from pathlib import Path
from typing import Any, Literal, Unpack

from pacbound.claims.claim import Told, Values, certify
from pacbound.claims.rates import Rate
from pacbound.claims.task_record import about_task, common_task
from pacbound.claims.threshold import Measured, ThresholdClaim, ThresholdProcedure
from pacbound.claims.threshold_certificate import FlagCertificate
from pacbound.claims.threshold_words import ClaimWords
from pacbound.forms import DELTA, SMALL_GROUPS, THRESHOLDS, Ask, Choice, Whole, looks_ask, xi_ask
from pacbound.says import Side
from pacbound.sources.paths import are_paths, as_list, expanded
from pacbound.stats.looks import PlannedLooks
from pacbound.tally.questions.flagged_scores import ROLLOUTS
from pacbound.tally.row_options import RowOptions

# What misses are counted among: all rollouts, or the unsafe ones.
Among = Literal["all", "among-unsafe"]


class Horizon(Whole):
    """The most steps of a rollout."""

    def said(self, value: Any, side: Side) -> str:  # noqa: ARG002
        """As words that follow "rollouts"."""
        return f" of at most {value:,} steps"


HORIZON = Ask(
    "horizon",
    Horizon(1),
    "The most steps of a rollout; the claim names it. Taken from the file if it is an .npz of "
    "`Rollouts.save`.",
    None,
    shown="Rollouts",
)


class ShieldCertificate(FlagCertificate):
    """With probability at least 1 - delta at most a share xi of the rollouts is unsafe, if the
    backup takes over once the danger reaches the threshold; with the rate "among-unsafe", at most a
    share xi of the unsafe rollouts is missed.

    The shield fires once the danger is at or above the threshold, and stays fired.
    `certify_shield` makes such a certificate, and `load_certificate` reads one. A refusal has
    `certified` False and the threshold -inf: always brake.

    Attributes
    ----------
    by : Claim
        What is claimed, and how it is decided and said.
    values : mapping
        Everything that the document holds of it, by name: what was asked for, the counts and the
        thresholds.
    provenance : Provenance
        Where the certificate comes from.
    draw : Drawn or None
        How the rows were drawn from others; None if all rows of the data were counted as they are.
    loaded : mapping or None
        The document that it was read from; None if it was made in this process.

    Examples
    --------
    >>> score, unsafe = [0.1] * 950 + [0.9] * 50, [False] * 950 + [True] * 50
    >>> certificate = certify_shield(score, unsafe, xi=0.02, delta=0.01)
    >>> certificate.certified, round(certificate.threshold, 3), certificate.acted
    (True, 0.9, 50)

    Thirty rollouts cannot show it, whatever they are:

    >>> refused = certify_shield(score[:30], unsafe[:30], xi=0.02, delta=0.01)
    >>> refused.certified, refused.threshold
    (False, -inf)
    """

    is_shield = True

    xi: float
    rate: str
    horizon: int | None
    looks: tuple[int, ...] | None


WORDS = ClaimWords(
    about="{n} rollouts",
    rows="rollouts",
    unit="rollouts",
    heading="Shield with at most {xi} unsafe",
    plain="at most {often xi} rollouts{horizon} are unsafe",
    # The dangers of an unsafe rollout are read up to where it is lost, and may rise after that.
    costs="about {often all} rollouts, or more, would be stopped",
    rule="Hand over to the backup once the danger reaches {threshold}; it keeps control until "
    "reset.",
    never="Hand over to the backup only where a reading of the danger fails.",
    promise="at most {xi} of all rollouts{horizon} are then unsafe",
    kept="rollouts that are safe or stopped",
    in_use="at most {xi} of the rollouts are unsafe",
    seen="{events} unsafe rollouts would slip through (limit: {allowed}); at least {all} of "
    "all rollouts would be stopped.",
    instead="Always brake.",
    group="{group}: from {threshold} on; {events} of {trials} rollouts slip through.",
    refusals={
        "zero": "No number of rollouts can certify xi = 0.",
        "none": "There are no rollouts, so nothing is known about their dangers.",
        "too-few": "{trials} rollouts cannot certify {xi}, even if none slips through.",
        "unavoidable": "{unavoidable} of {trials} rollouts are lost at the start; {allowed} are "
        "allowed.",
        "hopeless": "{unavoidable} of {trials} rollouts are lost at the start, which alone breaks "
        "{xi}.",
    },
    no_use={
        0.0: "Every danger is at least 0: the shield always fires, so the claim is of no use.",
        inf: "The policy alone keeps {xi}: the shield fires only where a reading of the danger "
        "fails.",
    },
)
AMONG_UNSAFE = replace(
    WORDS,
    kept="",
    about="{n} rollouts, {trials} of them unsafe",
    unit="unsafe rollouts",
    heading="Shield that misses at most {xi} of the unsafe rollouts",
    plain="at most {often xi} rollouts{horizon} that have an un-recoverable state are missed",
    promise="at most {xi} of all rollouts{horizon} that have an un-recoverable state are then "
    "missed",
    group="{group}: from {threshold} on; {events} of {trials} unsafe rollouts slip through.",
    refusals={
        "zero": WORDS.refusals["zero"],
        "none": "No rollout is unsafe, so nothing is known about the dangers of unsafe ones.",
        "too-few": "{trials} unsafe rollouts cannot certify {xi}, even if none is missed.",
        "unavoidable": "{unavoidable} of {trials} unsafe rollouts are lost at the start; {allowed} "
        "are allowed.",
    },
)
ASSUMES = (
    "rollouts-unseen",
    "independent-rollouts",
    "asked-beforehand",
    "every-rollout-counts",
    "score-up-to-unrecoverable",
    "one-simulated-backup",
    "shield-latches",
)


ALL = ThresholdProcedure(
    "shield/binomial/1",
    ASSUMES,
    rate=Rate("all", "unsafe", unavoidable_first=True),
    words=WORDS,
    seen_as=("safe", "unsafe"),
    told_by="unsafe",
)
PLANNED = replace(
    ALL,
    name="shield/planned-looks/1",
    assumes=("looks-at-rollouts", *ASSUMES[1:]),
    asks=("looks",),
)
UNSAFE = ThresholdProcedure(
    "shield/among-unsafe/1",
    ASSUMES,
    rate=Rate("unsafe", "unsafe"),
    words=AMONG_UNSAFE,
    not_watched="whether a rollout that the shield stopped would have been unsafe is not seen in "
    "use. Monitor one of rate='all', or certify again on new rollouts without the shield",
)


def _choose(asked: Values) -> str:
    if asked["looks"] is not None:
        return PLANNED.name
    return (ALL if asked["rate"] == "all" else UNSAFE).name


def _conflict(asked: Values) -> str | None:
    rate, looks = asked["rate"], asked["looks"]
    if looks is not None and rate != "all":
        return (
            f"looks are planned numbers of rollouts and go with rate='all', not with {rate!r}: "
            "pass delta divided by the number of looks at each of them instead."
        )
    return None


def told_by_task(data: Any) -> Told:
    """What drove, and for how many steps, if all files keep it; it must be the same."""
    files = as_list(data) if are_paths(data) else []
    task = common_task(chain.from_iterable(map(_archives, files)))
    asked = {"horizon": task["horizon"]} if "horizon" in task else {}
    return Told(asked, about_task(task))


def _archives(path: str | PathLike[str]) -> Iterable[str | PathLike[str]]:
    """The files that a pattern or a folder of archives stands for; another path as it is."""
    several = Path(path).suffix.lower() == ".npz" or Path(path).is_dir()
    return expanded(path) if several else [path]


CLAIM = ThresholdClaim(
    kind="shield",
    command="shield",
    help="Certify the danger at which a policy must brake, so that at most xi of the rollouts are "
    "unsafe.",
    question=ROLLOUTS,
    asks=(
        xi_ask("The share of the rollouts that may be unsafe: 0.05"),
        DELTA,
        Ask(
            "rate",
            Choice(("all", "among-unsafe")),
            "What misses are counted among: all rollouts, or the unsafe ones.",
            "all",
            shown="Rollouts that xi is a share of",
        ),
        looks_ask("rollouts"),
        HORIZON,
        THRESHOLDS,
        SMALL_GROUPS,
    ),
    procedures={one.name: one for one in (ALL, PLANNED, UNSAFE)},
    choose=_choose,
    conflict=_conflict,
    of_files=told_by_task,
    curves=((1, "unsafe rollouts that are stopped"), ("all", "rollouts that are stopped")),
    certificate=ShieldCertificate,
    applied=None,
    measured=Measured("intervention rate", "all", larger=False),
)


def certify_shield(  # noqa: PLR0913
    score: Any = None,
    unsafe: Any = None,
    *,
    xi: float,
    delta: float,
    rate: Among = "all",
    looks: PlannedLooks | Sequence[int] | None = None,
    horizon: int | None = None,
    groups: Any = None,
    group_thresholds: Literal["common", "own"] = "common",
    small_groups: Literal["refuse", "leave-out"] = "refuse",
    data: Any = None,
    **rows: Unpack[RowOptions],
) -> ShieldCertificate:
    """The danger from which to brake: at most a share `xi` of rollouts is then unsafe, with
    probability at least 1 - `delta`.

    The rollouts are of the policy *without* the shield, independent draws from what will be met in
    use (rooms, starts, noise), and `xi`, `delta` and their number were fixed without a look at
    them. Every rollout that was started counts. What is certified is `xi`, over the whole
    population; the misses and interventions seen on these rollouts are not.

    A state is recoverable if one more step of the policy, followed by the backup until it stands
    still, stays safe. A rollout is unsafe if it has a first un-recoverable state, and the shield
    must fire there or before. One whose backup fails at the very start, or that was lost on the
    way, is unsafe with score -inf: no threshold saves it.

    A row is a whole rollout. A table with a row for each step is refused where a column names runs
    that end with their only unsafe row; a shuffled log and arrays without `clusters` are not
    recognised.

    Parameters
    ----------
    score
        The running maximum of the danger of each rollout, 0 to 1 (high means un-recoverable), up to
        and including the first un-recoverable state, or over the whole rollout if there is none.
        With `data`, the name of its column.
    unsafe
        Whether each rollout has an un-recoverable state.
    xi
        The share of the rollouts that may be unsafe under the shield, or, as `rate` says, of the
        unsafe rollouts that may be missed: 0.05
    delta
        The chance that the claim is wrong: 0.01
    rate
        "all": `xi` is the share of all rollouts that may be unsafe under the shield;
        "among-unsafe": the share of the unsafe rollouts that may be missed, however rare they are.
        It implies the first, and cannot be monitored in use.
    looks
        The planned looks, if the rollouts grow in number: as `planned_looks` takes or gives them,
        fixed before the first rollout. Pass all rollouts up to this look, in any order; their
        number must be one of the looks. The thresholds of all looks hold together, so it is valid
        to stop at the first that is certified, or to go on. Only for the rate "all".
    horizon
        The most steps of a rollout. It then stands in the claim, which says nothing about longer
        ones. `Rollouts.certify` fills it in, and `data` that it has saved as .npz says it.
    groups
        The group of each rollout, or a mapping from names to truth values where groups overlap.
    group_thresholds
        With groups: one common threshold that every group keeps, or their own ones.
    small_groups
        With groups: leave-out leaves those with too few trials to pass at all uncertified; refuse
        refuses the claim. Fixed beforehand. Only the number of rollouts of a group decides, never
        an outcome. The shield always brakes there.
    data
        A frame (pandas, Polars, PyArrow, DuckDB, PySpark), a path, several paths, or a Tally.
    **rows
        How rows are read and drawn, see `RowOptions`.

    Returns
    -------
    ShieldCertificate
        The threshold, with the counts that it follows from. A refusal has `certified` False and the
        threshold -inf (always brake); `summary()` says why, and about how many rollouts would do.

    Raises
    ------
    InvalidValueError, InvalidTypeError
        If scores or flags cannot be what they should be; the message names the value, its row and
        the remedy. If no look was planned at this number of rollouts.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> unsafe = rng.random(2000) < 0.05
    >>> score = np.where(unsafe, rng.beta(8, 2, size=2000), rng.beta(1, 8, size=2000))
    >>> certificate = certify_shield(score, unsafe, xi=0.02, delta=0.01)
    >>> print(f"brake at {certificate.threshold:.3f} and above")
    brake at 0.738 and above
    >>> print(f"{certificate.acted} of {certificate.n} rollouts stopped")
    85 of 2000 rollouts stopped

    A look after 1,000 of at most 4,000 rollouts; the next would be at 2,000:

    >>> early = certify_shield(
    ...     score[:1000], unsafe[:1000], xi=0.02, delta=0.01, looks=[1000, 2000, 4000]
    ... )
    >>> print(f"look {early.look}: brake at {early.threshold:.3f} and above")
    look 1: brake at 0.696 and above

    From a frame, which is counted inside its own engine:

    >>> import polars
    >>> frame = polars.DataFrame({"danger": score, "crashed": unsafe})
    >>> found = certify_shield("danger", "crashed", data=frame, xi=0.02, delta=0.01)
    >>> found.threshold == certificate.threshold
    True
    """
    of_groups = {"group_thresholds": group_thresholds, "small_groups": small_groups}
    asked = {"xi": xi, "delta": delta, "rate": rate, "looks": looks, "horizon": horizon}
    columns = {"score": score, "unsafe": unsafe, "groups": groups}
    return certify(CLAIM, columns, {**asked, **of_groups}, data, rows)
