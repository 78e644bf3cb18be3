"""Watching the danger of a rollout, or of several in parallel: the shield fires at the threshold
and stays fired until reset.

The rule is the one that was certified: it fires once the float64 danger is at or above the
threshold. It fails closed: a model that raises, or says what is no danger (NaN, text, a number
outside [0, 1], the wrong shape), fires it. Firing too early breaks no guarantee, since up to the
first un-recoverable state the backup is safe.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacbound.certificate.document import Certificate
from pacbound.certificate.shield import ShieldCertificate
from pacbound.errors import CertificateError, InvalidTypeError, InvalidValueError
from pacbound.stats.arguments import real_number
from pacbound.tally.columns import ROUNDING, Array, as_array, numeric

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


class Latch:
    """The danger of one rollout, step by step.

    `failures` counts the readings that were no danger, over all rollouts, and `last_error` says
    what was wrong with the last one.
    """

    def __init__(self, danger: Callable[[Any], Any], certificate_or_threshold: Any) -> None:
        self._danger = _callable(danger)
        self.threshold = threshold_of(certificate_or_threshold)
        self.failures = 0
        self.last_error: Exception | None = None
        self.reset()

    def reset(self) -> None:
        """Begin a new rollout."""
        self.fired = False
        self.score = np.nan

    def look(self, observation: Any) -> bool:
        """Whether the backup must act on this observation; once it must, the danger is not asked
        again.
        """
        if self.fired:
            return True
        if self.threshold == -np.inf:
            self.fired = True
            return True
        try:
            self.score = _one_score(self._danger(observation))
        except Exception as error:  # whatever goes wrong in the danger model, the robot brakes
            self.score, self.fired, self.last_error = np.nan, True, error
            self.failures += 1
        else:
            self.fired = self.score >= self.threshold
        return self.fired


class VectorLatch:
    """The dangers of rollouts in parallel environments, each with a latch of its own.

    `failures` counts the readings of each environment that were no danger, and `last_error` says
    what was wrong with the last.
    """

    def __init__(
        self, danger: Callable[[Any], Any], certificate_or_threshold: Any, num_envs: int
    ) -> None:
        self._danger = _callable(danger)
        self.threshold = threshold_of(certificate_or_threshold)
        self.failures = np.zeros(num_envs, dtype=np.int64)
        self.last_error: Exception | None = None
        self.fired = np.zeros(num_envs, dtype=bool)
        self.scores = np.full(num_envs, np.nan)

    def reset(self, mask: Any = None) -> None:
        """Begin a new rollout in the environments of `mask`, or in all of them."""
        begun = slice(None) if mask is None else self._checked(mask)
        self.fired[begun] = False
        self.scores[begun] = np.nan

    def look(self, observations: Any, live: Flags | None = None) -> Flags:
        """Where the backup must act; environments that are not `live` are between two rollouts and
        are passed over.
        """
        watched = ~self.fired if live is None else live & ~self.fired
        if self.threshold == -np.inf:
            self.fired |= watched
        elif watched.any():
            scores = self._read(observations, watched)
            self.scores[watched] = scores[watched]
            # NaN is at or above nothing, so it is asked about the other way round.
            self.fired |= watched & ~(scores < self.threshold)
        return self.fired.copy() if live is None else self.fired & live

    def _read(self, observations: Any, watched: Flags) -> Floats:
        """The danger of each environment, NaN where it is none; failures of those `watched` are
        recorded.
        """
        try:
            scores = self._numbers(self._danger(observations))
        except Exception as error:  # whatever goes wrong in the danger model, all robots brake
            self.failures[watched] += 1
            self.last_error = error
            return np.full(len(self.fired), np.nan)
        legal = (scores >= 0) & (scores <= 1 + ROUNDING)
        bad = np.flatnonzero(watched & ~legal)
        if bad.size:
            self.failures[bad] += 1
            self.last_error = _no_danger(scores[bad[-1]], f" of environment {bad[-1]}")
        return np.where(legal, np.minimum(scores, 1.0), np.nan)

    def _numbers(self, values: Any) -> Floats:
        array, count = numeric(as_array(values, "danger"), "danger"), len(self.fired)
        if array.shape not in ((count,), (count, 1)):
            raise InvalidValueError(
                f"danger has shape {array.shape}: expected ({count},), one for each environment."
            )
        return array.reshape(count).astype(np.float64)

    def _checked(self, mask: Any) -> Flags:
        flags = np.asarray(mask)
        if flags.dtype != bool or flags.shape != self.fired.shape:
            raise InvalidValueError(
                f"mask has dtype {flags.dtype} and shape {flags.shape}: expected {len(self.fired)} "
                "booleans."
            )
        return flags


def threshold_of(certificate_or_threshold: Any) -> float:
    """The danger at which a shield fires: a number, or that of a certificate if it follows from its
    own counts.
    """
    given = certificate_or_threshold
    if isinstance(given, Certificate):
        if not isinstance(given, ShieldCertificate):
            raise InvalidTypeError(
                f"A {given.kind} certificate has no danger threshold: expected one of "
                "certify_shield."
            )
        given.require_intact()
        found = given.verify()
        if not found:
            raise CertificateError(
                f"This certificate does not follow from its own counts. Do not use it. {found}"
            )
        return given.threshold
    threshold = real_number(given, "threshold", "a danger threshold")
    if not (0 <= threshold <= 1 or np.isinf(threshold)):
        raise InvalidValueError(
            f"threshold={threshold} is no danger: expected 0 to 1, -inf to always brake or +inf to "
            "never."
        )
    return threshold


def _one_score(value: Any) -> float:
    if isinstance(value, float) and 0.0 <= value <= 1.0:
        return float(value)
    array: Array = numeric(as_array(value, "danger"), "danger")
    if array.size != 1:
        raise InvalidValueError(f"danger has shape {array.shape}: expected one number.")
    score = float(array.reshape(1).astype(np.float64)[0])
    if not 0 <= score <= 1 + ROUNDING:
        raise _no_danger(score)
    return min(score, 1.0)


def _no_danger(score: float, whose: str = "") -> InvalidValueError:
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
