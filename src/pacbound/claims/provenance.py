"""Where a certificate comes from, and what its maker says of it: which model, which data, whose.

None of it is a part of the claim: nothing is computed from it, and verifying cannot show that it is
true. What a certificate is `about` are short texts by names; a path stands for what lies there, so
that a text can be held against the file itself. Arrays and frames carry nothing that says which
rows they are, so whoever certifies names the `sample`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pacbound.documents import Json, digest, shown
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.sources.fingerprints import file_fingerprint
from pacbound.tally.table import HISTOGRAM
from pacbound.version import VERSION

if TYPE_CHECKING:
    from pacbound.tally.tally import Tally

MOST_TEXTS = 50
LONGEST_NAME = 40
LONGEST_TEXT = 1000
LONGEST_SAMPLE = 200
# What may be noted of labels: see `pacbound.claims.cascade.words`.
LABELS = "labels"
# Beside the names of the columns: what a score of 1 is written as in them.
SCALE = "scale"
NOTES = ("too few to tell", "unrelated")

_LISTED_SOURCES = 1000
_FINGERPRINT = re.compile(r"/? \([\d,]+ (?:files, [\d,]+ )?bytes, sha256:[0-9a-f]{64}\)$")
_NAME = re.compile(rf"[A-Za-z0-9][A-Za-z0-9_-]{{0,{LONGEST_NAME - 1}}}")
_EXAMPLE = 'for example {"model": "resnet50 of 3 May", "dataset": Path("test.csv")}'


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
        The names of the table's columns by what they were used as, and "scale", what a score of 1
        was written as in them; empty for arrays.
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
        do not look so and were counted with `unrelated_labels`. Abstention: "worst_answer", where
        nearly all rows are answered and classes were counted, has the answer that is most often
        wrong, with how many of how many are: "31/80 effusion". Those of the claims of a bundle are
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
        verdict = "" if tally.matches is None else tally.matches.verdict(tally.rows)
        labels = {LABELS: verdict} if verdict in NOTES else {}
        written = {} if tally.scale is None else {SCALE: repr(tally.scale)}
        made = cls.now(tally.sources, {**(columns or {}), **written}, {**labels, **(notes or {})})
        return replace(made, drawn_by=names)

    @property
    def scale(self) -> float | None:
        """What a score of 1 was written as in the columns: 100 for percentages; None if nothing
        was said.
        """
        return float(self.columns[SCALE]) if SCALE in self.columns else None

    def to_dict(self) -> dict[str, Json]:
        """The provenance as a document holds it; what there is none of is left out."""
        said = {name: getattr(self, name) for name in _OPTIONAL}
        return {
            "package": "pacbound",
            "version": self.version,
            "created": self.created,
            "columns": dict(self.columns),
            "sources": list(self.sources),
            **{
                name: dict(value) if isinstance(value, Mapping) else value
                for name, value in said.items()
                if value is not None and value != {}
            },
        }

    @classmethod
    def from_dict(cls, document: Json) -> Self:
        """The provenance that a document holds, whose shape was checked."""
        return cls(
            document["version"],
            document["created"],
            document["columns"],
            tuple(document["sources"]),
            **{name: document[name] for name in _OPTIONAL if name in document},
        )


# What a document has only where there is something to say.
_OPTIONAL = ("about", "sample", "samples", "drawn_by", "notes")


def _listed(sources: frozenset[str]) -> tuple[str, ...]:
    """All sources, or, where they are too many to list, one digest over them."""
    names = sorted(name for name in sources if not name.startswith(HISTOGRAM))
    return (
        tuple(names)
        if len(names) <= _LISTED_SOURCES
        else (f"{len(names)} sources, {digest(names)}",)
    )


def sample_name(sample: Any) -> str | None:
    """The name of a sample as it is kept; None if there is none.

    Parameters
    ----------
    sample
        A short text on one line, such as "held-out, March".

    Returns
    -------
    str or None
        The text without spaces around it.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If it is not a text, empty, longer than 200 characters, or has characters that cannot be
        printed.
    """
    if sample is None:
        return None
    if not isinstance(sample, str):
        raise InvalidTypeError(
            f"sample is a {type(sample).__name__}: expected the name of the rows as a text, such "
            'as sample="held-out, March".'
        )
    name = sample.strip()
    wrong = _wrong_with(name)
    if wrong is not None:
        raise InvalidValueError(
            f"sample={shown(sample)} {wrong}: expected a short name of the rows on one line, such "
            'as sample="held-out, March".'
        )
    return name


def _wrong_with(name: str) -> str | None:
    if not name:
        return "is empty"
    if len(name) > LONGEST_SAMPLE:
        return f"has {len(name)} characters, more than {LONGEST_SAMPLE}"
    return None if name.isprintable() else "has characters that cannot be printed"


def about_texts(about: Mapping[str, Any] | None) -> dict[str, str]:
    """What is kept of `about`: its texts as they are, and for a path the name, the size and the
    SHA-256 of what lies there.

    Texts give themselves, so that a function may look at what it was given before it begins to
    count, and hand on what this returned.

    Parameters
    ----------
    about
        Texts and paths by names. A name is made of letters, digits, - and _. None is an empty one.

    Returns
    -------
    dict of str to str
        The texts by their names.

    Raises
    ------
    InvalidTypeError
        If it is not a mapping, or something in it is neither a text nor a path.
    InvalidValueError
        If a name has other characters; if a text is empty or too long; if there are too many; if
        nothing lies at a path.
    """
    if about is None:
        return {}
    if not isinstance(about, Mapping):
        raise InvalidTypeError(
            f"about is a {type(about).__name__}: expected texts by names, {_EXAMPLE}."
        )
    if len(about) > MOST_TEXTS:
        raise InvalidValueError(
            f"about has {len(about)} texts: expected at most {MOST_TEXTS}. Keep the rest in a "
            "file, and name that by its path."
        )
    return {_checked_name(name): _text_of(name, value) for name, value in about.items()}


def without_fingerprint(text: str) -> str:
    """What a text of `about` names, without the size and the SHA-256 of a file or folder."""
    return _FINGERPRINT.sub("", text)


def _checked_name(name: Any) -> str:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InvalidValueError(
            f"about has the name {shown(name)}: expected up to {LONGEST_NAME} letters, "
            "digits, - and _, such as model, dataset, owner or note."
        )
    return name


def _text_of(name: str, value: Any) -> str:
    if isinstance(value, os.PathLike):
        return _described_path(name, Path(value))
    if not isinstance(value, str):
        raise InvalidTypeError(
            f"about[{name!r}] is a {type(value).__name__}: expected a text, or a pathlib.Path "
            "for the digest of a file."
        )
    if not value.strip():
        raise InvalidValueError(f"about[{name!r}] is empty: give it a text, or leave it out.")
    if len(value) > LONGEST_TEXT:
        raise InvalidValueError(
            f"about[{name!r}] has {len(value)} characters: expected at most {LONGEST_TEXT}. Write "
            "it to a file, and name that by its path."
        )
    if any("\ud800" <= letter <= "\udfff" for letter in value):
        raise InvalidValueError(f"about[{name!r}] is {shown(value)}: half a character, no text.")
    return value


def _described_path(name: str, path: Path) -> str:
    """A file by its name, size and SHA-256; a folder by those of all its files. Where it lies is
    not said: that is of no use elsewhere, and may be private.
    """
    try:
        if path.is_dir():
            return _described_folder(name, path)
        if not path.is_file():
            what = "is not a file" if path.exists() else "is not there"
            raise InvalidValueError(
                f"about[{name!r}] names {str(path)!r}, which {what}: name a file or a folder, or "
                "pass a text in place of a path."
            )
        size, taken = path.stat().st_size, file_fingerprint(path)
    except OSError as error:
        raise InvalidValueError(
            f"about[{name!r}] names {str(path)!r}, which cannot be read: {error.strerror}."
        ) from None
    return _shortened(path.resolve().name, f" ({size:,} bytes, {taken})")


def _described_folder(name: str, folder: Path) -> str:
    files = sorted(
        (path.relative_to(folder).as_posix(), path) for path in folder.rglob("*") if path.is_file()
    )
    if not files:
        raise InvalidValueError(
            f"about[{name!r}] names {str(folder)!r}, a folder without files: name another."
        )
    taken = digest([[name, file_fingerprint(path)] for name, path in files])
    size = sum(path.stat().st_size for _, path in files)
    return _shortened(folder.resolve().name, f"/ ({len(files):,} files, {size:,} bytes, {taken})")


def _shortened(name: str, rest: str) -> str:
    # A name whose bytes are not UTF-8 comes with surrogates, which cannot be written.
    readable = name.encode("utf-8", "backslashreplace").decode()
    return readable[: LONGEST_TEXT - len(rest)] + rest
