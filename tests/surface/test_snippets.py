"""Every Python block of the README and of the documentation runs, and prints what the page says it
prints.

The blocks of one page run in order, in one namespace and in an empty folder. A block of `text` or
`output` directly below one of Python is what that one prints, to the letter.
"""

from __future__ import annotations

import ast
import io
import re
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

BLOCK = re.compile(
    r"^```python[^\n]*\n(?P<code>.*?)^```[ ]*$"
    r"(?:\s*^```(?:text|output)[^\n]*\n(?P<printed>.*?)^```[ ]*$)?",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Snippet:
    code: str
    printed: str | None
    line: int


def _snippets(page: Path) -> Iterator[Snippet]:
    text = page.read_text(encoding="utf-8")
    for block in BLOCK.finditer(text):
        yield Snippet(block["code"], block["printed"], text.count("\n", 0, block.start("code")))


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
            assert output.getvalue() == snippet.printed, f"{page.name}, line {snippet.line + 1}"


def test_the_readme_has_an_example() -> None:
    assert any(_snippets(ROOT / "README.md"))
