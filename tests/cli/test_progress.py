"""The progress bar: on a terminal, and nowhere else."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

COMMAND = ["calibrate", "rows.npz", "--confidence", "c", "--correct", "ok", "--delta", "0.01"]
PROGRAM = "from pacbound.cli import main; main()"


@pytest.mark.slow
@pytest.mark.skipif(
    not hasattr(os, "openpty"), reason="there are no pseudo-terminals on this system"
)
def test_a_bar_is_drawn_on_a_terminal_and_nothing_elsewhere(tmp_path: Path) -> None:
    np.savez(tmp_path / "rows.npz", c=np.linspace(0, 1, 1000), ok=np.arange(1000) % 2 == 0)
    ours, theirs = os.openpty()
    call = [sys.executable, "-c", PROGRAM, *COMMAND]
    terminal = {**os.environ, "TERM": "xterm"}
    drawn = subprocess.run(
        call, cwd=tmp_path, stdout=subprocess.PIPE, stderr=theirs, check=True, env=terminal
    )
    os.close(theirs)
    assert b"counting" in os.read(ours, 65536)
    os.close(ours)
    piped = subprocess.run(call, cwd=tmp_path, capture_output=True, check=True)
    assert piped.stderr == b""
    assert piped.stdout == drawn.stdout
