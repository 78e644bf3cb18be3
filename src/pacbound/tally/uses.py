"""What a table is counted for, by the columns that are named."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from pacbound.errors import InvalidTypeError

NEEDED: Final[Mapping[str, tuple[str, ...]]] = {
    "calibration": ("confidence",),
    "abstention": ("confidence",),
    "cascade": ("confidences", "predictions", "label"),
    "shield": ("score", "unsafe"),
}
"""The columns that each use cannot do without."""


def use_of(columns: Collection[str], kind: str | None) -> str:
    """The use that the named columns belong to; `kind` tells calibration from abstention."""
    named = set(columns)
    fitting = [
        name for name, needed in NEEDED.items() if named.issuperset(needed) and kind in (None, name)
    ]
    if not fitting:
        listed = "; ".join(f"{name}: {', '.join(needed)}" for name, needed in NEEDED.items())
        raise InvalidTypeError(
            f"Columns {sorted(named)} fit no use (kind={kind!r}). Expected {listed}."
        )
    return fitting[0]


def outcome_columns(correct: str | None, prediction: str | None, label: str | None) -> list[str]:
    """The one column that says whether a prediction was right, or the two that do."""
    if correct is not None and prediction is None and label is None:
        return [correct]
    if correct is None and prediction is not None and label is not None:
        return [prediction, label]
    raise InvalidTypeError("Name either the column correct, or both prediction and label.")


def models_columns(
    confidences: str | Sequence[str], predictions: str | Sequence[str]
) -> tuple[list[str], list[str]]:
    """A confidence for each model of a cascade but the last, and a prediction for each; one alone
    may stand without a list.
    """
    exits, answers = (
        [names] if isinstance(names, str) else list(names) for names in (confidences, predictions)
    )
    if not exits or len(answers) != len(exits) + 1:
        raise InvalidTypeError(
            f"{len(exits)} confidences and {len(answers)} predictions are no cascade: name a "
            "confidence for each model but the last, and a prediction for each model."
        )
    return exits, answers
