"""What every exhibit leaves behind: its numbers as JSON, its tables as Markdown, its figures as SVG
and PNG, and how to make them again.

A record has the command, the seeds, the versions and the SHA-256 of what was read; never a path of
the machine that ran it, nor the time. The same command on the same versions writes the same JSON.
"""

from __future__ import annotations

import json
import platform
import re
import sys
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

from pacbound.atomic_files import atomic_file
from pacbound.version import VERSION

RESULTS = Path("experiments/results")
RUNS = Path("experiments/runs")
"""What is kept of runs that are not finished; not committed."""
PACKAGES = ("numpy", "scipy")
STYLE: Any = {
    "font.size": 11,
    "axes.titlesize": 11,
    "figure.titlesize": 11,
    "axes.labelsize": 11,
    "legend.fontsize": 10,
    "svg.hashsalt": "pacbound",
}
"""Readable when a figure of two columns is printed over the width of a page."""


def provenance(
    command: str, *, seeds: Any = None, inputs: Mapping[str, str] | None = None, more: Any = ()
) -> dict[str, Any]:
    """How to make a result again: `inputs` are the SHA-256 of what was read, by its name, and
    `more` the packages that mattered beside numpy and scipy."""
    return {
        "command": command,
        "seeds": seeds,
        "inputs_sha256": dict(inputs or {}),
        "versions": {
            "pacbound": VERSION,
            "python": platform.python_version(),
            **{name: version(name) for name in (*PACKAGES, *more)},
        },
    }


def publish(
    out: Path,
    name: str,
    record: Mapping[str, Any],
    *,
    report: Callable[[Any], str],
    figures: Callable[[Any], Mapping[str, Figure]] = lambda _: {},
) -> None:
    """Write NAME.json, what `report` says of it as NAME.md, and its figures as
    NAME_FIGURE.svg; print the report.

    Report and figures see the record as the file holds it, so that they can be made again from the
    file alone. The JSON comes first, for it took longest, and the report last: where it is, all of
    it is.
    """
    text = dumped(record)
    held = json.loads(text)
    out.mkdir(parents=True, exist_ok=True)
    _written(out / f"{name}.json", text)
    with rc_context(STYLE):
        for figure_name, figure in figures(held).items():
            _saved(figure, out / (f"{name}_{figure_name}" if figure_name else name))
    said = report(held).strip() + "\n"
    _written(out / f"{name}.md", said)
    print(said)


def resumed(folder: Path, key: str, measure: Callable[[], Any]) -> Any:
    """What `measure` gives, as JSON holds it; kept in `folder`, so that a run that was stopped goes
    on where it was."""
    path = folder / f"{key}.json"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        _written(path, dumped(measure()))
    return json.loads(path.read_text(encoding="utf-8"))


def known(out: Path, name: str) -> dict[str, Any]:
    """A record that was published."""
    found: dict[str, Any] = json.loads((out / f"{name}.json").read_text(encoding="utf-8"))
    return found


def _written(path: Path, text: str) -> None:
    with atomic_file(path) as file:
        file.write(text.encode())


def _saved(figure: Figure, path: Path) -> None:
    figure.savefig(path.with_name(path.name + ".svg"), metadata={"Date": None})


def dumped(record: Mapping[str, Any]) -> str:
    """JSON with every list of numbers on one line; infinite thresholds are written as text."""
    text = json.dumps(_plain(record), indent=2, ensure_ascii=False, allow_nan=False)
    return (
        re.sub(r"\[[\s\d.,e\"+inf\[\]-]*\]", lambda found: re.sub(r"\s+", " ", found[0]), text)
        + "\n"
    )


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, (list, tuple, range)):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float) and np.isinf(value):
        return "+inf" if value > 0 else "-inf"
    return value


def table(head: tuple[str, ...], lines: Any) -> str:
    """A table in Markdown."""
    rows = [head, ("---",) * len(head), *lines]
    return "".join(f"| {' | '.join(map(str, row))} |\n" for row in rows)


def p_text(p_value: float) -> str:
    """A p-value for a table; one that is too small for a float is not zero."""
    return f"{p_value:.3g}" if p_value > 0 else "< 1e-300"


def show_progress(done: int, total: int, what: str) -> None:
    """A line that overwrites itself, on a terminal only."""
    if sys.stderr.isatty():
        print(f"\r{what}: {done} of {total}", end="\n" if done == total else "", file=sys.stderr)
