"""One file for each kind of claim, which says what the tests that run over all kinds need of it.

Whoever adds a claim adds a file with a `KIND` here, and every document, monitor, plan, page and
verifier is tried with it.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from tests.kinds.kind import Kind

KINDS: dict[str, Kind] = {
    path.stem.replace("_", "-"): import_module(f"tests.kinds.{path.stem}").KIND
    for path in sorted(Path(__file__).parent.glob("[a-z]*.py"))
    if path.stem not in {"kind", "random_rows"}
}
