"""The models of a cascade: each with its place and its name in messages, when a row exits there, at
the same thresholds as all others or at those of its group, and what it may give back.

A model gives an (n, C) table of class probabilities, or `Answers` where there are no probabilities
over classes: a label and a float64 confidence for every row. Anything else raises a `ModelError`
that names the model and the row. The confidence is cast to float64 before it is compared, as it was
when the certificate counted it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from inspect import isclass, iscoroutinefunction, ismodule
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pacbound.claims.cascade.certificate import CascadeCertificate
from pacbound.claims.certificate import Certificate, certificate_of
from pacbound.errors import InvalidTypeError, InvalidValueError, ModelError
from pacbound.tally.columns import (
    ROUNDING,
    Array,
    Floats,
    as_array,
    as_column,
    as_names,
    as_score_column,
    numeric,
    score_hint,
)
from pacbound.tally.probabilities import ONE_SCORE, top_blocks

Rows = NDArray[np.intp]
Unit = Literal["row", "item"]
# A certificate or its path, numbers, or a mapping from the names of groups to numbers.
Thresholds = CascadeCertificate | Any


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
            given.require_plain_scores()
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
        own = self.required(groups, "the group of each row")
        if own is None:
            return np.broadcast_to(np.asarray(self.values), (count, self.exits))
        names = as_names(groups, "groups")
        if len(names) != count:
            raise InvalidValueError(
                f"groups has {len(names)} names for {count} rows: pass one for each."
            )
        found, places = np.unique(names, return_inverse=True)
        never = np.full(self.exits, np.inf)
        table = [own.get(str(name), never) for name in found.tolist()]
        return np.asarray(np.reshape(table, (-1, self.exits))[places])

    def of_item(self, group: Any) -> Floats:
        """The thresholds of one item, by its `group`."""
        return np.asarray(self.of_rows(1, None if group is None else [group])[0])

    def shown(self, exit_: int) -> str:
        """The threshold of an exit, for people."""
        if isinstance(self.values, dict):
            return f"own of {len(self.values)} groups"
        return repr(float(self.values[exit_]))

    def required(self, groups: Any, what: str) -> dict[str, Floats] | None:
        """The thresholds by group, None if they are common; raises unless `groups` are there if and
        only if thresholds depend on them.
        """
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
        raise InvalidTypeError.of(
            "models", models, "a list of models, the fast one first and the slow one last"
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
    # Not by arrays: a network that answers in a millisecond asks this before every answer.
    for where, value in enumerate(thresholds.tolist()):
        if not (0 <= value <= 1 or value == np.inf):
            raise InvalidValueError(
                f"{name}[{where}] is {value}: expected 0 to 1, or +inf for a model that never "
                "answers."
            )
    return thresholds


@dataclass(frozen=True)
class Answers:
    """Labels and confidences of a batch, from a model without probabilities over classes; the last
    model needs no confidence.

    Parameters
    ----------
    labels : array-like of shape (n,)
        The label of each row: numbers or text.
    confidence : array-like of shape (n,), optional
        How sure the model is of each, from 0 to 1.

    Examples
    --------
    >>> Answers(["refund", "greeting"], [0.98, 0.61])
    Answers(labels=['refund', 'greeting'], confidence=[0.98, 0.61])
    """

    labels: Any
    confidence: Any = None


@dataclass(frozen=True)
class Answer:
    """The label and the confidence of one item; the last model of a cascade needs no confidence.

    Parameters
    ----------
    label : any
        The label: a number, text, or an object such as parsed JSON.
    confidence : float, optional
        How sure the model is of it, from 0 to 1.

    Examples
    --------
    >>> Answer("refund", 0.98)
    Answer(label='refund', confidence=0.98)
    """

    label: Any
    confidence: Any = None


@dataclass(frozen=True)
class SaidByModel:
    """What a model said: a label and a confidence per row, NaN where none was given, and how many
    classes it knows.
    """

    labels: Array
    confidence: Floats
    n_classes: int | None = None

    @property
    def kind(self) -> str:
        """What the labels are."""
        return {"U": "text", "T": "text", "O": "objects"}.get(self.labels.dtype.kind, "numbers")


def read_batch(stage: Stage, output: Any, rows: Rows, classes: Array | None) -> SaidByModel:
    """What `stage` said about `rows`, from what its model gave back for them."""
    with _explained(stage, f"gave {len(rows)} rows no answer"):
        if isinstance(output, Answers):
            return _read_answers(stage, output, rows)
        _refuse_bare(output, "Answers(labels, confidence)")
        return _read_table(stage, output, rows, classes)


def read_item(stage: Stage, output: Any, item: int, classes: Array | None) -> SaidByModel:
    """What `stage` said about one item: an `Answer`, or one probability per class."""
    rows = np.array([item])
    with _explained(stage, f"gave item {item} no answer", row=item):
        if isinstance(output, Answer):
            given = _on_host(output.confidence)
            confidence = None if given is None else as_array(given, "confidence").reshape(-1)
            return SaidByModel(
                _one_label(stage, output.label, item), _scores(stage, confidence, rows)
            )
        _refuse_bare(output, "Answer(label, confidence)")
        probabilities = as_array(_on_host(output), "probabilities")
        if probabilities.ndim != 1:
            raise InvalidValueError(
                f"shape {probabilities.shape}: expected one probability per class, or an Answer."
            )
        return _read_table(stage, probabilities[None, :], rows, classes)


@contextmanager
def _explained(stage: Stage, what: str, row: int | None = None) -> Iterator[None]:
    """Say of an output that cannot be read which model gave it, and for what."""
    try:
        yield
    except (InvalidValueError, InvalidTypeError) as error:
        raise stage.error(f"{what}: {error}", row=row) from error


def _refuse_bare(output: Any, remedy: str) -> None:
    if isinstance(output, str | tuple):
        kind = "plain text" if isinstance(output, str) else "a tuple, which could mean many things"
        raise InvalidTypeError(f"{kind}: return {remedy}.")


def require_same_classes(
    earlier: Sequence[tuple[Stage, SaidByModel]], stage: Stage, reading: SaidByModel
) -> None:
    """Raise if the answers of `stage` are of another kind, or over other classes, than those of the
    models before it.
    """
    for before, said in earlier:
        if said.kind != reading.kind:
            raise stage.error(
                f"answers with {reading.kind}, but model {before} with {said.kind}: name classes "
                "one way."
            )
        if None not in (said.n_classes, reading.n_classes) and said.n_classes != reading.n_classes:
            raise stage.error(
                f"knows {reading.n_classes} classes, but model {before} knows {said.n_classes}: "
                "expected the same classes, in the same columns."
            )


def _read_answers(stage: Stage, output: Answers, rows: Rows) -> SaidByModel:
    labels = as_column(_on_host(output.labels), "labels")
    if len(labels) != len(rows):
        raise stage.error(f"gave {len(labels)} labels for {len(rows)} rows.")
    if labels.dtype.kind not in "biufUT":
        raise InvalidTypeError(f"labels of dtype {labels.dtype}: expected numbers or strings.")
    return SaidByModel(labels, _scores(stage, output.confidence, rows))


def _read_table(stage: Stage, output: Any, rows: Rows, classes: Array | None) -> SaidByModel:
    table = numeric(as_array(_on_host(output), "probabilities"), "probabilities")
    if table.ndim != 2 or len(table) != len(rows) or not table.shape[1]:
        hint = (
            " For two classes, return both columns: 1 - p and p."
            if table.shape == (len(rows),)
            else ""
        )
        raise stage.error(
            f"gave shape {table.shape} for {len(rows)} rows: expected ({len(rows)}, classes).{hint}"
        )
    if table.shape[1] == 1:
        raise stage.error(f"gave shape {table.shape}, {ONE_SCORE}.")
    if classes is not None and len(classes) != table.shape[1]:
        raise stage.error(f"knows {table.shape[1]} classes, but {len(classes)} names were given.")
    if table.min() < 0:
        _refuse(stage, table.min(axis=1), rows, "probability")
    confidence, labels = np.empty(len(table)), np.empty(len(table), dtype=np.intp)
    for start, top, label in top_blocks(table):
        confidence[start : start + len(top)] = top
        labels[start : start + len(top)] = label
    return SaidByModel(
        labels if classes is None else classes[labels],
        _checked_scores(stage, confidence, rows),
        table.shape[1],
    )


def _scores(stage: Stage, confidence: Any, rows: Rows) -> Floats:
    if confidence is None:
        if not stage.last:
            raise stage.error(
                "gave no confidence, without which nothing can exit: only the last model needs "
                "none."
            )
        return np.full(len(rows), np.nan)
    scores = as_score_column(_on_host(confidence), "confidence").astype(np.float64)
    if len(scores) != len(rows):
        raise stage.error(f"gave {len(scores)} confidences for {len(rows)} rows.")
    return _checked_scores(stage, scores, rows)


def _checked_scores(stage: Stage, scores: Floats, rows: Rows) -> Floats:
    if not ((scores >= 0) & (scores <= 1 + ROUNDING)).all():
        _refuse(stage, scores, rows, "confidence")
    return np.minimum(scores, 1.0)


def _refuse(stage: Stage, scores: Array, rows: Rows, what: str) -> None:
    bad = np.flatnonzero(~((scores >= 0) & (scores <= 1 + ROUNDING)))
    value, row = scores[bad[0]], int(rows[bad[0]])
    hint = "" if np.isnan(value) else f" {score_hint(value)}"
    more = f" ({len(bad)} such {stage.unit}s)" if len(bad) > 1 else ""
    raise stage.error(
        f"gave {what} {value} for {stage.unit} {row}{more}: expected 0 to 1.{hint}", row=row
    )


def _one_label(stage: Stage, label: Any, item: int) -> Array:
    if label is None:
        raise stage.error(f"gave item {item} no label.", row=item)
    if isinstance(label, (str, bool, int, float, np.generic)):
        return np.array([label])
    return np.fromiter([label], dtype=object, count=1)


def _on_host(values: Any) -> Any:
    """A tensor on any device, with or without a gradient, as one that NumPy can read."""
    if hasattr(values, "detach"):
        values = values.detach()
    return values.cpu() if hasattr(values, "cpu") else values
