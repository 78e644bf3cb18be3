"""What `pacbound` exports: sorted, importable, documented, with examples that run."""

from __future__ import annotations

import ast
import doctest
import inspect
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import pacbound

SOURCES = Path(__file__).parents[2] / "src"
REFERENCE = Path(__file__).parents[2] / "docs" / "reference"


def _present() -> dict[str, Any]:
    """The public names that can be had with the extras that are installed."""
    found = {name: getattr(pacbound, name) for name in pacbound.__all__}
    return {
        name: thing for name, thing in found.items() if not hasattr(thing, "__missing_dependency__")
    }


PRESENT = _present()
FUNCTIONS = [name for name, thing in PRESENT.items() if inspect.isfunction(thing)]
CLASSES = [name for name, thing in PRESENT.items() if inspect.isclass(thing)]


def test_public_names_are_sorted_and_unique() -> None:
    assert pacbound.__all__ == sorted(set(pacbound.__all__))


def test_public_names_are_few() -> None:
    """At most 40 at the top, and 130 with those of the public packages below it."""
    packages = [path.parent for path in (SOURCES / "pacbound").rglob("__init__.py")]
    modules = ["pacbound.paper", *(".".join(p.relative_to(SOURCES).parts) for p in packages)]
    modules = [name for name in modules if ".claims" not in name and ".questions" not in name]
    found = {name for each in modules for name in getattr(import_module(each), "__all__", ())}
    said = f"{len(pacbound.__all__)} at the top, {len(found)} in all: {sorted(found)}\n"
    sys.stdout.write(said)
    assert len(pacbound.__all__) <= 40, said
    assert len(found) <= 130, said


def test_dir_lists_every_public_name() -> None:
    assert set(pacbound.__all__) <= set(dir(pacbound))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        getattr(pacbound, "no_such_name")  # noqa: B009, type checkers know that it is not there


@pytest.mark.parametrize("name", FUNCTIONS)
def test_public_function_has_an_example_that_is_run(name: str) -> None:
    thing = PRESENT[name]
    text = inspect.getdoc(thing) or ""
    assert "Examples\n--------\n" in text
    # pytest runs the examples of every module below src/, so being found in such a module is being
    # run.
    module = sys.modules[thing.__module__]
    assert Path(str(module.__file__)).is_relative_to(SOURCES)
    examples = [
        test
        for test in doctest.DocTestFinder().find(module)
        if test.name == f"{module.__name__}.{thing.__name__}"
    ]
    assert [test for test in examples if test.examples]


@pytest.mark.parametrize("name", CLASSES)
def test_public_class_documents_itself_and_its_public_methods(name: str) -> None:
    thing = PRESENT[name]
    own = [
        member
        for member in inspect.getmembers(thing)
        if not member[0].startswith("_") and _is_ours(thing, member[0])
    ]
    silent = [
        member
        for member, value in own
        if _is_documentable(value) and not inspect.getdoc(value) and not _inherited(thing, member)
    ]
    assert inspect.getdoc(thing)
    assert silent == []


def test_every_public_name_is_in_the_reference() -> None:
    pages = "\n".join(page.read_text(encoding="utf-8") for page in REFERENCE.glob("*.md"))
    errors = {
        name for name in pacbound.__all__ if name.endswith("Error")
    }  # their page is that of the whole module
    assert [
        name
        for name in pacbound.__all__
        if name not in errors | {"__version__"} and f"::: pacbound.{name}\n" not in pages
    ] == []


def _is_ours(cls: type, member: str) -> bool:
    return any(
        member in vars(base) and base.__module__.startswith("pacbound") for base in cls.__mro__
    )


def _is_documentable(value: object) -> bool:
    return inspect.isroutine(value) or isinstance(value, property)


def _inherited(cls: type, member: str) -> bool:
    return any(getattr(vars(base).get(member), "__doc__", None) for base in cls.__mro__)


def test_no_two_classes_have_one_name() -> None:
    """But in the verifier that shares nothing with the package, whose words are those of the page
    on procedures."""
    sources = SOURCES / "pacbound"
    homes: dict[str, list[str]] = {}
    for path in sorted(sources.rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and path.name != "exact_verifier.py":
                homes.setdefault(node.name, []).append(str(path.relative_to(sources)))
    assert len(homes) > 200
    assert {name: files for name, files in homes.items() if len(files) > 1} == {}
