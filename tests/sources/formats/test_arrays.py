"""Arrays in .npz and .npy files are read in bounded memory, or refused with the reason."""

from __future__ import annotations

import io
import struct
import tracemalloc
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pacbound import Tally
from pacbound.errors import InvalidValueError
from pacbound.sources.opening import open_table

GOOD = {"c": np.linspace(0, 1, 7), "ok": np.arange(7) % 2}
COLUMNS: dict[str, Any] = {"confidence": "c", "correct": "ok"}


def saved(array: Any, **options: Any) -> bytes:
    target = io.BytesIO()
    np.save(target, array, **options)
    return target.getvalue()


def header(descr: str, shape: str, *, data: bytes = b"", order: bool = False) -> bytes:
    """An array file with whatever its header should claim."""
    text = f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + data


def archive(path: Path, members: Mapping[str, bytes], **options: Any) -> Path:
    with zipfile.ZipFile(path, "w", **options) as target:
        for name, data in members.items():
            target.writestr(name, data)
    return path


def members(**others: bytes) -> dict[str, bytes]:
    good = {f"{name}.npy": saved(array) for name, array in GOOD.items()}
    return good | {f"{name}.npy": data for name, data in others.items()}


def read(path: Path) -> dict[str, Any]:
    batches: list[Any] = list(open_table(path).batches())
    assert len(batches) == 1
    return dict(batches[0].arrays)


@pytest.mark.parametrize(
    "extra",
    [
        {"notes.txt": b"Dear Sir or Madam"},
        {"folder/": b""},
        {"objects.npy": saved(np.array([{}, []], dtype=object), allow_pickle=True)},
        {"absurd.npy": header("'<f8'", "(10**15,)".replace("10**15", "1" + "0" * 15))},
        {"broken.npy": b"\x93NUMPY\x01\x00\xff\xff{"},
        {"long.npy": saved(np.zeros(100))},
        {"scalar.npy": saved(np.float64(3))},
    ],
)
def test_members_that_are_not_asked_for_are_left_alone(
    tmp_path: Path, extra: dict[str, bytes]
) -> None:
    path = archive(tmp_path / "rows.npz", members() | extra)
    assert Tally.count("calibration", data=path, **COLUMNS).rows == 7
    assert Tally.count("shield", score="c", unsafe="ok", data=path).rows == 7


# A row that is a byte wider than a row may be; its zeros come with `bad_data`.
WIDE = "one row of all"

BAD: dict[str, tuple[bytes, str]] = {
    "objects": (saved(np.array([{}, []], dtype=object), allow_pickle=True), "Python objects"),
    "absurd shape": (header("'<f8'", "(1000000000000000,)"), "claims the shape"),
    "shape beyond integers": (header("'<f8'", "(1" + "0" * 40 + ",)"), "claims the shape"),
    "negative shape": (header("'<f8'", "(-7,)", data=bytes(56)), "claims the shape"),
    "rows of nothing": (header("'<f8'", "(1000000000000000, 0)"), "0 bytes in each of its rows"),
    "values of nothing": (header("'|S0'", "(1000000000000000,)"), "0 bytes in each of its rows"),
    WIDE: (header("'|V67108865'", "(1,)"), "bytes in each of its"),
    "no header": (b"Dear Sir or Madam", "no header that can be read"),
    "nothing": (b"", "no header that can be read"),
    "half a header": (saved(GOOD["c"])[:40], "no header that can be read"),
    "unknown version": (b"\x93NUMPY\x09\x00" + bytes(100), "no header that can be read"),
    "wrong type": (header("'<q9'", "(7,)"), "no header that can be read"),
    "wrong shape": (header("'<f8'", "'seven'"), "no header that can be read"),
    "deep header": (header("(" * 4000 + ")" * 4000, "(7,)"), "no header that can be read"),
    "long header": (header("'<f8'", "(7,)" + " " * 60_000), "no header that can be read"),
    "half the data": (saved(GOOD["c"])[:-20], "claims the shape"),
    "a single value": (saved(np.float64(3)), "c has no rows"),
    "other length": (saved(np.zeros(9)), "c has 9 rows, ok has 7 rows"),
}  # fmt: skip


def bad_data(bad: str) -> bytes:
    return BAD[bad][0] + (bytes(2**26 + 1) if bad == WIDE else b"")


@pytest.mark.parametrize("bad", BAD)
def test_a_column_that_cannot_be_believed_is_refused_without_memory(
    tmp_path: Path, bad: str
) -> None:
    message = BAD[bad][1]
    wrong = members(c=bad_data(bad))
    path = archive(tmp_path / "rows.npz", wrong, compression=zipfile.ZIP_DEFLATED)
    tracemalloc.start()
    try:
        with pytest.raises(InvalidValueError, match=message) as caught:
            Tally.count("calibration", data=path, **COLUMNS)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert "rows.npz" in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1
    assert peak < 2**26


@pytest.mark.parametrize("bad", [name for name in BAD if name != "other length"])
def test_a_structured_array_that_cannot_be_believed_is_refused(tmp_path: Path, bad: str) -> None:
    (tmp_path / "rows.npy").write_bytes(bad_data(bad))
    with pytest.raises(InvalidValueError, match=r"rows\.npy"):
        Tally.count("calibration", data=tmp_path / "rows.npy", **COLUMNS)


def test_a_column_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.npz"
    archive(path, members())
    with zipfile.ZipFile(path, "a") as target, pytest.warns(UserWarning, match="Duplicate name"):
        target.writestr("c.npy", saved(GOOD["c"]))
    with pytest.raises(InvalidValueError, match="has 2 columns named 'c'"):
        Tally.count("calibration", data=path, **COLUMNS)


def test_an_encrypted_column_is_refused(tmp_path: Path) -> None:
    path = archive(tmp_path / "rows.npz", members())
    data = bytearray(path.read_bytes())
    for signature, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        place = data.index(signature)
        data[place + flags] |= 1
    path.write_bytes(data)
    with pytest.raises(InvalidValueError, match="is encrypted: save it without a password"):
        Tally.count("calibration", data=path, **COLUMNS)


def test_a_method_of_compression_that_is_not_known_is_refused(tmp_path: Path) -> None:
    path = archive(tmp_path / "rows.npz", members())
    data = bytearray(path.read_bytes())
    for signature, method in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        data[data.index(signature) + method] = 77
    path.write_bytes(data)
    with pytest.raises(InvalidValueError, match=r"cannot be read as \.npz"):
        Tally.count("calibration", data=path, **COLUMNS)


def test_a_size_that_the_archive_only_claims_is_not_believed(tmp_path: Path) -> None:
    absurd = header("'<f8'", "(1000000000,)", data=bytes(80))
    path = archive(tmp_path / "rows.npz", members(c=absurd, ok=absurd))
    data = bytearray(path.read_bytes())
    for signature, size in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        place = data.index(signature)
        data[place + size : place + size + 4] = struct.pack("<I", 2**32 - 2)
    path.write_bytes(data)
    with pytest.raises(InvalidValueError, match=r"rows\.npz"):
        Tally.count("calibration", data=path, **COLUMNS)


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_every_file_cut_short_or_with_a_byte_changed_is_refused_or_reads_as_written(
    tmp_path: Path, compression: int
) -> None:
    path = archive(tmp_path / "rows.npz", members(), compression=compression)
    whole = path.read_bytes()
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        with pytest.raises(InvalidValueError):
            read(path)
    rng = np.random.default_rng(0)
    for place in rng.permutation(len(whole))[:300].tolist():
        changed = bytearray(whole)
        changed[place] ^= int(rng.integers(1, 256))
        path.write_bytes(changed)
        try:
            found = read(path)
        except InvalidValueError:
            continue
        assert all(np.array_equal(found[name], GOOD[name]) for name in found.keys() & GOOD.keys())


def test_names_with_folders_in_them_are_columns(tmp_path: Path) -> None:
    path = archive(tmp_path / "rows.npz", members(**{"model/c": saved(GOOD["c"])}))
    assert Tally.count("calibration", data=path, confidence="model/c", correct="ok").rows == 7


@pytest.mark.parametrize(
    "array",
    [
        np.arange(12.0).reshape(6, 2),
        np.asfortranarray(np.arange(12.0).reshape(6, 2)),
        np.array(list("abcdef")),
        np.array([b"a", b"bc"] * 3),
        np.arange(6, dtype=">i4"),
        np.array([(1, 2.5)] * 6, dtype=[("é", int), ("b", float)]),
        np.arange(6).astype("datetime64[s]"),
    ],
)
@pytest.mark.filterwarnings("ignore:Stored array in format 3.0")
def test_arrays_of_all_kinds_are_read_as_they_were_written(tmp_path: Path, array: Any) -> None:
    np.savez_compressed(tmp_path / "rows.npz", a=array)
    found = read(tmp_path / "rows.npz")["a"]
    assert np.array_equal(found, array)
    assert found.dtype == array.dtype


def test_rows_are_read_in_bounded_memory_however_well_they_are_compressed(tmp_path: Path) -> None:
    rows = 30 * 2**20
    with zipfile.ZipFile(tmp_path / "rows.npz", "w", zipfile.ZIP_DEFLATED) as target:
        for name, descr in (("c", "'|u1'"), ("ok", "'|b1'")):
            with target.open(f"{name}.npy", "w") as entry:
                entry.write(header(descr, f"({rows},)"))
                for _ in range(30):
                    entry.write(bytes(2**20))
    assert (tmp_path / "rows.npz").stat().st_size < rows / 400
    tracemalloc.start()
    try:
        batches = open_table(tmp_path / "rows.npz").batches()
        assert sum(batch.rows for batch in batches) == rows
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < rows / 2


def test_an_empty_structured_array_has_its_columns_and_no_rows(tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", np.empty(0, dtype=[("c", float), ("ok", bool)]))
    table = open_table(tmp_path / "rows.npy")
    assert list(table.columns) == ["c", "ok"]
    assert sum(batch.rows for batch in table.batches()) == 0
