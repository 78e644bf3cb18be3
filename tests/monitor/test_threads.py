"""A monitor that threads share, and a file that processes share: nothing is lost."""

from __future__ import annotations

import copy
import pickle
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from pacbound import Monitor, calibrate, certify_shield
from pacbound.errors import InvalidValueError
from pacbound.monitor import prometheus_text

THREADS, CALLS = 8, 40


@pytest.fixture(autouse=True)
def switching_often() -> Iterator[None]:
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def at_once(work: Callable[[int], object]) -> None:
    """Run it in several threads, which begin together."""
    gate, failures = threading.Barrier(THREADS), list[BaseException]()

    def run(place: int) -> None:
        gate.wait()
        try:
            for _ in range(CALLS):
                work(place)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(place,)) for place in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


SHIELD = certify_shield([0.1] * 500, [False] * 500, xi=0.02, delta=0.01)
SURE = calibrate([0.9] * 1000, [True] * 950 + [False] * 50, delta=0.01)
ROW = {"confidence": [0.9, 0.9], "prediction": ["cat", "dog"], "label": ["cat", "dog"]}


def test_no_label_of_any_thread_is_lost() -> None:
    monitor = Monitor(SHIELD, delta=1e-3)
    at_once(lambda _: monitor.update([False, False, False]))
    expected = Monitor(SHIELD, delta=1e-3)
    expected.update([False] * (3 * THREADS * CALLS))
    assert monitor.rows == monitor.labels == 3 * THREADS * CALLS
    assert monitor.to_dict() == expected.to_dict()


def test_rows_and_counts_and_what_is_undone_do_not_disturb_each_other() -> None:
    monitor = Monitor(SURE, delta=1e-3)

    def work(place: int) -> None:
        if place % 4 == 0:
            monitor.update(ROW)
        elif place % 4 == 1:
            with suppress(ZeroDivisionError), monitor.all_or_nothing():
                monitor.update(ROW)
                raise ZeroDivisionError
        elif place % 4 == 2:
            trials = [0] * len(SURE.trials[0])
            monitor.update_counts(successes=trials, trials=trials)
        else:
            labels = monitor.to_dict()["labels"]
            assert isinstance(labels, int)
            assert labels % 2 == 0
            assert monitor.summary()
            assert prometheus_text(monitor)

    at_once(work)
    assert monitor.labels == 2 * (THREADS // 4) * CALLS


def test_what_another_process_saved_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    first = Monitor(SHIELD, delta=1e-3)
    first.save(path)
    second = Monitor.load(path, SHIELD)
    first.update([False])
    first.save(path)
    second.update([False, False])
    before = path.read_bytes()
    with pytest.raises(InvalidValueError, match="was written by another process"):
        second.save(path)
    assert path.read_bytes() == before
    again = Monitor.load(path, SHIELD)
    again.update([False, False])
    again.save(path)
    again.save(path)
    assert Monitor.load(path, SHIELD).labels == 3


def test_a_monitor_can_be_copied() -> None:
    monitor = Monitor(SHIELD, delta=1e-3)
    monitor.update([False])
    for copied in (copy.deepcopy(monitor), pickle.loads(pickle.dumps(monitor))):
        copied.update([False])
        assert (monitor.labels, copied.labels) == (1, 2)
