"""A certificate applied to a dataframe: which columns it reads, and what it adds to each row.

`pacbound apply` does the same with files, by the same rules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pacbound.errors import InvalidTypeError
from pacbound.sources.notation import Notation
from pacbound.tally.row_rules import EXIT, RowRule


def applied(
    rule: RowRule,
    frame: Any,
    recorded: Mapping[str, str],
    given: Mapping[str, str | Sequence[str] | None],
    *,
    scale: float | None,
    strict: bool,
) -> Any:
    """The frame with the columns of a rule added; `recorded` are the columns that the certificate
    was made from, and `given` those that the user names instead.
    """
    # Loaded here, because a certificate needs no narwhals.
    from pacbound.tally.frames.applying import apply_to_frame  # noqa: PLC0415
    from pacbound.tally.frames.whole_columns import column_names  # noqa: PLC0415

    columns = {**recorded, **{role: name for role, name in given.items() if name is not None}}
    named = columns.get("score", columns.get("confidence", "confidence"))
    scores = _names(named)
    if len(scores) != rule.scores:
        raise InvalidTypeError(
            f"The certificate goes by {rule.scores} scores, and {len(scores)} columns are named "
            f"({', '.join(scores)}): name that of each."
        )
    if rule.groups is None and given.get("group") is not None:
        raise InvalidTypeError("The certificate does not go by groups: leave group out.")
    predictions = None
    if EXIT in rule.added and "prediction" in columns:
        predictions = _names(columns["prediction"])
        # In use the slow model has not run where a fast one answers, so its column may not be
        # there.
        if given.get("prediction") is None and not set(predictions) <= set(column_names(frame)):
            predictions = None
    if predictions is not None and len(predictions) != rule.scores + 1:
        raise InvalidTypeError(
            f"{len(predictions)} prediction columns for {rule.scores + 1} models: name that of "
            "each."
        )
    group = None if rule.groups is None else _names(columns.get("group", "group"))[0]
    return apply_to_frame(
        frame,
        rule,
        scores=scores,
        group=group,
        predictions=predictions,
        scale=Notation.of(scale=scale).scale,
        strict=strict,
    )


def _names(columns: str | Sequence[str]) -> list[str]:
    """Several columns of one role, as they are recorded in one text."""
    if not isinstance(columns, str):
        return list(columns)
    return [name.strip() for name in columns.split(",")]
