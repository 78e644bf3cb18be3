"""Reading certificates from files, whatever their kind."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from pacbound import documents
from pacbound.certificate.batch import BatchCertificate
from pacbound.certificate.bundle import CertificateBundle, SeveralClaims, member_documents
from pacbound.certificate.document import FORMAT, SCHEMA, Certificate, Provenance
from pacbound.certificate.draws import read_draw
from pacbound.claims import CLAIMS, claim_of
from pacbound.documents import Json, Reader
from pacbound.errors import CertificateError, InvalidValueError

KINDS: dict[str, type[Certificate]] = {
    kind.kind: kind
    for kind in (
        BatchCertificate,
        CertificateBundle,
    )
}

_PARTS = {"format", "schema", "claim", "claim_digest", "provenance", "provenance_digest"}
_LATER_PARTS = {"counts_digest"}
"""The first certificates were written without it, and are as valid."""


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


def certificate_from_dict(document: Mapping[str, Json], name: str = "The document") -> Certificate:
    """The certificate that a parsed document describes; `name` is for the error message."""
    if document.get("format") != FORMAT:
        raise CertificateError(
            f"{name} is not a pacbound certificate: its format is "
            f"{documents.shown(document.get('format'))}."
        )
    schema = document.get("schema")
    # True and 1.0 equal 1 in Python.
    if type(schema) is not int or schema != SCHEMA:
        raise CertificateError(
            f"{name} has schema {documents.shown(schema)}; this version reads {SCHEMA}. Upgrade "
            "pacbound."
        )
    if set(document) - _LATER_PARTS != _PARTS:
        odd = sorted((set(document) - _LATER_PARTS) ^ _PARTS)
        raise CertificateError(f"{name} has missing or unknown parts: {', '.join(odd)}.")
    try:
        claim = Reader(document["claim"], "claim")
        kind = claim.choice("kind", (*KINDS, *CLAIMS))
        # The document is copied: whoever holds the original may change it, and what was verified
        # must stay what is used.
        provenance = Provenance.from_dict(document["provenance"])
        copied = documents.copied(dict(document))
        if kind in CLAIMS:
            read: Certificate = claim_of(kind).read(claim, provenance, copied)
            return read
        made = KINDS[kind]
        if issubclass(made, SeveralClaims):
            return made.from_claim(claim, provenance, copied, _members(claim, provenance))
        certificate = made.from_claim(claim, provenance, copied)
        return replace(certificate, draw=read_draw(claim)).explained()
    except CertificateError as error:
        raise type(error)(f"{name}: {error}") from None


def _members(claim: Reader, provenance: Provenance) -> dict[str, Certificate]:
    """The certificates of a bundle or a range. What its own digest is taken of is theirs, too."""
    members = {}
    for name, (part, origin) in member_documents(claim, provenance).items():
        document = {
            "format": FORMAT,
            "schema": SCHEMA,
            "claim": part,
            "claim_digest": documents.digest(part),
            "provenance": origin,
            "provenance_digest": documents.digest(origin),
        }
        members[name] = certificate_from_dict(document, claim.place(f"claims.{name}"))
        if isinstance(members[name], CertificateBundle):
            raise CertificateError(f"{claim.place('claims')}.{name} is a bundle in a bundle.")
    return members
