"""Whatever stands in an `__all__` has a complete docstring in NumPy's form.

A function names each parameter, what it returns, what it raises itself, and has an example; a class
does so for what it is made from, as Parameters or as Attributes, and its public methods and
properties have a docstring, their own or that of the class they come from. Constants, type aliases
and exceptions, which the docstring of `pacbound.errors` draws, are exempt.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import textwrap
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from pacbound import errors

SOURCES = Path(__file__).parents[2] / "src"

HEADING = re.compile(r"^(?P<title>[A-Z]\w+)\n-{3,}$", re.MULTILINE)


def _public() -> Iterator[tuple[str, str]]:
    """Each name that is in an `__all__`, with the module that has it there."""
    for path in sorted((SOURCES / "pacbound").rglob("*.py")):
        parts = path.relative_to(SOURCES).with_suffix("").parts
        module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                yield from ((module, str(name)) for name in ast.literal_eval(node.value))


def _thing(module: str, name: str) -> Any:
    thing = getattr(importlib.import_module(module), name)
    if not (inspect.isfunction(thing) or inspect.isclass(thing)):
        pytest.skip("a constant or a type alias")
    if inspect.isclass(thing) and issubclass(thing, BaseException):
        pytest.skip("an exception: the docstring of pacbound.errors draws them all")
    missing = getattr(thing, "__missing_dependency__", None)
    if missing is not None:
        pytest.skip(missing)
    return thing


def _sections(thing: Any) -> dict[str, str]:
    text = inspect.getdoc(thing) or ""
    # Before the first title is the summary; after it, titles and their texts alternate.
    _, *parts = HEADING.split(text)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def _parameters(thing: Any) -> list[str]:
    try:
        signature = inspect.signature(thing)
    except ValueError:  # a class that takes whatever object() does
        return []
    return [
        parameter.name
        for parameter in signature.parameters.values()
        if not parameter.name.startswith("_")
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]


def _named_in(section: str) -> set[str]:
    """The names that a section describes: `a, b` or `a : int` at the margin."""
    lines = [line for line in section.splitlines() if line and not line.startswith(" ")]
    return {name.strip(" *`") for line in lines for name in line.split(" : ")[0].split(",")}


def _raised(function: Any) -> set[str]:
    """The exceptions of pacbound that the function raises itself, not those of what it calls."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    raised = [node.exc for node in ast.walk(tree) if isinstance(node, ast.Raise) and node.exc]
    names = {ast.unparse(exc.func if isinstance(exc, ast.Call) else exc) for exc in raised}
    return {name.split(".", maxsplit=1)[0] for name in names} & set(vars(errors))


def _is_method(value: Any) -> bool:
    kinds = (property, cached_property, classmethod, staticmethod)
    return isinstance(value, kinds) or inspect.isfunction(value)


NAMES = sorted({(module, name) for module, name in _public() if not name.startswith("__")})
IDS = [".".join(pair) for pair in NAMES]


@pytest.mark.parametrize(("module", "name"), NAMES, ids=IDS)
def test_every_parameter_is_described(module: str, name: str) -> None:
    thing = _thing(module, name)
    sections = _sections(thing)
    described = _named_in(sections.get("Parameters", "")) | (
        _named_in(sections.get("Attributes", "")) if inspect.isclass(thing) else set()
    )
    assert [one for one in _parameters(thing) if one not in described] == []


@pytest.mark.parametrize(("module", "name"), NAMES, ids=IDS)
def test_what_is_returned_and_raised_is_described(module: str, name: str) -> None:
    thing = _thing(module, name)
    if inspect.isclass(thing):
        pytest.skip("a class returns itself")
    sections = _sections(thing)
    returned = inspect.signature(thing).return_annotation
    assert returned in (None, "None") or {"Returns", "Yields"} & sections.keys()
    assert _raised(thing) - _named_in(sections.get("Raises", "")) == set()


@pytest.mark.parametrize(("module", "name"), NAMES, ids=IDS)
def test_every_method_has_a_docstring(module: str, name: str) -> None:
    thing = _thing(module, name)
    if not inspect.isclass(thing):
        pytest.skip("a function")
    own = [member for member, value in vars(thing).items() if _is_method(value)]
    assert [one for one in own if one[0] != "_" and not inspect.getdoc(getattr(thing, one))] == []


@pytest.mark.parametrize(("module", "name"), NAMES, ids=IDS)
def test_there_is_an_example(module: str, name: str) -> None:
    assert ">>> " in _sections(_thing(module, name)).get("Examples", "")
