"""Every Python block of the README and of the documentation runs, and prints what the page says it
prints.

The blocks of one page run in order, in one namespace and in an empty folder. A block of `text` or
`output` directly below one of Python is what that one prints, to the letter, except that a line
wider than the page is broken and goes on indented.
"""

from __future__ import annotations

import ast
import io
import re
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from textwrap import wrap

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
WIDTH = 88
"""Columns that a page shows of a block of code without scrolling."""

BLOCK = re.compile(
    r"^```python[^\n]*\n(?P<code>.*?)^```[ ]*$"
    r"(?:\s*^```(?:text|output)[^\n]*\n(?P<printed>.*?)^```[ ]*$)?",
    re.MULTILINE | re.DOTALL,
)

ANY_BLOCK = re.compile(r"^```[^\n]*\n(?P<inside>.*?)^```[ ]*$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Snippet:
    code: str
    printed: str | None
    line: int


def _snippets(page: Path) -> Iterator[Snippet]:
    text = page.read_text(encoding="utf-8")
    for block in BLOCK.finditer(text):
        yield Snippet(block["code"], block["printed"], text.count("\n", 0, block.start("code")))


def _as_shown(printed: str) -> str:
    lines = (
        wrap(line, WIDTH, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)
        if len(line) > WIDTH
        else [line]
        for line in printed.split("\n")
    )
    return "\n".join(chain.from_iterable(lines))


def _with_python(pages: list[Path]) -> list[Path]:
    return [page for page in pages if page.exists() and any(_snippets(page))]


@pytest.mark.parametrize("page", _with_python(PAGES), ids=lambda page: str(page.relative_to(ROOT)))
def test_snippets_run_and_print_what_the_page_says(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "__main__"}
    for snippet in _snippets(page):
        tree = ast.increment_lineno(ast.parse(snippet.code), snippet.line)
        with redirect_stdout(io.StringIO()) as output:
            exec(compile(tree, str(page), "exec"), namespace)
        if snippet.printed is not None:
            assert _as_shown(output.getvalue()) == snippet.printed, (
                f"{page.name}, line {snippet.line + 1}"
            )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_line_of_code_is_wider_than_the_page(page: Path) -> None:
    blocks = ANY_BLOCK.finditer(page.read_text(encoding="utf-8"))
    lines = [line for block in blocks for line in block["inside"].splitlines()]
    assert [line for line in lines if len(line) > WIDTH] == []


def test_the_readme_has_an_example() -> None:
    assert any(_snippets(ROOT / "README.md"))
