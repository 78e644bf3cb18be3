"""A batch in the making: which rows the slow model has to be asked about next, what it has
answered, and in the end all answers with their certificate.

Nothing here asks: it says what to ask, takes what was answered, and keeps it. The rounds are as few
as can be: the sample and whatever has no score, then (with two looks, if it is worth it) the rest
of the larger sample, then all rows that did not keep the fast answer.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any, Literal, Self, TypedDict

import numpy as np
from numpy.typing import NDArray

from pacbound.cascade.batches.journal import Journal
from pacbound.cascade.batches.records import (
    Records,
    SampledOrder,
    codes_type,
    records_of_arrays,
)
from pacbound.cascade.sessions import SessionLock, one_at_a_time
from pacbound.claims.batch import CLAIM, BatchCertificate
from pacbound.claims.provenance import Provenance
from pacbound.errors import InvalidTypeError, InvalidValueError, ModelError, PacboundError
from pacbound.procedures import batch
from pacbound.procedures.batch import new_key
from pacbound.sources.values import MISSING, Values, values_of
from pacbound.stats.arguments import (
    claimed_delta,
    one_of,
    tolerated_rate,
    truth_value,
    whole_number,
    whole_numbers,
)
from pacbound.tally.classes import Class, ClassRule, Evidence
from pacbound.tally.columns import blocks, same_order, same_rows

Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]

# In place of the number of an answer.
NOT_ASKED = -2

# From so many answers on, classes that never meet those of the fast model are refused: fewer may
# differ by chance.
ENOUGH_TO_JUDGE = 10

OnMissing = Literal["raise", "leave"]


class BatchOptions(TypedDict, total=False):
    """What a `BatchSession` takes beside its records, its limits and its generator."""

    journal: str | os.PathLike[str] | None
    sample: int | None
    looks: int
    whole_ties: bool
    on_missing: OnMissing
    classes: Any
    missing: Any


# So many answers stand in one line of a journal at most.
ANSWERS_A_LINE = 2**16

# Longer text goes into arrays of objects: in one of text, every answer takes as much room as the
# longest.
WIDEST = 256


@dataclass(frozen=True)
class BatchResult:
    """All answers of a batch.

    Of these answers at most `certificate.tolerated` differ from the slow model's, with probability
    at least 1 - delta over the draw of the sample.

    Attributes
    ----------
    predictions : ndarray of shape (n,)
        The answer to each record, in their order: numbers or text. An object array where an answer
        is longer than 256 characters, and where there are records without an answer, which have
        None.
    asked : ndarray of bool
        Where the slow model was asked, and its answer stands.
    failed : ndarray of bool
        Where there is no answer, because the slow model was asked and gave none.
    certificate : BatchCertificate
        The guarantee, with the counts that it follows from.

    Examples
    --------
    >>> from pacbound import answer_batch
    >>> result = answer_batch(
    ...     [0.9, 0.2], ["dog", "cat"], lambda rows: ["dog"] * len(rows), xi=0.5, delta=0.1,
    ...     rng=np.random.default_rng(0),
    ... )
    >>> result.predictions.tolist(), result.asked.tolist(), bool(result.failed.any())
    (['dog', 'dog'], [False, True], False)
    """

    predictions: NDArray[Any]
    asked: Mask
    failed: Mask
    certificate: BatchCertificate


class BatchSession:
    """A batch that is answered in rounds: ask the slow model about the rows that `ask` gives, tell
    what it said, until `done`.

    In the end, with probability at least 1 - `delta` over the draw of the sample, at most
    floor(`xi` n) of the n answers differ from the slow model's. Nothing is assumed about the
    records: they are fixed, and the only chance is which of them are sampled. The permutation is
    drawn once; a journal keeps its key and every answer, so that a session that is made again with
    the same journal goes on where it was. To draw again after answers were seen voids the
    guarantee.

    `answer_batch` runs a session to its end. Several threads may share one: each call is taken as a
    whole.

    Parameters
    ----------
    confidence : array-like of shape (n,)
        How sure the fast model is of each record, from 0 to 1. A record without a score (NaN, None)
        goes to the slow model.
    prediction : array-like of shape (n,)
        The fast model's answers: numbers or text.
    xi : float
        The share of the answers that may differ from the slow model's, 0 <= xi < 1.
    delta : float
        The chance that more do.
    rng : numpy.random.Generator, optional
        Where the key of the permutation comes from. It is not used, and may be left out, where the
        journal has one already.
    journal : path, optional
        A file that keeps the key and the answers. Made if it is not there.
    sample : int, optional
        The size of the sample, at the first look; by a rule that keeps the calls few if left out.
    looks : {1, 2}, default=1
        How often the sample is looked at. 2 pays where half of the scores are equal.
    whole_ties : bool, default=False
        Whether records of one score stay together, so that `certificate.threshold` says which kept
        the fast answer; fewer do.
    on_missing : {"raise", "leave"}, default="raise"
        What becomes of a record outside the sample to which the slow model gives no answer: an
        error, or a record without an answer. In the sample it counts as a disagreement either way.
    classes, missing
        As in `certify_cascade`: all classes that there are, and what stands for a missing one.

    Raises
    ------
    InvalidValueError, InvalidTypeError
        If an argument cannot be what it should be; if the journal belongs to another batch.

    Examples
    --------
    >>> session = BatchSession(
    ...     [0.9, 0.8, 0.3, None], ["dog"] * 4, xi=0.5, delta=0.1, rng=np.random.default_rng(0)
    ... )
    >>> while not session.done:
    ...     rows = session.ask()
    ...     session.tell(rows, ["dog"] * len(rows))
    >>> session.result().predictions.tolist()
    ['dog', 'dog', 'dog', 'dog']
    """

    def __init__(  # noqa: PLR0913
        self,
        confidence: Any,
        prediction: Any,
        *,
        xi: float,
        delta: float,
        rng: np.random.Generator | None = None,
        journal: str | os.PathLike[str] | None = None,
        sample: int | None = None,
        looks: int = 1,
        whole_ties: bool = False,
        on_missing: OnMissing = "raise",
        classes: Any = None,
        missing: Any = None,
    ) -> None:
        records = records_of_arrays(confidence, prediction, ClassRule.of(classes, missing))
        limits = limits_of(xi, delta, sample, looks, whole_ties)
        self._begin(records, limits, rng, journal, on_missing)

    @classmethod
    def of_records(
        cls,
        records: Records,
        limits: Mapping[str, Any],
        *,
        rng: np.random.Generator | None,
        journal: str | os.PathLike[str] | None,
        on_missing: OnMissing = "raise",
        columns: Mapping[str, str] | None = None,
    ) -> Self:
        """The session of records that were read elsewhere, within `limits_of` the arguments."""
        session = cls.__new__(cls)
        session._begin(records, limits, rng, journal, on_missing, columns)
        return session

    def _begin(
        self,
        records: Records,
        limits: Mapping[str, Any],
        rng: np.random.Generator | None,
        journal: str | os.PathLike[str] | None,
        on_missing: OnMissing,
        columns: Mapping[str, str] | None = None,
    ) -> None:
        self._lock = SessionLock()
        self._records = records
        self._limits = limits
        self._on_missing = one_of(on_missing, ("raise", "leave"), "on_missing")
        self._columns = dict(columns or {})
        self._slow: NDArray[Any] = np.full(len(records), NOT_ASKED, codes_type(records.vocabulary))
        scored = records.scored
        self._plan = batch.plan(
            len(records),
            int(scored.sum()),
            xi=limits["xi"],
            delta=limits["delta"],
            looks=limits["looks"],
            drawn=_sample_size(limits["sample"], int(scored.sum())),
        )
        header = {
            **limits,
            "rows": records.fingerprint,
            "records": len(records),
            "names": records.named,
            "columns": self._columns,
            **records.rule.listed(),
        }
        self._journal = (
            None
            if journal is None
            else Journal.open(
                journal, header, new_key=lambda: _key_of(rng), few_names=records.few_names
            )
        )
        try:
            self._draw_or_take_up(rng)
        except BaseException:
            self.close()
            raise

    def _draw_or_take_up(self, rng: np.random.Generator | None) -> None:
        """Draw the sample, or take up the one that the journal has, with all that was answered."""
        records, scored = self._records, self._records.scored
        self._key = _key_of(rng) if self._journal is None else str(self._journal.header["key"])
        self._order = SampledOrder(records.scores, scored, self._plan, self._key)
        self._exits: Mask | None = None
        self._said: set[int] = set()
        self._said_types: set[type] = set()
        self._predicted = records.vocabulary.classes(records.met)
        self._predicted_types = set(map(type, self._predicted))
        self._answered = 0
        self._need(np.ones_like(scored) if self._plan.asks_all else ~scored)
        if self._plan.drawn:
            self._draw(1)
        self._take_up()

    @property
    def key(self) -> str:
        """What the permutation follows from."""
        return self._key

    @property
    @one_at_a_time
    def done(self) -> bool:
        """Whether everything that had to be asked was answered."""
        return self._exits is not None and not self._open

    @property
    def sampling(self) -> bool:
        """Whether it is still the sample that is asked about, so that more rows may follow."""
        return self._exits is None

    @property
    @one_at_a_time
    def answered(self) -> int:
        """How many records the slow model has answered."""
        return self._answered

    @property
    @one_at_a_time
    def share(self) -> float:
        """The part of the work that is done, from 0 to 1. While the sample is asked about it is
        taken to be all records, as nobody knows yet how few it will be.
        """
        total = len(self._slow) if self.sampling else self._needed_rows
        return self.answered / total if total else 1.0

    @one_at_a_time
    def ask(self, most: int | None = None, *, ahead: bool = False) -> NDArray[np.int64]:
        """The rows that the slow model has to be asked about now.

        Parameters
        ----------
        most
            At most so many of them; all of the round if left out.
        ahead
            Whether rows of the next round belong to them that have to be asked about whatever the
            rest of the sample says, so that nothing waits for its last answers. No row is asked
            about that would not be otherwise.

        Returns
        -------
        ndarray of int
            Rows, counted from 0, in rising order; none if the batch is done.
        """
        needed = self._needed | self._certain if ahead else self._needed
        rows = np.flatnonzero(needed & (self._slow == NOT_ASKED))
        return rows if most is None else rows[: whole_number(most, "most", least=1)]

    @one_at_a_time
    def tell(self, rows: Any, answers: Any, *, paid: bool = False) -> None:
        """Take what the slow model answered; it is in the journal when this returns.

        Parameters
        ----------
        rows
            Rows that `ask` gave, in any order and number, each once.
        answers
            An answer for each; None or NaN where the slow model has none for good. A row that was
            answered before must have the same answer.
        paid
            Whether the answers are lost if they are not kept. Then they are kept even if the slow
            model names its classes in another way than the fast one, which raises all the same: a
            session of the same journal, with the fast answers named as the slow model names them,
            need not ask again.

        Raises
        ------
        InvalidValueError, InvalidTypeError
            If a row was not asked for or stands there twice, the lengths differ, or an answer is
            not a class or of another type than the fast model's.
        ModelError
            If a row outside the sample has no answer, unless these are to be left without one. All
            other answers are kept.
        """
        places = self._asked_rows(rows)
        same_rows(rows=rows, answers=answers)
        same_order(places, answers, "answers")
        try:
            values = answers if isinstance(answers, Values) else values_of(answers, "answers")
            codes = self._records.vocabulary.codes(values, "answers")
            codes = codes.astype(codes_type(self._records.vocabulary), copy=False)
        except PacboundError:
            if paid:
                self._keep_each(places, answers)
            raise
        if len(places) != len(codes):
            raise InvalidValueError(
                f"{len(places)} rows and {len(codes)} answers: expected one answer for each row."
            )
        self._require_unchanged(places, codes)
        fresh = self._slow[places] == NOT_ASKED
        if not fresh.all():
            places, codes = places[fresh], codes[fresh]
        unanswerable = (codes == MISSING) & ~self._order.sample[places]
        refused = unanswerable & (self._on_missing == "raise")
        if not paid:
            self._check_names(codes)
        kept = (places[~refused], codes[~refused]) if refused.any() else (places, codes)
        self._keep(*kept)
        if refused.any():
            first = int(places[refused][0])
            raise ModelError(
                f"The slow model gave no answer to {int(refused.sum())} records outside the "
                f"sample, the first in row {first}. All other answers are kept. Ask again about "
                "these, or pass on_missing='leave' to leave them without an answer.",
                row=first,
            )

    @one_at_a_time
    def result(self, *, about: Mapping[str, Any] | None = None) -> BatchResult:
        """All answers and their certificate.

        Parameters
        ----------
        about
            What the certificate is about, for people, as in `certify_cascade`.

        Returns
        -------
        BatchResult
            One answer for each record, in order.

        Raises
        ------
        InvalidValueError
            If the slow model has not answered all that it has to; if `about` has a name or a text
            that cannot be one.
        """
        if self._exits is None or not self.done:
            raise InvalidValueError(
                f"{len(self.ask())} rows have no answer of the slow model yet: ask() gives them."
            )
        codes = np.where(self._exits, self._records.fast, self._slow)
        failed = np.asarray(codes == MISSING)
        return BatchResult(
            predictions=_classes_of(codes, self._records.vocabulary.names(), self._records.dtype),
            asked=~self._exits,
            failed=failed,
            certificate=self._certificate(int(failed.sum())).with_about(about),
        )

    def __len__(self) -> int:
        """How many records there are."""
        return len(self._slow)

    @one_at_a_time
    def close(self) -> None:
        """Let go of the journal."""
        if self._journal is not None:
            self._journal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _take_up(self) -> None:
        """Go on where the journal is."""
        self._advance()
        for rows, answers in () if self._journal is None else self._journal.entries:
            places = np.array(rows, dtype=np.int64)
            if places.size and places.max() >= len(self._slow):
                raise InvalidValueError(
                    f"The journal has an answer for row {int(places.max())} of {len(self._slow)}: "
                    "it is damaged."
                )
            vocabulary = self._records.vocabulary
            codes = np.array(
                [MISSING if answer is None else vocabulary.code(answer) for answer in answers],
                dtype=np.int64,
            )
            self._require_unchanged(places, codes)
            self._take(places, codes)

    def _take(self, places: Integers, codes: Integers) -> None:
        fresh = places[self._slow[places] == NOT_ASKED]
        self._answered += fresh.size
        self._open -= int(self._needed[fresh].sum())
        self._slow = self._slow.astype(codes_type(self._records.vocabulary), copy=False)
        self._slow[places] = codes
        said = set(codes[codes != MISSING].tolist()) - self._said
        self._said |= said
        self._said_types |= set(map(type, self._records.vocabulary.classes(said)))
        self._check_names()
        self._advance()

    def _need(self, rows: Mask) -> None:
        """Note that the slow model has to answer `rows`."""
        self._needed = rows
        self._needed_rows = int(rows.sum())
        self._open = int((rows & (self._slow == NOT_ASKED)).sum())

    def _advance(self) -> None:
        """Take every step for which there are answers enough."""
        while self._exits is None and not self._open:
            if self._order.worth_another_look(self._differ):
                self._draw(2)
            else:
                self._exits = self._order.kept(self._beginning())
                self._need(~self._exits)

    def _draw(self, look: int) -> None:
        self._order.draw(look)
        self._need(self._needed | self._order.sample)

    @property
    def _certain(self) -> Mask:
        """The rows that do not keep the fast answer even if all that is not answered yet agrees:
        each disagreement more only ends what is kept earlier. A second, larger sample, which is
        not drawn yet, could keep more.
        """
        if self._exits is not None or self._order.looked < len(self._plan.drawn):
            return self._needed
        seen = self._order.disagreements(self._differ & (self._slow != NOT_ASKED))
        prefix = self._order.beginning(seen, whole_ties=self._limits["whole_ties"])
        return ~self._order.kept(prefix)

    @property
    def _differ(self) -> Mask:
        """Where the slow model has another answer than the fast one, or none."""
        return np.asarray(self._slow != self._records.fast)

    def _beginning(self) -> int:
        ranks = self._order.disagreements(self._differ)
        return self._order.beginning(ranks, whole_ties=self._limits["whole_ties"])

    def _certificate(self, unanswered: int) -> BatchCertificate:
        ranks, plan = self._order.disagreements(self._differ), self._plan
        stop = self._order.stop(ranks)
        found = {
            "n": len(self._slow),
            "scored": plan.scored,
            "key": self._key,
            "looks": [
                {"sampled": size, "disagreements": places}
                for size, places in zip_longest(plan.drawn, ranks)
            ],
            "sampled_before": self._order.sampled_before(stop),
            "whole_ties": self._ties() if self._limits["whole_ties"] else None,
            "unanswered": unanswered,
            "descriptive": {"sampled_differing": len(ranks[-1]) if ranks else 0},
        }
        values = CLAIM.decided(CLAIM.counted(found, CLAIM.wishes(self._limits)))
        provenance = Provenance.now(self._records.sources, self._columns)
        return BatchCertificate(by=CLAIM, values=values, provenance=provenance)

    def _ties(self) -> dict[str, Any]:
        prefix = self._beginning()
        return {
            "stop": prefix,
            "sampled_before": self._order.sampled_before(prefix),
            "threshold": self._order.lowest(prefix),
        }

    def _asked_rows(self, rows: Any) -> Integers:
        places = np.atleast_1d(whole_numbers(rows, "rows"))
        if places.ndim != 1:
            raise InvalidValueError(f"rows has shape {places.shape}: expected a list of rows.")
        # Many rows at once are looked for without sorting them.
        if places.size > max(1024, len(self._slow) // 64) and places.max() < len(self._slow):
            named = np.zeros(len(self._slow), dtype=bool)
            named[places] = True
            if named.sum() == places.size and self._needed[places].all():
                return places
        found, times = np.unique(places, return_counts=True)
        if (times > 1).any():
            raise InvalidValueError(
                f"Row {found[times > 1][0]} stands among the answers {times.max()} times: expected "
                "each row once."
            )
        beyond = found[found >= len(self._slow)]
        strange = beyond if beyond.size else found[~self._needed[found]]
        if strange.size and not beyond.size:
            strange = found[~self._certain[found]]
        if strange.size:
            raise InvalidValueError(
                f"Row {strange[0]} was not asked for ({strange.size} such rows): answer the rows "
                "that ask() gives."
            )
        return places

    def _require_unchanged(self, places: Integers, codes: Integers) -> None:
        changed = places[(self._slow[places] != NOT_ASKED) & (self._slow[places] != codes)]
        if changed.size:
            raise InvalidValueError(
                f"Row {changed[0]} was answered before, and differently ({changed.size} such "
                "rows): an answer is kept as it was first given."
            )

    def _keep(self, places: Integers, codes: Integers) -> None:
        names = self._records.vocabulary.names()
        for part in blocks(places.size, ANSWERS_A_LINE):
            if self._journal is not None:
                told = codes[part].tolist()
                answers = [None if code == MISSING else names[code] for code in told]
                self._journal.append(places[part].tolist(), answers)
            self._take(places[part], codes[part])

    def _keep_each(self, places: Integers, answers: Any) -> None:
        """Keep the valid ones of some answers, at least one of which is not."""
        if len(places) < 2 or len(places) != len(answers):
            return
        for place, answer in zip(places.tolist(), list(answers), strict=True):
            with suppress(PacboundError):
                self.tell([place], [answer], paid=True)

    def _check_names(self, codes: Integers | None = None) -> None:
        """Refuse a slow model that names its classes in another way than the fast one, by what it
        has said and by the `codes` of what is about to be kept. The journal then says that the fast
        answers may be named anew.
        """
        try:
            self._require_common_names(np.zeros(0, dtype=np.int64) if codes is None else codes)
        except PacboundError:
            if self._journal is not None:
                self._journal.refuse_names()
            raise

    def _require_common_names(self, codes: Integers) -> None:
        """Raise if the slow model answers with numbers where the fast one has text, or in another
        spelling. Every answer would differ.

        No more than money is lost by it, so that few answers, or a batch that asks about everything
        anyway, are not judged by their spelling; nor is text of which most answers are their own,
        where some will differ in a capital letter, and nobody can list all that there are.
        """
        vocabulary, more = self._records.vocabulary, set(codes[codes != MISSING].tolist())
        types = self._said_types | set(map(type, vocabulary.classes(more)))
        if types and self._predicted_types and not types & self._predicted_types:
            slow = vocabulary.classes(self._said | more)
            raise InvalidTypeError(
                f"The slow model answers {_some(slow)} and the fast one {_some(self._predicted)}, "
                "which are never equal: numbers on one side and names on the other. Name the fast "
                f"model's answers as the slow model does{self._renamed_where}."
            )
        is_round = self._exits is None and len(codes) >= self._open
        if not is_round or self._answered + len(codes) < ENOUGH_TO_JUDGE or self._plan.asks_all:
            return
        seen = Evidence()
        seen.saw("prediction", self._predicted)
        seen.labelled = vocabulary.classes(self._said | more)
        rule = self._records.rule
        if 2 * len(seen.labelled) > self._answered + len(codes):
            rule = replace(rule, classes=frozenset(seen.labelled | self._predicted))
        seen.check(rule, len(self._slow), "the slow model's answers")

    @property
    def _renamed_where(self) -> str:
        return (
            "; with the same journal nothing is paid for again"
            if self._records.few_names
            else ", and begin another batch with another journal: so many different answers may "
            "not be named anew once the slow model's were seen"
        )


def limits_of(xi: Any, delta: Any, sample: Any, looks: Any, whole_ties: Any) -> dict[str, Any]:
    """What is fixed before the sample is drawn, checked."""
    if isinstance(looks, bool) or np.ndim(looks) or looks not in (1, 2):
        raise InvalidValueError(f"looks={looks!r} is not known: expected 1 or 2.")
    return {
        "xi": tolerated_rate(xi),
        "delta": claimed_delta(delta),
        "sample": None if sample is None else whole_number(sample, "sample", least=1),
        "looks": int(looks),
        "whole_ties": truth_value(whole_ties, "whole_ties"),
    }


def _sample_size(sample: int | None, scored: int) -> int | None:
    if sample is not None and sample > scored:
        raise InvalidValueError(
            f"sample={sample} is more than the {scored} records that have a score: leave it out, "
            "and a rule chooses it."
        )
    return sample


def _key_of(rng: np.random.Generator | None) -> str:
    if not isinstance(rng, np.random.Generator):
        raise InvalidTypeError(
            f"rng is {'missing' if rng is None else f'a {type(rng).__name__}'}: expected a "
            "numpy.random.Generator, such as numpy.random.default_rng(), to draw the sample."
        )
    return new_key(rng)


def _some(classes: Sequence[Class] | set[Class]) -> str:
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


def _as_given(answers: NDArray[np.int64], dtype: Any) -> NDArray[Any]:
    if not isinstance(dtype, np.dtype) or dtype.kind not in "biuf":
        return answers
    same = answers.astype(dtype, copy=False)
    return same if (same == answers).all() else answers
