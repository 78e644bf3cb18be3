"""JSON files that can be trusted to be read: strict, canonical, digested, written whole or not at
all.

Nothing here knows what a document means. Reading accepts data only: no code runs, no file is
followed, and size, depth, duplicate keys, NaN and infinities are refused with a message that names
the file. Infinite thresholds travel as the strings "+inf" and "-inf".
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pacbound.atomic_files import atomic_file
from pacbound.errors import CertificateError

LARGEST_FILE = 32 * 2**20
DEEPEST_NESTING = 32

Json = Any
"""What `json` reads: dict, list, str, int, float, bool or None."""


def canonical(value: Json) -> bytes:
    """The one byte string that stands for `value`: keys sorted, no spaces, shortest exact floats."""
    text = json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False
    )
    return text.encode("ascii")


def digest(value: Json) -> str:
    """SHA-256 of the canonical form. It detects change; it is not a signature."""
    return "sha256:" + hashlib.sha256(canonical(value)).hexdigest()


def encode_float(value: float) -> float | str:
    """`value` as strict JSON can hold it."""
    if value == float("inf"):
        return "+inf"
    if value == float("-inf"):
        return "-inf"
    return float(value)


def decode_float(value: Json, where: str) -> float:
    """The inverse of `encode_float`; `where` names the place in the document if it is neither."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    if value in ("+inf", "-inf"):
        return float(value)
    raise CertificateError(f'{where} is {shown(value)}: expected a number, "+inf" or "-inf".')


def shown(value: Json, limit: int = 60) -> str:
    """`value` as an error message can quote it."""
    text = json.dumps(value, default=repr)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def write(path: str | os.PathLike[str], document: Mapping[str, Json]) -> None:
    """Write `document` to `path`; a crash leaves the old file or the new one, never half of one."""
    text = _readable(document)
    with atomic_file(path) as file:
        file.write(text.encode("ascii"))


def _readable(document: Mapping[str, Json]) -> str:
    """JSON for people too: a line for each key, and one for each list of numbers, however long."""
    text = json.dumps(document, indent=1, sort_keys=True, ensure_ascii=True, allow_nan=False)
    return re.sub(r"\[[-+\d.eE,\s]*\]", lambda numbers: re.sub(r"\s+", "", numbers[0]), text) + "\n"


def read(
    path: str | os.PathLike[str], what: str, *, largest: int = LARGEST_FILE
) -> dict[str, Json]:
    """The JSON object in `path`, or a `CertificateError` that says why the file is not `what`."""
    source = Path(path)
    if source.is_dir():
        raise CertificateError(f"{source} is a folder, not {what}.")
    with source.open("rb") as file:
        data = file.read(largest + 1)
    return parse(data, what=what, name=str(source), largest=largest)


def parse(data: bytes, *, what: str, name: str, largest: int = LARGEST_FILE) -> dict[str, Json]:
    """The JSON object in `data`; `name` and `what` are for the message."""
    if len(data) > largest:
        raise CertificateError(
            f"{name} is larger than {largest // 2**20} MB, so it is not {what}: those stay far "
            "below."
        )
    if not data.strip():
        raise CertificateError(
            f"{name} is empty, so it is not {what}. If a copy was interrupted, copy it again."
        )
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise CertificateError(f"{name} is not text, so it is not {what}: expected JSON.") from None
    _check_depth(text, what, name)
    try:
        document = json.loads(
            text,
            object_pairs_hook=_unique_keys,
            parse_constant=_refuse_constant,
            parse_int=_bounded_int,
        )
    except (ValueError, RecursionError) as error:
        raise CertificateError(
            f"{name} is not {what}: {error}. If it was cut short, copy it again."
        ) from None
    if not isinstance(document, dict):
        raise CertificateError(
            f"{name} is not {what}: expected a JSON object, found {shown(document)}."
        )
    return document


def differences(
    stored: Json, expected: Json, where: str = "", *, tolerance: float = 0.0
) -> list[str]:
    """Each place where two documents differ, as `path: stored …, recomputed …`.

    Floats agree within the relative `tolerance`, shares near 1 relative to what they leave;
    integers, booleans, strings and the shape agree exactly or not at all.
    """
    if isinstance(stored, dict) and isinstance(expected, dict):
        return _mapping_differences(stored, expected, where, tolerance)
    if isinstance(stored, list) and isinstance(expected, list) and len(stored) == len(expected):
        pairs = enumerate(zip(stored, expected, strict=True))
        return [
            line
            for i, (a, b) in pairs
            for line in differences(a, b, f"{where}[{i}]", tolerance=tolerance)
        ]
    close = (
        isinstance(stored, float)
        and isinstance(expected, float)
        and _close(stored, expected, tolerance)
    )
    if (
        type(stored) is type(expected)
        and not isinstance(stored, list)
        and (stored == expected or close)
    ):
        return []
    return [f"{where}: stored {shown(stored)}, recomputed {shown(expected)}"]


def _close(stored: float, expected: float, tolerance: float) -> bool:
    scale = max(abs(stored), abs(expected))
    if 0 <= stored <= 1 and 0 <= expected <= 1:
        # 0.999999995 and 1 are far apart as bounds: one leaves room for errors, the other none.
        scale = min(scale, 1 - min(stored, expected))
    return abs(stored - expected) <= max(
        tolerance * scale, 4 * sys.float_info.epsilon * (tolerance > 0) * max(stored, expected)
    )


def _mapping_differences(
    stored: dict[str, Json], expected: dict[str, Json], where: str, tolerance: float
) -> list[str]:
    lines = [
        f"{where}.{key}: not expected here".lstrip(".") for key in stored.keys() - expected.keys()
    ]
    lines += [
        f"{where}.{key}: missing, recomputed {shown(expected[key])}".lstrip(".")
        for key in expected.keys() - stored.keys()
    ]
    for key in sorted(stored.keys() & expected.keys()):
        lines += differences(
            stored[key], expected[key], f"{where}.{key}".lstrip("."), tolerance=tolerance
        )
    return lines


def _check_depth(text: str, what: str, name: str) -> None:
    # Brackets inside strings count too: a document of ours has none, and a bound on both is still a
    # bound.
    depth = 0
    for bracket in re.finditer(r"[\[\]{}]", text):
        depth += 1 if bracket[0] in "[{" else -1
        if depth > DEEPEST_NESTING:
            raise CertificateError(
                f"{name} is nested more than {DEEPEST_NESTING} deep, so it is not {what}."
            )


def _unique_keys(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    result = dict(pairs)
    if len(result) != len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(
            f"the key {next(key for key in keys if keys.count(key) > 1)!r} stands there twice"
        )
    return result


def _refuse_constant(name: str) -> Json:
    raise ValueError(f"{name} is not strict JSON")


def _bounded_int(digits: str) -> int:
    if len(digits) > 20:
        raise ValueError(f"the number {digits[:20]}… is out of range")
    return int(digits)
