"""The document of a cascade certificate: what it holds, and what must agree in it.

Counts along a walk are written as what each step adds to the one before: small numbers, so that a
certificate stays small whatever n is. How many rows without a label exit is written where there are
any. Nothing here can show that a declared sequence of thresholds came from a fold, and not from the
rows that were counted: whoever has the rows can choose again, with the share and the seed that are
recorded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pacbound.claims.cascade.certificate import (
    CascadeGroup,
    Counted,
    cells_of,
    counted_groups,
    group_of,
    sealed_walk,
    unit_costs,
)
from pacbound.claims.claim import sealed
from pacbound.claims.tables import (
    DRAWN,
    GRADED,
    MOST_GROUPS,
    Seed,
    depend,
    head,
    require_drawn,
    require_groups,
    scope_field,
    tables_field,
)
from pacbound.documents import Json, Reader
from pacbound.errors import CertificateError, InvalidTypeError, InvalidValueError
from pacbound.fields import Field, Fields, Record, Values, require_keys
from pacbound.forms import AskedForm, Form, Integers, Number, Numbers, Whole
from pacbound.procedures.cascade import (
    DECLARED,
    MOST_STEPS,
    SHARED,
    Declared,
    checked_costs,
    paths_of,
    too_small,
    total_cost,
)
from pacbound.procedures.joint_walk import JointWalk, top_of
from pacbound.says import Side
from pacbound.stats.arguments import LARGEST_COUNT
from pacbound.tally.questions.cascade import ALL_ROWS, MOST_EXITS
from pacbound.tally.questions.question import in_order

Counts = NDArray[np.int64]

_COUNTS: Final = ("exits", "only_slow", "only_fast")
_WHOLES: Final[Json] = {"type": "array", "items": {"type": "integer"}}


class Costs(AskedForm):
    """What a row costs in all that each model answers, those before it included; they rise."""

    def check(self, value: Any, name: str) -> tuple[float, ...]:
        """The numbers; how many there must be is known when models are."""
        if isinstance(value, (str, bytes)) or not np.ndim(value) or not len(value):
            raise InvalidTypeError(
                f"{name}={value!r} is not a list of costs: expected what a row costs that each "
                "model answers, such as [1, 10]."
            )
        return checked_costs(value, len(value))

    def parsed(self, text: Any) -> Any:
        """Numbers with commas between them."""
        try:
            return [float(part) for part in text.split(",")] if isinstance(text, str) else text
        except ValueError:
            raise InvalidValueError(
                f"{text} is not a list of numbers: expected for example 1,10"
            ) from None

    def said(self, value: Any, side: Side) -> str:  # noqa: ARG002
        """A list with commas."""
        return ", ".join(f"{cost:g}" for cost in value)

    def read(self, part: Reader, key: str) -> tuple[float, ...]:
        """The numbers of a list."""
        return _rising(part, key, part.numbers(key))


def _rising(part: Reader, key: str, costs: Sequence[float]) -> tuple[float, ...]:
    if len(costs) < 2:
        raise CertificateError(f"{part.place(key)} has {len(costs)} costs: expected one per model.")
    try:
        return checked_costs(costs, len(costs))
    except InvalidValueError as error:
        raise CertificateError(f"{part.place(key)}: {error}") from None


class ExitThresholdsForm(Form):
    """A threshold for each exit; +inf where it is never taken."""

    def read(self, part: Reader, key: str) -> tuple[float, ...]:
        """The thresholds, each on the grid."""
        values = tuple(part.numbers(key))
        top = top_of(len(values))
        for value in values:
            if value != np.inf and not (0 <= value <= 1 and (value * top).is_integer()):
                raise CertificateError(
                    f"{part.place(key)} holds a value that is not on the grid of 1/{top}."
                )
        return values


# How many of the rows in which predictions differ have a label, and have none.
LABELS: Final = Record(Fields((Field("labelled", Whole()), Field("unlabelled", Whole()))))


def _end_agrees(part: Reader, end: Values) -> None:
    thresholds, exits = end["thresholds"], end["exits"]
    if not thresholds or len(thresholds) != len(exits) or min(exits) < 0:
        raise CertificateError(f"{part.place('exits')} does not fit the thresholds.")
    never = [value == np.inf for value in thresholds]
    if any(never) and (not all(never) or any(exits)):
        raise CertificateError(
            f"{part.place('thresholds')}: expected values on the grid, or +inf for all and no "
            "exits."
        )


# Where more labels could lead to at best: thresholds, the walk that has them, and the rows that
# take each exit there. It was computed from rows that the certificate does not keep.
BEST_END: Final = Record(
    Fields(
        (
            Field("thresholds", ExitThresholdsForm()),
            Field("chosen", Whole()),
            Field("exits", Integers()),
        ),
        agree=_end_agrees,
    )
)


@dataclass(frozen=True)
class Walks(Form):
    """The walks of a table, with a list of numbers for every exit, along paths whose thresholds are
    `falling` or not.
    """

    falling: bool

    def read(self, part: Reader, key: str) -> tuple[JointWalk, ...]:
        """The walks, if they could be walks of the rows of their table."""
        n = part.count("n")
        walks = tuple(sealed_walk(self._walk(inner, n)) for inner in part.mappings(key))
        exits = {len(walk.cells) for walk in walks}
        if len(exits) != 1 or len(walks) != (len(paths_of(exits.pop())) if self.falling else 1):
            raise CertificateError(
                f"{part.place(key)}: expected one walk for each declared path, with the same exits."
            )
        return walks

    def write(self, value: Sequence[JointWalk]) -> Json:
        """A list of objects."""
        return [
            {"cells": walk.cells.tolist()}
            | {
                f"{name}_added": np.diff(getattr(walk, name), axis=1, prepend=0).tolist()
                for name in (*_COUNTS, *(["unlabelled"] if walk.unlabelled.any() else []))
            }
            for walk in value
        ]

    def _walk(self, part: Reader, n: int) -> JointWalk:
        names = [*_COUNTS, *(["unlabelled"] if part.has("unlabelled_added") else [])]
        require_keys(part, ["cells", *(f"{name}_added" for name in names)])
        cells = part.table("cells")
        if len(cells) > MOST_EXITS:
            raise CertificateError(
                f"{part.place('cells')} has {len(cells)} exits: expected at most {MOST_EXITS}."
            )
        counts = {name: _running(part, f"{name}_added", n) for name in names}
        columns = {"cells": np.array(cells, dtype=np.int64), **counts}
        if len({column.shape for column in columns.values()}) != 1 or not columns["cells"].size:
            raise CertificateError(
                f"{part.place('cells')}: expected tables of one shape, with at least one step."
            )
        columns.setdefault("unlabelled", np.zeros_like(columns["exits"]))
        differ = columns["only_slow"] + columns["only_fast"] + columns["unlabelled"]
        walk = JointWalk(differ=differ, **columns)
        if self.falling:
            _require_falling(walk, part)
        if (walk.differ > walk.exits).any() or (walk.exits.sum(axis=0) > n).any():
            raise CertificateError(
                f"{part.place('exits_added')}: expected differ <= exits, and no more exits than "
                "rows."
            )
        if (walk.exits.sum(axis=0) != n)[(walk.cells == 0).any(axis=0)].any():
            raise CertificateError(
                f"{part.place('exits_added')}: at a threshold of 0 every row exits, and these do "
                "not."
            )
        return walk


def _require_falling(walk: JointWalk, part: Reader) -> None:
    """Raise unless counts grow as they must where thresholds fall."""
    # Rows come to the first exit and never leave it; those at later ones leave for earlier ones
    # only.
    first = [column[0] for name, column in vars(walk).items() if name != "cells"]
    if any((np.diff(column) < 0).any() for column in (*first, *np.cumsum(walk.exits, axis=0))):
        raise CertificateError(
            f"{part.place('exits_added')}: counts fall along the walk where they cannot."
        )


def _running(part: Reader, key: str, n: int) -> Counts:
    """The counts whose steps `key` holds, each from 0 to `n`."""
    # Added up in Python's integers: in int64 a sum of 2^64 + 100 would be 100.
    running = [list(accumulate(steps)) for steps in part.table(key)]
    if any(min(counts, default=0) < 0 or max(counts, default=0) > n for counts in running):
        raise CertificateError(f"{part.place(key)} does not add up to counts of 0 to {n} rows.")
    return np.array(running, dtype=np.int64)


class CellsByExit(Form):
    """A list of whole numbers for every exit, as an array that nobody can write into."""

    def read(self, part: Reader, key: str) -> Counts:
        """The array of shape (exits, steps)."""
        return sealed(np.array(part.table(key), dtype=np.int64))


def _declared_agrees(part: Reader, declared: Values) -> None:
    cells, models, costs = declared["cells"], declared["models"], declared["costs"]
    exits, steps = cells.shape
    if exits > MOST_EXITS or not 1 <= steps <= MOST_STEPS:
        raise CertificateError(
            f"{part.place('cells')} has {exits} exits and {steps} steps: expected at most "
            f"{MOST_EXITS} exits, and 1 to {MOST_STEPS} steps."
        )
    never = top_of(exits) + 1
    if (cells < 0).any() or (cells > never).any():
        raise CertificateError(f"{part.place('cells')} leaves its grid: expected 0 to {never}.")
    if len(np.unique(cells, axis=1).T) != steps or (cells == never).all(axis=0).any():
        raise CertificateError(
            f"{part.place('cells')} has a step twice, or one that never exits: expected each step "
            "once."
        )
    if len(models) != exits + 1 or len(set(models)) != len(models) or min(models) < 0:
        raise CertificateError(
            f"{part.place('models')} is {list(models)}: expected {exits + 1} different places, one "
            "for each exit and the slow model's."
        )
    if len(costs) != exits + 1:
        raise CertificateError(
            f"{part.place('costs')} has {len(costs)} values: expected {exits + 1}."
        )
    _rising(part, "costs", tuple(accumulate(costs)))


# A sequence of thresholds that a fold declared, with the models that it chose.
FOLD: Final = Record(
    Fields(
        (
            Field("models", Integers()),
            Field("costs", Numbers()),
            Field("share", Number("a share", 0, 1)),
            Field("seed", Seed()),
            Field("rows", Whole(1)),
            Field("cells", CellsByExit()),
        ),
        agree=_declared_agrees,
    ),
    made=lambda values: Declared(**values),
    parts=vars,
)


class GroupSizes(Form):
    """How many rows some groups have."""

    def read(self, part: Reader, key: str) -> dict[str, int]:
        """The rows by the names of the groups."""
        inner = part.mapping(key)
        if not inner.names():
            raise CertificateError(f"{part.place(key)} is empty.")
        return {name: inner.count(name) for name in in_order(inner.names())}


def _require_left_out(part: Reader, values: Values, shared: str | None) -> None:
    """Raise unless groups were left out by their number of rows alone, and no other is so small."""
    small, place = values["left_out"], part.place("left_out")
    if small is None:
        return
    tables = {table["group"]: table["n"] for table in values["tables"]}
    fits = shared == "common" and values["scope"] == "groups" and values["xi"] > 0
    fits &= not depend(values)
    if not fits or small.keys() & tables.keys():
        raise CertificateError(f"{place} does not fit the claim.")
    asked = {"xi": values["xi"], "delta": values["delta"]}
    exits = len(values["tables"][0]["walks"][0].cells)
    for name, rows in {**small, **tables}.items():
        if too_small(rows, exits, **asked) != (name in small):
            raise CertificateError(
                f"{place}: {rows} rows of the group {name!r} do not decide whether it is left out "
                "as the claim has it."
            )


def cascade_fields(claim: Any, procedure: Any) -> Fields:
    """The fields of the documents of a procedure."""
    fold = [Field("declared", FOLD, counted=True)] if procedure.name == DECLARED else []
    kept = ("xi", "delta", "claim", "costs")
    return Fields(
        (
            *head(claim, procedure, [ask for ask in claim.asks if ask.name in kept]),
            scope_field("top", "groups", "overlapping-groups"),
            DRAWN,
            GRADED,
            Field("left_out", GroupSizes(), counted=True, left_out=True),
            *fold,
            tables_field(
                Field("n", Whole(), counted=True),
                Field("thresholds", ExitThresholdsForm()),
                Field("chosen", Whole()),
                Field("labels", LABELS, counted=True, optional=True),
                Field("walks", Walks(falling=not fold), counted=True),
                Field("best_possible", BEST_END, optional=True),
            ),
        ),
        agree=lambda part, values: _agree(part, values, procedure),
    )


def _agree(part: Reader, values: Values, procedure: Any) -> None:
    """Raise unless the tables can be those of one sample, at the thresholds that are stored."""
    tables, place = values["tables"], part.place("tables")
    shared = SHARED.get(procedure.name)
    _require_names(part, values, shared)
    _require_models(part, values)
    for inner, table in zip(part.mappings("tables"), tables, strict=True):
        _require_table(inner, table, values)
    _require_left_out(part, values, shared)
    costs, declared = values["costs"], values.get("declared")
    if values["graded"] is not None and values["claim"] != "loss":
        raise CertificateError(f"{part.place('graded')}: no such claim is made of graded rows.")
    if not _labels_fit(values):
        raise CertificateError(
            f"{place}: expected labels for all groups, with a row that has none, or for no group."
        )
    groups = [group_of(table, costs, declared, None) for table in tables]
    counted = counted_groups(groups, values["scope"])
    total = sum(group.n for group in counted)
    sizes = [group.n for group in groups]
    if total > LARGEST_COUNT:
        raise CertificateError(f"{place} hold more than 2**53 rows.")
    if shared == "common":
        if len({(group.cells, group.chosen) for group in groups}) != 1:
            raise CertificateError(f"{place}: thresholds that are common differ between groups.")
        if values["scope"] == "overlapping-groups":
            _require_parts(groups, counted[0], place)
        _require_no_worse(part, counted, costs)
    else:
        for group in groups:
            _require_no_worse(part, [group], costs)
    require_drawn(part, values, sizes)


def _require_models(part: Reader, values: Values) -> None:
    """Raise unless tables have the same models, and costs and a declared sequence are theirs."""
    tables, costs, place = values["tables"], values["costs"], part.place("tables")
    exits = len(tables[0]["walks"][0].cells)
    if len({len(table["walks"][0].cells) for table in tables}) != 1:
        raise CertificateError(f"{place}: the groups do not have the same number of exits.")
    if costs is not None and len(costs) != exits + 1:
        raise CertificateError(
            f"{part.place('costs')} has {len(costs)} values: expected {exits + 1}, one a model."
        )
    declared = values.get("declared")
    if declared is not None and exits != len(declared.cells):
        raise CertificateError(f"{place}: the walk has other exits than the declared sequence.")
    if declared is not None:
        require_one_sample(tables[0]["walks"][0], f"{place}[0].walks")


def _require_names(part: Reader, values: Values, shared: str | None) -> None:
    scope, place = values["scope"], part.place("tables")
    names = [table["group"] for table in values["tables"]]
    if (scope == "top") != (shared is None):
        raise CertificateError(f"{part.place('scope')} does not fit the procedure.")
    require_groups(part, values, most=MOST_GROUPS)
    if scope == "top" and values["tables"][0]["n"] != values["n"]:
        raise CertificateError(f"{place}[0].n is not n = {values['n']}.")
    if scope == "overlapping-groups" and (ALL_ROWS not in names or shared == "own"):
        raise CertificateError(
            f"{place}: groups that overlap have common thresholds, and one of them is {ALL_ROWS!r}."
        )


def _labels_fit(values: Values) -> bool:
    """Whether labels are told for all tables or none, with one missing where they are; where a fold
    declared a sequence, none is missing.
    """
    told = [table["labels"] for table in values["tables"]]
    if "declared" in values:
        return told == [None] and values["claim"] == "loss"
    if values["claim"] == "differ" or all(labels is None for labels in told):
        return True
    return None not in told and any(labels["unlabelled"] for labels in told)


def _require_table(part: Reader, table: Values, values: Values) -> None:
    walks, n, exits = table["walks"], table["n"], len(table["walks"][0].cells)
    if table["chosen"] >= len(walks):
        raise CertificateError(
            f"{part.place('chosen')} is {table['chosen']}: there are {len(walks)} walks."
        )
    if len(table["thresholds"]) != exits:
        raise CertificateError(
            f"{part.place('thresholds')} has {len(table['thresholds'])} values: expected {exits}."
        )
    labels, best = table["labels"], table["best_possible"]
    if (labels is None) != (best is None):
        raise CertificateError(f"{part.place('best_possible')}: expected it where labels are.")
    if values["claim"] == "differ" and (labels is None or labels["labelled"]):
        raise CertificateError(
            f"{part.place('labels')}: the claim is that answers differ, which takes no labels, and "
            "this certificate was made with some."
        )
    if labels is None:
        if any(walk.unlabelled.any() for walk in walks):
            raise CertificateError(
                f"{part.place('walks')} has rows without a label, and no label is missing."
            )
        return
    _require_labels(part, table, n, graded=values["graded"] is not None)


def _require_labels(part: Reader, table: Values, n: int, *, graded: bool) -> None:
    """Raise unless rows could have these labels, and the walks do not contradict them. A graded row
    may be known at one exit and not at another, so that its labels bound nothing.
    """
    labelled, unlabelled = table["labels"]["labelled"], table["labels"]["unlabelled"]
    if labelled + unlabelled > n:
        raise CertificateError(
            f"{part.place('labels')}: more rows differ than the {n} that there are."
        )
    for place, walk in enumerate(table["walks"]):
        known = (walk.differ - walk.unlabelled).sum(axis=0)
        most = n if graded else labelled
        if (walk.unlabelled.sum(axis=0) > unlabelled).any() or (known > most).any():
            raise CertificateError(
                f"{part.place('walks')}[{place}] has more rows with or without a label than the "
                "claim."
            )
    best, exits = table["best_possible"], len(table["walks"][0].cells)
    there = part.place("best_possible")
    if best["chosen"] >= len(table["walks"]) or len(best["exits"]) != exits:
        raise CertificateError(f"{there} does not fit the walks.")
    if sum(best["exits"]) > n:
        raise CertificateError(f"{there}.exits are not exits of {n} rows.")
    if 0 in best["thresholds"] and sum(best["exits"]) != n:
        raise CertificateError(
            f"{there}.exits: at a threshold of 0 every row exits, and these do not."
        )


def require_one_sample(walk: JointWalk, place: str) -> None:
    """Raise unless one sample can have the counts of a walk whose thresholds need not fall.

    A row leaves at exit m if it reaches that threshold and none before it. So where the thresholds
    before m are no lower and that of m is no higher, all counts of exit m are at least as large;
    and where the thresholds up to m are all no higher, no fewer rows have left by then.
    """
    if walk.exits[walk.cells > top_of(len(walk.cells))].any():
        raise CertificateError(f"{place}: rows leave at an exit that is never taken.")
    left = np.cumsum(walk.exits, axis=0)
    for m, row in enumerate(walk.cells):
        # At [s, t]: every row that leaves at m (has left by m) in step t does so in step s, too.
        before = (walk.cells[:m, :, None] >= walk.cells[:m, None, :]).all(axis=0)
        at_exit = np.asarray(before & (row[:, None] <= row))
        up_to = walk.cells[: m + 1]
        by_then = np.asarray((up_to[:, :, None] <= up_to[:, None, :]).all(axis=0))
        agree = walk.exits[m] - walk.differ[m]
        counts = (walk.exits[m], agree, walk.differ[m], walk.only_slow[m], walk.only_fast[m])
        if any(_falls(count, at_exit) for count in counts) or _falls(left[m], by_then):
            raise CertificateError(
                f"{place}: the counts of exit {m} are not those of one sample at all steps."
            )


def _falls(count: Counts, more: NDArray[np.bool_]) -> bool:
    return bool((more & (count[:, None] < count)).any())


def _require_parts(groups: Sequence[CascadeGroup], whole: CascadeGroup, place: str) -> None:
    """Raise unless the rows of every group can be among all rows, at the same thresholds."""
    names: tuple[Counted, ...] = ("exits", "only_slow", "only_fast", "unlabelled")
    for group in groups:
        inside = all((group.seen(name) <= whole.seen(name)).all() for name in names)
        if group.n > whole.n or not inside:
            raise CertificateError(
                f"{place}: {group.name!r} has rows that are not among {ALL_ROWS!r}."
            )


def _require_no_worse(
    part: Reader, groups: Sequence[CascadeGroup], costs: tuple[float, ...] | None
) -> None:
    """Raise if the best that more labels could lead to is worse than the claim itself."""
    best = [group.best for group in groups if group.best is not None]
    if not best or groups[0].cells is None:
        return
    n, paid = sum(group.n for group in groups), costs or unit_costs(groups[0].exits)
    here, there = (
        np.asarray(np.sum(exits, axis=0, dtype=np.int64))
        for exits in ([group.exit_counts for group in groups], [one["exits"] for one in best])
    )
    now, then = (total_cost(exits, n, paid) for exits in (here, there))
    moved = groups[0].settled and not np.array_equal(here, there)
    if cells_of(best[0]["thresholds"]) is None or then > now or moved:
        raise CertificateError(
            f"{part.place('tables')}: best_possible is worse than the claim itself, or not the "
            "same where it should be."
        )
