"""A certificate applied to the rows of a frame or of files: which columns it reads, and what it
adds to each row.

What is added is the certificate's `RowRule`, so nothing here goes by the kind of certificate.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.sources.batches import Batch, Progress
from pacbound.sources.engines import reading_frame
from pacbound.sources.notation import PLAIN, Notation
from pacbound.sources.paths import Paths
from pacbound.tally.columns import as_names, batch_scores
from pacbound.tally.row_rules import EXIT, PREDICTION, RowRule, answers_of


@dataclass(frozen=True)
class AppliedRows:
    """What went out where a certificate was applied to the rows of files.

    Attributes
    ----------
    rows : int
        How many rows.
    columns : tuple of str
        The columns that were added.
    counts : mapping of str to int
        How many rows are "answered", of an abstention, or "flagged", of a recall or false alarms;
        empty for the other kinds.
    uncertified_rows : int
        How many rows are of a group that was not certified.
    uncertified_groups : tuple of str
        These groups.
    others : str
        What became of such rows, in words; empty where there are no groups.

    Examples
    --------
    >>> AppliedRows(3, ("pac_flag",), {"flagged": 1}).counts
    {'flagged': 1}
    """

    rows: int
    columns: tuple[str, ...]
    counts: Mapping[str, int]
    uncertified_rows: int = 0
    uncertified_groups: tuple[str, ...] = ()
    others: str = ""


class _Columns(NamedTuple):
    """The columns of a table that a rule reads."""

    scores: list[str]
    group: str | None
    predictions: list[str] | None


@reading_frame()
def applied(
    rule: RowRule,
    frame: Any,
    recorded: Mapping[str, str],
    given: Mapping[str, str | Sequence[str] | None],
    *,
    scale: float | None,
    strict: bool,
) -> Any:
    """The frame with the columns of a rule added; `recorded` are the columns that the certificate
    was made from, and `given` those that the user names instead.
    """
    # Loaded here, because a certificate needs no narwhals.
    from pacbound.tally.frames.counting import column_names  # noqa: PLC0415
    from pacbound.tally.frames.rule_columns import apply_to_frame  # noqa: PLC0415

    columns = _columns_read(rule, recorded, given, column_names(frame))
    return apply_to_frame(
        frame,
        rule,
        **columns._asdict(),
        scale=Notation.of(scale=scale).scale,
        strict=strict,
    )


def applied_to_files(
    rule: RowRule,
    source: Paths,
    target: str | os.PathLike[str],
    recorded: Mapping[str, str],
    given: Mapping[str, str | Sequence[str] | None],
    *,
    notation: Notation = PLAIN,
    strict: bool = False,
    progress: Progress | None = None,
) -> AppliedRows:
    """Write the rows of `source` to `target` with the columns of a rule added, in order, one batch
    in memory at a time.
    """
    # Loaded here, because a certificate needs no files.
    from pacbound.sources.opening import open_tables  # noqa: PLC0415
    from pacbound.sources.rewriting import rewrite  # noqa: PLC0415

    columns = _columns_read(rule, recorded, given, open_tables(source, notation)[0].columns)
    strange, ones = Counter[str](), 0

    def with_added(batch: Batch) -> tuple[Batch, dict[str, NDArray[Any]]]:
        nonlocal ones
        groups = None
        if columns.group is not None:
            names = as_names(batch.names(columns.group), columns.group, start=batch.start)
            groups = names.astype(np.str_)
            unknown = np.flatnonzero(rule.strange(groups))
            if strict and unknown.size:
                raise InvalidValueError(
                    f"{columns.group}[{batch.start + unknown[0]}] is "
                    f"{str(groups[unknown[0]])!r}, a group that was not certified: nothing is "
                    f"known about it. Without --strict (strict=True) such rows {rule.others}."
                )
            strange.update(groups[unknown].tolist())
        scores = [batch_scores(batch, name, notation.scale) for name in columns.scores]
        added = rule.of_arrays(scores, groups)
        if rule.ones is not None:
            ones += sum(int(values.sum()) for values in added.values())
        if columns.predictions is not None:
            said = [batch.values(name) for name in columns.predictions]
            added[PREDICTION] = answers_of(said, added[EXIT], columns.predictions, batch.start)
        return batch, added

    names_added = (*rule.added, *([] if columns.predictions is None else [PREDICTION]))
    needed = [*columns.scores, *([] if columns.group is None else [columns.group])]
    rows, _ = rewrite(
        source,
        target,
        with_added,
        needed=[*needed, *(columns.predictions or ())],
        added=names_added,
        may_be_empty=True,
        notation=notation,
        progress=progress,
    )
    return AppliedRows(
        rows,
        names_added,
        {} if rule.ones is None else {rule.ones: ones},
        strange.total(),
        tuple(sorted(strange)),
        rule.others,
    )


def _columns_read(
    rule: RowRule,
    recorded: Mapping[str, str],
    given: Mapping[str, str | Sequence[str] | None],
    stored: Sequence[str],
) -> _Columns:
    """The columns that a rule reads, of those that a table has."""
    named = {role: name for role, name in given.items() if name is not None}
    group = {"group": recorded["groups"]} if "groups" in recorded else {}
    columns = {**recorded, **group, **named}
    first = named.get("score", named.get("confidence", recorded.get(rule.role, rule.role)))
    # A single name may have commas in it.
    scores = [first] if rule.scores == 1 and isinstance(first, str) else _names(first)
    if len(scores) != rule.scores:
        raise InvalidTypeError(
            f"The certificate compares {rule.scores} scores, and {len(scores)} columns are named "
            f"({', '.join(scores)}): name one column for each score."
        )
    return _Columns(
        scores, _group_column(rule, columns, named, stored), _said(rule, columns, named, stored)
    )


def _group_column(
    rule: RowRule,
    columns: Mapping[str, str | Sequence[str]],
    named: Mapping[str, str | Sequence[str]],
    stored: Sequence[str],
) -> str | None:
    if rule.groups is None:
        if "group" in named:
            raise InvalidTypeError("The certificate has no groups: leave group out.")
        return None
    if "group" not in columns and "group" not in stored:
        raise InvalidTypeError(
            f"The certificate has {len(rule.groups)} groups: name the column with the group of "
            "each row."
        )
    return str(columns.get("group", "group"))


def _said(
    rule: RowRule,
    columns: Mapping[str, str | Sequence[str]],
    named: Mapping[str, str | Sequence[str]],
    stored: Sequence[str],
) -> list[str] | None:
    if EXIT not in rule.added or "prediction" not in columns:
        return None
    predictions = _names(columns["prediction"])
    # In use the slow model has not run where a fast one answers, so its column may not be there.
    # Where each model had a table of its own, one name was that of all predictions.
    complete = len(predictions) == rule.scores + 1
    if "prediction" not in named and not (complete and set(predictions) <= set(stored)):
        return None
    if not complete:
        raise InvalidTypeError(
            f"{len(predictions)} prediction columns for {rule.scores + 1} models: name that of "
            "each."
        )
    return predictions


def _names(columns: str | Sequence[str]) -> list[str]:
    """Several columns of one role, as they are recorded in one text."""
    if not isinstance(columns, str):
        several = list(columns) if isinstance(columns, Sequence) else [columns]
        if not all(isinstance(name, str) for name in several):
            raise InvalidTypeError(f"{columns!r} is not the name of a column: expected text.")
        return several
    return [name.strip() for name in columns.split(",")]
