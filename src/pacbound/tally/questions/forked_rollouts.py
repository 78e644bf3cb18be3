"""Forks of rollouts: at which thresholds would the shielded rollout be unsafe?

A rollout of the policy alone forks wherever the running maximum of its danger rises: the backup is
simulated from there, and what becomes of it holds for all thresholds that are reached there first.
So each rollout has one outcome for every threshold of the grid. A row is an interval of thresholds
of one rollout, by their numbers: j stands for j / 2^16, and 65537 for +inf. The rows of a rollout
cover 0 to 65537, each once.

A cell holds how many rollouts turn safe, or unsafe, for the thresholds above it: an interval that
begins at j is in the cell j - 1, the highest cell that the danger had reached before. In the cell
-1 every rollout begins as one of both. Beside that, each rollout is counted once, by its last
interval: it is what happens where the shield never fires.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from pacbound.errors import InvalidValueError
from pacbound.sources.batches import CannotCountError
from pacbound.tally.columns import Integers, Rows
from pacbound.tally.grids import FINE
from pacbound.tally.questions.question import Judged, Question, RowColumn

if TYPE_CHECKING:
    from pacbound.tally.classes import Evidence, Vocabulary
    from pacbound.tally.frames.engine_rows import EngineRows

# The number of the threshold +inf; a failed reading of the danger fires there, too.
NEVER: Final = FINE.n_cells
TURNS: Final = {"safe": "turns_safe", "unsafe": "turns_unsafe"}


@dataclass(frozen=True, kw_only=True)
class ForkIntervals(Question):
    """How many rollouts turn safe or unsafe above each fine cell of the danger.

    Examples
    --------
    >>> question = FORKS.of_columns(rollout="seed", lowest="low", highest="high", unsafe="crashed")
    >>> question.outcomes
    ('safe', 'unsafe', 'turns_safe', 'turns_unsafe')
    """

    def judge(
        self,
        rows: Rows,
        vocabulary: Vocabulary,  # noqa: ARG002
        evidence: Evidence,  # noqa: ARG002
    ) -> Judged:
        """Where each rollout turns, and what it is where the shield never fires."""
        names, rollouts = rows.groups("rollout")
        lowest, highest = (_thresholds(rows, slot) for slot in ("lowest", "highest"))
        order = np.lexsort((lowest, rollouts))
        lowest, highest, rollouts = lowest[order], highest[order], rollouts[order]
        first = np.diff(rollouts, prepend=-1) > 0
        _require_covered(names, rollouts, lowest, highest, first)
        unsafe = rows.flags("unsafe")[order]
        self._require_one_group(rows, order, names, rollouts)
        turns = np.flatnonzero(first | (np.diff(unsafe, prepend=False) != 0))
        last = np.flatnonzero(np.append(first[1:], [True] * bool(len(first))))
        entries = np.concatenate([last, turns])
        cells, outcomes = lowest[entries] - 1, unsafe[entries].astype(np.int64)
        outcomes[len(last) :] += 2
        told = lowest / NEVER, unsafe.astype(np.int64)
        judged = Judged(len(names), cells[:, None], outcomes, told=told)
        return self._in_groups(rows.at(order[entries]), judged)

    def judge_inside(self, rows: EngineRows, evidence: Evidence) -> Judged:  # noqa: ARG002
        """The rows of a rollout are looked at together, outside of an engine."""
        raise CannotCountError("The rows of a rollout are not together inside an engine.")

    def _require_one_group(
        self, rows: Rows, order: Integers, names: tuple[str, ...], rollouts: Integers
    ) -> None:
        """Raise if the rows of a rollout are in different groups."""
        slots = [name for name in self.slots if name not in self.roles or name == "groups"]
        for slot in slots:
            held = rows.columns[slot][order]
            other = (held[1:] != held[:-1]) & (rollouts[1:] == rollouts[:-1])
            if other.any():
                place = int(np.flatnonzero(other)[0])
                raise InvalidValueError(
                    f"Rollout {names[rollouts[place]]} has the groups {held[place]} and "
                    f"{held[place + 1]} ({rows.name(slot)}): expected one group for all rows of a "
                    "rollout."
                )


def _thresholds(rows: Rows, slot: str) -> Integers:
    """The numbers of thresholds, as integers."""
    given = rows.numbers(slot).astype(np.float64)
    bad = ~((given >= 0) & (given <= NEVER) & (given == np.floor(given)))
    if bad.any():
        place = int(np.flatnonzero(bad)[0])
        raise InvalidValueError(
            f"{rows.name(slot)}[{rows.start + place}] is {given[place]:g} ({int(bad.sum())} such "
            f"values): expected the number of a threshold, 0 to {NEVER}, where j stands for "
            f"j / 65536 and {NEVER} for +inf. A danger d reaches floor(d * 65536)."
        )
    return given.astype(np.int64)


def _require_covered(
    names: tuple[str, ...],
    rollouts: Integers,
    lowest: Integers,
    highest: Integers,
    first: NDArray[np.bool_],
) -> None:
    """Raise unless the rows of each rollout, which are in order, cover every threshold once."""
    last = np.append(first[1:], [True] * bool(len(first)))
    after = np.where(last, NEVER + 1, np.append(lowest[1:], 0))
    ways: tuple[tuple[Any, Any], ...] = (
        (lowest > highest, "a row whose lowest threshold {lowest} is above its highest, {highest}"),
        (first & (lowest > 0), "no row for the thresholds below {lowest}"),
        (after > highest + 1, "no row for the thresholds from {next} on"),
        (after <= highest, "two rows for the threshold {after}"),
    )
    for wrong, words in ways:
        if wrong.any():
            place = int(np.flatnonzero(wrong)[0])
            what = words.format(
                lowest=lowest[place],
                highest=highest[place],
                next=highest[place] + 1,
                after=after[place],
            )
            raise InvalidValueError(
                f"Rollout {names[rollouts[place]]} has {what} ({int(wrong.sum())} such rows): "
                f"expected rows that cover its thresholds from 0 to {NEVER}, each once."
            )


FORKS = ForkIntervals(
    kind="forks",
    what="A table of forks",
    columns=(
        RowColumn("rollout", "The rollout that a row is of: its seed, or a name.", "name"),
        RowColumn("lowest", "The lowest threshold of the row, as a number 0 to 65537.", "number"),
        RowColumn("highest", "The highest threshold of the row, as such a number.", "number"),
        RowColumn("unsafe", "Whether the rollout is unsafe if shielded at these.", "flag"),
    ),
    outcomes=("safe", "unsafe", *TURNS.values()),
    labelled_by=(),
    lowest_cell=-1,
    counts_inside=False,
    row_outcomes=("safe", "unsafe"),
    judged_at_once=True,
)
