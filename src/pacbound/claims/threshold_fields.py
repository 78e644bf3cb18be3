"""The document of a threshold claim: what it holds, and what must agree in it."""

from __future__ import annotations

from typing import Any

import numpy as np

from pacbound.claims.claim import Procedure
from pacbound.claims.common_fields import Assumes, DrawnForm, NullableText
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
        agree=_agree,
    )


def _agree(part: Reader, values: Values) -> None:
    """Groups are named where there are groups, each once; counts add up to n."""
    groups, scope = [table["group"] for table in values["tables"]], values["scope"]
    named = None not in groups and len(set(groups)) == len(groups)
    if not (groups == [None] if scope == "top" else named):
        raise CertificateError(
            f"{part.place('tables')} do not fit the scope {scope!r}: expected one table without a "
            "group, or a name for each."
        )
    sizes = [
        sum(int(np.sum(column)) for name, column in table["counts"].items() if name != "cells")
        for table in values["tables"]
    ]
    fits = sum(sizes) == values["n"] if scope != "overlapping-groups" else max(sizes) <= values["n"]
    if not fits:
        raise CertificateError(
            f"{part.place('tables')} hold {sum(sizes)} rows: expected n = {values['n']}."
        )
    drawn = values["drawn"]
    if drawn is not None and not drawn.fits(values["n"]):
        raise CertificateError(
            f"{part.place('drawn')}: {values['n']} rows cannot have been drawn as it says."
        )
