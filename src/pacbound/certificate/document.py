"""The certificate as a document: a claim and its provenance, a digest of each, and how they are
verified.

The claim holds the integer counts that the decision follows from, so anyone can recompute it
without the data. A third digest covers these counts and what was asked, without anything that was
computed from them. Digests detect change; they are not signatures.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import Decimal
from functools import cached_property
from html import escape
from typing import Any, ClassVar, Self, Unpack

import numpy as np
from numpy.typing import NDArray

from pacbound import documents
from pacbound.certificate.about import about_texts, described_about, read_about
from pacbound.certificate.applying import AppliedRows, applied, applied_to_files
from pacbound.certificate.draws import (
    claimed_draw,
    described_draw,
    drawn_assumptions,
    read_names,
)
from pacbound.certificate.refusal import UNEXPLAINED
from pacbound.certificate.samples import read_sample, sample_name
from pacbound.documents import Json, Reader
from pacbound.errors import CertificateError, InvalidTypeError, InvalidValueError, PacboundError
from pacbound.output_files import refuse_replacing_source
from pacbound.sources.batches import Progress
from pacbound.sources.notation import Notation, NotationOptions
from pacbound.sources.paths import Paths
from pacbound.stats.arguments import truth_value
from pacbound.tally.draws import Drawn
from pacbound.tally.fingerprint import HISTOGRAM
from pacbound.tally.questions import with_article
from pacbound.tally.row_rules import RowRule
from pacbound.tally.tally import Tally
from pacbound.version import VERSION

FORMAT = "pacbound-certificate"
SCHEMA = 1
CHANGED = "CHANGED AFTER IT WAS WRITTEN, not to be used"

MOST_WORK = 3.0
"""A certificate whose recomputation takes this many times longer than the longest usual one is
verified only on request: about a minute. An exact cascade of 199,999 rows reaches it at a delta
below 1e-20."""

EXPLAINED_WORK = 0.3
"""The reasons of a refusal are computed when a certificate is read, if that takes no longer: about
three seconds."""

_LISTED_SOURCES = 1000


@dataclass(frozen=True)
class Verification:
    """What recomputing a certificate from its own counts found; true if nothing differs.

    It says that the claim follows from the counts in the certificate. It cannot say that the counts
    are those of the data.

    Attributes
    ----------
    differences : tuple of str
        A line for each value that the counts do not imply and for each digest that is off; empty
        if the certificate is verified.

    Examples
    --------
    >>> from pacbound import calibrate
    >>> found = calibrate([0.9, 0.8], [True, False], delta=0.05).verify()
    >>> found.ok, found.differences
    (True, ())
    >>> print(Verification(("claim.n: stored 3, recomputed 2",)))
    NOT VERIFIED
      claim.n: stored 3, recomputed 2
    """

    differences: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether every value is what the counts imply and no digest is off."""
        return not self.differences

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        return (
            "verified"
            if self.ok
            else "NOT VERIFIED\n" + "\n".join(f"  {line}" for line in self.differences)
        )


@dataclass(frozen=True)
class Provenance:
    """Where a certificate comes from. It is not part of the claim and not needed to verify it.

    Attributes
    ----------
    version : str
        The version of pacbound that made the certificate.
    created : str
        When, in UTC, such as "2026-01-31T12:00:00Z".
    columns : mapping of str to str
        The names of the table's columns by what they were used as; empty for arrays.
    sources : tuple of str
        What was counted, in order: "sha256:…" of each file, "array:sha256:…" of arrays, and a name
        that nothing else has for frames; one digest over all of them if there are more than a
        thousand.
    about : mapping of str to str
        What the certificate is about, as its maker says: texts such as those of "model", "dataset",
        "owner" and "note". Those of the claims of a bundle are named as "claim.model".
    sample : str or None
        What its maker calls the rows; of a bundle, those of all claims that name none themselves.
    samples : mapping of str to str
        Of a bundle: what the rows of each claim are called that names them, by the claim.
    drawn_by : mapping of str to str
        Where rows were drawn: a digest of the names that decided it, "cluster" and "row_id" (see
        `pacbound.tally.draws.Drawn`). Those of the claims of a bundle are named as
        "claim.cluster".
    notes : mapping of str to str
        What was noticed when the rows were counted. Cascade: "labels" is "too few to tell" if too
        few rows have a label to see that the labels are those of the rows, and "unrelated" if they
        do not look so and were counted with `unrelated_labels`. Those of the claims of a bundle are
        named as "claim.labels".

    Examples
    --------
    >>> import polars
    >>> from pacbound import calibrate
    >>> named = {"confidence": "score", "correct": "right"}
    >>> frame = polars.DataFrame({"score": [0.9, 0.8], "right": [True, False]})
    >>> calibrate(**named, data=frame, delta=0.05).provenance.columns
    {'confidence': 'score', 'correct': 'right'}
    """

    version: str
    created: str
    columns: Mapping[str, str] = field(default_factory=dict)
    sources: tuple[str, ...] = ()
    about: Mapping[str, str] = field(default_factory=dict)
    sample: str | None = None
    samples: Mapping[str, str] = field(default_factory=dict)
    drawn_by: Mapping[str, str] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def now(
        cls,
        sources: frozenset[str] = frozenset(),
        columns: Mapping[str, str] | None = None,
        notes: Mapping[str, str] | None = None,
    ) -> Self:
        """The provenance of a certificate made now from `sources`."""
        if columns is not None and not isinstance(columns, Mapping):
            raise InvalidTypeError(
                f"columns={columns!r} is not a mapping: expected what each column is for, and its "
                "name."
            )
        created = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        return cls(VERSION, created, dict(columns or {}), _listed(sources), notes=dict(notes or {}))

    @classmethod
    def of(
        cls,
        tally: Tally,
        columns: Mapping[str, str] | None = None,
        notes: Mapping[str, str] | None = None,
    ) -> Self:
        """The provenance of a certificate made now from `tally`."""
        names = {} if tally.drawn is None else tally.drawn.digests()
        return replace(cls.now(tally.sources, columns, notes), drawn_by=names)

    def to_dict(self) -> dict[str, Json]:
        """The provenance as a document holds it."""
        return {
            "package": "pacbound",
            "version": self.version,
            "created": self.created,
            "columns": dict(self.columns),
            "sources": list(self.sources),
            # Each of these is left out where there is none.
            **({"about": dict(self.about)} if self.about else {}),
            **({} if self.sample is None else {"sample": self.sample}),
            **({"samples": dict(self.samples)} if self.samples else {}),
            **({"drawn_by": dict(self.drawn_by)} if self.drawn_by else {}),
            **({"notes": dict(self.notes)} if self.notes else {}),
        }

    @classmethod
    def from_dict(cls, document: Json) -> Self:
        """The provenance that a document holds."""
        part = Reader(document, "provenance")
        columns = part.mapping("columns")
        return cls(
            part.text("version"),
            part.text("created"),
            columns.all_texts(),
            tuple(part.texts("sources")),
            read_about(part),
            read_sample(part, "sample") if part.has("sample") else None,
            _read_samples(part),
            read_names(part),
            _read_notes(part),
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class Certificate(ABC):
    """A claim about a classifier that can be recomputed from the counts it carries.

    This is what all kinds of certificates have in common: `certified`, `summary`, `save`, `verify`
    and `to_dict`. A refusal is a certificate too: `certified` is then False, and `summary` says why
    and what it would take. A certificate that was changed after it was written can be looked at,
    but whatever would act on it raises `CertificateError`.

    Attributes
    ----------
    provenance : Provenance
        Where the certificate comes from.
    draw : Drawn or None
        How the rows were drawn from others, by clusters, weights or strata; None if all rows of the
        data were counted as they are.
    loaded : mapping or None
        The document that it was read from; None if it was made in this process.

    Examples
    --------
    >>> from pacbound import certify_shield
    >>> certificate = certify_shield([0.1] * 30, [False] * 30, xi=0.02, delta=0.01)
    >>> isinstance(certificate, Certificate), certificate.kind, certificate.certified
    (True, 'shield', False)
    >>> print(certificate.summary())
    Shield certificate: 30 rollouts, xi 2 %, delta 1 %
    REFUSED: ...
    """

    kind: ClassVar[str]
    provenance: Provenance
    draw: Drawn | None = None
    loaded: Mapping[str, Json] | None = field(default=None, repr=False)

    @property
    @abstractmethod
    def certified(self) -> bool:
        """Whether the data support the claim; False is a refusal, and `summary` says what it would
        take.
        """

    @abstractmethod
    def claimed(self) -> dict[str, Json]:
        """What is certified about the rows that were counted, with the counts it follows from."""

    @abstractmethod
    def counted(self) -> dict[str, Json]:
        """The part of it that was counted and asked for: no float in it was computed."""

    def claim(self) -> dict[str, Json]:
        """What is certified, with the counts it follows from and how the rows were drawn; equal
        whichever engine counted.
        """
        claim = self.claimed()
        if self.draw is None:
            return claim
        assumptions = [*claim["assumptions"], *drawn_assumptions(self.draw)]
        return {**claim, "assumptions": assumptions, "drawn": claimed_draw(self.draw)}

    def assumed(self) -> list[str]:
        """What is assumed, in sentences: the data cannot prove these."""
        return list(self.claim()["assumptions"])

    @abstractmethod
    def recomputed(self) -> Certificate:
        """The certificate that the counts in this one imply, by the procedure it names."""

    @abstractmethod
    def words(self) -> str:
        """The claim in words, whether or not the document was changed; `summary` says if it was."""

    @classmethod
    @abstractmethod
    def from_claim(cls, claim: Reader, provenance: Provenance, loaded: Mapping[str, Json]) -> Self:
        """The certificate that a document describes."""

    def is_explained(self) -> bool:
        """Whether every refusal in it says why; one that was read does not, until `explained`."""
        return getattr(self, "refusal", None) is not UNEXPLAINED

    def _with_reasons(self, again: Any) -> Any:
        """The certificate with the refusals of the one that was recomputed from its counts."""
        found: dict[str, Any] = {"refusal": again.refusal}
        return replace(self, **found)

    def explained(self) -> Self:
        """The certificate with the reasons of its refusals, which a document does not hold. Where
        they would take long to compute, or the counts imply another verdict, it says none.
        """
        if self.is_explained() or self._known_work() > EXPLAINED_WORK:
            return self
        try:
            again = self.recomputed()
        except PacboundError:
            return self
        made: Self = self if again.certified != self.certified else self._with_reasons(again)
        return made

    def _known_work(self) -> float:
        """`work`; 0 where it cannot even be begun with what a file asks for: `verify` says so."""
        try:
            return self.work()
        except PacboundError:
            return 0.0

    @property
    def inside(self) -> Mapping[str, Certificate]:
        """The certificates of several claims that this one holds, by their names; mostly none."""
        return {}

    def says_nothing(self) -> str | None:
        """Why the rows tell nothing about the claim, with the remedy, if not one of them is what it
        is about: the column is probably another. None if there are such rows.
        """
        return None

    def row_rule(self) -> RowRule:
        """What it adds to each row of a table, by comparisons of scores, if it is verified.

        Raises
        ------
        InvalidValueError
            If this kind of certificate says nothing about the rows of a table.
        CertificateError
            If the certificate does not follow from its own counts.
        """
        kind = with_article(self.kind).capitalize()
        raise InvalidValueError(f"{kind} certificate is not applied to the rows of a table.")

    def apply(
        self,
        frame: Any,
        *,
        confidence: str | Sequence[str] | None = None,
        prediction: str | Sequence[str] | None = None,
        group: str | None = None,
        score: str | None = None,
        scale: float | None = None,
        strict: bool = False,
    ) -> Any:
        """Add to every row of a frame what is certified about it, in the frame's own engine.

        A calibration adds `pac_lower`, `pac_upper` and `pac_estimate`, an abstention `pac_answer`
        (1 to answer, 0 to abstain), a recall `pac_flag`, and a cascade `pac_exit`, the model that
        answers, counted from 0, and `pac_prediction`, its answer, where the predictions are in the
        frame. `apply_to_file` adds the same to the rows of files.

        What is not a score raises before anything is added. A row of a group that was not certified
        gets [0, 1] and no estimate, is not answered, or is answered by the slow model. A refusal
        answers nothing, flags everything, and never exits.

        Parameters
        ----------
        frame
            A frame of pandas, Polars (eager or lazy), PyArrow, DuckDB (a relation) or PySpark. A
            lazy one is looked through once, for what is not a score, and stays lazy.
        confidence, prediction, group, score
            The names of the columns, if they are not those that the certificate was made from; a
            list for the exits of a cascade.
        scale
            What a score of 1 is written as: 100 for percentages.
        strict
            Refuse rows of groups that were not certified.

        Returns
        -------
        frame
            Of the kind that came in, with all its columns, and its rows in their order where they
            have one.

        Raises
        ------
        InvalidValueError, InvalidTypeError
            If this kind of certificate says nothing about rows, a column is not there, one that is
            to be added is, or a value is not a score.
        CertificateError
            If the certificate does not follow from its own counts.
        MissingDependencyError
            If narwhals is not installed.

        Examples
        --------
        >>> import polars
        >>> from pacbound import certify_recall
        >>> rng = np.random.default_rng(0)
        >>> score = rng.random(2000)
        >>> certificate = certify_recall(score, rng.random(2000) < score, target=0.9, delta=0.05)
        >>> frame = polars.DataFrame({"score": [0.2, 0.9]})
        >>> certificate.apply(frame, score="score")["pac_flag"].to_list()
        [0, 1]
        """
        given = {
            "confidence": confidence,
            "prediction": prediction,
            "group": group,
            "score": score,
        }
        recorded = self.provenance.columns
        return applied(self.row_rule(), frame, recorded, given, scale=scale, strict=strict)

    def apply_to_file(
        self,
        source: Paths,
        target: str | os.PathLike[str],
        *,
        confidence: str | Sequence[str] | None = None,
        prediction: str | Sequence[str] | None = None,
        group: str | None = None,
        score: str | None = None,
        strict: bool = False,
        progress: Progress | None = None,
        **written: Unpack[NotationOptions],
    ) -> AppliedRows:
        r"""Write the rows of files with what is certified about each: the columns that `apply` adds
        to frames.

        Rows keep their order and all their columns, and are read and written in batches, so that
        they may be more than fit into memory. `target` appears when it is complete, or not at all.

        Parameters
        ----------
        source
            The paths of files, as `data` of `Tally.count`.
        target
            Where the rows go: a file, whose name says its format.
        confidence, prediction, group, score
            The names of the columns, if they are not those that the certificate was made from; a
            list for the exits of a cascade.
        strict
            Refuse rows of groups that were not certified.
        progress
            Called with the share that is done, from 0 to 1.
        delimiter, decimal, scale
            How the files are written: what stands between the values of text, such as ";"; what
            stands for its decimal point, "." or ","; and what a score of 1 is written as, such as
            100 for percentages.

        Returns
        -------
        AppliedRows
            How many rows went out, which columns were added, and how many rows are of groups that
            were not certified.

        Raises
        ------
        InvalidValueError, InvalidTypeError
            If this kind of certificate says nothing about rows, a column is not there, one that is
            to be added is, or a value is not a score; the message names the file and the row.
        CertificateError
            If the certificate does not follow from its own counts.
        UnwritableFileError
            If `target` cannot be written.

        Examples
        --------
        >>> from pathlib import Path
        >>> from pacbound import certify_recall
        >>> rng = np.random.default_rng(0)
        >>> score = rng.random(2000)
        >>> certificate = certify_recall(score, rng.random(2000) < score, target=0.9, delta=0.05)
        >>> _ = Path("new.csv").write_text("score\n0.2\n0.9\n")
        >>> certificate.apply_to_file("new.csv", "flagged.csv").counts
        {'flagged': 1}
        >>> print(Path("flagged.csv").read_text())
        score,pac_flag
        0.2,0
        0.9,1
        <BLANKLINE>
        """
        given = {
            "confidence": confidence,
            "prediction": prediction,
            "group": group,
            "score": score,
        }
        return applied_to_files(
            self.row_rule(),
            source,
            target,
            self.provenance.columns,
            given,
            notation=Notation.of(**written),
            strict=strict,
            progress=progress,
        )

    def work(self) -> float:
        """About how long recomputing takes, as a multiple of the longest that is usual: ten
        seconds, for an exact cascade of 199,999 rows.
        """
        return 0.0

    def to_dict(self) -> dict[str, Json]:
        """The whole document, as `save` writes it."""
        if self.loaded is not None:
            return dict(documents.copied(self.loaded))
        claim, provenance = self.claim(), self.provenance.to_dict()
        return {
            "format": FORMAT,
            "schema": SCHEMA,
            "claim": claim,
            "claim_digest": documents.digest(claim),
            "counts_digest": self.counts_digest,
            "provenance": provenance,
            "provenance_digest": documents.digest(provenance),
        }

    @property
    def claim_digest(self) -> str:
        """SHA-256 of the whole claim. Bounds are computed, so another version of SciPy may give
        another digest for equal counts; `counts_digest` is the one to compare them by.
        """
        document = self.to_dict() if self.loaded is None else self.loaded
        return str(document["claim_digest"])

    @property
    def counts_digest(self) -> str:
        """SHA-256 of what was counted and asked for: equal for equal counts and questions on every
        machine, with every version of every library.
        """
        drawn = {} if self.draw is None else {"drawn": claimed_draw(self.draw)}
        return documents.digest({**self.counted(), **drawn})

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the certificate to a file, as JSON.

        A crash leaves the old file or the new one, never half of one.

        Parameters
        ----------
        path
            Where to write it. A file that is there is replaced.

        Raises
        ------
        InvalidValueError
            If the file that is there is one whose rows were counted for it.
        UnwritableFileError
            If the file cannot be written.

        Examples
        --------
        >>> from pacbound import calibrate, load_certificate
        >>> calibrate([0.9, 0.8], [True, False], delta=0.05).save("calibration.json")
        >>> load_certificate("calibration.json").certified
        True
        """
        refuse_replacing_source(path, self.provenance.sources, "the certificate")
        documents.write(path, self.to_dict())

    def with_about(self, about: Mapping[str, Any] | None, *, sample: str | None = None) -> Self:
        """The same certificate with what it is about and what its rows are called, for certificates
        that something else made, such as an estimator; the functions that certify take `about` and
        `sample` themselves.

        Parameters
        ----------
        about
            Short texts by names such as "model", "dataset", "owner" and "note". A `pathlib.Path`
            stands for the name, the size and the SHA-256 of that file, or of all files of that
            folder. Texts that are there already stay, unless they are named again.
        sample
            What the rows are called, a short text such as "held-out, March": a `Budget` adds up the
            claims on rows of one name. A name that is there already stays if this is left out.

        Returns
        -------
        Certificate
            A certificate of the same kind. The claim and its digest are the same; the provenance
            and its digest are not.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If a name or a text cannot be one; if the certificate was read from a file, whose
            provenance is fixed.

        Examples
        --------
        >>> from pacbound import calibrate
        >>> plain = calibrate([0.9, 0.8], [True, False], delta=0.05)
        >>> told = plain.with_about({"model": "resnet50 of 3 May"}, sample="held-out, March")
        >>> told.provenance.about["model"], told.claim_digest == plain.claim_digest
        ('resnet50 of 3 May', True)
        >>> told.provenance.sample
        'held-out, March'
        """
        texts, name = about_texts(about), sample_name(sample)
        if not texts and name is None:
            return self
        if self.loaded is not None:
            raise InvalidValueError(
                "This certificate was read from a file, and what it is about is fixed there: say "
                "it where it is certified. Budget.spend takes a sample, too."
            )
        said = {**self.provenance.about, **texts}
        called = self.provenance.sample if name is None else name
        return replace(self, provenance=replace(self.provenance, about=said, sample=called))

    def summary(self) -> str:
        """The claim in words, and what it is about, for people; if the document was changed, that
        comes first.
        """
        lines = [
            self.words(),
            *self.draw_lines(),
            *self.sample_lines(),
            *self.about_lines(),
        ]
        said = documents.printable_lines("\n".join(lines))
        return said if self._intact else f"{CHANGED}:\n{said}"

    def own_about(self) -> Mapping[str, str]:
        """What this certificate is about, without what the claims inside it are about."""
        return self.provenance.about

    def about_lines(self) -> list[str]:
        """What this certificate is about, as a summary says it."""
        return described_about(self.own_about(), self.kind)

    def draw_lines(self) -> list[str]:
        """What was drawn by a seed, and what it means to try another, as a summary says it."""
        return described_draw(self.draw)

    def sample_lines(self) -> list[str]:
        """What its rows are called, as a summary says it."""
        name = self.provenance.sample
        return [] if name is None else [f"Sample (as its maker calls it): {name}"]

    def verify(self, *, patient: bool = False) -> Verification:
        """Recompute every claim from the counts and list each difference.

        A changed value anywhere fails: either its recomputed value differs, or the digest of its
        part does. Verifying shows that the claim follows from the counts. It cannot show that the
        counts are those of the data. What was found is kept: asking again costs nothing.

        Parameters
        ----------
        patient
            A small file can ask for hours of computing. By default a certificate that would take
            several times longer than any usual one is not recomputed, and the result, which is
            not `ok`, says so. Pass True to recompute it all the same.

        Returns
        -------
        Verification
            True in a condition if nothing differs; `differences` holds a line for each place.

        Examples
        --------
        >>> from pacbound import calibrate
        >>> calibrate([0.9, 0.8], [True, False], delta=0.05).verify()
        Verification(differences=())
        """
        waits = truth_value(patient, "patient")
        if not waits and self.loaded is not None and "_verification" not in vars(self):
            work = self._known_work()
            if work > MOST_WORK:
                return Verification(
                    (
                        f"claim: verifying this would take about {work:.0f} times longer than the "
                        "longest usual certificate, so it was not tried. If you trust where it "
                        "comes from, call verify(patient=True), or pacbound verify --patient.",
                    )
                )
        return self._verification

    def require_verified(self) -> None:
        """Raise if the claim does not follow from its own counts; everything that acts on a
        certificate calls this first.

        A certificate is recomputed once, by this or by `verify`. One that was made in this process
        was computed here, and is not computed again.

        Raises
        ------
        CertificateError
            If the document was changed, if a value differs from what the counts imply, or if
            recomputing it would take too long to be tried without `verify(patient=True)`.
        """
        if self.loaded is None:
            return
        self.require_intact()
        found = self.verify()
        if not found:
            raise CertificateError(
                f"This certificate does not follow from its own counts. Do not use it. {found}"
                if "_verification" in vars(self)
                else f"This certificate is not verified. {found.differences[0]}"
            )

    def require_intact(self) -> None:
        """Raise if the document was changed after it was written; whatever hands out a number of
        the claim calls this, so that a changed file is never used.

        Raises
        ------
        CertificateError
            If the claim is not the one that its digest was taken of.
        """
        if not self._intact:
            raise CertificateError(
                "This certificate was changed after it was written; verify() lists what differs. "
                "Do not use it."
            )

    @cached_property
    def _verification(self) -> Verification:
        document = self.to_dict() if self.loaded is None else self.loaded
        lines = [
            f"{part}_digest: stored {documents.shown(document[f'{part}_digest'], 100)}, but the "
            f"{part} has {actual}: it was changed"
            for part, actual in self._digests(document)
            if document.get(f"{part}_digest", actual) != actual
        ]
        lines += documents.differences(
            document["provenance"], self.provenance.to_dict(), "provenance"
        )
        try:
            expected = self.recomputed().claim()
        except PacboundError as error:
            return Verification((*lines, f"claim: cannot be recomputed: {error}"))
        lines += documents.differences(document["claim"], expected, "claim")
        return Verification(tuple(lines))

    def _digests(self, document: Mapping[str, Json]) -> Iterator[tuple[str, str]]:
        yield "claim", documents.digest(document["claim"])
        # Certificates written before there was this digest do not have it.
        yield "counts", self.counts_digest
        yield "provenance", documents.digest(document["provenance"])

    @cached_property
    def _intact(self) -> bool:
        return self.loaded is None or self.loaded["claim_digest"] == documents.digest(
            self.loaded["claim"]
        )

    def __repr__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.summary())}</pre>"


def sealed(array: NDArray[Any]) -> NDArray[Any]:
    """`array` as a certificate may hand it out: nobody can write into it."""
    # A view shares its memory with an array that someone else may write into.
    own = array if array.base is None else array.copy()
    own.flags.writeable = False
    return own


def interval_work(trials: NDArray[Any]) -> float:
    """About how long binomial intervals of so many trials take, as `Certificate.work` counts it:
    ten microseconds each up to a million trials, two hundred at 10^12.
    """
    digits = np.log10(np.maximum(trials, 1))
    return float((1e-6 * (1.0 + 3.2 * np.maximum(digits - 6.0, 0.0))).sum())


def exact(number: float) -> str:
    """`number` in the fewest digits that read back as the same number."""
    short = f"{number:g}"
    return short if float(short) == number else repr(float(number))


def amount(cost: float) -> str:
    """What a row costs as people read it: to four digits, or to a whole number of thousands."""
    return f"{cost:,.0f}" if 9_999.5 <= abs(cost) < 1e15 else f"{cost:.4g}"


def likelihood(delta: float) -> str:
    """1 - `delta` as people read it: in digits where few of them are exact, never rounded."""
    text = f"{1 - delta:.6g}"
    return text if Decimal(text) == 1 - Decimal(repr(delta)) else f"1 - {exact(delta)}"


NOTES = ("too few to tell", "unrelated")
"""What may be noted of labels: see `pacbound.claims.cascade.words`."""


def _read_notes(part: Reader) -> dict[str, str]:
    if not part.has("notes"):
        return {}
    notes = part.mapping("notes")
    return {name: str(notes.choice(name, NOTES)) for name in notes.names()}


def _read_samples(part: Reader) -> dict[str, str]:
    if not part.has("samples"):
        return {}
    of_claims = part.mapping("samples")
    return {claim: read_sample(of_claims, claim) for claim in of_claims.names()}


def _listed(sources: frozenset[str]) -> tuple[str, ...]:
    """All sources, or, where they are too many to list, one digest over them."""
    names = sorted(name for name in sources if not name.startswith(HISTOGRAM))
    return (
        tuple(names)
        if len(names) <= _LISTED_SOURCES
        else (f"{len(names)} sources, {documents.digest(names)}",)
    )
