"""What the tests that run over all kinds need of one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pacbound import Certificate, Tally

Rows = Callable[[int, np.random.Generator, bool], Any]


@dataclass(frozen=True)
class Use:
    """A certificate, and rows of its use: `rows(n, rng, bad)` breaks the claim if it is `bad`."""

    certificate: Certificate
    rows: Rows

    def part(self, rows: Any, where: slice) -> Any:
        if isinstance(rows, dict):
            return {name: self.part(column, where) for name, column in rows.items()}
        return rows[where]


@dataclass(frozen=True)
class Pilot:
    """Rows of a pilot, what a plan improves as a certificate of a tally has it, what is asked for,
    and how near the estimate comes."""

    rows: Callable[[int, np.random.Generator], dict[str, Any]]
    value: Callable[[Tally], float]
    asked: Mapping[str, Any]
    near: float


@dataclass(frozen=True)
class Kind:
    """A kind of claim, as it is tried.

    `made` are small certificates of every procedure and verdict, which are frozen under their
    names; `layouts` those among them that have, together, every key of its documents. `random`
    makes one from random rows, `trials` of which both verifiers judge. What cannot be monitored or
    planned has no `use` and no `pilot`. A claim that takes several shapes, such as a cascade, has a
    file for each: what one file holds, the others need not repeat.
    """

    made: Mapping[str, Callable[[], Certificate]]
    layouts: tuple[str, ...] = ()
    random: Callable[[np.random.Generator], Certificate] | None = None
    trials: int = 300
    use: Callable[[], Use] | None = None
    pilot: Pilot | None = None
