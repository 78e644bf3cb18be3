"""Which tests are slow, one thread per test process, a folder for each example in a docstring, and
what becomes of a test whose optional dependency is not installed.

Examples write files by short names, so each runs in an empty folder. A missing dependency is an
error, unless `--skip-missing` was asked for: then a test is skipped, with the reason, if a line of
its own imports the package, or if pacbound refuses with a `MissingDependencyError`. Any other
import that fails inside pacbound stays an error. tests/surface/test_core_install.py, which is never
skipped, holds what must work without any extra.
"""

from __future__ import annotations

import doctest
import gc
import os
import secrets
import sys
from collections.abc import Generator
from importlib.util import find_spec
from pathlib import Path
from random import Random
from traceback import walk_tb
from types import TracebackType
from typing import Any
from zlib import crc32

# Several test processes, each with as many threads as there are cores, spend their time waiting for
# each other. It must be said before NumPy and torch are loaded.
for _library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

# The processes of tests, and those that tests start, keep what they compile: each would compile the
# package again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# What Spark is told, wherever a test or a process of a test starts it.
os.environ.setdefault("SPARK_CONF_DIR", str(Path(__file__).parent / "tests"))

import pytest  # noqa: E402, RUF100
from _pytest.doctest import DoctestItem, DoctestModule, MultipleDoctestFailures  # noqa: E402, RUF100

SOURCES = Path(__file__).parent / "src"
TESTS = Path(__file__).parent / "tests"
SLOW_FOLDERS = ("agreement", "benchmarking", "experiments", "fuzz", "guarantees")
"""All engines side by side, what stands beside the package, damaged files, simulations: all
slow. They need every extra, so `--skip-missing` leaves them out."""


@pytest.fixture(autouse=True)
def _own_folder_for_doctests(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    if isinstance(request.node, DoctestItem):
        monkeypatch.chdir(request.getfixturevalue("tmp_path"))


@pytest.fixture(autouse=True)
def _seeds_of_the_system(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the operating system draws is the same in every run of a test, and another thing in each
    test: none may rest on a seed that it does not pass.
    """
    monkeypatch.setattr(secrets, "randbits", Random(request.node.nodeid).getrandbits)  # noqa: S311


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--skip-missing",
        action="store_true",
        help="skip tests whose optional dependency is not installed, instead of failing, and "
        "leave out the slow folders",
    )
    parser.addoption(
        "--one-in",
        type=int,
        default=1,
        metavar="N",
        help="run one test in N, always the same ones, chosen by a digest of their names",
    )


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave the slow folders out where none of their tests would run, unless one is named: to load
    them takes seconds.
    """
    slow = collection_path.parent == TESTS and collection_path.name in SLOW_FOLDERS
    unwanted = config.getoption("--skip-missing") or "not slow" in config.getoption("markexpr")
    return True if slow and unwanted else None


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Generator[None, list[pytest.Collector], Any]:
    """Look for examples in the sources alone: the tests have none."""
    found = yield
    if file_path.is_relative_to(TESTS):
        return [one for one in found if not isinstance(one, DoctestModule)]
    return found


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for no garbage among the modules and tests that are collected: all of them stay."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_unconfigure() -> None:
    """Let what was collected go: what would stay, DuckDB calls a leak on the screen."""
    gc.unfreeze()


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> Generator[None, None, None]:
    """Choose what runs, and then put the tests of Spark first and the slow ones next, each in
    whatever order they came. The first process has the first tests, so only one starts Java; and a
    long test at the end would keep one process busy while the others wait.
    """
    _mark_and_choose(config, items)
    yield
    items.sort(key=lambda item: (not _on_spark(item), not _is_slow(item)))


def _is_slow(item: pytest.Item) -> bool:
    return any(item.get_closest_marker(name) for name in ("slow", "long"))


def _on_spark(item: pytest.Item) -> bool:
    return "spark" in item.nodeid or "spark" in getattr(item, "fixturenames", ())


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give each process a part of the tests as they are ordered; one that is done takes over half
    of what is left to another, from its end.
    """
    from xdist.scheduler import WorkStealingScheduling  # noqa: PLC0415

    return WorkStealingScheduling(config, log)


def _mark_and_choose(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if any(item.path.is_relative_to(TESTS / folder) for folder in SLOW_FOLDERS):
            item.add_marker("slow")
    among = config.getoption("--one-in")
    if among < 1:
        raise pytest.UsageError(f"--one-in {among}: expected 1 or more.")
    left_out = [item for item in items if crc32(item.nodeid.encode()) % among]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if crc32(item.nodeid.encode()) % among == 0]


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    call = getattr(report, "call", None)
    if report.outcome == "failed" and call and collector.config.getoption("--skip-missing"):
        error = call.excinfo.value
        examples = isinstance(collector, DoctestModule)
        missing = _missing(error, examples=examples) or _missing(error.__cause__, examples=examples)
        if missing:
            report.outcome = "skipped"
            report.longrepr = (str(collector.path), 0, f"Skipped: {missing}")
            _forget_half_loaded(error)
            _forget_half_loaded(error.__cause__)
    return report


def _forget_half_loaded(error: BaseException | None) -> None:
    """Drop the modules, and the packages around them, that were being loaded when it failed: pytest
    leaves them where others would take them for whole.
    """
    frames = walk_tb(error.__traceback__ if error else None)
    files = {frame.f_code.co_filename for frame, _ in frames if frame.f_code.co_name == "<module>"}
    for name, module in [*sys.modules.items()]:
        if getattr(module, "__file__", None) in files:
            del sys.modules[name]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, None, None]:
    yield from _skipping(item)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    yield from _skipping(item)


def _skipping(item: pytest.Item) -> Generator[None, None, None]:
    try:
        yield
    except Exception as error:
        # A package that cannot be loaded around a module that can comes as the cause.
        missing = item.config.getoption("--skip-missing") and (
            _missing(error) or _missing(error.__cause__)
        )
        if missing:
            pytest.skip(missing)
        raise


def _missing(error: BaseException | None, *, examples: bool = False) -> str | None:
    """Why a test cannot run here, if it is for want of an optional dependency and rightly so.

    `examples` says that a module below src/ is loaded for its examples. The inner modules of an
    optional package may take for granted what the package itself asks for politely.
    """
    if isinstance(error, MultipleDoctestFailures):
        error = error.failures[0]
    if isinstance(error, doctest.UnexpectedException):
        error = error.exc_info[1]
    if not isinstance(error, ImportError):
        return None
    if type(error).__name__ == "MissingDependencyError":
        return str(error)
    package = (error.name or "").split(".")[0]
    if not package or package == "pacbound" or find_spec(package) is not None:
        return None
    if not examples and _place(error.__traceback__).is_relative_to(SOURCES):
        return None
    return f"needs {package}, which is not installed"


def _place(trace: TracebackType | None) -> Path:
    """The file of the line that raised."""
    while trace and trace.tb_next:
        trace = trace.tb_next
    return Path(trace.tb_frame.f_code.co_filename if trace else "")
