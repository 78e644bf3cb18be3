"""The stages of a cascade: each model with its place and its name in messages, and when a row exits
there, at the same thresholds as all others or at those of its group.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from inspect import isclass, iscoroutinefunction, ismodule
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pacbound.claims.cascade import CascadeCertificate
from pacbound.claims.certificate import Certificate, certificate_of
from pacbound.errors import InvalidTypeError, InvalidValueError, ModelError
from pacbound.tally.columns import as_names, as_score_column

Floats = NDArray[np.float64]
Unit = Literal["row", "item"]
Thresholds = CascadeCertificate | Any
"""A certificate or its path, numbers, or a mapping from the names of groups to numbers."""


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


@dataclass(frozen=True, eq=False)
class ExitThresholds:
    """A threshold for every model but the last, common to all rows or by the names of groups."""

    values: Floats | dict[str, Floats]
    exits: int

    @classmethod
    def of(cls, certificate_or_thresholds: Thresholds, n_models: int) -> ExitThresholds:
        """Those of `n_models`; of a certificate only if they follow from its own counts."""
        given = certificate_of(certificate_or_thresholds)
        if isinstance(given, Certificate):
            if not isinstance(given, CascadeCertificate):
                raise InvalidTypeError(
                    f"A {given.kind} certificate has no exits: expected one of certify_cascade, or "
                    "thresholds."
                )
            given = given.thresholds_for_use()
        if not isinstance(given, Mapping):
            return cls(_checked(given, n_models, "thresholds"), n_models - 1)
        own = {
            str(name): _checked(values, n_models, f"thresholds[{name!r}]")
            for name, values in given.items()
        }
        return cls(own, n_models - 1)

    def of_rows(self, count: int, groups: Any) -> Floats:
        """The thresholds of each of `count` rows, (rows, exits), by their `groups`. A group that is
        not known never exits.
        """
        own = self._own(groups, "the group of each row")
        if own is None:
            return np.broadcast_to(np.asarray(self.values), (count, self.exits))
        names = as_names(groups, "groups")
        if len(names) != count:
            raise InvalidValueError(
                f"groups has {len(names)} names for {count} rows: pass one for each."
            )
        found, places = np.unique(names, return_inverse=True)
        table = np.full((len(found), self.exits), np.inf)
        for place, name in enumerate(map(str, found.tolist())):
            table[place] = own.get(name, np.inf)
        return np.asarray(table[places])

    def of_item(self, group: Any) -> Floats:
        """The thresholds of one item, by its `group`."""
        return np.asarray(self.of_rows(1, None if group is None else [group])[0])

    def require_groups(self, groups: Any, what: str) -> None:
        """Raise unless `groups` are there if and only if thresholds depend on them."""
        self._own(groups, what)

    def shown(self, exit_: int) -> str:
        """The threshold of an exit, for people."""
        if isinstance(self.values, dict):
            return f"own of {len(self.values)} groups"
        return repr(float(self.values[exit_]))

    def _own(self, groups: Any, what: str) -> dict[str, Floats] | None:
        if not isinstance(self.values, dict):
            if groups is not None:
                raise InvalidTypeError(
                    "groups were passed, and these thresholds are the same for all rows: leave "
                    "groups out."
                )
            return None
        if groups is None:
            listed = ", ".join(map(repr, list(self.values)[:5]))
            raise InvalidTypeError(
                f"These thresholds depend on the group of a row ({listed}"
                f"{', …' if len(self.values) > 5 else ''}), and groups is missing: pass {what}."
            )
        return self.values


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


def _checked(given: Any, n_models: int, name: str) -> Floats:
    thresholds = as_score_column(
        np.atleast_1d(given) if np.isscalar(given) else given, name
    ).astype(np.float64)
    if len(thresholds) != n_models - 1:
        raise InvalidValueError(
            f"{len(thresholds)} {name} for {n_models} models: expected {n_models - 1}, one for "
            "every model but the last."
        )
    illegal = np.flatnonzero(~((thresholds >= 0) & ((thresholds <= 1) | (thresholds == np.inf))))
    if illegal.size:
        where = int(illegal[0])
        raise InvalidValueError(
            f"{name}[{where}] is {thresholds[where]}: expected 0 to 1, or +inf for a model that "
            "never answers."
        )
    return thresholds
