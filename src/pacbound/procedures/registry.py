"""The procedures by their versioned names.

A name stands for one way of deciding, forever: a procedure that changes gets a new name, and the
old one stays, so that old certificates can be verified by every later version.
"""

from __future__ import annotations

from pacbound.errors import UnknownProcedureError
from pacbound.procedures import (
    batch,
    union,
)

PROCEDURES: dict[str, str] = {
    **dict.fromkeys(batch.NAMES.values(), "batch"),
    union.NAME: "bundle",
}
"""Each name with the kind of certificate it decides."""


def require(name: str, *expected: str) -> str:
    """`name`, if it is one of the `expected` procedures."""
    if name in expected:
        return name
    if name in PROCEDURES:
        raise UnknownProcedureError(
            f"The procedure {name!r} makes {PROCEDURES[name]} certificates, not this kind."
        )
    raise UnknownProcedureError(
        f"The procedure {name!r} is not known to this version, which knows "
        f"{', '.join(sorted(PROCEDURES))}. Upgrade pacbound."
    )
