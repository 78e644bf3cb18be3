"""How much memory reading may take."""

from __future__ import annotations

import re

from pacbound.errors import InvalidTypeError, InvalidValueError

DEFAULT_MEMORY = "600MB"
"""What DuckDB may use; with Python, NumPy and the code itself a process then stays well under 1 GB.
"""

_AMOUNT = re.compile(r"\d+(\.\d+)?\s*([KMGT]i?B|B)", re.IGNORECASE)


def checked_memory(limit: str | None) -> str:
    """`limit`, if it is an amount of memory such as 500MB, or the default."""
    if limit is None:
        return DEFAULT_MEMORY
    if not isinstance(limit, str):
        raise InvalidTypeError(
            f"memory_limit={limit!r} is not an amount of memory: expected text such as '500MB'."
        )
    if not _AMOUNT.fullmatch(limit.strip()):
        raise InvalidValueError(
            f"memory_limit={limit!r} is not an amount of memory: expected for example '500MB' or "
            "'2GB'."
        )
    return limit.strip()
