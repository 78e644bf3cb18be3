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

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from pacbound.errors import InvalidValueError
from pacbound.tally.columns import Integers, Rows
from pacbound.tally.grids import FINE
from pacbound.tally.questions.question import Judged, Question, RowColumn

if TYPE_CHECKING:
    import narwhals as nw

    from pacbound.tally.classes import Evidence, Vocabulary
    from pacbound.tally.frames.counting import KeyCounts
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
        """The same inside an engine, which puts the rows of a rollout beside each other."""
        flag, groups = rows.flag("unsafe"), self._group_keys(rows)
        columns = {
            "rollout": rows.group_key("rollout"),
            **{slot: rows.number(slot) for slot in ("lowest", "highest")},
            "unsafe": flag.key,
            **groups,
        }
        frame = rows.neighbours(columns, within="rollout", by="lowest")
        counts = rows.count(_interval_keys(frame, [*groups]), frame=frame)
        _refuse_wrong(rows, frame, counts, [*groups])
        unsafe, lowest = flag.checked(counts, "unsafe"), counts.numbers("lowest").astype(np.int64)
        last, turns = (np.flatnonzero(counts.numbers(key) == 1) for key in ("last", "turns"))
        entries, times = np.concatenate([last, turns]), counts.rows
        outcomes = unsafe[entries] + np.repeat([0, 2], [len(last), len(turns)])
        judged = Judged(
            int(times[last].sum()), lowest[entries][:, None] - 1, outcomes, times=times[entries]
        )
        if not groups:
            return judged
        names, places = rows.groups(counts, "groups", "groups")
        return replace(judged, groups=names, places=places[entries])

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
                name = names[rollouts[place]]
                raise _two_groups(name, held[place], held[place + 1], rows.name(slot))


# What may be wrong with a row beside its neighbours, in the order in which it is looked for.
_NAMELESS, _LOWEST, _HIGHEST, _FALLS, _STARTS, _GAP, _TWICE, _MOVES = range(1, 9)
_UNCOVERED: Final = {
    _FALLS: "a row whose lowest threshold {lowest} is above its highest, {highest}",
    _STARTS: "no row for the thresholds below {lowest}",
    _GAP: "no row for the thresholds from {next} on",
    _TWICE: "two rows for the threshold {after}",
}


def _interval_keys(frame: Any, groups: Sequence[str]) -> dict[str, nw.Expr]:
    """What rows beside their neighbours are counted by: what is wrong with each, whether it is the
    last of its rollout, whether the rollout turns there, and its own values.
    """
    import narwhals as nw  # noqa: PLC0415 - arrays need none

    def where(condition: nw.Expr) -> nw.Expr:
        return nw.when(condition).then(nw.lit(1)).otherwise(nw.lit(0))

    def legal(value: nw.Expr) -> nw.Expr:
        inside = (value >= 0.0) & (value <= float(NEVER))
        return nw.when(inside).then(where(value == value.floor())).otherwise(nw.lit(0)) == 1

    lowest, highest, unsafe = nw.col("lowest"), nw.col("highest"), nw.col("unsafe")
    first = where(nw.col("highest before").is_null()) == 1
    last = where(nw.col("highest after").is_null()) == 1
    after = nw.when(last).then(nw.lit(NEVER + 1.0)).otherwise(nw.col("lowest after"))
    rollout, dtype = nw.col("rollout"), frame.collect_schema()["rollout"]
    nameless = rollout.is_null()
    if dtype.is_float():
        nameless = nameless | ~((rollout > -np.inf) & (rollout < np.inf))
    elif dtype == nw.String:
        # Arrays of text drop it, and would take two names for one.
        nameless = nameless | rollout.str.ends_with("\0")
    ways = {
        _NAMELESS: nameless,
        _LOWEST: ~legal(lowest),
        _HIGHEST: ~legal(highest),
        _FALLS: lowest > highest,
        _STARTS: first & (lowest > 0.0),
        _GAP: after > highest + 1.0,
        _TWICE: after <= highest,
    }
    if groups:
        (group,) = groups
        ways[_MOVES] = ~first & (where(nw.col(group) == nw.col(f"{group} before")) == 0)
    wrong = nw.lit(0)
    for code, condition in reversed(ways.items()):
        wrong = nw.when(condition).then(nw.lit(code)).otherwise(wrong)
    same = where(unsafe == nw.col("unsafe before")) == 1
    return {
        "wrong": wrong,
        "last": where(last),
        "turns": where(first | ~same),
        # A column of something else would be as many keys as it has values.
        "lowest": nw.when(legal(lowest)).then(lowest).otherwise(nw.lit(-1.0)),
        "unsafe": unsafe,
        **{name: nw.col(name) for name in groups},
    }


def _refuse_wrong(rows: EngineRows, frame: Any, counts: KeyCounts, groups: Sequence[str]) -> None:
    """Raise if a row is wrong beside its neighbours, by the first of its kind."""
    found = counts.numbers("wrong")
    for code in sorted({int(one) for one in found} - {0}):
        number = counts.rows_where(found == code)
        if code == _NAMELESS:
            raise InvalidValueError(
                f"{rows.name('rollout')} has {number} values that are not names: missing ones "
                "(null or NaN), numbers that are not whole or not below 2**53, or text that ends "
                "in NUL. Expected an integer or a string in every row: name the missing ones."
            )
        row = rows.first_where(frame, _interval_keys(frame, groups)["wrong"], code, _BY)
        if code in (_LOWEST, _HIGHEST):
            slot = "lowest" if code == _LOWEST else "highest"
            raise _no_threshold(f"{rows.name(slot)} holds {row[slot]}", number)
        name = row["rollout"]
        shown = str(int(name)) if isinstance(name, float) else str(name)
        if code == _MOVES:
            raise _two_groups(shown, row["groups before"], row["groups"], rows.name("groups"))
        after = row["lowest after"]
        raise _uncovered(
            shown,
            code,
            number,
            row["lowest"],
            row["highest"],
            NEVER + 1 if after is None else after,
        )


# The first row of a kind is the one with the least rollout, and there the least threshold.
_BY: Final = ("rollout", "lowest")


def _no_threshold(said: str, number: int) -> InvalidValueError:
    return InvalidValueError(
        f"{said} ({number} such values): expected the number of a threshold, 0 to {NEVER}, where j "
        f"stands for j / 65536 and {NEVER} for +inf. A danger d reaches floor(d * 65536)."
    )


def _two_groups(rollout: str, one: Any, other: Any, column: str) -> InvalidValueError:
    return InvalidValueError(
        f"Rollout {rollout} has the groups {one} and {other} ({column}): expected one group for "
        "all rows of a rollout."
    )


def _uncovered(
    rollout: str, code: int, number: int, lowest: float, highest: float, after: float
) -> InvalidValueError:
    what = _UNCOVERED[code].format(
        lowest=int(lowest), highest=int(highest), next=int(highest) + 1, after=int(after)
    )
    return InvalidValueError(
        f"Rollout {rollout} has {what} ({number} such rows): expected rows that cover its "
        f"thresholds from 0 to {NEVER}, each once."
    )


def _thresholds(rows: Rows, slot: str) -> Integers:
    """The numbers of thresholds, as integers."""
    given = rows.numbers(slot).astype(np.float64)
    bad = ~((given >= 0) & (given <= NEVER) & (given == np.floor(given)))
    if bad.any():
        place = int(np.flatnonzero(bad)[0])
        where = f"{rows.name(slot)}[{rows.start + place}] is {given[place]:g}"
        raise _no_threshold(where, int(bad.sum()))
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
    ways: dict[int, NDArray[np.bool_]] = {
        _FALLS: lowest > highest,
        _STARTS: first & (lowest > 0),
        _GAP: after > highest + 1,
        _TWICE: after <= highest,
    }
    for code, wrong in ways.items():
        if wrong.any():
            place, number = int(np.flatnonzero(wrong)[0]), int(wrong.sum())
            ends = lowest[place], highest[place], after[place]
            raise _uncovered(names[rollouts[place]], code, number, *ends)


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
