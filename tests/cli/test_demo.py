"""`pacbound demo`, end to end."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("matplotlib", reason="the figures of the demo need the extra `report`")
from tests.products import standing_for

from pacbound.cli import demo as telling
from pacbound.cli.demo import STEPS

pytestmark = pytest.mark.slow

PROGRAM = "import sys; from pacbound.cli import main; main()"
SHELL = f"""
pacbound() {{ {shlex.quote(sys.executable)} -c {shlex.quote(PROGRAM)} "$@"; }}
python() {{ {shlex.quote(sys.executable)} "$@"; }}
"""
"""A shell in which both words of the demo mean this interpreter."""


def timeless(text: str) -> str:
    """The text without moments, which another run of the demo in the same folder changes."""
    return re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "", text)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def story(folder: Path) -> str:
    command = [sys.executable, "-c", PROGRAM, "demo", "-o", "out put"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout


def test_six_steps_fit_on_three_screens_and_end_with_the_page(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROGRAM, "demo", "-o", "out"]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=True,
    )
    lines = done.stdout.rstrip("\n").split("\n")
    # The path of the page is as long as the folder's.
    rows = sum(max(1, -(-len(line) // 80)) for line in lines[:-1]) + 1
    assert rows <= 3 * 24
    assert re.findall(r"^\d\. ", done.stdout, re.MULTILINE) == [f"{n}. " for n in range(1, 7)]
    printed = re.findall(r"^\$ (.*)$", done.stdout, re.MULTILINE)
    assert printed == ["cd out", *(step.command for step in STEPS)]
    assert "improved.json: NOT VERIFIED" in done.stdout
    assert "is wrong is at most 0.02, the sum of their deltas" in done.stdout
    assert lines[-1] == f"The page: {tmp_path.resolve() / 'out' / 'report.html'}"
    assert (tmp_path / "out" / "report.html").exists()


def test_the_page_is_opened_where_there_is_a_desktop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []

    def browse(page: str) -> bool:
        opened.append(page)
        return True

    monkeypatch.setattr("webbrowser.open", browse)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.delenv("DISPLAY", raising=False)
    assert not telling._opened(tmp_path / "report.html")
    monkeypatch.setenv("DISPLAY", ":0")
    assert telling._opened(tmp_path / "report.html")
    assert opened == [(tmp_path / "report.html").as_uri()]


@pytest.fixture
def out(folder: Path, story: str) -> Path:
    assert story
    return folder / "out put"


@pytest.mark.skipif(os.name != "posix", reason="the commands are those of a POSIX shell")
@pytest.mark.parametrize(
    "beginning",
    standing_for(
        ["pacbound cascade", "pacbound shield", "python -c"], ["pacbound shield"], rest="long"
    ),
)
def test_what_is_printed_can_be_run_again(out: Path, story: str, beginning: str) -> None:
    lines = re.findall(r"^\$ (.*)$", story, re.MULTILINE)
    command = next(line for line in lines if line.startswith(beginning))
    done = subprocess.run(
        ["bash", "-c", f"{SHELL}\n{command}"], cwd=out, capture_output=True, text=True, check=True
    )
    assert timeless(done.stdout) in timeless(story)
