"""What a plan looks at, for each question: the measures of the claims that its tallies support."""

from __future__ import annotations

from collections.abc import Mapping

from pacbound.claims import claim_of, claims_of
from pacbound.claims.cascade import CLAIM as CASCADE
from pacbound.claims.cascade.measures import measure_of
from pacbound.measure import Measure

MEASURES: Mapping[str, Measure] = {"differ": measure_of(CASCADE, "differ")}
"""Of claims that tallies support beside those of their own kind."""

OTHER_CLAIMS: Mapping[str, tuple[str, ...]] = {"differ": (CASCADE.question.kind,)}
"""Claims that pilots of other questions support, and those questions."""


def measures_of(question: str) -> dict[str, Measure]:
    """The claims that a pilot of the question can be planned for, the first if none is named."""
    measures = {kind: claim_of(kind).measure for kind in claims_of(question)}
    found = {kind: measure for kind, measure in measures.items() if measure is not None}
    others = {name: measure for name, measure in MEASURES.items() if question in OTHER_CLAIMS[name]}
    return {**found, **others}
