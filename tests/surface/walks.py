"""Six jobs, and the files of the package that each of them enters, in order.

A file is entered when one of its functions is called. What a module does while it is imported does
not count: each job runs once before it is watched. `python -m tests.surface.walks` writes what it
finds into docs/architecture.md, and a test holds the page to it.
"""

from __future__ import annotations

import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import numpy as np

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "architecture.md"
HOUSE = ROOT / "src" / "pacbound"


@dataclass(frozen=True)
class Walk:
    """A job: `most` files may be entered; `prepared` makes what it needs and returns the job."""

    title: str
    most: int
    prepared: Callable[[Path], Callable[[], object]]


def _arrays() -> tuple[np.ndarray, np.ndarray]:
    confidence = np.linspace(0.5, 1, 400)
    return confidence, np.random.default_rng(0).random(400) < confidence


def _calibrate(_: Path) -> Callable[[], object]:
    from pacbound import calibrate

    confidence, correct = _arrays()
    return lambda: calibrate(confidence, correct, delta=0.01)


def _cascade(folder: Path) -> Callable[[], object]:
    from pacbound import certify_cascade

    confidence, right = _arrays()
    rows = [
        f"{score},{'a' if ok else 'b'},a,a"
        for score, ok in zip(confidence, right | (confidence > 0.6), strict=True)
    ]
    table = folder / "answers.csv"
    table.write_text("\n".join(["sure,fast,slow,label", *rows]), encoding="utf-8")
    return lambda: certify_cascade(
        ["sure"], ["fast", "slow"], "label", data=table, xi=0.1, delta=0.05
    )


def _calibration_file(folder: Path) -> Path:
    from pacbound import calibrate

    confidence, correct = _arrays()
    path = folder / "calibration.json"
    calibrate(confidence, correct, delta=0.01).save(path)
    return path


def _verify(folder: Path) -> Callable[[], object]:
    from pacbound import load_certificate

    path = _calibration_file(folder)
    return lambda: load_certificate(path).verify()


def _shield(_: Path) -> Callable[[], object]:
    from pacbound import Shield, certify_shield

    unsafe = np.arange(2000) % 20 == 0
    certificate = certify_shield(np.where(unsafe, 0.8, 0.1), unsafe, xi=0.02, delta=0.01)
    shield = Shield(
        policy=lambda _: "drive",
        backup=lambda _: "brake",
        danger=lambda scan: scan,
        certificate_or_threshold=certificate,
    )
    return lambda: [shield(danger) for danger in (0.1, 0.9, 0.1)]


def _monitor(folder: Path) -> Callable[[], object]:
    from pacbound import Monitor, load_certificate

    certificate = load_certificate(_calibration_file(folder))
    confidence, correct = _arrays()
    state = folder / "monitor.json"

    def watch() -> None:
        state.unlink(missing_ok=True)
        monitor = Monitor(certificate, delta=0.01)
        monitor.update({"confidence": confidence, "correct": correct})
        monitor.save(state)

    return watch


def _report(folder: Path) -> Callable[[], object]:
    from pacbound.report import write_report

    path = _calibration_file(folder)
    return lambda: write_report([path], folder / "page.html")


WALKS = (
    Walk("Calibrate two arrays", 16, _calibrate),
    Walk("Certify a cascade from a CSV file", 36, _cascade),
    Walk("Verify a certificate", 14, _verify),
    Walk("Ask a shield", 8, _shield),
    Walk("Monitor a certificate", 30, _monitor),
    Walk("Write a report", 28, _report),
)


def entered(job: Callable[[], object]) -> list[str]:
    """The files of the package that `job` enters, in the order in which it first does."""
    job()
    found: dict[str, None] = {}

    def see(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            found.setdefault(frame.f_code.co_filename)

    before = sys.getprofile()
    threading.setprofile(see)
    sys.setprofile(see)
    try:
        job()
    finally:
        sys.setprofile(before)
        threading.setprofile(None)
    inside = (Path(name) for name in found if name.startswith(str(HOUSE)))
    return [str(path.relative_to(HOUSE)) for path in inside]


def walked(walk: Walk, folder: Path) -> list[str]:
    """The files that a walk enters."""
    return entered(walk.prepared(folder))


def told(title: str, page: str) -> list[str]:
    """The files that the page names for a walk."""
    return page[_block(title, page)].split()


def rewritten(page: str, found: Mapping[str, list[str]]) -> str:
    """The page with the files of each walk as they were found."""
    for title, files in found.items():
        block = _block(title, page)
        page = page[: block.start] + "\n".join(files) + page[block.stop :]
    return page


def _block(title: str, page: str) -> slice:
    """Where the files of a walk stand on the page."""
    before = f"**{title}**\n\n```text\n"
    start = page.index(before) + len(before)
    return slice(start, page.index("\n```", start - 1))


if __name__ == "__main__":
    found = {}
    for walk in WALKS:
        with tempfile.TemporaryDirectory() as folder:
            found[walk.title] = walked(walk, Path(folder))
        sys.stdout.write(f"{walk.title}: {len(found[walk.title])} files, {walk.most} at most\n")
        if "--list" in sys.argv:
            sys.stdout.write("".join(f"    {name}\n" for name in found[walk.title]))
    if "--write" in sys.argv:
        PAGE.write_text(rewritten(PAGE.read_text(encoding="utf-8"), found), encoding="utf-8")
