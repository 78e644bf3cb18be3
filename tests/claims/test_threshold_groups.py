"""Recall, false alarms and shields for groups: a common threshold or their own, groups that
overlap, groups without trials, and how thresholds are applied."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pacbound import (
    Shield,
    certify_false_alarms,
    certify_recall,
    certify_shield,
    documents,
    exact_verifier,
    load_certificate,
)
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.stats.binomial import bonferroni_level, sidak_level

N = 2000
RNG = np.random.default_rng(0)
FLAG = RNG.random(N) < 0.3
SCORE = np.where(FLAG, RNG.beta(6, 2, size=N), RNG.beta(1, 6, size=N))
SITE = RNG.choice(["a", "b"], size=N)
SCORE[SITE == "b"] **= 1.2
OVERLAPPING = {"a": SITE == "a", "late": np.arange(N) > 700, "all": np.ones(N, dtype=bool)}

Verb = Callable[..., Any]
KINDS: dict[str, tuple[Verb, dict[str, Any], Callable[..., float], float]] = {
    "recall": (certify_recall, {"target": 0.9}, min, -np.inf),
    "false alarms": (certify_false_alarms, {"xi": 0.1}, max, np.inf),
    "shield": (certify_shield, {"xi": 0.1}, min, -np.inf),
    "shield among unsafe": (certify_shield, {"xi": 0.1, "rate": "among-unsafe"}, min, -np.inf),
}
"""The verb, what is asked of it, the more cautious of several thresholds, and that of a refusal."""

every_kind = pytest.mark.parametrize("kind", KINDS)


def made(kind: str, delta: float = 0.05, rows: Any = slice(None), **more: Any) -> Any:
    verb, asked, *_ = KINDS[kind]
    if "data" not in more:
        more = {"score": SCORE[rows], _flag(kind): FLAG[rows], **more}
    return verb(**more, **asked, delta=delta)


def inside(groups: Any) -> dict[str, Any]:
    """The rows of each group."""
    return groups if groups is OVERLAPPING else {name: groups == name for name in ("a", "b")}


def _flag(kind: str) -> str:
    return "unsafe" if kind.startswith("shield") else "positive"


@every_kind
@pytest.mark.parametrize("groups", [SITE, OVERLAPPING], ids=["apart", "overlapping"])
def test_a_common_threshold_is_the_most_cautious_of_the_groups_at_the_full_delta(
    kind: str, groups: Any
) -> None:
    alone = {name: made(kind, rows=rows) for name, rows in inside(groups).items()}
    certificate = made(kind, groups=groups)
    assert certificate.certified
    assert certificate.verify().ok
    cautious = KINDS[kind][2]
    assert certificate.threshold == cautious(one.threshold for one in alone.values())
    assert certificate.thresholds == dict.fromkeys(alone, certificate.threshold)
    assert certificate.groups == tuple(sorted(alone))
    assert certificate.allowed == sum(one.allowed for one in alone.values())
    assert "in every group." in certificate.summary()


@every_kind
@pytest.mark.parametrize(
    ("groups", "level"),
    [(SITE, sidak_level(0.05, 2)), (OVERLAPPING, bonferroni_level(0.05, 3))],
    ids=["apart", "overlapping"],
)
def test_own_thresholds_share_delta_and_more_so_where_groups_overlap(
    kind: str, groups: Any, level: float
) -> None:
    certificate = made(kind, groups=groups, group_thresholds="own")
    assert certificate.verify().ok
    assert certificate.thresholds == {
        name: made(kind, level, rows=rows).threshold for name, rows in inside(groups).items()
    }
    assert "Each group has its own threshold" in certificate.summary()
    with pytest.raises(InvalidTypeError, match="own threshold"):
        _ = certificate.threshold


@every_kind
def test_rows_are_flagged_by_the_threshold_of_their_group(kind: str) -> None:
    refused = KINDS[kind][3]
    own = made(kind, groups=SITE, group_thresholds="own")
    limits = np.array([own.thresholds[name] for name in SITE])
    assert np.array_equal(own.flags(SCORE, SITE), limits <= SCORE)
    # A group that was not certified is treated as if it were refused.
    assert own.flags([0.0, 1.0], ["c", "c"]).tolist() == [refused < 0] * 2
    with pytest.raises(InvalidTypeError, match="pass the group of each row"):
        own.flags(SCORE)
    with pytest.raises(InvalidValueError, match="score has 2, groups has 1"):
        own.flags([0.1, 0.9], ["a"])
    common = made(kind, groups=SITE)
    assert np.array_equal(common.flags(SCORE), common.threshold <= SCORE)
    assert np.array_equal(common.flags(SCORE, SITE), common.threshold <= SCORE)
    with pytest.raises(InvalidTypeError, match="has no groups"):
        made(kind).flags(SCORE, SITE)


@every_kind
@pytest.mark.parametrize("thresholds", ["common", "own"])
def test_a_group_that_cannot_be_certified_is_named_and_acted_on_with_caution(
    kind: str, thresholds: str
) -> None:
    refused = KINDS[kind][3]
    few = np.where(np.arange(N) < 8, "few", SITE)
    certificate = made(kind, groups=few, group_thresholds=thresholds)
    said = certificate.summary()
    assert "few: REFUSED: " in said
    assert certificate.verify().ok
    if thresholds == "own":
        assert certificate.certified
        assert certificate.thresholds["few"] == refused
        assert np.isfinite([certificate.thresholds[name] for name in ("a", "b")]).all()
        # Nothing is promised of the group that was refused.
        assert "in every group that is not refused." in said
    else:
        assert not certificate.certified
        assert certificate.threshold == refused
        assert "\n1 of 3 groups cannot be certified: few." in said
        assert "a: can be certified by itself." in said
        assert "With probability" not in said
        assert certificate.refusal.code == "too-few"


@every_kind
@pytest.mark.parametrize("thresholds", ["common", "own"])
def test_a_group_without_trials_is_refused(kind: str, thresholds: str) -> None:
    groups = {"a": SITE == "a", "nobody": np.zeros(N, dtype=bool)}
    certificate = made(kind, groups=groups, group_thresholds=thresholds)
    assert certificate.certified == (thresholds == "own")
    assert certificate.thresholds["nobody"] == KINDS[kind][3]
    assert "so nothing is known about" in certificate.summary()
    assert certificate.verify().ok


def test_a_shield_runs_on_a_common_threshold_and_not_on_those_of_groups() -> None:
    acts = (lambda _: "drive", lambda _: "brake", lambda danger: danger)
    common = made("shield", groups=SITE)
    assert Shield(*acts, common).threshold == common.threshold
    with pytest.raises(InvalidTypeError, match="Each group has its own threshold"):
        Shield(*acts, made("shield", groups=SITE, group_thresholds="own"))


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (["a"], "Rows do not match"),
        ({}, "name at least one group"),
        ({"a": [2] * N}, "expected True or False"),
        ([0.5] * N, "expected an integer or a string"),
    ],
)
def test_groups_that_cannot_be_are_refused(groups: Any, message: str) -> None:
    with pytest.raises((InvalidTypeError, InvalidValueError), match=message):
        made("recall", groups=groups)


@pytest.mark.parametrize("small", ["refuse", "leave-out"])
def test_no_number_of_a_group_alone_can_be_taken_for_a_claim(small: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    place = np.array(["a", "b"] * 600 + ["few"] * 3)
    positive = rng.random(1203) < 0.5
    score = np.where(place == "a", 0.3, 0.7) * rng.random(1203) + 0.3 * positive
    kept = np.ones(1203, dtype=bool) if small == "leave-out" else place != "few"
    options: Any = {"target": 0.9, "delta": 0.1, "groups": place[kept], "small_groups": small}
    made = certify_recall(score[kept], positive[kept], **options)
    assert made.certified
    made.save(tmp_path / "c.json")
    code, found = exact_verifier.check_file(str(tmp_path / "c.json"))
    limits = {one["group"]: one["threshold"] for one in found["claimed"]["groups"]}
    assert code == 0
    assert limits.pop("few", "-inf") == "-inf"
    alone = {
        name: certify_recall(score[place == name], positive[place == name], target=0.9, delta=0.1)
        for name in limits
    }
    assert len({one.threshold for one in alone.values()}) == 2
    assert set(limits.values()) == {min(one.threshold for one in alone.values())}
    document = made.to_dict()
    document["claim"]["tables"][0]["threshold"] = alone["a"].threshold
    document["claim"]["tables"][1]["threshold"] = alone["b"].threshold
    document["claim_digest"] = documents.digest(document["claim"])
    documents.write(tmp_path / "c.json", document)
    assert exact_verifier.check_file(str(tmp_path / "c.json"))[0] == 1
    assert not load_certificate(tmp_path / "c.json").verify()
