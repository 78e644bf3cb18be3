"""Calibration: an interval for the true confidence of every bin, all of them right together (the
paper's Theorem 1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from math import ceil, floor
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from pacbound.claims.assumptions import ON_LEVELS, as_graded, in_plain_words
from pacbound.claims.calibration_certificate import (
    CalibrationBins,
    CalibrationCertificate,
    shares,
    watch_of_bins,
)
from pacbound.claims.claim import (
    Cells,
    Claim,
    Procedure,
    Values,
    certify,
    counts_of,
    interval_work,
    require_tally,
    sealed,
)
from pacbound.claims.remedies import wide_intervals
from pacbound.claims.tables import (
    counted_by_table,
    counts_by_name,
    group_prefix,
)
from pacbound.documents import Json, Reader, printable
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.fields import Field, Fields, Histogram, LevelCounts
from pacbound.figure import Column, Figure, titled
from pacbound.figures.bins import Bins as DrawnBins
from pacbound.figures.bins import intervals_by_bin
from pacbound.forms import DELTA, Ask, AskedForm, Choice, Form, Whole
from pacbound.measure import Measure, Sample
from pacbound.procedures.calibration import (
    Correction,
    Side,
    cell_intervals,
    dense_counts,
    mean_intervals,
    rows_in,
)
from pacbound.says import Says, Sentence, Value, confidence, count, exact, share
from pacbound.tally.grids import (
    DEFAULT_BINS,
    EQUAL_MASS,
    AtomBins,
    Bins,
    bins_for,
    grid_from_dict,
    number_of_bins,
)
from pacbound.tally.questions.correctness import CALIBRATION
from pacbound.tally.questions.question import OVERLAPPING
from pacbound.tally.row_options import RowOptions
from pacbound.tally.row_rules import RowRule, RowSteps
from pacbound.tally.tally import Tally, require_is_tally

# Bins in all tables together, empty ones included: four arrays of them take 256 MB. A file of a few
# kilobytes can name more.
MOST_CELLS = 2**23

GRADED_MEANS = "calibration/graded-bets/1"
# How much longer the interval of a mean takes than that of a rate.
_GRADED_WORK = 300.0

# Bins that a summary has a line for.
MOST_SHOWN = 60

# The columns that applying adds to rows; the estimate is empty (NaN) where no calibration row fell
# into the bin.
APPLIED = ("pac_lower", "pac_upper", "pac_estimate")

_TABLES = {
    "groups": "groups",
    "overlapping-groups": "overlapping groups",
    "per-class": "predicted classes",
    "all-labels": "labels",
}
_BINS = {
    "equal-width": "bins of equal width",
    "edges": "given bins",
    "edges-as-cells": "cells on and between quantiles of the scores",
}
# What one of the tables is.
_TABLE = {
    "groups": "group",
    "overlapping-groups": "group",
    "per-class": "class",
    "all-labels": "label",
}
_BETWEEN = {
    "both": "{{low {place}}} to {{high {place}}}",
    "lower": "at least {{low {place}}}",
    "upper": "at most {{high {place}}}",
}
_ENDS = {"both": "", "lower": " (lower ends only)", "upper": " (upper ends only)"}


class BinsForm(AskedForm):
    """Bins of the confidence: what is asked for are edges, what a document holds is their rule."""

    def check(self, value: Any, name: str) -> Any:
        """Edges as bins; "equal-mass" as it is."""
        if isinstance(value, str) and value != EQUAL_MASS:
            raise InvalidValueError(
                f"{name}={value!r} are not edges: expected numbers from 0 to 1 such as 0,0.5,0.9,"
                f"1, or {EQUAL_MASS!r}."
            )
        return value if isinstance(value, str) else bins_for(n_bins=1, edges=value)

    def parsed(self, text: Any) -> Any:
        """Numbers with commas between them, or "equal-mass"."""
        try:
            return text if text is None else [float(part) for part in str(text).split(",")]
        except ValueError:
            return text

    def read(self, part: Reader, key: str) -> Any:
        """The bins."""
        return grid_from_dict(part.raw(key), part.place(key))

    def write(self, value: Bins) -> Json:
        """The rule and its numbers."""
        return value.to_dict()


class BinCount(Whole):
    """A number of bins."""

    def check(self, value: Any, name: str) -> int:
        """The number as an int."""
        return number_of_bins(value, name)


class Ends(Form):
    """The lower or the upper end of each interval."""

    def read(self, part: Reader, key: str) -> NDArray[np.float64]:
        """Numbers from 0 to 1."""
        return np.array(part.raw(key), dtype=np.float64)


# What a document holds of what was asked for.
_KEPT = ("delta", "correction", "side")
# Fewer rows are never planned for: the bins would be empty.
FEWEST_BINNED = 100


class CalibrationClaim(Claim[CalibrationCertificate]):
    """The true confidence of every bin lies in its interval."""

    kind = "calibration"
    command = "calibrate"
    help = "Certify an interval for the true confidence of every bin."
    question = CALIBRATION
    certificate = CalibrationCertificate
    may_assume = (ON_LEVELS,)
    counts_by = ("n_bins", "edges")
    asks = (
        replace(DELTA, help="The chance that any interval is wrong: 0.01"),
        Ask("n_bins", BinCount(1), f"The number of bins, {DEFAULT_BINS} if left out.", None),
        Ask(
            "edges",
            BinsForm(),
            "Edges fixed beforehand, in place of bins of equal width: 0,0.5,0.9,1. Or equal-mass: "
            "about as many rows in each bin.",
            None,
        ),
        Ask(
            "correction",
            Choice(("sidak", "bonferroni")),
            "How delta is shared: among the bins that hold rows, or among all (the paper's).",
            "sidak",
            shown="How delta is shared among the bins",
        ),
        Ask(
            "side",
            Choice(("both", "lower", "upper")),
            "Certify both ends, or one of them more tightly.",
            "both",
            shown="Ends of the intervals that are certified",
        ),
    )
    procedures: Mapping[str, Procedure] = {
        name: Procedure(
            name,
            (
                "independent-rows",
                "untouched-rows",
                "asked-beforehand",
                "rows-by-bin",
                "every-row-counts",
                "bins-beforehand",
            ),
        )
        for name in ("calibration/clopper-pearson/1", GRADED_MEANS)
    }

    @property
    def measure(self) -> Measure:
        """What a plan improves: the mean width of the intervals."""
        return Measure(
            "mean width",
            "rows",
            larger=False,
            asked=None,
            certify=self._sample,
            least=lambda *_: FEWEST_BINNED,
        )

    def _sample(self, tally: Tally, _: Any, delta: float) -> Sample:
        found = self.certify(tally, {"delta": delta})
        widths = (found.upper - found.lower) * found.trials
        return Sample(True, float(widths.sum() / found.trials.sum()), ())  # noqa: FBT003

    def counting(
        self,
        wishes: Values,
        columns: Mapping[str, Any],  # noqa: ARG002
        data: Any,
        rows: Mapping[str, Any],  # noqa: ARG002
    ) -> dict[str, Any]:
        """The bins that rows are counted in; a tally has its own."""
        n_bins, edges = wishes["n_bins"], wishes["edges"]
        if isinstance(data, Tally):
            _require_same_bins(data, n_bins, edges)
            return {}
        return {"n_bins": n_bins, "edges": edges}

    def fields(self, procedure: Procedure) -> Fields:
        """The fields of a document."""
        graded = procedure.name == GRADED_MEANS
        counts = LevelCounts() if graded else Histogram(CALIBRATION.outcomes)
        return counted_by_table(
            self,
            procedure,
            [ask for ask in self.asks if ask.name in _KEPT],
            Field("counts", counts, counted=True),
            Field("lower", Ends()),
            Field("upper", Ends()),
            beside=[Field("bins", BinsForm(), counted=True)],
        )

    def counted(self, evidence: Tally, wishes: Values) -> dict[str, Any]:
        """The counts of each bin that holds rows, for every group."""
        _require_calibration(evidence)
        plain, graded = self.procedures
        procedure = plain if evidence.graded is None else graded
        asked = {name: wishes[name] for name in _KEPT}
        if evidence.drawn is not None and evidence.drawn.apart:
            # Rows of several bins or tables may be of one cluster, and depend on each other.
            asked["correction"] = "bonferroni"
        counted = self.counted_values(procedure, evidence, asked)
        return {**counted, "bins": evidence.grid, "tables": _tables_of(evidence)}

    def decided(self, values: Values) -> dict[str, Any]:
        """The interval of each bin. Where there is one already, it stays if its tail shows that it
        is right: another SciPy computes other last digits.
        """
        tables, scope = values["tables"], values["scope"]
        trials, successes = dense_counts(tables, values["bins"].n_cells)
        ends = None
        if "lower" in tables[0]:
            ends = np.zeros(trials.shape), np.ones(trials.shape)
            for place, table in enumerate(tables):
                cells = table["counts"]["cells"]
                ends[0][place, cells], ends[1][place, cells] = table["lower"], table["upper"]
        shared: Any = {
            "delta": values["delta"],
            "correction": values["correction"],
            "side": values["side"],
            "overlapping": scope in OVERLAPPING,
        }
        if values.get("graded") is None:
            lower, upper = cell_intervals(trials, successes, **shared, stored=ends)
        else:
            declared = values["graded"].declared
            lower, upper = mean_intervals(tables, trials, declared=declared, **shared)
        ids = self.procedures[values["procedure"]].assumes
        if isinstance(values["bins"], AtomBins):
            # In which bin a row is follows from the scores of all rows.
            ids = tuple("rows-unseen" if name == "rows-by-bin" else name for name in ids)
        return {
            **values,
            "assumes": self.assumed(ids, values["drawn"], scope, values.get("graded")),
            "certified": True,
            "n": _rows_implied(trials, values["n"], scope),
            "tables": [
                {
                    **table,
                    "lower": sealed(lower[place, table["counts"]["cells"]]),
                    "upper": sealed(upper[place, table["counts"]["cells"]]),
                }
                for place, table in enumerate(tables)
            ],
        }

    def says(self, certificate: CalibrationCertificate) -> Says:
        """The certificate in words, with a table of the bins that hold rows."""
        groups, grid = certificate.groups, certificate.grid
        tables = f" for each of {{groups}} {_TABLES[certificate.scope]}" if groups else ""
        every = " of every table" if groups else ""
        graded = certificate.graded
        one = "true confidence" if grid.n_cells > 1 else "share of right predictions"
        what = one if graded is None else "mean quality"
        judged = "" if graded is None else ", {as graded},"
        bins = "bin" if grid.n_cells == 1 else _BINS[grid.to_dict()["rule"]]
        return Says(
            Sentence(
                f"Calibration certificate: {{n}} rows, {{bins}} {bins}{tables}, delta {{delta}}",
                {
                    "n": count(certificate.n),
                    "bins": count(grid.n_cells),
                    "groups": count(len(groups)),
                    "delta": DELTA.said(certificate.delta),
                },
            ),
            Sentence(
                f"Calibration in {{bins}} bins{tables}"
                if grid.n_cells > 1
                else f"Rate of {'right predictions' if graded is None else 'quality'}{tables}",
                {"bins": count(grid.n_cells), "groups": count(len(groups))},
            ),
            _in_plain_words(certificate),
            promise=Sentence(
                f"With probability at least {{confidence}} over the draw of these rows, the {what} "
                f"of every bin{every}{judged} lies in its interval{_ENDS[certificate.side]}.",
                {"confidence": confidence(certificate.delta), "as graded": as_graded(graded)},
            ),
            table=_table_of(certificate),
            notes=tuple(_notes(certificate)),
        )

    def row_rule(self, certificate: CalibrationCertificate) -> RowRule:
        """The interval and the estimate of each row's bin; [0, 1] and none for other groups."""
        estimates = shares(certificate.successes, certificate.trials)
        tables = [
            RowSteps.of_bins(certificate.grid, dict(zip(APPLIED, columns, strict=True)))
            for columns in zip(certificate.lower, certificate.upper, estimates, strict=True)
        ]
        if not certificate.groups:
            return RowRule(1, tables[0])
        unknown = RowSteps((), dict(zip(APPLIED, [(0.0,), (1.0,), (float("nan"),)], strict=True)))
        by_group = dict(zip(certificate.groups, tables, strict=True))
        return RowRule(1, None, by_group, unknown, others="get [0, 1]")

    def figures(self, certificate: CalibrationCertificate) -> Iterable[Figure]:
        """The interval of each bin, for every table."""
        return (_figure(certificate, *table) for table in certificate.tables.items())

    def watch(self, certificate: CalibrationCertificate) -> Any:
        """Each prediction falls into a bin, and is right or wrong there."""
        if certificate.scope in OVERLAPPING:
            return (
                f"its scope is {certificate.scope!r}, so that one row is in several of its tables "
                "at once. Calibrate per class or per group, each row in one, and monitor that"
            )
        return watch_of_bins(certificate)

    def cells(self, certificate: CalibrationCertificate) -> Cells:
        """The rows of each bin, and how many of them were right."""
        begin, end = certificate.grid.bounds
        found: Cells = {}
        for table in certificate.values["tables"]:
            if certificate.graded is not None:
                rows = counts_by_name(table["counts"])
                for place, cell in enumerate(rows.pop("cells").tolist()):
                    bin_ = f"{group_prefix(table)}bin {begin[cell]:g} to {end[cell]:g}"
                    found[bin_] = {name: int(column[place]) for name, column in rows.items()}
                continue
            counts = (table["counts"][name].tolist() for name in ("cells", "wrong", "right"))
            for cell, wrong, right in zip(*counts, strict=True):
                bin_ = f"{group_prefix(table)}bin {begin[cell]:g} to {end[cell]:g}"
                found[bin_] = {"rows": wrong + right, "right": right}
        return found

    def recounting(self, certificate: CalibrationCertificate) -> dict[str, Any]:
        """The bins."""
        if certificate.scope not in ("top", "groups"):
            raise InvalidTypeError(
                f"The tables of this certificate are for {certificate.scope}, which no table of "
                "columns has: fit PACCalibrator on the data again, and compare `counts_digest`."
            )
        return {"edges": certificate.grid}

    def work(self, values: Values) -> float:
        """About how long the intervals take."""
        trials = [rows_in(table["counts"]) for table in values["tables"]]
        slower = 1.0 if values.get("graded") is None else _GRADED_WORK
        return sum(slower * interval_work(rows) for rows in trials)


CLAIM = CalibrationClaim()


def calibrate(  # noqa: PLR0913
    confidence: Any = None,
    correct: Any = None,
    *,
    prediction: Any = None,
    label: Any = None,
    quality: Any = None,
    delta: float,
    n_bins: int | None = None,
    edges: Any = None,
    groups: Any = None,
    correction: Correction = "sidak",
    side: Side = "both",
    data: Any = None,
    **rows: Unpack[RowOptions],
) -> CalibrationCertificate:
    """An interval for the true confidence of every bin, all of them right together with probability
    at least 1 - `delta`.

    The rows must be independent draws from the data the model will meet in use, untouched by
    training, model choice or temperature fitting, and the bins and the groups fixed
    without these rows, their number by a rule that saw nothing of a row but its bin. An interval
    speaks of the average over its bin, not of one input. The failure probability is over the draw
    of these rows, once.

    Parameters
    ----------
    confidence
        The confidence of each prediction, from 0 to 1. With `data`, the name of the column.
    correct
        Whether each prediction was right. Booleans, or numbers that are 0 or 1.
    prediction
        The predicted class of each row; with label, in place of correct. Numbers or names, compared
        by the one rule of equality (see the documentation of classes).
    label
        The true class of each row.
    quality
        How good each answer is, graded from 0 to 1; in place of correct. The claim is about the
        mean quality of each bin. See `quality_scale` and `graded_by` of `RowOptions`.
    delta
        The chance that any interval is wrong: 0.01
    n_bins
        The number of bins, 20 if left out.
    edges
        Edges fixed beforehand, in place of bins of equal width: 0,0.5,0.9,1. Or equal-mass: about
        as many rows in each bin. The edges are then quantiles of these very scores, and each is a
        cell of its own. Edges are never chosen by looking at `correct`: intervals from such edges
        are wrong far more often than `delta`. For quantiles of other scores, none of which is
        counted, pass `equal_mass_edges(other_scores)`.
    groups
        The group of each row, for a table each; or a mapping from names to truth values where
        groups overlap.
    correction
        How delta is shared: among the bins that hold rows, or among all (the paper's). "sidak" or
        "bonferroni"; with clusters and without cluster_bound always among all.
    side
        Certify both ends, or one of them more tightly. "both"; or "lower" or "upper", which leaves
        the other end open.
    data
        A frame (pandas, Polars, PyArrow, DuckDB, PySpark), a path, several paths, or a Tally.
    **rows
        How rows are read and drawn, see `RowOptions`.

    Returns
    -------
    CalibrationCertificate
        The intervals, with the counts that they follow from. It is always certified: where rows say
        little, an interval is wide, and it is [0, 1] where there are none.

    Raises
    ------
    InvalidValueError, InvalidTypeError
        If scores, outcomes or classes cannot be what they should be; the message names the value,
        its row and the remedy.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> confidence = rng.uniform(0.5, 1.0, size=5000)
    >>> correct = rng.random(5000) < confidence - 0.05
    >>> certificate = calibrate(confidence, correct, delta=0.01, n_bins=10)
    >>> certificate.interval([0.55, 0.95]).round(2)
    array([[0.44, 0.53],
           [0.87, 0.93]])

    A frame is counted inside its own engine, and only counts leave it:

    >>> import polars
    >>> frame = polars.LazyFrame({"score": confidence, "right": correct})
    >>> same = calibrate("score", "right", data=frame, delta=0.01, n_bins=10)
    >>> bool((same.bins.lower == certificate.bins.lower).all())
    True
    """
    columns = {
        "confidence": confidence,
        "correct": correct,
        "prediction": prediction,
        "label": label,
        "quality": quality,
        "groups": groups,
    }
    bins = {"n_bins": n_bins, "edges": edges}
    asked = {"delta": delta, **bins, "correction": correction, "side": side}
    return certify(CLAIM, columns, asked, data, rows)


def _require_same_bins(tally: Tally, n_bins: int | None, edges: Any) -> None:
    """Refuse bins that are not those of the tally."""
    if n_bins is not None and n_bins != tally.grid.n_cells:
        raise InvalidValueError(
            f"n_bins={n_bins}, but the tally was counted in {tally.grid.n_cells}: leave it out or "
            "count again."
        )
    if edges is not None and edges != tally.grid:
        raise InvalidValueError(
            "edges differ from those the tally was counted with: leave them out or count again."
        )


def _require_calibration(tally: Tally) -> None:
    """Raise unless the tally has bins of confidence whose counts add up to its rows."""
    require_is_tally(tally)
    columns = "confidence, correct and n_bins"
    require_tally(tally, "calibration", tally.grid, lowest=0, columns=columns)
    size = max(1, len(tally.groups)) * tally.grid.n_cells
    if size > MOST_CELLS:
        raise InvalidValueError(
            f"{size:,} bins in all tables are more than a certificate may have: expected at most "
            f"{MOST_CELLS:,}. Use fewer bins or groups."
        )


def _tables_of(tally: Tally) -> list[dict[str, Any]]:
    """The counts of each group's bins that hold rows."""
    return [
        {"group": group, "counts": {name: sealed(part) for name, part in counts.items()}}
        for group, counts in counts_of(tally)
    ]


def _rows_implied(trials: NDArray[np.int64], n: int, scope: str) -> int:
    """The rows that the tables hold. Groups that overlap hold some rows each, and some rows may be
    in none, so that only the least number follows from them.
    """
    held = trials.sum(axis=1)
    if scope not in OVERLAPPING:
        return int(held.sum())
    most = int(held.max())
    if scope == "overlapping-groups":
        return max(n, most)
    # Every row is in the table of every label, so each holds n; a label that no model gives a
    # probability to has none, and its table is empty.
    other = [int(rows) for rows in held if rows not in (0, most)]
    return most if most != n or not other else other[0]


def _in_few_digits(edge: float) -> str:
    """An edge as people say it: what a table has to the last digit."""
    return exact(float(f"{edge:.4g}"))


def _names(
    grid: Bins, cells: Iterable[int], write: Callable[[float], str] = exact
) -> dict[int, str]:
    """Bins as people write them: their ends, and which of these belong to them."""
    (begin, end), last = grid.bounds, grid.n_cells - 1

    def name(cell: int) -> str:
        first, second = write(float(begin[cell])), write(float(end[cell]))
        if first == second:
            return first
        closed = cell == last or not isinstance(grid, AtomBins)
        return f"{'(' if cell else '['}{first}, {second}{']' if closed else ')'}"

    return {cell: name(cell) for cell in cells}


def _in_plain_words(certificate: CalibrationCertificate) -> Sentence:
    """The interval of the bin with most rows; where groups have a single bin, of the largest ones.
    All intervals hold at once, so that any may be picked.
    """
    graded, groups = certificate.graded, certificate.groups
    alone = certificate.grid.n_cells == 1
    largest = np.argsort(-certificate.trials, axis=None, kind="stable")
    shown = [divmod(int(place), certificate.grid.n_cells) for place in largest[: 3 if alone else 1]]
    names = _names(certificate.grid, {cell for _, cell in shown}, _in_few_digits)
    clauses: list[str] = []
    filled: dict[str, Value] = {"as graded": as_graded(graded)}
    for place, (table, cell) in enumerate(shown):
        ends = float(certificate.lower[table, cell]), float(certificate.upper[table, cell])
        rows = "" if alone else f" with a confidence in {{bin {place}}}"
        rows += f" of {_TABLE[certificate.scope]} {{group {place}}}" if groups else ""
        filled |= {
            f"bin {place}": names[cell],
            f"group {place}": printable(groups[table]) if groups else "",
        }
        between = _BETWEEN[certificate.side].format(place=place)
        if graded is not None:
            filled |= {
                f"low {place}": share(ends[0], "down"),
                f"high {place}": share(ends[1], "up"),
            }
            between = _BETWEEN[certificate.side].format(place=place)
            clauses.append(
                f"the mean quality of predictions{rows}, {{as graded}}, is {between} of the scale"
            )
            continue
        # What is nearly always or nearly never so is counted in thousands.
        of = 1_000 if ends[0] >= 0.99 or ends[1] <= 0.01 else 100
        filled |= {
            f"low {place}": count(floor(Fraction(ends[0]) * of)),
            f"high {place}": count(ceil(Fraction(ends[1]) * of)),
            f"of {place}": count(of),
        }
        clauses.append(f"{between} of {{of {place}}} predictions{rows} are right")
    return in_plain_words(certificate, "; ".join(clauses), filled)


def _table_of(certificate: CalibrationCertificate) -> tuple[tuple[str, ...], ...]:
    """The first bins that hold rows, under their names."""
    groups, lines = certificate.groups, []
    shown = np.argwhere(certificate.trials > 0)[:MOST_SHOWN].tolist()
    names = _names(certificate.grid, {cell for _, cell in shown})
    for table, cell in shown:
        trials, right = certificate.trials[table, cell], certificate.successes[table, cell]
        low = Column("", certificate.lower[table], "at least").cell(cell)
        high = Column("", certificate.upper[table], "at most").cell(cell)
        line = (
            f"{trials:,}",
            f"{right:,.6g}" if certificate.graded else f"{right:,}",
            f"{right / trials:.4f}",
            f"[{low}, {high}]",
        )
        named = (printable(groups[table]),) if groups else ()
        lines.append((*named, names[cell], *line))
    graded = certificate.graded is not None
    head = ("bin", "rows", "quality" if graded else "right", "estimate", "interval")
    return (("group", *head) if groups else head, *lines)


def _notes(certificate: CalibrationCertificate) -> Iterable[Sentence]:
    seen = certificate.trials > 0
    held, size = int(seen.sum()), int(seen.size)
    if held > MOST_SHOWN:
        more = {"more": count(held - MOST_SHOWN)}
        yield Sentence("({more} more bins hold rows; .tables has them all.)", more)
    if held < size:
        yield Sentence(
            "Bins without rows: {empty} of {bins}. Nothing is known there, and the interval is "
            "[0, 1].",
            {"empty": count(size - held), "bins": count(size)},
        )
    width = _mean_width(certificate)
    yield Sentence("Mean width of the interval over the rows: {width}.", {"width": f"{width:.4f}"})
    if certificate.side == "both":
        clusters = certificate.draw is not None and certificate.draw.by == "clusters"
        unit = "clusters" if clusters else "rows"
        yield from wide_intervals(width, certificate.n, held, unit)
    yield Sentence(
        "An interval is about the average over its bin, not about one input. delta is the chance "
        "that any interval is wrong, not a rate of wrong predictions."
    )


def _mean_width(certificate: CalibrationCertificate) -> float:
    """The mean width of the interval over the rows."""
    seen = certificate.trials > 0
    if not seen.any():
        return 1.0
    width = (certificate.upper - certificate.lower)[seen]
    return float(np.average(width, weights=certificate.trials[seen]))


def _figure(
    certificate: CalibrationCertificate, group: str | None, bins: CalibrationBins
) -> Figure:
    held = _names(certificate.grid, np.flatnonzero(bins.trials).tolist())
    names = [held.get(cell, "") for cell in range(len(bins))]
    columns = (bins.begin, bins.end, bins.trials, bins.successes, bins.lower, bins.upper)
    of_label = certificate.scope == "all-labels"
    one = {"per-class": "predicted class", "all-labels": "label"}.get(certificate.scope, "group")
    tables = len(certificate.groups)
    every = f" of all {tables} {_TABLES[certificate.scope]}" if tables else ""
    ends = {"both": "intervals", "lower": "lower ends", "upper": "upper ends"}[certificate.side]
    return intervals_by_bin(
        DrawnBins(*columns, names),
        title=titled("Reliability", None if group is None else f"{one} {group}"),
        caption=f"{int(bins.trials.sum()):,} rows in {np.count_nonzero(bins.trials)} of "
        f"{len(bins)} bins. All {ends}{every} hold together with probability at least 1 - delta; "
        "the shares that were seen have no guarantee.",
        across=f"Probability of label {group} (0 to 1)" if of_label else "Confidence (0 to 1)",
        up="Mean quality"
        if certificate.graded
        else f"Label {group} (share of rows)"
        if of_label
        else "Accuracy (share right)",
        side=certificate.side,
    )
