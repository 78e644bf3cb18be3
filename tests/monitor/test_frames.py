"""Rows of a frame are watched as arrays are; those that have no order are refused."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from tests.monitor.conftest import USES

from pacbound import Monitor, certify_shield, certify_together
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.monitor import BundleMonitor

polars = pytest.importorskip("polars")

ENGINES = ["polars", "lazy", "pandas", "pyarrow"]


def frame_of(columns: dict[str, Any], engine: str) -> Any:
    frame = polars.DataFrame(columns)
    if engine == "pandas":
        return frame.to_pandas()
    return {"polars": frame, "lazy": frame.lazy(), "pyarrow": frame.to_arrow()}[engine]


def columns_of(rows: Any, kind: str = "shield") -> tuple[dict[str, Any], dict[str, Any]]:
    """The columns of a table of these rows, and what they are for."""
    named: dict[str, Any] = {}
    table: dict[str, Any] = {}
    for role, values in (rows if isinstance(rows, dict) else {"unsafe": rows}).items():
        parts = np.asarray(values)
        if parts.ndim == 2 or (kind.startswith("cascade") and role == "confidence"):
            parts = parts.reshape(len(parts), -1)
            # What was seen of classes is kept by the names that columns of an array have.
            named[role] = [f"{role}[:, {column}]" for column in range(parts.shape[1])]
            table |= dict(zip(named[role], parts.T, strict=True))
        else:
            named[role] = f"the {role}"
            table[named[role]] = parts
    return table, named


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", sorted(USES.keys() - {"cascade-overlapping"}))
def test_rows_of_a_frame_lead_to_the_state_of_arrays(kind: str, engine: str) -> None:
    use = USES[kind]()
    rows = use.rows(400, np.random.default_rng(3), True)
    table, named = columns_of(rows, kind)
    expected, monitor = (Monitor(use.certificate, delta=1e-3) for _ in range(2))
    assert monitor.update(frame_of(table, engine), columns=named) == expected.update(rows)
    assert monitor.to_dict() == expected.to_dict()


def test_a_frame_that_cannot_be_watched_is_refused_and_changes_nothing() -> None:
    monitor = Monitor(USES["shield"]().certificate, delta=1e-3)
    before = monitor.to_dict()
    frame = polars.DataFrame({"u": [True, False], "v": [0.5, 2.0]})
    with pytest.raises(InvalidTypeError, match="say what its columns are for, such as columns="):
        monitor.update(frame)
    with pytest.raises(InvalidValueError, match="no column 'w'"):
        monitor.update(frame, columns={"unsafe": "w"})
    with pytest.raises(InvalidValueError, match=r"v\[0\] is 0\.5"):
        monitor.update(frame, columns={"unsafe": "v"})
    with pytest.raises(InvalidTypeError, match="has no 'score'"):
        monitor.update(frame, columns={"score": "v"})
    with pytest.raises(InvalidTypeError, match="A mapping names its columns itself"):
        monitor.update({"unsafe": [True]}, columns={"unsafe": "u"})
    with pytest.raises(InvalidTypeError, match="is not a frame"):
        monitor.update([True], columns={"unsafe": "u"})
    duckdb = pytest.importorskip("duckdb")
    with pytest.raises(InvalidValueError, match="The rows of this frame have no order"):
        monitor.update(duckdb.from_arrow(frame.to_arrow()), columns={"unsafe": "u"})
    assert monitor.to_dict() == before


def test_the_claims_of_a_bundle_take_frames() -> None:

    brake = partial(certify_shield, [0.1] * 1000, [False] * 1000, xi=0.02)
    monitor = BundleMonitor(certify_together({"brake": brake}, delta=0.01), delta=1e-3)
    frame = polars.DataFrame({"u": [True] * 20})
    assert monitor.update({"brake": frame}, columns={"brake": {"unsafe": "u"}}).keys() == {"brake"}
    with pytest.raises(InvalidTypeError, match="columns names the claim 'other'"):
        monitor.update({"brake": frame}, columns={"other": {"unsafe": "u"}})
