"""The engines that hold rows of files as frames: `parts` opens files, in each of them. Here: what
their errors mean.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from pacbound.errors import InvalidValueError, PacboundError

_ENGINES: Final = frozenset(
    ["_duckdb", "duckdb", "narwhals", "pandas", "polars", "py4j", "pyarrow", "pyspark"]
)


@contextmanager
def reading_frame() -> Iterator[None]:
    """Turn what an engine raises about the user's frame into an error that says so."""
    try:
        yield
    except PacboundError:
        raise
    except Exception as error:
        if not (_is_of_an_engine(error) or isinstance(error, (OSError, UnicodeError))):
            raise
        if "pyspark" in sys.modules:
            # Loaded here, because nothing else needs it.
            from pacbound.sources.engines.spark import explained  # noqa: PLC0415

            reason = explained(error)
            if reason is not None:
                raise InvalidValueError(
                    f"The frame cannot be read: {reason.rstrip('.')}."
                ) from error
        said = next((line for line in str(error).splitlines() if line.strip()), "no reason given")
        raise InvalidValueError(
            f"The frame cannot be read: {said.strip().rstrip('.')} ({type(error).__name__}). "
            "Collect it by itself to see where this comes from."
        ) from error


def _is_of_an_engine(error: Exception) -> bool:
    # A class of an engine's own may derive from one of its own, or be one of Python's beside it.
    return any(kind.__module__.split(".")[0] in _ENGINES for kind in type(error).__mro__)
