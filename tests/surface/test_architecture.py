"""The page on architecture is true: what it names exists, and a row takes the way that it says."""

from __future__ import annotations

import re
import sys
import threading
from pathlib import Path
from types import FrameType

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
NAMED = re.compile(r"`((?:[\w.]+/)+[\w.]+|[\w]+\.(?:md|toml|yml))`")
STEP = re.compile(r"^\d+\. .*$", re.MULTILINE)


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


def test_a_row_passes_every_file_of_its_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyarrow
    import pyarrow.parquet
    from typer.testing import CliRunner

    from pacbound.cli.app import app

    monkeypatch.chdir(tmp_path)
    confidence = np.linspace(0, 1, 101)
    table = pyarrow.table({"c": confidence, "ok": confidence > 0.5})
    pyarrow.parquet.write_table(table, "f.parquet")
    command = re.search(r"```sh\npacbound (.*)\n```", _section("The way of a row"))
    assert command is not None

    passed: set[str] = set()

    def see(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            passed.add(frame.f_code.co_filename)

    before = sys.getprofile()
    threading.setprofile(see)
    sys.setprofile(see)
    try:
        result = CliRunner().invoke(app, command[1].split())
    finally:
        sys.setprofile(before)
        threading.setprofile(None)
    assert result.exit_code == 0
    steps = "\n".join(STEP.findall(_section("The way of a row")))
    on_the_way = {str(ROOT / name) for name in NAMED.findall(steps)}
    assert len(on_the_way) > 20
    assert on_the_way - passed == set()
