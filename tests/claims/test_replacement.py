"""May a new model take the place of an old one?"""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pacbound import Monitor, Tally, certify_replacement, load_certificate
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.exact_verifier import check_document, check_file, described
from pacbound.tally.questions.replacement import OUTCOMES

NONE = np.nan


def rows(n: int, lost: int, gained: int) -> tuple[Any, Any]:
    """Answers of the old and the new model, and labels that are all 1."""
    prediction = np.ones((n, 2), dtype=int)
    prediction[:lost, 1] = 0
    prediction[lost : lost + gained, 0] = 0
    return prediction, np.ones(n)


@pytest.mark.parametrize(("b", "c", "passed"), [(3, 0, True), (4, 2, True), (4, 1, False)])
def test_the_exact_test_passes_where_it_should(b: int, c: int, passed: bool) -> None:
    made = certify_replacement(*rows(500, b, c), xi=0.02, delta=0.01)
    assert made.certified == passed
    assert (made.losses, made.gains, made.unlabelled) == (b, c, 0)


@pytest.mark.parametrize(
    ("b", "c", "passed"), [(0, 7, True), (1, 10, True), (0, 6, False), (1, 9, False)]
)
def test_at_xi_0_it_is_the_test_of_mcnemar(b: int, c: int, passed: bool) -> None:
    assert certify_replacement(*rows(100, b, c), xi=0.0, delta=0.01).certified == passed


def outcome(old: float, new: float, label: float) -> str:
    tally = Tally.count("replacement", [[old, new], [1, 1]], [label, 1.0], unseen_labels=1)
    seen = {name: count for name, count in tally.totals.items() if count}
    if seen == {"equal": 2}:
        return "equal"
    return next(name for name in seen if name != "equal")


def test_what_is_missing_counts_against_the_new_model() -> None:
    known = {
        (old, new, label): outcome(old, new, label)
        for old, new, label in product((0, 1, NONE), repeat=3)
    }
    for (old, new, label), found in known.items():
        worst = _most_lost(old, new, label)
        counts = {"only_old": 1, "unlabelled": 1, "may_lose": 1, "only_new": -1}
        assert counts.get(found, 0) == worst, (old, new, label, found)
    assert known[NONE, 1, 1] == "equal"
    assert known[NONE, 1, NONE] == "may_lose"
    assert known[1, NONE, 1] == known[NONE, NONE, NONE] == "only_old"
    assert known[0, 1, NONE] == "unlabelled"
    assert known[0, 0, NONE] == "equal"


def _most_lost(old: float, new: float, label: float) -> int:
    """The largest D that may be, a missing answer of the new model being wrong."""
    if np.isnan(new):
        return 1
    if np.isnan(old):
        return 0 if new == label else 1
    if old == new:
        return 0
    if np.isnan(label):
        return 1
    return int(old == label) - int(new == label)


@pytest.mark.slow
def test_more_labels_never_turn_a_certificate_into_a_refusal() -> None:
    prediction, label = rows(300, 5, 12)
    rng, labels = np.random.default_rng(0), np.full(300, NONE)
    verdicts = []
    for row in rng.permutation(300):
        labels[row] = label[row]
        verdicts.append(certify_replacement(prediction, labels, xi=0.03, delta=0.05).certified)
    assert verdicts == sorted(verdicts)
    assert verdicts[-1]
    assert not verdicts[0]


def test_half_known_qualities_count_as_the_worst_that_they_can_be() -> None:
    quality = [[1, NONE], [0, NONE], [NONE, 1], [NONE, 0], [NONE, NONE], [1, 1]]
    tally = Tally.count("replacement", quality=quality, quality_scale=(0, 0.5, 1))
    assert tally.cells.ravel().tolist() == [2, 5, 7, 8]
    assert tally.counts.ravel().tolist() == [1, 2, 2, 1]
    made = certify_replacement(data=tally, xi=0.5, delta=0.5)
    assert dict(zip(OUTCOMES, made.counts()[0].tolist(), strict=True)) == {
        **dict.fromkeys(OUTCOMES, 0),
        "may_lose": 2,
        "may_gain": 2,
        "unlabelled": 1,
        "equal": 1,
    }


def test_equal_answers_are_equally_good_whatever_a_judge_said() -> None:
    made = certify_replacement([[1, 1]] * 100, quality=[[1.0, 0.0]] * 100, xi=0.05, delta=0.05)
    assert (made.certified, made.losses) == (True, 0)


def test_groups_have_one_verdict_or_their_own() -> None:
    prediction, label = rows(800, 20, 60)
    groups = np.where(np.arange(800) < 30, "early", "late")
    asked: dict[str, Any] = {"xi": 0.03, "delta": 0.05, "groups": groups}
    common = certify_replacement(prediction, label, **asked)
    assert not common.certified
    assert "Group 'early'" in common.summary()
    own = certify_replacement(prediction, label, group_verdicts="own", **asked)
    assert own.certified
    assert list(own.by.refused_groups(own)) == ["early"]
    assert own.may_replace == ()


def test_a_group_without_rows_is_refused_by_name() -> None:
    prediction, label = rows(300, 0, 10)
    groups = {"a": np.ones(300, dtype=bool), "b": np.zeros(300, dtype=bool)}
    made = certify_replacement(prediction, label, xi=0.05, delta=0.05, groups=groups)
    assert not made.certified
    assert "Group 'b'" in made.summary()
    assert list(made.by.refused_groups(made)) == ["b"]


@pytest.mark.parametrize(
    ("lost", "gained", "n", "code", "more"),
    [
        (0, 0, 40, "too-few", True),
        (9, 2, 400, "near", True),
        (60, 10, 400, "loses", False),
    ],
)
def test_a_refusal_says_what_it_would_take(
    lost: int, gained: int, n: int, code: str, more: bool
) -> None:
    made = certify_replacement(*rows(n, lost, gained), xi=0.03, delta=0.05)
    assert made.refusal is not None
    assert (made.certified, made.refusal.code) == (False, code)
    assert (made.refusal.needed is not None) == more
    if made.refusal.needed is not None:
        scale = made.refusal.needed / n
        enough = rows(made.refusal.needed, round(lost * scale), round(gained * scale))
        assert certify_replacement(*enough, xi=0.03, delta=0.05).certified


def test_looks_at_more_rows_share_delta_and_are_planned() -> None:
    prediction, label = rows(300, 0, 0)
    asked: dict[str, Any] = {"xi": 0.01, "delta": 0.05}
    assert certify_replacement(prediction, label, **asked).certified
    assert not certify_replacement(prediction, label, looks=[100, 200, 300], **asked).certified
    with pytest.raises(InvalidValueError, match="no look was planned there"):
        certify_replacement(prediction, label, looks=[100, 200], **asked)
    drawn: dict[str, Any] = {"looks": [300], "clusters": np.arange(300)}
    with pytest.raises(InvalidValueError, match="looks cannot be combined with clusters"):
        certify_replacement(prediction, label, **drawn, **asked)


def test_several_samples_of_a_question_are_clusters() -> None:
    prediction, label = rows(600, 6, 6)
    made = certify_replacement(
        prediction, label, xi=0.05, delta=0.05, clusters=np.arange(600) // 3, seed=0
    )
    assert made.n == 200
    assert "200 clusters" in made.summary()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "one of them says which model is better"),
        ({"prediction": [[1], [1]], "label": [1, 1]}, "prediction has 1 columns"),
        ({"prediction": [[1] * 6] * 2, "label": [1, 1]}, "there may be 1 to 4"),
        ({"quality": [[1.0, 2.0]]}, "expected grades from 0 to 1"),
        ({"preferred": ["old", "neither"]}, "expected one of 'old', 'new', 'tie'"),
        ({"prediction": [[1, 1, 1]], "preferred": ["old"]}, "one of two models"),
        ({"quality": [[1, 1]], "preferred": ["old"]}, "one of them says which model is better"),
        ({"prediction": [[1, 1]] * 2, "label": [1]}, "label"),
        ({"prediction": [[1, 1]] * 2, "quality": [[1, 1, 1]] * 2}, "columns"),
        ({"quality": [[1, 1]] * 2, "label": [1, 1]}, "Pass prediction and label, or quality"),
        ({"prediction": [["a", "b"]] * 9, "label": [1] * 9}, "no class in common"),
    ],
)
def test_what_cannot_be_raises_with_the_remedy(given: dict[str, Any], message: str) -> None:
    with pytest.raises((InvalidTypeError, InvalidValueError), match=message):
        certify_replacement(**given, xi=0.05, delta=0.05)


@pytest.mark.parametrize(
    "change",
    [
        lambda claim: claim["tables"][0].update(passed=[]),
        lambda claim: claim.update(certified=False),
        lambda claim: claim["tables"][0]["counts"].update(only_old=[90], equal=[301]),
        lambda claim: claim["tables"][0]["counts"].update(unlabelled=[40], equal=[346]),
        lambda claim: claim.update(delta=1e-9),
        lambda claim: claim.update(xi=0.0),
    ],
)
def test_a_claim_that_does_not_follow_is_found_by_both_verifiers(
    tmp_path: Path, change: Any
) -> None:
    from pacbound.claims.certificate import certificate_from_dict
    from pacbound.documents import digest

    made = certify_replacement(*rows(400, 5, 9), xi=0.04, delta=0.05)
    document: Any = json.loads(json.dumps(made.to_dict()))
    change(document["claim"])
    document["claim_digest"] = digest(document["claim"])
    document["counts_digest"] = certificate_from_dict(document).counts_digest
    path = tmp_path / "changed.json"
    path.write_text(json.dumps(document))
    assert not load_certificate(path).verify().ok
    assert check_document(document).wrong


def test_a_monitor_rings_when_the_new_model_loses_more_than_certified() -> None:
    certificate = certify_replacement(*rows(1000, 5, 5), xi=0.03, delta=0.05)
    monitor = Monitor(certificate, delta=0.01)
    prediction, label = rows(300, 90, 0)
    assert monitor.update({"prediction": prediction, "label": label}) is not None
    with pytest.raises(InvalidValueError, match="A label is missing in row 0"):
        Monitor(certificate, delta=0.01).update(
            {"prediction": [[1, 0], [1, 1]], "label": [NONE, 1]}
        )


def test_a_claim_about_grades_says_who_graded_and_verifies(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    quality = rng.integers(1, 6, size=(400, 2)).astype(float)
    quality[:, 1] = np.maximum(quality[:, 1], quality[:, 0])
    made = certify_replacement(
        quality=quality,
        quality_scale=(1, 5),
        graded_by="two annotators",
        xi=0.05,
        delta=0.05,
    )
    assert made.certified
    assert "loses at most 5 % quality against the old model, as graded by two annotators" in str(
        made
    )
    made.save(tmp_path / "made.json")
    assert load_certificate(tmp_path / "made.json").verify().ok
    assert not check_document(json.loads((tmp_path / "made.json").read_text())).wrong


def test_grades_of_joined_tables_count_in_whatever_order_they_stand() -> None:
    rng = np.random.default_rng(2)
    old, new = ([{"i": n, "q": float(q)} for n, q in enumerate(rng.random(200))] for _ in range(2))
    asked: dict[str, Any] = {"quality": "q", "id": "i", "xi": 0.2, "delta": 0.05}
    made = certify_replacement(data=(old, new), **asked)
    again = certify_replacement(data=(old[::-1], new), **asked)
    assert made.by.cells(made) == again.by.cells(again)
    assert made.graded is not None


@pytest.mark.parametrize("models", [2, 4])
def test_engines_count_the_same_differences(models: int) -> None:
    polars, duckdb = pytest.importorskip("polars"), pytest.importorskip("duckdb")
    rng = np.random.default_rng(5)
    names = [f"q{m}" for m in range(models)]
    for scale in ((1, 5), (1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5)):
        quality = rng.integers(2, 11, size=(300, models)) / 2
        quality[rng.random(quality.shape) < 0.1] = np.nan
        wanted = Tally.count("replacement", quality=quality, quality_scale=scale)
        frame = polars.DataFrame(dict(zip(names, quality.T, strict=True))).fill_nan(None)
        for data in (frame, frame.lazy(), duckdb.from_arrow(frame.to_arrow())):
            found = Tally.count("replacement", quality=names, data=data, quality_scale=scale)
            assert found == wanted
            assert found.cells.tolist() == wanted.cells.tolist()
            assert Tally.from_dict(found.to_dict()) == wanted


def test_preferences_are_wins_ties_and_losses_on_one_step() -> None:
    said = np.array(["old", "new", "tie"] * 50)
    tally = Tally.count("replacement", preferred=said)
    assert tally.grid.to_dict() == {"rule": "differences", "steps": 1}
    number = np.select([said == "new", said == "tie"], [1.0, 0.5], 0.0)
    assert Tally.count("replacement", quality=number) == tally
    plain = certify_replacement([[1, 1], [0, 1], [1, 0]] * 50, [1] * 150, xi=0.3, delta=0.05)
    graded = certify_replacement(preferred=said, xi=0.3, delta=0.05)
    assert (plain.losses, plain.gains) == (graded.losses, graded.gains)
    assert plain.certified == graded.certified


def test_nothing_calls_a_test_exact_that_is_not(tmp_path: Path) -> None:
    """Above 200,000 rows two binomial bounds decide."""
    for rows_, is_exact in ((1000, True), (200_001, False)):
        label = np.zeros(rows_, dtype=int)
        made = certify_replacement(np.column_stack([label, label]), label, xi=0.1, delta=0.05)
        made.save(tmp_path / "made.json")
        code, found = check_file(str(tmp_path / "made.json"))
        assert not code
        assert ("exact region" in " ".join(described(found))) == is_exact
        assert "exact" not in made.summary()
