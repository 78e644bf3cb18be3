"""Watching over several claims at once: a monitor for each, which share one promise.

Each claim of a bundle has a monitor of its own with a share of delta, so that any of them ever
rings falsely with probability at most the sum of the shares, however much their labels depend on
each other (`pacbound.procedures.union`). On the second clock each alarm has the full number A of
labels: the sums of all monitors less the labels of all of them are a supermartingale, so that the
mean number of labels, of all claims together, to a false alarm of any is at least A.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from types import MappingProxyType
from typing import Any

from pacbound.claims.certificate import Certificate
from pacbound.documents import Json, Reader
from pacbound.errors import (
    CertificateError,
    InvalidTypeError,
    InvalidValueError,
    PacboundError,
)
from pacbound.monitor import state_file
from pacbound.monitor.monitor import Alarm, ClassOptions, Monitor, SavedMonitor
from pacbound.monitor.state import watch_of
from pacbound.procedures import union


class BundleMonitor(SavedMonitor):
    """An alarm for each claim of a bundle, all under one promise.

    While all claims hold at every step, whatever came before, *any* alarm ever rings with
    probability at most `delta`. With `false_alarms="one per 1e6 labels"` the mean number of labels,
    of all claims together, to a false alarm of any is at least that many. What labels must be, and
    what an alarm means, is said at `Monitor`. Several threads may share one, as they may share a
    `Monitor`.

    A claim that cannot be watched, such as one that was refused, is left out, and `unwatched` says
    why.

    Parameters
    ----------
    certificate
        A `CertificateBundle`.
    delta
        The chance that any alarm ever rings although all claims hold. It is shared out equally.
    false_alarms
        "ever"; or, for the second clock, "one per 1e6 labels" or the number 1e6. These are the
        labels of all claims together: a row that is a label of two claims counts twice.
    classes, missing, unseen_labels
        About predictions and labels, as in `certify_cascade`. They are not saved.

    Attributes
    ----------
    certificate : Certificate
        What is watched over.
    monitors : mapping of str to Monitor
        The monitor of each claim that is watched.
    unwatched : mapping of str to str
        Why each of the others is not.

    Raises
    ------
    CertificateError
        If the bundle was changed or does not follow from its own counts.
    InvalidTypeError, InvalidValueError
        If it holds one claim only, or none that can be watched; if `delta` or `false_alarms` is not
        a promise.

    Examples
    --------
    >>> from functools import partial
    >>> from pacbound import calibrate, certify_shield, certify_together
    >>> bundle = certify_together(
    ...     {
    ...         "brake": partial(certify_shield, [0.1] * 500, [False] * 500, xi=0.02),
    ...         "danger": partial(calibrate, [0.1] * 500, [False] * 500),
    ...     },
    ...     delta=0.02,
    ... )
    >>> monitor = BundleMonitor(bundle, delta=1e-3)
    >>> monitor.update({"brake": [False] * 100})
    {}
    >>> rung = monitor.update(
    ...     {"danger": {"confidence": [0.1] * 50, "correct": [True, False] * 25}}
    ... )
    >>> rung["danger"].where
    'bin (0.05, 0.1]'
    """

    _layout = state_file.SEVERAL

    def _begin(self, options: ClassOptions) -> None:
        watched, unwatched = _sorted_out(self.certificate)
        shares = union.shares(self.delta, [1.0] * len(watched))
        self.unwatched: Mapping[str, str] = MappingProxyType(unwatched)
        self.monitors: Mapping[str, Monitor] = MappingProxyType(
            {
                name: Monitor(member, delta=share, false_alarms=self.false_alarms, **options)
                for (name, member), share in zip(watched.items(), shares, strict=True)
            }
        )

    @property
    def promise(self) -> str:
        """What is promised about false alarms of all claims together, in words."""
        return self._promise.words(several=True)

    @property
    def alarms(self) -> dict[str, tuple[Alarm, ...]]:
        """The alarms so far, of each claim that has any."""
        rung = {name: monitor.alarms for name, monitor in self.monitors.items()}
        return {name: alarms for name, alarms in rung.items() if alarms}

    def update(
        self,
        outcomes: Mapping[str, Any],
        *,
        columns: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> dict[str, Alarm]:
        """Take in the outcomes of more rows, for some of the claims or all.

        Parameters
        ----------
        outcomes
            By the names of the claims, what `Monitor.update` takes for each. A claim that is not
            named has no new rows.
        columns
            By the names of the claims, the names of the columns where a frame is passed.

        Returns
        -------
        dict of str to Alarm
            What `Monitor.update` returned for each claim, where there is an alarm; empty if there
            is none.

        Raises
        ------
        InvalidValueError, InvalidTypeError
            If a claim is not watched, or a value cannot be what it should be; nothing is taken in
            then, for any of the claims.
        """
        if not isinstance(outcomes, Mapping):
            raise InvalidTypeError(
                f"outcomes is of type {type(outcomes).__name__}: expected a mapping from claims to "
                f"their outcomes, such as {{{next(iter(self.monitors))!r}: …}}."
            )
        named = {} if columns is None else columns
        strange = next((name for name in named if name not in outcomes), None)
        if strange is not None:
            raise InvalidTypeError(
                f"columns names the claim {strange!r}, which has no outcomes: leave it out."
            )
        found = {}
        with self.all_or_nothing():
            for name, given in outcomes.items():
                alarm = self._watching(name).update(given, columns=named.get(name))
                if alarm is not None:
                    found[name] = alarm
        return found

    def all_or_nothing(self) -> ExitStack:
        """For a `with` block: whatever was taken in when it is left by an error is forgotten, for
        all claims. Other threads wait until the block is left.

        Returns
        -------
        contextlib.ExitStack
            To be entered.
        """
        stack = ExitStack()
        for monitor in self.monitors.values():
            stack.enter_context(monitor.all_or_nothing())
        return stack

    def _watching(self, name: str) -> Monitor:
        if name in self.monitors:
            return self.monitors[name]
        why = self.unwatched.get(name)
        raise InvalidValueError(
            f"There is no claim {name!r} that is watched: expected {_listed(self.monitors)}."
            if why is None
            else f"The claim {name!r} is not watched: {why}"
        )

    @property
    def sources(self) -> tuple[str, ...]:
        """The fingerprints of the files that were taken in, for any of the claims."""
        found = [source for one in self.monitors.values() for source in one.sources]
        return tuple(dict.fromkeys(found))

    def _written(self) -> dict[str, Json]:
        return {"monitors": {name: one.to_dict() for name, one in self.monitors.items()}}

    def _take_over(self, part: Reader) -> None:
        parts = part.mapping("monitors")
        if set(parts.names()) != self.monitors.keys():
            raise CertificateError(
                f"{part.place('monitors')} are of {_listed(parts.names())}, not of "
                f"{_listed(self.monitors)}: restore an intact copy, or begin anew."
            )
        for claim, monitor in self.monitors.items():
            monitor.go_on_from(parts.raw(claim), parts.place(claim))

    def _words(self) -> str:
        many = len(self.monitors)
        lines = [f"Monitor of {many} claim{'s' * (many > 1)}", self.promise]
        lines += [f"\n{name}: {monitor.summary()}" for name, monitor in self.monitors.items()]
        lines += [f"\n{name}: not watched. {why}" for name, why in self.unwatched.items()]
        return "\n".join(lines)


def _sorted_out(certificate: Any) -> tuple[dict[str, Certificate], dict[str, str]]:
    """The claims that can be watched, and why the others cannot."""
    if not isinstance(certificate, Certificate) or not certificate.inside:
        raise InvalidTypeError(
            f"certificate is of type {type(certificate).__name__}: expected a CertificateBundle. "
            "Monitor watches over a single claim."
        )
    certificate.require_verified()
    watched: dict[str, Certificate] = {}
    unwatched: dict[str, str] = {}
    for name, member in certificate.inside.items():
        try:
            watch_of(member)
        except PacboundError as error:
            unwatched[name] = str(error)
        else:
            watched[name] = member
    if not watched:
        reasons = " ".join(f"{name}: {why}" for name, why in unwatched.items())
        raise InvalidValueError(f"No claim of this certificate can be watched. {reasons}")
    return watched, unwatched


def _listed(names: Any) -> str:
    return ", ".join(map(repr, names))
