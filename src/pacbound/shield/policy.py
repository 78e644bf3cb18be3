"""The shield as a policy: another policy acts until the danger reaches the threshold, then the
backup does, until reset.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacbound.claims.certificate import Certificate, certificate_of
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.shield.actor import Actor, begin_anew
from pacbound.shield.latch import Flags, Latch, WithDeadline
from pacbound.stats.arguments import real_number, whole_number
from pacbound.tally.questions import with_article


class Shield:
    """A policy under a shield: it acts while the danger is below the threshold; from then on, until
    reset, its backup does.

    With a certified `ShieldCertificate`, at most a share `xi` of the rollouts is unsafe, with
    probability at least 1 - `delta` over the draw of the rollouts that certified it, for rollouts
    from the distribution they came from, with the same policy, backup and danger they were made
    with. If it was certified with `rate="among-unsafe"`, its `xi` says more: at most such a share
    of the rollouts that would be unsafe without the shield is missed, and so at most such a share
    of all rollouts is unsafe, too. With one of `certify_rate` at most 1 - `target` is unsafe at the
    threshold that was driven, and at no lower one; with one of `certify_forks` from its `start` up
    to its threshold, without a `deadline`. A threshold given as a number carries no guarantee. A
    refused certificate always brakes.

    It fails closed: if the danger model raises, or returns anything but a number from 0 to 1, the
    backup acts, and `failures` counts it. What the policy or the backup raises is raised.

    Several threads may call one shield: any of them that reads a high danger fires it for all, and
    nothing but `reset` releases it. A call that is under way during `reset` may fire the shield in
    the new rollout. Policies with a memory of their own must be called by one thread at a time.
    A copy, or a shield that was pickled, has fired if the original had.

    Parameters
    ----------
    policy, backup : callables, or objects with `predict`
        What acts on an observation: a function, a torch module, a stable-baselines3 model or its
        method `predict`. The state of a recurrent model is kept until `reset`; what has a method
        `reset()` of its own is reset, too. A function that gives a state beside its action is
        refused: nobody could hand the state back.
    danger : callable
        The danger of an observation in [0, 1], high where un-recoverable. If it has a method
        `reset()`, that is called at each reset.
    certificate_or_threshold : certificate of a shield, its path, or number
        The shield fires once the danger is at or above it.
    deadline : float or None
        The seconds that the danger model has for an observation. If it is late, or hangs, the
        backup acts, and `failures` counts it; an answer that comes later is thrown away. The model
        then runs in a thread of its own, about 30 microseconds a call. None waits as long as it
        takes. A certificate of `certify_forks` does not cover a deadline, and warns: to brake at a
        late reading is to brake early, which no fork has counted.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If policy, backup or danger cannot be called, or the threshold is not one.
    CertificateError
        If the certificate was changed, or does not follow from its own counts.

    Examples
    --------
    >>> shield = Shield(
    ...     policy=lambda x: "drive",
    ...     backup=lambda x: "brake",
    ...     danger=lambda x: x,
    ...     certificate_or_threshold=0.8,
    ... )
    >>> [shield(danger) for danger in (0.1, 0.7, 0.8, 0.1)]
    ['drive', 'drive', 'brake', 'brake']
    >>> shield.reset()
    >>> shield(0.1), shield(float("nan")), shield.failures
    ('drive', 'brake', 1)
    """

    def __init__(
        self,
        policy: Any,
        backup: Any,
        danger: Callable[[Any], Any],
        certificate_or_threshold: Certificate | str | os.PathLike[str] | float,
        *,
        deadline: float | None = None,
    ) -> None:
        self._policy = Actor(policy, "policy")
        self._takeover = Takeover(backup, danger, certificate_or_threshold, deadline=deadline)
        self._latch = self._takeover.latch

    def __call__(self, observation: Any) -> Any:
        """The action of the policy, or, once the shield has fired, that of the backup."""
        return self._takeover.act(observation, self._policy.act)[1]

    def reset(self) -> None:
        """Begin a new rollout: the policy acts again."""
        self._takeover.reset()
        self._policy.reset()

    @property
    def threshold(self) -> float:
        """The danger from which the backup acts."""
        return self._latch.threshold

    @property
    def fired(self) -> bool:
        """Whether the backup has taken over in this rollout."""
        return bool(self._latch.fired)

    @property
    def danger(self) -> float:
        """The last danger read in this rollout; NaN if there is none. Once the shield has fired it
        is not asked again.
        """
        return float(self._latch.score)

    @property
    def failures(self) -> int:
        """How often reading the danger failed, over all rollouts."""
        return int(self._latch.failures)

    @property
    def last_error(self) -> BaseException | None:
        """What was wrong the last time that reading the danger failed."""
        return self._latch.last_error

    def __repr__(self) -> str:
        return f"Shield(threshold={self.threshold!r}, fired={self.fired}, failures={self.failures})"


class VectorShield:
    """A shield over parallel environments, each with a latch of its own. The guarantee is that of
    `Shield`.

    Policy, backup and danger are called with the observations of all environments at once. Where
    the danger is not a number from 0 to 1, the backup acts in that environment; if the danger model
    raises, or gives an array of the wrong shape, the backup acts in all of them. What `Shield` says
    of threads and copies holds here too.

    Parameters
    ----------
    policy, backup : callables, or objects with `predict`
        What gives an action for each environment.
    danger : callable
        The danger of each environment, (n,) numbers in [0, 1].
    certificate_or_threshold : certificate of a shield, its path, or number
        As in `Shield`.
    num_envs : int
        The number of environments.
    deadline : float or None
        As in `Shield`; if the danger model is late, the backup acts in all environments.

    Raises
    ------
    InvalidTypeError, InvalidValueError, CertificateError
        As `Shield` does; and `InvalidValueError` where the actions of policy and backup have
        different shapes.

    Examples
    --------
    >>> drive, brake = (lambda x: np.ones(len(x))), (lambda x: np.zeros(len(x)))
    >>> shield = VectorShield(drive, brake, lambda x: x, 0.8, num_envs=3)
    >>> shield(np.array([0.1, 0.9, np.nan])).tolist()
    [1.0, 0.0, 0.0]
    >>> shield.reset([False, True, False])
    >>> shield(np.array([0.1, 0.1, 0.1])).tolist()
    [1.0, 1.0, 0.0]
    """

    def __init__(
        self,
        policy: Any,
        backup: Any,
        danger: Callable[[Any], Any],
        certificate_or_threshold: Certificate | str | os.PathLike[str] | float,
        *,
        num_envs: int,
        deadline: float | None = None,
    ) -> None:
        self._policy = Actor(policy, "policy")
        count = whole_number(num_envs, "num_envs", least=1)
        self._takeover = Takeover(
            backup, danger, certificate_or_threshold, count, deadline=deadline
        )
        self._latch = self._takeover.latch

    def __call__(self, observations: Any) -> Any:
        """An action for each environment: the backup's where the shield has fired, the policy's
        elsewhere.
        """
        return self._takeover.act(observations, self._policy.act)[1]

    def reset(self, mask: Any = None) -> None:
        """Begin a new rollout in some environments or in all.

        Parameters
        ----------
        mask
            A truth value for each environment: where a new rollout begins. None is all of them.
        """
        self._takeover.reset(mask)
        self._policy.reset(None if mask is None else np.asarray(mask))

    @property
    def threshold(self) -> float:
        """The danger from which the backup acts."""
        return self._latch.threshold

    @property
    def fired(self) -> NDArray[np.bool_]:
        """Where the backup has taken over."""
        return np.asarray(self._latch.fired)

    @property
    def danger(self) -> NDArray[np.float64]:
        """The last danger read in the rollout of each environment; NaN where there is none."""
        return np.asarray(self._latch.score)

    @property
    def failures(self) -> NDArray[np.int64]:
        """How often reading the danger of each environment failed, over all rollouts."""
        return np.asarray(self._latch.failures)

    @property
    def last_error(self) -> BaseException | None:
        """What was wrong the last time that reading the danger failed."""
        return self._latch.last_error

    def __repr__(self) -> str:
        fired = f"{int(self.fired.sum())} of {self.fired.size}"
        return (
            f"VectorShield(threshold={self.threshold!r}, fired in {fired}, "
            f"failures={int(self.failures.sum())})"
        )


def threshold_of(certificate_or_threshold: Any) -> float:
    """The danger at which a shield fires: a number, or that of a certificate if it follows from its
    own counts.
    """
    given = shield_in(certificate_or_threshold)
    if isinstance(given, Certificate):
        if not given.is_shield:
            hint = f" It does not claim safety. {given.says.promise or ''}".rstrip()
            if given.inside:
                hint = f" Pass one of its claims: {', '.join(given.inside)}."
            raise InvalidTypeError(
                f"{with_article(given.kind).capitalize()} certificate has no danger threshold: "
                "expected one of certify_shield or certify_forks, or of certify_rate with the "
                f"threshold that was driven.{hint}"
            )
        given.require_verified()
        brakes_from: Any = given
        return float(brakes_from.threshold)
    threshold = real_number(given, "threshold", "a danger threshold")
    if not (0 <= threshold <= 1 or np.isinf(threshold)):
        raise InvalidValueError(
            f"threshold={threshold} is not a danger threshold: expected 0 to 1, -inf to "
            "always brake, or +inf to never brake."
        )
    return threshold


def shield_in(certificate_or_threshold: Any) -> Any:
    """The shield among several claims in one certificate, if there is one; what was given, else."""
    given = certificate_of(certificate_or_threshold)
    if not isinstance(given, Certificate):
        return given
    shields = [member for member in given.inside.values() if member.is_shield]
    if len(shields) != 1:
        return given
    given.require_verified()
    return shields[0]


class Takeover:
    """A backup and the latch that hands over to it, for one rollout or for parallel environments,
    as in `Latch`.
    """

    def __init__(
        self,
        backup: Any,
        danger: Any,
        certificate_or_threshold: Any,
        num_envs: int | None = None,
        *,
        deadline: float | None = None,
    ) -> None:
        self._alone = num_envs is None
        self._backup = Actor(backup, "backup")
        self._danger = danger if deadline is None else WithDeadline(danger, deadline)
        given = shield_in(certificate_or_threshold)
        self.latch = Latch(self._danger, threshold_of(given), num_envs)
        warning = given.by.deadline_warning if isinstance(given, Certificate) else ""
        if deadline is not None and warning and self.latch.threshold > -np.inf:
            warnings.warn(warning, UserWarning, stacklevel=3)

    def reset(self, mask: Any = None) -> None:
        """Begin a new rollout, or new ones in the environments of `mask`."""
        self.latch.reset(mask)
        begin_anew(self._danger, None if mask is None else np.asarray(mask))
        self._backup.reset(None if mask is None else np.asarray(mask))

    def act(
        self, observation: Any, policy: Callable[[Any], Any], live: Flags | None = None
    ) -> tuple[Any, Any]:
        """Whether the backup must act, and the action: the backup's where it must, and else the
        policy's, which is asked only where it counts.
        """
        if self._alone:
            fired = self.latch.look(observation)
            return fired, self._backup.act(observation) if fired else policy(observation)
        before = self.latch.fired
        fired = self.latch.look(observation, live)
        # A backup with memory begins where it takes over, as it did where it was tried out.
        self._backup.reset(fired & ~before)
        if fired.all():
            return fired, self._backup.act(observation)
        if not fired.any():
            return fired, policy(observation)
        return fired, merged(fired, self._backup.act(observation), policy(observation))


def merged(fired: NDArray[np.bool_], backup: Any, policy: Any) -> Any:
    """The backup's actions where the shield has fired and the policy's elsewhere; composite actions
    part by part.
    """
    if isinstance(policy, dict) and isinstance(backup, dict) and policy.keys() == backup.keys():
        return {key: merged(fired, backup[key], policy[key]) for key in policy}
    if isinstance(policy, tuple) and isinstance(backup, tuple) and len(policy) == len(backup):
        return tuple(merged(fired, one, other) for one, other in zip(backup, policy, strict=True))
    one, other = np.asarray(backup), np.asarray(policy)
    if one.shape != other.shape or one.shape[:1] != fired.shape:
        raise InvalidValueError(
            f"The backup gives actions of shape {one.shape} and the policy of shape {other.shape}: "
            f"expected one shape, with {len(fired)} environments first."
        )
    return np.where(fired.reshape(-1, *[1] * (one.ndim - 1)), one, other)
