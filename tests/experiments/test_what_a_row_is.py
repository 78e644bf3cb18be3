"""False claims because of what a row is: the record."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("matplotlib", reason="figures need the extra `report`")

from experiments import what_a_row_is as exhibit

RECORD = json.loads(
    (Path(exhibit.__file__).parent / "results/what_a_row_is.json").read_text(encoding="utf-8")
)


def test_every_claim_of_the_record_is_false_too_often_before_and_as_promised_now() -> None:
    assert [one["title"] for one in RECORD["tables"]] == list(exhibit.TABLES)
    for one in RECORD["tables"]:
        for row, case in zip(one["rows"], exhibit.TABLES[one["title"]](), strict=True):
            assert row["what"] == case.what
            assert callable(case.before) or row["before"] == list(case.before)
            (wrong, runs), (wrong_now, runs_now) = row["before"], row["after"]
            before = exhibit.chance(wrong, runs, row["delta"])
            assert before > 1e-3 if case.held else before < 1e-6
            assert row["chance"] == exhibit.chance(wrong_now, runs_now, row["delta"])
            assert row["chance"] > 1e-3
            assert runs_now >= 100
