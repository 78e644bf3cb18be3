"""Asking the slow model until a batch is answered: in chunks, one call after the other or several
at a time, again after failures that may pass, and without ever paying for an answer twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from inspect import isawaitable, iscoroutinefunction
from typing import Any, Final, Unpack

import numpy as np
from numpy.typing import NDArray

from pacbound.cascade.asking import (
    Asking,
    AskingOptions,
    BoundedStream,
    awaitable,
    one_asking,
    refuse_strange,
)
from pacbound.cascade.batches.session import BatchOptions, BatchResult, BatchSession
from pacbound.claims.provenance import about_texts
from pacbound.errors import InvalidTypeError, ModelError, PacboundError
from pacbound.sources.batches import Progress, require_progress
from pacbound.stats.arguments import whole_number

Rows = NDArray[np.int64]

# The place of the slow model, in errors.
SLOW: Final = 1


class AnsweringOptions(BatchOptions, AskingOptions, total=False):
    """What a batch takes beside its records and limits: for its session, and for how to ask."""


def answer_batch(  # noqa: PLR0913
    confidence: Any,
    prediction: Any,
    slow: Callable[[Rows], Any],
    *,
    xi: float,
    delta: float,
    rng: np.random.Generator | None,
    chunk: int = 64,
    progress: Progress | None = None,
    about: Mapping[str, Any] | None = None,
    asking: Asking | None = None,
    **options: Unpack[AnsweringOptions],
) -> BatchResult:
    """An answer for each of n known records, of which at most floor(`xi` n) differ from the slow
    model's, with probability at least 1 - `delta`, asking the slow model about as few as it can.

    Nothing is assumed about the records: they are fixed, and the probability is over the draw of a
    sample of them, which is sent to the slow model first. The fast model's answers and scores must
    be fixed before, and the slow model's answer to a record may not depend on which others it is
    asked about. What is bounded is how many answers differ from the slow model's, right or wrong;
    no label is needed.

    Where `xi` n is below 1 no answer may differ, and everything is sent to the slow model.

    Parameters
    ----------
    confidence
        (n,) scores from 0 to 1: how sure the fast model is. A record without one (NaN, None) goes
        to the slow model. The better they order the records, the fewer calls.
    prediction
        (n,) the fast model's answers: numbers or text.
    slow
        A function of an array of rows, counted from 0, that gives an answer for each; None for a
        record that it cannot answer. Of an async function use `answer_batch_async`.
    xi
        The share of the answers that may differ, 0 <= xi < 1.
    delta
        The chance that more do.
    rng
        Draws the key of the permutation, once. None will do where the journal has a key.
    chunk
        How many rows a call of `slow` gets at most.
    progress
        Called with the share that is done, from 0 to 1.
    about
        As in `certify_cascade`.
    asking
        How the slow model is asked, and again after failures. A function that is not awaited is
        called once at a time and cannot be timed out.
    **options
        As in `BatchSession`: `journal`, `sample`, `looks`, `whole_ties`, `on_missing`, `classes`
        and `missing`. With a journal, a run that was interrupted, even by kill -9, goes on with the
        same sample when it is called again, and no answer that was kept is paid for twice. And, in
        place of `asking`, options of `Asking`: `per_second`, `retries`, `pause`, `longest_wait`,
        `retry_if`.

    Returns
    -------
    BatchResult
        `predictions`, `asked` (where the slow model answered), `failed`, and the `certificate`.
        There is no refusal: in the worst case everything was asked.

    Raises
    ------
    InvalidValueError, InvalidTypeError
        If an argument cannot be what it should be, the journal belongs to another batch, or the
        slow model answers with something that is not a class, or with names where the fast one has
        numbers.
    ModelError
        If the slow model still fails after the retries, or gives too few or too many answers.
        What was answered is in the journal.

    Examples
    --------
    >>> from pacbound.data import fashion_mnist
    >>> table = fashion_mnist()
    >>> result = answer_batch(
    ...     table.confidence_fast,
    ...     table.prediction_fast,
    ...     lambda rows: table.prediction_slow[rows],
    ...     xi=0.05,
    ...     delta=0.1,
    ...     rng=np.random.default_rng(0),
    ... )
    >>> print(f"{result.asked.mean():.1%} were asked, {result.certificate.tolerated:,} may differ")
    25.5% were asked, 1,000 may differ
    >>> int((result.predictions != table.prediction_slow).sum())
    926
    """
    if iscoroutinefunction(slow):
        raise InvalidTypeError(
            "slow is an async function: call answer_batch_async, which awaits it, several calls at "
            "a time."
        )
    session, policy = _parted(options, asking)
    if policy.timeout is not None or "concurrency" in options:
        raise InvalidTypeError(
            "A function that is not awaited is called once at a time and cannot be timed out: give "
            "your client a timeout, or use answer_batch_async, which has timeout and concurrency."
        )
    size, texts = whole_number(chunk, "chunk", least=1), about_texts(about)
    with BatchSession(confidence, prediction, xi=xi, delta=delta, rng=rng, **session) as batch:
        _report(progress, batch)
        while not batch.done:
            for rows in _chunks(batch.ask(), size):
                batch.tell(rows, _counted(_called(slow, rows, policy), rows), paid=True)
                _report(progress, batch)
        return batch.result(about=texts)


async def answer_batch_async(  # noqa: PLR0913
    confidence: Any,
    prediction: Any,
    slow: Callable[[Rows], Awaitable[Any]],
    *,
    xi: float,
    delta: float,
    rng: np.random.Generator | None,
    chunk: int = 1,
    progress: Progress | None = None,
    about: Mapping[str, Any] | None = None,
    asking: Asking | None = None,
    **options: Unpack[AnsweringOptions],
) -> BatchResult:
    """`answer_batch` for a slow model that is awaited, with several calls under way at once.

    The guarantee and the assumptions are those of `answer_batch`, whatever the order in which the
    answers come in. If a call fails for good, the calls under way are finished and kept before the
    error is raised. If it is cancelled, so are the calls under way; those that had ended are kept.

    Parameters
    ----------
    confidence, prediction, xi, delta, rng
        As in `answer_batch`.
    slow
        An async function of an array of rows that gives an answer for each.
    chunk
        How many rows a call gets at most.
    progress, about, asking, **options
        As in `answer_batch`; here `concurrency`, the most calls under way at a time, and `timeout`
        are options, too.

    Returns
    -------
    BatchResult
        As from `answer_batch`.

    Raises
    ------
    InvalidValueError, InvalidTypeError, ModelError
        As from `answer_batch`.

    Examples
    --------
    >>> import asyncio
    >>> async def slow(rows):
    ...     return ["dog"] * len(rows)
    >>> scores, fast = np.linspace(0, 1, 200), ["dog"] * 200
    >>> result = asyncio.run(
    ...     answer_batch_async(scores, fast, slow, xi=0.05, delta=0.1, rng=np.random.default_rng(0))
    ... )
    >>> int(result.asked.sum())
    37
    """
    session, policy = _parted(options, asking)
    size, texts = whole_number(chunk, "chunk", least=1), about_texts(about)
    with BatchSession(confidence, prediction, xi=xi, delta=delta, rng=rng, **session) as batch:
        _report(progress, batch)
        sending = _Sending(batch, slow, size, policy)
        async with aclosing(sending.results()) as results:
            async for _ in results:
                _report(progress, batch)
        if sending.failures:
            raise sending.failures[0]
        return batch.result(about=texts)


def _parted(options: Mapping[str, Any], asking: Asking | None) -> tuple[BatchOptions, Asking]:
    """What is for the session, and how the slow model is asked."""
    refuse_strange(options, AnsweringOptions, "an option of answer_batch")
    session: Any = {name: options[name] for name in options if name in BatchOptions.__annotations__}
    return session, one_asking(asking, {k: v for k, v in options.items() if k not in session})


@dataclass(frozen=True)
class _CallEnded:
    """A call that has ended; its answers are kept."""

    index: int


class _Sending:
    """The calls of a batch: the next begins as soon as there is room for it, and what follows the
    sample as soon as it is certain. What a call gave is kept as it ends, so that nothing that comes
    after, not even being cancelled, loses it. After a failure no call is begun, and those under way
    are finished and kept.
    """

    def __init__(
        self,
        session: BatchSession,
        slow: Callable[[Rows], Awaitable[Any]],
        size: int,
        policy: Asking,
    ) -> None:
        self._session, self._slow, self._size, self._policy = session, slow, size, policy
        self._begun = np.zeros(len(session), dtype=bool)
        self._next: Rows = np.zeros(0, dtype=np.int64)
        self._news = asyncio.Event()
        self.failures: list[PacboundError] = []

    def results(self) -> AsyncGenerator[_CallEnded, None]:
        """The calls that have ended, as they end."""
        stream = BoundedStream(self._ask, self, limit=self._policy.concurrency)
        return stream.results(ordered=False)

    def __aiter__(self) -> _Sending:
        return self

    async def __anext__(self) -> Rows:
        """The rows of the next call."""
        while not self.failures and not self._session.done:
            if not self._next.size:
                self._next = self._fresh()
            if self._next.size:
                rows, self._next = self._next[: self._size], self._next[self._size :]
                return rows
            self._news.clear()
            await self._news.wait()
        raise StopAsyncIteration

    def _fresh(self) -> Rows:
        """Rows that no call was begun for: those of the round, then those that follow for sure."""
        for ahead in (False, True):
            rows = self._session.ask(ahead=ahead)
            fresh: Rows = rows[~self._begun[rows]]
            if fresh.size:
                break
        self._begun[fresh] = True
        return fresh

    async def _ask(self, index: int, rows: Rows) -> _CallEnded:
        try:
            answers = _counted(await _awaited(self._slow, rows, self._policy), rows)
            self._session.tell(rows, answers, paid=True)
        except PacboundError as error:
            self.failures.append(error)
        self._news.set()
        return _CallEnded(index)


def _chunks(rows: Rows, size: int) -> Iterator[Rows]:
    for start in range(0, len(rows), size):
        # A copy, so that the last call does not hold on to the memory of all rows.
        yield rows[start : start + size].copy()


def _called(slow: Callable[[Rows], Any], rows: Rows, policy: Asking) -> Any:
    answers = policy.called(lambda: slow(rows), partial(_failure, rows))
    if isawaitable(answers):
        if hasattr(answers, "close"):
            answers.close()
        raise InvalidTypeError(
            "slow returned an awaitable: call answer_batch_async, which awaits it."
        )
    return answers


async def _awaited(slow: Callable[[Rows], Awaitable[Any]], rows: Rows, policy: Asking) -> Any:
    async def ask() -> Any:
        remedy = "For a function that answers at once use answer_batch."
        return await awaitable(slow(rows), "slow", remedy)

    return await policy.awaited(ask, partial(_failure, rows))


def _failure(rows: Rows, reason: str) -> ModelError:
    which = f"row {rows[0]}" if len(rows) == 1 else f"{len(rows)} rows, from row {rows[0]} on"
    return ModelError(
        f"The slow model failed on {which}: {reason}. With a journal the answers so far are safe: "
        "call again to go on from here. A record that it can never answer may be answered with "
        "None.",
        model=SLOW,
        row=int(rows[0]) if len(rows) == 1 else None,
    )


def _counted(answers: Any, rows: Rows) -> Any:
    """The answers, if they are as many as the rows."""
    if hasattr(answers, "detach"):
        answers = answers.detach().cpu()
    if isinstance(answers, str | bytes) or not hasattr(answers, "__len__"):
        raise ModelError(
            f"The slow model gave a {type(answers).__name__} for {len(rows)} rows: expected a list "
            "or an array with an answer for each.",
            model=SLOW,
        )
    if len(answers) != len(rows):
        raise ModelError(
            f"The slow model gave {len(answers)} answers for {len(rows)} rows: expected one for "
            "each, in their order.",
            model=SLOW,
        )
    return answers


def _report(progress: Progress | None, session: BatchSession) -> None:
    require_progress(progress)
    if progress is not None:
        progress(session.share)
