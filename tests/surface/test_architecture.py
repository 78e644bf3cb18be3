"""The page on architecture is true: what it names exists, and a job enters the files
that it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.surface.walks import WALKS, Walk, told, walked

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
NAMED = re.compile(r"`((?:[\w.]+/)+[\w.]+|[\w]+\.(?:md|toml|yml))`")


def _section(title: str) -> str:
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


@pytest.mark.parametrize("name", sorted(set(NAMED.findall(PAGE))))
def test_what_the_page_names_exists(name: str) -> None:
    assert (ROOT / name).exists()


def test_every_package_has_its_line() -> None:
    inside = (ROOT / "src" / "pacbound").iterdir()
    packages = {path.stem for path in inside if (path / "__init__.py").exists()} | {
        path.stem for path in (ROOT / "src" / "pacbound").glob("[a-z]*.py")
    }
    first_cells = re.findall(r"^\| (`.*?) \|", _section("The packages"), re.MULTILINE)
    assert packages == {name for cell in first_cells for name in re.findall(r"`(\w+)`", cell)}


def test_the_page_is_short() -> None:
    words = re.sub(r"```.*?```", "", PAGE, flags=re.DOTALL).split()
    assert len(words) <= 900


@pytest.mark.parametrize("walk", WALKS, ids=lambda walk: walk.title)
def test_a_job_enters_the_files_that_the_page_names(walk: Walk, tmp_path: Path) -> None:
    files = walked(walk, tmp_path)
    assert told(walk.title, PAGE) == files, "python -m tests.surface.walks --write"
    assert len(files) <= walk.most
