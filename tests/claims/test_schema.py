"""The published schema has the documents of every claim as their fields declare them.

`python -m tests.claims.test_schema` writes those parts of it anew.
"""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from pacbound.claims import KINDS, claim_of

FILE = Path(str(resources.files("pacbound.claims").joinpath("schema.json")))
SCHEMA: Any = json.loads(FILE.read_text())


@pytest.mark.parametrize("kind", KINDS)
def test_the_schema_is_what_the_fields_declare(kind: str) -> None:
    assert SCHEMA["$defs"][kind] == claim_of(kind).schema()
    assert {"$ref": f"#/$defs/{kind}"} in SCHEMA["properties"]["claim"]["oneOf"]


def _written(schema: Any) -> str:
    """The schema with a line for each of its parts, so that a change is seen where it is."""
    parts = {name: json.dumps(part) for name, part in schema.items() if name != "$defs"}
    defined = ",\n".join(
        f"    {json.dumps(k)}: {json.dumps(v)}" for k, v in schema["$defs"].items()
    )
    lines = [f"  {json.dumps(name)}: {part}" for name, part in parts.items()]
    return "{\n" + ",\n".join([*lines, f'  "$defs": {{\n{defined}\n  }}']) + "\n}\n"


if __name__ == "__main__":
    SCHEMA["$defs"] |= {kind: claim_of(kind).schema() for kind in KINDS}
    listed = SCHEMA["properties"]["claim"]["oneOf"]
    parts = [{"$ref": f"#/$defs/{kind}"} for kind in KINDS]
    listed += [part for part in parts if part not in listed]
    FILE.write_text(_written(SCHEMA))
