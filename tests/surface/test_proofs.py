"""The page of proofs: every function, test and procedure that it names exists, and every procedure
and every file of guarantees is on it.
"""

from __future__ import annotations

import ast
import re
from fnmatch import fnmatchcase
from functools import cache
from inspect import ismodule
from pathlib import Path
from pkgutil import resolve_name

import pytest

from pacbound.claims import KINDS, claim_of

ROOT = Path(__file__).parents[2]
PROCEDURES = {name for kind in KINDS for name in claim_of(kind).procedures}
PAGE = (ROOT / "docs" / "proofs.md").read_text(encoding="utf-8")

NAMES = sorted(set(re.findall(r"`(pacbound(?:\.\w+)+)`", PAGE)))
TESTS = sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)))
FAMILIES = sorted(set(re.findall(r"`([a-z-]+(?:/[a-z*-]+)+/\d+)`", PAGE)))


def test_the_page_names_functions_tests_and_procedures() -> None:
    assert len(NAMES) > 40
    assert len(TESTS) > 50
    assert len(FAMILIES) > 20


@pytest.mark.parametrize("name", NAMES)
def test_every_function_on_the_page_exists(name: str) -> None:
    assert callable(resolve_name(name)) or ismodule(resolve_name(name))


@pytest.mark.parametrize(("path", "name"), TESTS)
def test_every_test_on_the_page_exists(path: str, name: str) -> None:
    assert name in _functions(path), f"{path} has no {name}, which the page of proofs names"


def test_every_procedure_is_on_the_page_and_every_one_on_the_page_exists() -> None:
    covered = {name for name in PROCEDURES if any(fnmatchcase(name, one) for one in FAMILIES)}
    assert set(PROCEDURES) - covered == set(), "add them to docs/proofs.md, with their theorem"
    assert [one for one in FAMILIES if not any(fnmatchcase(name, one) for name in PROCEDURES)] == []


def test_every_file_of_guarantees_is_on_the_page() -> None:
    files = {
        path.relative_to(ROOT).as_posix() for path in (ROOT / "tests/guarantees").glob("test_*.py")
    }
    # What compares the power of methods claims nothing.
    assert files - {path for path, _ in TESTS} == {"tests/guarantees/test_cascade_power.py"}


@cache
def _functions(path: str) -> set[str]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
