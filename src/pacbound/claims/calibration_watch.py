"""A calibration in use: each prediction falls into a bin, and is right or wrong there.

Each bin has two sides: wrong more often than 1 - lower allows, right more often than upper allows.
Each side has bets of its own, which only rows of its bin change. Their average is the evidence.
Where restarts are mixed it is a supermartingale because each of them is one. Running sums are added
over bins: a label adds 1 to the sum of its own bin only, so that the total less the number of
labels is a supermartingale. Sides that allow every rate, such as a lower end of 0, have no bets.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pacbound.claims.calibration_certificate import CalibrationCertificate
from pacbound.errors import InvalidValueError
from pacbound.stats.arguments import whole_numbers
from pacbound.stats.betting import Bets, joined, loss_bets
from pacbound.tally.questions.calibration import CalibrationQuestion
from pacbound.tally.questions.question import Judged
from pacbound.tally.rows import only_known
from pacbound.watch import Counts, Integers, Seen, TableRows

_WHAT = "A monitored calibration"


class CalibrationWatch:
    """The true confidence of every bin lies in its interval."""

    outcomes = ("wrong", "right")
    single = None
    roles = CalibrationQuestion.roles
    claimed = "the true confidence of every bin lies in its interval"

    def __init__(self, certificate: CalibrationCertificate) -> None:
        self._certificate = certificate
        ends = certificate.lower.ravel().tolist(), certificate.upper.ravel().tolist()
        sides = [_sides(low, high) for low, high in zip(*ends, strict=True)]
        tested = [cell for cell, found in enumerate(sides) if found]
        if not tested:
            raise InvalidValueError(
                "No interval of this calibration can be refuted: all allow nearly every rate. "
                "There is nothing to monitor; calibrate on more rows."
            )
        self.bets = tuple(joined(sides[cell]) for cell in tested)
        number = np.array([len(sides[cell]) for cell in tested], dtype=np.float64)
        self.shares = number / number.sum()
        self._cells = tested
        self._places = np.full(len(sides), -1)
        self._places[tested] = np.arange(len(tested))
        rows = TableRows(
            CalibrationQuestion, certificate.groups, _WHAT, self._seen, {"edges": certificate.grid}
        )
        self.of_columns, self.of_arrays, self.columns = (
            rows.of_columns,
            rows.of_arrays,
            rows.columns,
        )

    def place_name(self, place: int) -> str | None:
        """The bin, and its group where there are groups."""
        table, cell = divmod(self._cells[place], self._certificate.grid.n_cells)
        begin, end = self._certificate.grid.bounds
        ends = f"({begin[cell]:g}, {end[cell]:g}]" if begin[cell] < end[cell] else f"{end[cell]:g}"
        groups = self._certificate.groups
        return f"bin {ends}" + (f" of {groups[table]!r}" if groups else "")

    def counted(self, given: Mapping[str, Any]) -> Counts:
        """`successes` of `trials` in each bin, as the certificate has them."""
        counts = only_known(given, {"successes": True, "trials": True}, _WHAT)
        shape = self._certificate.trials.shape
        right, rows = (whole_numbers(counts[name], name) for name in ("successes", "trials"))
        for name, array in (("successes", right), ("trials", rows)):
            if array.shape != shape and (shape[0] > 1 or array.shape != shape[1:]):
                raise InvalidValueError(
                    f"{name} has shape {array.shape}: expected {shape}, a number for each table "
                    "and bin of the certificate."
                )
        if (right > rows).any():
            raise InvalidValueError(
                "More successes than trials in a bin: expected successes <= trials. Check the "
                "order of the arguments."
            )
        pairs = zip((rows - right).ravel().tolist(), right.ravel().tolist(), strict=True)
        return [(int(self._places[cell]), pair) for cell, pair in enumerate(pairs) if any(pair)]

    def _seen(self, found: Judged, tables: Integers) -> Seen:
        cells = found.cells[:, 0] + tables * self._certificate.grid.n_cells
        return Seen(self._places[cells], found.outcomes)


def _sides(lower: float, upper: float) -> list[Bets]:
    """Bets that a bin is wrong more often than 1 - lower, and that it is right more often than
    upper.
    """
    wrong = loss_bets(1.0 - lower)
    right = loss_bets(upper) if upper < 1.0 else None
    too_wrong = [] if wrong is None else [Bets(wrong.factors[::-1].copy(), wrong.weights)]
    return too_wrong + ([] if right is None else [right])
