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
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from pacbound import Certificate, errors
from pacbound.baselines import HistogramBinning, TemperatureScaling
from pacbound.claims.certificate import Verification
from pacbound.lazy_names import homes_in_stub
from pacbound.monitor import Alarm
from pacbound.planning import PilotPlan, PlanPoint
from pacbound.stats.looks import PlannedLooks

SOURCES = Path(__file__).parents[2] / "src"

HEADING = re.compile(r"^(?P<title>[A-Z]\w+)\n-{3,}$", re.MULTILINE)


def _public() -> Iterator[tuple[str, str]]:
    """Each name in an `__all__`, with the module that has it there, and what these return."""
    for stub in sorted((SOURCES / "pacbound").rglob("__init__.pyi")):
        package = ".".join(stub.relative_to(SOURCES).parent.parts)
        yield from ((package, name) for name in homes_in_stub(str(stub)))
    yield from ((thing.__module__, thing.__name__) for thing in _returned())
    for path in sorted((SOURCES / "pacbound").rglob("*.py")):
        parts = path.relative_to(SOURCES).with_suffix("").parts
        module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if ast.unparse(node).startswith("__all__ = ["):
                names = map(str, ast.literal_eval(ast.unparse(node).removeprefix("__all__ = ")))
                yield from ((module, name) for name in names if not name.startswith("__"))


def _returned() -> list[type]:
    """What the exported functions and methods return, by hand but for the certificates."""
    for path in (SOURCES / "pacbound" / "claims").rglob("[a-z]*.py"):
        importlib.import_module(".".join(path.relative_to(SOURCES).with_suffix("").parts))
    classes = [Alarm, PilotPlan, PlanPoint, PlannedLooks, Verification]
    return [*classes, HistogramBinning, TemperatureScaling, *_below(Certificate)]


def _below(cls: type) -> list[type]:
    """The classes below `cls` that have none below them, in order of their names."""
    below: list[type] = cls.__subclasses__()
    leaves = [leaf for one in below for leaf in _below(one)] if below else [cls]
    return sorted(leaves, key=lambda one: one.__name__)


@cache
def _documented() -> dict[str, Any]:
    """The functions and classes among them that can be used here, by their full names."""
    found = {}
    for module, name in sorted(set(_public())):
        thing = getattr(importlib.import_module(module), name)
        exempt = inspect.isclass(thing) and issubclass(thing, BaseException)
        missing = getattr(thing, "__missing_dependency__", None)
        if (inspect.isfunction(thing) or inspect.isclass(thing)) and not (exempt or missing):
            found[f"{module}.{name}"] = thing
    return found


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


def test_every_parameter_is_described() -> None:
    missing = {}
    for name, thing in _documented().items():
        sections = _sections(thing)
        described = _named_in(sections.get("Parameters", "")) | (
            _named_in(sections.get("Attributes", "")) if inspect.isclass(thing) else set()
        )
        missing[name] = [one for one in _parameters(thing) if one not in described]
    assert {name: parameters for name, parameters in missing.items() if parameters} == {}


def test_what_is_returned_is_described() -> None:
    """A class returns itself."""
    functions = {name: thing for name, thing in _documented().items() if inspect.isfunction(thing)}
    assert [
        name
        for name, thing in functions.items()
        if inspect.signature(thing).return_annotation not in (None, "None")
        and not {"Returns", "Yields"} & _sections(thing).keys()
    ] == []


def test_what_is_raised_is_described() -> None:
    missing = {
        name: _raised(thing) - _named_in(_sections(thing).get("Raises", ""))
        for name, thing in _documented().items()
        if inspect.isfunction(thing)
    }
    assert {name: errors for name, errors in missing.items() if errors} == {}


def test_every_method_has_a_docstring() -> None:
    assert [
        f"{name}.{member}"
        for name, thing in _documented().items()
        if inspect.isclass(thing)
        for member, value in vars(thing).items()
        if member[0] != "_" and _is_method(value) and not inspect.getdoc(getattr(thing, member))
    ] == []


def test_there_is_an_example() -> None:
    assert len(_documented()) > 120
    assert [
        name
        for name, thing in _documented().items()
        if ">>> " not in _sections(thing).get("Examples", "")
    ] == []
