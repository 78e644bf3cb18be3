"""Gates: what a script demands of a certificate beside that it verifies."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated

import typer

from pacbound.claims import KINDS
from pacbound.claims.certificate import Certificate
from pacbound.documents import printable
from pacbound.errors import InvalidValueError
from pacbound.stats.arguments import failure_probability, tolerated_rate

CertifiedOption = Annotated[
    bool,
    typer.Option("--require-certified", help="Let no refusal through: exit code 1, not 3."),
]
KindOption = Annotated[
    list[str] | None,
    typer.Option("--kind", help="Let only this kind through, such as cascade; may be repeated."),
]
XiOption = Annotated[
    float | None,
    typer.Option(help="Let through a claimed xi of at most this; 1 - target, for recall."),
]
DeltaOption = Annotated[
    float | None, typer.Option(help="Let through a chance to be wrong of at most this.")
]


@dataclass(frozen=True)
class Gates:
    """What is demanded; a certificate passes if `closed` has no line about it."""

    certified: bool
    kinds: tuple[str, ...]
    xi: Decimal | None
    delta: Decimal | None

    @classmethod
    def of(
        cls, *, certified: bool, kinds: list[str] | None, xi: float | None, delta: float | None
    ) -> Gates:
        """The gates that options ask for, if they are kinds and rates that there can be."""
        unknown = next((kind for kind in kinds or [] if kind not in KINDS), None)
        if unknown is not None:
            raise InvalidValueError(
                f"--kind {printable(unknown)} is not a kind of certificate: expected one of "
                f"{', '.join(sorted(KINDS))}."
            )
        return cls(
            certified,
            tuple(kinds or ()),
            # Compared as people write them: 1 - 0.95 is 0.05 here, and not a little more.
            None if xi is None else Decimal(repr(tolerated_rate(xi))),
            None if delta is None else Decimal(repr(failure_probability(delta))),
        )

    def closed(self, certificate: Certificate) -> list[str]:
        """A line for each demand that a certificate, which verifies, does not meet."""
        lines = []
        if self.certified and not certificate.certified:
            lines.append("it is a refusal, and --require-certified asks for more")
        if self.kinds and certificate.kind not in self.kinds:
            wanted = " or ".join(self.kinds)
            lines.append(f"its kind is {certificate.kind}, and --kind asks for {wanted}")
        if self.xi is not None:
            lines += [
                f"{found}, and --max-xi asks for at most {self.xi}"
                for found in _above(certificate, self.xi)
            ]
        delta = Decimal(repr(certificate.delta))
        if self.delta is not None and delta > self.delta:
            lines.append(f"delta = {delta}, and --max-delta asks for at most {self.delta}")
        return lines


def _above(certificate: Certificate, most: Decimal) -> list[str]:
    """What the certificate, or a claim of a bundle, allows beyond `most`."""
    if certificate.inside:
        return [
            f"{printable(name)}: {found}"
            for name, member in certificate.inside.items()
            for found in _above(member, most)
        ]
    claim = certificate.claim()
    if "target" in claim:
        missed = 1 - Decimal(repr(float(claim["target"])))
        return [f"target = {claim['target']} lets {missed} go wrong"] if missed > most else []
    if "xi" not in claim:
        return [f"a {certificate.kind} claims no xi"]
    xi = Decimal(repr(float(claim["xi"])))
    return [f"xi = {xi}"] if xi > most else []
