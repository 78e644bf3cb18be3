"""A batch that was written is no longer held in memory."""

from __future__ import annotations

import io
import tracemalloc
from pathlib import Path

import numpy as np

from pacbound.sources.formats.arrays import ArrayBatch, NpzFile, npz_writer


def test_rows_come_back_as_they_were(tmp_path: Path) -> None:
    names = [np.array(["a", "bcd"]), np.array(["é", "longer"], dtype=object)]
    with (tmp_path / "rows.npz").open("wb") as file, npz_writer(file) as write:
        for start, name in zip((0, 2), names, strict=True):
            columns = {"c": np.arange(start, start + 2) / 7, "m": np.full((2, 3), start, order="F")}
            write(ArrayBatch(start, 2, columns), {"file": name})
    with np.load(tmp_path / "rows.npz") as found:
        assert found["c"].tolist() == (np.arange(4) / 7).tolist()
        assert found["m"].tolist() == [[0] * 3] * 2 + [[2] * 3] * 2
        assert found["file"].tolist() == ["a", "bcd", "é", "longer"]
    (rows,) = NpzFile(tmp_path / "rows.npz").batches()
    assert rows.rows == 4


def test_memory_does_not_grow_with_the_rows() -> None:
    megabyte = 2**17
    with npz_writer(io.BytesIO()) as write:
        tracemalloc.start()
        for place in range(16):
            column = np.full(megabyte, place, dtype=np.float64)
            write(ArrayBatch(place * megabyte, megabyte, {"c": column}), {})
        held, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert held < 4 * 2**20
