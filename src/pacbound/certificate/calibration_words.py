"""A calibration certificate in words: for the terminal, and as a table for notebooks.

Bounds are printed in four digits and rounded outwards, so that what people read is never tighter
than what is certified.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

import numpy as np

from pacbound.certificate.document import exact, likelihood
from pacbound.documents import printable
from pacbound.tally.questions import Scope

if TYPE_CHECKING:
    from pacbound.certificate.calibration import CalibrationCertificate

_MOST_SHOWN = 60
_TABLES: dict[Scope, str] = {
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
_SIDES = {"both": "", "lower": " (lower ends only)", "upper": " (upper ends only)"}


def summary(certificate: CalibrationCertificate) -> str:
    """The claim, a table of the bins that hold rows, and what to keep in mind."""
    lines = [
        *_claim(certificate),
        "",
        *_aligned([_head(certificate), *_rows(certificate)]),
        "",
        *_remarks(certificate),
    ]
    return "\n".join(lines)


def html(certificate: CalibrationCertificate) -> str:
    """The same as HTML."""
    head = "".join(f"<th>{escape(name)}</th>" for name in _head(certificate))
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>"
        for row in _rows(certificate)
    )
    lines = [
        *_claim(certificate),
        *_remarks(certificate),
        *certificate.draw_lines(),
        *certificate.sample_lines(),
        *certificate.about_lines(),
    ]
    words = "".join(f"<p>{escape(line)}</p>" for line in lines)
    return f"<div>{words}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"


def _claim(certificate: CalibrationCertificate) -> list[str]:
    groups = certificate.groups
    bins = f"{certificate.grid.n_cells} {_BINS[certificate.grid.to_dict()['rule']]}"
    tables = f" for each of {len(groups)} {_TABLES[certificate.scope]}" if groups else ""
    return [
        (
            f"Calibration certificate: {certificate.n:,} rows, {bins}{tables}, delta = "
            f"{exact(certificate.delta)}"
        ),
        (
            f"With probability at least {likelihood(certificate.delta)} over the draw of these "
            f"rows, the true confidence of every bin{' of every table' if groups else ''} lies in "
            f"its interval{_SIDES[certificate.side]}."
        ),
    ]


def _head(certificate: CalibrationCertificate) -> list[str]:
    head = ["bin", "rows", "right", "estimate", "interval"]
    return ["group", *head] if certificate.groups else head


def _rows(certificate: CalibrationCertificate) -> list[list[str]]:
    rows = []
    for table, cell in np.argwhere(certificate.trials > 0)[:_MOST_SHOWN].tolist():
        trials, right = (
            int(certificate.trials[table, cell]),
            int(certificate.successes[table, cell]),
        )
        low = rounded_down(certificate.lower[table, cell])
        interval = f"[{low}, {rounded_up(certificate.upper[table, cell])}]"
        row = [
            cell_name(certificate, cell),
            f"{trials:,}",
            f"{right:,}",
            f"{right / trials:.4f}",
            interval,
        ]
        rows.append([printable(certificate.groups[table]), *row] if certificate.groups else row)
    return rows


def _remarks(certificate: CalibrationCertificate) -> list[str]:
    seen = certificate.trials > 0
    remarks = []
    if seen.sum() > _MOST_SHOWN:
        remarks.append(f"({seen.sum() - _MOST_SHOWN:,} more bins hold rows; .tables has them all.)")
    if not seen.all():
        remarks.append(
            f"{(~seen).sum():,} of {seen.size:,} bins hold no rows: nothing is known there, and "
            "the interval is [0, 1]."
        )
    if not _stratified(certificate):
        remarks.append(_mean_width(certificate))
    remarks.append(
        "An interval speaks of its bin's average, not of one input; the rows must be drawn as in "
        "use."
    )
    return remarks


def _stratified(certificate: CalibrationCertificate) -> bool:
    """Whether how many rows a bin has says nothing about use, so that no average over rows does."""
    return certificate.draw is not None and certificate.draw.by == "strata"


def _mean_width(certificate: CalibrationCertificate) -> str:
    seen = certificate.trials > 0
    width = (
        float(
            np.average(
                (certificate.upper - certificate.lower)[seen], weights=certificate.trials[seen]
            )
        )
        if seen.any()
        else 1.0
    )
    return (
        "Mean width of the interval over the rows: "
        f"{width:.4f}.{' Too wide to be of much use.' if width > 0.5 else ''}"
    )


def cell_name(certificate: CalibrationCertificate, cell: int) -> str:
    """The bin as people write it: its ends, and which of them belong to it."""
    (begin, end), grid = (bound[cell] for bound in certificate.grid.bounds), certificate.grid
    if begin == end:
        return exact(begin)
    last_or_closed = cell == grid.n_cells - 1 or grid.to_dict()["rule"] != "edges-as-cells"
    return (
        f"{'[' if cell == 0 else '('}{exact(begin)}, {exact(end)}{']' if last_or_closed else ')'}"
    )


def _aligned(rows: list[list[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  " + "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        for row in rows
    ]


def rounded_down(bound: float) -> str:
    """A lower bound in four digits, never above it."""
    return f"{np.floor(bound * 1e4) / 1e4:.4f}"


def rounded_up(bound: float) -> str:
    """An upper bound in four digits, never below it."""
    return f"{np.ceil(bound * 1e4) / 1e4:.4f}"
