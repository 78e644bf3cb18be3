"""One rollout of a policy without a shield, and its label: the first un-recoverable state.

State x_t is un-recoverable if the policy's step from it is unsafe, or if the backup from x_{t+1}
does not come to rest safely. So a label costs at most one simulated backup, which has noise of its
own, goes on past the horizon and past termination, and leaves no trace. From the start the backup
must be safe at once; where it is not, the rollout is lost.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacbound.errors import InvalidValueError
from pacbound.shield.latch import Latch
from pacbound.shield.rollouts.observations import flattened
from pacbound.shield.rollouts.streams import START, Role, stream
from pacbound.shield.rollouts.task import Task
from pacbound.shield.rollouts.world import StepResult, World


@dataclass(frozen=True)
class RolloutRow:
    """What is recorded of one rollout: a line of `Rollouts`, where each entry is explained."""

    seed: int
    score: float = -np.inf
    unsafe: bool = True
    final_score: float = -np.inf
    lost: bool = True
    first_unrecoverable: int = -1
    steps: int = 0
    success: bool = False
    collided: bool = False
    failures: int = 0
    simulated: int = 0
    checked: int = 0
    error: str = ""


@dataclass(frozen=True)
class Frame:
    """An observation that the policy acted on, as named arrays, and whether its state is
    un-recoverable.
    """

    seed: int
    step: int
    observation: dict[str, NDArray[Any]]
    unrecoverable: bool


@dataclass(frozen=True)
class Recording:
    """How rollouts are recorded: whether they go on after the label is known, how far the clearance
    is believed, and which frames are kept.
    """

    follow_through: bool = False
    trust_clearance: bool = True
    check_clearance: float = 0.0
    keep_frames: float = 0.0


class UnsoundClearanceError(InvalidValueError):
    """`surely_recoverable` was true where the backup is unsafe: labels cannot be relied on, not
    even those of other rollouts.
    """


@dataclass
class _Record:
    """The rollout so far."""

    seed: int
    score: float = -np.inf
    final_score: float = np.nan
    first: int = -1
    steps: int = 0
    success: bool = False
    collided: bool = False
    frames: list[Frame] = field(default_factory=list)

    def row(self, labeller: Labeller, *, failures: int, watched: bool) -> RolloutRow:
        unsafe = self.first >= 0
        # A danger model that never spoke has not fired, which -inf says of an unsafe rollout. A
        # safe one is at least at 0.
        score = self.score if unsafe else max(self.score, 0.0)
        return RolloutRow(
            seed=self.seed,
            score=score if watched else np.nan,
            unsafe=unsafe,
            final_score=self.final_score if watched else np.nan,
            lost=False,
            first_unrecoverable=self.first,
            steps=self.steps,
            success=self.success,
            collided=self.collided,
            failures=failures,
            simulated=labeller.simulated,
            checked=labeller.checked,
        )


@dataclass(frozen=True)
class _Trusted:
    """A state in which the clearance was believed and the backup was not simulated."""

    step: int
    observation: Any
    state: Any


class Labeller:
    """Says whether the backup comes to rest safely from where a world is, and leaves the world as
    it was.

    Where the clearance is believed, a random share of the states is simulated all the same, and so
    is the last of the rollout, which `finish` does: that is the one nearest to where the rollout
    went wrong, or ended without being looked at any further.
    """

    def __init__(self, world: World, task: Task, seed: int, recording: Recording) -> None:
        self._world, self._task, self._seed = world, task, seed
        self._trust, self._share = recording.trust_clearance, recording.check_clearance
        self._draws = np.random.default_rng(stream(seed, Role.CLEARANCE))
        self._last_trusted: _Trusted | None = None
        self.simulated = 0
        self.checked = 0

    def recovers(self, observation: Any, step: int, *, terminated: bool = False) -> bool:
        """Whether the state just reached is safe and the backup comes to rest from it; `step` names
        the noise.
        """
        if self._world.is_unsafe():
            return False
        if terminated and self._task.rests_when_terminated:
            return True
        if self._trust and self._world.surely_recoverable():
            self._trust_in(step, observation)
            return True
        self.simulated += 1
        with self._world.excursion():
            return self._task.brakes_safely(self._world, observation, self._seed, step)

    def finish(self) -> None:
        """Check the last state that was trusted, if it has not been yet."""
        if self._last_trusted is not None:
            self._check(self._last_trusted)

    def _trust_in(self, step: int, observation: Any) -> None:
        if not self._share:
            return
        self._last_trusted = _Trusted(step, deepcopy(observation), self._world.save())
        if self._draws.random() < self._share:
            self._check(self._last_trusted)

    def _check(self, trusted: _Trusted) -> None:
        self.checked += 1
        self._last_trusted = None
        with self._world.excursion(trusted.state):
            safe = self._task.brakes_safely(
                self._world, trusted.observation, self._seed, trusted.step
            )
        if not safe:
            raise UnsoundClearanceError(unsound_clearance(self._seed, trusted.step))


def unsound_clearance(seed: int, step: int) -> str:
    """What is said of a `surely_recoverable` that a simulated backup contradicts."""
    return (
        f"At step {step} of seed {seed} surely_recoverable() is true, and the simulated backup is "
        "unsafe. It must never be wrong, and holds for one backup only. No label of these rollouts "
        "can be relied on: mend surely_recoverable(), or pass trust_clearance=False, and collect "
        "all rollouts again."
    )


class Readings:
    """The dangers of one rollout, read as a shield reads them; NaN where the model fails, or where
    there is none yet.
    """

    def __init__(self, danger: Any) -> None:
        self._latch = Latch(_silent if danger is None else danger, np.inf)
        self._none = danger is None

    def read(self, observation: Any) -> float:
        if self._none:
            return np.nan
        self._latch.reset()
        self._latch.look(observation)
        return float(self._latch.score)

    @property
    def failures(self) -> int:
        return int(self._latch.failures)


def _silent(_: Any) -> float:
    return np.nan


def roll_out(
    world: World, task: Task, seed: int, recording: Recording
) -> tuple[RolloutRow, list[Frame]]:
    """The rollout of one seed: its row, and the frames that are kept of it."""
    observation = deepcopy(world.reset(seed))
    labeller = Labeller(world, task, seed, recording)
    unsafe_start = world.is_unsafe()
    if not labeller.recovers(deepcopy(observation), START):
        return RolloutRow(seed, collided=unsafe_start, simulated=labeller.simulated), []
    policy, readings, record = task.policy_of(seed), Readings(task.danger_of(seed)), _Record(seed)
    draws = np.random.default_rng(stream(seed, Role.FRAMES))
    for step in range(task.horizon):
        frame = flattened(observation) if recording.keep_frames else {}
        danger = readings.read(observation)
        outcome = world.step(policy.act(observation))
        observation = deepcopy(outcome.observation)
        _note(record, world, task, outcome, danger)
        if record.first < 0 and not labeller.recovers(
            outcome.observation, step + 1, terminated=outcome.terminated
        ):
            record.first, record.final_score = step, float(np.fmax(-np.inf, danger))
        if recording.keep_frames and (record.first >= 0 or draws.random() < recording.keep_frames):
            record.frames.append(Frame(seed, step, frame, record.first >= 0))
        if _is_over(record, outcome, recording):
            break
    labeller.finish()
    watched = task.danger is not None
    return record.row(labeller, failures=readings.failures, watched=watched), record.frames


def _note(record: _Record, world: World, task: Task, outcome: StepResult, danger: float) -> None:
    """What the step did, before the future is tried out."""
    if record.first < 0:
        record.score = float(np.fmax(record.score, danger))
    record.steps += 1
    record.collided = world.is_unsafe()
    record.success = not record.collided and task.succeeded(world, outcome.info)


def _is_over(record: _Record, outcome: StepResult, recording: Recording) -> bool:
    labelled = record.first >= 0 and not recording.follow_through
    return labelled or record.collided or outcome.terminated or outcome.truncated
