"""Collecting the rollouts that a shield is certified from: every one that is started counts, and
says what becomes of it at every threshold, or when it was too late.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from pacbound.claims.forks import certify_forks
from pacbound.claims.provenance import about_texts
from pacbound.claims.shield import Among, ShieldCertificate, certify_shield
from pacbound.claims.task_record import (
    CHECKS,
    FAILURES,
    READINGS,
    failed_readings,
    known_task,
)
from pacbound.documents import Json
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.forms import Number
from pacbound.shield.policy import threshold_of
from pacbound.shield.rollouts.checks import rehearse
from pacbound.shield.rollouts.collection import Workers, collect, each_seed
from pacbound.shield.rollouts.files import Columns, RolloutTable, arrays_of
from pacbound.shield.rollouts.rollout import (
    Forking,
    ForkRow,
    Frame,
    Recording,
    RolloutRow,
    fork_out,
    frame_arrays,
    roll_out,
)
from pacbound.shield.rollouts.task import Task, fixed_seeds, require_task
from pacbound.sources.batches import Progress
from pacbound.stats.looks import PlannedLooks
from pacbound.tally.keyed_numbers import keyed_numbers
from pacbound.tally.questions.flagged_scores import ROLLOUTS
from pacbound.tally.questions.forked_rollouts import FORKS, NEVER
from pacbound.tally.tally import Tally

_SHARE = Number("a share", 0.0, 1.0, "[]")

Outcome = Literal["forks", "labels"]


def _recorded(
    task: Mapping[str, Json],
    checked: NDArray[np.int64],
    steps: NDArray[np.int64],
    failures: NDArray[np.int64],
) -> dict[str, Json]:
    """The task, with how often clearance was checked, and how many readings failed if some did."""
    failed = int(failures.sum())
    read = {READINGS: int(steps.sum()), FAILURES: failed} if failed else {}
    return {**task, CHECKS: int(checked.sum()), **read}


@dataclass(frozen=True, eq=False)
class Rollouts(RolloutTable):
    """Labelled rollouts of a policy without a shield, one entry of each column for each seed, in
    the order of the seeds.

    `collect_rollouts(..., outcome="labels")` makes them. `certify` certifies a shield from
    them, and says in the certificate what they are of. `certify_shield(rollouts.score,
    rollouts.unsafe, ...)` does so without a word about that, and `pacbound shield` from the file
    that `save` writes.

    Attributes
    ----------
    seed
        What the rollout follows from.
    score
        The running maximum of the danger up to and including the first un-recoverable state, or
        over all observations that were acted on if there is none. A reading that failed (NaN, an
        exception) counts as not fired. -inf for a rollout that is lost, or unsafe without any
        reading. NaN throughout if there was no danger model.
    unsafe
        Whether there is a first un-recoverable state, or the rollout is lost.
    final_score
        The danger at the first un-recoverable state, -inf if lost or not read; NaN for a safe
        rollout.
    lost
        Whether the backup failed from the very start, or the rollout raised twice: no threshold
        saves it.
    first_unrecoverable
        The step of the first un-recoverable state, from 0; -1 if there is none.
    steps
        How many steps the policy took. The rollout ends at the first un-recoverable state unless it
        was followed through.
    success
        Whether the last of these steps reached the goal.
    collided
        Whether the last of these steps was unsafe in fact, or the start was.
    failures
        How many readings of the danger failed.
    simulated
        How many backups were simulated for the label: a measure of the work, not of the rollout.
    checked
        How many backups were simulated to check `surely_recoverable()`. All of them were safe.
    error
        What a rollout that raised twice raised; empty otherwise.
    task
        What the rollouts are of: the names and identities of environment, policy, backup and danger
        model, the horizon, and how clearance was checked. Empty if that is not known: text files do
        not keep it, .npz files and folders do.

    Examples
    --------
    A car that drives towards a wall, from two to eight steps away:

    >>> import gymnasium
    >>> class Car(gymnasium.Env):
    ...     def reset(self, *, seed=None, options=None):
    ...         super().reset(seed=seed)
    ...         self.gap = int(self.np_random.integers(2, 9))
    ...         return self.gap, {}
    ...     def step(self, action):
    ...         self.gap -= action
    ...         return self.gap, 0.0, False, False, {}
    ...     def save_state(self):
    ...         return self.gap
    ...     def restore_state(self, state):
    ...         self.gap = state
    ...     def is_unsafe(self):
    ...         return self.gap < 0
    >>> drive, stop, danger = lambda gap: 1, lambda gap: 0, lambda gap: 1 / (1 + gap)
    >>> task = Task(Car, drive, stop, danger, horizon=6, backup_steps=1)
    >>> rollouts = collect_rollouts(task, seeds=range(4), outcome="labels")
    >>> rollouts
    Rollouts(4: 1 unsafe, 0 of them lost)
    >>> rollouts.first_unrecoverable.tolist(), rollouts.score.round(2).tolist()
    ([-1, 5, -1, -1], [0.33, 1.0, 0.33, 0.33])
    >>> certificate = rollouts.certify(xi=0.8, delta=0.5)
    >>> certificate.horizon, certificate.provenance.about["backup-steps"]
    (6, '1')
    >>> rollouts.save("rollouts.npz")
    >>> len(Rollouts.load("rollouts.npz"))
    4
    """

    seed: NDArray[np.int64]
    score: NDArray[np.float64]
    unsafe: NDArray[np.bool_]
    final_score: NDArray[np.float64]
    lost: NDArray[np.bool_]
    first_unrecoverable: NDArray[np.int64]
    steps: NDArray[np.int64]
    success: NDArray[np.bool_]
    collided: NDArray[np.bool_]
    failures: NDArray[np.int64]
    simulated: NDArray[np.int64]
    checked: NDArray[np.int64]
    error: NDArray[np.str_]

    row = RolloutRow
    kind = "rollouts"

    def __len__(self) -> int:
        return len(self.seed)

    @property
    def _recorded(self) -> dict[str, Json]:
        return _recorded(self.task, self.checked, self.steps, self.failures)

    def certify(
        self,
        *,
        xi: float,
        delta: float,
        rate: Among = "all",
        looks: PlannedLooks | Sequence[int] | None = None,
        about: Mapping[str, Any] | None = None,
        sample: str | None = None,
    ) -> ShieldCertificate:
        """The danger from which to brake, as `certify_shield` certifies it, for rollouts that say
        what they are of.

        The guarantee and the assumptions are those of `certify_shield`. The horizon stands in the
        claim, and environment, policy, backup, danger model and the checks of clearance in the
        provenance, where they are known.

        Parameters
        ----------
        xi, delta, rate, looks
            As in `certify_shield`.
        about
            What else the certificate is about, as in `certify_shield`.
        sample
            What these rollouts are called, as in `certify_shield`.

        Returns
        -------
        ShieldCertificate
            As from `certify_shield`. A refusal has `certified` False and the threshold -inf (always
            brake).

        Raises
        ------
        InvalidValueError, InvalidTypeError
            As from `certify_shield`; if there was no danger model, so that scores are NaN.
        """
        return certify_shield(
            self.score,
            self.unsafe,
            xi=xi,
            delta=delta,
            rate=rate,
            looks=looks,
            horizon=self.task.get("horizon"),
            about={**self.about, **about_texts(about)},
            sample=sample,
        )

    @property
    def alarm_score(self) -> NDArray[np.float64]:
        """The scores for a claim about false alarms: 1 for a safe rollout in which a reading of the
        danger failed, since a failed reading fires a shield. For unsafe rollouts they are those of
        `score`, so that both claims may be made from them.
        """
        return np.where(~self.unsafe & (self.failures > 0), 1.0, self.score)

    def tally(self) -> Tally:
        """The counts that a shield is certified from.

        Returns
        -------
        Tally
            For `certify_shield`. It knows its seeds: another with one of them does not add. It
            does not know its task: what is added to it must be of the same.
        """
        return Tally.count(ROLLOUTS, self.score, self.unsafe, row_ids=self.seed)

    def __repr__(self) -> str:
        raised = int((self.error != "").sum())
        told = f", {raised} by an error" if raised else ""
        failed = failed_readings(int(self.failures.sum()), int(self.steps.sum()))
        told += f"; {failed}" if failed else ""
        return (
            f"Rollouts({len(self)}: {int(self.unsafe.sum())} unsafe, {int(self.lost.sum())} of "
            f"them lost{told})"
        )


@dataclass(frozen=True, eq=False)
class ForkedRollouts(RolloutTable):
    """Rollouts of a policy without a shield that were forked wherever their danger rose: one entry
    of each column for each fork, rollout by rollout, in the order of the seeds.

    `collect_rollouts` makes them; its example shows them in use. `certify` certifies a shield from
    them, and says in the certificate what they are of. `certify_forks(rollouts.rollout,
    rollouts.lowest, rollouts.highest, rollouts.unsafe, ...)` does so without a word about that, and
    `pacbound forks` from the file that `save` writes.

    Attributes
    ----------
    rollout
        The seed of the rollout that the fork is of.
    lowest, highest
        The thresholds at which the shielded rollout is this fork, by their numbers: j stands for
        j / 65536, and 65537 for +inf. The last fork of a rollout is the rollout without a shield,
        unless a reading of the danger failed, which fires at every threshold.
    unsafe
        Whether the rollout is unsafe if it is shielded at these thresholds.
    reached
        The number of the highest threshold that fires in the rollout; -1 if it was unsafe at the
        start, 65537 if a reading of the danger failed.
    success
        Whether the policy alone reaches the goal in the rollout, with nothing unsafe before.
    steps
        How many steps the policy took in it.
    failures
        How many readings of the danger failed in it: at most one, after which it need not go on.
    simulated, checked
        How many backups were simulated in it, and to check `surely_recoverable()`.
    lost, error
        Whether it raised twice, and what. It is then unsafe above the highest danger that it had
        reached.
    task
        What the rollouts are of, as in `Rollouts`.

    Examples
    --------
    A car that drives towards a wall, from two to eight steps away:

    >>> import gymnasium
    >>> class Car(gymnasium.Env):
    ...     def reset(self, *, seed=None, options=None):
    ...         super().reset(seed=seed)
    ...         self.gap = int(self.np_random.integers(2, 9))
    ...         return self.gap, {}
    ...     def step(self, action):
    ...         self.gap -= action
    ...         return self.gap, 0.0, False, False, {}
    ...     def save_state(self):
    ...         return self.gap
    ...     def restore_state(self, state):
    ...         self.gap = state
    ...     def is_unsafe(self):
    ...         return self.gap < 0
    >>> drive, stop, danger = lambda gap: 1, lambda gap: 0, lambda gap: 1 / (1 + gap)
    >>> task = Task(Car, drive, stop, danger, horizon=6, backup_steps=1)
    >>> rollouts = collect_rollouts(task, seeds=range(4))
    >>> rollouts
    ForkedRollouts(4: 1 unsafe without a shield, 0 lost, 28 forks)
    >>> rollouts.unsafe_at(0.5).sum(), rollouts.fired_at(0.5).sum()
    (np.int64(0), np.int64(1))
    >>> rollouts.certify(xi=0.8, delta=0.5).threshold
    inf
    >>> rollouts.save("forks.npz")
    >>> len(ForkedRollouts.load("forks.npz"))
    4
    """

    rollout: NDArray[np.int64]
    lowest: NDArray[np.int64]
    highest: NDArray[np.int64]
    unsafe: NDArray[np.bool_]
    reached: NDArray[np.int64]
    success: NDArray[np.bool_]
    steps: NDArray[np.int64]
    failures: NDArray[np.int64]
    simulated: NDArray[np.int64]
    checked: NDArray[np.int64]
    lost: NDArray[np.bool_]
    error: NDArray[np.str_]

    row = ForkRow
    kind = "forked rollouts"

    def __len__(self) -> int:
        return int((self.lowest == 0).sum())

    @property
    def seed(self) -> NDArray[np.int64]:
        """The seed of each rollout."""
        return self.of_rollouts("rollout")

    def of_rollouts(self, column: str) -> NDArray[Any]:
        """A column about whole rollouts, such as `success` or `steps`: one entry for each.

        Parameters
        ----------
        column
            Its name: one of `columns` but `lowest`, `highest` and `unsafe`, which differ from fork
            to fork.

        Returns
        -------
        ndarray
            In the order of the seeds.
        """
        return np.asarray(self.columns[column][self.lowest == 0])

    def unsafe_at(self, threshold: float) -> NDArray[np.bool_]:
        """Which rollouts are unsafe if they are shielded at a threshold. Descriptive.

        Parameters
        ----------
        threshold
            The danger from which the backup acts: a multiple of 1/65536 from 0 to 1, +inf for none.

        Returns
        -------
        ndarray of bool
            One entry for each rollout, in the order of the seeds.

        Raises
        ------
        InvalidValueError
            If it is not a threshold of the grid.
        """
        number = _number_of(threshold)
        return np.asarray(self.unsafe[(self.lowest <= number) & (number <= self.highest)])

    def fired_at(self, threshold: float) -> NDArray[np.bool_]:
        """In which rollouts the shield fires at a threshold. Descriptive: together with `success`
        it says how often the policy reaches its goal and is never stopped.

        Parameters
        ----------
        threshold
            As in `unsafe_at`.

        Returns
        -------
        ndarray of bool
            One entry for each rollout, in the order of the seeds.

        Raises
        ------
        InvalidValueError
            If it is not a threshold of the grid.
        """
        return self.of_rollouts("reached") >= _number_of(threshold)

    def needless(self, threshold: Any) -> float:
        """The share of the rollouts that the shield stops, at a threshold, which are safe without
        it, as `ShieldedRollouts.needless` has it of drives. Descriptive.

        Parameters
        ----------
        threshold
            The threshold, as in `unsafe_at`, or a certificate that has it.

        Returns
        -------
        float
            The share; NaN if none is stopped.

        Raises
        ------
        InvalidValueError
            If it is not a threshold of the grid.
        """
        safe = ~self.unsafe_at(np.inf)[self.fired_at(threshold_of(threshold))]
        return float(safe.mean()) if safe.size else float("nan")

    @property
    def _recorded(self) -> dict[str, Json]:
        counts = map(self.of_rollouts, ("checked", "steps", "failures"))
        return _recorded(self.task, *counts)

    def certify(
        self,
        *,
        xi: float,
        delta: float,
        start: float = 0.0,
        rate: Among = "all",
        about: Mapping[str, Any] | None = None,
        sample: str | None = None,
    ) -> ShieldCertificate:
        """The danger from which to brake, as `certify_forks` certifies it, for rollouts that say
        what they are of.

        The guarantee and the assumptions are those of `certify_forks`. The horizon stands in the
        claim, and environment, policy, backup, danger model and the checks of clearance in the
        provenance, where they are known.

        Parameters
        ----------
        xi, delta, start
            As in `certify_forks`.
        rate
            "all": forks do not say which states are un-recoverable, so that nothing is
            known of the unsafe rollouts alone. For others collect with outcome="labels".
        about
            What else the certificate is about, as in `certify_forks`.
        sample
            What these rollouts are called, as in `certify_forks`.

        Returns
        -------
        ShieldCertificate
            As from `certify_forks`. A refusal has `certified` False and the threshold -inf.

        Raises
        ------
        InvalidValueError, InvalidTypeError
            As from `certify_forks`; for another `rate`.
        """
        if rate != "all":
            raise InvalidValueError(
                f"rate={rate!r} is about rollouts that have an un-recoverable state, which forks "
                'do not look for: leave it out, or collect new rollouts with outcome="labels".'
            )
        return certify_forks(
            self.rollout,
            self.lowest,
            self.highest,
            self.unsafe,
            xi=xi,
            delta=delta,
            start=start,
            horizon=self.task.get("horizon"),
            about={**self.about, **about_texts(about)},
            sample=sample,
        )

    def tally(self) -> Tally:
        """The counts that a shield is certified from.

        Returns
        -------
        Tally
            For `certify_forks`. It knows its seeds: another with one of them does not add. It does
            not know its task: what is added to it must be of the same. Files that `save` wrote know
            it, and are refused otherwise: pass several as `data`.
        """
        counted = Tally.count(FORKS, self.rollout, self.lowest, self.highest, self.unsafe)
        seeds = keyed_numbers(0, "row", map(str, self.seed.tolist()))
        return replace(counted, ids=np.sort(seeds[:, 0]))

    def __repr__(self) -> str:
        alone = int(self.unsafe_at(np.inf).sum())
        lost, steps, failures = (
            int(self.of_rollouts(name).sum()) for name in ("lost", "steps", "failures")
        )
        failed = failed_readings(failures, steps)
        return (
            f"ForkedRollouts({len(self)}: {alone} unsafe without a shield, {lost} lost, "
            f"{len(self.rollout)} forks{'; ' * bool(failed)}{failed})"
        )


def _number_of(threshold: float) -> int:
    """The number of a threshold of the grid."""
    number = float(threshold) * (NEVER - 1)
    if number == np.inf:
        return NEVER
    if not (0 <= number < NEVER and number.is_integer()):
        raise InvalidValueError(
            f"threshold={threshold} is not one that forks know: expected j / 65536 from 0 to 1, or "
            "+inf. That of a certificate is."
        )
    return int(number)


@overload
def collect_rollouts(
    task: Task,
    *,
    seeds: Any,
    outcome: Literal["forks"] = "forks",
    trust_clearance: bool = True,
    check_clearance: float = 0.02,
    folder: str | os.PathLike[str] | None = None,
    n_jobs: int | None = None,
    chunk: int = 32,
    progress: Progress | None = None,
) -> ForkedRollouts: ...


@overload
def collect_rollouts(
    task: Task,
    *,
    seeds: Any,
    outcome: Literal["labels"],
    follow_through: bool = False,
    trust_clearance: bool = True,
    check_clearance: float = 0.02,
    keep_frames: bool | float = False,
    folder: str | os.PathLike[str] | None = None,
    n_jobs: int | None = None,
    chunk: int = 32,
    progress: Progress | None = None,
) -> Rollouts: ...


def collect_rollouts(  # noqa: PLR0913, RUF100
    task: Task,
    *,
    seeds: Any,
    outcome: Outcome = "forks",
    follow_through: bool = False,
    trust_clearance: bool = True,
    check_clearance: float = 0.02,
    keep_frames: bool | float = False,
    folder: str | os.PathLike[str] | None = None,
    n_jobs: int | None = None,
    chunk: int = 32,
    progress: Progress | None = None,
) -> ForkedRollouts | Rollouts:
    """Roll out a policy without its shield, and fork each rollout wherever its danger rises: what
    `certify_forks` needs. Or label its first un-recoverable state: what `certify_shield` needs.

    Every seed gives exactly one rollout, however it ends, so that none counts more for being short.
    It depends on the seed alone, to the bit, not on the number of workers or on what was run
    before. The guarantee needs seeds that were fixed beforehand, used neither to train, tune or
    choose anything, nor chosen by what they show; and an environment that draws room, start and
    noise from `reset(seed=seed)`.

    *Forks*: at each step at which the running maximum of the danger rises, the backup is simulated
    from there, with noise of its own; so the outcome of the shielded rollout is known at every
    threshold. At its end the rollout is handed over to the backup once more, unless it has come to
    rest (`rests_when_terminated`). A fork that does not come to rest in time is unsafe. One rollout
    that raises is run again in a new environment, and if it raises again it is lost: unsafe above
    the highest danger that it had reached.

    *Labels* are for the paper's method, for rates among the unsafe rollouts and for training a
    danger model. A state is un-recoverable if the policy's step from it is unsafe, or the backup
    from where that step leads does not come to rest safely. That is found by one simulation of the
    backup with noise of its own, past the horizon and past termination. From the start the backup
    must be safe at once: where it is not, or where a rollout raises twice, it is lost, unsafe with
    score -inf. Neither forks nor labels simulate the backup where the environment says
    `surely_recoverable()`.

    Parameters
    ----------
    task
        The environment, who acts in it, and for how long. Forks need a danger model. Without one,
        the scores of labels are NaN, and frames can be kept to train one.
    seeds
        One for each rollout, no two the same: `range(start, start + 20_000)`, from a start that was
        drawn at random, once, and stands in your file.
    outcome
        "forks", or "labels". With the same simulations forks count at most as many unsafe rollouts
        at every threshold. Which of the two takes fewer steps of the simulator depends on the task:
        labels end a rollout at its first un-recoverable state, forks simulate fewer backups.
    follow_through
        With labels: whether a rollout goes on after its first un-recoverable state, to see what
        happens. Labels and scores stay the same.
    trust_clearance
        Whether `surely_recoverable()` is believed. If it is sound for this very backup, only
        `simulated` and `checked` change.
    check_clearance
        The share of the states trusted in that way in which the backup is simulated all the same,
        drawn by the seed. The last such state of each rollout is always simulated. The first one
        from which the backup is unsafe ends the whole collection with an error. 0 checks nothing.
    keep_frames
        With labels: whether observations and labels are kept in `folder`, to be read by
        `Frames.load`. A fraction keeps that share of the recoverable frames, and all others.
    folder
        Where finished chunks are kept, under the `identity` of the task (see `Task`). A collection
        that was killed goes on from there, with the same task and seeds. One finished seed is run
        again first, and must give the same row: that finds a change that the name leaves out, as
        far as one rollout shows it.
    n_jobs
        The number of workers, as joblib counts them; the backend is that of
        `joblib.parallel_config`. A large model whose arithmetic depends on the number of threads
        must be held to one, as by `torch.set_num_threads(1)` where the environment is made.
    chunk
        How many seeds a worker runs at a time.
    progress
        Called with the share of the rollouts that are done.

    Returns
    -------
    ForkedRollouts or Rollouts
        Those of all seeds, in their order: the first for forks, the second for labels.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an argument is not what it should be, or goes with labels alone; if the rehearsal finds
        what would make wrong rows; if a simulated backup contradicts `surely_recoverable()`; if
        `folder` holds rollouts of another task, or a seed that it holds comes out otherwise.
    MissingDependencyError
        If gymnasium or joblib is not installed.

    Examples
    --------
    A pole that must not lean by more than a fifth. The policy looks at the angle alone; the backup
    also at how fast it turns:

    >>> import gymnasium
    >>> class Pole(gymnasium.Wrapper):
    ...     def save_state(self):
    ...         return self.unwrapped.state, self.unwrapped.steps_beyond_terminated
    ...     def restore_state(self, state):
    ...         self.unwrapped.state, self.unwrapped.steps_beyond_terminated = state
    ...     def is_unsafe(self):
    ...         return bool(abs(self.unwrapped.state[2]) > 0.2)
    >>> def make():
    ...     return Pole(gymnasium.make("CartPole-v1", max_episode_steps=-1))
    >>> task = Task(
    ...     make,
    ...     policy=lambda x: int(x[2] > 0),
    ...     backup=lambda x: int(x[2] + x[3] > 0),
    ...     danger=lambda x: min(1.0, 2 * abs(x[2] + 0.2 * x[3])),
    ...     horizon=25,
    ...     backup_steps=20,
    ... )
    >>> rollouts = collect_rollouts(task, seeds=range(60))
    >>> rollouts
    ForkedRollouts(60: 14 unsafe without a shield, 0 lost, 468 forks)
    >>> certificate = rollouts.certify(xi=0.1, delta=0.05)
    >>> print(f"{certificate.threshold:.2f}")
    0.69
    """
    require_task(task)
    _require_fitting(outcome, task, follow_through=follow_through, keep_frames=keep_frames)
    recording = Recording(
        bool(follow_through),
        bool(trust_clearance),
        _SHARE.check(check_clearance, "check_clearance"),
        _share_of_frames(keep_frames, folder=folder),
    )
    workers, fixed = Workers(n_jobs, chunk, folder, progress), fixed_seeds(seeds)
    made: Any = ForkedRollouts if outcome == "forks" else Rollouts
    job = _forked_chunk if outcome == "forks" else _chunk
    plan = {**task.plan(folder), **asdict(recording), "kind": made.kind}
    rehearse(task, fixed, trust_clearance=trust_clearance)
    rows = collect(partial(job, task, recording), fixed, workers, plan)
    found: ForkedRollouts | Rollouts = made(**rows, task=known_task(plan))
    return found


def _require_fitting(outcome: Any, task: Task, **labels: Any) -> None:
    """Raise unless the outcome is known, and fits the task and the options for labels."""
    if outcome not in ("forks", "labels"):
        raise InvalidValueError(f'outcome={outcome!r}: expected "forks" or "labels".')
    for name in (name for name, value in labels.items() if value and outcome == "forks"):
        raise InvalidTypeError(f'{name} goes with labels: pass outcome="labels", or leave it out.')
    if outcome == "forks" and task.danger is None:
        raise InvalidTypeError(
            "danger is None: rollouts fork where the danger rises. Pass a danger model; to collect "
            'what one is trained on pass outcome="labels".'
        )


def _forked_chunk(task: Task, recording: Recording, seeds: NDArray[np.int64]) -> Columns:
    tried: dict[int, Forking] = {}

    def lost(seed: int, error: str) -> list[ForkRow]:
        return tried.get(seed, Forking(seed)).rows(lost=True, error=error)

    results = each_seed(task, seeds, partial(fork_out, task, recording, tried), lost)
    return arrays_of([row for rows in results for row in rows])


def _chunk(task: Task, recording: Recording, seeds: NDArray[np.int64]) -> Columns:
    def lost(seed: int, error: str) -> tuple[RolloutRow, list[Frame]]:
        return RolloutRow(seed, error=error), []

    results = each_seed(task, seeds, partial(roll_out, task, recording), lost)
    frames = [frame for _, kept in results for frame in kept]
    return {**arrays_of([row for row, _ in results]), **frame_arrays(frames)}


def _share_of_frames(keep_frames: float, *, folder: Any) -> float:
    share = float(keep_frames) if isinstance(keep_frames, bool) else keep_frames
    kept = _SHARE.check(share, "keep_frames")
    if kept and folder is None:
        raise InvalidTypeError("keep_frames needs a folder to keep them in: pass folder=...")
    return kept
