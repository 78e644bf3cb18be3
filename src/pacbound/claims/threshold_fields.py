"""The document of a threshold claim: what it holds, and what must agree in it."""

from __future__ import annotations

from functools import partial
from typing import Any

from pacbound.claims.claim import Procedure
from pacbound.claims.common_fields import (
    Assumes,
    DrawnForm,
    NullableText,
    require_lost,
    require_total,
)
from pacbound.documents import Reader
from pacbound.errors import CertificateError
from pacbound.fields import Field, Fields, Histogram, Tables, Values
from pacbound.forms import Choice, GridPoint, TruthValue, Whole
from pacbound.procedures.threshold import TOP

SCOPES = ("top", "groups", "overlapping-groups")


def threshold_fields(claim: Any, procedure: Procedure) -> Fields:
    """The fields of the documents of a procedure."""
    left_out = {name for other in claim.procedures.values() for name in other.asks}
    asks = [ask for ask in claim.asks if ask.name not in left_out - set(procedure.asks)]
    question = getattr(procedure, "question", None) or claim.question
    counts = Histogram(question.outcomes, TOP, question.lowest_cell)
    table = Fields(
        (
            Field("group", NullableText(), counted=True, optional=True),
            Field("counts", counts, counted=True),
            Field("threshold", GridPoint(TOP)),
            Field("allowed", Whole(-1)),
        )
    )
    return Fields(
        (
            Field("kind", Choice((claim.kind,)), counted=True),
            Field("procedure", Choice((procedure.name,)), counted=True),
            Field("assumes", Assumes()),
            Field("certified", TruthValue()),
            Field("n", Whole(1), counted=True),
            *(
                Field(ask.name, ask.form, counted=True, optional=ask.default is None)
                for ask in asks
            ),
            Field("scope", Choice(SCOPES), counted=True),
            Field("drawn", DrawnForm(), counted=True, optional=True),
            Field("tables", Tables(table), counted=True),
        ),
        agree=partial(_agree, claim, procedure, question),
    )


def _agree(claim: Any, procedure: Any, question: Any, part: Reader, values: Values) -> None:
    """What was asked for leads to this procedure; groups are named where there are groups, each
    once; counts add up to n; and no row was lost that cannot have been.
    """
    asked = {ask.name: values.get(ask.name, ask.default) for ask in claim.asks}
    conflict = claim.conflict(asked)
    if conflict is not None or claim.choose(asked, question.kind) != procedure.name:
        raise CertificateError(
            f"{part.place('procedure')} is {procedure.name!r}, which does not decide what was "
            f"asked for. {conflict or ''}"
        )
    if asked.get("looks") is not None and (values["drawn"] is not None or values["scope"] != "top"):
        raise CertificateError(f"{part.place('looks')} do not go with groups or draws.")
    for table in values["tables"]:
        require_lost(part, question, table["counts"])
    groups, scope = [table["group"] for table in values["tables"]], values["scope"]
    named = None not in groups and len(set(groups)) == len(groups)
    if not (groups == [None] if scope == "top" else named):
        raise CertificateError(
            f"{part.place('tables')} do not fit the scope {scope!r}: expected one table without a "
            "group, or a name for each."
        )
    require_total(part, values, [table["counts"] for table in values["tables"]], "tables")
    if asked.get("looks") is not None:
        trials = procedure.trials.search(values["tables"][0]["counts"]).trials
        if trials not in asked["looks"]:
            raise CertificateError(
                f"{part.place('looks')} holds no look at {trials:,} {procedure.words.unit}, which "
                "were counted."
            )
