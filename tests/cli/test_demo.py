"""`pacbound demo`, end to end."""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

from pacbound import load_certificate

Run = Callable[..., subprocess.CompletedProcess[str]]


def test_the_demo_tells_the_whole_story(pacbound: Run, tmp_path: Path) -> None:
    story = pacbound("demo", "-o", "out").stdout
    for kind in ("calibration", "abstention", "cascade", "shield"):
        assert f"{kind}.json: verified" in story
        assert load_certificate(tmp_path / "out" / f"{kind}.json").certified
    assert "NOT VERIFIED" in story
    rang = re.search(r"ALARM at label ([\d,]+)", story)
    assert rang is not None
    assert 5000 < int(rang[1].replace(",", "")) < 5200
    made = {path.name for path in (tmp_path / "out").iterdir()}
    assert {
        "predictions_with_intervals.npz",
        "monitor.png",
        "reliability.png",
        "risk_coverage.png",
        "shield.png",
    } <= made


def test_the_certified_shield_of_the_demo_is_safe_enough_and_reaches_more_goals_than_the_product(
    pacbound: Run,
) -> None:
    story = pacbound("demo", "-o", "out").stdout
    rates = {
        name: (float(unsafe), float(success))
        for name, unsafe, success in re.findall(
            r"^  (\S.*?) +([\d.]+)% unsafe, +([\d.]+)% reach the goal$", story, re.MULTILINE
        )
    }
    assert rates["certified"][0] <= 10.0
    assert rates["no shield"][0] > 30.0
    assert rates["certified"][1] >= rates["the paper's product"][1]
