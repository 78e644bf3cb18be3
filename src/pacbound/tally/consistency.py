"""Reading a tally from its document, and refusing one that no rows could have given, whoever
computed the digest.

A digest detects change but signs nothing. So a document is read only if it is laid out as counting
lays a tally out: integers that are integers, the outcomes of its kind, groups and cells once each
and in order, and counts that add up to the rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain

import numpy as np

from pacbound import documents
from pacbound.documents import Json
from pacbound.errors import CertificateError, InvalidValueError
from pacbound.stats.arguments import LARGEST_COUNT
from pacbound.tally.arrays import CORRECT, SAFE
from pacbound.tally.exits import exit_layout
from pacbound.tally.grids import DyadicGrid, grid_from_dict
from pacbound.tally.tally import FORMAT, KINDS, SCOPES, Integers, Kind, Scope, Tally, in_order

_SCOPES: Mapping[Kind, tuple[Scope, ...]] = {
    "calibration": SCOPES,
    "cascade": ("top",),
    "shield": ("top",),
    "abstention": ("top", "groups"),
}


def tally_of_document(document: Mapping[str, Json]) -> Tally:
    """The tally that `Tally.to_dict` wrote, or a `CertificateError` that says what is wrong with
    it.
    """
    body = {key: value for key, value in document.items() if key != "digest"}
    if body.get("format") != FORMAT:
        raise CertificateError(
            f"This is not a pacbound tally: its format is {documents.shown(body.get('format'))}."
        )
    if body.get("schema") != 1:
        raise CertificateError(
            f"This tally has schema {documents.shown(body.get('schema'))}: this version reads 1. "
            "Upgrade pacbound."
        )
    if document.get("digest") != documents.digest(body):
        raise CertificateError(
            "This tally was changed after it was written: its digest does not match. Count the "
            "data again."
        )
    try:
        tally = _read(body)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise CertificateError(
            f"This tally cannot be read: {error!r}. Count the data again."
        ) from None
    _check_layout(tally)
    _check_cells(tally)
    _check_counts(tally)
    return tally


def _read(body: Mapping[str, Json]) -> Tally:
    if type(body["rows"]) is not int or type(body["width"]) is not int:
        raise TypeError("rows and width are not both integers")
    return Tally(
        kind=body["kind"],
        grid=grid_from_dict(body["grid"]),
        outcomes=_names(body["outcomes"]),
        rows=body["rows"],
        cells=_integers(body["cells"], body["width"]),
        counts=_integers(body["counts"], len(body["outcomes"])),
        scope=body["scope"],
        groups=_names(body["groups"]),
        sources=frozenset(_names(body["sources"])),
    )


def _names(values: Json) -> tuple[str, ...]:
    if type(values) is not list or not all(type(value) is str for value in values):
        raise TypeError(f"{documents.shown(values)} is not a list of names")
    return tuple(values)


def _integers(rows: Json, width: int) -> Integers:
    """Rows of `width` integers each: NumPy would cut fractions off, and take true for 1."""
    if type(rows) is not list or not all(type(row) is list and len(row) == width for row in rows):
        raise TypeError(f"cells and counts are not all lists, of {width} here")
    if not set(map(type, chain.from_iterable(rows))) <= {int}:
        raise TypeError("cells and counts are not all integers")
    return np.array(rows, dtype=np.int64).reshape(len(rows), width)


def _check_layout(tally: Tally) -> None:
    """Refuse a layout that no use has."""
    if tally.kind not in KINDS or tally.scope not in _SCOPES[tally.kind]:
        raise CertificateError(
            f"This tally is for {documents.shown(tally.kind)} with scope "
            f"{documents.shown(tally.scope)}, which no use has. Count the data again."
        )
    scores = tally.cells.shape[1] - (tally.scope != "top")
    if scores < 1 or (scores > 1 and tally.kind != "cascade"):
        raise CertificateError(
            f"This tally has cells of {scores} scores, which no {tally.kind} has. Count the data "
            "again."
        )
    if isinstance(tally.grid, DyadicGrid) != (tally.kind != "calibration"):
        raise CertificateError(
            f"This tally has a grid that no {tally.kind} is counted on. Count the data again."
        )
    if tally.outcomes != _outcomes(tally.kind, scores):
        raise CertificateError(
            f"This tally has other outcomes than those of a {tally.kind}. Count the data again."
        )
    if tally.groups != in_order(set(tally.groups)) or (tally.groups and tally.scope == "top"):
        raise CertificateError(
            "This tally has groups where none belong, or not each once and in order. Count the "
            "data again."
        )
    if tally.scope in ("per-class", "all-labels") and tally.groups != tuple(
        map(str, range(len(tally.groups)))
    ):
        raise CertificateError(
            "This tally has classes that are not numbered 0, 1, … Count the data again."
        )


def _outcomes(kind: Kind, scores: int) -> tuple[str, ...]:
    if kind == "cascade":
        try:
            return exit_layout(scores)[1]
        except InvalidValueError as error:
            raise CertificateError(
                f"This tally is of no cascade: {error} Count the data again."
            ) from None
    return SAFE if kind == "shield" else CORRECT


def _check_cells(tally: Tally) -> None:
    """Refuse cells that the grid or the groups have not, and cells that are there twice or out of
    order.
    """
    if len(tally.cells) != len(tally.counts):
        raise CertificateError("This tally has not as many cells as counts. Count the data again.")
    grouped = tally.scope != "top"
    places, scores = tally.cells[:, :grouped], tally.cells[:, grouped:]
    # Only a rollout can be lost at its start, which is the cell -1.
    if ((scores < (-1 if tally.kind == "shield" else 0)) | (scores >= tally.grid.n_cells)).any():
        raise CertificateError("This tally has cells that its grid has not. Count the data again.")
    if ((places < 0) | (places >= len(tally.groups))).any():
        raise CertificateError(
            "This tally has more groups than names for them. Count the data again."
        )
    steps = np.diff(tally.cells, axis=0)
    if (np.take_along_axis(steps, (steps != 0).argmax(axis=1)[:, None], axis=1) <= 0).any():
        raise CertificateError(
            "This tally has cells that are not each there once and in order. Count the data again."
        )


def _check_counts(tally: Tally) -> None:
    """Refuse counts that the rows do not add up to."""
    totals = [0] * (1 if tally.scope in ("top", "groups", "per-class") else len(tally.groups))
    places = tally.cells[:, 0].tolist() if len(totals) != 1 else [0] * len(tally.cells)
    for place, counts in zip(places, tally.counts.tolist(), strict=True):
        # Integers of Python, since those of NumPy start again from below when they are too many.
        totals[place] += sum(counts)
    every_row = tally.scope != "overlapping-groups"
    enough = all(
        total == tally.rows if every_row else total <= tally.rows for total in totals or [0]
    )
    if not (enough and 0 <= tally.rows <= LARGEST_COUNT) or (tally.counts < 0).any():
        raise CertificateError(
            f"This tally is not one of {tally.rows} rows: its counts add up to {sum(totals)}. "
            "Count the data again."
        )
    lost = tally.cells[:, -1] < 0
    if tally.counts[lost, 0].any():
        raise CertificateError(
            "This tally has safe rollouts that were lost at their start. Count the data again."
        )
