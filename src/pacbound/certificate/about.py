"""What a certificate is about, in the words of whoever made it: which model, which data, whose.

These are short texts by names. They are kept in the provenance, covered by its digest, and are no
part of the claim: nothing is computed from them, and verifying cannot show that they are true. A
path stands for what lies there, so that a text can be held against the file itself.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pacbound import documents
from pacbound.documents import Reader, printable
from pacbound.errors import CertificateError, InvalidTypeError, InvalidValueError
from pacbound.sources.fingerprints import file_fingerprint

MOST_TEXTS = 50
LONGEST_NAME = 40
LONGEST_TEXT = 1000

_NAME = re.compile(rf"[A-Za-z0-9][A-Za-z0-9_-]{{0,{LONGEST_NAME - 1}}}")
_EXAMPLE = 'for example {"model": "resnet50 of 3 May", "dataset": Path("test.csv")}'


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


def read_about(provenance: Reader) -> dict[str, str]:
    """The texts that a document holds; certificates without any do not have the place for them."""
    if not provenance.has("about"):
        return {}
    found = provenance.mapping("about").all_texts()
    long = [name for name, text in found.items() if len(text) > LONGEST_TEXT]
    if long:
        raise CertificateError(
            f"{provenance.place('about')}.{printable(long[0][:LONGEST_NAME])} has "
            f"{len(found[long[0]])} characters: expected at most {LONGEST_TEXT}."
        )
    return found


def described_about(about: Mapping[str, str], kind: str) -> list[str]:
    """The lines of a summary that say what a certificate of the `kind` is about."""
    if not about:
        return []
    width = max(len(printable(name)) for name in about)
    return [
        f"About this {kind.partition('-')[0]} (as its maker says, no part of the claim):",
        *(
            f"  {printable(name):{width}}  {printable(text)}"
            for name, text in sorted(about.items())
        ),
    ]


def _checked_name(name: Any) -> str:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InvalidValueError(
            f"about has the name {documents.shown(name)}: expected up to {LONGEST_NAME} letters, "
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
        raise InvalidValueError(
            f"about[{name!r}] is {documents.shown(value)}: half a character, no text."
        )
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
    taken = documents.digest([[name, file_fingerprint(path)] for name, path in files])
    size = sum(path.stat().st_size for _, path in files)
    return _shortened(folder.resolve().name, f"/ ({len(files):,} files, {size:,} bytes, {taken})")


def _shortened(name: str, rest: str) -> str:
    # A name whose bytes are not UTF-8 comes with surrogates, which cannot be written.
    readable = name.encode("utf-8", "backslashreplace").decode()
    return readable[: LONGEST_TEXT - len(rest)] + rest
