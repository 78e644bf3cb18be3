"""Reading a tally from its document, and refusing one that no rows could have given.

A digest detects change but signs nothing. So a document is read only if it is laid out as counting
lays a tally out: the grid and the outcomes of its question, integers that are integers, groups and
cells once each and in order, and counts that add up to the rows.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from pacbound import documents
from pacbound.documents import Json
from pacbound.errors import CertificateError
from pacbound.stats.arguments import LARGEST_COUNT
from pacbound.tally.columns import Integers
from pacbound.tally.draws import Drawn, Numbers, drawn_from, unit_of, unit_to_dict
from pacbound.tally.grades import graded_from
from pacbound.tally.grids import Bins, DyadicGrid, grid_from_dict
from pacbound.tally.keyed_numbers import seed_to_json
from pacbound.tally.label_matches import LabelMatches
from pacbound.tally.questions import QUESTIONS
from pacbound.tally.questions.cascade import ALL_ROWS
from pacbound.tally.questions.question import Layout, in_order

FORMAT = "pacbound-tally"
# Joint tallies of several exits have up to a cell for each row, so they may be larger than
# certificates.
LARGEST_FILE = 2**30


def is_tally_file(path: str | os.PathLike[str]) -> bool:
    """Whether a file says that it is a tally; False if it cannot be read."""
    named, part = f'"{FORMAT}"'.encode(), 2**20
    try:
        with Path(path).open("rb") as file:
            data = file.read(part)
            # Keys are sorted: counts stand first, and there may be many.
            while named not in data and _BEGINNING.match(data):
                more = file.read(part)
                if not more:
                    return False
                data = data[:64] + data[-len(named) :] + more
            return named in data
    except (OSError, ValueError):
        return False


_BEGINNING = re.compile(rb'\s*\{\s*"cells"\s*:')
_STAYED = re.compile("sha256:[0-9a-f]{64}")


def fields_of(document: Mapping[str, Json]) -> dict[str, Any]:
    """The fields of the tally that `Tally.to_dict` wrote, or a `CertificateError`."""
    if not isinstance(document, Mapping):
        raise CertificateError(
            f"This is not a pacbound tally, but a {type(document).__name__}: pass what to_dict "
            "gave."
        )
    body = {key: value for key, value in document.items() if key != "digest"}
    if body.get("format") != FORMAT:
        raise CertificateError(
            f"This is not a pacbound tally: its format is {documents.shown(body.get('format'))}."
        )
    # A tally of rows that were drawn or graded says so by its schema, since a reader that does not
    # know of draws would certify them as rows of another law.
    schema = 2 if "drawn" in body or "graded" in body else 1
    if type(body.get("schema")) is not int or body["schema"] != schema:
        raise CertificateError(
            f"This tally has schema {documents.shown(body.get('schema'))}: this version reads 1, "
            "and 2 for rows that were drawn or graded. Upgrade pacbound."
        )
    try:
        matches = document.get("digest") == documents.digest(body)
    except ValueError as error:
        raise CertificateError(
            f"This tally cannot be read: {error}. Count the data again."
        ) from None
    if not matches:
        raise CertificateError(
            "This tally was changed after it was written: its digest does not match. Count the "
            "data again."
        )
    try:
        fields = _read(body)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise CertificateError(
            f"This tally cannot be read: {error!r}. Count the data again."
        ) from None
    _check_layout(fields)
    _check_cells(fields)
    _check_counts(fields)
    if not fields["sources"] and fields["rows"]:
        # Whatever it was counted from: the same document is the same rows.
        fields["sources"] = frozenset([f"tally:{document['digest']}"])
    return fields


def _read(body: Mapping[str, Json]) -> dict[str, Any]:
    if type(body["rows"]) is not int or type(body["width"]) is not int:
        raise TypeError("rows and width are not both integers")
    grid: Bins | DyadicGrid = grid_from_dict(body["grid"])
    return {
        "kind": body["kind"],
        "grid": grid,
        "outcomes": _names(body["outcomes"]),
        "rows": body["rows"],
        "cells": _integers(body["cells"], body["width"]),
        "counts": _integers(body["counts"], len(body["outcomes"])),
        "scope": body["scope"],
        "groups": _names(body["groups"]),
        "sources": frozenset(_names(body["sources"])),
        "drawn": _read_drawn(body["drawn"], body["rows"]) if "drawn" in body else None,
        "matches": _read_matches(body) if "label_matches" in body else None,
        "ids": _read_ids(body) if "row_ids" in body else None,
        "graded": graded_from(documents.Reader(body["graded"], "graded"))
        if "graded" in body
        else None,
        "scale": _read_scale(body) if "scale" in body else None,
    }


def _read_scale(body: Mapping[str, Json]) -> float:
    scale = documents.Reader(body, "tally").number("scale")
    if type(body["scale"]) is not float or not 0 < scale < float("inf"):
        raise ValueError(f"a score of 1 cannot be written as {documents.shown(body['scale'])}")
    return scale


def ids_to_text(ids: Numbers | str) -> str:
    """Hashes of row ids, or the digest of more than leave an engine, as a document holds them."""
    return ids if isinstance(ids, str) else names_to_text(ids)


def _read_ids(body: Mapping[str, Json]) -> Numbers | str:
    text = documents.Reader(body, "tally").text("row_ids")
    if _STAYED.fullmatch(text):
        return text
    ids = names_from_text(text)
    # Of a sum some parts may have none.
    if len(ids) > body["rows"]:
        raise ValueError(f"{len(ids)} row ids for {body['rows']} rows")
    return ids


def drawn_to_dict(drawn: Drawn) -> dict[str, Json]:
    """What a tally's document says of rows that were drawn; names are hexadecimal, 16 digits
    each.
    """
    return {
        "by": drawn.by,
        "rows": drawn.rows,
        "units": drawn.units,
        "seed": seed_to_json(drawn.seed),
        "bound": drawn.bound,
        "names": names_to_text(drawn.names),
        **unit_to_dict(drawn),
        **({"among": dict(drawn.among)} if drawn.among else {}),
        **({"row_ids": names_to_text(drawn.row_ids)} if drawn.row_ids.size else {}),
        **({"stayed": dict(drawn.stayed)} if drawn.stayed else {}),
    }


def names_to_text(names: Numbers) -> str:
    """Hashes as a document holds them: hexadecimal, 16 digits each."""
    return names.astype(">u8").tobytes().hex()


def names_from_text(text: str) -> Numbers:
    """Hashes that a document holds, in order."""
    names = np.frombuffer(bytes.fromhex(text), dtype=">u8").astype(np.uint64)
    if (names[1:] < names[:-1]).any():
        raise ValueError("names are not in order")
    return names


def _read_drawn(value: Json, kept: int) -> Drawn:
    drawn = drawn_from(documents.Reader(value, "drawn"), units="units")
    part = documents.Reader(value, "drawn")
    names = names_from_text(part.text("names"))
    row_ids = names_from_text(part.text("row_ids") if part.has("row_ids") else "")
    digests = part.mapping("stayed") if part.has("stayed") else None
    stayed = () if digests is None else tuple((n, digests.text(n)) for n in digests.names())
    by_name = drawn.by == "clusters" and "cluster" not in dict(stayed)
    numbers = (drawn.units,) if by_name else (0, drawn.units)
    of_rows = (0, drawn.rows) if drawn.by == "clusters" else (0,)
    fits = drawn.fits(kept) and len(names) in numbers and len(row_ids) in of_rows
    if not fits:
        raise ValueError(f"{kept} rows cannot have been drawn as it says")
    return replace(drawn, names=names, row_ids=row_ids, stayed=stayed)


def _read_matches(body: Mapping[str, Json]) -> LabelMatches:
    if not QUESTIONS[str(body["kind"])].compares_models:
        raise ValueError("label_matches are those of several models")
    return LabelMatches.from_dict(body["label_matches"])


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


def _require(holds: Any, wrong: str) -> None:
    if not holds:
        raise CertificateError(f"This tally {wrong}. Count the data again.")


def _check_layout(fields: Mapping[str, Any]) -> None:
    """Refuse a layout that no question has."""
    kind, scope, groups = fields["kind"], fields["scope"], fields["groups"]
    known = isinstance(kind, str) and kind in QUESTIONS and isinstance(scope, str)
    said = f"is for {documents.shown(kind)} with scope {documents.shown(scope)}"
    _require(known, f"{said}, which is not a question")
    layout = Layout(fields["grid"], scope, fields["cells"].shape[1], fields["outcomes"])
    question = QUESTIONS[kind]
    graded = fields["graded"] is not None
    _require(not graded or question.may_be_graded, "has grades that no question has")
    wrong = question.counting_grades(fields["graded"]).check_layout(layout)
    _require(wrong is None, f"has {wrong}, which no {kind} has")
    in_place = groups == in_order(set(groups)) and not (groups and scope == "top")
    _require(in_place, "has groups where none belong, twice, or out of order")
    numbered = groups == tuple(map(str, range(len(groups))))
    by_class = scope in ("per-class", "all-labels")
    _require(numbered or not by_class, "has classes that are not numbered 0, 1, …")


def _check_cells(fields: Mapping[str, Any]) -> None:
    """Refuse cells outside the grid, twice, or out of order."""
    cells, grouped = fields["cells"], fields["scope"] != "top"
    _require(len(cells) == len(fields["counts"]), "has more or fewer cells than counts")
    places, scores = cells[:, :grouped], cells[:, grouped:]
    least, most = QUESTIONS[fields["kind"]].lowest_cell, fields["grid"].n_cells
    _require(((scores >= least) & (scores < most)).all(), "has cells outside its grid")
    named = (places >= 0) & (places < len(fields["groups"]))
    _require(named.all(), "has more groups than names for them")
    steps = np.diff(cells, axis=0)
    first = (steps != 0).argmax(axis=1)[:, None]
    rising = np.take_along_axis(steps, first, axis=1) > 0
    _require(rising.all(), "has cells twice, or out of order")


def _check_counts(fields: Mapping[str, Any]) -> None:
    """Refuse counts that the rows do not add up to."""
    cells, counts, rows, scope = (fields[key] for key in ("cells", "counts", "rows", "scope"))
    known = QUESTIONS[fields["kind"]].of_a_row_among(fields["outcomes"])
    of_rows = [name in known for name in fields["outcomes"]]
    totals = [0] * (1 if scope in ("top", "groups", "per-class") else len(fields["groups"]))
    places = cells[:, 0].tolist() if len(totals) != 1 else [0] * len(cells)
    for place, seen in zip(places, counts[:, of_rows].tolist(), strict=True):
        # Integers of Python, since those of NumPy start again from below when they are too many.
        totals[place] += sum(seen)
    every_row = scope != "overlapping-groups"
    enough = all(total == rows if every_row else total <= rows for total in totals or [0])
    legal = enough and 0 <= rows <= LARGEST_COUNT and (counts >= 0).all()
    _require(legal, f"is not one of {rows} rows: its counts add up to {sum(totals)}")
    if QUESTIONS[fields["kind"]].everyone and not every_row:
        _check_members(fields)
    labelled = 0 if fields["matches"] is None else fields["matches"].labelled
    _require(labelled <= rows, f"has label_matches of {labelled} labels for {rows} rows")
    drawn = fields["drawn"]
    if drawn is not None and drawn.by == "clusters":
        known_unit = drawn.each == unit_of(scope, fields["grid"], drawn.bound)
        _require(known_unit, f"has rows drawn from each {drawn.each}, which no {scope} has")
    lost_is = QUESTIONS[fields["kind"]].lost_is
    others = [name != lost_is for name in fields["outcomes"]]
    saved = lost_is is not None and counts[cells[:, -1] < 0][:, others].any()
    _require(not saved, "has safe rollouts that were lost at their start")


def _check_members(fields: Mapping[str, Any]) -> None:
    """Refuse groups that overlap, of which none holds all rows, or one holds others."""
    groups, cells, counts = (fields[key] for key in ("groups", "cells", "counts"))
    rows, of_all = fields["rows"], dict[tuple[int, ...], Integers]()
    if ALL_ROWS in groups:
        inside = cells[:, 0] == groups.index(ALL_ROWS)
        keys = map(tuple, cells[inside, 1:].tolist())
        of_all = dict(zip(keys, counts[inside], strict=True))
    whole = sum(int(seen.sum()) for seen in of_all.values()) == rows and all(
        cell in of_all and (seen <= of_all[cell]).all()
        for cell, seen in zip(map(tuple, cells[:, 1:].tolist()), counts, strict=True)
    )
    _require(whole, f"has groups that overlap, and not each is a part of {ALL_ROWS!r}, all {rows}")
