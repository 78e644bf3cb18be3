"""Every Python block of the README and of the documentation runs, and prints what the page says it
prints. So do the commands of the pages for beginners.

The blocks of one page run in order, in one namespace and in an empty folder. A block of `text` or
`output` directly below one of Python is what that one prints, to the letter, except that a line
wider than the page is broken and goes on indented. In docs/start, where people type what they read,
blocks of `sh` run too, and each command ends with 0, or with what the line says: `# exit code 3`.
What is below them is the beginning of what they print, up to a line with three dots.
"""

from __future__ import annotations

import ast
import io
import re
import shlex
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from textwrap import wrap
from typing import Any

import pytest
from tests.products import standing_for

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
WIDTH = 88
"""Columns that a page shows of a block of code without scrolling."""

START = ROOT / "docs" / "start"
REST = "…\n"
"""Stands for what a command prints after what a page shows of it."""

BLOCK = re.compile(
    r"^```(?P<language>python|sh)[^\n]*\n(?P<code>.*?)^```[ ]*$"
    r"(?:\s*^```(?:text|output)[^\n]*\n(?P<printed>.*?)^```[ ]*$)?",
    re.MULTILINE | re.DOTALL,
)

ANY_BLOCK = re.compile(r"^```[^\n]*\n(?P<inside>.*?)^```[ ]*$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Snippet:
    language: str
    code: str
    printed: str | None
    line: int


def _snippets(page: Path) -> Iterator[Snippet]:
    text = page.read_text(encoding="utf-8")
    for block in BLOCK.finditer(text):
        if block["language"] == "python" or page.is_relative_to(START):
            line = text.count("\n", 0, block.start("code"))
            yield Snippet(block["language"], block["code"], block["printed"], line)


def _as_shown(printed: str) -> str:
    lines = (
        wrap(line, WIDTH, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)
        if len(line) > WIDTH
        else [line]
        for line in printed.split("\n")
    )
    return "\n".join(chain.from_iterable(lines))


TRAINING = ("your-network.md", "shield.md", "cascade.md")
"""Pages that train networks or run simulations."""


def _with_python(pages: list[Path]) -> list[Any]:
    found = [page for page in pages if page.exists() and any(_snippets(page))]
    return standing_for(found, [page for page in found if page.name not in TRAINING], rest="long")


@pytest.mark.slow
@pytest.mark.parametrize("page", _with_python(PAGES), ids=lambda page: str(page.relative_to(ROOT)))
def test_snippets_run_and_print_what_the_page_says(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "__main__"}
    for snippet in _snippets(page):
        with redirect_stdout(io.StringIO()) as output:
            if snippet.language == "sh":
                _run_commands(snippet, monkeypatch)
            else:
                tree = ast.increment_lineno(ast.parse(snippet.code), snippet.line)
                exec(compile(tree, str(page), "exec"), namespace)
        if snippet.printed is not None:
            shown, printed = _as_shown(output.getvalue()), snippet.printed
            if snippet.language == "sh" and printed.endswith(REST):
                printed = printed.removesuffix(REST)
                shown = shown[: len(printed)]
            assert shown == printed, f"{page.name}, line {snippet.line + 1}"


def _run_commands(snippet: Snippet, monkeypatch: pytest.MonkeyPatch) -> None:
    import typer  # noqa: F401, RUF100  (what is missing is said here, not by an exit code)

    from pacbound.cli import main

    for line in snippet.code.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if not words or words[0] == "pip":
            continue
        assert words[0] == "pacbound", line
        monkeypatch.setattr(sys, "argv", words)
        expected = re.search(r"# exit code (\d+)", line)
        with pytest.raises(SystemExit) as ended:
            main()
        assert (ended.value.code or 0) == int(expected[1] if expected else 0), line


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_line_of_code_is_wider_than_the_page(page: Path) -> None:
    blocks = ANY_BLOCK.finditer(page.read_text(encoding="utf-8"))
    lines = [line for block in blocks for line in block["inside"].splitlines()]
    assert [line for line in lines if len(line) > WIDTH] == []


def test_the_readme_has_an_example() -> None:
    assert any(_snippets(ROOT / "README.md"))
