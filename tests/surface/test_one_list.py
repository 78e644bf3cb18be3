"""A kind of claim is one module: nobody else names it.

What is named here are kinds of `KINDS` as texts. Beside their own modules the names stand in what
is public, in the standard-library verifier, in the demo, and in the questions that tallies are
called by, where a question is named because its columns are those of another. `shield` is also the
name of an extra.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from pacbound.claims import KINDS

SOURCES = Path(__file__).parents[2] / "src" / "pacbound"
ELSEWHERE = (
    "claims/", "procedures/", "exact_verifier.py", "cli/demo",
    "tally/questions/",
)  # fmt: skip
ALSO_NAMES = {"batch": {"cli/app.py"}, "forks": {"shield/rollouts/collected.py"}}
"""A command that is not made from a claim, and an outcome of rollouts, have the name of a kind."""


def _named(path: Path) -> Iterator[str]:
    """The texts of a file, but for the names of extras and of modules."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    extras = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "for_extra"
        for part in node.args
    }
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in extras
        ):
            yield node.value


@cache
def _files() -> dict[str, frozenset[str]]:
    """The texts of every file."""
    return {
        str(path.relative_to(SOURCES)): frozenset(_named(path)) for path in SOURCES.rglob("*.py")
    }


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_is_named_by_its_own_module_alone(kind: str) -> None:
    files = {name for name, texts in _files().items() if kind in texts}
    assert {name for name in files if not name.startswith(ELSEWHERE)} == ALSO_NAMES.get(kind, set())
