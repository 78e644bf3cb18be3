"""The command line as a person runs it, with its exit code and its two streams."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("typer", reason="the command line needs the extra `cli`")

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def pacbound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Run:
    """Run `pacbound` in an empty folder, through the entry point of the installed script."""
    from pacbound.cli import main

    def run(*arguments: object, code: int = 0) -> subprocess.CompletedProcess[str]:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", ["pacbound", *map(str, arguments)])
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        streams = capfd.readouterr()
        actual = ended.value.code or 0
        assert actual == code, (actual, streams)
        assert "Traceback" not in streams.err
        return subprocess.CompletedProcess(sys.argv, int(actual), streams.out, streams.err)

    return run


@pytest.fixture
def predictions(tmp_path: Path) -> Path:
    """A table of 300 predictions with text that needs quotes."""
    rng = np.random.default_rng(0)
    confidence = rng.beta(6, 1, size=300)
    label = rng.integers(0, 3, size=300)
    right = rng.random(300) < confidence
    prediction = np.where(right, label, (label + 1) % 3)
    lines = ["c,ok,pred,y,place,note"]
    for i, score in enumerate(confidence.tolist()):
        place = "north" if i % 3 else "south"
        lines.append(
            f'{score!r},{int(right[i])},{prediction[i]},{label[i]},{place},"a ""note"", row {i}"'
        )
    path = tmp_path / "predictions.csv"
    path.write_text("\n".join(lines) + "\n")
    return path
