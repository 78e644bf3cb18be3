"""Products over kinds, formats and files: a few cases stand for all of them.

The few run wherever their test runs. The rest are marked `product` and run in `make test-all`,
`long` and run in `make test-slow`, or `slow` and run in `make test`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, Literal

import pytest


def standing_for(
    everything: Iterable[Any],
    few: Collection[Any],
    rest: Literal["product", "long", "slow"] = "product",
) -> list[Any]:
    """The cases of `everything`, for `parametrize` or a fixture: those in `few` as they are, the
    `rest` marked as such.
    """
    cases = list(everything)
    unknown = [one for one in few if one not in cases]
    if unknown or not few:
        raise ValueError(
            f"{unknown or 'No cases'} cannot stand for {cases}: expected some of them."
        )
    return [
        one
        if one in few
        else pytest.param(
            *(one if isinstance(one, tuple) else (one,)), marks=getattr(pytest.mark, rest)
        )
        for one in cases
    ]
