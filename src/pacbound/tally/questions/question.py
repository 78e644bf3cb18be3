"""What a question is: the columns that a row brings, the outcomes, the grid, and how a row is
judged.

A question is asked of rows in two ways: of arrays, and inside a dataframe engine. Either way the
answer is `Judged` rows, and everything after that (counting, adding, certifying) is the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from pacbound.sources.batches import ColumnKind
from pacbound.sources.notation import shown
from pacbound.tally.grids import Bins, DyadicGrid

if TYPE_CHECKING:
    from pacbound.tally.classes import Evidence, Vocabulary
    from pacbound.tally.frames.engine_rows import EngineRows
    from pacbound.tally.rows import Rows

Integers = NDArray[np.int64]
Kind = Literal["calibration", "abstention", "cascade", "shield", "recall", "sets"]
Scope = Literal["top", "groups", "overlapping-groups", "per-class", "all-labels"]

_SCORES = ("number", "number or nothing")

OVERLAPPING: frozenset[Scope] = frozenset(["overlapping-groups", "all-labels"])
"""The scopes in which a row may be counted in several tables."""


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
        What it holds: "number", "number or nothing", "flag", "class" or "name".
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
    holds: ColumnKind
    several: bool = False
    needed: bool = True


@dataclass(frozen=True)
class Slot:
    """A column that a question asks for.

    Attributes
    ----------
    kind : str
        What it holds: "number", "number or nothing", "flag", "class" or "name".
    name : str
        What it is called where it comes from, for messages and for reading it.
    scale : float or None
        For scores: what a score of 1 is written as, if not as 1.

    Examples
    --------
    >>> Slot("number", "percent", scale=100.0).shown
    'percent / 100'
    """

    kind: ColumnKind
    name: str
    scale: float | None = None

    @property
    def shown(self) -> str:
        """What its values are called in messages."""
        return self.name if self.scale is None else shown(self.name, self.scale)


def scaled(slots: Mapping[str, Slot], scale: float | None) -> dict[str, Slot]:
    """The slots of a question, whose numbers are all scores; a score of 1 is written as `scale`."""
    return {
        key: replace(slot, scale=scale) if slot.kind in _SCORES else slot
        for key, slot in slots.items()
    }


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


class Question(Protocol):
    """What rows are counted for: the columns that a row brings, the outcomes, the grid, and how a
    row is judged.

    Each question is one file, and `pacbound.tally.questions` lists them. Whatever counts, loads or
    certifies a tally reads it there, so a tally of another grid or other outcomes is refused.

    Examples
    --------
    >>> from pacbound.tally.questions import QUESTIONS
    >>> question = QUESTIONS["shield"].of_columns(score="danger", unsafe="crashed")
    >>> question.outcomes, sorted(question.slots)
    (('safe', 'unsafe'), ['score', 'unsafe'])
    """

    kind: ClassVar[Kind]
    roles: ClassVar[Mapping[str, bool]]
    """What a caller may pass, by name; True for what must be there."""
    labelled_by: ClassVar[tuple[str, ...]]
    """Which of these may come back later, as the label of a row: the first that is named does."""
    labels_may_be_missing: ClassVar[bool]
    """Whether a row is counted that has no label."""
    lowest_cell: ClassVar[int]
    """The lowest cell that a score can have: 0, or -1 if there is one below the grid."""

    @property
    def grid(self) -> Bins | DyadicGrid:
        """How scores become cells."""
        ...

    @property
    def outcomes(self) -> tuple[str, ...]:
        """The names of what a row can turn out to be."""
        ...

    @property
    def scope(self) -> Scope:
        """What the groups are: "top" where there are none."""
        ...

    @property
    def slots(self) -> Mapping[str, Slot]:
        """The columns that each row must bring."""
        ...

    @classmethod
    def of_columns(cls, **given: Any) -> Question:
        """The question about a table whose columns are named."""
        ...

    @classmethod
    def of_arrays(cls, **given: Any) -> tuple[Question, dict[str, Any]]:
        """The question about arrays, and the arrays by slot."""
        ...

    @classmethod
    def check_layout(cls, layout: Layout) -> str | None:
        """What is wrong with the layout of a tally, which came from a file; None if nothing is."""
        ...

    @classmethod
    def known_again_by(cls, counts: Integers, width: int) -> Integers | None:
        """Of the counts of all outcomes, for rows of `width` scores, those that stay when rows are
        counted again with more labels; None where no row is counted before it has its label.
        """
        ...

    def judge(self, rows: Rows, vocabulary: Vocabulary, evidence: Evidence) -> Judged:
        """The rows of arrays, judged; `evidence` takes in what is seen of their classes."""
        ...

    def judge_inside(self, rows: EngineRows, evidence: Evidence) -> Judged:
        """The rows that an engine holds, judged there: only counts come back."""
        ...
