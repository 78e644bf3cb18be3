"""Rollouts with the shield on: how often it is unsafe, fires and succeeds in fact. They test a
certificate; or, at one threshold, they make one.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacbound.claims.pass_rate import RateCertificate, certify_rate
from pacbound.claims.provenance import about_texts
from pacbound.claims.task_record import known_task
from pacbound.documents import encode_float
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.shield.policy import Shield, threshold_of
from pacbound.shield.rollouts.checks import rehearse
from pacbound.shield.rollouts.collection import Workers, collect, each_seed
from pacbound.shield.rollouts.files import Columns, RolloutTable, arrays_of
from pacbound.shield.rollouts.task import Role, Task, fixed_seeds, of_rollout, require_task
from pacbound.shield.rollouts.world import World
from pacbound.sources.batches import Progress


@dataclass(frozen=True)
class _Row:
    seed: int
    threshold: float
    unsafe: bool = True
    success: bool = False
    fired_at: int = -1
    steps: int = 0
    lost: bool = False
    error: str = ""


@dataclass(frozen=True, eq=False)
class ShieldedRollouts(RolloutTable):
    """Rollouts of a policy under a shield, one entry of each column for each seed and threshold,
    seed by seed.

    Attributes
    ----------
    seed, threshold
        What the rollout follows from.
    unsafe
        Whether anything unsafe happened, braking past the horizon included, or the backup did not
        come to rest in time.
    success
        Whether the shield never fired, and the policy was at the goal when its rollout ended,
        safely. A rollout that the shield stopped is none, wherever the policy was before.
    fired_at
        The step at which the shield fired, from 0; -1 if it did not.
    steps
        How many steps were taken, by the policy and its backup.
    lost, error
        Whether the rollout raised twice, which counts as unsafe, and what.
    task
        What the rollouts are of, as `Rollouts.task`; not a column. It is kept in .npz files.

    Examples
    --------
    A car that drives towards a wall, from two to eight steps away, without and with a shield:

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
    >>> tested = run_shielded(task, certificate_or_thresholds=[0.5, np.inf], seeds=range(4))
    >>> tested.at(np.inf), tested.at(0.5)
    (ShieldedRollouts(4: 1 unsafe, 0 fired), ShieldedRollouts(4: 0 unsafe, 1 fired))

    Those of one threshold make a certificate:

    >>> driven = run_shielded(task, certificate_or_thresholds=0.5, seeds=range(100, 130))
    >>> certificate = driven.certify(target=0.8, delta=0.05)
    >>> certificate.certified, certificate.threshold
    (True, 0.5)
    """

    seed: NDArray[np.int64]
    threshold: NDArray[np.float64]
    unsafe: NDArray[np.bool_]
    success: NDArray[np.bool_]
    fired_at: NDArray[np.int64]
    steps: NDArray[np.int64]
    lost: NDArray[np.bool_]
    error: NDArray[np.str_]

    row = _Row
    kind = "shielded rollouts"

    def __len__(self) -> int:
        return len(self.seed)

    def at(self, threshold: Any) -> ShieldedRollouts:
        """The rollouts of one threshold.

        Parameters
        ----------
        threshold
            The threshold, or a certificate that has it.

        Returns
        -------
        ShieldedRollouts
            The rollouts that have it, in order.

        Raises
        ------
        InvalidValueError
            If no rollout has that threshold.
        """
        chosen = self.threshold == threshold_of(threshold)
        if not chosen.any():
            listed = ", ".join(map(str, np.unique(self.threshold)))
            raise InvalidValueError(
                f"No rollout has threshold {threshold_of(threshold)}: expected one of {listed}."
            )
        rows = {name: column[chosen] for name, column in self.columns.items()}
        return ShieldedRollouts(**rows, task=self.task)

    def certify(
        self,
        *,
        target: float,
        delta: float,
        about: Mapping[str, Any] | None = None,
        sample: str | None = None,
    ) -> RateCertificate:
        """That at least a share `target` of the rollouts under this shield are safe, as
        `certify_rate` certifies it, for rollouts that say what they are of.

        The rollouts are of one threshold, which was fixed with their number before the first of
        them. A rollout that was lost counts as unsafe.

        Parameters
        ----------
        target, delta
            As in `certify_rate`.
        about
            What else the certificate is about, as in `certify_shield`.
        sample
            What these rollouts are called, as in `certify_shield`.

        Returns
        -------
        RateCertificate
            As from `certify_rate`, with the threshold.

        Raises
        ------
        InvalidValueError, InvalidTypeError
            If there are rollouts of several thresholds; and as from `certify_rate`.
        """
        driven = np.unique(self.threshold)
        if driven.size != 1:
            raise InvalidValueError(
                f"There are rollouts of {driven.size} thresholds: certify those of one, from the "
                "lowest up, and stop at the first that is refused: rollouts.at(threshold)."
            )
        return certify_rate(
            np.where(self.lost, np.nan, ~self.unsafe),
            target=target,
            delta=delta,
            threshold=float(driven[0]),
            about={**self.about, **about_texts(about)},
            sample=sample,
        )

    def needless(self, threshold: Any) -> float:
        """The share of the rollouts that the shield stopped, at a threshold, which were safe
        without it: the rollouts at +inf with the same seeds tell. Descriptive. A failed reading of
        the danger stops a rollout at +inf, too, and that stop is needless if the rollout is safe.

        Parameters
        ----------
        threshold
            The threshold, or a certificate that has it.

        Returns
        -------
        float
            The share; NaN if none was stopped.

        Raises
        ------
        InvalidValueError
            If no rollout has that threshold, or the seeds were not driven at +inf, too: pass both,
            certificate_or_thresholds=[certificate, np.inf].
        """
        shielded, alone = self.at(threshold), self.at(np.inf)
        safe = dict(zip(alone.seed.tolist(), (~alone.unsafe).tolist(), strict=True))
        stopped = shielded.seed[shielded.fired_at >= 0].tolist()
        untold = [seed for seed in stopped if seed not in safe]
        if untold:
            raise InvalidValueError(
                f"Seed {untold[0]} was not driven without the shield ({len(untold)} such): pass "
                "certificate_or_thresholds=[certificate, np.inf]."
            )
        return float(np.mean([safe[seed] for seed in stopped])) if stopped else float("nan")

    def __repr__(self) -> str:
        return (
            f"ShieldedRollouts({len(self)}: {int(self.unsafe.sum())} unsafe, "
            f"{int((self.fired_at >= 0).sum())} fired)"
        )


def run_shielded(  # noqa: PLR0913, RUF100
    task: Task,
    certificate_or_thresholds: Any,
    *,
    seeds: Any,
    folder: str | os.PathLike[str] | None = None,
    n_jobs: int | None = None,
    chunk: int = 32,
    progress: Progress | None = None,
) -> ShieldedRollouts:
    """Roll out a policy with its shield on, at one threshold or several: to see what a certificate
    is worth, or to certify one.

    A rollout ends when the shield has fired and the environment stands still, or, if it has not
    fired, at termination or at the horizon. Braking goes on past the horizon, so that a collision
    there counts. Seeds must be new: those that certified the shield chose its threshold. A
    threshold of +inf is the policy alone, but where a reading of the danger fails. What is seen is
    descriptive, unless the thresholds were fixed before these seeds were driven:
    `ShieldedRollouts.certify` then certifies one of them.

    Parameters
    ----------
    task
        The environment, who acts in it, and for how long. There must be a danger model.
    certificate_or_thresholds
        A `ShieldCertificate`, a number, or several of them. Thresholds that are equal are run once.
        Unsafe rollouts are counted among all, whatever rate a certificate is about.
    seeds
        One for each rollout, no two the same.
    folder, n_jobs, chunk, progress
        As in `collect_rollouts`.

    Returns
    -------
    ShieldedRollouts
        A row for each seed and threshold. It follows from its seed alone.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an argument is not what it should be; if the rehearsal finds what would make wrong rows;
        if `folder` holds rollouts of another task, or a seed that it holds comes out otherwise.
    CertificateError
        If a certificate was changed, or does not follow from its own counts.
    MissingDependencyError
        If gymnasium or joblib is not installed.

    Examples
    --------
    The pole of `collect_rollouts`, alone and under a shield:

    >>> import gymnasium
    >>> class Pole(gymnasium.Wrapper):
    ...     def save_state(self):
    ...         return self.unwrapped.state
    ...     def restore_state(self, state):
    ...         self.unwrapped.state = state
    ...     def is_unsafe(self):
    ...         return bool(abs(self.unwrapped.state[2]) > 0.2)
    >>> def make():
    ...     return Pole(gymnasium.make("CartPole-v1", max_episode_steps=-1))
    >>> task = Task(
    ...     make,
    ...     policy=lambda x: int(x[2] > 0),
    ...     backup=lambda x: int(x[2] + x[3] > 0),
    ...     danger=lambda x: min(1.0, 2 * abs(x[2] + 0.2 * x[3])),
    ...     horizon=50,
    ...     backup_steps=20,
    ... )
    >>> thresholds = [0.69, float("inf")]
    >>> seeds = range(1000, 1060)
    >>> tested = run_shielded(task, thresholds, seeds=seeds)
    >>> [int(tested.at(threshold).unsafe.sum()) for threshold in thresholds]
    [1, 54]
    """
    if require_task(task).danger is None:
        raise InvalidTypeError(
            "danger is None: a shield needs a danger model. For the policy alone pass the "
            "threshold +inf, and a danger model that never fails: lambda seen: 0.0"
        )
    workers, fixed = Workers(n_jobs, chunk, folder, progress), fixed_seeds(seeds)
    thresholds = _thresholds(certificate_or_thresholds)
    plan = {
        **task.plan(folder),
        "kind": "shielded rollouts",
        "thresholds": [encode_float(value) for value in thresholds],
    }
    rehearse(task, fixed, trust_clearance=False, restores=False)
    rows = collect(partial(_chunk, task, thresholds), fixed, workers, plan)
    return ShieldedRollouts(**rows, task=known_task(plan))


def _thresholds(given: Any) -> tuple[float, ...]:
    is_list = isinstance(given, (Sequence, np.ndarray)) and not isinstance(given, str)
    several = given if is_list else [given]
    # A certificate may have the very threshold that is compared with it, +inf most of all: one row
    # for each seed answers for both.
    thresholds = tuple(dict.fromkeys(map(threshold_of, several)))
    if not thresholds:
        raise InvalidValueError("There is no threshold: pass a certificate, a number, or several.")
    return thresholds


def _chunk(task: Task, thresholds: tuple[float, ...], seeds: NDArray[np.int64]) -> Columns:
    by_threshold = [
        each_seed(task, seeds, partial(_roll_out, task, each), partial(_lost, each))
        for each in thresholds
    ]
    by_seed = [row for same_seed in zip(*by_threshold, strict=True) for row in same_seed]
    return arrays_of(by_seed)


def _lost(threshold: float, seed: int, error: str) -> _Row:
    return _Row(seed, threshold, lost=True, error=error)


def _roll_out(task: Task, threshold: float, world: World, seed: int) -> _Row:
    observation, steps, fired_at = world.reset(seed), 0, -1
    shield = Shield(
        of_rollout(task.policy, seed, Role.POLICY),
        of_rollout(task.backup, seed, Role.BACKUP),
        task.danger_of(seed),
        threshold,
    )
    shield.reset()
    unsafe, success, over = world.is_unsafe(), False, world.is_unsafe()
    while not over:
        action = shield(observation)
        if shield.fired and fired_at < 0:
            fired_at = steps
        if shield.fired and steps > fired_at and world.is_stopped():
            break
        outcome = world.step(action)
        observation, steps, unsafe = outcome.observation, steps + 1, world.is_unsafe()
        if not shield.fired:
            success = task.succeeded(world, outcome.info)
            over = unsafe or outcome.terminated or outcome.truncated or steps == task.horizon
        elif outcome.terminated and task.rests_when_terminated:
            over = True
        elif not unsafe and steps - fired_at == task.backup_steps:
            unsafe, over = world.knows_standstill and not world.is_stopped(), True
        over = over or unsafe
    # A goal is what a rollout ends at: where the shield fired later, it was not kept.
    reached = success and not unsafe and fired_at < 0
    return _Row(seed, threshold, unsafe, reached, fired_at, steps)
