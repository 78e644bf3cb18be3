"""The stages of a cascade: each model with its place, and its name in messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from inspect import isclass, iscoroutinefunction, ismodule
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pacbound.cascade.thresholds import ExitThresholds
from pacbound.errors import InvalidTypeError, InvalidValueError, ModelError

Unit = Literal["row", "item"]


@dataclass(frozen=True)
class Stage:
    """One model of a cascade. The answer of the `last` one, the slow model, always stands."""

    place: int
    model: Callable[[Any], Any]
    last: bool
    unit: Unit = "row"

    def error(self, what: str, *, row: int | None = None) -> ModelError:
        """The error that says `what` this model did."""
        return ModelError(f"Model {self} {what}", model=self.place, row=row)

    def __str__(self) -> str:
        return f"{self.place} ({model_name(self.model)})"


def stages_of(models: Sequence[Any], *, unit: Unit = "row") -> tuple[Stage, ...]:
    """The stages of a cascade of `models`, fast to slow."""
    if not callable(models) and (isinstance(models, str) or not isinstance(models, Sequence)):
        raise InvalidTypeError(
            f"models is of type {type(models).__name__}: expected a list of models, the fast one "
            "first and the slow one last."
        )
    if callable(models) or len(models) < 2:
        count = 1 if callable(models) else len(models)
        raise InvalidValueError(
            f"A cascade of {count} models: expected at least two, the fast one first and the slow "
            "one last."
        )
    for place, model in enumerate(models):
        _require_model(place, model, unit)
    return tuple(
        Stage(place, model, place == len(models) - 1, unit) for place, model in enumerate(models)
    )


def require_one_order(stages: Sequence[Stage], classes: NDArray[Any] | None) -> None:
    """Raise if scikit-learn estimators, or the names given, do not have the same classes in the
    same columns.
    """
    known = [] if classes is None else [("classes", classes)]
    for stage in stages:
        own = getattr(getattr(stage.model, "__self__", None), "classes_", None)
        if own is None:
            continue
        known.append((f"model {stage}", np.asarray(own)))
        (first, one), (second, other) = known[0], known[-1]
        if not np.array_equal(one, other):
            raise InvalidValueError(
                f"{first} and {second} have other classes, or in another order: {one.tolist()} and "
                f"{other.tolist()}."
            )


def is_count(value: Any) -> bool:
    """Whether `value` is an integer from 1."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and int(value) >= 1


def model_name(model: Any) -> str:
    """What a callable is called: `LogisticRegression.predict_proba`, `small`, `Sequential`."""
    if isinstance(model, partial):
        return model_name(model.func)
    owner = getattr(model, "__self__", None)
    name = getattr(model, "__name__", type(model).__name__)
    if owner is None or ismodule(owner):
        return str(name)
    return f"{owner.__name__ if isclass(owner) else type(owner).__name__}.{name}"


def shown(stages: Sequence[Stage], thresholds: ExitThresholds) -> str:
    """The stages in one line, with the score at which each answer stands."""
    return ", ".join(
        model_name(stage.model) + ("" if stage.last else f" >= {thresholds.shown(stage.place)}")
        for stage in stages
    )


def _require_model(place: int, model: Any, unit: Unit) -> None:
    if not callable(model):
        hint = "Pass its predict_proba." if hasattr(model, "predict_proba") else "Pass a function."
        raise InvalidTypeError(
            f"Model {place} is a {type(model).__name__}, which cannot be called. {hint}"
        )
    if unit == "row" and (iscoroutinefunction(model) or iscoroutinefunction(type(model).__call__)):
        raise InvalidTypeError(
            f"Model {place} ({model_name(model)}) is async: expected a function of rows. Use "
            "AsyncCascade."
        )
