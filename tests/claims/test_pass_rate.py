"""Pass rates: what counts, what is certified, and who takes one for a shield."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest

from pacbound import Shield, certify_rate, exact_verifier
from pacbound.claims.certificate import certificate_from_dict
from pacbound.errors import CertificateError, InvalidTypeError, InvalidValueError
from pacbound.stats.binomial import binomial_upper

ASKED: dict[str, Any] = {"target": 0.9, "delta": 0.01}


def passing(rows: int, failed: int) -> Any:
    return np.arange(rows) >= failed


def test_the_verdict_is_that_of_clopper_and_pearson() -> None:
    assert binomial_upper(18, 300, delta=0.01) <= 0.1 < binomial_upper(19, 300, delta=0.01)
    good, bad = (certify_rate(passing(300, failed), **ASKED) for failed in (18, 19))
    assert (good.certified, good.number("passed"), good.allowed) == (True, 282, 18)
    assert not bad.certified
    assert "19 of 300 rows did not pass; 18 are allowed." in bad.summary()
    few = certify_rate([True] * 43, **ASKED)
    assert "43 rows cannot certify 90 %, even if all pass." in few.summary()
    assert "44 rows would do" in few.summary()
    assert certify_rate([True] * 44, **ASKED).certified


@pytest.mark.parametrize("missing", [None, float("nan")])
def test_a_missing_outcome_counts_as_not_passed(missing: Any, tmp_path: Path) -> None:
    told = [missing] * 19 + [1.0] * 281
    found = certify_rate(told, **ASKED)
    assert (found.certified, found.number("passed"), found.n) == (False, 281, 300)
    frame = polars.DataFrame({"ok": [None] * 19 + [True] * 281})
    frame.write_csv(tmp_path / "rows.csv")
    frame.write_parquet(tmp_path / "rows.parquet")
    for data in (frame, frame.to_arrow(), tmp_path / "rows.csv", tmp_path / "rows.parquet"):
        assert certify_rate("ok", data=data, **ASKED).claim() == found.claim()


def test_every_group_must_keep_the_rate() -> None:
    groups = np.arange(600) % 2
    good = certify_rate(np.arange(600) >= 30, groups=groups, **ASKED)
    assert good.certified
    assert good.groups == ("0", "1")
    failed = (groups == 1) & (np.arange(600) < 50)
    bad = certify_rate(~failed, groups=groups, **ASKED)
    assert not bad.certified
    assert "0: can be certified by itself." in bad.summary()
    assert certify_rate(~failed, **ASKED).certified


@pytest.mark.parametrize("threshold", [-np.inf, 0.0, 0.3, 1.0, np.inf])
def test_a_shield_has_the_threshold_that_was_driven_and_brakes_where_it_is_refused(
    threshold: float, tmp_path: Path
) -> None:
    acts = (lambda _: 0, lambda _: 1, lambda _: 0.0)
    made = certify_rate(passing(300, 5), threshold=threshold, **ASKED)
    made.save(tmp_path / "c.json")
    assert Shield(*acts, tmp_path / "c.json").threshold == made.threshold == threshold
    refused = certify_rate(passing(300, 50), threshold=threshold, **ASKED)
    assert Shield(*acts, refused).threshold == -np.inf
    with pytest.raises(InvalidTypeError, match="pass-rate certificate has no danger threshold"):
        Shield(*acts, certify_rate(passing(300, 5), **ASKED))


@pytest.mark.parametrize("threshold", [1.5, -0.1, float("nan"), "half"])
def test_what_is_no_threshold_is_refused(threshold: Any) -> None:
    with pytest.raises((InvalidValueError, InvalidTypeError), match="threshold"):
        certify_rate([True] * 50, threshold=threshold, **ASKED)


@pytest.mark.parametrize(
    "change",
    [
        {"threshold": 0.5},
        {"threshold": None},
        {"target": 0.95},
        {"delta": 0.001},
        {"n": 299},
        {"certified": False},
    ],
)
def test_a_changed_claim_does_not_verify(change: dict[str, Any]) -> None:
    document = certify_rate(passing(300, 15), threshold=0.3, **ASKED).to_dict()
    document["claim"] |= change
    try:
        wrong = exact_verifier.check_document(document).wrong
    except exact_verifier.UnreadableError:
        wrong = ["unreadable"]
    assert wrong


def test_rows_in_other_cells_are_refused() -> None:
    """There a threshold would be found below them, and anything would pass."""
    document = certify_rate(passing(300, 200), **ASKED).to_dict()
    table = document["claim"]["tables"][0]
    table["counts"]["cells"], table["threshold"] = [5], 5 / 65536
    document["claim"]["certified"] = True
    wrong = exact_verifier.check_document(document).wrong
    assert any("cells: does not rise from -1 to at most -1" in line for line in wrong)
    with pytest.raises(CertificateError, match="does not rise from -1 to at most -1"):
        certificate_from_dict(document)
