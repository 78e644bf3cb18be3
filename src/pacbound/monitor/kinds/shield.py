"""A shield in use: each rollout under it is one label, and a loss if it was unsafe.

A claim about the misses among the unsafe rollouts cannot be watched. Which rollouts would have been
unsafe is known without the shield only: one that the shield stopped may have been unsafe or safe.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from pacbound.certificate.document import exact
from pacbound.certificate.shield import ShieldCertificate
from pacbound.errors import InvalidValueError
from pacbound.tally.questions.question import Slot
from pacbound.tally.rows import only_known
from pacbound.watch import (
    Counts,
    RowReading,
    bets_on_losses,
    losses_of_labels,
    one_place,
)


class ShieldWatch:
    """At most a share xi of the rollouts is unsafe."""

    roles: ClassVar[Mapping[str, bool]] = {"unsafe": True}
    outcomes = ("safe", "unsafe")
    single = "unsafe"
    columns = ("unsafe",)
    shares = np.ones(1)

    def __init__(self, certificate: ShieldCertificate) -> None:
        if certificate.rate != "all":
            raise InvalidValueError(
                f"A shield certificate of the rate {certificate.rate!r} is not monitored: whether "
                "a rollout that the shield stopped would have been unsafe is not seen in use. "
                "Monitor one of rate='all', or certify again on new rollouts without the shield."
            )
        self.bets = bets_on_losses(certificate.xi)
        self.claimed = f"at most {exact(certificate.xi)} of the rollouts are unsafe"

    def place_name(self, place: int) -> str | None:  # noqa: ARG002
        """None: all rollouts are alike."""
        return None

    def of_columns(self, named: Mapping[str, Any]) -> RowReading:
        """`unsafe`: whether the rollout, shield and all, was unsafe."""
        column = only_known(named, self.roles, "A monitored shield")["unsafe"]
        return RowReading(
            {"unsafe": Slot("flag", column)}, lambda rows, *_: one_place(rows.flags("unsafe"))
        )

    def of_arrays(self, given: Mapping[str, Any]) -> tuple[RowReading, Mapping[str, Any]]:
        """The same of an array."""
        passed = only_known(given, self.roles, "A monitored shield")
        return self.of_columns(dict.fromkeys(passed, "unsafe")), passed

    def counted(self, given: Mapping[str, Any]) -> Counts:
        """`losses` unsafe rollouts of `labels`."""
        return [(0, losses_of_labels(given, "A monitored shield"))]
