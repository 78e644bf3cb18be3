"""What goes to the terminal besides the results: a progress bar, on a terminal only."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress as Bar

from pacbound.documents import Json
from pacbound.sources import Progress


@contextmanager
def progress_bar(title: str) -> Iterator[Progress | None]:
    """A bar on stderr that takes the share done; None where stderr is not a terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    with Bar(console=console, transient=True) as bar:
        task = bar.add_task(title, total=1.0)
        yield lambda share: bar.update(task, completed=share)


def print_json(result: Mapping[str, Json]) -> None:
    """Print a result for programs, on one line."""
    sys.stdout.write(json_line(result) + "\n")


def json_line(result: Mapping[str, Json]) -> str:
    """A result for programs, as one line of JSON."""
    return json.dumps(result, allow_nan=False)
