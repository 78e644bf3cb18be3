"""What narwhals keeps of an engine is let go before the process ends.

It caches a namespace for each engine. The one that holds DuckDB's types until the very end makes
DuckDB report them as leaked, on stderr.
"""

from __future__ import annotations

import atexit
from contextlib import suppress


def let_go_at_exit() -> None:
    """Empty the cache before the interpreter takes modules apart; call it with narwhals loaded."""
    with suppress(ImportError, AttributeError):
        # Not public: a narwhals without it needs no help.
        from narwhals._namespace import _builtin_namespace  # noqa: PLC0415

        # Registered once, however often it is asked for.
        atexit.unregister(_builtin_namespace.cache_clear)
        atexit.register(_builtin_namespace.cache_clear)
