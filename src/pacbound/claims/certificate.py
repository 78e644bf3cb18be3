"""The certificate: a claim and its provenance as a document, with a digest of each, and how it is
read and verified.

The claim holds the integer counts that the decision follows from, so anyone can recompute it
without the data. A third digest covers these counts and what was asked, without anything that was
computed from them. Digests detect change; they are not signatures.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, Unpack

import numpy as np

from pacbound import documents
from pacbound.atomic_files import refuse_replacing_source
from pacbound.claims import KINDS, claim_of
from pacbound.claims.applying import AppliedRows, applied, applied_to_files
from pacbound.claims.assumptions import described_draw, described_grading, described_seed
from pacbound.claims.provenance import Provenance, about_texts, sample_name, without_fingerprint
from pacbound.documents import Json, Reader, printable
from pacbound.errors import (
    CertificateError,
    InvalidValueError,
    PacboundError,
    UnknownProcedureError,
)
from pacbound.exact_verifier import (
    CONDITIONS,
    MEANINGS,
    UnknownError,
    UnreadableError,
    WrongError,
    require_shape,
)
from pacbound.fields import Fields, Values
from pacbound.figure import Figure
from pacbound.says import Says
from pacbound.sources.batches import Progress
from pacbound.sources.notation import Notation, NotationOptions
from pacbound.sources.paths import Paths
from pacbound.stats.arguments import truth_value
from pacbound.tally.draws import Drawn
from pacbound.tally.grades import Graded
from pacbound.tally.questions import with_article
from pacbound.tally.row_rules import RowRule

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

    from pacbound.claims.claim import Claim

FORMAT = "pacbound-certificate"
SCHEMA = 1
CHANGED = "CHANGED AFTER IT WAS WRITTEN, not to be used"

# A certificate whose recomputation takes this many times longer than the longest usual one is
# verified only on request: about a minute. An exact cascade of 199,999 rows reaches it at a delta
# below 1e-20.
MOST_WORK = 3.0

# The reasons of a refusal are computed for a certificate that was read, if that takes no longer:
# about three seconds.
EXPLAINED_WORK = 0.3

# Groups that a message lists.
_MOST_NAMED = 10

_PARTS = {
    *("format", "schema", "claim", "claim_digest", "counts_digest", "provenance"),
    "provenance_digest",
}


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


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Certificate:
    """A claim about a classifier that can be recomputed from the counts it carries.

    This is what all kinds of certificates have in common: `certified`, `summary`, `save`, `verify`
    and `to_dict`. A refusal is a certificate too: `certified` is then False, and `summary` says why
    and what it would take. A certificate that was changed after it was written can be looked at,
    but whatever would act on it raises `CertificateError`.

    Attributes
    ----------
    by : Claim
        What is claimed, and how it is decided and said.
    values : mapping
        Everything that the document holds of it, by name.
    provenance : Provenance
        Where the certificate comes from.
    draw : Drawn or None
        How the rows were drawn from others, by clusters or weights; None if all rows of the
        data were counted as they are.
    graded : Graded or None
        How outcomes were graded; None where they are right or wrong.
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

    by: Claim[Any]
    values: Values
    provenance: Provenance
    loaded: Mapping[str, Json] | None = None
    # Whether its threshold is a danger that a shield fires at.
    is_shield: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", _read_only(self.values))

    if not TYPE_CHECKING:  # what each kind asks for stands in its class, with its type

        def __getattr__(self, name: str) -> Any:
            """What was asked for, and what the class says that documents hold, by its name."""
            known: Any = self.asked_for if "by" in vars(self) and name[:1] != "_" else {}
            if name not in known and known and name in type(self).__annotations__:
                known = self.values
            if name not in known:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            return known[name]

    @property
    def kind(self) -> str:
        """What is claimed, in a word."""
        return self.by.kind

    @property
    def draw(self) -> Drawn | None:
        """How the rows were drawn from others; None if all were counted as they are."""
        found: Drawn | None = self.values.get("drawn")
        return found

    @property
    def graded(self) -> Graded | None:
        """How outcomes were graded; None where they are right or wrong."""
        found: Graded | None = self.values.get("graded")
        return found

    @property
    def certified(self) -> bool:
        """Whether the rows support the claim; False is a refusal, and `summary` says why."""
        return bool(self.values["certified"])

    @property
    def n(self) -> int:
        """The number of rows that were counted."""
        return int(self.values["n"])

    @property
    def scale(self) -> float | None:
        """What a score of 1 was written as in the columns that were counted: 100 for percentages;
        None if nothing was said.
        """
        return self.provenance.scale

    def scale_of(self, scale: float | None = None) -> float | None:
        """What a score of 1 is written as in tables of use: as in those that were counted, if that
        is known; else as it is said.

        Raises
        ------
        InvalidValueError
            If something else is said than was counted by.
        """
        recorded, said = self.scale, Notation.of(scale=scale).scale
        if recorded is not None and said is not None and said != recorded:
            raise InvalidValueError(
                f"scale={said:g} (--scale {said:g}) is not how this certificate's scores were "
                f"written: it was counted with scale={recorded:g}. Leave it out, and write scores "
                "as they were then; if that scale was wrong, certify again."
            )
        return said if recorded is None else recorded

    def require_plain_scores(self) -> None:
        """Raise if the scores that were counted are not written from 0 to 1, since nothing says how
        those that a program passes are.
        """
        scale = self.scale
        if scale not in (None, 1.0):
            raise InvalidValueError(
                f"The scores of this certificate are written from 0 to {scale:g} in their table, "
                "and nothing says how these are: hand it tables, with apply, or certify from a "
                f"column that holds the scores divided by {scale:g}."
            )

    @property
    def delta(self) -> float:
        """The chance that the claim is wrong."""
        return float(self.values["delta"])

    @property
    def asked_for(self) -> dict[str, Any]:
        """What was asked for, by name."""
        return {ask.name: self.values.get(ask.name, ask.default) for ask in self.by.asks}

    @property
    def says(self) -> Says:
        """What is claimed, in sentences and quantities."""
        return self._says

    @cached_property
    def _says(self) -> Says:
        scale = self.provenance.scale
        said = self.by.says(self)
        return said if scale in (None, 1.0) else said.in_unit(scale)

    @property
    def called(self) -> str:
        """The model, if its maker names one, and the claim in a few words."""
        model = without_fingerprint(self.own_about().get("model", ""))
        return f"{f'{model}: ' if model else ''}{self.says.heading}"

    @property
    def inside(self) -> Mapping[str, Certificate]:
        """The certificates of several claims that this one holds, by their names; mostly none."""
        return {}

    def figures(self) -> Iterable[Figure]:
        """What is claimed, in pictures."""
        return self.by.figures(self)

    def figure(self, group: str | float | None = None) -> Figure:
        """The figure of the certificate, or of one group of it, as data.

        `figure.panels` hold the marks, `figure.table()` the numbers in words.

        Parameters
        ----------
        group
            The name of the group, if the certificate is for groups.

        Returns
        -------
        Figure
            What `plot` draws.

        Raises
        ------
        InvalidValueError
            If there is no such group, or nothing to draw.
        CertificateError
            If the certificate was changed after it was made.
        """
        self.require_intact()
        tables = self.values.get("tables", [{"group": None}])
        names = [None if table["group"] is None else str(table["group"]) for table in tables]
        name = None if group is None else str(group)
        if name not in names:
            raise InvalidValueError(f"group={name!r}{_no_group(names)}")
        found = list(self.figures())
        if len(found) < len(names):  # no telling whose is missing
            of = " Plot one of those in `inside`." if self.inside else ""
            raise InvalidValueError(f"This certificate has no figure of its own.{of}")
        chosen = found[names.index(name)]
        return replace(chosen, title=f"{chosen.title} (n = {self.n:,}, delta = {self.delta:g})")

    def plot(self, *, group: str | float | None = None, ax: Axes | None = None) -> Canvas:
        """Draw the certificate, or one group of it, by matplotlib.

        Blue is what is certified; vermilion is what was seen in the rows that certified, and has
        no guarantee.

        Parameters
        ----------
        group
            The name of the group to draw, if the certificate is for groups.
        ax
            The axes whose place the figure takes; by default those of a new figure.

        Returns
        -------
        matplotlib Figure
            Save it by `.savefig(path)`. pyplot does not know a new one; in a notebook it shows
            itself.

        Raises
        ------
        InvalidValueError
            If there is no such group, or nothing to draw.
        InvalidTypeError
            If `ax` is not axes.
        CertificateError
            If the certificate was changed after it was made.
        MissingDependencyError
            If matplotlib is not installed.

        Examples
        --------
        >>> from pacbound import calibrate
        >>> certificate = calibrate([0.7, 0.9] * 50, [False, True] * 50, delta=0.05, n_bins=5)
        >>> certificate.plot().savefig("reliability.png")
        """
        from pacbound.figures.with_matplotlib import plot  # noqa: PLC0415 - only to draw

        return plot(self.figure(group), ax)

    def recomputed(self) -> Self:
        """The certificate that the counts in this one imply."""
        return replace(self, values=self.by.decided(self.values), loaded=None)

    def assumed(self) -> list[str]:
        """What is assumed, in sentences: the data cannot prove these."""
        return [CONDITIONS[name] for name in self.values["assumes"] if name in CONDITIONS]

    def meanings(self) -> list[str]:
        """What the words of the claim mean, in sentences."""
        return [MEANINGS[name] for name in self.values["assumes"] if name in MEANINGS]

    def says_nothing(self) -> str | None:
        """Why the rows tell nothing about the claim, with the remedy, if not one of them is what it
        is about: the column is probably another. None if there are such rows.
        """
        return self.by.says_nothing(self)

    @property
    def row_columns(self) -> Mapping[str, str]:
        """The columns that it was counted from, which are those that applying reads."""
        return self.provenance.columns

    def row_rule(self) -> RowRule:
        """What it adds to each row of a table, by comparisons of scores, if it is verified.

        Raises
        ------
        InvalidValueError
            If this kind of certificate says nothing about the rows of a table.
        CertificateError
            If the certificate does not follow from its own counts.
        """
        self.require_verified()
        rule = self.by.row_rule(self)
        if rule is None:
            kind = with_article(self.kind).capitalize()
            raise InvalidValueError(f"{kind} certificate is not applied to the rows of a table.")
        return rule

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
            What a score of 1 is written as: 100 for percentages. As in the table that was counted,
            if it is left out; where that was said, another one is refused.
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
        given = {"confidence": confidence, "prediction": prediction, "group": group, "score": score}
        recorded = self.row_columns
        scale = self.scale_of(scale)
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
            100 for percentages: as in `apply`.

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
        given = {"confidence": confidence, "prediction": prediction, "group": group, "score": score}
        notation = Notation.of(**written)
        return applied_to_files(
            self.row_rule(),
            source,
            target,
            self.row_columns,
            given,
            notation=replace(notation, scale=self.scale_of(notation.scale)),
            strict=strict,
            progress=progress,
        )

    def work(self) -> float:
        """About how long recomputing takes, as a multiple of the longest that is usual, an exact
        cascade of 199,999 rows. 0 where it cannot even be begun with what a file asks for: `verify`
        says so.
        """
        try:
            return self.by.work(self.values)
        except PacboundError:
            return 0.0

    def claim(self) -> dict[str, Json]:
        """What is certified, with the counts it follows from and how the rows were drawn; equal
        whichever engine counted.
        """
        return self._fields.write(self.values)

    def counted(self) -> dict[str, Json]:
        """The part of it that was counted and asked for: no float in it was computed."""
        return self._fields.counted(self.values)

    @property
    def _fields(self) -> Fields:
        return self.by.fields(self.by.procedures[self.values["procedure"]])

    def to_dict(self) -> dict[str, Json]:
        """The whole document, as `save` writes it."""
        if self.loaded is not None:
            return dict(documents.copied(self.loaded))
        document = document_of(self.claim(), self.provenance.to_dict())
        return {**document, "counts_digest": self.counts_digest}

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
        return documents.digest(self.counted())

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
        documents.write(path, self.to_dict(), read=certificate_from_dict)

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
            What the rows are called, a short text such as "held-out, March". A name that is there
            already stays if this is left out.

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
                "it where it is certified."
            )
        said = {**self.provenance.about, **texts}
        called = self.provenance.sample if name is None else name
        return replace(self, provenance=replace(self.provenance, about=said, sample=called))

    def words(self) -> str:
        """The claim in words, whether or not the document was changed; `summary` says if it was."""
        return "\n".join(self.says.lines())

    def head(self) -> str:
        """The claim in words, without those of `members`."""
        return self.words()

    @property
    def members(self) -> Mapping[str, Certificate]:
        """The certificates that it consists of, by their names; none unless it is a bundle."""
        return {}

    def summary(self) -> str:
        """The claim in words, and what it is about, for people; if the document was changed, that
        comes first.
        """
        said = documents.printable_lines("\n".join([self.words(), *self._lines_beside()]))
        return said if self._intact else f"{CHANGED}:\n{said}"

    def _lines_beside(self) -> list[str]:
        return [*self.draw_lines(), *self.sample_lines(), *self.about_lines()]

    def own_about(self) -> Mapping[str, str]:
        """What this certificate is about, without what the claims inside it are about."""
        return self.provenance.about

    def about_lines(self) -> list[str]:
        """What this certificate is about, as a summary says it."""
        about = {printable(name): printable(text) for name, text in self.own_about().items()}
        if not about:
            return []
        width = max(map(len, about))
        kind = "certificate" if self.kind.endswith("s") else self.kind.partition("-")[0]
        return [
            f"About this {kind} (as its maker says, no part of the claim):",
            *(f"  {name:{width}}  {text}" for name, text in sorted(about.items())),
        ]

    def draw_lines(self) -> list[str]:
        """What was drawn by a seed, and what it means to try another, as a summary says it."""
        drawn = [] if self.draw is None else described_draw(self.draw, self.n, self.by.act)
        return [*described_grading(self.graded), *drawn, *described_seed(self.draw)]

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
            work = self.work()
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
            if document[f"{part}_digest"] != actual
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
        """For notebooks: the summary, with its table as an HTML table."""
        said = self.says
        if not said.table:
            return f"<pre>{escape(self.summary())}</pre>"
        changed = f"<p><strong>{CHANGED}</strong></p>" if not self._intact else ""
        words = (*replace(said, table=()).lines(), *self._lines_beside())
        head, *body = (
            "".join(f"<{cell}>{escape(text)}</{cell}>" for text in line)
            for cell, line in zip(["th", *["td"] * len(said.table)], said.table, strict=False)
        )
        rows = "".join(f"<tr>{line}</tr>" for line in body)
        return (
            f"<div>{changed}{''.join(f'<p>{escape(line)}</p>' for line in words)}"
            f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
        )


def _no_group(names: Sequence[str | None]) -> str:
    if None in names:
        return ", but this certificate has no groups: leave it out."
    shown = ", ".join(map(repr, names[:_MOST_NAMED])) + (", …" if len(names) > _MOST_NAMED else "")
    return f" is not a group of this certificate: it has {shown}. Pass one of them."


class ReadOnly(dict[str, Any]):
    """What a certificate holds by name: nobody changes it, and it can be pickled and copied."""

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise TypeError(
            "The values of a certificate are what its counts imply, and cannot be changed. "
            "Certify again for others."
        )

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[type, tuple[dict[str, Any]]]:
        return type(self), (dict(self),)


def _read_only(value: Any) -> Any:
    """The value with arrays and mappings that nobody can write into."""
    if isinstance(value, np.ndarray):
        value.setflags(write=False)
        return value
    if isinstance(value, Mapping):
        return ReadOnly({name: _read_only(part) for name, part in value.items()})
    return [_read_only(part) for part in value] if isinstance(value, list) else value


def load_certificate(path: str | os.PathLike[str]) -> Certificate:
    """Read a certificate of any kind from a file.

    Reading does not verify. A certificate that was changed after it was written can be loaded, so
    that `verify()` can say what was changed, but whatever would act on it raises. A certificate
    that is intact is verified before it is first acted on.

    Parameters
    ----------
    path
        The file, as `save` wrote it.

    Returns
    -------
    Certificate
        A certificate of its kind, such as a `CalibrationCertificate`. A refusal is one too, with
        `certified` False.

    Raises
    ------
    CertificateError
        If the file is not a certificate, or holds values that a certificate cannot have; the
        message names the place.
    UnknownProcedureError
        If a newer version of pacbound made it.
    OSError
        If the file is not there or cannot be opened.

    Examples
    --------
    >>> from pacbound import calibrate
    >>> calibrate([0.9, 0.8], [True, False], delta=0.05).save("calibration.json")
    >>> load_certificate("calibration.json").verify().ok
    True
    """
    return certificate_from_dict(documents.read(path, "a pacbound certificate"), str(path))


def certificate_of(given: Any) -> Any:
    """The certificate in the file that `given` names; anything but a path as it is.

    A file that was read before is not read and verified again unless it has changed.
    """
    if not isinstance(given, (str, os.PathLike)):
        return given
    path = Path(given)
    try:
        found = path.stat()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InvalidValueError(
            f"{str(given)!r} is not the path of a certificate ({reason}): pass a certificate, or "
            "the file that it was saved to."
        ) from None
    return _read_once(path.absolute(), found.st_ino, found.st_mtime_ns, found.st_size)


@lru_cache(maxsize=16)
def _read_once(path: Path, *_: int) -> Certificate:
    return load_certificate(path)


def document_of(claim: Json, provenance: Json) -> dict[str, Json]:
    """A claim and its provenance as a document, with the digest of each."""
    return {
        "format": FORMAT,
        "schema": SCHEMA,
        "claim": claim,
        "claim_digest": documents.digest(claim),
        "provenance": provenance,
        "provenance_digest": documents.digest(provenance),
    }


def certificate_from_dict(document: Mapping[str, Json], name: str = "The document") -> Certificate:
    """The certificate that a parsed document describes; `name` is for the error message."""
    documents.require_format(document, name, "a pacbound certificate", FORMAT, SCHEMA)
    if set(document) != _PARTS:
        odd = sorted(set(document) ^ _PARTS)
        raise CertificateError(f"{name} has missing or unknown parts: {', '.join(odd)}.")
    try:
        # The document is copied: whoever holds the original may change it, and what was verified
        # must stay what is used.
        copied = documents.copied(dict(document))
        claim = Reader(copied["claim"], "claim")
        kind = claim.choice("kind", KINDS)
        require_shape(copied)
        provenance = Provenance.from_dict(documents.copied(copied["provenance"]))
        read: Certificate = claim_of(kind).read(claim, provenance, copied)
        return read
    except UnknownError as error:
        raise UnknownProcedureError(f"{name}: {error}. Upgrade pacbound.") from None
    except (CertificateError, UnreadableError, WrongError) as error:
        raise CertificateError(f"{name}: {error}") from None
