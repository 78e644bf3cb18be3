"""The stages of a cascade: each model with its place, its name in messages, and the score at which
its answer stands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from inspect import isclass, iscoroutinefunction, ismodule
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pacbound.certificate.cascade import CascadeCertificate
from pacbound.certificate.document import Certificate
from pacbound.errors import InvalidTypeError, InvalidValueError, ModelError
from pacbound.tally.columns import as_score_column

Floats = NDArray[np.float64]
Unit = Literal["row", "item"]


@dataclass(frozen=True)
class Stage:
    """One model of a cascade. A threshold of +inf is never reached; the last model has None, and
    its answer always stands.
    """

    place: int
    model: Callable[[Any], Any]
    threshold: float | None
    unit: Unit = "row"

    @property
    def last(self) -> bool:
        """Whether this is the slow model, which every other one may answer for."""
        return self.threshold is None

    @property
    def never_exits(self) -> bool:
        """Whether asking this model is in vain."""
        return self.threshold == np.inf

    def accepts(self, confidence: Floats) -> NDArray[np.bool_]:
        """Which answers stand. The scores must be float64: NumPy compares float16 with a Python
        float in float16.
        """
        if self.threshold is None:
            return np.ones(len(confidence), dtype=bool)
        return np.asarray(confidence >= self.threshold)

    def error(self, what: str, *, row: int | None = None) -> ModelError:
        """The error that says `what` this model did."""
        return ModelError(f"Model {self} {what}", model=self.place, row=row)

    def __str__(self) -> str:
        return f"{self.place} ({model_name(self.model)})"


def stages_of(
    models: Sequence[Any], certificate_or_thresholds: Any, *, unit: Unit = "row"
) -> tuple[Stage, ...]:
    """The stages of a cascade of `models`, fast to slow."""
    if callable(models) or len(models) < 2:
        count = 1 if callable(models) else len(models)
        raise InvalidValueError(
            f"A cascade of {count} models: expected at least two, the fast one first and the slow "
            "one last."
        )
    for place, model in enumerate(models):
        _require_model(place, model, unit)
    thresholds = exit_thresholds(certificate_or_thresholds, len(models))
    scores = [*thresholds.tolist(), None]
    return tuple(
        Stage(place, model, score, unit)
        for place, (model, score) in enumerate(zip(models, scores, strict=True))
    )


def exit_thresholds(certificate_or_thresholds: Any, n_models: int) -> Floats:
    """The M - 1 thresholds of `n_models`; those of a certificate only if they follow from its own
    counts.
    """
    given = certificate_or_thresholds
    if isinstance(given, Certificate):
        if not isinstance(given, CascadeCertificate):
            raise InvalidTypeError(
                f"A {given.kind} certificate has no exits: expected one of certify_cascade, or "
                "thresholds."
            )
        given = given.thresholds_for_use()
    thresholds = as_score_column(
        np.atleast_1d(given) if np.isscalar(given) else given, "thresholds"
    ).astype(np.float64)
    if len(thresholds) != n_models - 1:
        raise InvalidValueError(
            f"{len(thresholds)} thresholds for {n_models} models: expected {n_models - 1}, one for "
            "every model but the last."
        )
    illegal = np.flatnonzero(~((thresholds >= 0) & ((thresholds <= 1) | (thresholds == np.inf))))
    if illegal.size:
        where = int(illegal[0])
        raise InvalidValueError(
            f"thresholds[{where}] is {thresholds[where]}: expected 0 to 1, or +inf for a model "
            "that never answers."
        )
    return thresholds


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


def shown(stages: Sequence[Stage]) -> str:
    """The stages in one line."""
    return ", ".join(
        model_name(stage.model) + ("" if stage.last else f" >= {stage.threshold!r}")
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
