"""Choosing a cascade among many models: what is chosen, on which rows, and what is refused."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from itertools import permutations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pacbound import Cascade, Tally, certify_cascade, design_cascade, documents, load_certificate
from pacbound.cascade import Answer, Answers, AsyncCascade, CascadeDesign
from pacbound.cascade.design import _split
from pacbound.cascade.design_search import (
    Evaluation,
    Fold,
    _convex,
    declared_sequence,
    search,
)
from pacbound.claims.cascade import CascadeCertificate, certify_declared
from pacbound.claims.certificate import certificate_from_dict
from pacbound.errors import CertificateError, InvalidTypeError, InvalidValueError, PacboundError
from pacbound.procedures.cascade_front import Declared, never_cell
from pacbound.tally import columns

Rows = dict[str, Any]

N = 3000
COSTS = [1.0, 4.0, 3.0, 20.0, 30.0]


@pytest.fixture(scope="module")
def rows() -> Rows:
    """Five models; the fourth is the best, the fifth is dear and no better than the second."""
    rng = np.random.default_rng(0)
    ease = rng.normal(size=(N, 1))
    own = ease + 0.5 * rng.normal(size=(N, 5))
    right = own > np.array([-0.6, -1.1, -0.9, -1.8, -1.1])
    labels = rng.integers(0, 10, size=N)
    predictions = np.where(right, labels[:, None], (labels[:, None] + 1) % 10)
    confidences = 1 / (1 + np.exp(-(1.2 + 1.5 * own + 0.4 * rng.normal(size=(N, 5)))))
    return {"confidence": confidences, "prediction": predictions, "label": labels}


@pytest.fixture(scope="module")
def design(rows: Rows) -> CascadeDesign:
    return design_cascade(**rows, costs=COSTS, xi=0.05, delta=0.05, seed=3)


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_rows_that_are_looked_at_in_blocks_give_the_same_design(
    monkeypatch: pytest.MonkeyPatch, rows: Rows, kind: type
) -> None:
    given = {**rows, "confidence": rows["confidence"].astype(kind), "label": rows["label"] * 1.0}
    options: Rows = {"costs": COSTS, "xi": 0.05, "delta": 0.05, "seed": 0}
    whole = design_cascade(**given, **options)
    monkeypatch.setattr(columns, "BLOCK", 100)
    parts = design_cascade(**given, **options)
    assert parts.models == whole.models
    assert parts.certificate.provenance.sources == whole.certificate.provenance.sources
    assert parts.certificate.to_dict()["claim"] == whole.certificate.to_dict()["claim"]
    bad = {**given, "confidence": np.where(np.arange(N)[:, None] < 500, given["confidence"], 7)}
    with pytest.raises(InvalidValueError, match=r"confidence\[:, 0\]\[500\] .*2500 such"):
        design_cascade(**bad, **options)


def test_the_slow_model_is_the_most_accurate_of_the_fold(design: CascadeDesign) -> None:
    assert design.models[-1] == 3
    assert 4 not in design.models
    assert design.slow_cost == 20.0
    assert design.certificate.certified
    assert design.saved > 0.4


def test_fold_and_rest_are_disjoint_and_the_rest_is_what_is_certified(
    design: CascadeDesign, rows: Rows
) -> None:
    fold, rest = _split(N, 0.2, 3)
    assert len(fold) == 600
    assert sorted([*fold.tolist(), *rest.tolist()]) == list(range(N))
    certificate = design.certificate
    assert certificate.n == 2400
    assert certificate.declared is not None
    assert (certificate.declared.rows, certificate.declared.seed) == (600, 3)
    assert certificate.declared.models == design.models
    exits = list(design.models[:-1])
    tally = Tally.count(
        "cascade",
        confidence=rows["confidence"][rest][:, exits],
        prediction=rows["prediction"][rest][:, list(design.models)],
        label=rows["label"][rest],
    )
    again = certify_declared(tally, certificate.declared, xi=0.05, delta=0.05)
    assert again.claim_digest == certificate.claim_digest
    assert certificate.provenance.sources
    assert tally.sources >= set(certificate.provenance.sources)


def test_rows_outside_of_the_fold_have_no_part_in_the_choice(
    design: CascadeDesign, rows: Rows
) -> None:
    _, rest = _split(N, 0.2, 3)
    changed = {name: column.copy() for name, column in rows.items()}
    shuffled = np.random.default_rng(1).permutation(rest)
    for column in changed.values():
        column[rest] = column[shuffled]
    changed["confidence"][rest] = changed["confidence"][rest][:, ::-1]
    other = design_cascade(**changed, costs=COSTS, xi=0.05, delta=0.05, seed=3)
    assert other.models == design.models
    assert other.tried == design.tried
    assert other.certificate.declared is not None
    assert design.certificate.declared is not None
    np.testing.assert_array_equal(
        other.certificate.declared.cells, design.certificate.declared.cells
    )


def test_another_seed_draws_another_fold() -> None:
    assert set(_split(100, 0.2, 0)[0]) != set(_split(100, 0.2, 1)[0])
    # These rows must never change: a design can be repeated years later.
    assert _split(20, 0.25, 1)[0].tolist() == [3, 5, 2, 9, 7]


def test_labels_are_needed_only_where_predictions_differ(design: CascadeDesign, rows: Rows) -> None:
    fold, _ = _split(N, 0.2, 3)
    predictions = rows["prediction"]
    labels = rows["label"].astype(float)
    chosen = predictions[:, list(design.models)]
    needed = (chosen != chosen[:, -1:]).any(axis=1)
    needed[fold] = (predictions[fold] != predictions[fold][:, -1:]).any(axis=1)
    same = design_cascade(
        rows["confidence"],
        predictions,
        np.where(needed, labels, np.nan),
        costs=COSTS,
        xi=0.05,
        delta=0.05,
        seed=3,
    )
    assert needed.mean() < 0.7
    assert same.certificate.claim_digest == design.certificate.claim_digest
    labels[fold[np.flatnonzero(needed[fold])[0]]] = np.nan
    with pytest.raises(InvalidValueError, match=r"1 rows of the fold have no label in label "):
        design_cascade(
            rows["confidence"], predictions, labels, costs=COSTS, xi=0.05, delta=0.05, seed=3
        )


def test_a_label_missing_beside_the_fold_is_named_by_its_row(
    design: CascadeDesign, rows: Rows
) -> None:
    _, rest = _split(N, 0.2, 3)
    chosen = rows["prediction"][:, list(design.models)]
    where = rest[np.flatnonzero((chosen != chosen[:, -1:]).any(axis=1)[rest])[5]]
    labels = rows["label"].astype(float)
    labels[where] = np.nan
    with pytest.raises(InvalidValueError, match=rf"1 rows of the rows.*first rows: {where}\)"):
        design_cascade(
            rows["confidence"],
            rows["prediction"],
            labels,
            costs=COSTS,
            xi=0.05,
            delta=0.05,
            seed=3,
        )


@pytest.mark.parametrize(
    ("given", "holds"),
    [
        ({"last": 4}, lambda models: models[-1] == 4),
        ({"most": 2}, lambda models: len(models) == 2),
        ({"contain": [2]}, lambda models: 2 in models[:-1]),
        ({"first": 1}, lambda models: models[0] == 1),
        ({"first": 1, "contain": [0, 2]}, lambda models: models[0] == 1 and len(models) == 4),
        ({"first": 1, "most": 2}, lambda models: models == (1, 3)),
    ],
)
def test_parts_of_the_cascade_can_be_fixed(rows: Rows, given: dict[str, Any], holds: Any) -> None:
    found = design_cascade(**rows, costs=COSTS, xi=0.05, delta=0.05, **given)
    assert holds(found.models)
    assert all(holds(each.models) for each in found.tried)
    assert found.certificate.certified


def test_what_was_tried_is_sorted_and_fits_a_frame(design: CascadeDesign) -> None:
    polars = pytest.importorskip("polars")
    costs = [each.cost for each in design.tried]
    assert costs == sorted(costs)
    assert design.tried[0].models == design.models
    frame = polars.DataFrame(design.table())
    assert frame.columns == ["models", "cost", "saved", "loss"]
    assert frame["models"][0].to_list() == list(design.models)
    # 3 sets of one exit, 3 of two, 1 of three: models 0, 1 and 2 are cheaper than the slow one.
    assert design.searched == 7


def small_fold(seed: int, models: int = 4, rows: int = 60) -> Fold:
    rng = np.random.default_rng(seed)
    losses = rng.choice([-1, 0, 1], p=[0.1, 0.7, 0.2], size=(rows, models))
    losses[:, -1] = 0
    cells = rng.integers(0, 65537, size=(rows, models))
    return Fold(cells, losses, (1.0, 3.0, 2.0, 10.0), models - 1)


@pytest.mark.parametrize("exits", [(0,), (1, 0), (0, 2, 1)])
def test_the_table_of_all_thresholds_is_that_of_routing_row_by_row(exits: tuple[int, ...]) -> None:
    fold = small_fold(len(exits))
    evaluation = Evaluation(fold, len(exits), 5)
    cost, loss = evaluation.table(exits)
    levels = [evaluation._levels[m].thresholds for m in exits]
    assert cost.shape == loss.shape == tuple(map(len, levels))
    shift = 0 if len(exits) == 1 else 6
    for place in product(*map(range, cost.shape)):
        vector = [int(level[at]) for level, at in zip(levels, place, strict=True)]
        total, lost = 0.0, 0
        for row, losses in zip(fold.cells >> shift, fold.losses, strict=True):
            for m, threshold in zip(exits, vector, strict=True):
                if threshold == never_cell(len(exits)):
                    continue
                total += fold.costs[m]
                if row[m] >= threshold:
                    lost += losses[m]
                    break
            else:
                total += fold.costs[-1]
        assert cost[place] == pytest.approx(total / 60)
        assert loss[place] == pytest.approx(lost / 60)
        assert evaluation.at(exits, np.array(vector)) == pytest.approx((total / 60, lost / 60))


@pytest.mark.parametrize("seed", range(5))
def test_the_search_finds_the_cheapest_of_all_orders(seed: int) -> None:
    fold = small_fold(seed)
    found = search(fold, target=0.02, most=4)
    every = [
        Evaluation(fold, size, {1: 256, 2: 96, 3: 32}[size]).best(order, 0.02)
        for size in (1, 2, 3)
        for order in permutations(range(3), size)
    ]
    assert found.tried[0].rank == min(each.rank for each in every)
    assert len(found.tried) == len(every) == 15


def test_more_sets_than_can_be_tried_are_those_that_extend_the_best(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from pacbound.cascade import design_search

    rng = np.random.default_rng(0)
    models = 12
    losses = rng.choice([0, 1], p=[0.8, 0.2], size=(80, models))
    costs = (*(float(m) for m in range(1, models)), 50.0)
    fold = Fold(rng.integers(0, 65537, size=(80, models)), losses, costs, models - 1)
    monkeypatch.setattr(design_search, "MOST_SUBSETS", 60)
    monkeypatch.setattr(design_search, "KEPT", 3)
    shares: list[float] = []
    found = search(fold, target=0.1, most=4, progress=shares.append)
    # 11 of one exit, 55 of two, and at most 3 x 9 of three.
    assert 66 < found.searched <= 66 + 27
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


def test_the_declared_sequence_is_distinct_and_its_cost_falls() -> None:
    fold = small_fold(1)
    for target in (0.0, 0.05):
        steps = declared_sequence(fold, (0, 2, 3), target=target)
        assert len({tuple(step) for step in steps.T.tolist()}) == steps.shape[1]
        assert (steps >= 0).all()
        assert (steps <= never_cell(2)).all()
        assert not (steps == never_cell(2)).all(axis=0).any()
        evaluation = Evaluation(fold, 2, 96)
        seen = [evaluation.at((0, 2), step) for step in steps.T]
        assert all(cost < 10.0 for cost, _ in seen)
        first = next(place for place, (_, loss) in enumerate(seen) if loss == seen[0][1])
        if target == 0.0:
            costs = [cost for cost, _ in seen[first:]]
            assert costs == sorted(costs, reverse=True)
            assert seen[0][1] == min(loss for _, loss in seen)


def test_corners_of_a_front_are_those_of_its_hull() -> None:
    loss = np.array([0.0, 1.0, 2.0, 3.0, 4.0])
    cost = np.array([10.0, 9.5, 4.0, 3.9, 0.0])
    assert _convex(cost, loss) == [0, 2, 4]
    assert _convex(cost[:1], loss[:1]) == [0]


def test_a_cascade_runs_on_a_design(design: CascadeDesign, rows: Rows) -> None:
    def model(m: int) -> Any:
        def answer(places: Any) -> Answers:
            return Answers(rows["prediction"][places, m], rows["confidence"][places, m])

        return answer

    models = [model(m) for m in design.models]
    cascade = Cascade(models, design.certificate)
    _, rest = _split(N, 0.2, 3)
    result = cascade.run(rest)
    counts = np.bincount(result.exits, minlength=len(models))
    np.testing.assert_array_equal(counts[:-1], design.certificate.exit_counts)

    def single(m: int) -> Any:
        async def answer(place: int) -> Answer:
            return Answer(int(rows["prediction"][place, m]), float(rows["confidence"][place, m]))

        return answer

    remote = AsyncCascade([single(m) for m in design.models], design.certificate)
    routed = asyncio.run(remote.run(rest[:50].tolist()))
    np.testing.assert_array_equal(routed.exits, result.exits[:50])
    np.testing.assert_array_equal(routed.predictions, result.predictions[:50])


def test_a_tally_that_does_not_fit_the_sequence_is_refused() -> None:
    declared = Declared((0, 1), (1.0, 2.0), 0.2, 0, 9, np.array([[60000]]))
    given: Rows = {"confidence": [0.9] * 99, "prediction": [[0, 1]] * 99}
    with pytest.raises(InvalidValueError, match="without a label where predictions differ"):
        certify_declared(Tally.count("cascade", **given), declared, xi=0.05, delta=0.05)
    three = Tally.count(
        "cascade", confidence=np.ones((9, 2)), prediction=np.zeros((9, 3), int), label=[0] * 9
    )
    with pytest.raises(InvalidValueError, match="2 exits, and the declared sequence 1"):
        certify_declared(three, declared, xi=0.05, delta=0.05)


def test_a_model_whose_exit_is_not_used_is_not_called() -> None:
    tally = Tally.count(
        "cascade",
        confidence=np.full((900, 2), 0.9),
        prediction=np.zeros((900, 3), int),
        label=[0] * 900,
    )
    declared = Declared((0, 1, 2), (1.0, 2.0, 7.0), 0.2, 0, 9, np.array([[1025], [500]]))
    certificate = certify_declared(tally, declared, xi=0.05, delta=0.05)

    def unused(_: Any) -> Any:
        raise AssertionError("this model is not asked")

    def sure(rows: Any) -> Any:
        return np.tile([0.9, 0.1], (len(rows), 1))

    assert Cascade([unused, sure, unused], certificate).predict_exits([1, 2]).tolist() == [1, 1]


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"costs": [1, 2, 3]}, InvalidValueError, "3 values for 5 models.*not added up"),
        ({"costs": [1, 4, -3, 20, 30]}, InvalidValueError, r"costs\[2\] is -3.*by itself"),
        ({"costs": [1, 4, 0, 20, 30]}, InvalidValueError, r"costs\[2\] is 0"),
        ({"costs": [1, 4, np.nan, 20, 30]}, InvalidValueError, "costs is NaN"),
        ({"costs": [1, 4, np.inf, 20, 30]}, InvalidValueError, r"costs\[2\] is inf"),
        ({"costs": [1e300] * 5}, InvalidValueError, "another unit"),
        ({"costs": None}, InvalidTypeError, "costs=None is not a cost"),
        ({"costs": ["a"] * 5}, InvalidTypeError, "not a cost"),
        ({"costs": [5] * 5}, InvalidValueError, "No model is cheaper than the slow one"),
        ({"last": 0}, InvalidValueError, "No model is cheaper.*model 0 at 1"),
        ({"last": 9}, InvalidValueError, "last=9 is not a model: there are 5"),
        ({"last": -1}, InvalidValueError, "last holds -1"),
        ({"last": "slow"}, InvalidValueError, "arrays have none"),
        ({"contain": [3]}, InvalidValueError, "Model 3 is the slow one"),
        ({"contain": [4]}, InvalidValueError, "Model 4 costs 30.*saves nothing"),
        ({"contain": [0, 1, 2], "most": 3}, InvalidValueError, "most=3 allows 2"),
        ({"first": 3}, InvalidValueError, "Model 3 is the slow one"),
        ({"most": 1}, InvalidValueError, "most holds 1"),
        ({"most": 7}, InvalidValueError, "too many to be counted jointly: expected 2 to 6"),
        ({"fold": 0}, InvalidValueError, "expected 0 < fold < 1"),
        ({"fold": 1.0}, InvalidValueError, "expected 0 < fold < 1"),
        ({"fold": 0.99999}, InvalidValueError, "takes all of 3000 rows"),
        ({"fold": np.nan}, InvalidValueError, "fold is NaN"),
        ({"seed": "0"}, InvalidTypeError, "seed='0' is not a seed"),
        ({"seed": 0.5}, InvalidTypeError, "seed=0.5 is not a seed"),
        ({"xi": 1.0}, InvalidValueError, "xi=1.0 is not a rate"),
        ({"delta": 0.0}, InvalidValueError, "not a failure probability"),
        ({"label": None}, InvalidTypeError, "label is missing"),
        ({"prediction": None}, InvalidTypeError, "prediction is missing"),
        ({"clusters": [0]}, InvalidTypeError, "no argument 'clusters'.*keep one of each first"),
    ],
)
def test_what_cannot_be_is_refused_with_a_remedy(
    rows: Rows,
    change: dict[str, Any],
    error: type[PacboundError],
    message: str,
) -> None:
    given: dict[str, Any] = {**rows, "costs": COSTS, "xi": 0.05, "delta": 0.05} | change
    with pytest.raises(error, match=message):
        design_cascade(**given)


def test_tables_that_do_not_fit_are_refused(rows: Rows) -> None:
    confidences, predictions, labels = rows.values()
    options: dict[str, Any] = {"costs": COSTS, "xi": 0.05, "delta": 0.05}
    with pytest.raises(InvalidValueError, match=r"\(3000, 4\).*the slow one included"):
        design_cascade(confidences[:, :4], predictions, labels, **options)
    with pytest.raises(InvalidValueError, match="Rows do not match"):
        design_cascade(confidences[:9], predictions, labels, **options)
    with pytest.raises(InvalidValueError, match="one model"):
        design_cascade(
            confidences[:, :1], predictions[:, :1], labels, costs=[1], xi=0.05, delta=0.05
        )
    bad = confidences.copy()
    bad[17, 2] = np.nan
    with pytest.raises(InvalidValueError, match=r"confidence\[:, 2\]\[17\] is nan"):
        design_cascade(bad, predictions, labels, **options)
    lacking = predictions.astype(object)
    lacking[8, 1] = None
    with pytest.raises(InvalidValueError, match=r"prediction\[:, 1\]\[8\] is missing"):
        design_cascade(confidences, lacking, labels, **options)
    for few in (0, 1):
        with pytest.raises(InvalidValueError):
            design_cascade(confidences[:few], predictions[:few], labels[:few], **options)


def test_models_that_are_all_the_same_need_no_cascade() -> None:
    """The cheapest is as accurate as any, so it is the slow one, and nothing is cheaper."""
    options: dict[str, Any] = {"costs": [3, 2, 5], "xi": 0.05, "delta": 0.05}
    same = np.full((600, 3), 0.9), np.zeros((600, 3), int), np.zeros(600, int)
    with pytest.raises(InvalidValueError, match=r"model 1 at 2.*Use it alone"):
        design_cascade(*same, **options)
    found = design_cascade(*same, **options, last=2)
    assert found.models == (1, 2)
    assert found.certificate.exit_rates.tolist() == [1.0]
    assert found.saved == pytest.approx(1 - 2 / 5)


def test_a_design_whose_last_exit_takes_all_says_that_it_replaces_the_slow_model() -> None:
    rng = np.random.default_rng(0)
    own = rng.normal(size=(N, 1)) + 0.5 * rng.normal(size=(N, 3))
    labels = rng.integers(0, 10, size=N)
    wrong = own <= np.array([-0.6, -1.6, -1.8])
    scores = 1 / (1 + np.exp(-1.2 - 1.5 * own))
    found = design_cascade(
        scores,
        (labels[:, None] + wrong) % 10,
        labels,
        costs=[1, 4, 20],
        xi=0.05,
        delta=0.05,
    )
    assert found.models == (0, 1, 2)
    assert found.certificate.thresholds[0] > found.certificate.thresholds[1] == 0
    said = "The slow model is never asked: model 1 and model 2 replace it."
    assert said in found.certificate.summary()


def test_a_model_that_is_never_right_is_not_chosen(rows: Rows) -> None:
    predictions = rows["prediction"].copy()
    predictions[:, 0] = (rows["label"] + 5) % 10
    found = design_cascade(
        rows["confidence"],
        predictions,
        rows["label"],
        costs=COSTS,
        xi=0.05,
        delta=0.05,
    )
    assert 0 not in found.models


def test_classes_of_another_spelling_are_refused(rows: Rows) -> None:
    names = np.array([f"class {c}" for c in range(10)])
    labels = np.char.upper(names)[rows["label"]]
    with pytest.raises(InvalidValueError, match="upper and lower case"):
        design_cascade(
            rows["confidence"],
            names[rows["prediction"]],
            labels,
            costs=COSTS,
            xi=0.05,
            delta=0.05,
            last=3,
        )


@pytest.mark.parametrize("xi", [0.0, 0.001, 0.3])
@pytest.mark.parametrize("n", [2, 3, 10, 200])
def test_few_rows_are_designed_and_refused_without_a_fuss(rows: Rows, n: int, xi: float) -> None:
    few = {name: column[:n] for name, column in rows.items()}
    found = design_cascade(**few, costs=COSTS, xi=xi, delta=0.01, last=3, unseen_labels=1.0)
    assert found.certificate.n == n - max(1, round(0.2 * n))
    assert found.certificate.verify()
    if not found.certificate.certified:
        assert (found.certificate.thresholds == np.inf).all()
        assert found.saved == 0.0
        assert found.certificate.refusal is not None


def test_no_loss_can_be_certified_where_the_fold_saw_gains() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 10, size=4000)
    right = rng.random((4000, 2)) < [0.95, 0.8]
    predictions = np.where(right, labels[:, None], (labels[:, None] + [1, 2]) % 10)
    found = design_cascade(
        rng.random((4000, 2)), predictions, labels, costs=[1, 9], xi=0.0, delta=0.01, last=1
    )
    assert found.certificate.certified
    assert found.saved == pytest.approx(1 - 1 / 9)


def test_saturated_and_zero_scores_are_cells_like_others() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 10, size=3000)
    right = rng.random((3000, 3)) < [0.9, 0.92, 0.95]
    predictions = np.where(right, labels[:, None], (labels[:, None] + 1) % 10)
    scores = np.where(right, 1.0, 0.0)
    found = design_cascade(
        scores, predictions, labels, costs=[1, 2, 9], xi=0.02, delta=0.01, last=2
    )
    # A score that knows the truth: what is 1.0 is right, and leaves.
    assert found.certificate.certified
    assert found.certificate.observed_error_increase <= 0


def test_files_give_the_design_of_the_arrays(
    tmp_path: Path, design: CascadeDesign, rows: Rows
) -> None:
    columns: Rows = {f"c{m}": rows["confidence"][:, m] for m in range(5)}
    columns |= {f"p{m}": rows["prediction"][:, m] for m in range(5)} | {"y": rows["label"]}
    np.savez(tmp_path / "rows.npz", **columns)
    lines = [",".join(columns)]
    lines += [",".join(repr(v.item()) for v in row) for row in zip(*columns.values(), strict=True)]
    (tmp_path / "rows.csv").write_text("\n".join(lines) + "\n")
    for name in ("rows.npz", "rows.csv"):
        shares: list[float] = []
        found = design_cascade(
            data=tmp_path / name,
            confidence=[f"c{m}" for m in range(5)],
            prediction=[f"p{m}" for m in range(5)],
            label="y",
            costs=COSTS,
            xi=0.05,
            delta=0.05,
            seed=3,
            last="p3",
            progress=shares.append,
        )
        assert found.certificate.claim_digest == design.certificate.claim_digest
        assert found.names == tuple(f"p{m}" for m in design.models)
        recorded = found.certificate.provenance.columns
        assert recorded["prediction"] == ",".join(found.names)
        assert recorded["confidence"] == ",".join(f"c{m}" for m in design.models[:-1])
        assert shares == sorted(shares)
        assert shares[-1] == 1.0


def test_columns_that_make_no_design_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", c=[0.5] * 9, d=[0.5] * 9, p=[1] * 9, q=[1] * 9, y=[1] * 9)
    options: dict[str, Any] = {"costs": [1, 2], "xi": 0.05, "delta": 0.05}
    changes: list[tuple[dict[str, Any], str]] = [
        ({"confidence": ["c"]}, "1 confidences and 2 predictions"),
        ({"prediction": ["p", "p"]}, "named twice"),
        ({"label": None}, "label is missing: pass all columns, or quality"),
        ({"prediction": ["p", "z"]}, "no column 'z'"),
    ]
    named: dict[str, Any] = {"confidence": ["c", "d"], "prediction": ["p", "q"], "label": "y"}
    for change, message in changes:
        with pytest.raises(PacboundError, match=message):
            design_cascade(data=tmp_path / "x.npz", **named | change, **options)
    columns = named | {"label": "p"}
    with pytest.raises(InvalidValueError, match="would always be right"):
        design_cascade(data=tmp_path / "x.npz", **columns, last="q", **options)
    with pytest.raises(InvalidValueError, match=r"last='z'.*expected one of p, q"):
        design_cascade(data=tmp_path / "x.npz", **columns, last="z", **options)


def forged(certificate: CascadeCertificate, change: Any) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(json.dumps(certificate.to_dict()))
    change(document["claim"])
    document["claim_digest"] = documents.digest(document["claim"])
    with suppress(CertificateError):  # of what cannot be read there is none
        document["counts_digest"] = certificate_from_dict(document).counts_digest
    return document


def drop_the_failure(claim: dict[str, Any]) -> None:
    for key, rows in claim["tables"][0]["walks"][0].items():
        claim["tables"][0]["walks"][0][key] = [row[:-1] for row in rows]


def cut_the_sequence(claim: dict[str, Any]) -> None:
    """Stop after the first step."""
    steps = len(claim["tables"][0]["walks"][0]["cells"][0])
    claim["declared"]["cells"] = [row[: steps - 2] for row in claim["declared"]["cells"]]


def lower_the_end(claim: dict[str, Any]) -> None:
    claim["tables"][0]["thresholds"][0] = 1 / 1024


def swap_two_steps(claim: dict[str, Any]) -> None:
    for row in claim["declared"]["cells"]:
        row[0], row[1] = row[1], row[0]


def repeat_a_step(claim: dict[str, Any]) -> None:
    for row in claim["declared"]["cells"]:
        row[-1] = row[0]


def lose_fewer(claim: dict[str, Any]) -> None:
    """Move losses of the failing step away, against what the steps before it saw."""
    steps = claim["tables"][0]["walks"][0]["only_slow_added"][0]
    steps[-1] -= sum(steps)


def cheaper(claim: dict[str, Any]) -> None:
    claim["declared"]["costs"][-1] /= 2


def same_model_twice(claim: dict[str, Any]) -> None:
    claim["declared"]["models"][0] = claim["declared"]["models"][-1]


@pytest.mark.parametrize(
    "change",
    [
        drop_the_failure,
        cut_the_sequence,
        lower_the_end,
        swap_two_steps,
        repeat_a_step,
        lose_fewer,
        cheaper,
        same_model_twice,
        lambda claim: claim.pop("declared"),
        lambda claim: claim["declared"].update(cells=[[]]),
        lambda claim: claim["declared"].update(share=1.5),
        lambda claim: claim["declared"].update(rows=0),
        lambda claim: claim["declared"].update(seed="-1"),
        lambda claim: claim["declared"].update(costs=[1.0]),
        lambda claim: claim["declared"]["cells"][0].__setitem__(0, 99999),
        lambda claim: claim["declared"]["cells"][0].__setitem__(0, -1),
        lambda claim: claim.update(procedure="cascade/seven-paths/pair/1"),
        lambda claim: claim.update(procedure="cascade/two-models/pair/1"),
        lambda claim: claim.update(procedure="cascade/declared-front/exact/1", xi=0.04),
    ],
)
def test_a_forged_sequence_is_found_even_with_its_digests_mended(
    design: CascadeDesign, change: Any
) -> None:
    assert certificate_from_dict(forged(design.certificate, lambda claim: None)).verify()
    try:
        loaded = certificate_from_dict(forged(design.certificate, change))
    except CertificateError:
        return
    assert not loaded.verify()


def test_a_design_survives_its_file_and_says_which_models_it_is_for(
    tmp_path: Path, design: CascadeDesign
) -> None:
    design.certificate.save(tmp_path / "c.json")
    loaded = load_certificate(tmp_path / "c.json")
    assert isinstance(loaded, CascadeCertificate)
    assert loaded.verify()
    assert loaded.declared is not None
    assert loaded.declared.models == design.models
    assert ", ".join(map(str, design.models[:-1])) in loaded.summary()
    assert "A fold of 600 other rows" in loaded.summary()
    assert (tmp_path / "c.json").stat().st_size < 200_000


def test_two_models_lose_nothing_much_by_the_fold(rows: Rows) -> None:
    """A design of a pair, walked on 80 % of the rows, beside the walk on all rows."""
    pair = [1, 3]
    found = design_cascade(
        rows["confidence"][:, pair],
        rows["prediction"][:, pair],
        rows["label"],
        costs=[4, 20],
        xi=0.05,
        delta=0.05,
    )
    plain = certify_cascade(
        rows["confidence"][:, 1],
        rows["prediction"][:, pair],
        rows["label"],
        xi=0.05,
        delta=0.05,
    )
    assert found.models == (0, 1)
    assert found.certificate.exit_rates[0] > plain.exit_rates[0] - 0.1


def _graded(rows: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    confidence, slow = rng.random((rows, 3)), rng.choice([0.5, 0.75, 1.0], rows)
    worse = rng.random((rows, 2)) < np.array([0.4, 0.2]) * (1 - confidence[:, :2])
    return confidence, np.column_stack([np.where(worse, slow[:, None] - 0.5, slow[:, None]), slow])


def test_graded_models_are_chosen_and_certified_by_coins_of_other_rows() -> None:
    confidence, quality = _graded(1500)
    asked: dict[str, Any] = {"costs": [1, 4, 20], "xi": 0.05, "delta": 0.01}
    design = design_cascade(
        confidence, quality=quality, last=2, graded_by="people", **asked, seed=0
    )
    made = design.certificate
    assert made.certified
    assert made.verify()
    assert "as graded by people" in made.summary()
    # Coins go by the place in the whole table, so those of the fold tell nothing about the others.
    _, rest = _split(1500, 0.2, 0)
    order = list(design.models)
    tally = Tally.count(
        "cascade",
        confidence[rest][:, order[:-1]],
        quality=quality[rest][:, order],
        row_ids=rest,
        seed=0,
    )
    assert made.declared is not None
    again = certify_declared(tally, made.declared, xi=0.05, delta=0.01)
    assert again.counts_digest != made.counts_digest  # what coins know rows by is part of it
    for here, there in zip(made.tables[0].walks, again.tables[0].walks, strict=True):
        assert np.array_equal(here.only_slow, there.only_slow)
        assert np.array_equal(here.only_fast, there.only_fast)


def test_grades_that_do_not_fit_a_design_are_refused() -> None:
    confidence, quality = _graded(400)
    asked: dict[str, Any] = {"costs": [1, 4, 20], "xi": 0.05, "delta": 0.01}
    with pytest.raises(InvalidTypeError, match="both say how good answers are"):
        design_cascade(confidence, None, quality[:, 0], quality=quality, **asked, seed=0)
    answers = np.zeros((400, 3), dtype=int)
    with pytest.raises(InvalidTypeError, match="graded_by says how outcomes were graded"):
        design_cascade(confidence, answers, answers[:, 0], graded_by="me", **asked)
    with pytest.raises(InvalidValueError, match="quality of 2 models do not fit"):
        design_cascade(confidence, quality=quality[:, :2], **asked, seed=0)
    with pytest.raises(InvalidValueError, match="have no grade in one of"):
        design_cascade(confidence, quality=np.where(quality == 1, np.nan, quality), **asked, seed=0)
