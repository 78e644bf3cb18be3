"""Forks: the danger at which a policy must hand over to braking, from rollouts that were forked.

Wherever the running maximum of the danger rises in a rollout of the policy alone, the backup is
simulated once, with noise of its own. For a threshold between two successive maxima the shielded
rollout is the policy's steps up to there and then that fork, so each rollout has one honest outcome
for every threshold of the grid. At each threshold the unsafe ones are binomial; the walk goes
upwards from a declared start and ends at the first threshold that fails. Nothing is monotone: a
backup that begins early may fail more often, so no other threshold is covered than those that the
walk has passed. What is un-recoverable is not known, and so no rate among unsafe rollouts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import inf
from typing import Any, Literal, Unpack

import numpy as np
from numpy.typing import NDArray

from pacbound.claims.claim import Cells, Values, certify
from pacbound.claims.rates import Rate
from pacbound.claims.shield import HORIZON, ShieldCertificate, told_by_task
from pacbound.claims.shield import WORDS as SHIELD_WORDS
from pacbound.claims.tables import group_prefix
from pacbound.claims.threshold import ThresholdClaim, ThresholdProcedure
from pacbound.fields import Field, Histogram
from pacbound.forms import DELTA, SMALL_GROUPS, THRESHOLDS, Ask, Start, xi_ask
from pacbound.procedures.threshold import TOP
from pacbound.tally.questions.forked_rollouts import FORKS, TURNS
from pacbound.tally.row_options import RowOptions

WORDS = replace(
    SHIELD_WORDS,
    about="{n} forked rollouts",
    heading="Forked shield with at most {xi} unsafe",
    promise="at most {xi} of all rollouts{horizon}, with the backups begun within them, are then "
    "unsafe",
    covers="The claim covers the thresholds j / 65536 from {start} up to the certified one, and no "
    "others: use it with all its digits. To brake at a lower danger may be unsafe more often.",
    kept="rollouts that are safe under the shield",
    seen="{events} would be unsafe under the shield (limit: {allowed}); at least {all} of all "
    "rollouts would be stopped, and {safe} of those that are safe without it.",
    instead="Always brake, which is not certified either.",
    group="{group}: from {threshold} on; {events} of {trials} rollouts are unsafe.",
    refusals={
        "zero": SHIELD_WORDS.refusals["zero"],
        "none": SHIELD_WORDS.refusals["none"],
        "too-few": "{trials} rollouts cannot certify {xi}, even if none is unsafe.",
        "unavoidable": "{unavoidable} of {trials} rollouts are unsafe where the walk starts, at "
        "{start} (limit: {allowed}). Where braking at once is itself risky, declare a higher start "
        "for fresh rollouts.",
    },
    no_use={
        0.0: "Every danger is at least 0: the shield always fires, so the claim is of no use.",
        inf: "The policy keeps {xi} with the backup only where a reading of the danger fails. "
        "Stops at failed readings are not in the shares above.",
    },
)


class ForksClaim(ThresholdClaim[ShieldCertificate]):
    """A threshold claim whose tables also hold where rollouts turn safe and unsafe."""

    deadline_warning = (
        "A certificate of certify_forks does not cover a deadline: a late reading brakes where no "
        "fork has begun, which may be unsafe. Certify a rate of rollouts with this deadline, or "
        'labels of recoverability (collect_rollouts(..., outcome="labels")).'
    )

    def counted_fields(self, question: Any) -> tuple[Field, ...]:
        """How many rollouts have each highest danger, and how many turn above each cell."""
        turns = Field("turns", Histogram(tuple(TURNS)), counted=True)
        return (*super().counted_fields(question), turns)

    def counted_table(self, counts: Values) -> dict[str, Any]:
        """The rollouts, and their turns."""
        found = {"counts": {name: name for name in TURNS}, "turns": TURNS}
        return {name: _columns(counts, of) for name, of in found.items()}

    def cells(self, certificate: ShieldCertificate) -> Cells:
        """Rollouts by their highest danger, and turns."""
        found = super().cells(certificate)
        for table in certificate.values["tables"]:
            turns = {name: column.tolist() for name, column in table["turns"].items()}
            for place, cell in enumerate(turns.pop("cells")):
                where = f"{group_prefix(table)}turns above {cell / TOP:g}"
                found[where] = {name: column[place] for name, column in turns.items()}
        return found


def _columns(counts: Values, named: Mapping[str, str]) -> dict[str, NDArray[np.int64]]:
    """Some columns of a histogram under other names, where any of them holds something."""
    hit = np.sum([counts[name] for name in named.values()], axis=0) > 0
    own = {name: counts[old][hit] for name, old in named.items()}
    return {"cells": counts["cells"][hit], **own}


WALK = ThresholdProcedure(
    "forks/walk-up/1",
    (
        "rollouts-unseen",
        "independent-rollouts",
        "asked-beforehand",
        "every-fork-counts",
        "forks-have-own-noise",
        "fork-is-shielded-rollout",
        "shield-latches",
    ),
    rate=Rate("all", "unsafe", turns=True, unavoidable_first=True),
    words=WORDS,
    seen_as=("safe", "unsafe"),
    told_by="unsafe",
)
CLAIM = ForksClaim(
    kind="forks",
    command="forks",
    help="Certify the danger at which a policy must brake, from rollouts that were forked wherever "
    "their danger rose.",
    question=FORKS,
    asks=(
        xi_ask("The share of the rollouts that may be unsafe: 0.05"),
        DELTA,
        Ask(
            "start",
            Start("a threshold", 0.0, 1.0, "[]", up=True),
            "The threshold that the walk starts at, declared beforehand: 0 if left out.",
            0.0,
            shown="Threshold that the walk starts at",
        ),
        HORIZON,
        THRESHOLDS,
        SMALL_GROUPS,
    ),
    procedures={WALK.name: WALK},
    of_files=told_by_task,
    curves=(
        (1, "unsafe rollouts that are stopped"),
        (0, "rollouts that are stopped, safe without it"),
        ("all", "rollouts that are stopped"),
    ),
    certificate=ShieldCertificate,
    applied=None,
)


def certify_forks(  # noqa: PLR0913
    rollout: Any = None,
    lowest: Any = None,
    highest: Any = None,
    unsafe: Any = None,
    *,
    xi: float,
    delta: float,
    start: float = 0.0,
    horizon: int | None = None,
    groups: Any = None,
    group_thresholds: Literal["common", "own"] = "common",
    small_groups: Literal["refuse", "leave-out"] = "refuse",
    data: Any = None,
    **rows: Unpack[RowOptions],
) -> ShieldCertificate:
    """The danger from which to brake, from rollouts that were forked: at most a share `xi` of the
    rollouts is then unsafe, with probability at least 1 - `delta`.

    The rollouts are of the policy *without* the shield, independent draws from what will be met in
    use, and `xi`, `delta`, `start` and their number were fixed without a look at them. Wherever the
    running maximum of the danger rises, the backup was simulated once from there, with noise that
    is independent of all that came before, its first action from the observation that fired. So
    each rollout has one outcome for every threshold j / 65536. Every rollout that was started
    counts: a fork that was lost or did not end is unsafe on its interval, a lost rollout above the
    highest danger that it had reached.

    The walk goes upwards from `start` and ends at the first threshold that fails. Covered are the
    thresholds of the grid from `start` up to the certified one, and no others: a backup that begins
    earlier may fail more often. Which states are un-recoverable is not known, so there is no rate
    among the unsafe rollouts and no product of two bounds: for these pass labels to
    `certify_shield`.

    Parameters
    ----------
    rollout
        The rollout that each row is of: its seed, or a name. With `data`, the name of its column.
    lowest, highest
        The thresholds that each row is about, by their numbers: j stands for j / 65536, and 65537
        for +inf. A danger d reaches j = floor(65536 d), a failed reading 65537. With C the highest
        number reached before (-1 at first), a fork holds from C + 1 to what its danger reaches; the
        rollout without a fork from the last C + 1 to 65537. The rows of a rollout cover 0 to 65537,
        each once.
    unsafe
        Whether the rollout is unsafe if it is shielded at these thresholds.
    xi
        The share of the rollouts that may be unsafe under the shield: 0.05
    delta
        The chance that the claim is wrong: 0.01
    start
        The threshold that the walk starts at, declared before any rollout was seen; rounded up to
        j / 65536. Where braking at once is itself risky, a start above 0 avoids a refusal.
    horizon
        The most steps of a rollout. It then stands in the claim, which says nothing about longer
        ones. `ForkedRollouts.certify` fills it in, and `data` that it has saved as .npz says it.
    groups
        The group of each row, the same for all rows of a rollout; or a mapping from names to truth
        values where groups overlap.
    group_thresholds
        With groups: one common threshold that every group keeps, or their own ones.
    small_groups
        With groups: leave-out leaves those with too few rollouts to pass at all uncertified; refuse
        refuses the claim. Fixed beforehand.
    data
        A frame (pandas, Polars, PyArrow, DuckDB, PySpark), a path, several paths, or a Tally.
    **rows
        How rows are read, see `RowOptions`. Rows cannot be drawn here.

    Returns
    -------
    ShieldCertificate
        The threshold, with the counts that it follows from; `start` is the lowest that is covered.
        A refusal has `certified` False and the threshold -inf (always brake).

    Raises
    ------
    InvalidValueError, InvalidTypeError
        If the rows of a rollout leave a gap, overlap or do not cover it; the message names the
        rollout. If a number is not that of a threshold, or rows of a rollout differ in their group.

    Examples
    --------
    Sixty rollouts whose danger rises to 0.25 and then to 0.5. Braking is safe at both; nine
    rollouts crash if nobody brakes:

    >>> import numpy as np
    >>> rollout = np.repeat(np.arange(60), 3)
    >>> lowest, highest = np.tile([0, 16385, 32769], 60), np.tile([16384, 32768, 65537], 60)
    >>> unsafe = (np.arange(180) % 3 == 2) & (rollout < 9)
    >>> certificate = certify_forks(rollout, lowest, highest, unsafe, xi=0.1, delta=0.05)
    >>> certificate.threshold, certificate.start, certificate.acted
    (0.5, 0.0, 60)

    A row that is missing is an error:

    >>> certify_forks([7, 7], [0, 9], [4, 65537], [False, True], xi=0.1, delta=0.05)
    Traceback (most recent call last):
    ...
    pacbound.errors.InvalidValueError: Rollout 7 has no row for the thresholds from 5 on (1 such \
rows): expected rows that cover its thresholds from 0 to 65537, each once.
    """
    of_groups = {"group_thresholds": group_thresholds, "small_groups": small_groups}
    asked = {"xi": xi, "delta": delta, "start": start, "horizon": horizon, **of_groups}
    columns = {"rollout": rollout, "lowest": lowest, "highest": highest, "unsafe": unsafe}
    return certify(CLAIM, {**columns, "groups": groups}, asked, data, rows)
