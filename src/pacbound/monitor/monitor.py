"""Watching over a certificate in use: evidence that its claim no longer holds, label by label."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from threading import RLock
from typing import Any, ClassVar, Final, Self, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from pacbound import documents
from pacbound.atomic_files import as_path, refuse_replacing_source
from pacbound.claims.assumptions import part_of_cluster, rows_to_take_in
from pacbound.claims.certificate import Certificate, certificate_of
from pacbound.documents import Json, Reader
from pacbound.errors import (
    CertificateError,
    InvalidTypeError,
    InvalidValueError,
    PacboundError,
)
from pacbound.monitor import state_file
from pacbound.monitor.state import Clock, Promise, Rung, State, watch_of
from pacbound.sources.engines import reading_frame
from pacbound.stats.arguments import LARGEST_COUNT
from pacbound.tally.classes import ClassRule, Evidence, Vocabulary
from pacbound.tally.columns import Rows, Slot, same_length, same_rows
from pacbound.tally.draws import Candidates, Draw, Unused
from pacbound.tally.keyed_numbers import fresh_seed
from pacbound.tally.questions import with_article
from pacbound.tally.rollout_rows import LOOKED_AT, RolloutRows
from pacbound.tally.row_options import POSITIVE
from pacbound.watch import RowReading, Seen

# The column that names the cluster of each row.
CLUSTERS: Final = "clusters"


class ClassOptions(TypedDict, total=False):
    """What is said about predictions and labels, as in `certify_cascade`. It is not saved."""

    classes: Any
    missing: Any
    unseen_labels: float


@dataclass(frozen=True)
class Alarm:
    """The claim no longer holds, or something happened that the promise allows for.

    Attributes
    ----------
    label : int
        The label at which it rang, counted from 1.
    evidence, limit : float
        The evidence there, and the limit that it reached.
    where : str or None
        Calibration: the bin with most of the evidence.
    claimed : str
        What no longer holds, in words.

    Examples
    --------
    >>> from pacbound import certify_shield
    >>> certificate = certify_shield([0.1] * 500, [False] * 500, xi=0.02, delta=0.01)
    >>> alarm = Monitor(certificate, delta=1e-3).update([True] * 5)
    >>> alarm.label, alarm.evidence > alarm.limit
    (4, True)
    """

    label: int
    evidence: float
    limit: float
    where: str | None
    claimed: str

    def __str__(self) -> str:
        """What rang, in a sentence."""
        most = "" if self.where is None else f" Most of the evidence is in {self.where}."
        return (
            f"ALARM at label {self.label:,}: the evidence is {self.evidence:.4g}, the limit "
            f"{self.limit:.4g}. It no longer holds that {self.claimed}, or this is a false "
            f"alarm.{most}"
        )


class SavedMonitor(ABC):
    """What a monitor of one claim and one of several have in common: a certificate, a promise about
    false alarms, and a state that is saved and goes on from its file.
    """

    # The format of the documents, one of `state_file.CALLED`.
    _layout: ClassVar[str]

    def __init__(
        self,
        certificate: Certificate | str | os.PathLike[str],
        *,
        delta: float,
        false_alarms: str | float = "ever",
        classes: Any = None,
        missing: Any = None,
        unseen_labels: float = 0.0,
    ) -> None:
        self.certificate: Certificate = certificate_of(certificate)
        self._promise = Promise.of(delta, false_alarms)
        # The files that it was read from or written to, with the digests of their bytes.
        self._known: dict[str, str] = {}
        self._begin({"classes": classes, "missing": missing, "unseen_labels": unseen_labels})

    @abstractmethod
    def _begin(self, options: ClassOptions) -> None:
        """Begin to watch over the certificate."""

    @abstractmethod
    def all_or_nothing(self) -> AbstractContextManager[Any]:
        """For a `with` block: whatever was taken in when it is left by an error is forgotten. Other
        threads wait until the block is left.
        """

    @property
    @abstractmethod
    def sources(self) -> tuple[str, ...]:
        """The fingerprints of the files that were taken in."""

    @abstractmethod
    def _written(self) -> dict[str, Json]:
        """What the document of the state holds beside the promise."""

    @abstractmethod
    def _take_over(self, part: Reader) -> None:
        """Go on from the state in a document that is whole."""

    @abstractmethod
    def _words(self) -> str:
        """The summary."""

    @property
    def delta(self) -> float:
        """The chance of a false alarm, or of any of several, that `promise` speaks of."""
        return self._promise.delta

    @property
    def false_alarms(self) -> str:
        """Which promise was made: "ever", or "one per … labels"."""
        return self._promise.text

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to a file, as JSON, from which `load` goes on exactly.

        A crash leaves the old file or the new one, never half of one. The file is locked while it
        is looked at and written. Processes that share one hold its lock from `load` to `save`:
        `with locked(path, wait=True): …`, from `pacbound.monitor`.

        Parameters
        ----------
        path
            Where to write it. A file that is there is replaced only if this monitor was loaded from
            it or saved to it, and nobody else has written it since.

        Raises
        ------
        InvalidValueError
            If there is a file that this monitor has not read, or that another process has written
            since, whose labels would be lost; or one whose rows were taken in.
        UnwritableFileError
            If the file cannot be written.
        """
        with self.all_or_nothing():
            refuse_replacing_source(path, self.sources, "the state of the monitor")
            read_back = partial(self.go_on_from, name="The state")
            state_file.replace_known(path, self.to_dict(), self._known, read_back)

    def to_dict(self) -> dict[str, Any]:
        """The whole state, as `save` writes it."""
        with self.all_or_nothing():
            return state_file.document_of(
                self._layout, self.certificate.claim_digest, self._promise, self._written()
            )

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        certificate: Certificate | str | os.PathLike[str],
        **options: Unpack[ClassOptions],
    ) -> Self:
        """Read a state, and go on from there as if nothing had happened.

        Parameters
        ----------
        path
            The file, as `save` wrote it.
        certificate
            The certificate that the monitor was begun with.
        **options
            `classes`, `missing` and `unseen_labels`, as for the class.

        Returns
        -------
        Monitor
            Equal to the one that was saved, bit for bit.

        Raises
        ------
        CertificateError
            If the file is not such a state, was cut short or changed, or belongs to another
            certificate.
        OSError
            If the file is not there or cannot be opened.
        """
        place, name = as_path(path), str(path)
        # Before it is read: what is written in between is then noticed as not known.
        known = state_file.bytes_digest(place)
        document = state_file.read(place, cls._layout)
        promise = state_file.promise_of(document, cls._layout, name)
        found = cls(certificate, delta=promise.delta, false_alarms=promise.text, **options)
        found.go_on_from(document, name)
        found._known[os.path.realpath(place)] = known
        return found

    def go_on_from(self, document: Mapping[str, Any], name: str) -> None:
        """Take over the state in a document that `to_dict` made of a monitor with the same promise;
        `load` does this for files.

        Parameters
        ----------
        document
            The document.
        name
            What it is called, for the message.

        Raises
        ------
        CertificateError
            If it is not a state, was changed, belongs to another certificate, or was begun with
            another promise.
        """
        try:
            promise = state_file.promise_of(document, self._layout, name)
            state_file.require_same_certificate(document, self.certificate.claim_digest, name)
            if promise != self._promise:
                raise CertificateError(f"{name} was begun with another promise.")
            self._take_over(Reader(document, name))
        except PacboundError as error:
            raise CertificateError(str(error)) from None
        if documents.canonical(self.to_dict()) != documents.canonical(dict(document)):
            raise CertificateError(f"{name} is damaged: restore an intact copy, or begin anew.")

    def summary(self) -> str:
        """What is watched, what was seen and what is promised, in words."""
        with self.all_or_nothing():
            return self._words()

    def __repr__(self) -> str:
        return self.summary()


class Monitor(SavedMonitor):
    """An alarm that rings once the claim of a certificate no longer holds, and rarely before.

    While the claim holds at every step, whatever came before, the alarm *ever* rings with
    probability at most `delta`, however long the monitor runs and however often it is looked at.
    With `false_alarms="one per 1e6 labels"` the promise is weaker, and a true alarm comes earlier:
    the mean time to a false alarm is at least that many labels, and one comes within the first t
    labels with probability at most t / 1e6, where a row in several groups is a label in each of
    them. `promise` says which was made.

    The labels must be those of all rows in use, or of a share of them that was drawn before their
    outcomes could be known (see `Shadow`), in the order in which they came. Labels that are
    selected or delayed by their outcome void the promise. Where the certificate's rows were drawn
    from others, by clusters or weights, `promise` says which rows it is about: one of each cluster,
    or those of the distribution that the weights describe.

    For a certificate by clusters a row may also bring `clusters`, the name of its patient, video or
    speaker. The monitor then draws as the certificate did: one row of each cluster, by a seed that
    the operating system drew when the monitor was begun and that its file keeps, for a recall or
    false alarms among the positives or negatives of the cluster; with the certificate's
    `cluster_bound`, kept as often as it was there. Where the certificate has groups, or bins, one
    row is drawn for each of them, and the evidence is looked at after all rows of the cluster:
    `clusters` must then be passed. It remembers which clusters were used, in its
    file, too: their later rows are left out. A row is drawn among those of one call, so pass all
    rows of a cluster together, once they are complete. Rows that come one by one would be drawn
    from the first of each cluster, which may differ from the others.

    An alarm means that the rate is above the one that was certified, or that a false alarm
    happened. Silence proves nothing, and without labels there is no evidence at all: what inputs
    look like is not watched.

    Several threads may share a monitor: each call is taken in as a whole, one after the other, and
    nothing is lost. The order of the rows is then that in which the calls come. A file may be
    shared by several processes, one at a time: see `save`.

    What a row brings:

    - abstention: `confidence`; `correct`, or `prediction` and `label`; `groups` if there are any.
      Only answers are labels: rows whose confidence is at or above the threshold, which may be that
      of their group. Each wrong one is a loss. Rows that are not answered may be left out, but not
      with `clusters`: a cluster's row is drawn among all its rows, answered or not.
    - calibration: `confidence`; `correct`, or `prediction` and `label`; `groups` if there are any.
      A bin that is wrong, or right, more often than its interval allows is evidence.
    - cascade: `loss` (1 where the cascade is wrong and the slow model right, -1 where it is the
      other way round, else 0), or `confidence`, `prediction` and `label`. All traffic belongs to
      it: the loss is 0 where a row does not exit early.
    - false alarms: `score` and `positive`. Only negatives are labels; each whose score is at or
      above the threshold is a loss. False alarms of rollouts are not monitored: nobody sees whether
      a rollout that the shield stopped would have been safe.
    - precision: `score` and `positive`. Only rows whose score is at or above the threshold are
      labels; each that is negative is a loss. Rows that are not flagged may be left out, but not
      with `clusters`: a cluster's row is drawn among all its rows, flagged or not.
    - prediction sets: `probability` and `label`. Each set that misses the true label is a loss.
    - recall: `score` and `positive`. Only positives are labels; each whose score is below the
      threshold is a loss. Which rows are looked at must not depend on their scores.
    - shield: `unsafe`, one flag for each rollout under the shield. A certificate of the misses
      among the unsafe rollouts is not monitored: whether a rollout that the shield stopped would
      have been unsafe is never seen.

    Where the certificate has groups, a row brings `groups` too. What goes wrong in a group is
    evidence against its claim, and a row in several groups, passed as a mapping from each group to
    flags, is a label in each of them.

    Parameters
    ----------
    certificate
        What to watch over. It is verified first. A refusal claims nothing and is not monitored; nor
        is a claim that nothing at all is lost (`xi` = 0).
    delta
        The chance that the alarm ever rings although the claim holds, at least 1e-300. On the
        second clock, where no such chance is promised, `promise` says within how many labels it is
        kept.
    false_alarms
        "ever"; or, for the second clock, "one per 1e6 labels" or the number 1e6.
    classes, missing, unseen_labels
        About predictions and labels, as in `certify_cascade`. They are not saved.

    Attributes
    ----------
    certificate : Certificate
        What is watched over.

    Raises
    ------
    CertificateError
        If the certificate was changed or does not follow from its own counts.
    InvalidValueError
        If it is a refusal, leaves no room to bet, or is about what cannot be seen in use; if
        `delta` or `false_alarms` is not a promise.

    Examples
    --------
    A shield that may fail in 2 % of its rollouts, and after 1,000 fails in 20 %:

    >>> import numpy as np
    >>> from pacbound import certify_shield
    >>> certificate = certify_shield([0.1] * 500, [False] * 500, xi=0.02, delta=0.01)
    >>> monitor = Monitor(certificate, delta=1e-3)
    >>> rng = np.random.default_rng(0)
    >>> monitor.update(rng.random(1000) < 0.01) is None
    True
    >>> alarm = monitor.update(rng.random(1000) < 0.2)
    >>> alarm.label
    1015
    >>> monitor.save("monitor.json")
    >>> Monitor.load("monitor.json", certificate).evidence == monitor.evidence
    True
    """

    _layout = state_file.ONE

    def _begin(self, options: ClassOptions) -> None:
        self._rule = ClassRule.of(**options)
        self._vocabulary = Vocabulary(self._rule)
        watch, drawn = watch_of(self.certificate), self.certificate.draw
        seed = fresh_seed() if drawn is not None and drawn.by == "clusters" else None
        self._clock = Clock(watch, self._promise, seed)
        self._state = self._clock.begun()
        # Re-entrant: what is all or nothing is made of updates.
        self._lock = RLock()

    @property
    def promise(self) -> str:
        """What is promised about false alarms, in words, and which rows it is promised for where
        the certificate's were drawn from others.
        """
        asked = rows_to_take_in(self.certificate.draw, self.certificate.by.act)
        return " ".join([self._promise.words(), *([] if asked is None else [asked])])

    @property
    def evidence(self) -> float:
        """The evidence against the claim. It starts at 1, and at 0 on the second clock; the alarm
        rings when it reaches `limit`. On the first clock it stays there.
        """
        return self._clock.evidence(self._state)

    @property
    def limit(self) -> float:
        """The evidence at which the alarm rings."""
        return self._promise.limit

    @property
    def rows(self) -> int:
        """How many rows were given."""
        return self._state.rows

    @property
    def labels(self) -> int:
        """How many of the rows the claim is about: those are the labels that clocks count."""
        return self._state.labels

    @property
    def used(self) -> NDArray[np.uint64]:
        """A hash of the name of each cluster that a row was drawn from, in order."""
        return self._state.used.copy()

    @property
    def seed(self) -> int | None:
        """What draws one row of each cluster: the operating system drew it when the monitor was
        begun, and its file keeps it. None where the certificate is not about clusters.
        """
        return self._state.seed

    @property
    def clusters(self) -> int:
        """How many clusters a row was drawn from, where `clusters` were passed."""
        return self._state.used.size

    @property
    def seen(self) -> dict[str, int]:
        """How often each outcome came."""
        return dict(zip(self._clock.watch.outcomes, self._state.seen, strict=True))

    @property
    def alarms(self) -> tuple[Alarm, ...]:
        """The alarms so far: at most one on the first clock."""
        return tuple(map(self._alarm, self._state.rung))

    @property
    def history(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The evidence over the labels: the label with which each stretch of them ends, and the
        highest evidence in it. There are at most 512 stretches.
        """
        history = self._state.history
        return history.ends, history.peaks.copy()

    @property
    def sources(self) -> tuple[str, ...]:
        """The fingerprints of the files that were taken in."""
        return self._state.sources

    def update(self, outcomes: Any, *, columns: Mapping[str, Any] | None = None) -> Alarm | None:
        """Take in the outcomes of more rows, in the order in which they came.

        In whatever parts rows come, one by one or a million at once, the evidence is the same, bit
        for bit. If a value cannot be what it should be, nothing is taken in.

        Parameters
        ----------
        outcomes
            A mapping from the names that the kind of certificate asks for to columns of equal
            length. For a shield a column of flags will do, and for a cascade one of losses in -1,
            0, 1. Where truth values are written as classes, `positive_class` is the one that
            counts. Or, with `columns`, a frame of pandas, Polars or PyArrow; for files there is
            `update_from_files`.
        columns
            For a frame: the names of its columns, by the names that the kind of certificate asks
            for.

        Returns
        -------
        Alarm or None
            The first alarm that rang among these rows. On the first clock an alarm never ends:
            every later call returns it again.

        Raises
        ------
        InvalidValueError, InvalidTypeError
            If a name, a value or a class cannot be what it should be; the message names it and the
            remedy.

        Examples
        --------
        >>> from pacbound import calibrate
        >>> certificate = calibrate([0.9] * 1000, [True] * 950 + [False] * 50, delta=0.01)
        >>> monitor = Monitor(certificate, delta=1e-3)
        >>> alarm = monitor.update({"confidence": [0.9] * 100, "correct": [True, False] * 50})
        >>> alarm.where
        'bin (0.85, 0.9]'
        """
        watch = self._clock.watch
        if columns is not None:
            return self._update_from_frame(outcomes, columns)
        if hasattr(outcomes, "columns"):
            raise InvalidTypeError(
                f"outcomes is of type {type(outcomes).__name__}: say what its columns are for, "
                f"such as columns={{{', '.join(f'{name!r}: …' for name in watch.columns)}}}."
            )
        if not isinstance(outcomes, Mapping):
            if watch.single is None:
                raise InvalidTypeError(
                    f"outcomes is of type {type(outcomes).__name__}: for "
                    f"{with_article(self.certificate.kind)} pass a mapping of columns, such as "
                    f"{{{', '.join(f'{name!r}: …' for name in watch.columns)}}}."
                )
            outcomes = {watch.single: outcomes}
        same_rows(**{str(name): column for name, column in outcomes.items() if name != POSITIVE})
        given = dict(outcomes)
        clusters, positive = given.pop(CLUSTERS, None), given.pop(POSITIVE, None)
        reading, arrays = watch.of_arrays(given)
        reading = reading.by_class(positive)
        if reading.has_scores:
            self.certificate.require_plain_scores()
        if clusters is not None:
            reading = self._drawing(reading, CLUSTERS)
            arrays = {**arrays, CLUSTERS: clusters}
        rows = Rows.of_arrays(reading.slots, arrays)
        same_length(**{slot.name: rows.columns[key] for key, slot in reading.slots.items()})
        return self.update_rows(reading, rows)

    @reading_frame()
    def _update_from_frame(self, frame: Any, columns: Mapping[str, Any]) -> Alarm | None:
        # Loaded here, because arrays need no narwhals.
        from pacbound.tally.frames.counting import (  # noqa: PLC0415
            first_columns,
            has_order,
            whole_columns,
        )

        if isinstance(frame, Mapping):
            raise InvalidTypeError("A mapping names its columns itself: leave columns out.")
        if not has_order(frame):
            raise InvalidValueError(
                "The rows of this frame have no order, as in DuckDB and Spark, and a monitor takes "
                "them in the order in which they came: sort them by their time, and pass the "
                "columns as arrays."
            )
        reading = self.reading_of(**columns)
        if rollouts := rollouts_in(self.certificate, reading):
            rollouts.take_arrays(first_columns(frame, LOOKED_AT))
            rollouts.refuse_steps()
        arrays = whole_columns(frame, reading.slots, in_order=True)
        return self.update_rows(reading, Rows.of_arrays(reading.slots, arrays))

    def update_counts(self, **counts: Any) -> Alarm | None:
        """Take in a batch of rows of which only counts are known.

        The batch is one indivisible step: the evidence is looked at after all of it. How many rows
        it has must not depend on their outcomes. An order must not be made up for them: that would
        ring falsely.

        Parameters
        ----------
        **counts
            Abstention, precision, false alarms, recall, prediction sets, shield: `losses` of
            `labels`, which are answers, flagged rows, negatives, positives, sets or rollouts.
            Cascade: `losses` and `gains` of `labels`, which are all rows of traffic that were
            looked at. In groups, each is a mapping from groups to these. Calibration:
            `successes` of `trials` for each bin.

        Returns
        -------
        Alarm or None
            As from `update`.

        Raises
        ------
        InvalidValueError, InvalidTypeError
            If counts are negative, not whole, or more than their labels.

        Examples
        --------
        >>> from pacbound import certify_shield
        >>> certificate = certify_shield([0.1] * 500, [False] * 500, xi=0.02, delta=0.01)
        >>> monitor = Monitor(certificate, delta=1e-3)
        >>> monitor.update_counts(losses=2, labels=200) is None
        True
        """
        given = self._clock.watch.counted(counts)
        with self._lock:
            if self.rows + sum(sum(times) for _, times in given) > LARGEST_COUNT:
                raise InvalidValueError("More than 2**53 labels are no longer counted exactly.")
            return self._moved(self._clock.after_counts(self._state, given))

    def update_rows(self, reading: RowReading, rows: Rows) -> Alarm | None:
        """Take in rows that a source delivered; `update` does this for arrays.

        Parameters
        ----------
        reading
            How they are judged, from `reading_of`.
        rows
            The rows.

        Returns
        -------
        Alarm or None
            As from `update`.

        Raises
        ------
        InvalidValueError, InvalidTypeError
            As from `update`.
        """
        with self.all_or_nothing():
            if CLUSTERS not in reading.slots:
                drawn = self.certificate.draw
                if drawn is not None and drawn.apart:
                    raise InvalidTypeError(
                        "clusters is missing: the claim is about one row of each cluster for each "
                        f"{part_of_cluster(drawn)}, and the evidence is looked at after whole "
                        "clusters. Pass clusters, all rows of one in one call."
                    )
                return self._take(reading, rows)
            candidates = candidates_of(self.certificate, reading, self.seed)
            candidates.take(rows)
            chosen = candidates.unused(self._state.used)
            return self.take_drawn(reading, [rows.at(chosen.places)], chosen, given=len(rows))

    def _take(self, reading: RowReading, rows: Rows) -> Alarm | None:
        fresh = Evidence()
        return self._taken(reading, reading.judge(rows, self._vocabulary, fresh), fresh, len(rows))

    def _taken(self, reading: RowReading, seen: Seen, fresh: Evidence, rows: int) -> Alarm | None:
        classes = self._state.classes
        if reading.labels is not None:
            classes = classes.after(fresh, rows, self._rule, reading.labels)
        state = self._clock.after(self._state, seen, rows)
        return self._moved(replace(state, classes=classes))

    def take_drawn(
        self, reading: RowReading, parts: Sequence[Rows], chosen: Unused, *, given: int
    ) -> Alarm | None:
        """Take in the rows that were drawn from clusters, and remember which were used; `update`
        does this for arrays.

        Parameters
        ----------
        reading
            How they are judged.
        parts
            The rows that were drawn, in order.
        chosen
            What they were drawn from, as `candidates_of` tells. Later rows of these clusters are
            left out.
        given
            How many rows there were.

        Returns
        -------
        Alarm or None
            As from `update`.
        """
        with self.all_or_nothing():
            together = np.union1d(self._state.used, chosen.used)
            drawn, fresh = len(chosen.places), Evidence()
            counted = self._state.rows + given - drawn
            self._state = replace(self._state, used=together, rows=counted)
            if not drawn:
                return self._moved(self._state)
            each = [reading.judge(part, self._vocabulary, fresh) for part in parts]
            seen = Seen.joined(each, [len(part) for part in parts])
            _refuse_picked(self.certificate, len(seen.outcomes), drawn)
            unit = self.certificate.draw
            seen = seen.by_cluster(chosen.clusters) if unit is not None and unit.apart else seen
            return self._taken(reading, seen, fresh, drawn)

    def _drawing(self, reading: RowReading, column: str) -> RowReading:
        """The reading of rows with the column of their clusters."""
        drawn = self.certificate.draw
        if drawn is None or drawn.by != "clusters":
            raise InvalidTypeError(
                "clusters were passed, and the certificate is not about clusters: one row of each "
                "is not what was certified. Leave them out; if rows in use come in clusters, "
                "certify with clusters first."
            )
        return replace(reading, slots={**reading.slots, CLUSTERS: Slot("name", column)})

    def reading_of(self, **columns: Any) -> RowReading:
        """How the rows of a table are judged, from the names of its columns.

        Parameters
        ----------
        **columns
            The name of each column, by what `update` calls it.

        Returns
        -------
        RowReading
            The columns that are needed, and how a row is judged.

        Raises
        ------
        InvalidTypeError
            If a name is not known or missing.
        """
        clusters, positive = columns.pop(CLUSTERS, None), columns.pop(POSITIVE, None)
        reading = self._clock.watch.of_columns(columns).by_class(positive)
        reading = reading.written(self.certificate.provenance.scale)
        return reading if clusters is None else self._drawing(reading, clusters)

    @contextmanager
    def all_or_nothing(self) -> Iterator[list[str]]:
        """In a `with` block: whatever was taken in when it is left by an error is forgotten.

        Other threads wait until the block is left.

        Yields
        ------
        list of str
            Takes the fingerprints of the sources that were taken in.
        """
        with self._lock:
            before = self._state
            taken: list[str] = []
            try:
                yield taken
            except BaseException:
                self._state = before
                raise
            self._state = replace(self._state, sources=(*self._state.sources, *taken))

    def _written(self) -> dict[str, Json]:
        return state_file.written(self._state)

    def _take_over(self, part: Reader) -> None:
        self._state = state_file.read_state(part, self._clock)

    def _words(self) -> str:
        seen = ", ".join(f"{count:,} {name}" for name, count in self.seen.items())
        alarms = self.alarms
        head = (
            f"Monitor of {with_article(self.certificate.kind)} certificate: {self.labels:,} labels "
            f"({seen}), evidence {self.evidence:.4g} of {self.limit:.4g}"
        )
        said = str(alarms[-1]) if alarms else "No alarm. Silence proves nothing."
        unit = self.certificate.draw
        every = f" for each {part_of_cluster(unit)}" if unit is not None and unit.apart else ""
        drawn = (
            f"\nDrawn: one row of each of {self.clusters:,} clusters{every}, by seed {self.seed}."
        )
        drawn = drawn if self.clusters else ""
        return f"{head}\n{said}{drawn}\n{self.promise}"

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            own = vars(self)
            return {name: own[name] for name in own.keys() - {"_lock", "_clock"}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=RLock())
        self._clock = Clock(watch_of(self.certificate), self._promise, self.seed)

    def _moved(self, state: State) -> Alarm | None:
        before = 0 if self._clock.is_over(state) else len(self._state.rung)
        self._state = state
        return self._alarm(state.rung[before]) if len(state.rung) > before else None

    def _alarm(self, rung: Rung) -> Alarm:
        watch = self._clock.watch
        where = watch.place_name(rung.place)
        return Alarm(rung.label, rung.evidence, self.limit, where, watch.claimed)


def _refuse_picked(certificate: Certificate, labels: int, rows: int) -> None:
    """Refuse rows that were picked by their score before one of each cluster was drawn: the claim
    is about a row that is drawn among all rows of its cluster.
    """
    act = certificate.by.act
    if not act or labels < rows:
        return
    walked: Any = certificate
    others: float = 1 - walked.coverage
    # If rows are as they were, all of them are acted on with a chance below exp(-30).
    if rows * others >= 30:
        raise InvalidValueError(
            f"All {rows:,} rows that were drawn are {act}, and {others:.0%} of the certificate's "
            f"were not: it seems that rows which are not {act} were left out. Pass every row of a "
            f"cluster, {act} or not, since its row is drawn among all of them. If nearly all rows "
            f"are {act} now, certify again."
        )


def rollouts_in(certificate: Certificate, reading: RowReading) -> RolloutRows | None:
    """What finds steps among rows that are to be rollouts; None if the claim is about rows."""
    are_rollouts = any("rollouts" in name for name in certificate.values["assumes"])
    return RolloutRows.of(reading.slots) if are_rollouts else None


def candidates_of(certificate: Certificate, reading: RowReading, seed: int | None) -> Candidates:
    """What draws one row of each cluster, in the way of the certificate and by the monitor's own
    seed, from rows with clusters.
    """
    drawn: Any = certificate.draw
    trials = None
    if drawn.among:
        among = certificate.by.procedures[certificate.values["procedure"]].among
        trials = replace(certificate.by.question_of(certificate), among=among).trials_among
    by: Any = seed
    bins = certificate.values["bins"] if "bin" in drawn.each else None
    draw = Draw("clusters", reading.slots, by, drawn.bound, trials=trials, bins=bins)
    return Candidates(draw, str)
