"""The latch of a shield, for one rollout or for several in parallel: it fires once the danger is at
the threshold, and stays fired until reset.

The rule is the one that was certified: it fires once the float64 danger is at or above the
threshold. It fails closed: a danger model that raises, or returns anything but a number from 0 to 1
(NaN, text, a logit, the wrong shape), fires it. Firing too early breaks no guarantee from labels,
since up to the first un-recoverable state the backup is safe. A guarantee from forks covers no
lower threshold, but has counted each reading that failed in its rollouts as one that fires. It has
counted none that is late: it does not cover a deadline.

Several threads may look at once. The latch is then fired by any reading that is high or fails, and
released by nothing but `reset`: a low reading never releases it, however late it ends. A reading
that is under way while the latch is reset cannot be told to belong to one rollout or the other.
If it is high or fails, it fires the latch of the new rollout too, which may brake needlessly; if it
is low, it is forgotten. `WithDeadline` makes a reading that is late one that failed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from queue import SimpleQueue
from threading import Event, Lock, RLock, Thread
from time import monotonic
from typing import Any
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.shield.actor import begin_anew
from pacbound.stats.arguments import real_number
from pacbound.tally.columns import ROUNDING, Array, as_array, numeric

Flags = NDArray[np.bool_]
# A value for each environment, in an array; for one rollout, the value itself.
Values = Any


class Latch:
    """The latches of rollouts in parallel environments, one for each; or that of one rollout.

    What it gives has a value for each environment, in an array that is a copy. For one rollout,
    without `num_envs`, it is the value itself.

    Parameters
    ----------
    danger : callable
        The danger of an observation in [0, 1], high where un-recoverable; with `num_envs`, that of
        each environment, (num_envs,) numbers.
    threshold : float
        A latch fires once its danger is at or above it.
    num_envs : int or None
        The number of environments; None for one rollout.

    Raises
    ------
    InvalidTypeError
        If `danger` cannot be called.

    Examples
    --------
    >>> latch = Latch(lambda danger: danger, 0.8)
    >>> [latch.look(danger) for danger in (0.1, 0.9, 0.1)]
    [False, True, True]
    >>> latch.reset()
    >>> latch.look(0.1)
    False
    >>> latches = Latch(lambda dangers: dangers, 0.8, num_envs=2)
    >>> latches.look([0.1, 0.9]).tolist(), latches.look([0.1, 0.1]).tolist()
    ([False, True], [False, True])
    """

    def __init__(
        self, danger: Callable[[Any], Any], threshold: float, num_envs: int | None = None
    ) -> None:
        self._danger = _callable(danger)
        self._threshold = threshold
        # Held for a few assignments, never while the danger model runs. Re-entrant, so that a
        # signal handler that asks about the latch cannot wait for its own thread.
        self._lock = RLock()
        # Values are replaced and never written into. One rollout has plain numbers, since arrays
        # would make its shield many times slower.
        each: Any = 0 if num_envs is None else np.zeros(num_envs, dtype=np.int64)
        self._num_envs, self._rollouts, self._failures = num_envs, each, each
        self._fired, self._scores = each != 0, each + np.nan
        self._last_error: BaseException | None = None

    @property
    def threshold(self) -> float:
        """The danger from which it fires."""
        return self._threshold

    @property
    def fired(self) -> Values:
        """Whether it has fired in this rollout."""
        return self._given(self._fired)

    @property
    def score(self) -> Values:
        """The last danger read in this rollout, or that which fired the latch; NaN if there is
        none, or if the reading failed.
        """
        return self._given(self._scores)

    @property
    def failures(self) -> Values:
        """How many readings failed, over all rollouts."""
        return self._given(self._failures)

    @property
    def last_error(self) -> BaseException | None:
        """What was wrong with the last reading that failed."""
        return self._last_error

    def _given(self, values: Values) -> Values:
        return values if self._num_envs is None else values.copy()

    def _where(self, mask: Values, one: Values, other: Values) -> Values:
        if self._num_envs is None:
            return one if mask else other
        return np.where(mask, one, other)

    def reset(self, mask: Any = None) -> None:
        """Begin a new rollout, in the environments of `mask` or in all of them."""
        begun = True if mask is None else self._checked(mask)
        with self._lock:
            self._rollouts = self._rollouts + begun
            self._fired = self._fired & _not(begun)
            self._scores = self._where(begun, np.nan, self._scores)

    def look(self, observation: Any, live: Flags | None = None) -> Values:
        """Whether the backup must act on this observation. Once all latches have fired, the danger
        model is not asked again. Environments that are not `live` are between two rollouts and are
        passed over.

        An interrupt (KeyboardInterrupt, SystemExit) in the danger model fires the latches and is
        raised.
        """
        asked: Values = True if live is None else live
        with self._lock:
            rollouts, watched = self._rollouts, asked & _not(self._fired)
            always = self._threshold == -np.inf
            self._fired = self._fired | (watched & always)
            if always or not (watched if self._num_envs is None else watched.any()):
                return self._fired & asked
        # What is assumed of a reading until it has ended: whatever cuts it short fires the latches.
        scores, error = np.nan, None
        try:
            scores, error = self._read(observation, watched)
        except BaseException as failure:
            error = failure
            if not isinstance(failure, Exception):
                raise
        finally:
            fired = self._note(rollouts, watched, scores, error)
        return fired & asked

    def _read(self, observation: Any, watched: Values) -> tuple[Values, BaseException | None]:
        """The danger of each environment, NaN where it is invalid, and what is wrong with the last
        such one of those `watched`.
        """
        answer, count = self._danger(observation), self._num_envs
        if count is None and isinstance(answer, float) and 0.0 <= answer <= 1.0:
            return float(answer), None
        array: Array = numeric(as_array(answer, "danger"), "danger")
        if count is None and array.size != 1:
            raise InvalidValueError(f"danger has shape {array.shape}: expected one number.")
        if count is not None and array.shape not in ((count,), (count, 1)):
            raise InvalidValueError(
                f"danger has shape {array.shape}: expected ({count},), one for each environment."
            )
        scores = array.reshape(-1).astype(np.float64)
        valid = (scores >= 0) & (scores <= 1 + ROUNDING)
        bad = np.flatnonzero(watched & ~valid)
        error = None
        if bad.size:
            whose = "" if count is None else f" of environment {bad[-1]}"
            error = InvalidValueError(
                f"The danger{whose} is {scores[bad[-1]]}: expected 0 to 1, high where "
                "un-recoverable. Is it a logit?"
            )
        found = np.where(valid, np.minimum(scores, 1.0), np.nan)
        return found[0].item() if count is None else found, error

    def _note(
        self, rollouts: Values, watched: Values, scores: Values, error: BaseException | None
    ) -> Values:
        """Take down a reading of the environments `watched` that began in `rollouts`, and say which
        latches have fired.
        """
        failed = watched & (scores != scores)  # noqa: PLR0124 - NaN, of arrays and of numbers
        fires = failed | (watched & (scores >= self._threshold))
        with self._lock:
            if error is not None:
                self._failures, self._last_error = self._failures + failed, error
            same = rollouts == self._rollouts
            taken = watched & _not(self._fired) & (fires | same)
            self._scores = self._where(taken, scores, self._scores)
            self._fired = self._fired | fires
            return self._fired

    def _checked(self, mask: Any) -> Flags:
        flags = np.asarray(mask)
        if flags.dtype != bool or flags.shape != (self._num_envs,):
            raise InvalidValueError(
                f"mask has dtype {flags.dtype} and shape {flags.shape}: expected {self._num_envs} "
                "booleans."
            )
        return flags

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=RLock())


@dataclass
class _Asked:
    """An observation, and what the danger model made of it."""

    observation: Any
    done: Event = field(default_factory=Event)
    answer: Any = None
    error: BaseException | None = None


class WithDeadline:
    """A danger model that answers in time, or raises TimeoutError.

    The model runs in a thread of its own, one for all calls. An answer that comes late is thrown
    away. Until the model is done with that observation it is not asked again: whoever asks waits,
    up to the deadline. So a model that hangs is late for ever after, and holds one thread, which
    does not keep the process from ending. Where the model holds Python's lock all the time, as a
    loop in C may, nobody can be woken: run it in another process.

    A model with a method `reset()` is never reset while it looks at something: a reset that would
    interrupt it comes right after, and before anything else is read. One that fails stays due, and
    no reading succeeds until it does.

    Parameters
    ----------
    danger : callable
        The danger of what is observed.
    deadline : float
        Seconds from being asked to the answer.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If the deadline is not a positive number of seconds, or `danger` cannot be called.

    Examples
    --------
    >>> WithDeadline(lambda seen: 0.3, 1.0)("scan")
    0.3
    """

    def __init__(self, danger: Callable[[Any], Any], deadline: float) -> None:
        self._danger = _callable(danger)
        self._due = deque[Flags | None]()
        self._deadline = real_number(deadline, "deadline", "a number of seconds")
        if not 0 < self._deadline < np.inf:
            raise InvalidValueError(
                f"deadline={deadline} is not a time to wait: expected seconds above 0, such as "
                "0.05, or None to wait as long as it takes."
            )
        self._begin()

    def _begin(self) -> None:
        self._worker: Thread | None = None
        self._free, self._asked = Lock(), SimpleQueue[_Asked | None]()
        # A thread that waits for work would keep what it works for.
        finalize(self, self._asked.put, None)

    def __call__(self, observation: Any) -> Any:
        """The danger, if it comes in time."""
        end, reading = monotonic() + self._deadline, _Asked(observation)
        if not self._free.acquire(timeout=self._deadline):
            raise self._late("is still busy with an observation before this one")
        # A process that was forked has the queue, and not the thread.
        if self._worker is None or not self._worker.is_alive():
            self._worker = Thread(
                target=_read, args=(self._danger, self._due, self._asked, self._free), daemon=True
            )
            self._worker.start()
        self._asked.put(reading)
        if not reading.done.wait(max(0.0, end - monotonic())):
            raise self._late("has not answered")
        if reading.error is not None:
            raise reading.error
        return reading.answer

    def reset(self, mask: Flags | None = None) -> None:
        """Let the model forget the last rollout, or those of the environments of `mask`: now, or
        once it is done with what it looks at.
        """
        self._due.append(None if mask is None else mask.copy())
        if self._free.acquire(blocking=False):
            try:
                _forget(self._danger, self._due)
            finally:
                self._free.release()

    def _late(self, why: str) -> TimeoutError:
        return TimeoutError(f"The danger model {why} after {self._deadline:g} s, its deadline.")

    def __getstate__(self) -> dict[str, Any]:
        return {"_danger": self._danger, "_deadline": self._deadline, "_due": self._due.copy()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._begin()


def _forget(danger: Callable[[Any], Any], due: deque[Flags | None]) -> None:
    """Do the resets that are due; one that raises stays due."""
    while due:
        begin_anew(danger, due[0])
        due.popleft()


def _read(
    danger: Callable[[Any], Any],
    due: deque[Flags | None],
    asked: SimpleQueue[_Asked | None],
    free: Lock,
) -> None:
    """Answer one observation after the other, with the resets between them."""
    while (reading := asked.get()) is not None:
        try:
            _forget(danger, due)
            reading.answer = danger(reading.observation)
        except BaseException as error:  # whatever it is, it is raised where the danger is asked
            reading.error = error
        with suppress(BaseException):  # what is still due is raised by the next reading
            _forget(danger, due)
        # Before anybody goes on: a reset right after an answer is done at once.
        free.release()
        reading.done.set()
        del reading


def _not(flags: Values) -> Values:
    """The other way round, of arrays and of truth values, for which ~ is arithmetic."""
    return flags ^ True


def _callable(danger: Any) -> Callable[[Any], Any]:
    if not callable(danger):
        hint = (
            " Pass its column of un-recoverable from predict_proba, in a lambda."
            if hasattr(danger, "predict_proba")
            else ""
        )
        raise InvalidTypeError(
            f"danger is a {type(danger).__name__}, which cannot be called: expected a "
            f"function.{hint}"
        )
    checked: Callable[[Any], Any] = danger
    return checked
