"""Typing a command again draws the same rows: the certificate, or the tally, of the same rows that
stands where the new one goes lends its seed, so that a rerun is no other draw.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

from pacbound.claims.certificate import Certificate, load_certificate
from pacbound.errors import PacboundError
from pacbound.sources.fingerprints import file_fingerprint
from pacbound.sources.paths import expanded
from pacbound.tally import Tally
from pacbound.tally.document import is_tally_file
from pacbound.tally.draws import CHOOSING

# How the name of a file begins that was counted.
_OF_FILE = "sha256:"


def seed_for(
    output: Path | None,
    kind: str,
    tables: Sequence[str],
    given: Mapping[str, Any],
    *,
    member: str | None = None,
) -> int | None:
    """The seed that was typed; else that of the certificate or tally that stands at `output`, or of
    a `member` of it, if it is one of the same kind and of the very files (but for labels that came
    back), and rows are drawn here; else None.
    """
    typed: int | None = given.get("seed")
    draws = any(given.get(name) is not None for name in ("fold", *CHOOSING))
    if not draws or typed is not None or output is None or not output.is_file():
        return typed
    try:
        before = Tally.load(output) if is_tally_file(output) else load_certificate(output)
        sources = before.sources if isinstance(before, Tally) else before.provenance.sources
        known = {name for name in sources if name.startswith(_OF_FILE)}
        found = set(map(file_fingerprint, expanded(tables)))
        # A look at more labels, and one claim of several, is about rows beside other files.
        looks = member is not None or bool(given.get("answers"))
        same = found <= known if looks else found == known
        if member is not None and isinstance(before, Certificate):
            before = before.members[member]
    except (OSError, PacboundError, KeyError):
        return None
    seeds = _seeds(before) if same and before.kind == kind else set()
    if len(seeds) != 1:
        return None
    (seed,) = seeds
    typer.echo(f"{output} is about the same rows: its seed {seed} draws them again.", err=True)
    return seed


def _seeds(certificate: Certificate | Tally) -> set[int]:
    """All seeds that a tally, a certificate, or the claims in it, were drawn by."""
    if isinstance(certificate, Tally):
        return set() if certificate.seed is None else {certificate.seed}
    declared = getattr(certificate, "declared", None)
    own = [each.seed for each in (certificate.draw, declared) if each]
    inside = [_seeds(member) for member in certificate.members.values()]
    return {seed for seed in own if seed is not None}.union(*inside)
