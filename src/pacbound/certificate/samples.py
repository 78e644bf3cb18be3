"""The name of the rows that a certificate is about, as whoever made it calls them.

Arrays and frames carry nothing that says which rows they are, and a table of the same rows with one
more column is another file. So whoever certifies names the sample: claims on rows of one name share
one budget. The name is kept in the provenance. Nothing can check it.
"""

from __future__ import annotations

from typing import Any
from unicodedata import normalize

from pacbound.documents import Reader, shown
from pacbound.errors import CertificateError, InvalidTypeError, InvalidValueError

LONGEST_SAMPLE = 200


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


def read_sample(part: Reader, key: str) -> str:
    """The name of a sample that a document holds."""
    name = part.text(key)
    wrong = "has spaces around it" if name != name.strip() else _wrong_with(name)
    if wrong is not None:
        raise CertificateError(f"{part.place(key)} is {shown(name)}, which {wrong}.")
    return name


def sample_key(name: str) -> str:
    """What two spellings of one name have in common: case, width and spaces make no difference."""
    return " ".join(normalize("NFKC", name).casefold().split())


def _wrong_with(name: str) -> str | None:
    if not name:
        return "is empty"
    if len(name) > LONGEST_SAMPLE:
        return f"has {len(name)} characters, more than {LONGEST_SAMPLE}"
    return None if name.isprintable() else "has characters that cannot be printed"
