"""A session of labelling a cascade: ask for the labels that matter, stop at any time.

Whatever is asked, told or declined, in whatever order, and however often one looks: with
probability at least 1 - delta every certificate of a session holds, all of them together. All of
them claim the loss. The theorem and its proof are in `procedures.cascade_partial`. It needs that n,
xi, delta, the bound and the costs are fixed before the first label: a session fixes them when it
begins. It also needs that asking for a label does not change it: a session takes each label once.

Which rows are asked for is a matter of cost alone. A row is worth its label if it exits early with
an answer that differs from the slow model's at a step that could still pass: all others change no
test that decides. With two models those are the differing rows down to the end of the walk with
every open row counted as a gain. They are asked for from the top down, because a label in a high
cell counts at every step below it.

With more than two models: the rows that count along the path that would end cheapest if every open
row were a gain (for xi = 0, only at that end). If none of them is open, that path ends there
already, and no other could end cheaper: so there is always a row to ask for until the session is
done.

**Graded answers.** The quality of each model's answer takes the place of the label, and the coin of
a row, which is keyed before anything is told, makes of a difference D of two qualities a loss, a
gain or neither (`pacbound.tally.coins`). For a given coin the toss never falls as D rises. So the
proof goes through with the largest D that what was told allows in the place of D', and the smallest
one in the place of a gain: for every choice of which qualities to tell, by whatever rule, also one
that sees the coins, the losses that are counted are at least those of all qualities, and the gains
at most. What may not depend on the coin is the quality itself. A row is worth a further quality at
an exit if these two tosses differ there.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from copy import copy, deepcopy
from dataclasses import replace
from typing import Any, Literal, Self, Unpack, get_args

import numpy as np
from numpy.typing import NDArray

from pacbound.cascade.labelling.forecast import FEWEST_LABELS, LabelForecast
from pacbound.cascade.labelling.kept import (
    ByLabel,
    ByQuality,
    Imagined,
    Qualities,
    SessionDocument,
    SessionRows,
    Told,
    session_rows,
)
from pacbound.cascade.labelling.walks import LabelProgress, Outlook, SessionWalks, exits_of
from pacbound.cascade.rows import CLASSES, ReadingOptions
from pacbound.cascade.sessions import SessionLock, one_at_a_time
from pacbound.claims.cascade import CLAIM, BestPossible, CascadeCertificate
from pacbound.claims.cascade.certificate import thresholds_of, unit_costs
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.procedures.cascade import Bound, CascadeDecision
from pacbound.procedures.cascade_groups import Asked
from pacbound.procedures.cascade_partial import checked_claim
from pacbound.procedures.cascade_paths import checked_costs, total_cost
from pacbound.sources.values import MISSING, Values
from pacbound.stats.arguments import is_one_of
from pacbound.tally.classes import Class, ClassRule, Evidence
from pacbound.tally.coins import Graded
from pacbound.tally.columns import QUALITY, same_order, same_rows
from pacbound.tally.questions.cascade import grid_of, witness
from pacbound.tally.row_options import RowOptions
from pacbound.tally.tally import Tally, recorded_columns

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Outcome = Literal["label", "quality"]

# The row options of a session whose answers are graded, by what they are called in a message.
GRADING = {
    "quality_scale": "the scale of the grades",
    "graded_by": "who graded",
    "seed": "the key of the coins",
    "row_ids": "what coins go by",
}


class LabelSession:
    """Certifies a cascade while labels come in, and says which labels matter next.

    With probability at least 1 - `delta` every certificate that the session gives, after any number
    of labels, asked for and told in any order, names thresholds at which the cascade loses at most
    `xi` accuracy against its slow model: all of them at once, so looking and stopping cost nothing.
    The rows must be independent draws from the data the model will meet in use, all of them in the
    session and their number fixed beforehand. `xi`, `delta`, `bound` and `costs` are fixed when the
    session is made. A label must not depend on whether it was asked for, and is told once: changing
    one after its effect was seen voids the guarantee, so a session refuses it. Until anything that
    depends on it was looked at, or the session was saved or copied, `undo` takes it back.

    Labels matter only where predictions differ. A row without one there counts as a loss, and so
    does one that was declined because nobody can tell. What a session claims is the loss from
    beginning to end, also before the first label. That few answers *differ* is another claim, which
    `delta` would not cover beside it: `certify_cascade` makes it, with `claim="differ"`.

    With `outcome="quality"` answers are graded: of each row the quality of every model's answer is
    told, in the place of a label, and the loss is one of mean quality. By keyed coins, as in
    `certify_cascade`: `delta` is then over the rows and their coins. Every row has its coin before
    anything is told, and a quality must not depend on it. Of a row some qualities may be told
    before the others; what is missing counts as the worst that it can be.

    Several threads may share a session: each call is taken as a whole. Several processes may share
    its file: see `save`.

    Parameters
    ----------
    confidence
        (n, M-1) scores in [0, 1] of the fast models; with `data`, the names of their columns.
    prediction
        (n, M) predicted classes, the slow model's last; with `data`, the names of their columns.
        May be left out where answers are graded: then no two of them count as equal.
    xi
        The accuracy that may be lost, or the mean quality; 0 asks that nothing is.
    delta
        The chance that more is lost at any time.
    costs
        M rising numbers, as in `certify_cascade`.
    bound
        "exact", "pair" or "product", as in `certify_cascade`.
    claim
        "loss", the only claim that holds at every look of a session.
    outcome
        What the session is told of a row: its "label", or the "quality" of each model's answer.
    slow_confidence
        (n,) numbers, higher where the slow model is surer, or the name of their column: of rows
        that count from the same step on, those with the lowest are asked for first. Only the order
        depends on it. Without it, rows are asked for in their own order.
    data
        The path of one file that has all rows.
    **rows
        How rows are read, see `RowOptions`: `classes`, `missing` and `unseen_labels`; for a file
        `progress`, `delimiter`, `decimal` and `scale`; and where answers are graded
        `quality_scale`, `graded_by`, `seed` and `row_ids`. Without ids a row's coin goes by its
        place.

    Raises
    ------
    InvalidValueError, InvalidTypeError
        If scores, classes or an option cannot be what they should be; the message names the value
        and the remedy.

    Examples
    --------
    >>> from pacbound.data import fashion_mnist
    >>> table = fashion_mnist()
    >>> prediction = np.column_stack([table.prediction_fast, table.prediction_slow])
    >>> session = LabelSession(
    ...     table.confidence_fast, prediction, xi=0.01, delta=0.01, bound="pair"
    ... )
    >>> while not session.done:
    ...     rows = session.ask(20)
    ...     _ = session.tell(rows, table.label[rows])
    >>> print(session.progress)
    340 labels of 2,943 differing rows: 62.7% exit early, at best 62.7%; done
    >>> session.certificate().thresholds.round(4)
    array([0.7415])
    """

    def __init__(  # noqa: PLR0913
        self,
        confidence: Any,
        prediction: Any = None,
        *,
        xi: float,
        delta: float,
        costs: Any = None,
        bound: Bound = "exact",
        claim: Literal["loss"] = "loss",
        outcome: Outcome = "label",
        slow_confidence: Any = None,
        data: str | os.PathLike[str] | None = None,
        **rows: Unpack[RowOptions],
    ) -> None:
        reading = ReadingOptions.of(rows, data, (*CLASSES, *GRADING), "a session")
        graded = _graded(outcome, rows, bound)
        require_loss(claim)
        checked = CLAIM.wishes({"xi": xi, "delta": delta, "bound": bound})
        asked: Asked = {
            "xi": checked["xi"],
            "delta": checked["delta"],
            "bound": checked["bound"],
        }
        columns = {"confidence": confidence, "prediction": prediction}
        by = {**columns, "row_ids": rows.get("row_ids")}
        found = session_rows(by, slow_confidence, data, reading, graded)
        self._begin(found, asked, costs, reading.rule, recorded_columns(by, data))

    def _begin(
        self,
        rows: SessionRows,
        asked: Asked,
        costs: Any,
        rule: ClassRule,
        columns: dict[str, str],
    ) -> None:
        self._lock = SessionLock()
        self._rows, self._asked, self._rule = rows, asked, rule
        self._costs = None if costs is None else checked_costs(costs, rows.exits + 1)
        self._columns = columns
        self._by = ByLabel(rows) if rows.graded is None else ByQuality(rows, rows.graded)
        self._told: Told = self._by.nothing(len(rows.numbers))
        self._is_declined = np.zeros(len(rows.numbers), dtype=np.bool_)
        self._order: list[int] = []
        self._counts = rows.tally.counts.copy()
        table = rows.tally.cells, rows.tally.counts, rows.tally.rows
        self._walks = SessionWalks(*table, asked, self._costs or unit_costs(rows.exits))
        self._outlook: Outlook | None = None
        # What `undo` may take back: the rows of a call, with their labels before it.
        self._unused: list[tuple[Integers, Told, NDArray[np.bool_]]] = []
        self._undone: list[tuple[int, Class | Qualities | None]] = []

    @property
    def xi(self) -> float:
        """The accuracy that may be lost."""
        return self._asked["xi"]

    @property
    def delta(self) -> float:
        """The chance that more is lost."""
        return self._asked["delta"]

    @property
    def bound(self) -> Bound:
        """What decides: "exact", "pair" or "product"."""
        return self._asked["bound"]

    @property
    def costs(self) -> tuple[float, ...] | None:
        """What a row costs that each model answers; None if they were not given."""
        return self._costs

    @property
    def graded(self) -> Graded | None:
        """How answers are graded; None where rows get labels."""
        return self._rows.graded

    @property
    def rule(self) -> ClassRule:
        """What was said about the classes."""
        return self._rule

    @property
    @one_at_a_time
    def classes(self) -> tuple[Class, ...]:
        """The classes that a label may be expected to be, in order: those that were listed, those
        that models predict, and those of labels so far.
        """
        predicted = set[Class]().union(*self._rows.evidence.predicted.values())
        kinds = set(map(type, predicted))
        listed = {found for found in self._rule.classes or () if type(found) in kinds}
        return tuple(
            sorted(
                predicted | listed | set(self.labels.values()),
                key=lambda found: (isinstance(found, str), found),
            )
        )

    @property
    @one_at_a_time
    def labels(self) -> dict[int, Class]:
        """The labels so far by the numbers of their rows, in the order in which they came; none
        where answers are graded.
        """
        return self._all_told() if self.graded is None else {}

    @property
    @one_at_a_time
    def qualities(self) -> dict[int, Qualities]:
        """The qualities so far, from 0 to 1, by the numbers of their rows: of each model's answer,
        None where it was not given.
        """
        return {} if self.graded is None else self._all_told()

    def _all_told(self) -> dict[int, Any]:
        return self._by_row(np.array(self._order, dtype=np.int64), self._told)

    def _by_row(self, places: Integers, told: Told) -> dict[int, Any]:
        numbers = self._rows.numbers[places].tolist()
        return dict(zip(numbers, self._by.listed(told[places]), strict=True))

    @property
    @one_at_a_time
    def declined(self) -> Integers:
        """The numbers of the rows that were declined and have no label since."""
        return self._rows.numbers[self._is_declined]

    @property
    @one_at_a_time
    def done(self) -> bool:
        """Whether no label of a row that is still open can change the thresholds."""
        return self._seen().settled

    @property
    @one_at_a_time
    def progress(self) -> LabelProgress:
        """What is certified so far, what is possible at best, and how much is left to ask for."""
        seen, n = self._seen(), self._rows.tally.rows
        return LabelProgress(
            labels=len(self._order),
            declined=int(self._is_declined.sum()),
            open=len(self._worth_asking()),
            differ=len(self._told),
            rows=n,
            certified=seen.now.refusal is None,
            thresholds=thresholds_of(seen.now.cells, self._rows.exits),
            exit_rates=exits_of(seen.now) / n,
            expected_cost=self._cost(seen.now),
            best_possible=BestPossible(
                thresholds_of(seen.best.cells, self._rows.exits),
                exits_of(seen.best) / n,
                self._cost(seen.best),
            ),
            done=seen.settled,
            graded=self.graded is not None,
        )

    @property
    @one_at_a_time
    def tally(self) -> Tally:
        """The counts of all rows with the labels so far. It has the same name at every time, so
        that adding two of one session raises.
        """
        self._unused.clear()
        return replace(self._rows.tally, counts=self._counts.copy())

    @property
    @one_at_a_time
    def undone(self) -> tuple[tuple[int, Class | Qualities | None], ...]:
        """What was taken back, in order: numbers of rows, each with the label, or the qualities,
        that it had; None for one that was declined.
        """
        return tuple(self._undone)

    @one_at_a_time
    def ask(self, count: int = 50) -> Integers:
        """The rows whose labels help most, the most wanted first.

        Asking changes nothing: rows that were not answered are asked for again.

        Parameters
        ----------
        count
            At most so many, at least 1.

        Returns
        -------
        ndarray of int64
            The numbers of the rows, counted from 0; fewer than `count`, or none, if no others can
            matter.

        Raises
        ------
        InvalidValueError
            If `count` is not a whole number from 1.

        Examples
        --------
        Row 1 loses or gains first, row 3 only where nothing can be certified any more:

        >>> confidence = [0.99, 0.98, 0.97, 0.1] + [0.98] * 400
        >>> prediction = [[1, 1], [0, 1], [1, 1], [0, 1]] + [[1, 1]] * 400
        >>> session = LabelSession(confidence, prediction, xi=0.01, delta=0.05)
        >>> session.ask(1)
        array([1])
        """
        count = _whole_number(count, "count", "rows")
        return self._rows.numbers[self._worth_asking()[:count]]

    @one_at_a_time
    def tell(self, rows: Any, labels: Any = None, *, quality: Any = None) -> int:
        """Take in the labels of rows, or the quality of each model's answers: all of them or, if
        one cannot be right, none.

        Parameters
        ----------
        rows
            The numbers of rows, asked for or not. Where all predictions agree a label changes
            nothing, and is ignored.
        labels
            Their true classes; None (NaN, or what `missing` names) declines a row, as `decline`
            does.
        quality
            In a session with `outcome="quality"`: (k, M) grades on its scale, the slow model's
            last; for two models (k,) will do, the slow model's, and the other's is what it leaves
            to the best. None or NaN where a grade is not known yet; a row with no grade at all is
            declined.

        Returns
        -------
        int
            How many rows were labelled or declined that were not before.

        Raises
        ------
        InvalidValueError, InvalidTypeError
            If a row does not exist, or already has another label; if a label is not a class, of
            another type than the predictions, or a class that no model predicts and that is not
            allowed for; if a grade is not on the scale; if the session is told qualities, and these
            are labels, or the other way round.

        Examples
        --------
        >>> session = LabelSession([0.9, 0.8], [[0, 1], [1, 1]], xi=0.1, delta=0.1)
        >>> session.tell([0, 1], [1, 1]), session.tell([0], [1])
        (1, 0)
        >>> graded = LabelSession(
        ...     [0.9, 0.8], xi=0.1, delta=0.1, outcome="quality", quality_scale=(1, 5)
        ... )
        >>> graded.tell([0, 1], quality=[[4, 5], [None, 3]]), graded.qualities
        (2, {0: (0.75, 1.0), 1: (None, 0.5)})
        """
        numbers = _row_numbers(rows, self._rows.tally.rows)
        given, name = self._of_own_kind(labels, quality)
        same_rows(**{"rows": rows, name: given})
        same_order(numbers, given, name)
        told = self._by.read(given, name)
        if len(told) != len(numbers):
            raise InvalidValueError(
                f"Rows do not match: there are {len(numbers)} rows and {len(told)} "
                f"{self._by.several}."
            )
        return self._take(numbers, told, name)

    def _of_own_kind(self, labels: Any, quality: Any) -> tuple[Any, str]:
        """The labels or qualities that were passed, and their name, if the session takes these."""
        if self.graded is None and quality is not None:
            raise InvalidTypeError(
                "This session takes labels, and quality was passed: pass labels. Which of the two "
                "it takes is fixed when it is made: outcome='quality' is for graded answers."
            )
        if self.graded is not None and labels is not None:
            raise InvalidTypeError(
                "This session takes the quality of answers, and labels were passed: pass "
                "quality=, by name. Which of the two it takes is fixed when it is made."
            )
        given, name = (labels, "labels") if self.graded is None else (quality, QUALITY)
        if given is None:
            raise InvalidTypeError(f"{name} is missing: pass one for each row.")
        return given, name

    @one_at_a_time
    def tell_column(
        self,
        rows: Any,
        labels: Values | Mapping[str, Floats],
        *,
        name: str = QUALITY,
        start: int = 0,
        predictions: Mapping[int, Values] | None = None,
        scores: Mapping[int, Floats] | None = None,
        checks: NDArray[Any] | None = None,
    ) -> int:
        """As `tell`, with labels as a column of a file has them, or qualities as several; where
        there is none, the row stays open.

        Parameters
        ----------
        rows
            The numbers of rows.
        labels
            The column, by its distinct values; of grades the columns, NaN where one is missing, by
            their names.
        name, start
            What the column is called, and the row of its file that it begins with, for messages.
        predictions, scores
            What the file says that some models predict, and how sure they are (NaN where it says
            nothing), by the places of the models. If they do not in these rows, the file belongs
            to others, and is refused.
        checks
            What `checks` gave for these rows; if it gives others, the file is refused, too.

        Returns
        -------
        int
            How many rows were labelled that were not before.

        Raises
        ------
        InvalidValueError, InvalidTypeError
            As from `tell`; if predictions or scores are not those of the session.
        """
        numbers = _row_numbers(rows, self._rows.tally.rows)
        told = self._by.read(labels, name, start)
        self._require_own(numbers, predictions or {})
        self._require_own_scores(numbers, scores or {})
        if checks is not None:
            _refuse_other_rows(numbers[self._rows.checks(numbers) != checks], "checks")
        known = self._by.known(told).any(axis=1)
        return self._take(numbers[known], told[known], name)

    @one_at_a_time
    def decline(self, rows: Any) -> int:
        """Rows that nobody can tell the class of: they stay losses, and are not asked for again.

        A label that comes later all the same is taken.

        Parameters
        ----------
        rows
            The numbers of rows.

        Returns
        -------
        int
            How many rows were declined that were not before.

        Examples
        --------
        >>> session = LabelSession([0.9] * 9, [[0, 1]] * 9, xi=0.5, delta=0.1)
        >>> session.decline([0, 1]), session.progress.declined
        (2, 2)
        """
        numbers = _row_numbers(rows, self._rows.tally.rows)
        return self._take(numbers, self._by.nothing(len(numbers)), self._by.several)

    @one_at_a_time
    def undo(self) -> Integers:
        """Take back what the last `tell`, `tell_column` or `decline` took in, as if it had not been
        told: for a slip of the pen that is noticed at once.

        A label can be taken back as long as it has not been used. It is used by whatever depends on
        it: `progress`, `done`, `ask`, `forecast`, `tally`, `certificate`, the session as text; and
        by `save` and by a copy, since others may look at these. So nothing that anybody saw depends
        on a label that was taken back, and the guarantee holds with the label that is told in its
        place. `undone` and the file name every label that was taken back.

        Returns
        -------
        ndarray of int64
            The numbers of the rows that it is undone for.

        Raises
        ------
        InvalidValueError
            If nothing was told since the session was last looked at, saved or copied.

        Examples
        --------
        >>> session = LabelSession([0.9, 0.8], [[0, 1], [1, 1]], xi=0.1, delta=0.1)
        >>> _ = session.tell([0], [1])
        >>> session.undo(), session.labels, session.undone
        (array([0]), {}, ((0, 1),))
        """
        if not self._unused:
            raise InvalidValueError(
                "There is nothing to undo: no label came since the session was last looked at "
                "(progress, done, ask, forecast, tally, certificate), saved or copied. A label "
                "that was used stays: one that is changed after its effect was seen voids the "
                "guarantee."
            )
        places, before, declined = self._unused.pop()
        self._undone += self._last_told(places)
        first = {*places[~self._by.known(before).any(axis=1)].tolist()}
        self._order = [place for place in self._order if place not in first]
        self._recount(places, before, declined)
        return self._rows.numbers[places]

    def _last_told(self, places: Integers) -> list[tuple[int, Class | Qualities | None]]:
        """Rows with the last label of each, None if it was declined."""
        told, gone = self._by_row(places, self._told), self._is_declined[places].tolist()
        return [
            (row, None if is_gone else label)
            for (row, label), is_gone in zip(told.items(), gone, strict=True)
        ]

    @one_at_a_time
    def forecast(self, labels: int | None = None) -> LabelForecast | None:
        """What the session comes to if further labels are like those so far: a forecast, which
        `delta` does not cover.

        Parameters
        ----------
        labels
            After so many more labels; without it, when no further label would matter.

        Returns
        -------
        LabelForecast or None
            None before 10 rows were labelled or declined.

        Examples
        --------
        >>> from pacbound.data import fashion_mnist
        >>> table = fashion_mnist()
        >>> prediction = np.column_stack([table.prediction_fast, table.prediction_slow])
        >>> session = LabelSession(
        ...     table.confidence_fast, prediction, xi=0.01, delta=0.01, bound="pair"
        ... )
        >>> rows = session.ask(100)
        >>> _ = session.tell(rows, table.label[rows])
        >>> print(session.forecast(50))
        forecast: at this rate about 60% exit early after about 50 more labels
        """
        if labels is not None:
            labels = _whole_number(labels, "labels", "labels")
        self._seen()
        declined = int(self._is_declined.sum())
        if len(self._order) + declined < FEWEST_LABELS:
            return None
        order = np.array(self._order, dtype=np.int64)
        unknown = int((self._is_declined & ~self._by.known(self._told).any(axis=1)).sum())
        like_these = self._by.imagined(order, self._told[order], unknown)
        return self._imagined()._played_on(like_these, labels)

    @one_at_a_time
    def checks(self, rows: Any) -> NDArray[np.str_]:
        """A short text for each row of this session, to go out with the rows that are asked for: by
        it `tell_column` knows that answers are for these rows.

        Parameters
        ----------
        rows
            The numbers of rows.

        Returns
        -------
        ndarray of str
            Eight letters for each.

        Examples
        --------
        >>> session = LabelSession([0.9, 0.8], [[0, 1], [1, 1]], xi=0.1, delta=0.1)
        >>> session.checks([0, 1])
        array(['r9244f7f', 'rf5aaf50'], dtype='<U8')
        """
        return self._rows.checks(_row_numbers(rows, self._rows.tally.rows))

    @one_at_a_time
    def certificate(
        self, *, about: Mapping[str, Any] | None = None, sample: str | None = None
    ) -> CascadeCertificate:
        """What the labels so far prove, at any time.

        Parameters
        ----------
        about
            What the certificate is about, for people, as in `certify_cascade`.
        sample
            What the rows are called, as in `certify_cascade`.

        Returns
        -------
        CascadeCertificate
            As `certify_cascade` gives for the same labels. It knows nothing of declined rows: its
            `best_possible` counts them as open. A refusal has `certified` False and the thresholds
            +inf.

        Examples
        --------
        >>> session = LabelSession([0.9] * 400, [[1, 1]] * 400, xi=0.02, delta=0.05)
        >>> session.certificate().certified
        True
        """
        asked = {**self._asked, "costs": self._costs}
        return CLAIM.certify(self.tally, asked, self._columns).with_about(about, sample=sample)

    @one_at_a_time
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the session to a file, whole or not at all.

        The file holds the labels and a digest of the rows, not the rows. It is locked while it is
        looked at and written, so that of two processes that save at once, the second is told of the
        labels of the first. Whoever loads it may look, so `undo` takes no label back after it.

        Parameters
        ----------
        path
            Where it goes. An earlier file of this session is replaced. One of other rows, of
            another claim, or with labels that this session does not have raises, and stays.

        Raises
        ------
        InvalidValueError, CertificateError
            If something else is there.
        UnwritableFileError
            If nothing can be written there.

        Examples
        --------
        >>> session = LabelSession([0.9, 0.8], [[0, 1], [1, 1]], xi=0.1, delta=0.1)
        >>> session.save("session.json")
        >>> LabelSession.load("session.json", [0.9, 0.8], [[0, 1], [1, 1]]).progress.labels
        0
        """
        self._unused.clear()
        self._document().save(path)

    @one_at_a_time
    def _save_undoable(self, path: str | os.PathLike[str]) -> None:
        """`save`, after which the last label may still be taken back: only for a caller that holds
        the lock of the file during the whole session, so that nobody else sees that label.
        """
        del self._unused[:-1]
        self._document().save(path, by_hand=True)

    def __getstate__(self) -> dict[str, Any]:
        # Whoever has the copy may look.
        self._unused.clear()
        return self.__dict__.copy()

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        confidence: Any,
        prediction: Any = None,
        *,
        slow_confidence: Any = None,
        data: str | os.PathLike[str] | None = None,
        **rows: Unpack[RowOptions],
    ) -> Self:
        """Go on with a session from its file and the same rows.

        Parameters
        ----------
        path
            What `save` wrote.
        confidence, prediction, slow_confidence, data, **rows
            The rows, as the session was made from, with their `row_ids` if it had any; all else,
            also the classes, and how answers are graded, is in the file.

        Returns
        -------
        LabelSession
            The session with all its labels; without the last one while somebody who labels by hand
            on a terminal may still take it back.

        Raises
        ------
        CertificateError
            If the file is not a session, was cut short, or was changed.
        InvalidValueError
            If these are not the rows of the session.

        Examples
        --------
        >>> session = LabelSession([0.9, 0.8], [[0, 1], [1, 1]], xi=0.1, delta=0.1)
        >>> _ = session.tell([0], [1])
        >>> session.save("labels.json")
        >>> LabelSession.load("labels.json", [0.9, 0.8], [[0, 1], [1, 1]]).progress.labels
        1
        """
        reading = ReadingOptions.of(rows, data, tuple(GRADING), "a session that is gone on with")
        kept = SessionDocument.read_used(path)
        require_as_graded(kept.graded, rows, path)
        columns = {"confidence": confidence, "prediction": prediction}
        by = {**columns, "row_ids": rows.get("row_ids")}
        reading = replace(reading, rule=kept.rule)
        found = session_rows(by, slow_confidence, data, reading, kept.graded)
        is_named = rows.get("row_ids") is not None
        if found.digest != kept.digest:
            raise InvalidValueError(
                f"{path} is the session of other rows ({kept.rows:,} of them; these are "
                f"{found.tally.rows:,}): their scores or predictions{', or their ids' * is_named}, "
                "or their order, are not the same. Pass the rows that it was made from."
            )
        session = cls.__new__(cls)
        # A name of its own that rows too alike to be named were given goes on.
        found = replace(found, tally=replace(found.tally, sources=kept.sources))
        session._begin(found, kept.asked, kept.costs, kept.rule, recorded_columns(by, data))
        if kept.told:
            told = session._by.unlisted(list(kept.told.values()))
            session._take(_row_numbers(list(kept.told), found.tally.rows), told, "labels")
        if kept.declined:
            session.decline(list(kept.declined))
        session._unused.clear()
        session._undone = list(kept.undone)
        return session

    @one_at_a_time
    def __repr__(self) -> str:
        asked = self._asked
        return (
            f"LabelSession(xi={asked['xi']}, delta={asked['delta']}, bound={asked['bound']!r}: "
            f"{self.progress})"
        )

    def _seen(self) -> Outlook:
        self._unused.clear()
        if self._outlook is None:
            self._outlook = self._walks.outlook()
        return self._outlook

    def _worth_asking(self) -> Integers:
        """The places of the rows to ask for, the most wanted first; none once nothing changes."""
        seen, rows = self._seen(), self._rows
        if seen.settled:
            return np.zeros(0, dtype=np.int64)
        known = self._by.known(self._told).all(axis=1)
        open_ = np.flatnonzero(~known & ~self._is_declined)
        exits = self._by.open(open_, self._told[open_])
        steps = self._walks.steps(seen.best, rows.cells[open_], exits)
        there = steps >= 0
        open_, steps = open_[there], steps[there]
        # The last key counts first; NaN, where the slow model's confidence is not known, is last.
        return open_[np.lexsort((open_, rows.doubt[open_], steps))]

    def _take(self, numbers: Integers, told: Told, name: str) -> int:
        places = self._places(numbers)
        numbers, told, places = (part[places >= 0] for part in (numbers, told, places))
        places, first, inverse = np.unique(places, return_index=True, return_inverse=True)
        self._require_same(numbers, told, told[first][inverse])
        told, before = told[first], self._told[places]
        known, had = self._by.known(told), self._by.known(before)
        declined, whole = np.asarray(~known.any(axis=1)), np.asarray(had.all(axis=1))
        merged = np.where(known, told, before)
        # A row that lacks nothing cannot be declined.
        now = np.where((declined & whole)[:, None], told, merged)
        self._require_same(numbers[first], np.where(had, now, before), before)
        more = (known & ~had).any(axis=1)
        is_new = np.where(declined, ~whole & ~self._is_declined[places], more)
        # In the order in which they came.
        new = np.flatnonzero(is_new)[np.argsort(first[is_new])]
        places, told, declined = places[new], merged[new], declined[new]
        if len(places):
            if self.graded is None:
                self._check_classes(places, told[:, 0], name)
            self._change(places, told, declined)
        return len(places)

    def _places(self, numbers: Integers) -> Integers:
        """Where each row stands among those that differ, -1 for one in which all agree."""
        known = self._rows.numbers
        if not len(known):
            return np.full(len(numbers), -1)
        places = np.minimum(np.searchsorted(known, numbers), len(known) - 1)
        return np.where(known[places] == numbers, places, -1)

    def _require_same(self, numbers: Integers, told: Told, before: Told) -> None:
        """Raise if a row gets another label than the one `before`."""
        known, had = self._by.known(told), self._by.known(before)
        differing = np.flatnonzero(((told != before) & (known | had)).any(axis=1))
        if differing.size:
            at, what = differing[0], self._by.what
            old, new = (self._by.named(part[at : at + 1]) for part in (before, told))
            raise InvalidValueError(
                f"Row {numbers[at]} has the {what} {old}, and now {new} was passed "
                f"({differing.size} such rows). A {what} is final: one that is changed after its "
                "effect was seen voids the guarantee. Nothing was taken in."
            )

    def _require_own(self, numbers: Integers, predictions: Mapping[int, Values]) -> None:
        """Raise unless the models predict this in these rows."""
        places, rows = self._places(numbers), self._rows
        answers = {
            model: rows.vocabulary.codes(values, f"prediction of model {model}")
            for model, values in predictions.items()
        }
        for model, codes in answers.items():
            # Of rows in which all agree, only that is known.
            any_other = next(reversed(answers.values()))
            same = np.where(places < 0, codes == any_other, codes == rows.answers[model][places])
            _refuse_other_rows(numbers[~same], "predictions")

    def _require_own_scores(self, numbers: Integers, scores: Mapping[int, Floats]) -> None:
        """Raise unless the scores of these rows are these, up to digits that were lost on the way:
        those in the next cell pass. Scores of rows in which all models agree are not kept.
        """
        places, rows = self._places(numbers), self._rows
        grid = grid_of(rows.exits)
        for exit_, column in scores.items():
            given = (places >= 0) & ~np.isnan(column)
            cells = grid.cells(np.clip(column[given], 0.0, 1.0))
            own = rows.cells[places[given], exit_]
            _refuse_other_rows(numbers[given][np.abs(cells - own) > 1], "scores")

    def _check_classes(self, places: Integers, codes: Integers, name: str) -> None:
        """Refuse labels that cannot be right, judged together with all labels so far."""
        rows, truth = self._rows, self._told[:, 0].copy()
        truth[places] = codes
        known = np.flatnonzero(truth != MISSING)
        evidence = Evidence(predicted=rows.evidence.predicted, slow=rows.evidence.slow)
        answers = [column[known] for column in rows.answers]
        witness(answers, truth[known], rows.vocabulary, evidence)
        if known.size:
            evidence.check_some(self._rule, rows.tally.rows, name)

    def _change(self, places: Integers, told: Told, declined: NDArray[np.bool_]) -> None:
        """Give rows a label, or more grades, or decline them."""
        before = self._told[places]
        self._unused.append((places, before, self._is_declined[places]))
        self._recount(places, told, declined)
        is_first = ~self._by.known(before).any(axis=1) & self._by.known(told).any(axis=1)
        self._order += places[is_first].tolist()

    def _recount(self, places: Integers, told: Told, declined: NDArray[np.bool_]) -> None:
        """Move rows from the counts of their old labels to those of the new ones."""
        rows, by, had = self._rows, self._by, self._told[places]
        before, after = by.outcomes(places, had), by.outcomes(places, told)
        counted = rows.places[places]
        np.subtract.at(self._counts, (counted, before), 1)
        np.add.at(self._counts, (counted, after), 1)
        # A row that was declined is lost for good, unless its label comes after all.
        self._walks.change(
            rows.cells[places],
            np.where(self._is_declined[places], by.for_good(places, had), before),
            np.where(declined, by.for_good(places, told), after),
        )
        self._told[places], self._is_declined[places] = told, declined
        self._outlook = None

    def _imagined(self) -> Self:
        """A copy to play with, which shares the rows."""
        other = copy(self)
        other._told, other._is_declined = self._told.copy(), self._is_declined.copy()
        other._order, other._counts = [], self._counts.copy()
        other._walks, other._unused = deepcopy(self._walks), []
        return other

    def _played_on(self, like_these: Imagined, most: int | None) -> LabelForecast:
        told = 0
        while not self._seen().settled and (most is None or told < most):
            # Ever more at once: to look takes longer than to tell.
            some = min(1 + told // 10, len(self._told) if most is None else most - told)
            places = self._worth_asking()[:some]
            labels = like_these(places, told)
            self._change(places, labels, np.asarray(~self._by.known(labels).all(axis=1)))
            told += len(places)
        then = self._seen()
        rates, cost = exits_of(then.now) / self._rows.tally.rows, self._cost(then.now)
        return LabelForecast(told, rates, cost, done=then.settled, what=self._by.several)

    def _cost(self, decision: CascadeDecision) -> float | None:
        if self._costs is None:
            return None
        n = self._rows.tally.rows
        return total_cost(exits_of(decision), n, self._costs) / n

    def _document(self) -> SessionDocument:
        rows, order = self._rows, np.array(self._order, dtype=np.int64)
        told, is_declined = self._told.copy(), self._is_declined.copy()
        unused: list[tuple[int, Class | Qualities | None]] = []
        for places, before, was_declined in reversed(self._unused):
            unused += self._last_told(places)
            told[places], is_declined[places] = before, was_declined
        return SessionDocument(
            rows=rows.tally.rows,
            digest=rows.digest,
            sources=rows.tally.sources,
            asked=self._asked,
            costs=self._costs,
            rule=self._rule,
            graded=self.graded,
            told=self._by_row(order[self._by.known(told[order]).any(axis=1)], told),
            declined=tuple(rows.numbers[is_declined].tolist()),
            unused=tuple(unused),
            undone=self.undone,
        )


def require_loss(claim: str) -> None:
    """Raise for any claim that does not hold at every look."""
    if checked_claim(claim) == "differ":
        raise InvalidValueError(
            "claim='differ' is not for a session: delta would have to cover two claims, that few "
            "answers differ as long as there is no label and that little is lost afterwards, and "
            "it covers one. A session claims the loss at every look, also before the first label. "
            "To claim that few answers differ, without labels, use certify_cascade or pacbound "
            "cascade with that claim, and begin no session with these rows."
        )


def _graded(outcome: Any, rows: Mapping[str, Any], bound: Any) -> Graded | None:
    """How answers are graded, if they are."""
    if not is_one_of(outcome, get_args(Outcome)):
        raise InvalidValueError(
            f"outcome={outcome!r} is not known: expected 'label', the true class of a row, or "
            "'quality', how good the answer of each model is."
        )
    if outcome == "quality":
        if bound == "product":
            raise InvalidValueError(
                "bound='product' is about answers that are right or wrong, and these are graded: "
                "use bound='exact' or 'pair'."
            )
        said = {name: value for name, value in rows.items() if value is not None}
        return Graded.of({"seed": 0, **said})
    for name, what in GRADING.items():
        if rows.get(name) is not None:
            raise InvalidTypeError(
                f"{name} says {what} of graded answers, and this session takes labels: pass "
                "outcome='quality', or leave it out."
            )
    return None


def require_as_graded(
    graded: Graded | None, given: Mapping[str, Any], path: str | os.PathLike[str]
) -> None:
    """Raise if options about grading differ from what the file of a session says; an option that is
    left out is as in the file.
    """
    said = {name: value for name, value in given.items() if name in GRADING and value is not None}
    if graded is None:
        for name in said:
            raise InvalidTypeError(f"{path} is a session of labels: leave {name} out.")
        return
    if ("row_ids" in said) != (graded.ids == "row_ids"):
        known_by = "row_ids" if graded.ids == "row_ids" else "their places"
        raise InvalidTypeError(
            f"The coins of {path} know rows by {known_by}: "
            f"{'pass' if graded.ids == 'row_ids' else 'leave out'} row_ids."
        )
    now = Graded.of(said)
    for name, was, is_now in (
        ("seed", graded.seed, now.seed),
        ("graded_by", graded.by, now.by),
        ("quality_scale", graded.scale, now.scale),
    ):
        if name in said and was != is_now:
            raise InvalidValueError(
                f"{path} was begun with {name} = {was}, not {is_now}: what is asked for may not "
                "change once grades were seen, and another seed is another look. Leave it out."
            )


def _refuse_other_rows(wrong: Integers, what: str) -> None:
    if wrong.size:
        raise InvalidValueError(
            f"Row {wrong[0]} of the session has other {what} than these answers say ({wrong.size} "
            "such rows): they were asked for other rows. Pass the file that this session asked for."
        )


def _whole_number(given: Any, name: str, what: str) -> int:
    """`given` as a number of things, at least 1."""
    if isinstance(given, bool) or not isinstance(given, (int, np.integer)) or given < 1:
        raise InvalidValueError(
            f"{name}={given!r} is not a number of {what}: expected a whole number from 1."
        )
    return int(given)


def _row_numbers(rows: Any, n: int) -> Integers:
    """`rows` as numbers of rows that exist."""
    found = np.asarray(rows)
    if found.ndim == 0:
        found = found[None]
    if found.ndim != 1 or (found.size and found.dtype.kind not in "iu"):
        raise InvalidTypeError(
            f"rows has shape {found.shape} and dtype {found.dtype}: expected a list of the numbers "
            "of rows, as `ask` gives them."
        )
    wrong = np.flatnonzero((found < 0) | (found >= n))
    if wrong.size:
        raise InvalidValueError(
            f"There is no row {found[wrong[0]]} ({wrong.size} such numbers): rows are counted from "
            f"0 to {n - 1}."
        )
    return found.astype(np.int64)
