"""Sessions that several threads or processes share: no label and no answer is lost."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from pacbound.cascade import BatchSession

THREADS = 8
ROWS = 400


@pytest.fixture(autouse=True)
def switching_often() -> Iterator[None]:
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def shares(rows: np.ndarray) -> list[np.ndarray]:
    return np.array_split(rows, THREADS)


def run_all(work: list[threading.Thread]) -> None:
    for thread in work:
        thread.start()
    for thread in work:
        thread.join()


def test_no_answer_of_any_thread_is_lost(tmp_path: Path) -> None:
    def begun() -> BatchSession:
        return BatchSession(
            np.linspace(0, 1, ROWS),
            ["cat"] * ROWS,
            xi=0.2,
            delta=0.1,
            rng=np.random.default_rng(0),
            journal=tmp_path / "journal",
        )

    session = begun()
    while not session.done:
        parts = shares(session.ask())

        def tell(rows: np.ndarray) -> None:
            for row in rows.tolist():
                session.tell([row], ["cat"])

        run_all([threading.Thread(target=tell, args=(part,)) for part in parts])
    answered = session.answered
    session.close()
    with begun() as again:
        assert (again.done, again.answered) == (True, answered)
