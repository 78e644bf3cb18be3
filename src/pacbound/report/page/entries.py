"""What goes on the page: each certificate under its name, verified when the page is made.

A certificate that cannot be read or does not follow from its own counts is an entry too, with the
reason and without its claim: nothing of it may be shown as if it held.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import Any, Final

from pacbound.claims.certificate import Certificate, load_certificate
from pacbound.documents import Json
from pacbound.errors import CertificateError, InvalidTypeError, InvalidValueError
from pacbound.figure import Figure
from pacbound.monitor import BundleMonitor, Monitor
from pacbound.monitor.state_file import SEVERAL, certificate_of_state

# Figures of one certificate, at most.
MOST_FIGURES: Final = 6

Source = Certificate | str | os.PathLike[str]


@dataclass
class ReportedCertificate:
    """One certificate of the page, and what the page says about it.

    Attributes
    ----------
    name : str
        The name on the page.
    kind : str or None
        The kind of certificate; None if it could not be read.
    given : str
        The name that the caller gave it, or that of a claim in a bundle.
    certificate : Certificate or None
        None if it could not be read or is not verified: the page then has nothing but its name and
        the reason.
    readable : bool
        Whether it could be read at all.
    problems : tuple of str
        Why it is not verified; empty if it is.
    members : tuple of ReportedCertificate
        The claims of a bundle.
    monitors : list of Monitor
        Those that watch over it.
    source : Path or None
        The file that it was read from.

    Examples
    --------
    >>> ReportedCertificate("brake.json", readable=False, problems=("It is empty.",)).certified
    False
    """

    name: str
    kind: str | None = None
    given: str = ""
    certificate: Certificate | None = None
    readable: bool = True
    problems: tuple[str, ...] = ()
    members: tuple[ReportedCertificate, ...] = ()
    monitors: list[Monitor] = field(default_factory=list)
    source: Path | None = None

    @cached_property
    def claim(self) -> Mapping[str, Json]:
        """The claim of a certificate that is verified; empty if it is not."""
        return {} if self.certificate is None else self.certificate.claim()

    @cached_property
    def title(self) -> str:
        """What it is headed by: its given name, the model and the claim; the name of its file where
        it is not verified.
        """
        if self.certificate is None:
            return self.name
        return f"{f'{self.given}: ' if self.given else ''}{self.certificate.called}"

    @cached_property
    def figures(self) -> tuple[Figure, ...]:
        """As many of its figures as any page shows."""
        found = () if self.certificate is None else self.certificate.figures()
        return tuple(islice(found, MOST_FIGURES))

    @property
    def verified(self) -> bool:
        """Whether the claim follows from its own counts."""
        return self.certificate is not None

    @property
    def certified(self) -> bool:
        """Whether it is verified, and the data support the claim."""
        return self.certificate is not None and self.certificate.certified

    def all(self) -> Iterator[ReportedCertificate]:
        """The entry and the claims in it."""
        yield self
        yield from self.members


def entries_of(certificates: Any, *, patient: bool) -> list[ReportedCertificate]:
    """An entry for each certificate, which is given as itself, by its path, or by a name."""
    if isinstance(certificates, Certificate | str | os.PathLike):
        certificates = [certificates]
    if isinstance(certificates, Mapping):
        named = [(str(name), source) for name, source in certificates.items()]
    elif isinstance(certificates, Iterable):
        listed = list(certificates)
        named = list(zip(_names(listed), listed, strict=True))
    else:
        raise InvalidTypeError(
            f"certificates is of type {type(certificates).__name__}: expected a certificate, a "
            "path, a list of these, or a mapping of names to these."
        )
    if not named:
        raise InvalidValueError("There is no certificate to report on: pass at least one.")
    entries = []
    for name, source in named:
        given = name if isinstance(certificates, Mapping) else ""
        entry = _entry(name, source, given, patient=patient)
        entry.source = _path(source)
        entries.append(entry)
    for title, times in Counter(entry.title for entry in entries).items():
        for entry in entries if times > 1 else ():
            if entry.title == title:
                entry.title = f"{title} ({entry.name})"
    return entries


def _names(sources: Sequence[Any]) -> Iterator[str]:
    """The names of files, with as much of their folders as tells them apart; kinds with a number
    for certificates that have no file.
    """
    paths = {place: _path(source) for place, source in enumerate(sources)}
    short = [None if path is None else path.name for path in paths.values()]
    counted = 0
    for place, source in enumerate(sources):
        path = paths[place]
        if path is not None:
            yield path.name if short.count(path.name) == 1 else str(path)
        else:
            counted += 1
            kind = source.kind if isinstance(source, Certificate) else type(source).__name__
            yield f"{kind} {counted}"


def _path(source: Any) -> Path | None:
    return Path(source) if isinstance(source, str | os.PathLike) else None


def _entry(name: str, source: Source, given: str, *, patient: bool) -> ReportedCertificate:
    if isinstance(source, Certificate):
        certificate = source
    elif isinstance(source, str | os.PathLike):
        try:
            certificate = load_certificate(source)
        except CertificateError as error:
            return ReportedCertificate(name, readable=False, problems=(str(error),))
        except OSError as error:
            problem = f"{os.fspath(source)}: {error.strerror or error}"
            return ReportedCertificate(name, readable=False, problems=(problem,))
    else:
        raise InvalidTypeError.of(name, source, "a certificate or the path of one")
    found = certificate.verify(patient=patient)
    if not found:
        return ReportedCertificate(name, certificate.kind, problems=found.differences)
    members = tuple(
        ReportedCertificate(
            f"{name}: {claim}", member.kind, f"{given}: {claim}" if given else claim, member
        )
        for claim, member in certificate.inside.items()
    )
    return ReportedCertificate(name, certificate.kind, given, certificate, members=members)


def add_monitors(entries: Sequence[ReportedCertificate], monitors: Iterable[Any]) -> None:
    """Put each monitor, or the state of one, beside the certificate that it was begun with."""
    for monitor in monitors:
        if isinstance(monitor, (Monitor, BundleMonitor)):
            _beside(entries, monitor.certificate.claim_digest, "The monitor", monitor)
        elif isinstance(monitor, str | os.PathLike):
            digest, layout = certificate_of_state(monitor)
            kind = BundleMonitor if layout == SEVERAL else Monitor
            _beside(entries, digest, os.fspath(monitor), partial(kind.load, monitor))
        else:
            raise InvalidTypeError.of(
                "A monitor", monitor, "a Monitor, or the path of the state of one"
            )


def _beside(entries: Sequence[ReportedCertificate], digest: str, shown: str, monitor: Any) -> None:
    """Put a monitor, or what loads it, beside its certificate; one of several claims beside each of
    them.
    """
    for entry in (part for whole in entries for part in whole.all()):
        if entry.certificate is not None and entry.certificate.claim_digest == digest:
            found = monitor(entry.certificate) if isinstance(monitor, partial) else monitor
            if isinstance(found, Monitor):
                entry.monitors.append(found)
                return
            for name, one in found.monitors.items():
                places = [*entry.certificate.inside]
                entry.members[places.index(name)].monitors.append(one)
            return
    # It may belong to one that is not verified, and nothing of that one is shown.
    if all(entry.verified for entry in entries):
        raise InvalidValueError(
            f"{shown} is of a certificate that is not on this page ({digest}): name that "
            "certificate too."
        )
