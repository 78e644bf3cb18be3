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
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pacbound.atomic_files import atomic_file
from pacbound.errors import CertificateError, InvalidTypeError
from pacbound.exact_verifier import DEEPEST, strict

LARGEST_FILE = 32 * 2**20
_CHUNK = 2**20
# Larger integers are not exact in float64, which other programs read JSON numbers into.
LARGEST_INTEGER = 2**53

# What `json` reads: dict, list, str, int, float, bool or None.
Json = Any


def canonical(value: Json) -> bytes:
    """The one byte string for `value`: keys sorted, no spaces, shortest exact floats."""
    try:
        text = json.dumps(
            value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False
        )
    except (TypeError, ValueError, RecursionError) as error:
        raise CertificateError(f"The document holds what strict JSON cannot: {error}.") from None
    return text.encode("ascii")


def digest(value: Json) -> str:
    """SHA-256 of the canonical form. It detects change; it is not a signature."""
    return "sha256:" + hashlib.sha256(canonical(value)).hexdigest()


def sealed(body: Mapping[str, Json]) -> dict[str, Json]:
    """The body of a file that keeps a state, with the digest of it."""
    return {**body, "digest": digest(body)}


def require_seal(
    document: Mapping[str, Json], name: str, what: str, layout: str, schema: int, remedy: str = ""
) -> None:
    """Raise unless a document is of a format and schema, and as it was when it was sealed; `name`,
    `what` and `remedy` are for the message.
    """
    require_format(document, name, what, layout, schema)
    body = {key: value for key, value in document.items() if key != "digest"}
    if document.get("digest") != digest(body):
        raise CertificateError(
            f"{name} was changed after it was written: its digest does not match. {remedy}".rstrip()
        )


def require_format(
    document: Mapping[str, Json], name: str, what: str, layout: str, schema: int
) -> None:
    """Raise unless a document is of a format and schema; `name` and `what` are for the message."""
    if document.get("format") != layout:
        raise CertificateError(
            f"{name} is not {what}: its format is {shown(document.get('format'))}."
        )
    # True and 1.0 equal 1 in Python.
    if type(document.get("schema")) is not int or document["schema"] != schema:
        raise CertificateError(
            f"{name} has schema {shown(document.get('schema'))}: this version reads {schema}. "
            "Upgrade pacbound."
        )


def copied(value: Json) -> Json:
    """A copy that shares nothing that can be changed, several times faster than `deepcopy`."""
    if isinstance(value, dict):
        return {key: copied(item) for key, item in value.items()}
    if isinstance(value, list):
        return [copied(item) if isinstance(item, (dict, list)) else item for item in value]
    return value


def encoded(value: Any) -> Json:
    """A value as strict JSON can hold it: arrays of finite numbers and tuples as lists, mappings as
    objects.
    """
    if isinstance(value, float):
        return encode_float(value)
    if isinstance(value, Mapping):
        return {name: encoded(item) for name, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [encoded(item) for item in value]
    return value.tolist() if hasattr(value, "tolist") else value


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
        if not abs(value) <= sys.float_info.max:
            raise CertificateError(f"{where} is {shown(value)}: expected a number that is finite.")
        return float(value)
    if isinstance(value, str) and value in ("+inf", "-inf"):
        return float(value)
    raise CertificateError(f'{where} is {shown(value)}: expected a number, "+inf" or "-inf".')


def shown(value: Json, limit: int = 60) -> str:
    """`value` as an error message can quote it."""
    text = json.dumps(value, default=repr)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def printable(text: str) -> str:
    r"""`text` as a terminal may be shown it: characters that cannot be seen are written as
    escapes, such as `\x1b`, so that no file can move the cursor, hide a line, or turn letters
    around.
    """
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in text
    )


def printable_lines(text: str) -> str:
    """The same for a text of several lines, which stay lines."""
    return "\n".join(printable(line) for line in text.split("\n"))


def write(
    path: str | os.PathLike[str],
    document: Mapping[str, Json],
    *,
    read: Callable[[dict[str, Json]], object] | None = None,
    largest: int = LARGEST_FILE,
) -> None:
    """Write `document` to `path`. A crash leaves the old file or the new one, never half of one,
    and a document that cannot be read again, by `read` too, leaves the old one.
    """
    body = canonical(document)
    data = readable(document).encode("ascii")
    try:
        again = parse(data, what="a file that can be read", name="It", largest=largest)
        if canonical(again) != body:
            raise CertificateError("it would read otherwise.")
        if read is not None:
            read(again)
    except CertificateError as error:
        raise CertificateError(
            f"{os.fspath(path)} is not written, because it could not be read again: {error}"
        ) from None
    with atomic_file(path) as file:
        file.write(data)


def readable(document: Mapping[str, Json]) -> str:
    """JSON for people too: a line for each key, and one for each list of numbers, however long."""
    return _lines(document, "\n") + "\n"


def _lines(value: Json, margin: str) -> str:
    inner = f"{margin} "
    if isinstance(value, Mapping) and value:
        items = (f"{json.dumps(key)}: {_lines(value[key], inner)}" for key in sorted(value))
        return f"{{{inner}{f',{inner}'.join(items)}{margin}}}"
    if isinstance(value, (list, tuple)) and not all(type(item) in (int, float) for item in value):
        return f"[{inner}{f',{inner}'.join(_lines(item, inner) for item in value)}{margin}]"
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def read(
    path: str | os.PathLike[str], what: str, *, largest: int = LARGEST_FILE
) -> dict[str, Json]:
    """The JSON object in `path`, or a `CertificateError` that says why the file is not `what`."""
    try:
        source = Path(path)
    except TypeError:
        raise InvalidTypeError(
            f"A {type(path).__name__} is not a path: expected the name of a file, as text or a "
            "pathlib.Path."
        ) from None
    if source.is_dir():
        raise CertificateError(f"{source} is a folder, not {what}.")
    data = bytearray()
    with source.open("rb") as file:
        # In pieces: room for the largest file would be taken for every small one.
        while len(data) <= largest and (chunk := file.read(_CHUNK)):
            data += chunk
    return parse(bytes(data), what=what, name=str(source), largest=largest)


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
    try:
        document = strict(text)
    except RecursionError:
        raise CertificateError(
            f"{name} is nested more than {DEEPEST} deep, so it is not {what}."
        ) from None
    except ValueError as error:
        raise CertificateError(
            f"{name} is not {what}: {error}. If it was cut short, copy it again."
        ) from None
    if not isinstance(document, dict):
        raise CertificateError(
            f"{name} is not {what}: expected a JSON object, found {shown(document)}."
        )
    return document


def differences(stored: Json, expected: Json, where: str = "") -> list[str]:
    """Each place where two documents differ, as `path: stored …, recomputed …`. Numbers agree to
    the last digit or not at all, and 1 is not 1.0.
    """
    if isinstance(stored, dict) and isinstance(expected, dict):
        return _mapping_differences(stored, expected, where)
    if isinstance(stored, list) and isinstance(expected, list) and len(stored) == len(expected):
        pairs = enumerate(zip(stored, expected, strict=True))
        return [line for i, (a, b) in pairs for line in differences(a, b, f"{where}[{i}]")]
    if type(stored) is type(expected) and not isinstance(stored, list) and stored == expected:
        return []
    return [f"{where}: stored {shown(stored)}, recomputed {shown(expected)}"]


def _mapping_differences(
    stored: dict[str, Json], expected: dict[str, Json], where: str
) -> list[str]:
    lines = [
        f"{where}.{key}: not expected here".lstrip(".") for key in stored.keys() - expected.keys()
    ]
    lines += [
        f"{where}.{key}: missing, recomputed {shown(expected[key])}".lstrip(".")
        for key in expected.keys() - stored.keys()
    ]
    for key in sorted(stored.keys() & expected.keys()):
        lines += differences(stored[key], expected[key], f"{where}.{key}".lstrip("."))
    return lines


class Reader:
    """Takes values out of a parsed document, naming the place of anything that is not what it
    should be.
    """

    def __init__(self, document: Json, where: str) -> None:
        if not isinstance(document, dict):
            raise CertificateError(f"{where} is {shown(document)}: expected a JSON object.")
        self._document = document
        self._where = where

    def names(self) -> list[str]:
        """All keys, in order."""
        return sorted(self._document)

    def place(self, key: str) -> str:
        """Where `key` stands in the document."""
        return f"{self._where}.{key}"

    def raw(self, key: str) -> Json:
        """The value of `key`, whatever it is."""
        if key not in self._document:
            raise CertificateError(f"{self.place(key)} is missing.")
        return self._document[key]

    def has(self, key: str) -> bool:
        """Whether `key` is there, whatever its value is."""
        return key in self._document

    def mapping(self, key: str) -> Reader:
        return Reader(self.raw(key), self.place(key))

    def mappings(self, key: str) -> list[Reader]:
        return [Reader(item, f"{self.place(key)}[{i}]") for i, item in enumerate(self._list(key))]

    def text(self, key: str) -> str:
        return self._printable(self.raw(key), self.place(key))

    def optional_text(self, key: str) -> str | None:
        return None if self.raw(key) is None else self.text(key)

    def texts(self, key: str) -> list[str]:
        return [
            self._printable(item, f"{self.place(key)}[{i}]")
            for i, item in enumerate(self._list(key))
        ]

    def integer(self, key: str) -> int:
        return int(self._typed(self.raw(key), int, self.place(key)))

    def whole(self, key: str) -> int:
        """An integer that every reader of JSON keeps exactly."""
        return self._bounded(self.integer(key), self.place(key))

    def count(self, key: str) -> int:
        """An integer from 0."""
        value = self.whole(key)
        if value < 0:
            raise CertificateError(f"{self.place(key)} is {value}: expected at least 0.")
        return value

    def positive(self, key: str) -> int:
        """A count of at least one."""
        value = self.count(key)
        if value < 1:
            raise CertificateError(f"{self.place(key)} is {value}: expected at least 1.")
        return value

    def probability(self, key: str) -> float:
        """A number strictly between 0 and 1."""
        value = self.number(key)
        if not 0 < value < 1:
            raise CertificateError(
                f"{self.place(key)} is {value}: expected a failure probability, 0 < value < 1."
            )
        return value

    def integers(self, key: str) -> list[int]:
        """A list of integers that int64 and float64 hold exactly."""
        values = self._list(key)
        for i, item in enumerate(values):
            if type(item) is not int or abs(item) > LARGEST_INTEGER:
                where = f"{self.place(key)}[{i}]"
                self._bounded(int(self._typed(item, int, where)), where)
        return list(values)

    def classes(self, key: str) -> list[int | str]:
        """A list of classes: numbers and names."""
        values = self._list(key)
        if not all(type(value) in (int, str) for value in values):
            raise CertificateError(f"{self.place(key)}: expected a list of numbers and names.")
        return values

    def number(self, key: str) -> float:
        return decode_float(self.raw(key), self.place(key))

    def numbers(self, key: str) -> list[float]:
        return [
            decode_float(item, f"{self.place(key)}[{i}]") for i, item in enumerate(self._list(key))
        ]

    def choice(self, key: str, allowed: tuple[str, ...]) -> Any:
        value = self.text(key)
        if value not in allowed:
            raise CertificateError(
                f"{self.place(key)} is {value!r}: expected one of {', '.join(allowed)}."
            )
        return value

    @classmethod
    def _printable(cls, value: Json, where: str) -> str:
        text = str(cls._typed(value, str, where))
        if any("\ud800" <= letter <= "\udfff" for letter in text):
            raise CertificateError(f"{where} is {shown(value)}: half a character, no text.")
        return text

    @staticmethod
    def _bounded(value: int, where: str) -> int:
        if abs(value) > LARGEST_INTEGER:
            raise CertificateError(f"{where} is {value}: expected at most 2**53.")
        return value

    def _list(self, key: str) -> list[Json]:
        value = self.raw(key)
        if not isinstance(value, list):
            raise CertificateError(f"{self.place(key)} is {shown(value)}: expected a list.")
        return value

    @staticmethod
    def _typed(value: Json, kind: type, where: str) -> Json:
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise CertificateError(f"{where} is {shown(value)}: expected {kind.__name__}.")
        return value
