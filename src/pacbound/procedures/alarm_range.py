"""The thresholds that miss few positives and raise few false alarms, both at once.

The misses fall and the false alarms rise as the threshold falls. A claim about misses, which holds
at a threshold, holds at all lower ones; a claim about false alarms at all higher ones. Each has a
share of delta, so with probability at least 1 - delta both are right (`pacbound.procedures.union`),
and then both rates are kept at every threshold from the one of the false alarms up to the one of
the misses. If the first is above the second there is none, and the range is refused. Any threshold
between may be chosen, in sight of everything.
"""

from __future__ import annotations

NAME = "alarm-range/union-bound/1"
ASSUMPTIONS = (
    "what both claims assume; they are about the same rows",
    "both rates, and the shares of delta, were fixed before the data were looked at",
)


def is_range(lowest: float, highest: float, *, certified: bool) -> bool:
    """Whether both claims are `certified` and some threshold keeps both."""
    return certified and lowest <= highest
