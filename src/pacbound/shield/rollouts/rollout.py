"""One rollout of a policy without a shield: its forks, or its label, the first un-recoverable
state, and the frames that are kept of it to train a danger model on.

A rollout forks wherever the running maximum of its danger rises: the backup is simulated from
there, and what becomes of it holds for all thresholds that are reached there first. At its end it
is handed over to the backup once more, unless it has come to rest, so that "unsafe" means what it
means for labels.

State x_t is un-recoverable if the policy's step from it is unsafe, or if the backup from x_{t+1}
does not come to rest safely. So a label costs at most one simulated backup, which has noise of its
own, goes on past the horizon and past termination, and leaves no trace. From the start the backup
must be safe at once; where it is not, the rollout is lost.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pacbound.errors import InvalidValueError
from pacbound.shield.rollouts.files import FRAMES, complete_parts, joined, read_part
from pacbound.shield.rollouts.task import START, Role, Task, read_danger, stream
from pacbound.shield.rollouts.world import WHOLE, UnsoundClearanceError, World, flattened
from pacbound.tally.questions.forked_rollouts import NEVER

_OBSERVATION = "observation/"


@dataclass
class RolloutRow:
    """What is recorded of one rollout: a line of `Rollouts`, where each entry is explained. The
    defaults are those of a lost rollout.
    """

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


@dataclass
class ForkRow:
    """What is recorded of one fork of a rollout, with what is known of the whole rollout: a line of
    `ForkedRollouts`, where each entry is explained.
    """

    rollout: int
    lowest: int
    highest: int
    unsafe: bool
    reached: int
    success: bool = False
    steps: int = 0
    failures: int = 0
    simulated: int = 0
    checked: int = 0
    lost: bool = False
    error: str = ""


# An observation that the policy acted on, as named arrays, with its seed and step, and whether the
# state is un-recoverable.
Frame: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True)
class Recording:
    """How rollouts are recorded: whether they go on after the label is known, how far the clearance
    is believed, and which frames are kept.
    """

    follow_through: bool = False
    trust_clearance: bool = True
    check_clearance: float = 0.0
    keep_frames: float = 0.0


class Labeller:
    """Says whether the backup comes to rest safely from where a world is, and leaves the world as
    it was.

    Where the clearance is believed, a random share of the states is simulated all the same, and so
    is the last of the rollout, which `finish` does: that is the one nearest to where the rollout
    went wrong, or ended without being looked at any further.
    """

    def __init__(self, world: World, task: Task, seed: int, recording: Recording) -> None:
        self.world, self.task, self._seed = world, task, seed
        self._trust, self._share = recording.trust_clearance, recording.check_clearance
        self._draws = np.random.default_rng(stream(seed, Role.CLEARANCE))
        # The step, the observation and the state in which clearance was last believed.
        self._last_trusted: tuple[int, Any, Any] | None = None
        self.simulated = 0
        self.checked = 0

    def recovers(self, observation: Any, step: int, *, terminated: bool = False) -> bool:
        """Whether the state just reached is safe and the backup comes to rest from it; `step` names
        the noise.
        """
        if self.world.is_unsafe():
            return False
        if terminated and self.task.rests_when_terminated:
            return True
        if self._trust and self.world.surely_recoverable():
            self._trust_in(step, observation)
            return True
        self.simulated += 1
        with self.world.excursion():
            return self.task.brakes_safely(self.world, observation, self._seed, step)

    def finish(self) -> None:
        """Check the last state that was trusted, if it has not been yet."""
        if self._last_trusted is None:
            return
        (step, observation, state), self._last_trusted = self._last_trusted, None
        self.checked += 1
        with self.world.excursion(state):
            if not self.task.brakes_safely(self.world, observation, self._seed, step):
                raise UnsoundClearanceError.at(self._seed, step)

    def _trust_in(self, step: int, observation: Any) -> None:
        if self._share:
            self._last_trusted = step, deepcopy(observation), self.world.save()
            if self._draws.random() < self._share:
                self.finish()


def roll_out(
    task: Task, recording: Recording, world: World, seed: int
) -> tuple[RolloutRow, list[Frame]]:
    """The rollout of one seed: its row, and the frames that are kept of it."""
    observation = deepcopy(world.reset(seed))
    labeller = Labeller(world, task, seed, recording)
    row, frames = RolloutRow(seed, collided=world.is_unsafe()), list[Frame]()
    if labeller.recovers(deepcopy(observation), START):
        row = RolloutRow(seed, unsafe=False, final_score=np.nan, lost=False)
        frames = _followed(row, observation, labeller, recording)
        labeller.finish()
    row.simulated, row.checked = labeller.simulated, labeller.checked
    return row, frames


@dataclass
class Forking:
    """The forks of one rollout as they are found: the thresholds of each, by their numbers, and
    whether it is unsafe. `reached` is the number of the highest that fires.
    """

    seed: int
    found: list[tuple[int, int, bool]] = field(default_factory=list)
    reached: int = -1

    def holds(self, highest: int, *, unsafe: bool) -> None:
        """Note what holds from the threshold after those of the last fork up to `highest`."""
        if highest > self._last:
            self.found.append((self._last + 1, highest, unsafe))

    @property
    def _last(self) -> int:
        return self.found[-1][1] if self.found else -1

    def rows(self, **known: Any) -> list[ForkRow]:
        """A row for each fork; what no fork says anything about is unsafe."""
        self.holds(NEVER, unsafe=True)
        return [
            ForkRow(self.seed, lowest, highest, unsafe, self.reached, **known)
            for lowest, highest, unsafe in self.found
        ]


def fork_out(
    task: Task, recording: Recording, tried: dict[int, Forking], world: World, seed: int
) -> list[ForkRow]:
    """The forks of the rollout of one seed. What was found before an error stays in `tried`."""
    forking = tried[seed] = Forking(seed)
    observation = deepcopy(world.reset(seed))
    labeller = Labeller(world, task, seed, recording)
    readings, policy, known = task.readings_of(seed), task.policy_of(seed), dict[str, Any]()
    unsafe = world.is_unsafe()
    for step in range(0 if unsafe else task.horizon):
        danger = read_danger(readings, observation)
        # The number of the highest threshold that it reaches; a failed reading reaches all.
        cell = NEVER if np.isnan(danger) else int(danger * (NEVER - 1))
        if cell > forking.reached:
            recovers = labeller.recovers(deepcopy(observation), step)
            forking.holds(cell, unsafe=not recovers)
            forking.reached = cell
        if cell == NEVER:
            break
        outcome = world.step(policy.act(observation))
        observation, unsafe = deepcopy(outcome.observation), world.is_unsafe()
        known["steps"] = step + 1
        if not unsafe and task.succeeded(world, outcome.info):
            known["success"] = True
        is_over = outcome.terminated or outcome.truncated or step + 1 == task.horizon
        if is_over and not unsafe:
            last = outcome.observation
            unsafe = not labeller.recovers(last, step + 1, terminated=outcome.terminated)
        if is_over or unsafe:
            break
    forking.holds(NEVER, unsafe=unsafe)
    labeller.finish()
    if readings is not None:
        known["failures"] = readings.failures
    return forking.rows(**known, simulated=labeller.simulated, checked=labeller.checked)


def _followed(
    row: RolloutRow, observation: Any, labeller: Labeller, recording: Recording
) -> list[Frame]:
    """The frames of a rollout that begins with `observation`; what happens is noted in its row."""
    world, task, frames = labeller.world, labeller.task, list[Frame]()
    policy, readings = task.policy_of(row.seed), task.readings_of(row.seed)
    draws = np.random.default_rng(stream(row.seed, Role.FRAMES))
    for step in range(task.horizon):
        seen = flattened(observation) if recording.keep_frames else {}
        danger = read_danger(readings, observation)
        outcome = world.step(policy.act(observation))
        observation = deepcopy(outcome.observation)
        # What the step did, before the future is tried out.
        row.steps, row.collided = step + 1, world.is_unsafe()
        row.success = not row.collided and task.succeeded(world, outcome.info)
        if not row.unsafe:
            row.score = float(np.fmax(row.score, danger))
            if not labeller.recovers(outcome.observation, step + 1, terminated=outcome.terminated):
                row.unsafe, row.first_unrecoverable = True, step
                row.final_score = float(np.fmax(-np.inf, danger))
        if recording.keep_frames and (row.unsafe or draws.random() < recording.keep_frames):
            frame = {f"{_OBSERVATION}{name}": array for name, array in seen.items()}
            frames.append({**frame, "unrecoverable": row.unsafe, "seed": row.seed, "step": step})
        is_labelled = row.unsafe and not recording.follow_through
        if is_labelled or row.collided or outcome.terminated or outcome.truncated:
            break
    if readings is None:
        row.score = row.final_score = np.nan
    else:
        row.failures = readings.failures
        # A danger model that never spoke has not fired, which -inf says of an unsafe rollout. A
        # safe one is at least at 0.
        row.score = row.score if row.unsafe else max(row.score, 0.0)
    return frames


@dataclass(frozen=True)
class Frames:
    """Observations that the policy acted on, in the order of seeds and steps, each with its label.

    Train on rollouts of their own: those that certify a shield must be new to its danger model.

    Attributes
    ----------
    observations
        (n, …) array in the dtype of the environment; where observations are nested, a dictionary of
        such arrays by their path, such as "camera" or "arm/joints".
    unrecoverable
        (n,) whether it was too late: True from the first un-recoverable state on.
    seed, step
        (n,) the rollout and the place in it.

    Examples
    --------
    A car that drives at a wall, a metre a step, until it is too late:

    >>> import gymnasium
    >>> class Car(gymnasium.Env):
    ...     def reset(self, *, seed=None, options=None):
    ...         super().reset(seed=seed)
    ...         self.gap = 3
    ...         return np.array([self.gap]), {}
    ...     def step(self, action):
    ...         self.gap -= action
    ...         return np.array([self.gap]), 0.0, self.gap < 0, False, {}
    ...     def save_state(self):
    ...         return self.gap
    ...     def restore_state(self, state):
    ...         self.gap = state
    ...     def is_unsafe(self):
    ...         return self.gap < 0
    >>> from pacbound.shield import Task, collect_rollouts
    >>> task = Task(Car, lambda gap: 1, lambda gap: 0, horizon=9, backup_steps=1, identity="car")
    >>> _ = collect_rollouts(
    ...     task, seeds=[0], outcome="labels", keep_frames=True, folder="frames"
    ... )
    >>> frames = Frames.load("frames")
    >>> frames.observations.ravel().tolist(), frames.unrecoverable.tolist()
    ([3, 2, 1, 0], [False, False, False, True])
    """

    observations: Any
    unrecoverable: NDArray[np.bool_]
    seed: NDArray[np.int64]
    step: NDArray[np.int64]

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Frames:
        """All frames of a complete collection; `parts` is for those that do not fit into memory.

        Parameters
        ----------
        folder
            That of `collect_rollouts(..., outcome="labels", keep_frames=True, folder=folder)`.

        Returns
        -------
        Frames
            In the order of seeds and steps.

        Raises
        ------
        InvalidValueError
            If the folder holds no frames, or the collection is not complete.
        """
        parts = list(_parts(folder))
        if not parts:
            raise InvalidValueError(
                f"{folder} holds no frames: collect the rollouts with keep_frames=True."
            )
        return cls._from_arrays(joined(parts))

    @classmethod
    def parts(cls, folder: str | os.PathLike[str]) -> Iterator[Frames]:
        """The frames of a complete collection, some at a time.

        Parameters
        ----------
        folder
            As in `load`.

        Returns
        -------
        iterator of Frames
            Those of each part, read when it is asked for.

        Raises
        ------
        InvalidValueError
            If the collection is not complete.
        """
        return map(cls._from_arrays, _parts(folder))

    @classmethod
    def _from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Frames:
        observed = {
            name.removeprefix(_OBSERVATION): array
            for name, array in arrays.items()
            if name.startswith(_OBSERVATION)
        }
        whole = observed[WHOLE] if list(observed) == [WHOLE] else observed
        return cls(whole, arrays["unrecoverable"], arrays["seed"], arrays["step"])

    def __len__(self) -> int:
        return len(self.unrecoverable)


def frame_arrays(frames: Sequence[Frame]) -> dict[str, NDArray[Any]]:
    """The frames as the arrays that a part keeps; none if there are none."""
    names = frames[0] if frames else ()
    return {f"{FRAMES}{name}": np.array([frame[name] for frame in frames]) for name in names}


def _parts(folder: str | os.PathLike[str]) -> Iterator[dict[str, NDArray[Any]]]:
    """The arrays of each part that has frames, read when it is asked for."""
    read = (read_part(path, FRAMES) for path in complete_parts(folder, "rollouts"))
    return (arrays for arrays in read if arrays)
