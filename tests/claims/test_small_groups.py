"""Groups with too few trials to pass at all are left out by their number alone, if that was asked
for; a group that fails by its errors refuses the claim all the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.exact_verifier.changes import said_by_package

from pacbound import (
    Shield,
    certify_cascade,
    certify_false_alarms,
    certify_recall,
    certify_replacement,
    certify_shield,
    exact_verifier,
)
from pacbound.claims.certificate import certificate_from_dict
from pacbound.documents import digest
from pacbound.errors import CertificateError, InvalidTypeError
from pacbound.procedures.replacement import passes, too_small

SMALL = ("clinic 03", "clinic 07", "clinic 11", "clinic 15")
SITE = np.concatenate(
    [
        np.repeat(name, 12 if name in SMALL else 200)
        for name in (f"clinic {place:02}" for place in range(19))
    ]
)
N = len(SITE)
RNG = np.random.default_rng(4)
FLAG = np.arange(N) % 2 == 0
SCORE = np.where(FLAG, RNG.beta(8, 2, size=N), RNG.beta(2, 8, size=N))
KINDS: dict[str, tuple[Any, str, dict[str, Any], float]] = {
    "recall": (certify_recall, "positive", {"target": 0.9}, -np.inf),
    "false alarms": (certify_false_alarms, "positive", {"xi": 0.1}, np.inf),
    "shield": (certify_shield, "unsafe", {"xi": 0.2}, -np.inf),
    "among unsafe": (certify_shield, "unsafe", {"xi": 0.1, "rate": "among-unsafe"}, -np.inf),
}
every_kind = pytest.mark.parametrize("kind", KINDS)


def made(kind: str, flags: Any = FLAG, groups: Any = SITE, **more: Any) -> Any:
    verb, flag, asked, _ = KINDS[kind]
    more = {"small_groups": "leave-out", "delta": 0.05, **more}
    return verb(score=SCORE, **{flag: flags}, groups=groups, **asked, **more)


def both_verifiers(certificate: Any) -> list[bool]:
    document = certificate.to_dict()
    loaded = certificate_from_dict(document)
    return [loaded.verify().ok, not exact_verifier.check_document(document).wrong]


@every_kind
def test_four_small_groups_of_nineteen_are_left_out_and_the_others_certified(kind: str) -> None:
    refused = made(kind, small_groups="refuse")
    assert not refused.certified
    assert f"4 of 19 groups cannot be certified: {', '.join(SMALL)}." in refused.summary()
    assert 'small_groups="leave-out" leaves them uncertified' in refused.summary()
    certificate = made(kind)
    assert certificate.certified
    assert certificate.left_out == SMALL
    assert both_verifiers(certificate) == [True, True]
    large = ~np.isin(SITE, SMALL)
    verb, flag, asked, cautious = KINDS[kind]
    alone = verb(score=SCORE[large], **{flag: FLAG[large]}, groups=SITE[large], **asked, delta=0.05)
    assert certificate.thresholds == {
        name: cautious if name in SMALL else alone.threshold for name in certificate.groups
    }
    said = certificate.summary()
    assert "in every group that is not left out." in said
    assert f": {', '.join(SMALL)}. Nothing is certified there: " in said
    assert said.count("clinic 03: left out: ") == 1
    assert "REFUSED" not in said
    assert tuple(certificate.by.refused_groups(certificate)) == SMALL


@pytest.mark.parametrize("kind", ["false alarms", "shield", "among unsafe"])
def test_a_group_that_fails_by_its_errors_refuses_the_claim_and_alone_is_named(kind: str) -> None:
    """In one clinic everything goes wrong at every threshold."""
    verb, flag, asked, cautious = KINDS[kind]
    wrong = SITE == "clinic 05"
    certificate = verb(
        np.where(wrong, 1.0 if cautious > 0 else -np.inf, SCORE),
        np.where(wrong, flag == "unsafe", FLAG),
        groups=SITE,
        **asked,
        delta=0.05,
        small_groups="leave-out",
    )
    assert not certificate.certified
    assert both_verifiers(certificate) == [True, True]
    assert "\n1 of 19 groups cannot be certified: clinic 05." in certificate.summary()
    assert "small_groups" not in certificate.summary()


def test_a_shield_takes_the_threshold_of_a_group_and_always_brakes_in_one_left_out() -> None:
    certificate = made("shield")
    acts = (lambda _: "drive", lambda _: "brake", lambda danger: danger)
    assert Shield(*acts, certificate.thresholds["clinic 03"])(0.0) == "brake"
    assert Shield(*acts, certificate.thresholds["clinic 00"])(0.0) == "drive"
    with pytest.raises(InvalidTypeError, match="left out"):
        Shield(*acts, certificate)


def test_groups_that_overlap_share_delta_where_small_ones_are_left_out() -> None:
    groups = {"all": np.ones(N, dtype=bool), "few": np.arange(N) < 30, "late": np.arange(N) > 900}
    certificate = made("recall", groups=groups)
    assert certificate.left_out == ("few",)
    assert both_verifiers(certificate) == [True, True]
    third = certify_recall(SCORE, FLAG, target=0.9, delta=0.05 / 3, groups=groups)
    assert certificate.thresholds["all"] == max(
        min(
            certify_recall(SCORE[rows], FLAG[rows], target=0.9, delta=0.05 / 3).threshold
            for rows in (groups["all"], groups["late"])
        ),
        third.threshold,
    )


def test_own_thresholds_say_which_groups_were_left_out() -> None:
    own, before = (
        made("recall", group_thresholds="own", small_groups=small)
        for small in ("leave-out", "refuse")
    )
    assert own.left_out == SMALL
    assert own.thresholds == before.thresholds
    assert before.left_out == ()


def test_where_all_groups_are_small_nothing_is_certified() -> None:
    rows = np.isin(SITE, SMALL)
    certificate = certify_recall(
        SCORE[rows], FLAG[rows], groups=SITE[rows], target=0.9, delta=0.05, small_groups="leave-out"
    )
    assert not certificate.certified
    assert both_verifiers(certificate) == [True, True]
    assert "4 of 4 groups cannot be certified" in certificate.summary()


@pytest.mark.parametrize("kind", ["recall", "false alarms"])
def test_a_document_that_leaves_out_a_group_that_could_pass_is_not_valid(kind: str) -> None:
    """With mended digests."""
    document = made(kind).to_dict()
    claim = document["claim"]
    claim["tables"][0] |= {"allowed": -1, "threshold": claim["tables"][3]["threshold"]}
    document["claim_digest"] = digest(claim)
    assert not certificate_from_dict(document).verify().ok
    assert exact_verifier.check_document(document).wrong
    document = made(kind, small_groups="refuse").to_dict()
    document["claim"] |= {"certified": True}
    document["claim_digest"] = digest(document["claim"])
    assert not certificate_from_dict(document).verify().ok
    assert exact_verifier.check_document(document).wrong


# ---- cascades

MODELS = np.zeros((N, 2), dtype=int)
MODELS[RNG.random(N) < 0.03, 0] = 1
LABEL = np.zeros(N, dtype=int)


def cascade(rows: Any = slice(None), **more: Any) -> Any:
    asked = {"xi": 0.1, "delta": 0.05, "small_groups": "leave-out", **more}
    groups = asked.pop("groups", SITE[rows])
    models = asked.pop("models", MODELS)
    return certify_cascade(SCORE[rows], models[rows], LABEL[rows], groups=groups, **asked)


def test_a_cascade_leaves_small_groups_to_the_slow_model() -> None:
    refused = cascade(small_groups="refuse")
    assert not refused.certified
    certificate = cascade()
    assert certificate.certified
    assert certificate.left_out == certificate.refused_groups == SMALL
    assert both_verifiers(certificate) == [True, True]
    large = ~np.isin(SITE, SMALL)
    alone = cascade(large, small_groups="refuse")
    for name, limits in certificate.thresholds.items():
        expected = [np.inf] if name in SMALL else alone.thresholds
        assert np.array_equal(limits, expected)
    assert certificate.n == N
    assert np.isclose(certificate.exit_rates[0], alone.exit_rates[0] * large.sum() / N)
    said = certificate.summary()
    assert "19 groups" in said
    assert "in each of the groups that are not left out" in said
    assert "'clinic 03': 12 rows, left out: too few, even if no row is lost." in said
    assert "the rest and all rows of other groups." in said
    assert "exits-at-own-threshold" in certificate.values["assumes"]


def test_a_cascade_with_a_group_that_fails_by_its_errors_is_refused() -> None:
    models = MODELS.copy()
    models[SITE == "clinic 05", 0] = 1
    scores = np.where(SITE == "clinic 05", 1.0, SCORE)
    certificate = certify_cascade(
        scores, models, LABEL, groups=SITE, xi=0.1, delta=0.05, small_groups="leave-out"
    )
    assert not certificate.certified
    assert both_verifiers(certificate) == [True, True]
    assert "Group 'clinic 05'" in certificate.summary()
    assert "Nor can" not in certificate.summary()


def test_three_models_and_missing_labels_leave_out_small_groups_too() -> None:
    three = np.column_stack([MODELS[:, 0], MODELS[:, 1], MODELS[:, 1]])
    scores = np.column_stack([SCORE, SCORE])
    label: Any = np.where(np.arange(N) % 3 == 0, np.nan, 0.0)
    certificate = certify_cascade(
        scores, three, label, groups=SITE, xi=0.2, delta=0.05, small_groups="leave-out"
    )
    assert certificate.left_out == SMALL
    assert both_verifiers(certificate) == [True, True]


def test_a_cascade_that_leaves_out_a_group_that_could_pass_is_not_valid() -> None:
    """With mended digests."""
    for name, rows in (("clinic 03", 200), ("clinic 00", 12)):
        document = cascade().to_dict()
        claim = document["claim"]
        claim["left_out"] = {**claim["left_out"], name: rows}
        claim["n"] = sum(claim["left_out"].values()) + sum(one["n"] for one in claim["tables"])
        document["claim_digest"] = digest(claim)
        document["counts_digest"] = exact_verifier.counts_digest(
            exact_verifier.Part(claim, "claim")
        )
        with pytest.raises(CertificateError, match="left_out"):
            certificate_from_dict(document)
        assert exact_verifier.check_document(document).wrong


# ---- replacements


def replaced(rows: Any = slice(None), **more: Any) -> Any:
    groups = more.pop("groups", SITE)
    groups = groups[rows] if isinstance(groups, np.ndarray) else groups
    asked = {"xi": 0.1, "delta": 0.05, "small_groups": "leave-out", **more}
    return certify_replacement(MODELS[rows][:, ::-1], LABEL[rows], groups=groups, **asked)


def test_a_replacement_leaves_small_groups_to_the_old_model() -> None:
    refused = replaced(small_groups="refuse")
    assert not refused.certified
    assert refused.left_out == ()
    assert (
        "rows to pass, even if none is lost, where none is gained: small_groups"
        in refused.summary()
    )
    certificate = replaced()
    assert certificate.certified
    assert certificate.left_out == SMALL
    assert certificate.may_replace == ("the new model",)
    assert tuple(certificate.by.refused_groups(certificate)) == SMALL
    assert both_verifiers(certificate) == [True, True]
    assert certificate.settled
    said = certificate.summary()
    assert "in each of the groups that are not left out." in said
    assert f"for too few rows: {', '.join(SMALL)}. Nothing is certified there: keep" in said
    assert said.count("'clinic 03': 12 rows, left out: too few to pass without gains") == 1
    assert "refused" not in said
    assert not replaced(xi=0.001).certified


def test_a_replacement_with_a_group_that_loses_is_refused() -> None:
    models = MODELS[:, ::-1].copy()
    models[SITE == "clinic 05"] = [0, 1]
    certificate = certify_replacement(
        models, LABEL, groups=SITE, xi=0.1, delta=0.05, small_groups="leave-out"
    )
    assert not certificate.certified
    assert certificate.left_out == SMALL
    assert both_verifiers(certificate) == [True, True]
    assert "Group 'clinic 05': The new model loses 200 of 200 rows" in certificate.summary()
    assert 'small_groups="leave-out"' not in certificate.summary()


@pytest.mark.slow
@pytest.mark.parametrize(("xi", "delta"), [(0.05, 0.05), (0.1, 0.01), (0.3, 0.1)])
def test_a_group_of_a_replacement_is_too_small_where_it_would_not_pass_without_gains(
    xi: float, delta: float
) -> None:
    for n in range(1, 120):
        assert passes(0, 0, n, xi=xi, delta=delta) is not too_small(n, xi=xi, delta=delta)
        assert passes(0, n, n, xi=xi, delta=delta) or n < np.log2(1 / delta)


def test_overlapping_groups_of_a_replacement_share_delta_where_small_ones_are_left_out() -> None:
    groups = {"few": np.arange(N) < 30, "late": np.arange(N) > 900}
    certificate = replaced(groups=groups)
    assert certificate.certified
    assert certificate.left_out == ("few",)
    assert certificate.by.level(certificate.values) == pytest.approx(0.05 / 3)
    assert both_verifiers(certificate) == [True, True]


def test_a_replacement_that_leaves_out_a_group_that_could_pass_is_not_valid() -> None:
    """With mended digests."""
    changes: list[dict[str, Any]] = [
        {"left_out": True, "passed": []},
        {"left_out": True},
        {"passed": []},
    ]
    for place, change in [*((0, change) for change in changes), (3, {"left_out": False})]:
        document = replaced().to_dict()
        document["claim"]["tables"][place] |= change
        document["claim_digest"] = digest(document["claim"])
        assert said_by_package(document)
        assert exact_verifier.check_document(document).wrong
    document = replaced().to_dict()
    for table in document["claim"]["tables"]:
        table |= {"left_out": True, "passed": []}
    document["claim_digest"] = digest(document["claim"])
    with pytest.raises(CertificateError):
        certificate_from_dict(document)
    assert exact_verifier.check_document(document).wrong
