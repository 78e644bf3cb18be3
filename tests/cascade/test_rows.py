"""What a cascade answers in a table is what the answering model predicted, to the last digit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pacbound import certify_cascade
from pacbound.claims.cascade import CascadeCertificate
from pacbound.errors import InvalidTypeError


def certified() -> tuple[CascadeCertificate, list[float]]:
    """A cascade, and scores of four rows that its two models answer in turn."""
    scores = np.linspace(0.5, 1.0, 2000)
    fast = np.where(scores < 0.75, 1, 0)
    certificate = certify_cascade(
        scores,
        np.column_stack([fast, np.zeros(2000, dtype=int)]),
        np.zeros(2000),
        xi=0.05,
        delta=0.05,
    )
    threshold = float(certificate.thresholds[0])
    return certificate, [threshold, float(np.nextafter(threshold, 0))] * 2


def applied(folder: Path, fast: Any, slow: Any) -> tuple[list[int], list[Any]]:
    """Which model answers each row of a Parquet file, and the answers."""
    certificate, scores = certified()
    pq.write_table(pa.table({"c": scores, "fast": fast, "slow": slow}), folder / "rows.parquet")
    certificate.apply_to_file(
        folder / "rows.parquet",
        folder / "out.parquet",
        confidence="c",
        prediction=["fast", "slow"],
    )
    out = pq.read_table(folder / "out.parquet")
    return out["pac_exit"].to_pylist(), out["pac_prediction"].to_pylist()


def test_answers_that_no_one_integer_type_holds_are_refused(tmp_path: Path) -> None:
    fast = pa.array([-1, -1, -1, -1], pa.int64())
    slow = pa.array([2**63] * 4, pa.uint64())
    with pytest.raises(InvalidTypeError, match="no type holds both: write all predictions with"):
        applied(tmp_path, fast, slow)
    assert not (tmp_path / "out.parquet").exists()


@pytest.mark.parametrize(
    ("fast", "slow", "expected"),
    [
        (["a", "b", "c", "d"], ["e", "long", "g", "h"], ["a", "long", "c", "h"]),
        (["null", "b", "nan", "d"], ["e", "None", "g", "h"], ["null", "None", "nan", "h"]),
        (pa.array([1, 2, 3, 4], pa.int8()), [5, 6, 7, 2**40], [1, 6, 3, 2**40]),
        (
            pa.array([2**64 - 1] * 4, pa.uint64()),
            pa.array([2**64 - 2] * 4, pa.uint64()),
            [2**64 - 1, 2**64 - 2] * 2,
        ),
    ],
)
def test_each_row_has_the_answer_of_its_model(
    tmp_path: Path, fast: Any, slow: Any, expected: list[Any]
) -> None:
    assert applied(tmp_path, fast, slow) == ([0, 1, 0, 1], expected)
