"""A monitor of any kind: the same evidence however rows come, alarms, and what stays after them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.certificate.conftest import MAKERS
from tests.kinds.kind import Use
from tests.kinds.shield import watched as shield
from tests.monitor.conftest import USES

from pacbound import Monitor, certify_cascade, certify_shield, load_certificate
from pacbound.claims import KINDS
from pacbound.errors import CertificateError, InvalidTypeError, InvalidValueError


def test_every_kind_of_certificate_that_is_about_rows_to_come_is_watched() -> None:
    # A batch is about records that are all there; a bundle holds certificates of other
    # kinds.
    rest = {"batch", "bundle"}
    watched = set(KINDS) - rest - {"sets"}
    assert USES.keys() == watched | {"cascade-groups", "cascade-overlapping", "graded"}


@pytest.mark.slow
def test_rows_in_whatever_parts_lead_to_the_same_state(use: Use, clock: str) -> None:
    rng = np.random.default_rng(1)
    rows = use.rows(3000, rng, False)
    rows = rows if isinstance(rows, dict) else {"unsafe": rows}
    whole = Monitor(use.certificate, delta=1e-3, false_alarms=clock)
    whole.update(rows)
    for sizes in ([1] * 200 + [2800], [1000] * 3, rng.multinomial(3000, [0.02] * 50).tolist()):
        parts, done = Monitor(use.certificate, delta=1e-3, false_alarms=clock), 0
        for size in sizes:
            parts.update(use.part(rows, slice(done, done + size)))
            done += size
        assert parts.to_dict() == whole.to_dict()
        assert parts.evidence == whole.evidence


def test_a_broken_claim_rings_and_a_kept_one_does_not(use: Use, clock: str) -> None:
    rng = np.random.default_rng(2)
    monitor = Monitor(use.certificate, delta=1e-4, false_alarms=clock)
    assert monitor.update(use.rows(2000, rng, False)) is None
    assert not monitor.alarms
    kept = monitor.labels
    alarm = monitor.update(use.rows(2000, rng, True))
    assert alarm is not None
    assert alarm == monitor.alarms[0]
    assert kept < alarm.label < kept + 1000
    assert alarm.evidence >= alarm.limit == monitor.limit


@pytest.mark.long
def test_rows_in_parts_ring_at_the_same_labels(use: Use, clock: str) -> None:
    rng = np.random.default_rng(3)
    rows = use.rows(3000, rng, True)
    whole = Monitor(use.certificate, delta=1e-3, false_alarms=clock)
    whole.update(rows)
    parts = Monitor(use.certificate, delta=1e-3, false_alarms=clock)
    for start in range(0, 3000, 7):
        parts.update(use.part(rows, slice(start, start + 7)))
    assert len(whole.alarms) >= 1
    assert parts.to_dict() == whole.to_dict()


def test_on_the_first_clock_the_alarm_stays_rung() -> None:
    monitor = Monitor(shield(), delta=1e-3)
    first = monitor.update([True] * 10)
    rung = monitor.evidence
    assert first is not None
    assert monitor.update([False] * 5000) == first
    assert monitor.update_counts(losses=0, labels=100) == first
    assert monitor.evidence == rung >= monitor.limit
    assert (monitor.labels, monitor.seen) == (5110, {"safe": 5100, "unsafe": 10})
    assert monitor.alarms == (first,)


def test_on_the_second_clock_the_sums_start_again() -> None:
    monitor = Monitor(shield(), delta=1e-3, false_alarms=1000)
    alarm = monitor.update([True] * 4)
    assert alarm is not None
    assert monitor.update([]) is None
    fresh = Monitor(shield(), delta=1e-3, false_alarms=1000)
    after = 4 - alarm.label
    fresh.update([True] * after)
    assert monitor.evidence == fresh.evidence
    assert monitor.update([False] * 100) is None
    again = monitor.update([True] * 10)
    assert again is not None
    assert [one.label for one in monitor.alarms][:2] == [alarm.label, again.label]


def test_counts_are_one_step_and_no_order_is_made_up() -> None:
    monitor = Monitor(shield(), delta=1e-3)
    assert monitor.update_counts(losses=4, labels=200) is None
    ordered = Monitor(shield(), delta=1e-3)
    ordered.update([False] * 196 + [True] * 4)
    other = Monitor(shield(), delta=1e-3)
    other.update([True] * 4 + [False] * 196)
    # Four losses first would have rung; as counts they are what a whole block is after its end.
    assert monitor.evidence == pytest.approx(ordered.evidence, rel=1e-9)
    assert other.alarms
    assert monitor.labels == 200


@pytest.mark.parametrize(
    ("kind", "counts", "match"),
    [
        ("shield", {"losses": 3, "labels": 2}, "3 losses of 2 labels cannot be"),
        ("shield", {"losses": -1, "labels": 2}, "not a count"),
        ("shield", {"losses": 1.5, "labels": 2}, "not a count"),
        ("shield", {"losses": 1}, "needs 'labels'"),
        ("shield", {"losses": 1, "gains": 1, "labels": 2}, "has no 'gains'"),
        ("shield", {"losses": float("nan"), "labels": 2}, "not a count"),
        ("cascade", {"losses": 2, "gains": 1, "labels": 2}, "2 losses and 1 gains of 2"),
        ("cascade", {"losses": 2, "labels": 2}, "needs 'gains'"),
        ("abstention", {"losses": {"a": 1}, "labels": {"a": 2}}, "losses"),
        ("calibration", {"successes": [1] * 5, "trials": [0] * 5}, "More successes than trials"),
        ("calibration", {"successes": [1], "trials": [1]}, "has shape"),
        ("calibration", {"losses": 1, "labels": 2}, "has no 'losses'"),
    ],
)
def test_counts_that_cannot_be_are_refused_and_change_nothing(
    kind: str, counts: dict[str, object], match: str
) -> None:
    monitor = Monitor(USES[kind]().certificate, delta=1e-3)
    before = monitor.to_dict()
    with pytest.raises((InvalidValueError, InvalidTypeError), match=match):
        monitor.update_counts(**counts)
    assert monitor.to_dict() == before


CASCADE_ROW = {"confidence": [0.9], "prediction": [[0, 1]], "label": [1]}


@pytest.mark.parametrize(
    ("kind", "outcomes", "match"),
    [
        ("shield", [0.5], "expected True or False"),
        ("shield", [float("nan")], "expected True or False"),
        ("shield", [None, True], "missing"),
        ("shield", ["yes"], "expected booleans"),
        ("shield", [[True, False]], "one value per row"),
        ("shield", CASCADE_ROW, "has no 'confidence'"),
        ("shield", {"loss": [1]}, "has no 'loss'"),
        ("shield", {}, "needs 'unsafe'"),
        ("cascade", [2], "expected 1 where the cascade is wrong"),
        ("cascade", [float("nan")], "expected 1 where the cascade is wrong"),
        ("cascade", [True, False], "does not hold losses"),
        ("cascade", {"unsafe": [True]}, "has no 'unsafe'"),
        ("cascade", CASCADE_ROW | {"loss": [1]}, "loss was passed beside other columns"),
        ("cascade", CASCADE_ROW | {"label": [None]}, "label it"),
        ("cascade", CASCADE_ROW | {"label": [1, 1]}, "Rows do not match"),
        ("cascade", CASCADE_ROW | {"prediction": [[None, 1]]}, "every model must predict"),
        ("cascade", CASCADE_ROW | {"confidence": [1.5]}, "expected scores"),
        (
            "cascade",
            {"confidence": [[0.9, 0.9]], "prediction": [[0, 1, 1]], "label": [1]},
            "has 1 exits",
        ),
        ("abstention", [True], "an abstention pass a mapping of columns, such as {'confidence'"),
        ("abstention", {"confidence": [0.9]}, "Pass either correct"),
        ("abstention", {"confidence": [float("nan")], "correct": [True]}, "expected scores"),
        ("abstention", {"confidence": [0.9], "correct": [None]}, "missing"),
        ("abstention", {"confidence": [0.9], "correct": [1], "groups": ["a"]}, "has no groups"),
        ("abstention", {"confidence": [0.9], "correct": [1], "pool": [1]}, "has no 'pool'"),
        ("recall", [True], "a recall pass a mapping of columns, such as {'score'"),
        ("recall", {"score": [0.9]}, "needs 'positive'"),
        ("recall", {"score": [1.5], "positive": [True]}, "expected scores"),
        ("recall", {"score": [0.9, 0.1], "positive": [True]}, "Rows do not match"),
        ("calibration", [True], "pass a mapping of columns"),
        ("calibration", {"confidence": [0.5]}, "Pass either correct"),
        ("calibration", {"confidence": [-0.1], "correct": [True]}, "expected scores"),
        ("calibration", {"confidence": [0.5], "correct": [0.5]}, "expected True or False"),
        ("calibration", {"confidence": [0.5], "correct": [1], "groups": ["a"]}, "has no groups"),
        ("calibration", {"confidence": [0.5], "correct": [1], "n_bins": 5}, "has no 'n_bins'"),
    ],
)
def test_outcomes_that_cannot_be_are_refused_and_change_nothing(
    kind: str, outcomes: object, match: str
) -> None:
    monitor = Monitor(USES[kind]().certificate, delta=1e-3)
    monitor.update(USES[kind]().rows(20, np.random.default_rng(0), False))
    before = monitor.to_dict()
    with pytest.raises((InvalidValueError, InvalidTypeError), match=match):
        monitor.update(outcomes)
    assert monitor.to_dict() == before


def test_a_refusal_is_not_monitored() -> None:
    refused = certify_shield([0.1] * 3, [False] * 3, xi=0.02, delta=0.01)
    assert not refused.certified
    with pytest.raises(InvalidValueError, match="is a refusal: it claims nothing"):
        Monitor(refused, delta=1e-3)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("batch", "A batch certificate is not monitored: it is about records that are all there"),
        ("bundle", "A bundle certificate is not monitored: its claims are watched together by Bu"),
    ],
)
def test_what_is_not_watched_is_refused_with_what_to_do(name: str, why: str) -> None:
    certificate = MAKERS[name]()
    with pytest.raises((InvalidTypeError, InvalidValueError), match=why):
        Monitor(certificate, delta=1e-3)


def test_a_claim_that_nothing_is_lost_is_not_monitored() -> None:
    answers = [[1, 0]] * 300 + [[1, 1]] * 700
    certificate = certify_cascade([0.9] * 1000, answers, [1] * 1000, xi=0, delta=0.05)
    assert certificate.certified
    with pytest.raises(InvalidValueError, match="no room to bet"):
        Monitor(certificate, delta=1e-3)


def test_a_certificate_that_was_changed_is_not_monitored(tmp_path: Path) -> None:
    shield().save(tmp_path / "shield.json")
    document = json.loads((tmp_path / "shield.json").read_text())
    document["claim"]["xi"] = 0.05
    (tmp_path / "shield.json").write_text(json.dumps(document))
    with pytest.raises(CertificateError, match="changed"):
        Monitor(load_certificate(tmp_path / "shield.json"), delta=1e-3)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("ever", "ever"),
        (" Ever ", "ever"),
        ("one per 1e6 labels", "one per 1,000,000 labels"),
        ("one in 1,000,000", "one per 1,000,000 labels"),
        ("1e6", "one per 1,000,000 labels"),
        (1_000_000, "one per 1,000,000 labels"),
        (2500.5, "one per 2500.5 labels"),
    ],
)
def test_a_promise_is_read_in_words_or_numbers(words: str | float, text: str) -> None:
    monitor = Monitor(shield(), delta=1e-3, false_alarms=words)
    assert monitor.false_alarms == text
    again = Monitor(shield(), delta=1e-3, false_alarms=monitor.false_alarms)
    assert (again.limit, again.promise) == (monitor.limit, monitor.promise)


@pytest.mark.parametrize(
    "words", ["never", "", "one per label", "one per -5 labels", 0, 1, -3, 1e300, "1e999", None]
)
def test_what_is_no_promise_is_refused(words: object) -> None:
    with pytest.raises((InvalidValueError, InvalidTypeError), match="false_alarms"):
        Monitor(shield(), delta=1e-3, false_alarms=words)  # type: ignore[arg-type]


def test_the_smallest_delta_can_still_ring() -> None:
    monitor = Monitor(shield(), delta=1e-300)
    assert monitor.update([True] * 1000) is not None
    assert monitor.evidence < np.inf
    counted = Monitor(shield(), delta=1e-300)
    assert counted.update_counts(losses=10**6, labels=10**6) is not None


@pytest.mark.parametrize(
    ("draw", "words"),
    [
        ({"clusters": np.arange(1000)}, "take in one row of each cluster, drawn before"),
        (
            {"clusters": np.arange(1000) // 2, "cluster_bound": 2},
            "kept with probability size / 2, and no cluster twice",
        ),
        ({"weights": np.ones(1000), "weight_bound": 1}, "take in rows of that one"),
    ],
)
def test_the_promise_says_which_rows_it_is_about_where_the_claims_rows_were_drawn(
    draw: dict[str, Any], words: str
) -> None:
    unsafe = [True] + [False] * 999
    certificate = certify_shield([0.1] * 1000, unsafe, xi=0.05, delta=0.01, **draw, seed=0)
    monitor = Monitor(certificate, delta=1e-3)
    assert words in monitor.promise
    assert words in monitor.summary()
    assert "take in" not in Monitor(shield(), delta=1e-3).promise
