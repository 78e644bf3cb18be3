"""One mechanism decides every claim of a threshold: recall, false alarms and shields, declared as
values, come to the decisions that the package's own procedures come to.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.claims.kinds import false_alarms, recall, shield
from tests.golden.cases import ROWS, images, rollouts
from tests.golden.snapshot import read

from pacbound.claims.claim import certify
from pacbound.claims.threshold import ThresholdCertificate
from pacbound.data import indoor_navigation

SHIPPED = read("shipped")


def _flagged(claim: Any, rows: dict[str, Any], **asked: Any) -> ThresholdCertificate:
    columns = {"score": images().shoe_score, "positive": images().shoes}
    found: ThresholdCertificate = certify(claim, columns, {"delta": 0.01, **asked}, None, rows)
    return found


def _braked(**asked: Any) -> ThresholdCertificate:
    columns: dict[str, Any] = {"score": rollouts()["scores"], "unsafe": rollouts()["unsafe"]}
    if asked.get("bound") == "product":
        columns["final_score"] = indoor_navigation().final_score[:ROWS]
    wishes = {"delta": 0.01, "xi": 0.05, **asked}
    found: ThresholdCertificate = certify(shield.CLAIM, columns, wishes, None, {})
    return found


CASES: dict[str, Callable[[], ThresholdCertificate]] = {
    "recall": lambda: _flagged(recall.CLAIM, {}, target=0.97),
    "recall-clusters": lambda: _flagged(
        recall.CLAIM, {"clusters": images().patient, "seed": 5}, target=0.95
    ),
    "recall-looks": lambda: _flagged(recall.CLAIM, {}, target=0.97, looks=(600, 1_207, 2_000)),
    "recall-refused": lambda: _flagged(recall.CLAIM, {}, target=0.9999),
    "false-alarms": lambda: _flagged(false_alarms.CLAIM, {}, xi=0.02),
    "false-alarms-refused": lambda: _flagged(false_alarms.CLAIM, {}, xi=0.0001),
    "shield": _braked,
    "shield-among-unsafe": lambda: _braked(rate="among-unsafe"),
    "shield-looks": lambda: _braked(looks=(1_000, 2_000, 4_000)),
    "shield-product": lambda: _braked(xi=0.1, bound="product"),
    "shield-refused": lambda: _braked(xi=0.0005),
}


@pytest.mark.parametrize("name", CASES)
def test_a_declared_claim_decides_as_the_procedure_of_its_kind(name: str) -> None:
    certificate, kept = CASES[name](), SHIPPED[name]
    (table,) = certificate.values["tables"]
    allowed = kept.get("allowed_misses", kept.get("allowed_false_alarms"))
    assert (certificate.threshold, table["allowed"]) == (float(kept["threshold"]), allowed)
    assert certificate.certified == kept["certified"]
    if not certificate.certified:
        claim: Any = certificate.by
        needed = claim.refusal(certificate, table).needed
        assert needed == kept["refusal"]["needed"]
    assert certificate.verify().ok
    assert certificate.summary()


def test_planned_looks_and_the_paper_s_bound_do_not_go_together() -> None:
    with pytest.raises(ValueError, match="looks go with bound='exact'"):
        _braked(looks=(4_000,), bound="product")
