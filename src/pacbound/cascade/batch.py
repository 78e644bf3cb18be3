"""An answer to each of n known records, with few calls of the expert.

What is asked next, and how it ends, is a function of the records, the key of the sample, and the
answers so far. So nothing but the answers is kept (`pacbound.cascade.answers`), and a batch may be
taken up again at any time. `answer_batch` is a loop over this function. The rounds are few: the
sample and whatever has no score, then (with two looks, if it is worth it) the rest of the larger
sample, then all rows that did not keep the fast answer.
"""

from __future__ import annotations

import asyncio
import os
from array import array
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from inspect import isawaitable, iscoroutinefunction
from itertools import zip_longest
from typing import Any, Final, Self, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from pacbound.cascade.answers import AnswersFile
from pacbound.cascade.records import Mask, Records, SampledOrder, codes_type, records_of_arrays
from pacbound.claims.batch import CLAIM, BatchCertificate
from pacbound.claims.provenance import Provenance, about_texts
from pacbound.documents import Json
from pacbound.errors import InvalidTypeError, InvalidValueError, ModelError, PacboundError
from pacbound.procedures import batch
from pacbound.procedures.batch import is_key
from pacbound.sources.batches import Progress, require_progress
from pacbound.sources.values import MISSING, Values, values_of
from pacbound.stats.arguments import (
    claimed_delta,
    tolerated_rate,
    truth_value,
    whole_number,
    whole_numbers,
)
from pacbound.tally.classes import Class, ClassRule
from pacbound.tally.columns import Integers, blocks, same_order, same_rows

Path = str | os.PathLike[str]

# In place of the number of an answer.
NOT_ASKED: Final = -2

# From so many answers on, names that never meet those of the fast model are refused: fewer may
# differ by chance. Of more different fast answers than these nobody can tell.
ENOUGH_TO_JUDGE: Final = 10
FEW_NAMES: Final = 20

# Longer text goes into arrays of objects: in one of text, every answer takes as much room as the
# longest.
WIDEST: Final = 256

_BY: Final = np.array(["fast", "expert", "none"])


class BatchOptions(TypedDict, total=False):
    """What else is fixed before anything is asked: how many `looks` there are at the sample, the
    size of the `sample`, whether `whole_ties` stay together, the `key` of the permutation, and all
    `classes` and what stands for a `missing` one.
    """

    looks: int
    sample: int | None
    whole_ties: bool
    key: str | None
    classes: Any
    missing: Any


@dataclass(frozen=True, eq=False)
class BatchStep:
    """What the answers so far come to.

    Attributes
    ----------
    ask : ndarray of int64
        The rows to ask the expert about next, from 0 and rising; none once the batch is done.
    sampling : bool
        Whether it is still the sample that is asked about, so that more rows may follow.
    predictions : ndarray of shape (n,) or None
        Once it is done the answer to each record, in their order: numbers or text. An object array
        where an answer is longer than 256 characters, and where there are records without an
        answer, which have None.
    certificate : BatchCertificate or None
        Once it is done the guarantee, with the counts that it follows from: of these answers at
        most `certificate.tolerated` differ from the expert's, with probability at least 1 - delta
        over the draw of the sample.
    who : ndarray of int8 or None
        Once it is done the place of whom `answered_by` names: 0 "fast", 1 "expert", 2 "none".

    Examples
    --------
    >>> from pacbound import batch_step
    >>> step = batch_step([0.9, 0.2], ["dog", "cat"], xi=0.5, delta=0.1, answers=None)
    >>> step.ask, step.sampling, step.certificate
    (array([1]), False, None)
    """

    ask: Integers
    sampling: bool
    predictions: NDArray[Any] | None = None
    certificate: BatchCertificate | None = None
    who: NDArray[np.int8] | None = None

    @property
    def answered_by(self) -> NDArray[np.str_] | None:
        """Once it is done who gave each answer: "fast", "expert", or "none" where the expert was
        asked and has none.
        """
        return None if self.who is None else np.asarray(_BY[self.who])


class OpenBatch:
    """The records of a batch, what is fixed, and the answers so far.

    Attributes
    ----------
    answered : int
        How many rows have an answer, or none for good.
    """

    def __init__(
        self,
        records: Records,
        limits: Mapping[str, Any],
        answers: Path | None,
        *,
        key: str | None = None,
        columns: Mapping[str, str] | None = None,
    ) -> None:
        if key is not None and not is_key(key):
            raise InvalidValueError(
                f"key={key!r} is not a key: expected 32 hexadecimal digits. Leave it out, and the "
                "operating system draws one."
            )
        self.records, self._limits, self._columns = records, limits, dict(columns or {})
        scored = int(records.scored.sum())
        if limits["sample"] is not None and limits["sample"] > scored:
            raise InvalidValueError(
                f"sample={limits['sample']} is more than the {scored} records that have a score: "
                "leave it out, and a rule chooses it."
            )
        drawn = {"looks": limits["looks"], "drawn": limits["sample"]}
        self._plan = batch.plan(
            len(records), scored, xi=limits["xi"], delta=limits["delta"], **drawn
        )
        self._slow: NDArray[Any] = np.full(len(records), NOT_ASKED, codes_type(records.vocabulary))
        self._fast, self._said = records.vocabulary.classes(records.met), set[Class]()
        self.answered = 0
        asked: dict[str, Json] = {
            "records": len(records),
            "table": records.table,
            "columns": dict(self._columns),
            **limits,
            **records.rule.listed(),
        }
        self.file = AnswersFile(answers, asked, key)
        try:
            self._take_up()
        except BaseException:
            self.file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()

    @cached_property
    def _order(self) -> SampledOrder:
        return SampledOrder(self.records.scores, self.records.scored, self._plan, self.file.key)

    def step(self, about: Mapping[str, Any] | None = None) -> BatchStep:
        """What the answers so far come to."""
        reached = self._asked_or_kept()
        if isinstance(reached, BatchStep):
            return reached
        exits, ranks = reached
        codes = np.where(exits, self.records.fast, self._slow)
        # In place: numbers of eight bytes for each of many records are more than all the rest.
        who = np.ones(len(codes), dtype=np.int8)
        who[exits] = 0
        who[codes == MISSING] = 2
        names = self.records.vocabulary.names()
        certificate = self._certificate(ranks, unanswered=int((who == 2).sum()))
        return BatchStep(
            np.zeros(0, dtype=np.int64),
            sampling=False,
            predictions=_classes_of(codes, names, self.records.dtype),
            certificate=certificate.with_about(about),
            who=who,
        )

    def _asked_or_kept(self) -> BatchStep | tuple[Mask, list[Integers]]:
        """What to ask next; or which records keep the fast answer, and where the sampled
        disagreements are.
        """
        order, told, differ = self._order, self._slow != NOT_ASKED, self._slow != self.records.fast
        needed = np.ones_like(told) if self._plan.asks_all else ~self.records.scored
        order.begin()
        for look in range(1, len(self._plan.drawn) + 1):
            if look > 1 and not order.worth_another_look(differ):
                break
            order.draw(look)
            needed = needed | order.sample
            if (needed & ~told).any():
                return BatchStep(np.flatnonzero(needed & ~told), sampling=True)
        if (needed & ~told).any():
            return BatchStep(np.flatnonzero(needed & ~told), sampling=True)
        ranks, ties = order.disagreements(differ), bool(self._limits["whole_ties"])
        del needed, differ  # The next lines look at all scores once more.
        exits = order.kept(order.beginning(ranks, whole_ties=ties))
        open_ = ~exits & ~told
        if open_.any():
            return BatchStep(np.flatnonzero(open_), sampling=False)
        return exits, ranks

    def add(self, rows: Any, answers: Any) -> None:
        """Take answers of the expert into the file, None or NaN where it has none for good. What
        was paid for is on the disk when this returns, or raises because an answer cannot be one.
        """
        places = np.atleast_1d(whole_numbers(rows, "rows"))
        same_rows(rows=rows, answers=answers)
        same_order(places, answers, "answers")
        try:
            values = answers if isinstance(answers, Values) else values_of(answers, "answers")
            codes = self.records.vocabulary.codes(values, "answers")
        except PacboundError:
            for place, answer in zip(places.tolist(), list(answers), strict=False):
                if len(places) > 1:
                    with suppress(PacboundError):
                        self.add([place], [answer])
            raise
        if len(places) != len(codes):
            raise InvalidValueError(
                f"{len(codes)} answers for {len(places)} rows: expected as many."
            )
        self._take(places, codes, "the expert")
        self._require_common_names()

    def _take_up(self) -> None:
        """Take in what the file holds."""
        rows, codes = array("q"), array("q")
        for row, answer, _ in self.file.read():
            rows.append(row)
            codes.append(MISSING if answer is None else self.records.vocabulary.code(answer))
        places, told = (np.array(each, dtype=np.int64) for each in (rows, codes))
        self._take(places, told, str(self.file.path), kept=True)
        self.file.forget()

    def _take(self, places: Integers, codes: Integers, where: str, *, kept: bool = False) -> None:
        """Note answers, and write down those that are new unless they are `kept` already."""
        if places.size and places.max() >= len(self._slow):
            raise InvalidValueError(
                f"{where} answers row {places.max()}, and there are {len(self._slow)} rows, from 0."
            )
        found, first, again = np.unique(places, return_index=True, return_inverse=True)
        known = self._slow[places]
        other = (codes[first][again] != codes) | ((known != NOT_ASKED) & (known != codes))
        if other.any():
            raise self._contradicted(places, codes, int(np.flatnonzero(other)[0]), where)
        fresh = first[self._slow[found] == NOT_ASKED]
        if not kept:
            names = self.records.vocabulary.names()
            for part in blocks(len(fresh)):
                rows, said = places[fresh[part]].tolist(), codes[fresh[part]].tolist()
                told = (None if code == MISSING else names[code] for code in said)
                self.file.append(dict(zip(rows, told, strict=True)))
        self._slow = self._slow.astype(codes_type(self.records.vocabulary), copy=False)
        self._slow[places[fresh]] = codes[fresh]
        self.answered += len(fresh)
        self._said |= self.records.vocabulary.classes(np.unique(codes[fresh]).tolist())

    def _contradicted(
        self, places: Integers, codes: Integers, at: int, where: str
    ) -> InvalidValueError:
        names = [*self.records.vocabulary.names(), None]
        row = int(places[at])
        first = self._slow[row]
        if first == NOT_ASKED:
            first = codes[np.flatnonzero(places == row)[0]]
        lines = [line for found, _, line in self.file.read() if found == row]
        before, now = names[first], names[codes[at]]
        return InvalidValueError(
            f"{lines[-1] if len(lines) > 1 else where}: row {row} was answered {before!r} before, "
            f"and now {now!r}: an answer is kept as it was first given."
        )

    def _require_common_names(self) -> None:
        """Raise if the expert names its answers in another way than the fast model: all of them
        would differ, whatever was sampled. What was paid for is kept.
        """
        said, fast = self._said, self._fast
        if self._plan.asks_all or not said or not fast:
            return
        if not set(map(type, said)) & set(map(type, fast)):
            raise InvalidTypeError(
                f"The expert answers {_some(said)} and the fast model {_some(fast)}, which are "
                "never equal: numbers on one side and names on the other. Name the fast model's "
                "answers as the expert does, and begin another batch with another file."
            )
        if self.answered >= ENOUGH_TO_JUDGE and len(fast) <= FEW_NAMES and not said & fast:
            raise InvalidValueError(
                f"No answer of the expert ({_some(said)}) is one of the fast model's "
                f"({_some(fast)}), so that all of them differ: is it another spelling? Name the "
                "fast model's answers as the expert does, and begin another batch with another "
                "file."
            )

    def _certificate(self, ranks: Sequence[Integers], *, unanswered: int) -> BatchCertificate:
        order, limits = self._order, self._limits
        ties = None
        if limits["whole_ties"]:
            prefix = order.beginning(ranks, whole_ties=True)
            ties = {
                "stop": prefix,
                "sampled_before": order.sampled_before(prefix),
                "threshold": order.lowest(prefix),
            }
        found = {
            "n": len(self.records),
            "scored": self._plan.scored,
            "key": self.file.key,
            "looks": [
                {"sampled": size, "disagreements": places}
                for size, places in zip_longest(self._plan.drawn, ranks)
            ],
            "sampled_before": order.sampled_before(order.stop(ranks)),
            "whole_ties": ties,
            "unanswered": unanswered,
            "descriptive": {"sampled_differing": len(ranks[-1]) if ranks else 0},
        }
        values = CLAIM.decided(CLAIM.counted(found, CLAIM.wishes(limits)))
        provenance = Provenance.now(self.records.sources, self._columns)
        return BatchCertificate(by=CLAIM, values=values, provenance=provenance)


def batch_step(
    confidence: Any,
    prediction: Any,
    *,
    xi: float,
    delta: float,
    answers: Path | None,
    told: Mapping[int, Any] | None = None,
    about: Mapping[str, Any] | None = None,
    **options: Unpack[BatchOptions],
) -> BatchStep:
    """Take answers into the file, and say which rows to ask about next, or how the batch ends.

    With probability at least 1 - `delta` over the draw of the sample, at most floor(`xi` n) of the
    n answers of the end differ from the expert's, whatever happened on the way: files copied,
    answers lost and asked for again, rounds cut as you like. The records are fixed before the key
    is drawn, an answer does not depend on what else is asked, and an answer that was lost was lost
    whatever it said. What voids it is another key for the same records after answers were seen.

    Parameters
    ----------
    confidence, prediction, xi, delta, answers, about, **options
        As in `answer_batch`.
    told
        Answers of the expert by their rows, from 0; None where it has none for good.

    Returns
    -------
    BatchStep
        The rows to ask about, or all answers with their certificate.

    Raises
    ------
    InvalidValueError, InvalidTypeError
        As from `answer_batch`; if a row is answered otherwise than before.

    Examples
    --------
    >>> rows = [0.9, 0.8, 0.3, None], ["dog"] * 4
    >>> asked = {"xi": 0.5, "delta": 0.1, "answers": None}
    >>> batch_step(*rows, **asked).ask
    array([3])
    >>> batch_step(*rows, told={3: "dog"}, **asked).ask
    array([2])
    >>> batch_step(*rows, told={2: "cat", 3: "dog"}, **asked).predictions.tolist()
    ['dog', 'dog', 'cat', 'dog']
    """
    texts = about_texts(about)
    if told is not None and not isinstance(told, Mapping):
        raise InvalidTypeError.of("told", told, "a mapping from rows to answers")
    with _begun(confidence, prediction, xi, delta, answers, options) as going:
        if told:
            going.add(list(told), list(told.values()))
        return going.step(texts)


def answer_batch(  # noqa: PLR0913
    confidence: Any,
    prediction: Any,
    expert: Callable[[Integers], Any],
    *,
    xi: float,
    delta: float,
    answers: Path | None,
    chunk: int = 64,
    progress: Progress | None = None,
    about: Mapping[str, Any] | None = None,
    **options: Unpack[BatchOptions],
) -> BatchStep:
    """An answer for each of n known records, of which at most floor(`xi` n) differ from the
    expert's, with probability at least 1 - `delta`, asking the expert about as few as it can.

    Nothing is assumed about the records: they are fixed, and the probability is over the draw of a
    sample of them, which is sent to the expert first. The fast model's answers and scores must be
    fixed before, and the expert's answer to a record may not depend on which others it is asked
    about. What is bounded is how many answers differ from the expert's, right or wrong; no label is
    needed. Where `xi` n is below 1 no answer may differ, and everything is sent to the expert.

    Parameters
    ----------
    confidence
        (n,) scores from 0 to 1: how sure the fast model is. A record without one (NaN, None) goes
        to the expert. The better they order the records, the fewer calls.
    prediction
        (n,) the fast model's answers: numbers or text.
    expert
        A function of an array of rows, counted from 0, that gives an answer for each; None for a
        record that it cannot answer, which in the sample counts as a disagreement. What it raises
        ends the run, and all answers so far are kept: retries and pauses are its own matter. Of an
        async function use `answer_batch_async`.
    xi
        The share of the answers that may differ, 0 <= xi < 1.
    delta
        The chance that more do.
    answers
        The file that keeps the key of the sample and every answer; made if it is not there. A run
        that was interrupted, even by kill -9, goes on with the same sample when it is called again,
        and no answer that was kept is paid for twice. None keeps them in memory: a rerun is another
        draw.
    chunk
        How many rows a call of `expert` gets at most.
    progress
        Called with the share that is done, from 0 to 1.
    about
        As in `certify_cascade`.
    **options
        `looks=2` for a second, larger sample, which pays where half of the scores are equal;
        `sample`, its size, by a rule if left out; `whole_ties=True` to keep records of one score
        together, so that `certificate.threshold` says which kept the fast answer; `classes` and
        `missing` as in `certify_cascade`; `key`, for tests and pages: 32 hexadecimal digits in
        place of those that the operating system draws.

    Returns
    -------
    BatchStep
        All answers, who gave them, and their certificate.

    Raises
    ------
    InvalidValueError, InvalidTypeError
        If an argument cannot be what it should be; if the file of answers belongs to another batch;
        if after ten answers the expert has used none of the fast model's names.
    ModelError
        If the expert does not give one answer for each row.

    Examples
    --------
    >>> import numpy as np
    >>> confidence = np.linspace(0, 1, 2000)
    >>> fast = np.where(confidence < 0.2, "cat", "dog")
    >>> calls = []
    >>> def expert(rows):
    ...     calls.extend(rows)
    ...     return ["dog"] * len(rows)
    >>> done = answer_batch(
    ...     confidence, fast, expert, xi=0.05, delta=0.1, answers=None, key="5f" * 16
    ... )
    >>> len(calls) == (done.answered_by == "expert").sum() == done.certificate.asked
    np.True_
    """
    size, texts = whole_number(chunk, "chunk", least=1), about_texts(about)
    require_progress(progress)
    _require_callable(expert)
    if iscoroutinefunction(expert) or iscoroutinefunction(type(expert).__call__):
        raise InvalidTypeError("expert is async: use answer_batch_async.")
    with _begun(confidence, prediction, xi, delta, answers, options) as going:
        step = going.step(texts)
        while len(step.ask):
            _ask_all(going, step, expert, size, progress)
            del step  # Its rows are many, and the next step looks at all records.
            step = going.step(texts)
        _Shares(going, step, progress).say()
        return step


def _ask_all(
    going: OpenBatch,
    step: BatchStep,
    expert: Callable[[Integers], Any],
    size: int,
    progress: Progress | None,
) -> None:
    """Ask about all rows of a step, so many at a time."""
    shares = _Shares(going, step, progress)
    for some in _chunks(step.ask, size):
        going.add(some, _one_each(expert(some), some))
        shares.say()


async def answer_batch_async(  # noqa: PLR0913
    confidence: Any,
    prediction: Any,
    expert: Callable[[Integers], Awaitable[Any]],
    *,
    xi: float,
    delta: float,
    answers: Path | None,
    chunk: int = 1,
    concurrency: int = 8,
    progress: Progress | None = None,
    about: Mapping[str, Any] | None = None,
    **options: Unpack[BatchOptions],
) -> BatchStep:
    """`answer_batch` for an expert that is awaited, so many calls at a time.

    If a call fails, no other is begun, and those under way are finished and kept before the error
    is raised. If it is cancelled, what has ended is kept.

    Parameters
    ----------
    confidence, prediction, xi, delta, answers, chunk, progress, about, **options
        As in `answer_batch`; `chunk` is 1 if left out.
    expert
        An async function of an array of rows that gives an answer for each.
    concurrency
        How many calls are under way at once, at most.

    Returns
    -------
    BatchStep
        All answers, who gave them, and their certificate.

    Raises
    ------
    InvalidValueError, InvalidTypeError, ModelError
        As from `answer_batch`.

    Examples
    --------
    >>> async def expert(rows):
    ...     return ["dog"] * len(rows)
    >>> done = asyncio.run(answer_batch_async(
    ...     [0.9, 0.2], ["dog", "cat"], expert, xi=0.5, delta=0.1, answers=None
    ... ))
    >>> done.predictions.tolist(), done.answered_by.tolist()
    (['dog', 'dog'], ['fast', 'expert'])
    """
    size, texts = whole_number(chunk, "chunk", least=1), about_texts(about)
    workers = whole_number(concurrency, "concurrency", least=1)
    require_progress(progress)
    _require_callable(expert)
    failed: list[Exception] = []

    async def work(chunks: Iterator[Integers], going: OpenBatch, shares: _Shares) -> None:
        for some in chunks:
            try:
                said = expert(some)
                if not isawaitable(said):
                    raise InvalidTypeError("expert is not async: use answer_batch.")
                going.add(some, _one_each(await said, some))
                shares.say()
            except Exception as error:
                failed.append(error)
            if failed:
                return

    with _begun(confidence, prediction, xi, delta, answers, options) as going:
        while len((step := going.step(texts)).ask):
            # One iterator: whoever has room takes the next rows.
            chunks, shares = _chunks(step.ask, size), _Shares(going, step, progress)
            await asyncio.gather(*(work(chunks, going, shares) for _ in range(workers)))
            if failed:
                raise failed[0]
        _Shares(going, step, progress).say()
        return step


def _require_callable(expert: Any) -> None:
    if not callable(expert):
        raise InvalidTypeError.of("expert", expert, "a function of an array of rows")


class _Shares:
    """Says the part of the work that is done. While the sample is asked about, the whole is taken
    to be all records, as nobody knows yet how few it will be.
    """

    def __init__(self, going: OpenBatch, step: BatchStep, progress: Progress | None) -> None:
        self._going, self._progress = going, progress
        self._whole = len(going.records) if step.sampling else going.answered + len(step.ask)
        if progress is not None and len(step.ask):
            self.say()

    def say(self) -> None:
        """Say it now."""
        if self._progress is not None:
            self._progress(self._going.answered / self._whole if self._whole else 1.0)


def _begun(
    confidence: Any,
    prediction: Any,
    xi: float,
    delta: float,
    answers: Path | None,
    options: BatchOptions,
) -> OpenBatch:
    given = dict(options)
    strange = next((name for name in given if name not in BatchOptions.__annotations__), None)
    if strange is not None:
        raise InvalidTypeError(
            f"{strange} is not an option of a batch: expected "
            f"{', '.join(BatchOptions.__annotations__)}."
        )
    rule = ClassRule.of(given.pop("classes", None), given.pop("missing", None))
    key: Any = given.pop("key", None)
    limits = limits_of({"xi": xi, "delta": delta, **given})
    return OpenBatch(records_of_arrays(confidence, prediction, rule), limits, answers, key=key)


def limits_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """What is fixed before the sample is drawn, checked."""
    looks, sample = given.get("looks", 1), given.get("sample")
    if isinstance(looks, bool) or np.ndim(looks) or looks not in (1, 2):
        raise InvalidValueError(f"looks={looks!r} is not known: expected 1 or 2.")
    return {
        "xi": tolerated_rate(given["xi"]),
        "delta": claimed_delta(given["delta"]),
        "sample": None if sample is None else whole_number(sample, "sample", least=1),
        "looks": int(looks),
        "whole_ties": truth_value(given.get("whole_ties", False), "whole_ties"),
    }


def _chunks(rows: Integers, size: int) -> Iterator[Integers]:
    return (rows[start : start + size] for start in range(0, len(rows), size))


def _one_each(said: Any, rows: Integers) -> Any:
    """What the expert gave, if it is an answer for each row."""
    try:
        count = len(said)
    except TypeError:
        count = None
    if count != len(rows) or isinstance(said, (str, bytes, Mapping)):
        came = f"a {type(said).__name__}" if count is None else f"{count} answers"
        raise ModelError(
            f"The expert gave {came} for {len(rows)} rows: expected a list with one for each.",
            row=int(rows[0]),
        )
    return said


def _some(classes: set[Class]) -> str:
    ordered = sorted(classes, key=str)
    return ", ".join(map(repr, ordered[:3])) + (", …" if len(ordered) > 3 else "")


def _classes_of(codes: NDArray[Any], names: Sequence[Class], dtype: Any) -> NDArray[Any]:
    """The classes that have the numbers, as an array of one plain type: `dtype`, that of the fast
    answers, if it holds them; objects, where some are missing or long, or numbers stand beside
    text.
    """
    met = {code for part in blocks(len(codes)) for code in np.unique(codes[part]).tolist()}
    used = {names[code] if code != MISSING else None for code in met}
    # The last place, -1, is where a missing answer is looked up.
    if all(isinstance(name, str) and len(name) <= WIDEST for name in used):
        texts = np.array([name if name in used else "" for name in (*names, "")])
        return np.asarray(texts[codes])
    if all(isinstance(name, int) and abs(name) < 2**63 for name in used):
        found = np.array([name if name in used else 0 for name in (*names, 0)], dtype=np.int64)
        return _as_given(found[codes], dtype)
    column = np.empty(len(names) + 1, dtype=object)
    column[:] = [*names, None]
    return np.asarray(column[codes])


def _as_given(answers: Integers, dtype: Any) -> NDArray[Any]:
    if not isinstance(dtype, np.dtype) or dtype.kind not in "biuf":
        return answers
    same = answers.astype(dtype, copy=False)
    return same if same is answers or (same == answers).all() else answers
