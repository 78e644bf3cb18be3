"""What a question is: the columns that a row brings, the outcomes, the grid, and how a row is
judged.

A question is asked of rows in two ways: of arrays, and inside a dataframe engine. Either way the
answer is `Judged` rows, and everything after that (counting, adding, certifying) is the same. A row
has one group, in a column; or groups overlap, and there is a truth value for each row and group.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Self
from unicodedata import decimal

import numpy as np
from numpy.typing import NDArray

from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.tally.columns import QUALITY, Holds, Integers, Rows, Slot, only_known
from pacbound.tally.grades import Graded
from pacbound.tally.grids import FINE, Bins, DyadicGrid

if TYPE_CHECKING:
    import narwhals as nw

    from pacbound.tally.classes import Evidence, Vocabulary
    from pacbound.tally.frames.counting import KeyCounts
    from pacbound.tally.frames.engine_rows import EngineRows

Scope = Literal["top", "groups", "overlapping-groups", "per-class", "all-labels"]

# The slot, and the name, of the column that holds the group of each row.
_GROUPS: Final = "groups"

# How the slots begin that say how good an answer is.
GRADED_SLOTS: Final = (QUALITY, "preferred")

# The outcomes of rows whose label or grade may still come have these in their names.
_AWAITED: Final = ("unlabelled", "may_lose", "may_gain")

# The scopes in which a row may be counted in several tables.
OVERLAPPING: frozenset[Scope] = frozenset(["overlapping-groups", "all-labels"])


@dataclass(frozen=True)
class RowColumn:
    """What a row brings under a name, as verbs and the command line offer it.

    Attributes
    ----------
    name : str
        The parameter, the option, and the key of the recorded columns.
    help : str
        The option's line, and the parameter's first sentence.
    holds : str
        What it holds: "number", "number or nothing", "flag", "flag or nothing", "class" or "name".
    several : bool
        Whether there is one for each model or class, named by a list.
    needed : bool
        Whether every row must bring it.

    Examples
    --------
    >>> RowColumn("score", "The score of each row.", "number").needed
    True
    """

    name: str
    help: str
    holds: Holds
    several: bool = False
    needed: bool = True


@dataclass(frozen=True)
class Judged:
    """Rows as a question judged them: the cell of each score, and the outcome.

    Attributes
    ----------
    rows : int
        The number of rows that were looked at.
    cells : ndarray of shape (n, scores)
        The cell of each score.
    outcomes : ndarray of shape (n,)
        The position of each outcome among those of the question.
    groups : tuple of str
        The names of the groups, where there are groups.
    places : ndarray of shape (n,) or None
        The position of each row's group in `groups`.
    times : ndarray of shape (n,) or None
        How often each was seen; once if it is None.
    sums : callable or None
        What is counted of rows by their `outcomes`, (n, numbers); None where each row has one
        outcome.
    told : tuple or None
        The scores and a number for each row, by which the same rows are recognised again; None
        where the rows have no order.

    Examples
    --------
    Two rows in the cells 3 and 7, the first of them wrong:

    >>> judged = Judged(2, np.array([[3], [7]]), np.array([0, 1]))
    >>> judged.rows, judged.times is None
    (2, True)
    """

    rows: int
    cells: Integers
    outcomes: Integers
    groups: tuple[str, ...] = ()
    places: Integers | None = None
    times: Integers | None = None
    told: tuple[NDArray[np.float64], Integers] | None = None
    sums: Callable[[Integers], Integers] | None = None


@dataclass(frozen=True)
class Layout:
    """How a tally is laid out that came from a file: its grid, what its groups are, how many
    numbers each cell has, and the outcomes.

    Attributes
    ----------
    grid
        How scores became cells.
    scope : str
        What the groups are: "top" where there are none.
    width : int
        The numbers of a cell: the place of the group, where there are groups, and the scores'.
    outcomes : tuple of str
        The names of what a row can turn out to be.

    Examples
    --------
    >>> layout = Layout(DyadicGrid(16), "top", 2, ("wrong", "right"))
    >>> layout.wrong_for(["top"], DyadicGrid(16), ("wrong", "right"))
    'cells of 2 scores'
    """

    grid: Bins | DyadicGrid
    scope: str
    width: int
    outcomes: tuple[str, ...]

    @property
    def scores(self) -> int:
        """How many scores a row has."""
        return self.width - (self.scope != "top")

    def wrong_for(
        self, scopes: Sequence[str], grid: Bins | DyadicGrid, outcomes: tuple[str, ...]
    ) -> str | None:
        """What is wrong with it for a question with one score; None if nothing is."""
        if self.scope not in scopes:
            return f"scope {self.scope!r}"
        if self.scores != 1:
            return f"cells of {self.scores} scores"
        if self.grid != grid:
            return f"another grid than the {grid} that scores are counted on"
        return None if self.outcomes == outcomes else "other outcomes"


@dataclass(frozen=True, kw_only=True)
class Question(ABC):
    """What rows are counted for: the columns that a row brings, the outcomes, the grid, and how a
    row is judged.

    It is a value: `QUESTIONS` has one of each kind, which is asked of no columns yet. `of_arrays`
    and `of_columns` give the question about what was passed. Whatever counts, loads or certifies a
    tally reads it there, so a tally of another grid or other outcomes is refused.

    Attributes
    ----------
    kind : str
        What tallies of it are called.
    what : str
        What rows are called in messages: "A table of rollouts".
    columns : tuple of RowColumn
        What a row may bring, in the order in which verbs take it.
    outcomes : tuple of str
        The names of what a row can turn out to be.
    labelled_by : tuple of str
        Which columns may come back later, as the label of a row: the first that is named does.
    grid
        How scores become cells.
    scopes : tuple of str
        What groups there may be.
    options : tuple of str
        What else may be passed, such as the number of bins.
    lowest_cell : int
        The lowest cell that a score can have: 0, or -1 if there is one below the grid.
    lost_is : str or None
        The outcome of all rows in the cell below the grid, where they have the same.
    of_rollouts : bool
        Whether a row is a whole rollout, so that a log with a row for each step is refused.
    labels_may_be_missing : bool
        Whether a row is counted that has no label.
    counts_inside : bool
        Whether rows can be judged inside an engine.
    judged_at_once : bool
        Whether several rows are looked at together, so that none is judged before all are there.
        None is drawn from others then.
    row_outcomes : tuple of str
        The outcomes of which each row has exactly one, where others are counted beside them; empty
        if all are such.
    joins : bool
        Whether each model may have a table of its own, which are joined by an id.
    reference : str
        What the model is called that labels are held against, where there are several.
    everyone : tuple of str
        The group that all rows are in, where groups overlap and there is one.
    among : tuple of str
        The outcomes that clusters are drawn among, where there are clusters: one row of each such
        outcome from each cluster that has any. Empty to draw before labels are looked at.
    slots : mapping of str to Slot
        The columns that each row brings, once they are known.
    scope : str
        What the groups are: "top" where there are none.
    members : tuple of str
        The names of groups that overlap, without that of everyone.
    may_be_graded : bool
        Whether answers may be graded.
    levels : int
        The number of the best level that grades are counted on where none are declared.
    graded : Graded or None
        How outcomes are graded; None where they are right or wrong.

    Examples
    --------
    >>> from pacbound.tally.questions import QUESTIONS
    >>> question = QUESTIONS["shield"].of_columns(score="danger", unsafe="crashed")
    >>> question.outcomes, sorted(question.slots)
    (('safe', 'unsafe'), ['score', 'unsafe'])
    """

    # The place of the model that others are held against.
    held_against: ClassVar[int] = 0

    kind: str
    what: str
    columns: tuple[RowColumn, ...]
    outcomes: tuple[str, ...]
    labelled_by: tuple[str, ...]
    grid: Bins | DyadicGrid = FINE
    scopes: tuple[Scope, ...] = ("top", "groups", "overlapping-groups")
    options: tuple[str, ...] = ()
    lowest_cell: int = 0
    lost_is: str | None = None
    of_rollouts: bool = False
    labels_may_be_missing: bool = False
    counts_inside: bool = True
    judged_at_once: bool = False
    row_outcomes: tuple[str, ...] = ()
    joins: bool = False
    reference: str = "slow model"
    everyone: tuple[str, ...] = ()
    among: tuple[str, ...] = ()
    slots: Mapping[str, Slot] = field(default_factory=dict)
    scope: Scope = "top"
    members: tuple[str, ...] = ()
    may_be_graded: bool = False
    levels: int = 0
    graded: Graded | None = None

    @property
    def takes_quality(self) -> bool:
        """Whether the columns that it was asked of say how good answers are, not which are
        right.
        """
        return self.may_be_graded and any(key.startswith(GRADED_SLOTS) for key in self.slots)

    @property
    def usual_scale(self) -> tuple[float, ...] | None:
        """The scale of grades, if nothing is said of it and it is another than from 0 to 1."""
        return None

    @property
    def cell_columns(self) -> int:
        """How many numbers the cell of a row has, beside its group."""
        return max(1, sum(key.startswith("confidence ") for key in self.slots))

    def counting_grades(self, graded: Graded | None) -> Self:
        """The same question, where the outcome of a row is the level of its grade."""
        if graded is None:
            return replace(self, graded=graded)
        names = tuple(map(str, range(graded.steps(self.levels) + 1)))
        return replace(self, graded=graded, outcomes=names)

    def of_a_row_among(self, outcomes: tuple[str, ...]) -> tuple[str, ...]:
        """Of the outcomes of a tally, those of which each row has exactly one."""
        return ("rows",) if outcomes[:1] == ("rows",) else self.row_outcomes or outcomes

    @property
    def outcomes_of_a_row(self) -> tuple[str, ...]:
        """The outcomes of which each row has exactly one: they add up to the rows."""
        return self.row_outcomes or self.outcomes

    @property
    def roles(self) -> dict[str, bool]:
        """The columns that a caller may pass, by name; True for what must be there."""
        return {**{column.name: column.needed for column in self.columns}, _GROUPS: False}

    @property
    def compares_models(self) -> bool:
        """Whether a row brings the answers of several models."""
        return any(column.name == "prediction" and column.several for column in self.columns)

    def by_name(self, columns: Sequence[Any]) -> dict[str, Any]:
        """Columns that were passed by their place, by name."""
        names = [column.name for column in self.columns]
        if len(columns) > len(names):
            raise InvalidTypeError(
                f"{len(columns)} columns were passed by their place: expected {', '.join(names)}. "
                "Pass what else there is by name."
            )
        return dict(zip(names, columns, strict=False))

    def of_columns(self, **given: Any) -> Self:
        """The question about a table whose columns are named."""
        named = self._known(given)
        groups = named.pop(_GROUPS, None)
        if groups is not None and not isinstance(groups, str):
            raise InvalidTypeError(
                f"groups={groups!r} does not name a column: expected the one that holds the group "
                "of each row. Groups that overlap are passed as arrays."
            )
        self._refuse_outcome_as_score(named)
        own = self._named(named)
        return own if groups is None else own._grouped_by(groups)

    def _refuse_outcome_as_score(self, named: Mapping[str, Any]) -> None:
        """Raise if a column is named both as the score of a row and as its outcome."""
        scores = [column.name for column in self.columns if column.holds == "number"]
        for outcome in self.columns:
            column = named.get(outcome.name)
            if outcome.name in (*scores, "prediction") or not isinstance(column, str):
                continue
            for score in scores:
                if column in (one := named.get(score), *(one if isinstance(one, list) else ())):
                    raise InvalidValueError(
                        f"{score} and {outcome.name} both name the column {column!r}: no outcome "
                        f"may be its own score. Pass the column of the model's {score}."
                    )

    def refuse_one_model_twice(self, given: Mapping[str, Any]) -> None:
        """Raise if one column of a table is named for the model that others are held against, and
        for one of these: they would never differ.
        """
        for role in ("prediction", QUALITY):
            names = given.get(role)
            if isinstance(names, list | tuple) and names:
                against = names[self.held_against]
                if names.count(against) > 1:
                    raise InvalidValueError(
                        f"{role} names {against!r} twice: expected a column for each model."
                    )

    def of_arrays(self, **given: Any) -> tuple[Self, dict[str, Any]]:
        """The question about arrays, and the arrays by slot."""
        passed = self._known(given)
        groups = passed.pop(_GROUPS, None)
        own, arrays = self._passed(passed)
        if groups is None:
            return own, arrays
        if not isinstance(groups, Mapping):
            return own._grouped_by(_GROUPS), {**arrays, _GROUPS: groups}
        if "overlapping-groups" not in self.scopes:
            raise InvalidTypeError(
                "groups is a mapping, whose groups may overlap, and a row of two groups would have "
                "two thresholds: expected one group per row."
            )
        columns = members_of(groups)
        for name in self.everyone:
            if name in columns:
                raise InvalidValueError(
                    f"groups has a group {name!r}, a name that is kept for all rows together: they "
                    "are always one of the groups that overlap. Rename it, or leave it out."
                )
        slots, members = member_slots(tuple(columns)), tuple(columns)
        overlapping: Scope = "overlapping-groups"
        own = replace(own, slots={**own.slots, **slots}, scope=overlapping, members=members)
        return own, {**arrays, **dict(zip(slots, columns.values(), strict=True))}

    def drawing_among(self, outcomes: Any) -> Self:
        """The question whose clusters are drawn among the rows of some outcomes; "all" to draw
        before labels are looked at.
        """
        names = (outcomes,) if isinstance(outcomes, str) else tuple(outcomes)
        if names == ("all",):
            return replace(self, among=())
        raise InvalidValueError(
            f"among={outcomes!r}: the rows of {with_article(self.kind)} are drawn before their "
            "outcome is looked at. Leave it out."
        )

    @property
    def trial_slots(self) -> Mapping[str, Slot]:
        """The columns that `trials_among` looks at."""
        return {}

    def trials_among(self, rows: Rows) -> dict[str, NDArray[np.bool_]]:  # noqa: ARG002
        """Which rows are of each outcome that clusters are drawn among."""
        return {}

    def trials_inside(self, rows: EngineRows) -> dict[str, nw.Expr]:  # noqa: ARG002
        """The same inside an engine."""
        return {}

    def check_layout(self, layout: Layout) -> str | None:
        """What is wrong with the layout of a tally, which came from a file; None if nothing is."""
        return layout.wrong_for(self.scopes, self.grid, self.outcomes)

    def known_again_by(
        self,
        counts: Integers,  # noqa: ARG002
        width: int,  # noqa: ARG002
    ) -> Integers | None:
        """Of the counts of all outcomes, for rows of `width` scores, those that stay when rows are
        counted again with more labels; None where no row is counted before it has its label.
        """
        return None

    def lacks_labels(self, cells: Integers, counts: Integers) -> bool:  # noqa: ARG002
        """Whether a label or a grade may still come for a row that was counted, so that the next
        look must repeat the draw.
        """
        awaited = [any(word in name for word in _AWAITED) for name in self.outcomes]
        return bool(counts[:, awaited].any())

    def require_possible(self, evidence: Evidence) -> None:  # noqa: B027
        """Raise if the classes of all rows that were judged cannot be right."""

    @abstractmethod
    def judge(self, rows: Rows, vocabulary: Vocabulary, evidence: Evidence) -> Judged:
        """The rows of arrays, judged; `evidence` takes in what is seen of their classes."""

    @abstractmethod
    def judge_inside(self, rows: EngineRows, evidence: Evidence) -> Judged:
        """The rows that an engine holds, judged there: only counts come back."""

    def _known(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """What was passed, if every name is known and none that is needed is missing."""
        return only_known(given, {**self.roles, **dict.fromkeys(self.options, False)}, self.what)

    def _named(self, named: Mapping[str, Any]) -> Self:
        """The question about the columns of a table, without groups."""
        given = (column for column in self.columns if column.name in named)
        slots = {column.name: Slot(column.holds, named[column.name]) for column in given}
        return replace(self, slots=slots)

    def _passed(self, passed: Mapping[str, Any]) -> tuple[Self, dict[str, Any]]:
        """The question about arrays, without groups, and the arrays by slot."""
        own = self._named({role: role for role in passed if role not in self.options})
        return own, {role: passed[role] for role in own.slots}

    def _grouped_by(self, column: str) -> Self:
        return replace(self, slots={**self.slots, _GROUPS: Slot("name", column)}, scope="groups")

    def _in_groups(self, rows: Rows, judged: Judged) -> Judged:
        """Judged rows with their groups; each once for every group that it is in."""
        if self.scope == "top":
            return judged
        if not self.members:
            names, places = rows.groups(_GROUPS)
            return replace(judged, groups=names, places=places)
        inside = [np.flatnonzero(rows.flags(_member(name))) for name in self.members]
        inside += [np.arange(len(rows)) for _ in self.everyone]
        chosen = np.concatenate(inside)
        return replace(
            judged,
            cells=judged.cells[chosen],
            outcomes=judged.outcomes[chosen],
            groups=(*self.members, *self.everyone),
            places=np.repeat(np.arange(len(inside)), [len(part) for part in inside]),
        )

    def _group_keys(self, rows: EngineRows) -> dict[str, nw.Expr]:
        """What rows are counted by for their groups, inside an engine."""
        return {} if self.scope == "top" else {_GROUPS: rows.group_key(_GROUPS)}

    def _counted_inside(
        self, rows: EngineRows, counts: KeyCounts, cells: Integers, outcomes: Integers
    ) -> Judged:
        """Rows that were counted inside an engine, with their groups."""
        judged = Judged(int(counts.rows.sum()), cells, outcomes, times=counts.rows)
        if self.scope == "top":
            return judged
        names, places = rows.groups(counts, _GROUPS, _GROUPS)
        return replace(judged, groups=names, places=places)


@dataclass(frozen=True, kw_only=True)
class Comparison(Question):
    """A question about answers of several models to the same rows."""

    @property
    def usual_scale(self) -> tuple[float, ...] | None:
        """Preferences are wins, ties and losses, and so is a single column."""
        return (0.0, 0.5, 1.0) if self._is_single else None

    @property
    def _is_single(self) -> bool:
        """Whether one column says which answer is better."""
        return "preferred" in self.slots or len(self._slots(QUALITY)) == 1

    def _slots(self, role: str) -> list[str]:
        """The slots of a role, one for each model."""
        return [slot for slot in self.slots if slot.startswith(f"{role} ")]


def members_of(groups: Mapping[Any, Any]) -> dict[str, Any]:
    """The column of truth values of each group, by the group's name, if no two have one name."""
    if not groups:
        raise InvalidValueError("groups is empty: name at least one group.")
    named = {str(name): column for name, column in groups.items()}
    if len(named) < len(groups):
        raise InvalidValueError(
            f"groups names one group twice: {', '.join(map(repr, groups))}. Groups go by their "
            "text: rename one."
        )
    return named


def member_slots(names: tuple[str, ...]) -> dict[str, Slot]:
    """The columns that rows bring for groups of these names, which may overlap."""
    return {_member(name): Slot("flag", f"groups[{name!r}]") for name in names}


def _member(name: str) -> str:
    """The slot of a group that overlaps others: no group's name is that of another slot."""
    return f"member of {name}"


def in_order(groups: Iterable[str]) -> tuple[str, ...]:
    """The one order that a tally keeps its groups in: numbers by their value, then text."""
    return tuple(sorted(groups, key=_place_of_group))


def _place_of_group(name: str) -> tuple[int, int, str, str]:
    if not name.isdecimal():
        return 1, 0, "", name
    # Of two numbers the one with more digits is larger, however many more than int() reads there
    # are.
    digits = "".join(str(decimal(digit)) for digit in name).lstrip("0")
    return 0, len(digits), digits, name


def with_article(kind: str) -> str:
    """The kind as a sentence has it.

    Parameters
    ----------
    kind
        One of `QUESTIONS`, or of the kinds of certificates.

    Returns
    -------
    str
        The kind with "a" or "an" before it.

    Examples
    --------
    >>> with_article("shield"), with_article("abstention")
    ('a shield', 'an abstention')
    """
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"


def subject_of(kind: str) -> str:
    """What is certified, as a sentence has it: "a shield", "a claim about false alarms"."""
    return f"a claim about {kind.replace('-', ' ')}" if kind.endswith("s") else with_article(kind)
