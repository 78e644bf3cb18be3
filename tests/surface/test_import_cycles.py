"""No module of pacbound imports, directly or by way of others, a module that imports it.

Imports inside functions count, since they hide a cycle and do not remove it; those for type
checkers alone do not. That a package runs when one of its modules is imported is not counted: it is
in the nature of packages.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

SOURCES = Path(__file__).parents[2] / "src"


def _modules() -> dict[str, Path]:
    found = {}
    for path in sorted((SOURCES / "pacbound").rglob("*.py")):
        parts = path.relative_to(SOURCES).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = _modules()


def _imports(module: str) -> set[str]:
    """The modules that a module imports, wherever the import stands."""
    tree = ast.parse(MODULES[module].read_text(encoding="utf-8"))
    found = set()
    for node in _executed(tree):
        if isinstance(node, ast.Import):
            found |= {_known(alias.name) for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} imports relative to itself"
            home = node.module or ""
            found |= {_known(f"{home}.{alias.name}") for alias in node.names}
    return {name for name in found if name} - {module}


def _executed(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes below one, without what only type checkers read."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            for other in child.orelse:
                yield other
                yield from _executed(other)
            continue
        yield child
        yield from _executed(child)


def _known(name: str) -> str:
    """The module of pacbound that a dotted name is, or is in; empty for any other."""
    while name and name not in MODULES:
        name = name.rpartition(".")[0]
    return name


def _cycles(graph: dict[str, set[str]]) -> list[list[str]]:
    """The groups of nodes from each of which the others can be reached (Tarjan)."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        number[node] = lowest[node] = len(number)
        stack.append(node)
        for following in sorted(graph[node]):
            if following not in number:
                visit(following)
            if following in stack:
                lowest[node] = min(lowest[node], lowest[following])
        if lowest[node] == number[node]:
            group = stack[stack.index(node) :]
            del stack[stack.index(node) :]
            if len(group) > 1:
                found.append(sorted(group))

    for node in sorted(graph):
        if node not in number:
            visit(node)
    return found


def test_no_imports_go_round_in_a_circle() -> None:
    graph = {module: _imports(module) for module in MODULES}
    assert sum(map(len, graph.values())) > len(MODULES)
    assert _cycles(graph) == []


def test_a_cycle_would_be_found() -> None:
    assert _cycles({"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": set()}) == [["a", "b", "c"]]
    assert _cycles({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []
