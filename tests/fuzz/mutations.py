"""Small damage to files: of their bytes, and of what a JSON document says.

A source of randomness in, a damaged copy out. Hypothesis drives it in the tests, where a failure
shrinks, and a plain generator in the long runs.
"""

from __future__ import annotations

import copy
import json
from random import Random
from typing import Any

from pacbound import documents

MOST_CHANGES = 4

# What parsers stumble over: limits of integers, lengths that lie, signs, quotes, ends of lines.
PIECES = (
    b"\x00", b"\xff", b"\xff\xff\xff\xff", b"\xff\xff\xff\x7f", b"\x00\x00\x00\x80",
    b"\x80\x80\x80\x80\x08",
    b"-", b"-1", b"nan", b"inf", b"1e999", b"9" * 30, b"0x1", b"1_0", b"+", b".", b" ",
    b'"', b'""', b"'", b",", b";", b"\t", b"\n", b"\r", b"\r\n", b"\\", b"\\u0000", b"\\ud800",
    b"{", b"}", b"[", b"]", b":", b"null", b"true", b"\xef\xbb\xbf", b"\xed\xa0\x80",
    b"(", b")", b"<f8", b"|O",
)  # fmt: skip

VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 0.5, 1.5, -0.0, 5e-324, 1e308,
    2**31, 2**53, 2**63, 2**64, 10**30,
    "", "0", "1", "+inf", "-inf", "nan", "\x00", "\ud800", "x" * 300,
    [], {}, [[]], [0], [None], [[0, 0]],
)  # fmt: skip


def damaged_bytes(data: bytes, random: Random) -> bytes:
    """`data` with a few changes: bytes set, removed, repeated, moved or put in between."""
    for _ in range(random.randint(1, MOST_CHANGES)):
        data = _damaged_once(data, random)
    return data


def _damaged_once(data: bytes, random: Random) -> bytes:
    start = random.randint(0, len(data))
    end = min(len(data), start + random.choice((1, 1, 2, 4, 8, 64, len(data))))
    way = random.choice(("set", "flip", "insert", "replace", "remove", "repeat", "move", "cut"))
    if way == "set":
        return data[:start] + bytes([random.randint(0, 255)]) + data[start + 1 :]
    if way == "flip" and start < len(data):
        return data[:start] + bytes([data[start] ^ (1 << random.randint(0, 7))]) + data[start + 1 :]
    if way == "insert":
        return data[:start] + random.choice(PIECES) + data[start:]
    if way == "replace":
        piece = random.choice(PIECES)
        return data[:start] + piece + data[start + len(piece) :]
    if way == "remove":
        return data[:start] + data[end:]
    if way == "repeat":
        return data[:end] + data[start:end] * random.choice((1, 2, 50)) + data[end:]
    if way == "move":
        rest = data[:start] + data[end:]
        place = random.randint(0, len(rest))
        return rest[:place] + data[start:end] + rest[place:]
    return data[:start]


def damaged_document(data: bytes, random: Random) -> bytes:
    """A JSON document with other values in some places, and with the digests that fit them."""
    document = json.loads(data)
    for _ in range(random.randint(1, MOST_CHANGES)):
        _change(document, random)
    if random.random() < 0.9:
        mend_digests(document)
    return json.dumps(document).encode("utf-8", "surrogatepass")


def mend_digests(document: dict[str, Any]) -> None:
    """Make every digest fit its part, as whoever wants to deceive would."""
    for name in [name for name in document if name.endswith("_digest")]:
        part = name.removesuffix("_digest")
        if part in document:
            document[name] = documents.digest(document[part])
    if "digest" in document:
        body = {name: value for name, value in document.items() if name != "digest"}
        document["digest"] = documents.digest(body)


def _change(document: Any, random: Random) -> None:
    holder = random.choice(_holders(document))
    keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
    way = random.choice(("set", "set", "nudge", "copy", "remove", "add"))
    if way == "add" or not keys:
        _add(holder, random)
        return
    key = random.choice(keys)
    if way == "remove":
        del holder[key]
    elif way == "copy":
        holder[key] = copy.deepcopy(holder[random.choice(keys)])
    elif way == "nudge" and type(holder[key]) in (int, float):
        holder[key] = random.choice(
            (holder[key] + 1, holder[key] - 1, -holder[key], holder[key] * 2)
        )
    else:
        holder[key] = copy.deepcopy(random.choice(VALUES))


def _add(holder: Any, random: Random) -> None:
    value = copy.deepcopy(random.choice(VALUES))
    if isinstance(holder, dict):
        holder[random.choice(("", "extra", "n", "kind", "claim"))] = value
    else:
        holder.insert(random.randint(0, len(holder)), value)


def _holders(value: Any) -> list[Any]:
    """All objects and lists of a document that something can be changed in."""
    if not isinstance(value, (dict, list)):
        return []
    inner = value.values() if isinstance(value, dict) else value
    return [value, *(holder for part in inner for holder in _holders(part))]
