"""Cascade: what does answering early do to each row, against the slow model?

A row brings the confidence of every model but the last, the prediction of every model, and a label,
which may be missing in any row, or in all. For M models the cell is joint over the M - 1 exits and
the outcome is joint too, because the walk judges the whole cascade.

An exit that predicts what the slow model does needs no label. Where it differs and the row has no
label, the outcome is `unlabelled`. A row has a label or has none, so no exit is `unlabelled` where
another is right or wrong: the joint outcomes are 4 to the power of the exits for rows with a label,
then 2 to the power of the exits less one for rows without.

With groups there is a table for each. Where groups overlap, all rows are a group too: rows that are
in no other exit early as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.sources.values import MISSING
from pacbound.tally.columns import Integers, Rows, Slot, as_array, numeric, same_length
from pacbound.tally.grids import DyadicGrid
from pacbound.tally.questions.question import Judged, Layout, Question, RowColumn

if TYPE_CHECKING:
    from pacbound.tally.classes import Evidence, Vocabulary
    from pacbound.tally.frames.engine_rows import EngineRows

# The exit's answer is the slow model's; it alone is right; it alone is wrong; neither is right.
LABELLED_OUTCOMES = ("agree", "only_fast", "only_slow", "neither")

# The last: the exit's answer is not the slow model's, and the row has no label.
EXIT_OUTCOMES = (*LABELLED_OUTCOMES, "unlabelled")

AGREE, ONLY_FAST, ONLY_SLOW, NEITHER, UNLABELLED = range(5)
TWO_MODELS = DyadicGrid(16)
MORE_MODELS = DyadicGrid(10)
# The group that all rows are in, where groups overlap.
ALL_ROWS = "all rows"

# Joint outcomes are more than 4 to the power of the exits; beyond this their table outgrows the
# data.
MOST_EXITS = 5


@dataclass(frozen=True, kw_only=True)
class CascadeQuestion(Question):
    """What each exit's answer does against the slow model's; the grid is finer where there is a
    single exit.

    Examples
    --------
    >>> question = CASCADE.of_columns(confidence=["c"], prediction=["fast", "slow"], label="y")
    >>> question.exits, question.grid, question.outcomes
    (1, DyadicGrid(bits=16), ('agree', 'only_fast', 'only_slow', 'neither', 'unlabelled'))
    """

    @property
    def exits(self) -> int:
        """The number of models before the slow one."""
        return len(self._slots("confidence"))

    def of_models(self, exits: Sequence[str], answers: Sequence[str], label: str | None) -> Self:
        """The question about columns by their names: a confidence for each model but the last, a
        prediction for each model, and the label, if there is one.
        """
        if len(exits) > MOST_EXITS:
            raise InvalidValueError(
                f"{len(exits) + 1} models are too many to be counted jointly: expected at most "
                f"{MOST_EXITS + 1}."
            )
        slots = {
            **{f"confidence {m}": Slot("number", name) for m, name in enumerate(exits)},
            **{f"prediction {m}": Slot("class", name) for m, name in enumerate(answers)},
            **({} if label is None else {"label": Slot("class", label)}),
        }
        outcomes = outcomes_of(len(exits))
        return replace(self, slots=slots, grid=grid_of(len(exits)), outcomes=outcomes)

    def _named(self, named: Mapping[str, Any]) -> Self:
        """The question about a table: columns in the order of the models, the slow one last, and
        the label, if there is one.
        """
        label = named.get("label")
        exits, answers = (
            [names] if isinstance(names, str) else list(names)
            for names in (named["confidence"], named["prediction"])
        )
        if not exits or len(answers) != len(exits) + 1:
            raise InvalidTypeError(
                f"{len(exits)} confidences and {len(answers)} predictions are not a cascade: name "
                "a confidence for each model but the last, and a prediction for each model."
            )
        if label in answers[:-1]:
            raise InvalidValueError(
                f"label and prediction are both {label!r}, so that an exit would always be right: "
                "name the column of the true classes."
            )
        return self.of_models(exits, answers, label)

    def _passed(self, passed: Mapping[str, Any]) -> tuple[Self, dict[str, Any]]:
        """The question about (n, M-1) confidences, (n, M) predictions and (n,) labels, if any."""
        scores = numeric(as_array(passed["confidence"], "confidence"), "confidence")
        scores = scores[:, None] if scores.ndim == 1 else scores
        answers = prediction_columns(passed["prediction"])
        exits = scores.shape[1] if scores.ndim == 2 else 0
        if not exits or len(answers) != exits + 1:
            raise InvalidValueError(
                f"confidence of shape {scores.shape} and prediction of {len(answers)} models are "
                "not a cascade: expected (n, M-1) confidences, one for each exit, and (n, M) "
                "predictions, the slow model's last."
            )
        same_length(confidence=scores, prediction=answers[0])
        columns: list[Any] = [*scores.T, *answers]
        if "label" in passed:
            labels = label_column(passed["label"])
            same_length(confidence=scores, label=labels)
            columns.append(labels)
        question = self.of_models(
            [f"confidence[:, {m}]" for m in range(exits)],
            [f"prediction[:, {m}]" for m in range(exits + 1)],
            "label" if "label" in passed else None,
        )
        return question, dict(zip(question.slots, columns, strict=True))

    def check_layout(self, layout: Layout) -> str | None:
        """What is wrong with the layout of a tally, which came from a file; None if nothing is."""
        exits = layout.scores
        if layout.scope not in self.scopes:
            return f"scope {layout.scope!r}"
        if not 1 <= exits <= MOST_EXITS:
            return f"cells of {exits} scores"
        if layout.grid != grid_of(exits):
            return f"another grid than the {grid_of(exits)} that {exits + 1} models are counted on"
        return None if layout.outcomes == outcomes_of(exits) else "other outcomes"

    def known_again_by(self, counts: Integers, width: int) -> Integers:
        """How often which exits differ from the slow model: it needs no label, and stays when one
        comes.
        """
        groups = int(counts.shape[1] != len(outcomes_of(width)))
        return disagreements(counts, width - groups)

    def judge(self, rows: Rows, vocabulary: Vocabulary, evidence: Evidence) -> Judged:
        """The cell of each exit's confidence, and what its answer does."""
        answers = [rows.classes(slot, vocabulary) for slot in self._slots("prediction")]
        truth = (
            rows.classes("label", vocabulary)
            if "label" in self.slots
            else np.full(len(rows), MISSING)
        )
        for slot, codes in zip(self._slots("prediction"), answers, strict=True):
            missing = np.flatnonzero(codes == MISSING)
            if missing.size:
                raise InvalidValueError(
                    f"{rows.name(slot)}[{rows.start + missing[0]}] is missing ({missing.size} such "
                    "rows): every model must predict every row."
                )
        scores = [rows.scores(slot) for slot in self._slots("confidence")]
        cells = np.column_stack([self.grid.cells(column) for column in scores])
        differs = [codes != answers[-1] for codes in answers[:-1]]
        for slot, codes in zip(self._slots("prediction"), answers, strict=True):
            evidence.slow = rows.name(slot)
            evidence.saw(evidence.slow, vocabulary.classes(np.unique(codes).tolist()))
        witness(answers, truth, vocabulary, evidence)
        # Not by the labels: the same rows with more of them are still the same rows.
        pattern = np.sum([flags << m for m, flags in enumerate(differs)], axis=0)
        told = np.column_stack(scores).ravel(), pattern
        judged = Judged(len(rows), cells, joint_outcome(answers, truth), told=told)
        return self._in_groups(rows, judged)

    def judge_inside(self, rows: EngineRows, evidence: Evidence) -> Judged:
        """The same inside an engine."""
        label = "label" if "label" in self.slots else None
        answers = rows.answers(self._slots("prediction"), label, evidence)
        scores = self._slots("confidence")
        keys = {slot: rows.cell_key(slot, self.grid) for slot in scores}
        keys |= {**self._group_keys(rows), "outcome": answers.coded(answers.joint_outcome())}
        counts = rows.count(keys)
        outcomes = answers.checked(counts, "outcome")
        cells = np.column_stack([rows.cells(counts, slot, slot, self.grid) for slot in scores])
        answers.witness()
        return self._counted_inside(rows, counts, cells, outcomes)

    def _slots(self, role: str) -> list[str]:
        return [slot for slot in self.slots if slot.startswith(role)]


def exits_of(width: int, scope: str) -> int:
    """The number of exits of a tally whose cells have so many columns: where there are groups, the
    first is the group's place.
    """
    return width - (scope != "top")


def grid_of(exits: int) -> DyadicGrid:
    """The grid that the scores of so many exits are counted on."""
    return TWO_MODELS if exits == 1 else MORE_MODELS


def outcomes_of(exits: int) -> tuple[str, ...]:
    """The names of the joint outcomes of so many exits: those of rows with a label, then those of
    rows without in which an exit differs.
    """
    without = list(product(("agree", "unlabelled"), repeat=exits))[1:]
    return (*map("|".join, product(LABELLED_OUTCOMES, repeat=exits)), *map("|".join, without))


def with_unlabelled(counts: Integers, exits: int) -> Integers:
    """Counts of all joint outcomes, also from a tally of before rows without a label were counted,
    which has none of them.
    """
    more = len(outcomes_of(exits)) - counts.shape[1]
    return np.pad(counts, ((0, 0), (0, more))) if more else counts


def of_exit(counts: Integers, exit_: int, exits: int) -> Integers:
    """Counts of joint outcomes as counts of one exit's outcomes, in the order of `EXIT_OUTCOMES`,
    the other exits disregarded.
    """
    places = [EXIT_OUTCOMES.index(name.split("|")[exit_]) for name in outcomes_of(exits)]
    return _gathered(counts, places, len(EXIT_OUTCOMES))


def disagreements(counts: Integers, exits: int) -> Integers:
    """Counts of joint outcomes as counts of which exits differ from the slow model: what is known
    of rows without their labels, and stays when these come.
    """
    differs = [[part != "agree" for part in name.split("|")] for name in outcomes_of(exits)]
    places = [sum(flag << m for m, flag in enumerate(flags)) for flags in differs]
    return _gathered(counts, places, 2**exits)


def _gathered(counts: Integers, places: Sequence[int], width: int) -> Integers:
    """The columns of `counts` added up by the place that each belongs to."""
    belongs = np.zeros((counts.shape[1], width), dtype=np.int64)
    belongs[np.arange(counts.shape[1]), places[: counts.shape[1]]] = 1
    return counts @ belongs


def witness(
    answers: Sequence[Integers],
    truth: Integers,
    vocabulary: Vocabulary,
    evidence: Evidence,
) -> None:
    """Let `evidence` take in what labels say: all of them, those that no model of their row
    predicts, those that an exit predicts and the slow model does not, and how often they match the
    slow model.
    """
    size = len(vocabulary)
    known = truth != MISSING
    differ = known & np.any([codes != answers[-1] for codes in answers[:-1]], axis=0)
    for met, rows in zip(evidence.met, (known & ~differ, differ), strict=True):
        slow, labels = answers[-1][rows], truth[rows]
        met.slow += vocabulary.counted(np.bincount(slow, minlength=size))
        met.labels += vocabulary.counted(np.bincount(labels, minlength=size))
        met.both += vocabulary.counted(np.bincount(labels[slow == labels], minlength=size))
    right = np.any([codes == truth for codes in answers], axis=0)
    labelled = np.bincount(truth[known], minlength=size)
    evidence.labelled |= vocabulary.classes(np.flatnonzero(labelled).tolist())
    unmatched = truth[differ & ~right]
    gained = truth[differ & right & (answers[-1] != truth)]
    evidence.unmatched += vocabulary.counted(np.bincount(unmatched, minlength=size))
    evidence.gained += vocabulary.counted(np.bincount(gained, minlength=size))


def joint_outcome(answers: Sequence[Integers], truth: Integers) -> Integers:
    """The joint outcome of each row, by the numbers of the classes that each model predicts, the
    slow one last, and of the label, -1 where there is none.
    """
    slow, joint = answers[-1], np.zeros(len(truth), dtype=np.int64)
    slow_right, pattern = slow == truth, np.zeros_like(joint)
    for fast in answers[:-1]:
        # Where the two differ, at most one of them is right.
        single = np.where(
            fast == slow,
            AGREE,
            np.where(fast == truth, ONLY_FAST, np.where(slow_right, ONLY_SLOW, NEITHER)),
        )
        joint = joint * len(LABELLED_OUTCOMES) + single
        pattern = pattern * 2 + (fast != slow)
    without = len(LABELLED_OUTCOMES) ** (len(answers) - 1) + pattern - 1
    return np.where((truth == MISSING) & (pattern > 0), without, joint)


def prediction_columns(predictions: Any) -> list[Any]:
    """The predictions of each model: the columns of a table, whatever holds it."""
    if isinstance(predictions, (list, tuple)):
        if any(
            issubclass(kind, (str, bytes, Mapping, Set)) for kind in set(map(type, predictions))
        ):
            # These can be iterated over too, but do not give what models predict.
            raise InvalidTypeError(
                "prediction holds text or mappings: expected (n, M), in each row a list with the "
                "class that each model predicts, the slow one last."
            )
        try:
            columns = [list(column) for column in zip(*predictions, strict=True)]
        except (TypeError, ValueError):
            columns = []
        if columns and not {list, tuple} & set(map(type, columns[0])):
            return columns
        if not len(predictions):
            raise InvalidValueError("prediction is empty: expected (n, M), a column per model.")
    table = _as_table(predictions)
    if table.ndim != 2:
        raise InvalidValueError(
            f"prediction has shape {table.shape}: expected (n, M), a column per model, the slow "
            "one last."
        )
    return [table[:, m] for m in range(table.shape[1])]


def _as_table(values: Any) -> Any:
    """An array, or a masked one; text stays what it is, and nothing is checked yet."""
    if isinstance(values, np.ma.MaskedArray):
        return values
    if hasattr(values, "detach"):
        values = values.detach()
    try:
        return np.asarray(values)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InvalidTypeError(
            f"prediction is a {type(values).__name__} that NumPy cannot read ({error}): expected "
            "(n, M) classes."
        ) from None


def label_column(labels: Any) -> Any:
    try:
        shape = np.shape(labels)
    except (TypeError, ValueError, RuntimeError):
        # Rows of different lengths, or what NumPy cannot read: said where values are taken in.
        return labels
    if len(shape) != 1:
        raise InvalidValueError(f"label has shape {shape}: expected one label per row.")
    return labels


CASCADE = CascadeQuestion(
    kind="cascade",
    what="A cascade",
    columns=(
        RowColumn(
            "confidence",
            "The confidence of each model but the last, in the order in which they are asked.",
            "number",
            several=True,
        ),
        RowColumn(
            "prediction",
            "The prediction of each model, the slow model's last.",
            "class",
            several=True,
        ),
        RowColumn(
            "label",
            "The true class; it may be missing in any row, and in all.",
            "class",
            needed=False,
        ),
    ),
    outcomes=EXIT_OUTCOMES,
    labelled_by=("label",),
    labels_may_be_missing=True,
    everyone=(ALL_ROWS,),
)
