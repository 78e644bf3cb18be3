"""Cascade: what does answering early do to each row, against the slow model?

A row brings the confidence of every model but the last, the prediction of every model, and a label,
which may be missing in any row, or in all. For M models the cell is joint over the M - 1 exits and
the outcome is joint too, because the walk judges the whole cascade.

An exit that predicts what the slow model does needs no label. Where it differs and the row has no
label, the outcome is `unlabelled`. A row has a label or has none, so no exit is `unlabelled` where
another is right or wrong: the joint outcomes are 4 to the power of the exits for rows with a label,
then 2 to the power of the exits less one for rows without.

Where answers are graded, a row brings the quality of each model's answer in place of a label. What
an exit loses is the quality of the slow answer less that of its own, from -1 to 1, and what is
counted of a cell are sums of its powers, which bets need. A quality may be missing in any row, of
any model: sums are kept at worst
and at best. One preference a row, a win, a tie or a loss, is counted as labels are.

With groups there is a table for each. Where groups overlap, all rows are a group too: rows that are
in no other exit early as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

import numpy as np
from numpy.typing import NDArray

from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.sources.values import MISSING
from pacbound.tally.classes import ALL_PREDICT, ClassRule, Vocabulary
from pacbound.tally.columns import (
    QUALITY,
    Floats,
    Integers,
    Rows,
    Slot,
    as_array,
    as_numbers_with_gaps,
    numeric,
    same_length,
)
from pacbound.tally.grades import Graded, not_preferred
from pacbound.tally.grids import DifferenceGrid, DyadicGrid
from pacbound.tally.questions.question import Comparison, Judged, Layout, RowColumn

if TYPE_CHECKING:
    from pacbound.tally.classes import Evidence
    from pacbound.tally.frames.engine_rows import EngineRows

# The exit's answer is the slow model's; it alone is right; it alone is wrong; neither is right.
LABELLED_OUTCOMES = ("agree", "only_fast", "only_slow", "neither")

# The last: the exit's answer is not the slow model's, and the row has no label.
EXIT_OUTCOMES = (*LABELLED_OUTCOMES, "unlabelled")

AGREE, ONLY_FAST, ONLY_SLOW, NEITHER, UNLABELLED = range(5)

# Losses of quality are counted in so many steps, rounded up: two to six grades are exact.
FINE: Final = 240

TWO_MODELS = DyadicGrid(16)
MORE_MODELS = DyadicGrid(10)
# The group that all rows are in, where groups overlap.
ALL_ROWS = "all rows"

# Joint outcomes are more than 4 to the power of the exits; beyond this their table outgrows the
# data.
MOST_EXITS = 5


# The cell of a loss from -1 to 1.
LOSSES: Final = DifferenceGrid(steps=FINE)


def at_best(codes: Integers) -> Integers:
    """The cells of losses if what is missing were the best for the exit."""
    known, both = 2 * FINE + 1, LOSSES.n_cells - 1
    return np.select([codes < known, codes < both], [codes, codes - known], 0)


def at_worst(codes: Integers) -> Integers:
    """The same if it were the worst."""
    known, both = 2 * FINE + 1, LOSSES.n_cells - 1
    return np.select([codes < known, codes < both], [codes, codes - FINE - 1], 2 * FINE)


def _sums(codes: Integers, *, best: bool) -> Integers:
    """What is counted of losses in these cells: whether a row lost, but not for want of a grade,
    gained, or lost for want of one; its loss, its gain, the square of both, and the cube of each.
    """
    lost = (at_best if best else at_worst)(codes) - FINE
    open_ = (codes > 2 * FINE) & (not best)
    kinds = [(lost > 0) & ~open_, lost < 0, (lost > 0) & open_]
    losses, gains = np.maximum(lost, 0), np.maximum(-lost, 0)
    sums = [losses, gains, lost**2, losses**3, gains**3]
    return np.column_stack([*kinds, *sums]).astype(np.int64)


_EVERY: Final = np.arange(LOSSES.n_cells)
# What is counted of a loss in each cell, at worst and then at best; so many numbers each.
_LOST: Final = np.concatenate([_sums(_EVERY, best=end) for end in (False, True)], axis=1)
WIDTH: Final = _LOST.shape[1] // 2


@dataclass(frozen=True, kw_only=True)
class CascadeQuestion(Comparison):
    """What each exit's answer does against the slow model's; the grid is finer where there is a
    single exit.

    Examples
    --------
    >>> question = CASCADE.of_columns(confidence=["c"], prediction=["fast", "slow"], label="y")
    >>> question.exits, question.grid, question.outcomes
    (1, DyadicGrid(bits=16, digits=0), ('agree', 'only_fast', 'only_slow', 'neither', 'unlabelled'))
    """

    held_against: ClassVar[int] = -1

    models: tuple[str, ...] = ()

    @property
    def exits(self) -> int:
        """The number of models before the slow one."""
        return len(self._slots("confidence"))

    @property
    def takes_losses(self) -> bool:
        """Whether losses of quality are counted; where rows are won, tied or lost, they are counted
        as labels are.
        """
        graded = self.graded
        return graded is not None and not (self._is_single and len(graded.scale) == 3)

    def counting_grades(self, graded: Graded | None) -> Self:
        """The same question, where losses of quality are counted."""
        own = replace(self, graded=graded)
        return replace(own, outcomes=losses_of(self.exits)) if own.takes_losses else own

    def of_models(
        self,
        exits: Sequence[str],
        answers: Sequence[str],
        label: str | None,
        quality: Sequence[str] = (),
        preferred: str | None = None,
    ) -> Self:
        """The question about columns by their names: a confidence for each model but the last, a
        prediction for each model, and the label, if there is one; or the quality of each model's
        answer, of the slow one's alone, or the one that is preferred.
        """
        if len(exits) > MOST_EXITS:
            raise InvalidValueError(
                f"{len(exits) + 1} models are too many to be counted jointly: expected at most "
                f"{MOST_EXITS + 1}."
            )
        # One column is the slow model's: the other's quality is what it leaves to 1.
        first = len(exits) + 1 - len(quality)
        slots = {
            **{f"confidence {m}": Slot("number", name) for m, name in enumerate(exits)},
            **{f"prediction {m}": Slot("class", name) for m, name in enumerate(answers)},
            **({} if label is None else {"label": Slot("class", label)}),
            **{
                f"{QUALITY} {m}": Slot("number or nothing", name)
                for m, name in enumerate(quality, first)
            },
            **({} if preferred is None else {"preferred": Slot("class", preferred)}),
        }
        outcomes = outcomes_of(len(exits))
        models = tuple(answers) or ("fast", "slow")
        own = replace(self, slots=slots, grid=grid_of(len(exits)), outcomes=outcomes)
        return replace(own, models=models)

    def _named(self, named: Mapping[str, Any]) -> Self:
        """The question about a table: columns in the order of the models, the slow one last, and
        the label, if there is one.
        """
        label, preferred = named.get("label"), named.get("preferred")
        exits, answers, quality = (
            [names] if isinstance(names, str) else list(names)
            for names in (named.get(role, ()) for role in ("confidence", "prediction", QUALITY))
        )
        _require_one_outcome(named)
        if not exits or len(answers) != (len(exits) + 1 if "prediction" in named else 0):
            raise InvalidTypeError(
                f"{len(exits)} confidences and {len(answers)} predictions are not a cascade: name "
                "a confidence for each model but the last, and a prediction for each model. If "
                "each model has a table of its own, name the column that joins them: id='doc_id' "
                "(--id doc_id)."
            )
        require_graded(len(exits) + 1, len(quality), preferred=preferred is not None)
        if label in answers[:-1]:
            raise InvalidValueError(
                f"label and prediction are both {label!r}, so that an exit would always be right: "
                "name the column of the true classes."
            )
        return self.of_models(exits, answers, label, quality, preferred)

    def _passed(self, passed: Mapping[str, Any]) -> tuple[Self, dict[str, Any]]:
        """The question about (n, M-1) confidences, (n, M) predictions and (n,) labels, if any; or
        (n, M) qualities in place of labels.
        """
        _require_one_outcome(passed)
        scores = numeric(as_array(passed["confidence"], "confidence"), "confidence")
        scores = scores[:, None] if scores.ndim == 1 else scores
        answers = prediction_columns(passed["prediction"]) if "prediction" in passed else []
        exits = scores.shape[1] if scores.ndim == 2 else 0
        if not exits or len(answers) != (exits + 1 if "prediction" in passed else 0):
            raise InvalidValueError(
                f"confidence of shape {scores.shape} and prediction of {len(answers)} models are "
                "not a cascade: expected (n, M-1) confidences, one for each exit, and (n, M) "
                "predictions, the slow model's last."
            )
        quality = quality_columns(passed[QUALITY]) if QUALITY in passed else []
        require_graded(exits + 1, len(quality), preferred="preferred" in passed)
        columns: list[Any] = [*scores.T, *answers]
        single = {role: passed[role] for role in ("label", "preferred") if role in passed}
        for role, values in single.items():
            same_length(**{"confidence": scores, role: label_column(values, role)})
        for role, several in (("prediction", answers), (QUALITY, quality)):
            if several:
                same_length(**{"confidence": scores, role: several[0]})
        columns += [*(part for role, part in single.items() if role == "label"), *quality]
        columns += [part for role, part in single.items() if role == "preferred"]
        first = exits + 1 - len(quality)
        question = self.of_models(
            [f"confidence[:, {m}]" for m in range(exits)],
            [f"prediction[:, {m}]" for m in range(len(answers))],
            "label" if "label" in passed else None,
            [f"{QUALITY}[:, {m - first}]" for m in range(first, exits + 1)],
            "preferred" if "preferred" in passed else None,
        )
        question = replace(question, models=("fast", "slow"))
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
        known = [outcomes_of(exits), *([] if self.graded is None else [losses_of(exits)])]
        return None if layout.outcomes in known else "other outcomes"

    def known_again_by(self, counts: Integers, width: int) -> Integers:
        """How often which exits differ from the slow model: it needs no label, and stays when one
        comes. Graded rows are known by their number alone.
        """
        if self.takes_losses:
            return counts[:, :1]
        if self.graded is not None:
            return np.asarray(counts.sum(axis=1, keepdims=True))
        groups = int(counts.shape[1] != len(outcomes_of(width)))
        return disagreements(counts, width - groups)

    def lacks_labels(self, cells: Integers, counts: Integers) -> bool:
        """The same; no label comes where none was named, and whether one is needed the claim
        knows.
        """
        if self.takes_losses:
            return bool(counts[:, 1].any())
        asked = self.graded is not None or "label" in self.slots
        return asked and super().lacks_labels(cells, counts)

    def judge(self, rows: Rows, vocabulary: Vocabulary, evidence: Evidence) -> Judged:
        """The cell of each exit's confidence, and what its answer does."""
        answers = self._answers(rows, vocabulary, evidence)
        truth = (
            rows.classes("label", vocabulary)
            if "label" in self.slots
            else np.full(len(rows), MISSING)
        )
        scores = [rows.scores(slot) for slot in self._slots("confidence")]
        cells = np.column_stack([self.grid.cells(column) for column in scores])
        differs = [codes != answers[-1] for codes in answers[:-1]]
        if self.graded is None:
            witness(answers, truth, vocabulary, evidence)
            outcomes = joint_outcome(answers, truth)
        else:
            differs = differs or [np.ones(len(rows), dtype=bool)] * self.exits
            outcomes = self._lost(rows, differs)
        # Not by the labels: the same rows with more of them are still the same rows.
        pattern = np.sum([flags << m for m, flags in enumerate(differs)], axis=0)
        told = np.column_stack(scores).ravel(), pattern
        return self._in_groups(rows, self._judged(len(rows), cells, outcomes, told=told))

    def _judged(self, rows: int, cells: Integers, outcomes: Integers, **more: Any) -> Judged:
        """Rows by their joint outcome; or by the cells of their losses, (rows, exits)."""
        sums = self.loss_sums if self.takes_losses else None
        return Judged(rows, cells, outcomes, sums=sums, **more)

    def loss_sums(self, codes: Integers) -> Integers:
        """What is counted of each row: once itself, whether a grade could change it, and what each
        of its exits loses.
        """
        open_ = (codes > 2 * FINE).any(axis=1)
        own = _LOST[codes].reshape(len(codes), -1)
        return np.column_stack([np.ones(len(codes), dtype=np.int64), open_, own])

    def _answers(self, rows: Rows, vocabulary: Vocabulary, evidence: Evidence) -> list[Integers]:
        """What each model predicts, if every one predicts every row."""
        answers = [rows.classes(slot, vocabulary) for slot in self._slots("prediction")]
        for slot, codes in zip(self._slots("prediction"), answers, strict=True):
            rows.refuse_missing(slot, codes == MISSING, ALL_PREDICT)
        for slot, codes in zip(self._slots("prediction"), answers, strict=True):
            evidence.slow = rows.name(slot)
            evidence.saw(evidence.slow, vocabulary.classes(np.unique(codes).tolist()))
        return answers

    def _lost(self, rows: Rows, differs: Sequence[NDArray[np.bool_]]) -> Integers:
        """What becomes of each graded row: the cells of its losses, or its outcome if each is won,
        tied or lost. Nothing is lost where an exit's answer is the slow model's, whatever a judge
        said of the two.
        """
        *fast, slow = self.qualities(rows)
        high = np.where(np.isnan(slow), 1.0, slow)
        codes = []
        for quality, differ in zip(fast, differs, strict=True):
            most = np.where(differ, high - np.where(np.isnan(quality), 0.0, quality), 0.0)
            missing = np.where(differ, np.isnan(slow).astype(np.int64) + np.isnan(quality), 0)
            codes.append(LOSSES.coded(most, missing, declared=False))
        return self._decided(np.column_stack(codes))

    def _decided(self, codes: Integers) -> Integers:
        return codes if self.takes_losses else _PREFERRED[np.minimum(codes[:, 0], 2 * FINE + 1)]

    def qualities(self, rows: Rows) -> list[Floats]:
        """The quality of each model's answer, NaN where it is missing."""
        graded = self.graded or Graded()
        if "preferred" in self.slots:
            slow = preferred_quality(rows, self._preferred)
            return [1.0 - slow, slow]
        found = [
            graded.quality(rows.numbers(slot), rows.name(slot), rows.start)
            for slot in self._slots(QUALITY)
        ]
        return found if len(found) > 1 else [1.0 - found[0], found[0]]

    @property
    def _preferred(self) -> dict[str, float]:
        """The quality of the slow model's answer, by which one is preferred."""
        return {self.models[0]: 0.0, self.models[1]: 1.0, "tie": 0.5}

    def _lost_inside(self, rows: EngineRows, evidence: Evidence) -> Judged:
        """Graded rows inside an engine: for each exit the cell of what it loses."""
        scores, graded = self._slots("confidence"), self.graded or Graded()
        if "preferred" in self.slots:
            found = [rows.preferred("preferred", self._preferred)]
        else:
            rows.refuse_beyond(self._slots(QUALITY), graded)
            rows.refuse_undeclared(self._slots(QUALITY), graded)
            found = [rows.quality(slot, graded) for slot in self._slots(QUALITY)]
        *fast, slow = found if len(found) > 1 else [1.0 - found[0], found[0]]
        predictions = self._slots("prediction")
        answers = rows.answers(predictions, None, evidence) if predictions else None
        agree = [None] * self.exits if answers is None else answers.agree
        pairs = zip(fast, agree, strict=True)
        lost = [rows.difference(slow, *each, FINE, declared=False) for each in pairs]
        keys = {slot: rows.cell_key(slot, self.grid) for slot in scores}
        keys |= {**self._group_keys(rows), **{f"exit {m}": code for m, code in enumerate(lost)}}
        if answers is not None:
            keys["exit 0"] = answers.coded(keys["exit 0"])
        counts = rows.count(keys, outcomes=len(self.outcomes))
        if answers is not None:
            answers.checked(counts, "exit 0")
        codes = [counts.numbers(f"exit {m}").astype(np.int64) for m in range(self.exits)]
        cells = np.column_stack([rows.cells(counts, slot, slot, self.grid) for slot in scores])
        judged = self._counted_inside(rows, counts, cells, self._decided(np.column_stack(codes)))
        return replace(judged, sums=self.loss_sums) if self.takes_losses else judged

    def judge_inside(self, rows: EngineRows, evidence: Evidence) -> Judged:
        """The same inside an engine."""
        if self.graded is not None:
            return self._lost_inside(rows, evidence)
        label = "label" if "label" in self.slots else None
        answers = rows.answers(self._slots("prediction"), label, evidence)
        scores = self._slots("confidence")
        keys = {slot: rows.cell_key(slot, self.grid) for slot in scores}
        keys |= {**self._group_keys(rows), "outcome": answers.coded(answers.joint_outcome())}
        counts = rows.count(keys, outcomes=len(self.outcomes))
        outcomes = answers.checked(counts, "outcome")
        cells = np.column_stack([rows.cells(counts, slot, slot, self.grid) for slot in scores])
        return self._counted_inside(rows, counts, cells, outcomes)


def preferred_quality(rows: Rows, known: Mapping[str, float]) -> Floats:
    """The quality that the preferred model of each row stands for, by its name; NaN where there is
    none.
    """
    vocabulary = Vocabulary(ClassRule())
    codes = rows.classes("preferred", vocabulary)
    names = [str(name) for name in vocabulary.names()]
    strange = np.flatnonzero(np.array([*(name not in known for name in names), False])[codes])
    if strange.size:
        where = f"{rows.name('preferred')}[{rows.start + strange[0]}]"
        raise not_preferred(f"{where} is {names[codes[strange[0]]]!r}", strange.size, known)
    return np.array([*(known.get(name, np.nan) for name in names), np.nan])[codes]


def exits_of(width: int, scope: str) -> int:
    """The number of exits of a tally whose cells have so many columns: where there are groups, the
    first is the group's place.
    """
    return width - (scope != "top")


def grid_of(exits: int) -> DyadicGrid:
    """The grid that the scores of so many exits are counted on."""
    return TWO_MODELS if exits == 1 else MORE_MODELS


# What becomes of a row for the cell of what it loses, where it is won, tied or lost.
_PREFERRED: Final = np.full(2 * FINE + 2, UNLABELLED)
_PREFERRED[[0, FINE, 2 * FINE]] = ONLY_FAST, AGREE, ONLY_SLOW


def losses_of(exits: int) -> tuple[str, ...]:
    """The names of what is counted of graded rows: themselves, those that lack a grade, and what
    each exit loses at worst and at best.
    """
    names = ("lost", "gained", "open", "loss", "gain", "squares", "loss cubes", "gain cubes")
    ends = product(range(1, exits + 1), ("worst", "best"), names)
    return ("rows", "open", *(f"{name} of exit {exit_} at {end}" for exit_, end, name in ends))


def are_graded(counts: Integers, exits: int) -> bool:
    """Whether counts are those of losses of quality."""
    return bool(counts.shape[1] == 2 + 2 * exits * WIDTH)


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
    more = 0 if are_graded(counts, exits) else len(outcomes_of(exits)) - counts.shape[1]
    return np.pad(counts, ((0, 0), (0, more))) if more else counts


def of_exit(counts: Integers, exit_: int, exits: int) -> Integers:
    """Counts of joint outcomes as counts of one exit's outcomes, in the order of `EXIT_OUTCOMES`,
    the other exits disregarded.
    """
    places = [EXIT_OUTCOMES.index(name.split("|")[exit_]) for name in outcomes_of(exits)]
    return _gathered(counts, places, len(EXIT_OUTCOMES))


def unlabelled_rows(counts: Integers, exits: int) -> Integers:
    """How many rows of each cell have no label though an exit differs; of graded rows, those whose
    loss another quality could change.
    """
    if are_graded(counts, exits):
        return counts[:, 1]
    return np.asarray(counts[:, 4**exits :].sum(axis=1))


def labelled_rows(counts: Integers, exits: int) -> Integers:
    """How many rows of each cell have a label where an exit differs; of graded rows, all others."""
    if are_graded(counts, exits):
        return counts[:, 0] - counts[:, 1]
    return np.asarray(counts[:, 1 : 4**exits].sum(axis=1))


def counts_at_best(counts: Integers, exits: int) -> Integers:
    """The counts of graded rows as they would be if every missing quality were the best for the
    exits.
    """
    ends = counts[:, 2:].reshape(len(counts), exits, 2, WIDTH)
    both = np.repeat(ends[:, :, 1:], 2, axis=2).reshape(len(counts), -1)
    return np.column_stack([counts[:, 0], np.zeros(len(counts), dtype=np.int64), both])


def disagreements(counts: Integers, exits: int) -> Integers:
    """Counts of joint outcomes as counts of which exits differ from the slow model: what is known
    of rows without their labels, and stays when these come.
    """
    differs = [[part != "agree" for part in name.split("|")] for name in outcomes_of(exits)]
    places = [sum(flag << m for m, flag in enumerate(flags)) for flags in differs]
    return _gathered(counts, places, 2**exits)


def _gathered(counts: Integers, places: Sequence[int], width: int) -> Integers:
    """The columns of `counts` added up by the place that each belongs to."""
    belong = np.array(places[: counts.shape[1]])
    order = np.argsort(belong, kind="stable")
    found, starts = np.unique(belong[order], return_index=True)
    gathered = np.zeros((len(counts), width), dtype=np.int64)
    gathered[:, found] = np.add.reduceat(counts[:, order], starts, axis=1)
    return gathered


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


def label_column(labels: Any, name: str = "label") -> Any:
    try:
        shape = np.shape(labels)
    except (TypeError, ValueError, RuntimeError):
        # Rows of different lengths, or what NumPy cannot read: said where values are taken in.
        return labels
    if len(shape) != 1:
        raise InvalidValueError(f"{name} has shape {shape}: expected one value per row.")
    return labels


def quality_columns(quality: Any) -> list[Any]:
    """The qualities of each model's answers, or of the slow one's alone."""
    if isinstance(quality, np.ma.MaskedArray):
        quality = quality.filled(np.nan) if quality.dtype.kind == "f" else quality.astype(object)
    table = np.asarray(quality, dtype=object) if isinstance(quality, (list, tuple)) else quality
    table = np.asarray(table.detach() if hasattr(table, "detach") else table)
    if table.ndim not in (1, 2):
        raise InvalidValueError(
            f"quality has shape {table.shape}: expected (n, M), a column for each model."
        )
    columns = [table] if table.ndim == 1 else list(table.T)
    return [_grades(column) for column in columns]


def _grades(column: Any) -> Any:
    try:
        return as_numbers_with_gaps(column, QUALITY)
    except InvalidTypeError:
        kinds = sorted({type(value).__name__ for value in np.asarray(column).tolist()})
        raise InvalidTypeError(
            f"quality holds {', '.join(kinds)}: expected grades as numbers, such as 0.75, or 4 "
            "with quality_scale=(1, 5)."
        ) from None


def _require_one_outcome(given: Mapping[str, Any]) -> None:
    """Raise unless one of labels, qualities and preferences says how good the answers are, or
    predictions do alone.
    """
    ways = [role for role in ("label", QUALITY, "preferred") if role in given]
    if len(ways) > 1:
        raise InvalidTypeError(
            f"{ways[0]} and {ways[1]} both say how good answers are: pass one of them."
        )
    if "prediction" not in given and ways in ([], ["label"]):
        raise InvalidTypeError(
            "prediction is missing: pass the prediction of each model, or quality, how good the "
            "answer of each model is."
        )


def require_graded(models: int, qualities: int, *, preferred: bool) -> None:
    """Raise unless there is a quality for each model; for two models the slow one's is enough."""
    if preferred and models != 2:
        raise InvalidTypeError(
            f"preferred names one of two models, and there are {models}: pass quality, a column "
            "for each model."
        )
    if qualities not in (0, models, 1 if models == 2 else models):
        raise InvalidTypeError(
            f"{qualities} columns of quality do not fit {models} models: expected one for each, "
            "the slow model's last; for two models the slow one's alone will do."
        )


LABEL = RowColumn(
    "label", "The true class; it may be missing in any row, and in all.", "class", needed=False
)
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
            needed=False,
        ),
        LABEL,
        RowColumn(
            QUALITY,
            "How good the answer of each model is, graded from 0 to 1; in place of label.",
            "number or nothing",
            several=True,
            needed=False,
        ),
        RowColumn(
            "preferred",
            "Which of two models answered better: the name of its prediction, or tie.",
            "class",
            needed=False,
        ),
    ),
    outcomes=EXIT_OUTCOMES,
    labelled_by=("label",),
    labels_may_be_missing=True,
    may_be_graded=True,
    joins=True,
    everyone=(ALL_ROWS,),
)
