"""The published schema, as what judges documents."""

from __future__ import annotations

import json
from importlib import resources

import jsonschema

SCHEMA = jsonschema.Draft202012Validator(
    json.loads(resources.files("pacbound.claims").joinpath("schema.json").read_text())
)
