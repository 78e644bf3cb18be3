"""Sessions that several threads or processes share: no label and no answer is lost."""

from __future__ import annotations

import copy
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from pacbound import LabelSession
from pacbound.cascade import BatchSession
from pacbound.errors import InvalidValueError

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


def session_of(n: int = ROWS) -> LabelSession:
    scores = np.linspace(0.5, 0.99, n)
    return LabelSession(scores, np.array([[0, 1]] * n), xi=0.05, delta=0.1, classes=[0, 1])


def run_all(work: list[threading.Thread]) -> None:
    for thread in work:
        thread.start()
    for thread in work:
        thread.join()


def test_no_label_of_any_thread_is_lost() -> None:
    session = session_of()

    def tell(rows: np.ndarray) -> None:
        for row in rows.tolist():
            session.tell([row], [row % 2])
            assert session.progress.labels >= 1

    run_all([threading.Thread(target=tell, args=(part,)) for part in shares(np.arange(ROWS))])
    expected = session_of()
    expected.tell(np.arange(ROWS), np.arange(ROWS) % 2)
    assert session.labels == expected.labels
    assert session.tally.counts.tolist() == expected.tally.counts.tolist()
    assert session.certificate().counts_digest == expected.certificate().counts_digest


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


def test_what_another_session_was_told_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "session.json"
    first, second = session_of(20), session_of(20)
    first.tell([1], [0])
    first.decline([2])
    first.save(path)
    second.tell([1], [0])
    with pytest.raises(InvalidValueError, match="holds labels that this session does not have"):
        second.save(path)
    second.decline([2])
    second.save(path)
    assert LabelSession.load(path, np.linspace(0.5, 0.99, 20), [[0, 1]] * 20).declined == [2]


def test_a_session_can_be_copied() -> None:
    session = session_of(20)
    copied = copy.deepcopy(session)
    copied.tell([1], [0])
    assert (session.progress.labels, copied.progress.labels) == (0, 1)
