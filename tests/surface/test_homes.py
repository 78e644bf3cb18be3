"""Nothing that users may type is lost when the house is rebuilt: every parameter, option and method
had its place in the design, or was kept as it is. What is new needs no line here.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.surface.public_surface import surface

HOMES: dict[str, dict[str, dict[str, str]]] = json.loads(
    (Path(__file__).parent / "homes.json").read_text(encoding="utf-8")
)


@pytest.mark.parametrize("part", ["parameters", "options", "methods"])
def test_everything_that_users_may_type_has_a_home(part: str) -> None:
    today = {(owner, name) for owner, names in surface()[part].items() for name in names}
    known = {(owner, name) for owner, names in HOMES[part].items() for name in names}
    assert known - today == set(), "take what is gone out of homes.json"
    assert all(home for names in HOMES[part].values() for home in names.values())
