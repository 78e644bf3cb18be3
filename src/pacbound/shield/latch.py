"""The latch of a shield, for one rollout or for several in parallel: it fires once the danger is at
the threshold, and stays fired until reset.

The rule is the one that was certified: it fires once the float64 danger is at or above the
threshold. It fails closed: a danger model that raises, or returns anything but a number from 0 to 1
(NaN, text, a logit, the wrong shape), fires it. Firing too early breaks no guarantee, since up to
the first un-recoverable state the backup is safe.

Several threads may look at once. The latch is then fired by any reading that is high or fails, and
released by nothing but `reset`: a low reading never releases it, however late it ends. A reading
that is under way while the latch is reset cannot be told to belong to one rollout or the other.
If it is high or fails, it fires the latch of the new rollout too, which may brake needlessly; if it
is low, it is forgotten.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacbound.certificate.document import Certificate
from pacbound.certificate.files import certificate_of
from pacbound.claims.claim import ClaimCertificate
from pacbound.claims.shield import ShieldCertificate
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.stats.arguments import real_number
from pacbound.tally.columns import ROUNDING, Array, as_array, numeric
from pacbound.tally.questions import with_article

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Integers = NDArray[np.int64]


class Latch:
    """The latch of one rollout.

    Parameters
    ----------
    danger : callable
        The danger of an observation in [0, 1], high where un-recoverable.
    certificate_or_threshold : ShieldCertificate, its path, or number
        The latch fires once the danger is at or above it.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If `danger` cannot be called, or the threshold is not one.
    CertificateError
        If the certificate was changed, or does not follow from its own counts.

    Examples
    --------
    >>> latch = Latch(lambda danger: danger, 0.8)
    >>> [latch.look(danger) for danger in (0.1, 0.9, 0.1)]
    [False, True, True]
    >>> latch.reset()
    >>> latch.look(0.1)
    False
    """

    def __init__(self, danger: Callable[[Any], Any], certificate_or_threshold: Any) -> None:
        self._danger = _callable(danger)
        self._threshold = threshold_of(certificate_or_threshold)
        # Held for a few assignments, never while the danger model runs. Re-entrant, so that a
        # signal handler that asks about the latch cannot wait for its own thread.
        self._lock = RLock()
        self._rollout, self._fired, self._score = 0, False, np.nan
        self._failures, self._last_error = 0, None

    _last_error: BaseException | None

    @property
    def threshold(self) -> float:
        """The danger from which it fires."""
        return self._threshold

    @property
    def fired(self) -> bool:
        """Whether it has fired in this rollout."""
        return self._fired

    @property
    def score(self) -> float:
        """The last danger read in this rollout, or that which fired the latch; NaN if there is
        none, or if the reading failed.
        """
        return self._score

    @property
    def failures(self) -> int:
        """How many readings failed, over all rollouts."""
        return self._failures

    @property
    def last_error(self) -> BaseException | None:
        """What was wrong with the last reading that failed."""
        return self._last_error

    def reset(self) -> None:
        """Begin a new rollout."""
        with self._lock:
            self._rollout += 1
            self._fired, self._score = False, np.nan

    def look(self, observation: Any) -> bool:
        """Whether the backup must act on this observation. Once the latch has fired, the danger
        model is not asked again.

        An interrupt (KeyboardInterrupt, SystemExit) in the danger model fires the latch and is
        raised.
        """
        with self._lock:
            if self._fired or self._threshold == -np.inf:
                self._fired = True
                return True
            rollout = self._rollout
        # What is assumed of a reading until it has ended: whatever cuts it short fires the latch.
        score, error = np.nan, None
        try:
            score = _one_score(self._danger(observation))
        except BaseException as failure:
            error = failure
            if not isinstance(failure, Exception):
                raise
        finally:
            fired = self._note(rollout, score, error)
        return fired

    def _note(self, rollout: int, score: float, error: BaseException | None) -> bool:
        """Take down a reading that began in `rollout`, and say whether the latch has fired."""
        # NaN is at or above nothing, so it is asked about the other way round.
        fires = not score < self._threshold
        with self._lock:
            if error is not None:
                self._failures, self._last_error = self._failures + 1, error
            if not self._fired and (fires or rollout == self._rollout):
                self._score = score
            self._fired = self._fired or fires
            return self._fired

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=RLock())


class VectorLatch:
    """The latches of rollouts in parallel environments, one for each.

    Parameters
    ----------
    danger : callable
        The danger of each environment, (num_envs,) numbers in [0, 1].
    certificate_or_threshold : ShieldCertificate, its path, or number
        A latch fires once its danger is at or above it.
    num_envs : int
        The number of environments.

    Raises
    ------
    InvalidTypeError, InvalidValueError, CertificateError
        As `Latch` does.

    Examples
    --------
    >>> latches = VectorLatch(lambda dangers: dangers, 0.8, num_envs=2)
    >>> latches.look([0.1, 0.9]).tolist(), latches.look([0.1, 0.1]).tolist()
    ([False, True], [False, True])
    """

    def __init__(
        self, danger: Callable[[Any], Any], certificate_or_threshold: Any, num_envs: int
    ) -> None:
        self._danger = _callable(danger)
        self._threshold = threshold_of(certificate_or_threshold)
        self._lock = RLock()
        self._rollouts = np.zeros(num_envs, dtype=np.int64)
        self._fired = np.zeros(num_envs, dtype=bool)
        self._scores = np.full(num_envs, np.nan)
        self._failures = np.zeros(num_envs, dtype=np.int64)
        self._last_error = None

    _last_error: BaseException | None

    def __len__(self) -> int:
        return len(self._fired)

    @property
    def threshold(self) -> float:
        """The danger from which each of them fires."""
        return self._threshold

    @property
    def fired(self) -> Flags:
        """Which of them have fired in their rollouts; a copy."""
        with self._lock:
            return self._fired.copy()

    @property
    def scores(self) -> Floats:
        """The last danger read in the rollout of each environment, or that which fired its latch;
        NaN if there is none, or if the reading failed; a copy.
        """
        with self._lock:
            return self._scores.copy()

    @property
    def failures(self) -> Integers:
        """How many readings of each environment failed, over all rollouts; a copy."""
        with self._lock:
            return self._failures.copy()

    @property
    def last_error(self) -> BaseException | None:
        """What was wrong with the last reading that failed."""
        return self._last_error

    def reset(self, mask: Any = None) -> None:
        """Begin a new rollout in the environments of `mask`, or in all of them."""
        begun = slice(None) if mask is None else self._checked(mask)
        with self._lock:
            self._rollouts[begun] += 1
            self._fired[begun] = False
            self._scores[begun] = np.nan

    def look(self, observations: Any, live: Flags | None = None) -> Flags:
        """Where the backup must act. Environments that are not `live` are between two rollouts and
        are passed over.

        An interrupt (KeyboardInterrupt, SystemExit) in the danger model fires the latches and is
        raised.
        """
        asked = np.ones(len(self), dtype=bool) if live is None else live.copy()
        with self._lock:
            rollouts, watched = self._rollouts.copy(), asked & ~self._fired
            if self._threshold == -np.inf:
                self._fired |= watched
            if self._threshold == -np.inf or not watched.any():
                return self._fired & asked
        # What is assumed of a reading until it has ended: whatever cuts it short fires the latches.
        scores: Floats = np.full(len(self), np.nan)
        error: BaseException | None = None
        try:
            scores, error = self._read(observations, watched)
        except BaseException as failure:
            error = failure
            if not isinstance(failure, Exception):
                raise
        finally:
            fired = self._note(rollouts, watched, scores, error)
        return fired & asked

    def _read(self, observations: Any, watched: Flags) -> tuple[Floats, Exception | None]:
        """The danger of each environment, NaN where it is invalid, and what is wrong with the last
        such one of those `watched`.
        """
        array = numeric(as_array(self._danger(observations), "danger"), "danger")
        count = len(self)
        if array.shape not in ((count,), (count, 1)):
            raise InvalidValueError(
                f"danger has shape {array.shape}: expected ({count},), one for each environment."
            )
        scores = array.reshape(count).astype(np.float64)
        valid = (scores >= 0) & (scores <= 1 + ROUNDING)
        bad = np.flatnonzero(watched & ~valid)
        error = _invalid(scores[bad[-1]], f" of environment {bad[-1]}") if bad.size else None
        return np.where(valid, np.minimum(scores, 1.0), np.nan), error

    def _note(
        self, rollouts: Integers, watched: Flags, scores: Floats, error: BaseException | None
    ) -> Flags:
        """Take down a reading of the environments `watched` that began in `rollouts`, and say which
        latches have fired.
        """
        failed = watched & np.isnan(scores)
        fires = failed | (watched & (scores >= self._threshold))
        with self._lock:
            if error is not None:
                self._failures[failed] += 1
                self._last_error = error
            taken = watched & ~self._fired & (fires | (rollouts == self._rollouts))
            self._scores[taken] = scores[taken]
            self._fired |= fires
            return self._fired.copy()

    def _checked(self, mask: Any) -> Flags:
        flags = np.asarray(mask)
        if flags.dtype != bool or flags.shape != (len(self),):
            raise InvalidValueError(
                f"mask has dtype {flags.dtype} and shape {flags.shape}: expected {len(self)} "
                "booleans."
            )
        return flags

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            kept = {name: value for name, value in vars(self).items() if name != "_lock"}
            arrays = {name: v.copy() for name, v in kept.items() if isinstance(v, np.ndarray)}
            return {**kept, **arrays}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=RLock())


def threshold_of(certificate_or_threshold: Any) -> float:
    """The danger at which a shield fires: a number, or that of a certificate if it follows from its
    own counts.
    """
    given = certificate_of(certificate_or_threshold)
    if isinstance(given, Certificate):
        if not isinstance(given, ShieldCertificate):
            raise InvalidTypeError(
                f"{with_article(given.kind).capitalize()} certificate has no danger threshold: "
                f"expected one of certify_shield.{_hint(given)}"
            )
        given.require_verified()
        return given.threshold
    threshold = real_number(given, "threshold", "a danger threshold")
    if not (0 <= threshold <= 1 or np.isinf(threshold)):
        raise InvalidValueError(
            f"threshold={threshold} is not a danger threshold: expected 0 to 1, -inf to "
            "always brake, or +inf to never brake."
        )
    return threshold


def _hint(given: Certificate) -> str:
    """What the certificate claims instead, or which of its claims may be passed."""
    if given.inside:
        return f" Pass one of its claims: {', '.join(given.inside)}."
    if not isinstance(given, ClaimCertificate):
        return ""
    return f" It does not claim safety. {given.says.promise or ''}".rstrip()


def _one_score(value: Any) -> float:
    if isinstance(value, float) and 0.0 <= value <= 1.0:
        return float(value)
    array: Array = numeric(as_array(value, "danger"), "danger")
    if array.size != 1:
        raise InvalidValueError(f"danger has shape {array.shape}: expected one number.")
    score = float(array.reshape(1).astype(np.float64)[0])
    if not 0 <= score <= 1 + ROUNDING:
        raise _invalid(score)
    return min(score, 1.0)


def _invalid(score: float, whose: str = "") -> InvalidValueError:
    return InvalidValueError(
        f"The danger{whose} is {score}: expected 0 to 1, high where un-recoverable. Is it a logit?"
    )


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
