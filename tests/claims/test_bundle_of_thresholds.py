"""Several claims about one score: the thresholds at which all hold, the columns that they add, and
the shield among them.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import polars
import pytest
from tests.claims.test_false_alarms import rollouts, rows

from pacbound import (
    Shield,
    certify_false_alarms,
    certify_recall,
    certify_shield,
    certify_together,
    load_certificate,
)
from pacbound.errors import CertificateError, InvalidTypeError
from pacbound.shield.policy import VectorShield


def both(target: float, xi: float, delta: float, count: int = 2000) -> Any:
    score, positive = rows(count)
    claims: dict[str, Any] = {
        "misses": partial(certify_recall, score, positive, target=target),
        "false-alarms": partial(certify_false_alarms, score, positive, xi=xi),
    }
    return certify_together(claims, delta=delta)


def test_both_hold_between_their_thresholds(tmp_path: Path) -> None:
    score, positive = rows()
    made = both(0.9, 0.05, 0.04)
    recall = certify_recall(score, positive, target=0.9, delta=0.02)
    alarms = certify_false_alarms(score, positive, xi=0.05, delta=0.02)
    assert made.thresholds == (alarms.threshold, recall.threshold)
    assert made.thresholds[0] < made.thresholds[1]
    assert "\nBoth hold from 0." in made.summary()
    made.save(tmp_path / "both.json")
    again: Any = load_certificate(tmp_path / "both.json")
    assert again.thresholds == made.thresholds


def test_where_no_threshold_keeps_both_it_is_said() -> None:
    made = both(0.99, 0.005, 0.1)
    assert made.certified
    assert made.thresholds is None
    assert "No threshold keeps both: one claim needs at least" in made.summary()


def test_where_one_is_refused_there_is_no_range() -> None:
    made = both(0.99, 0.2, 0.1, count=100)
    assert not made.certified
    assert made.thresholds is None
    assert "Both hold" not in made.summary()
    assert "keeps both" not in made.summary()


def test_claims_about_other_rows_or_other_scores_have_no_range() -> None:
    score, positive = rows()
    claims: dict[str, Any] = {
        "misses": partial(certify_recall, score, positive, target=0.9),
        "false-alarms": partial(certify_false_alarms, score**2, positive, xi=0.05),
    }
    assert certify_together(claims, delta=0.04).thresholds is None


def test_each_claim_adds_a_column_to_a_table(tmp_path: Path) -> None:
    made = both(0.9, 0.05, 0.04)
    scores = [0.0, *made.thresholds, 1.0]
    frame = polars.DataFrame({"s": scores})
    found = made.apply(frame, score="s")
    for name in ("misses", "false-alarms"):
        alone = made[name].apply(frame, score="s")["pac_flag"].to_list()
        assert found[f"pac_flag_{name}"].to_list() == alone
    frame.write_csv(tmp_path / "rows.csv")
    made.apply_to_file(tmp_path / "rows.csv", tmp_path / "out.csv", score="s")
    assert polars.read_csv(tmp_path / "out.csv").equals(found)


def test_a_shield_is_the_one_among_the_claims(tmp_path: Path) -> None:
    score, unsafe = rollouts()
    claims: dict[str, Any] = {
        "misses": partial(certify_shield, score, unsafe, xi=0.2),
        "false-alarms": partial(certify_false_alarms, score, unsafe=unsafe, xi=0.05),
    }
    made: Any = certify_together(claims, delta=0.04)
    acts = (lambda _: 0, lambda _: 1, lambda _: 0.0)
    made.save(tmp_path / "both.json")
    for given in (made, tmp_path / "both.json"):
        assert Shield(*acts, given).threshold == made["misses"].threshold
        assert VectorShield(*acts, given, num_envs=2).threshold == made["misses"].threshold
    text = (tmp_path / "both.json").read_text().replace('"xi": 0.2', '"xi": 0.3')
    (tmp_path / "forged.json").write_text(text)
    with pytest.raises(CertificateError):
        Shield(*acts, tmp_path / "forged.json")
    two = certify_together({**claims, "stricter": claims["misses"]}, delta=0.06)
    with pytest.raises(InvalidTypeError, match="Pass one of its claims"):
        Shield(*acts, two)
