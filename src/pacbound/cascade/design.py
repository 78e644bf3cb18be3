"""Choosing a cascade among many models, and certifying it on the rows that had no part in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite, log, sqrt
from typing import Any, Unpack

import numpy as np

from pacbound.cascade.design_search import Fold, Tried, declared_sequence, search
from pacbound.cascade.model_table import ModelTable
from pacbound.cascade.rows import CLASSES, ReadingOptions
from pacbound.claims.cascade import CLAIM, CascadeCertificate, certify_declared
from pacbound.claims.provenance import about_texts, sample_name
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.procedures.cascade import LARGEST_COST, Declared
from pacbound.sources.batches import part_of
from pacbound.sources.notation import OPTIONS as NOTATION
from pacbound.sources.paths import are_paths
from pacbound.stats.arguments import (
    real_number,
    real_numbers,
    whole_number,
)
from pacbound.tally.columns import Integers
from pacbound.tally.grades import Graded
from pacbound.tally.keyed_numbers import seed_of
from pacbound.tally.questions.cascade import MOST_EXITS
from pacbound.tally.row_options import RowOptions

_OPTIONS = (
    *CLASSES,
    "unrelated_labels",
    "quality_scale",
    "graded_by",
    "progress",
    "about",
    "sample",
    "seed",
)


@dataclass(frozen=True)
class CascadeDesign:
    """A cascade that was chosen among many models, and the certificate of it.

    What holds is the certificate, for `models` in this order. All that was tried is an estimate on
    the fold that chose, and too good to be true: the best of many.

    Attributes
    ----------
    models : tuple of int
        The places of the chosen models, in the order in which they are asked, the slow one last.
    names : tuple of str or None
        The columns of their predictions; None for arrays.
    certificate : CascadeCertificate
        Thresholds for them, certified on the rows outside of the fold.
    tried : tuple of Tried
        The cascades that were looked at closely, cheapest first.
    searched : int
        How many sets of exits were looked at.
    slow_cost : float
        What the slow model costs by itself.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> label = rng.integers(0, 10, size=5000)
    >>> confidence = rng.beta(5, 1, size=(5000, 3))
    >>> right = rng.random((5000, 3)) < confidence ** [1.0, 0.6, 0.1]
    >>> prediction = np.where(right, label[:, None], label[:, None] + 1)
    >>> design = design_cascade(
    ...     confidence, prediction, label, costs=[1, 4, 20], xi=0.05, delta=0.01
    ... )
    >>> design.models[-1], design.certificate.certified, design.saved > 0.2
    (2, True, True)
    >>> sorted(design.table())
    ['cost', 'loss', 'models', 'saved']
    """

    models: tuple[int, ...]
    names: tuple[str, ...] | None
    certificate: CascadeCertificate
    tried: tuple[Tried, ...]
    searched: int
    slow_cost: float

    @property
    def saved(self) -> float:
        """The share of the slow model's cost that was saved on the rows that certified;
        descriptive.
        """
        return 1 - (self.certificate.expected_cost or 0.0) / self.slow_cost

    def table(self) -> dict[str, list[Any]]:
        """What was tried, as columns that any data frame takes.

        Returns
        -------
        dict of lists
            `models`, `cost`, `saved` (the share of the slow model's cost) and `loss`, a row for
            each of `tried`. A cost is +inf where no thresholds lose little enough.

        Examples
        --------
        >>> tried = (Tried((0, 2), 2.0, 0.01), Tried((1, 2), 5.0, 0.02))
        >>> design = CascadeDesign((0, 2), None, None, tried, 2, 8.0)
        >>> design.table()["saved"]
        [0.75, 0.375]
        """
        return {
            "models": [list(each.models) for each in self.tried],
            "cost": [each.cost for each in self.tried],
            "saved": [1 - each.cost / self.slow_cost for each in self.tried],
            "loss": [each.loss for each in self.tried],
        }


def design_cascade(  # noqa: PLR0913
    confidence: Any,
    prediction: Any = None,
    label: Any = None,
    *,
    quality: Any = None,
    costs: Any,
    xi: float,
    delta: float,
    last: int | str | None = None,
    most: int = 4,
    fold: float = 0.2,
    contain: Sequence[int | str] = (),
    first: int | str | None = None,
    data: Any = None,
    **rows: Unpack[RowOptions],
) -> CascadeDesign:
    """Choose a cascade among many models, and certify with probability at least 1 - `delta` that it
    loses at most `xi` accuracy against its slow model.

    A fold of the rows, drawn by `seed`, chooses everything: the models, their order, and the
    sequence in which thresholds are tried. All other rows certify, at the full `delta`: the
    sequence is walked to its first failure. Given the fold the sequence is fixed, so nothing is
    paid for how much was searched. The rows must be independent draws from the data the model will
    meet in use, untouched by training, and `xi`, `delta` and their number fixed without a look
    at them. To try several seeds, or several `xi`, and keep the best result voids the guarantee.
    What is certified is `xi`; costs and the savings are descriptive, and `certified_cost` bounds
    them.

    The search covers all pairs of a fast model and the slow one. It covers all sets of two, three
    and more fast models in the order of rising cost, as long as there are at most 10,000 of a size,
    and beyond that those that extend the best smaller ones. The 24 best are looked at in all
    orders. Only models that are cheaper than the slow one are taken as exits. It is a search on
    estimates: there may be a cheaper cascade.

    Parameters
    ----------
    confidence
        (n, M) scores in [0, 1] of all models, the slow one included; with `data`, the names of
        their columns.
    prediction
        (n, M) predicted classes.
    label
        (n,) true classes. In the fold they are needed where not all models predict the same, and
        elsewhere only where the chosen models differ; otherwise they may be missing (None, NaN).
    quality
        (n, M) numbers from 0 to 1, how good each answer is, in the place of labels: see
        `certify_cascade`. They are needed where labels would be. Predictions may be left out; then
        all models differ everywhere.
    costs
        M numbers: what each model costs a row by itself, not added up along a cascade as in
        `certify_cascade`.
    xi
        The accuracy that may be lost.
    delta
        The chance that the cascade loses more than that.
    last
        The slow model, which the loss is against: its place from 0, or the name of its prediction
        column. If it is left out, it is the model that is right most often in the fold, and of
        equals the cheapest.
    most
        The largest number of models, the slow one included: 2 to 6.
    fold
        The share of the rows that chooses. They certify nothing.
    contain
        Models that must be among those before the slow one.
    first
        The model that must be asked first.
    data
        The paths of files.
    **rows
        How rows are read, see `RowOptions`: `seed`, what draws the fold, drawn by the operating
        system if left out; `classes`, `missing`,
        `unseen_labels` and `unrelated_labels`; `quality_scale` and `graded_by`; `progress`, called
        with the share of the work that is done; `about` and `sample`; and for files `delimiter`,
        `decimal` and `scale`.

    Returns
    -------
    CascadeDesign
        The chosen models, their certificate, and what was tried. A refusal has a certificate whose
        `certified` is False and whose thresholds are +inf (never exit).

    Raises
    ------
    InvalidValueError, InvalidTypeError
        If costs are not positive numbers, one for each model; if no model is cheaper than the slow
        one; if the fold or what remains has no rows; if a label is missing where it is needed, or
        scores or classes cannot be what they should be.

    Examples
    --------
    >>> import numpy as np
    >>> from pacbound.data import fashion_mnist
    >>> table = fashion_mnist()
    >>> design = design_cascade(
    ...     np.column_stack([table.confidence_fast, table.confidence_slow]),
    ...     np.column_stack([table.prediction_fast, table.prediction_slow]),
    ...     table.label,
    ...     costs=[115, 3_731],
    ...     xi=0.01,
    ...     delta=0.01,
    ... )
    >>> design.models, design.certificate.n, f"{design.saved:.0%} saved"
    ((0, 1), 16000, '62% saved')
    """
    asked = CLAIM.wishes({"xi": xi, "delta": delta})
    rate, level = asked["xi"], asked["delta"]
    _refuse_unknown(rows)
    if data is not None and not are_paths(data):
        raise InvalidTypeError(
            f"data is a {type(data).__name__}, and a design reads its rows in order from files: "
            "pass the path of a file, or collect the columns that it needs, and pass arrays."
        )
    reading = ReadingOptions.of(rows, data, _OPTIONS, "design_cascade")
    texts, name = about_texts(rows.get("about")), sample_name(rows.get("sample"))
    progress = reading.progress
    columns = {
        "confidence": confidence,
        "prediction": prediction,
        "label": label,
        "quality": quality,
    }
    graded = _graded(quality, rows)
    seed = seed_of(rows.get("seed"))
    table = (
        ModelTable.of_arrays(columns, reading.rule, graded)
        if data is None
        else ModelTable.of_files(
            data, columns, replace(reading, progress=part_of(progress, 0.0, 0.3)), graded
        )
    )
    alone = _own_costs(costs, table.models)
    chosen, rest = _split(len(table), _share(fold), seed)
    slow = None if last is None else table.place(last, "last")
    table.require_labels(chosen, range(table.models), "the fold", seed)
    if slow is None:
        right = table.mean_quality(chosen)
        slow = min(range(table.models), key=lambda m: (-right[m], alone[m]))
    begin = None if first is None else table.place(first, "first")
    must = frozenset(table.place(model, "contain") for model in contain)
    must |= frozenset() if begin is None else {begin}
    _check_choice(table, alone, slow, must, _most(most))

    folded = Fold(table.cells(chosen), table.losses(chosen, slow), alone, slow)
    # About what the certified walk loses against thresholds at xi itself.
    margin = sqrt(2 * rate * log(1 / level) / len(rest)) / 2
    target = max(0.0, rate - margin)
    later = part_of(progress, 0.3, 0.65)
    tried, searched = search(
        folded, target=target, most=most, contain=must, first=begin, progress=later
    )
    models = tried[0].models
    table.require_labels(rest, models, "the rows beside the fold", seed)
    declared = Declared(
        models,
        tuple(alone[m] for m in models),
        float(fold),
        seed,
        len(chosen),
        declared_sequence(folded, models, target=target if rate > 0 else 0.0),
    )
    certificate = certify_declared(
        table.tally(rest, models),
        declared,
        xi=rate,
        delta=level,
        columns=table.names.of(models).recorded if table.is_named else {},
    ).with_about(texts, sample=name)
    if progress is not None:
        progress(1.0)
    names = table.names.of(models).predictions if table.is_named else None
    return CascadeDesign(models, names, certificate, tried, searched, alone[slow])


def _refuse_unknown(rows: Mapping[str, Any]) -> None:
    if "claim" in rows:
        raise InvalidTypeError(
            "design_cascade has no argument 'claim': labels choose the models, and what it claims "
            "is the loss. To claim that few answers differ, name the models and use "
            "certify_cascade, on rows that had no part in choosing them."
        )
    strange = next((name for name in rows if name not in (*_OPTIONS, *NOTATION)), None)
    if strange is not None:
        raise InvalidTypeError(
            f"design_cascade has no argument {strange!r}. Where rows are not independent draws, as "
            "those of one patient are not, keep one of each first, drawn without sight of scores "
            "and labels; certify_cascade takes clusters and weights."
        )


def _graded(quality: Any, rows: Mapping[str, Any]) -> Graded | None:
    """How outcomes are graded; None if they are not."""
    if quality is not None:
        return Graded.of(rows)
    for name in ("quality_scale", "graded_by"):
        if rows.get(name) is not None:
            raise InvalidTypeError(
                f"{name} says how outcomes were graded, and none were: pass quality, or leave it "
                "out."
            )
    return None


def _own_costs(costs: Any, models: int) -> tuple[float, ...]:
    values = real_numbers(costs, "costs", "a cost")
    if len(values) != models:
        raise InvalidValueError(
            f"costs has {len(values)} values for {models} models: pass what each costs by itself, "
            "not added up along a cascade."
        )
    for place, cost in enumerate(values):
        if not (isfinite(cost) and cost > 0):
            raise InvalidValueError(
                f"costs[{place}] is {cost}: expected what that model costs a row by itself, a "
                "positive number."
            )
    if sum(values) > LARGEST_COST:
        raise InvalidValueError(f"costs add up to more than {LARGEST_COST}: use another unit.")
    return values


def _share(fold: Any) -> float:
    share = real_number(fold, "fold", "a share of the rows")
    if not 0 < share < 1:
        raise InvalidValueError(
            f"fold={fold} is not a share of the rows: expected 0 < fold < 1. For a fifth pass "
            "fold=0.2."
        )
    return share


def _most(most: Any) -> int:
    count = whole_number(most, "most", least=2)
    if count > MOST_EXITS + 1:
        raise InvalidValueError(
            f"most={count} models are too many to be counted jointly: expected 2 to "
            f"{MOST_EXITS + 1}."
        )
    return count


def _split(n: int, share: float, seed: int) -> tuple[Integers, Integers]:
    """The rows of the fold, in random order, and all others in their own.

    By the raw bits of a counter-based generator, which are the same in every version of NumPy.
    """
    size = max(1, round(n * share))
    if size >= n:
        raise InvalidValueError(
            f"fold={share} takes all of {n} rows, and none are left to certify: pass more rows, or "
            "a smaller fold."
        )
    order = np.argsort(np.random.Philox(key=seed % 2**128).random_raw(n), kind="stable")
    # A copy, so that the memory of the whole order is free again.
    return order[:size].copy(), np.sort(order[size:])


def _check_choice(
    table: ModelTable, costs: tuple[float, ...], slow: int, must: frozenset[int], most: int
) -> None:
    if table.models < 2:
        raise InvalidValueError("There is one model: a cascade needs at least two to choose from.")
    named = table.names.predictions
    if table.names.labels in named and named.index(table.names.labels) != slow:
        raise InvalidValueError(
            f"label and prediction are both {table.names.labels!r}, so that an exit would always "
            "be right: name the column of the true classes."
        )
    if slow in must:
        raise InvalidValueError(
            f"Model {slow} is the slow one, which is asked last: it cannot be among those before "
            "it."
        )
    if min(costs) >= costs[slow]:
        raise InvalidValueError(
            f"No model is cheaper than the slow one, model {slow} at {costs[slow]}: no cascade "
            "before it saves anything. Use it alone, or name another with last."
        )
    dear = [m for m in sorted(must) if costs[m] >= costs[slow]]
    if dear:
        raise InvalidValueError(
            f"Model {dear[0]} costs {costs[dear[0]]}, and the slow one, model {slow}, "
            f"{costs[slow]}: asking it first saves nothing."
        )
    if len(must) > most - 1:
        raise InvalidValueError(
            f"{len(must)} models must be there before the slow one, and most={most} allows "
            f"{most - 1}."
        )
