"""`pacbound demo`: six commands on a network's predictions and a simulated robot's rollouts that
ship with the package.

Their tables are written as CSV files, and each command is printed before it is run: in the folder
of the demo they can be run again, one by one.
"""

from __future__ import annotations

import csv
import os
import shlex
import subprocess
import sys
import webbrowser
from contextlib import chdir
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any, Final

import numpy as np
import typer

from pacbound.atomic_files import atomic_file
from pacbound.cli.app import app
from pacbound.cli.exit_codes import BUG, complain, ending_well
from pacbound.cli.options import Writes, option
from pacbound.data import fashion_mnist, indoor_navigation


@dataclass(frozen=True)
class Step:
    """A sentence, the command that it is about, and the exit code that the command ends with."""

    says: str
    command: str
    code: int = 0


_FORGERY: Final = (
    "text = open('shield.json').read(); "
    "open('improved.json', 'w').write(text.replace(': 0.1\\n', ': 0.01\\n'))"
)
STEPS: Final = (
    Step(
        "The early exit answers for the whole network, losing at most 1 % accuracy.",
        "pacbound cascade held.csv --confidence confidence "
        "--prediction fast,slow --label label --costs 115456,3733888 "
        "--xi 0.01 --delta 0.01 -o cascade.json",
    ),
    Step(
        "A robot brakes before it is too late, in all but 10 % of its rollouts.",
        "pacbound shield rollouts.csv --score score --unsafe unsafe --horizon 100 --xi 0.1 "
        "--delta 0.01 -o shield.json",
    ),
    Step(
        "Answers are mixed up in use from image 5,001 on: the alarm rings.",
        "pacbound monitor cascade.json in_use.csv --delta 0.001 --state monitor.json",
        1,
    ),
    Step("Somebody makes a certificate ten times as strict.", f'python -c "{_FORGERY}"'),
    Step("Anyone can find out, without the data.", "pacbound verify improved.json", 1),
    Step(
        "Put it all on one page.",
        "pacbound report cascade.json shield.json --monitor monitor.json -o report.html",
    ),
)


@ending_well
def demo(
    output: Annotated[
        Path, option("--output", "-o", "The folder that everything is written to."), Writes()
    ] = Path("pacbound-demo"),
    opens: Annotated[bool, option("--open", "Open the page, where there is a desktop.")] = False,
) -> int:
    """Certify, monitor and verify in six steps, on a network's predictions and a simulated robot's
    rollouts.

    Every command is printed before it is run. What they need is written into the folder first, so
    that each can be run again there.
    """
    output.mkdir(parents=True, exist_ok=True)
    # A monitor would go on from its state.
    (output / "monitor.json").unlink(missing_ok=True)
    for name, columns in {**_images(), "rollouts.csv": _rollouts()}.items():
        _write(output / name, columns)
    typer.echo(f"$ cd {shlex.quote(str(output))}")
    with chdir(output):
        for number, step in enumerate(STEPS, start=1):
            typer.echo(f"\n{number}. {step.says}\n$ {step.command}")
            sys.stdout.flush()
            code = _run(step)
            sys.stderr.flush()
            if code != step.code:
                complain(f"{step.command} ended with {code}, not {step.code}: the demo ends here.")
                # One that was interrupted, or ended by a signal, says so itself.
                return max(BUG, code)
    page = output.resolve() / "report.html"
    typer.echo(f"\nThe page: {page}")
    if opens and not _opened(page):
        complain("There is no desktop to open it on.")
    return 0


def _opened(page: Path) -> bool:
    """Whether a browser on a desktop opens the page."""
    desktop = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    return bool(desktop or sys.platform in ("darwin", "win32")) and webbrowser.open(page.as_uri())


def _run(step: Step) -> int:
    """Run a command of the package in this process, as a shell would in one of its own."""
    program, *arguments = shlex.split(step.command)
    if program == "pacbound":
        return int(app(arguments, standalone_mode=False) or 0)
    return subprocess.run([sys.executable, *arguments], check=False).returncode  # noqa: S603


def _images() -> dict[str, dict[str, Any]]:
    """The tables of images: half of them certify, and the other half plays the future."""
    table = fashion_mnist()
    held, future = _halves(len(table.label))

    def columns(rows: Any) -> dict[str, Any]:
        return {
            "confidence": table.confidence_fast[rows],
            "fast": table.prediction_fast[rows],
            "slow": table.prediction_slow[rows],
            "label": table.label[rows],
        }

    wrong = columns(future)
    # From half-way on, a fault pairs each image with the early exit's answer to the one before.
    fast, half = wrong["fast"], len(future) // 2
    wrong["fast"] = np.where(np.arange(len(fast)) < half, fast, np.roll(fast, 1))
    return {"held.csv": columns(held), "in_use.csv": wrong}


def _rollouts() -> dict[str, Any]:
    table = indoor_navigation()
    held, _ = _halves(len(table.unsafe))
    return {"score": table.score[held], "unsafe": table.unsafe[held]}


def _halves(rows: int) -> tuple[Any, Any]:
    """Which rows certify, and which play the future, drawn by a seed that is fixed here."""
    order = np.random.default_rng(2021).permutation(rows)
    return np.sort(order[: rows // 2]), np.sort(order[rows // 2 :])


def _write(path: Path, columns: dict[str, Any]) -> None:
    with atomic_file(path) as file:
        text = TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*(column.tolist() for column in columns.values()), strict=True))
        text.detach()
