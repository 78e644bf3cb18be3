"""How many examples a property is tried on: few where long tests are left out; else
HYPOTHESIS_PROFILE picks a profile, and CI=true picks "ci". And the database that most tests share.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from importlib.util import find_spec
from typing import Any

import pytest
from hypothesis import settings

# Derandomised, so that a failure is seen by everyone or by no one; "thorough" is the one that looks
# for new ones.
settings.register_profile(
    "default", deadline=None, max_examples=100, derandomize=True, database=None
)
settings.register_profile("few", deadline=None, max_examples=25, derandomize=True, database=None)
settings.register_profile("ci", deadline=None, max_examples=300, derandomize=True, database=None)
settings.register_profile("thorough", deadline=None, max_examples=5000, print_blob=True)
settings.load_profile(
    os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") == "true" else "default")
)


def pytest_configure(config: pytest.Config) -> None:
    if "not long" in config.getoption("markexpr") and "HYPOTHESIS_PROFILE" not in os.environ:
        settings.load_profile("few")
    if settings.default is not None and settings.default.derandomize:
        _take_no_constants_from_modules()
    if find_spec("duckdb") is not None:
        from pacbound.sources import embedded_duckdb

        shared = _sharing(embedded_duckdb.connected, config)
        setattr(embedded_duckdb, "connected", shared)  # noqa: B010


def _take_no_constants_from_modules() -> None:
    """Else an example may be a constant of a module that some test before has loaded, and examples
    depend on the order of tests.
    """
    with suppress(ImportError):  # before Hypothesis 6.130 there were no such examples
        from hypothesis.internal.conjecture import providers
        from hypothesis.internal.constants_ast import Constants

        setattr(providers, "_get_local_constants", Constants)  # noqa: B010


def _sharing(
    connected: Callable[..., AbstractContextManager[Any]], config: pytest.Config
) -> Callable[..., AbstractContextManager[Any]]:
    """`connected`, with a new connection to a database that a test before has opened: to open one
    takes longer than most tests. One with a limit of its own, or in which something failed, is left
    to one test alone. Commands that run as processes open theirs as users' do.
    """
    from pacbound.sources.embedded_duckdb import QueryError, set_up

    opened = ExitStack()
    config.add_cleanup(opened.close)
    idle: dict[tuple[int, bool], list[Any]] = defaultdict(list)

    @contextmanager
    def shared(memory_limit: str | None = None, *, ordered: bool = False) -> Iterator[Any]:
        if memory_limit is not None:
            with connected(memory_limit, ordered=ordered) as connection:
                yield connection
            return
        # A process that was forked has the connections of its parent, and none of their threads.
        ready = idle[os.getpid(), ordered]
        if not ready:
            ready.append(opened.enter_context(connected(ordered=ordered)))
            with suppress(QueryError):  # before DuckDB 1.3 nothing was kept of files
                ready[-1].execute("SET enable_external_file_cache = false")
        database = ready.pop()
        with database.cursor() as connection:
            set_up(connection)
            yield connection
        ready.append(database)

    return shared
