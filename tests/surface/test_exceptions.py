"""The tree of exceptions drawn in the docstring of pacbound.errors is the tree that exists."""

from __future__ import annotations

import inspect
import re

from pacbound import errors

LINE = re.compile(
    r"^ {4}(?P<branch>[│├└─ ]*)(?P<name>[A-Z]\w+)(?: \((?P<others>[\w, ]+)\))?(?:\s{2,}.*)?$"
)


def _drawn() -> dict[str, list[str]]:
    """The bases of each class as drawn: its place in the tree first, then the names in brackets."""
    bases: dict[str, list[str]] = {}
    path: list[str] = []
    for line in inspect.cleandoc(errors.__doc__ or "").splitlines():
        found = LINE.match(line)
        if found:
            depth = len(found["branch"]) // 4
            path = [*path[:depth], found["name"]]
            bases[found["name"]] = path[-2:-1] + (
                found["others"].split(", ") if found["others"] else []
            )
    return bases


def _real() -> dict[str, list[str]]:
    classes = [
        thing
        for thing in vars(errors).values()
        if inspect.isclass(thing) and thing.__module__ == errors.__name__
    ]
    return {
        cls.__name__: [base.__name__ for base in cls.__bases__ if base is not Exception]
        for cls in classes
    }


def test_the_drawn_tree_of_exceptions_is_the_real_one() -> None:
    assert _drawn() == _real()
    assert len(_real()) > 1


def test_every_exception_is_a_pacbound_error() -> None:
    assert all(issubclass(getattr(errors, name), errors.PacboundError) for name in _real())
