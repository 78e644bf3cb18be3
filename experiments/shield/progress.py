"""Progress of long work, as lines that also read well in a file."""

from __future__ import annotations

import time
from collections.abc import Callable


def shown(what: str, *, every: float = 10.0) -> Callable[[float], None]:
    """A `progress=` that prints a line every so many seconds, and at the end."""
    last = time.monotonic()

    def show(share: float) -> None:
        nonlocal last
        if share >= 1 or time.monotonic() - last >= every:
            last = time.monotonic()
            print(f"  {what}: {share:.0%}", flush=True)

    return show
