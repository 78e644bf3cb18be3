"""Which rows of a pool to label, so that every bin of a calibration is narrow.

Rows fall into bins as unevenly as scores do: most are in the topmost bin, and the bins below get
too few labels to say anything. How many labels each bin gets is therefore fixed here, from the
scores alone, and which rows of a bin they go to is left to a key.

*Why `calibrate` holds on them.* Pool rows are independent draws, so given which bin each row is in,
the labels within bin k are independent, and right with the bin's true confidence. How many rows of
the bin are chosen depends on the bins alone, and which ones on the key alone, so this stays true of
the chosen ones: the successes in bin k are binomial, independently over bins. The intervals need
nothing else. Averages over the rows are another matter: they weigh bins by the labels bought.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacbound.errors import InvalidValueError
from pacbound.sources.batches import Batch, Progress, chosen_rows, in_order, located, part_of
from pacbound.sources.notation import PLAIN, Notation
from pacbound.sources.opening import open_tables
from pacbound.sources.paths import Paths
from pacbound.sources.rewriting import rewrite
from pacbound.stats.arguments import whole_number
from pacbound.stats.planning import largest_passing
from pacbound.tally.coins import keyed_numbers
from pacbound.tally.columns import (
    Rows,
    Slot,
    as_names,
    as_scores,
    same_length,
    same_rows,
    scaled,
    wanted,
)
from pacbound.tally.grids import DEFAULT_BINS, AtomBins, Bins, bins_for
from pacbound.tally.returned_labels import ROW

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Stratified:
    """What was chosen from a file: per bin, of how many rows in the pool."""

    bins: Bins
    pool: Integers
    chosen: Integers


def stratify(
    confidence: Any,
    *,
    labels: int,
    n_bins: int = DEFAULT_BINS,
    edges: Any = None,
    row_ids: Any = None,
    seed: int = 0,
) -> Integers:
    """The rows of an unlabelled pool to label, so that every bin of a calibration is narrow.

    Each bin gets the same number of labels, or all its rows if they are fewer. `calibrate` on the
    chosen rows, with the same bins and `strata`, keeps its guarantee: the pool must be independent
    draws from the data the model will meet in use. Averages over the chosen rows, such as an
    expected calibration error, are those of the labels bought and not of use.

    Parameters
    ----------
    confidence
        One score in [0, 1] for each row of the pool.
    labels
        How many rows to label.
    n_bins, edges
        The bins, as in `calibrate`; edges must come from other data than the pool.
    row_ids
        A name for each row, none twice: the same rows are then chosen in whatever order they come.
        Rows go by their place if it is left out.
    seed
        The key of the choice. To try several until the labels please voids the guarantee.

    Returns
    -------
    ndarray of int64
        The numbers of the rows to label, rising: `labels` of them, or all if there are fewer.

    Raises
    ------
    InvalidValueError, InvalidTypeError
        If a score is not one, an id is there twice, or `labels` is not a positive whole number.

    Examples
    --------
    Nine in ten of these rows are sure; three bins of ten hold the others:

    >>> import numpy as np
    >>> from pacbound import calibrate
    >>> confidence = np.array([0.95] * 900 + [0.85] * 60 + [0.75] * 30 + [0.65] * 10)
    >>> rows = stratify(confidence, labels=100, n_bins=10)
    >>> {score: int((confidence[rows] == score).sum()) for score in (0.95, 0.85, 0.75, 0.65)}
    {0.95: 30, 0.85: 30, 0.75: 30, 0.65: 10}
    >>> correct = np.ones(len(rows), dtype=bool)  # bought now
    >>> calibrate(confidence[rows], correct, delta=0.05, n_bins=10, strata=10).draw.by
    'strata'
    """
    grid = _bins(n_bins, edges)
    scores = as_scores(confidence, "confidence")
    names = None
    if row_ids is not None:
        same_rows(confidence=confidence, row_ids=row_ids)
        column = as_names(row_ids, "row_ids")
        same_length(confidence=scores, row_ids=column)
        names = column.astype(str).tolist()
    rows, _ = _chosen(grid.cells(scores), names, grid.n_cells, labels, seed)
    return rows


def stratify_file(  # noqa: PLR0913
    source: Paths,
    target: str | os.PathLike[str],
    *,
    confidence: str,
    labels: int,
    n_bins: int = DEFAULT_BINS,
    edges: Any = None,
    row_ids: str | None = None,
    seed: int = 0,
    notation: Notation = PLAIN,
    progress: Progress | None = None,
) -> Stratified:
    """Write the rows of `source` to label to `target`, all columns of them, and the number of each
    row; rows are chosen as `stratify` does.
    """
    grid = _bins(n_bins, edges)
    cells, names = _read(source, confidence, row_ids, grid, notation, part_of(progress, 0.0, 0.5))
    rows, taken = _chosen(cells, names, grid.n_cells, labels, seed)
    done = 0

    def only_chosen(batch: Batch) -> tuple[Batch, dict[str, Integers]]:
        nonlocal done
        chosen = chosen_rows(rows, done, batch.rows)
        numbers = done + np.flatnonzero(chosen)
        done += batch.rows
        return batch.where(chosen), {ROW: numbers}

    needed = [confidence, *([] if row_ids is None else [row_ids])]
    second = part_of(progress, 0.5, 0.5)
    rewrite(
        source,
        target,
        only_chosen,
        needed=needed,
        added=[ROW],
        notation=notation,
        progress=second,
    )
    return Stratified(grid, np.bincount(cells, minlength=grid.n_cells), taken)


def _bins(n_bins: int, edges: Any) -> Bins:
    grid = bins_for(n_bins=n_bins, edges=edges)
    if isinstance(grid, AtomBins):
        raise InvalidValueError("edges with cells of their own are not strata: pass plain edges.")
    return grid


def _read(
    source: Paths,
    confidence: str,
    row_ids: str | None,
    grid: Bins,
    notation: Notation,
    progress: Progress | None,
) -> tuple[Integers, list[str] | None]:
    slots = scaled({"confidence": Slot("number", confidence)}, notation.scale)
    slots |= {} if row_ids is None else {"row_ids": Slot("name", row_ids)}
    cells, names = [np.zeros(0, dtype=np.int64)], list[str]()
    for path, batch in in_order(open_tables(source, notation), wanted(slots), progress):
        with located(path):
            rows = Rows.of_batch(slots, batch)
            cells.append(grid.cells(rows.scores("confidence")))
        if row_ids is not None:
            names += rows.columns["row_ids"].astype(str).tolist()
    return np.concatenate(cells), None if row_ids is None else names


def _chosen(
    cells: Integers, names: Sequence[str] | None, n_cells: int, labels: int, seed: int
) -> tuple[Integers, Integers]:
    """The chosen rows, and how many there are in each bin."""
    if names is not None and len(set(names)) < len(names):
        raise InvalidValueError(
            f"row_ids names {len(names) - len(set(names))} rows twice: each row needs an id of its "
            "own."
        )
    ids = map(str, range(len(cells))) if names is None else names
    keys = keyed_numbers(whole_number(seed, "seed"), "stratum", ids)[:, 0]
    held = np.bincount(cells, minlength=n_cells)
    taken = _shares(held, whole_number(labels, "labels", least=1))
    # Within a bin by the key, so that the first rows of each bin are those with the least keys.
    order = np.lexsort((keys, cells))
    place = np.arange(len(cells)) - np.repeat(np.cumsum(held) - held, held)
    return np.sort(order[place < np.repeat(taken, held)]), taken


def _shares(held: Integers, labels: int) -> Integers:
    """How many rows each bin gives: one number for all, or all its rows; what is left over goes to
    the first bins that have more.
    """
    most = int(held.max(initial=0))
    least = largest_passing(lambda each: int(np.minimum(held, each).sum()) <= labels, most)
    taken = np.minimum(held, least)
    more = np.flatnonzero(held > least)[: labels - int(taken.sum())]
    taken[more] += 1
    return taken
