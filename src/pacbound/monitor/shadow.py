"""Which rows of traffic the slow model answers too, in the shadow: decided by a key, row by row,
before anything is known of the outcome.

To look only at a random share of the traffic is as good as to look at all of it, and slower by that
share: the rows that are looked at, those that do not exit early among them, lose as much as all
rows do. To look at a share of the exits only would test the loss per exit, which is larger, and
ring falsely.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from math import ceil
from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacbound.claims.certificate import Certificate, certificate_of
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.forms import Number
from pacbound.monitor.state import Promise, watch_of
from pacbound.sources.values import is_missing
from pacbound.stats.arguments import generator, real_number, whole_number
from pacbound.stats.betting import BLOCK, Bets, Restarts
from pacbound.tally.classes import is_missing_code
from pacbound.tally.columns import as_names

_STREAMS = 400
# Healthy labels before the rise in each stream of a plan: the wealth forgets what was before.
_BEFORE = 2000

_CHUNK = 500
# What a row of a cascade may bring, in the order of the rates of a stream.
_OUTCOMES = ("gained", "equal", "lost")
_SHARE = Number("a share of the rows", 0.0, 1.0, "(]")
_CHANCE = Number("a chance", 0.0, 1.0)


@dataclass(frozen=True)
class Shadow:
    """A share of the rows of traffic, drawn by a key.

    Whether a row is drawn depends on its own name and the key alone, so that every machine decides
    alike, without a state, and before the outcome: a row is drawn if BLAKE2b of its name, keyed,
    as 8 bytes read from the most significant on, is below the share of 2^64.

    Parameters
    ----------
    share
        The share of the rows that is drawn, 0 < share <= 1.
    key
        1 to 64 bytes, or text of as many. Draw one at random, once, and keep it: to try several
        and pick one by its outcomes voids every promise.

    Raises
    ------
    InvalidValueError, InvalidTypeError
        If the share or the key is not one.

    Examples
    --------
    >>> shadow = Shadow(0.25, key="7d1f")
    >>> shadow.mask(["request-21", "request-22", "request-23"]).tolist()
    [True, False, True]
    >>> round(float(shadow.mask(range(10_000)).mean()), 2)
    0.25
    """

    share: float
    key: str | bytes

    def __post_init__(self) -> None:
        _SHARE.check(self.share, "share")
        if not isinstance(self.key, (str, bytes)):
            raise InvalidTypeError(f"key={self.key!r} is not a key: expected text or bytes.")
        if not 1 <= len(self._key) <= 64:
            raise InvalidValueError(
                f"key has {len(self._key)} bytes: expected 1 to 64, drawn at random once."
            )

    def wants(self, row: int | str) -> bool:
        """Whether a row is drawn.

        Parameters
        ----------
        row
            Its name: a number that counts the rows of traffic, or text such as the id of a
            request. 12 and "12" are the same row. No two rows may share a name.

        Returns
        -------
        bool
            True for the share of all names that is drawn.

        Raises
        ------
        InvalidTypeError
            If `row` is neither a whole number nor text.
        """
        if isinstance(row, bool) or not isinstance(row, (int, str, np.integer)):
            raise InvalidTypeError(
                f"row={row!r} does not name a row: expected a whole number or text."
            )
        name = str(row).encode("utf-8", "surrogatepass")
        drawn = blake2b(name, digest_size=8, key=self._key).digest()
        return int.from_bytes(drawn, "big") < int(self.share * 2**64)

    def mask(self, rows: Iterable[Any]) -> NDArray[np.bool_]:
        """Which of some rows are drawn.

        Parameters
        ----------
        rows
            Their names, as for `wants`.

        Returns
        -------
        ndarray of bool
            True where a row is drawn.

        Raises
        ------
        InvalidTypeError
            As from `wants`.
        """
        return np.fromiter(map(self.wants, rows), dtype=bool)

    @property
    def _key(self) -> bytes:
        return self.key.encode() if isinstance(self.key, str) else self.key


@dataclass(frozen=True)
class ShadowRow:
    """A row of traffic that the slow model answered, too.

    Attributes
    ----------
    row : int or str
        Its name.
    item
        What the models were asked.
    answer, slow
        The answer that was given, and that of the slow model.
    group
        The group of the row, if it has one.

    Examples
    --------
    >>> ShadowRow("request-21", "my money back", "refund", "refund").differs
    False
    """

    row: int | str
    item: Any
    answer: Any
    slow: Any
    group: Any = None

    @property
    def differs(self) -> bool:
        """Whether the answer is not the slow model's."""
        return bool(self.answer != self.slow)


class ShadowFeed:
    """Feeds a monitor with the rows that a shadow draws, in the order in which they came.

    `AsyncCascade(..., shadow=ShadowFeed(shadow, monitor))` asks the slow model about the rows that
    are drawn, those that a fast model answers among them, and hands them over here. A row that is
    finished early waits for those before it: in the order of their answers, rows whose answers take
    longer would come late, and the promise about false alarms would not hold.

    A row for which the slow model gives no answer is dropped and counted. If whether it fails has
    to do with what is lost there, the promise does not hold: keep `dropped` small.

    Where `take` or `label` raises an error, no request fails and no row is lost: the row and those
    behind it are held, a RuntimeWarning says so once, and the next row that ends tries again.
    `failed` counts the errors, `reason` tells the last while rows are held for it, `held` says how
    many rows wait, and `hand_on` tries again and raises. A function that fails halfway is called
    again with the same row.

    Parameters
    ----------
    shadow : Shadow
        Which rows are drawn.
    take : Monitor or callable
        A monitor of a cascade. Or a function of a `ShadowRow`, such as one that writes it to a
        table for `pacbound monitor`, where labels come later.
    label : callable, optional
        Gives the label of a `ShadowRow`; called where answers differ. A monitor of a claim about
        the loss needs it, one of the claim that few answers differ does not. A label that is
        missing (None, NaN, "n/a") counts as a gain, so that the promise about false alarms holds
        whatever the reason, and in `unlabelled`: alarms come later, or never if there are many.

    Raises
    ------
    InvalidTypeError
        If `shadow` or `take` is not one, or a label is needed. From `AsyncCascade`, if the monitor
        asks for the groups of rows and the thresholds do not, or the other way round.

    Examples
    --------
    >>> import asyncio
    >>> from pacbound import Monitor, certify_cascade
    >>> from pacbound.cascade import Answer, AsyncCascade
    >>> certificate = certify_cascade(
    ...     [0.9] * 500, [["refund", "refund"]] * 500, xi=0.05, delta=0.01, claim="differ"
    ... )
    >>> async def small(text):
    ...     return Answer("refund", 0.9)
    >>> async def large(text):
    ...     return Answer("other")
    >>> monitor = Monitor(certificate, delta=1e-3)
    >>> feed = ShadowFeed(Shadow(0.25, key="7d1f"), monitor)
    >>> router = AsyncCascade([small, large], certificate, shadow=feed)
    >>> result = asyncio.run(router.run(["a text"] * 60, row_ids=range(60)))
    >>> result.answered.tolist(), monitor.seen, len(monitor.alarms)
    ([60, 0], {'gained': 0, 'equal': 0, 'lost': 22}, 1)
    """

    def __init__(
        self, shadow: Shadow, take: Any, *, label: Callable[[ShadowRow], Any] | None = None
    ) -> None:
        if not isinstance(shadow, Shadow):
            raise InvalidTypeError.of("shadow", shadow, "a Shadow, with its share and its key")
        certificate = getattr(take, "certificate", None)
        if not isinstance(certificate, Certificate) and not callable(take):
            raise InvalidTypeError.of("take", take, "a Monitor, or a function of a ShadowRow")
        self._shadow, self._label = shadow, label
        self._take = take if certificate is None else partial(self._fed, take)
        self._needs_groups: bool | None = None
        if certificate is not None:
            self._require_labels(certificate)
            self._needs_groups = bool(getattr(certificate, "groups", ()))
        # By their names, in order; None until a row has ended.
        self._rows: dict[str, ShadowRow | None] = {}
        self._lock = RLock()
        self.dropped = self.unlabelled = self.failed = 0
        self.reason: str | None = None

    @property
    def needs_groups(self) -> bool | None:
        """Whether the monitor asks for the group of each row; None if rows go to a function."""
        return self._needs_groups

    @property
    def held(self) -> int:
        """How many rows are under way, or wait for those before them."""
        return len(self._rows)

    def wants(self, row: int | str) -> bool:
        """Whether a row is drawn, as `Shadow.wants` says."""
        return self._shadow.wants(row)

    def begin(self, row: int | str) -> None:
        """A row that is drawn has come in.

        Parameters
        ----------
        row
            Its name. No two rows may share one.

        Raises
        ------
        InvalidValueError
            If a row of that name is under way.
        """
        with self._lock:
            if str(row) in self._rows:
                raise InvalidValueError(
                    f"Row {row!r} is under way twice: give each request a name of its own."
                )
            self._rows[str(row)] = None

    def end(self, row: int | str, item: Any, answer: Any, slow: Any, group: Any = None) -> None:
        """A row was answered by the slow model, too. It is handed on when all rows before it are.

        Parameters
        ----------
        row, item, answer, slow, group
            As in `ShadowRow`.
        """
        with self._lock:
            self._rows[str(row)] = ShadowRow(row, item, answer, slow, group)
            self._try_to_hand_on()

    def drop(self, row: int | str) -> None:
        """A row was not answered by the slow model.

        Parameters
        ----------
        row
            Its name.
        """
        with self._lock:
            del self._rows[str(row)]
            self.dropped += 1
            self._try_to_hand_on()

    def hand_on(self) -> None:
        """Hand on the rows that are finished, up to the first that is still under way.

        Raises
        ------
        Exception
            What `take` or `label` raises; the row is held.
        """
        with self._lock:
            while self._rows:
                first, ready = next(iter(self._rows.items()))
                if ready is None:
                    break
                try:
                    self._take(ready)
                except Exception as error:
                    self.failed += 1
                    self.reason = f"row {ready.row!r}: {type(error).__name__}: {error}"
                    raise
                del self._rows[first]
            self.reason = None

    def _try_to_hand_on(self) -> None:
        """Hand on rows in the middle of a request, which must not fail for it."""
        known = self.reason
        with suppress(Exception):
            self.hand_on()
        if known is None and self.reason is not None:
            warnings.warn(
                f"The shadow holds its rows, and the monitor sees none: {self.reason}. The next "
                "row tries again; ShadowFeed.hand_on() does, too, and raises.",
                RuntimeWarning,
                stacklevel=3,
            )

    def _require_labels(self, certificate: Certificate) -> None:
        claimed = getattr(certificate, "bounded", None)
        if claimed is None or getattr(certificate, "graded", None) is not None:
            raise InvalidTypeError(
                "A shadow feeds the monitor of a cascade whose answers are compared, and not "
                "graded: pass a function of a ShadowRow that calls monitor.update."
            )
        if claimed == "loss" and self._label is None:
            raise InvalidTypeError(
                "The claim is about the loss, so a label is needed where answers differ: pass "
                "label=, a function of a ShadowRow, or a function that writes rows to a table, to "
                "be labelled and monitored later; or certify with claim='differ'."
            )

    def _fed(self, monitor: Any, found: ShadowRow) -> None:
        groups = {} if found.group is None else {"groups": [found.group]}
        if groups and self._needs_groups and not self._is_certified(found.group, monitor):
            return
        lost = self._lost(found)
        monitor.update({"loss": [-1 if lost is None else lost], **groups})
        self.unlabelled += lost is None

    @staticmethod
    def _is_certified(group: Any, monitor: Any) -> bool:
        """Whether anything is claimed about a group; one that is not known never exits early."""
        return str(as_names([group], "group").tolist()[0]) in monitor.certificate.groups

    def _lost(self, found: ShadowRow) -> int | None:
        """What a row loses; None if its label is missing."""
        if not found.differs:
            return 0
        if self._label is None:
            return 1
        label = self._label(found)
        if _is_no_label(label, found):
            return None
        return int(found.answer != label) - int(found.slow != label)


def _is_no_label(label: Any, found: ShadowRow) -> bool:
    """Whether a label is missing: as a value, or as a code for one that neither model answered."""
    if is_missing(label) or not isinstance(label, str):
        return is_missing(label)
    return is_missing_code(label) and label not in (found.answer, found.slow)


@dataclass(frozen=True)
class ShadowPlan:
    """How large a share of the traffic to look at; simulated, so a plan and not a guarantee.

    Attributes
    ----------
    share : float
        The share of the traffic that the slow model must answer too.
    labels : int
        The rows that are looked at after the rise until the alarm rings, with the probability
        that was asked for.

    Examples
    --------
    >>> ShadowPlan(share=0.25, labels=500)
    ShadowPlan(share=0.25, labels=500)
    """

    share: float
    labels: int


def plan_shadow(  # noqa: PLR0913
    certificate: Certificate | str | os.PathLike[str],
    *,
    losses: float,
    rows: int,
    delta: float,
    rng: np.random.Generator,
    gains: float = 0.0,
    usual: float | None = None,
    false_alarms: str | float = "ever",
    power: float = 0.9,
    seen: int = 50_000,
) -> ShadowPlan:
    """How large a share of the traffic must be looked at for a rise to be noticed within so many
    rows, with probability `power`.

    It is found by running the monitor on 400 simulated streams, so it is a plan and not a
    guarantee: it knows the rates only as well as you do.

    Parameters
    ----------
    certificate
        The cascade certificate to be monitored.
    losses
        The share of all rows, exits or not, on which the cascade will be wrong and the slow model
        right: the rise that is to be noticed. Where the claim is that few answers differ, the share
        on which they will.
    rows
        Rows of traffic after the rise within which the alarm is to ring.
    delta, false_alarms
        As for `Monitor`.
    rng
        What draws the streams.
    gains
        The share of all rows on which it will be the other way round; 0 where the claim is that
        few answers differ.
    usual
        The share of losses before the rise; by default `gains` and half of what is allowed.
    power
        The chance that the alarm rings within `rows`.
    seen
        Labels that the monitor has seen before the rise. On the first clock later rises take
        longer to be noticed.

    Returns
    -------
    ShadowPlan
        The share, and the labels that it takes.

    Raises
    ------
    InvalidTypeError
        If the certificate is not one of a cascade.
    InvalidValueError
        If a rate is not one, if the rise does not break the claim, or if even all rows would not
        do.

    Examples
    --------
    >>> from pacbound import certify_cascade
    >>> confidence, answers, labels = [0.9] * 500, [[1, 1]] * 500, [1] * 500
    >>> certificate = certify_cascade(confidence, answers, labels, xi=0.02, delta=0.01)
    >>> rng = np.random.default_rng(0)
    >>> plan = plan_shadow(certificate, losses=0.1, rows=10_000, delta=1e-3, rng=rng)
    >>> 0.05 < plan.share < 0.12
    True
    """
    watched: Any = certificate_of(certificate)
    watch = watch_of(watched)
    if watch.outcomes != _OUTCOMES:
        raise InvalidTypeError("A shadow is planned for a cascade: expected its certificate.")
    if len(watch.bets) > 1:
        raise InvalidValueError(
            f"This cascade is certified for each of {len(watch.bets)} groups, and a shadow is "
            "planned for one claim: certify the cascade without groups, and plan from that."
        )
    gained = real_number(gains, "gains", "a share of the rows")
    if gained and watched.bounded == "differ":
        raise InvalidValueError(
            f"gains={gains} was passed, and the claim is that few answers differ, which nothing "
            "makes good: leave gains out."
        )
    (bets,), promise = watch.bets, Promise.of(delta, false_alarms)
    generator(rng)
    if usual is None:
        usual = gained + watched.xi / 2
    before, after = _rates(usual, gains), _rates(losses, gains)
    room, chance = whole_number(rows, "rows", least=1), _CHANCE.check(power, "power")
    if not losses - gains > watched.xi:
        raise InvalidValueError(
            f"losses={losses} and gains={gains} keep the claim, which allows {watched.xi}: "
            "there is no rise to be noticed. Plan for more losses."
        )
    delays = sorted(
        _delay(bets, promise, before, after, rng, seen=whole_number(seen, "seen"), most=room)
        for _ in range(_STREAMS)
    )
    labels = delays[ceil(chance * _STREAMS) - 1]
    if labels > room:
        raise InvalidValueError(
            f"Even if all of {room:,} rows are looked at, the alarm rings with probability below "
            f"{power}: allow more rows, or a larger delta."
        )
    return ShadowPlan(labels / room, labels)


def _rates(losses: float, gains: float) -> list[float]:
    lost, gained = (real_number(rate, "a rate", "a share of the rows") for rate in (losses, gains))
    if not (lost >= 0.0 and gained >= 0.0 and lost + gained <= 1.0):
        raise InvalidValueError(
            f"losses={losses} and gains={gains} are not shares of the rows: expected numbers from "
            "0 that add up to at most 1."
        )
    return [gained, 1.0 - gained - lost, lost]


def _delay(
    bets: Bets,
    promise: Promise,
    before: list[float],
    after: list[float],
    rng: np.random.Generator,
    *,
    seen: int,
    most: int,
) -> int:
    """Labels from the rise to the alarm in one stream; more than `most` if it takes longer."""
    wealth = promise.fresh(bets)
    if isinstance(wealth, Restarts):
        wealth = Restarts(max(0, seen - _BEFORE) // BLOCK, 0, wealth.wealth)
    healthy = rng.choice(3, size=min(seen, _BEFORE), p=before)
    wealth, _ = wealth.after(bets, healthy)
    done = 0
    while done < most:
        wealth, evidence = wealth.after(bets, rng.choice(3, size=_CHUNK, p=after))
        over = np.flatnonzero(evidence >= promise.limit)
        if over.size:
            return done + int(over[0]) + 1
        done += _CHUNK
    return most + 1
