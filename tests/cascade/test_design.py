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
    declared_sequence,
    search,
)
from pacbound.claims.cascade import CascadeCertificate, certify_declared
from pacbound.claims.certificate import certificate_from_dict
from pacbound.errors import CertificateError, InvalidTypeError, InvalidValueError, PacboundError
from pacbound.procedures.joint_walk import top_of
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
                if threshold > top_of(len(exits)):
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
    tried, _ = search(fold, target=0.02, most=4)
    every = [
        Evaluation(fold, size, {1: 256, 2: 96, 3: 32}[size]).best(order, 0.02)
        for size in (1, 2, 3)
        for order in permutations(range(3), size)
    ]
    assert tried[0].rank == min(each.rank for each in every)
    assert len(tried) == len(every) == 15


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
    _, searched = search(fold, target=0.1, most=4, progress=shares.append)
    # 11 of one exit, 55 of two, and at most 3 x 9 of three.
    assert 66 < searched <= 66 + 27
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


def test_the_declared_sequence_is_distinct_and_its_cost_falls() -> None:
    fold = small_fold(1)
    for target in (0.0, 0.05):
        steps = declared_sequence(fold, (0, 2, 3), target=target)
        assert len({tuple(step) for step in steps.T.tolist()}) == steps.shape[1]
        assert (steps >= 0).all()
        assert (steps <= top_of(2) + 1).all()
        assert not (steps == top_of(2) + 1).all(axis=0).any()
        evaluation = Evaluation(fold, 2, 96)
        seen = [evaluation.at((0, 2), step) for step in steps.T]
        assert all(cost < 10.0 for cost, _ in seen)
        first = next(place for place, (_, loss) in enumerate(seen) if loss == seen[0][1])
        if target == 0.0:
            costs = [cost for cost, _ in seen[first:]]
            assert costs == sorted(costs, reverse=True)
            assert seen[0][1] == min(loss for _, loss in seen)


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
        lambda claim: claim.update(procedure="cascade/paths/1"),
        lambda claim: claim.update(procedure="cascade/paths-in-groups/own/1"),
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


def test_graded_models_are_chosen_and_certified_by_other_rows() -> None:
    confidence, quality = _graded(1500)
    asked: dict[str, Any] = {"costs": [1, 4, 20], "xi": 0.05, "delta": 0.01}
    design = design_cascade(
        confidence, quality=quality, last=2, graded_by="people", **asked, seed=0
    )
    made = design.certificate
    assert made.certified
    assert made.verify()
    assert "as graded by people" in made.summary()
    _, rest = _split(1500, 0.2, 0)
    order = list(design.models)
    tally = Tally.count("cascade", confidence[rest][:, order[:-1]], quality=quality[rest][:, order])
    assert made.declared is not None
    again = certify_declared(tally, made.declared, xi=0.05, delta=0.01)
    for here, there in zip(made.tables[0].walks, again.tables[0].walks, strict=True):
        assert np.array_equal(here.judged, there.judged)
