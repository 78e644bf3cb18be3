"""The published schema has the documents of every claim as their fields declare them."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

import pytest

from pacbound.claims import CLAIMS, claim_of

SCHEMA: Any = json.loads(
    resources.files("pacbound.certificate").joinpath("schema.json").read_text()
)


@pytest.mark.parametrize("kind", CLAIMS)
def test_the_schema_is_what_the_fields_declare(kind: str) -> None:
    assert SCHEMA["$defs"][kind] == claim_of(kind).schema()
    assert {"$ref": f"#/$defs/{kind}"} in SCHEMA["properties"]["claim"]["oneOf"]
