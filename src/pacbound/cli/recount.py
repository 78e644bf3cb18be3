"""Counting the data of a certificate again: are these its counts, and if not, where do they differ?

A certificate says what was asked, and its provenance the names of the columns. What it does not
keep, such as all classes that there are, is said again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pacbound.cascade.answers import read_header
from pacbound.cascade.batch import OpenBatch, limits_of
from pacbound.cascade.records import records_of_files
from pacbound.cascade.rows import ReadingOptions
from pacbound.claims.batch import BatchCertificate
from pacbound.claims.certificate import Certificate
from pacbound.claims.provenance import SCALE
from pacbound.cli.delivery import progress_bar
from pacbound.cli.rows import chosen, for_question, readable_roles
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.tally.row_ids import returned
from pacbound.tally.row_options import DRAWN_BY, JOINED_BY
from pacbound.tally.table import unnamed
from pacbound.tally.tally import Tally

MOST_SHOWN = 20

Cells = dict[str, dict[str, int]]


@dataclass(frozen=True)
class Recounted:
    """What counting again has found: a line for each difference, and whether the bytes of the files
    are those that were counted, and the columns those that the certificate names.
    """

    lines: list[str]
    same_files: bool
    # None if the certificate names no columns.
    same_columns: bool | None

    @property
    def same(self) -> bool:
        """Whether all counts are the same."""
        return not self.lines

    def __str__(self) -> str:
        files = f"in {'the same' if self.same_files else 'other'} files"
        # Another model in another column may have equal counts.
        other = ", in other columns than the certificate names"
        return (
            f"the data have the same counts, {files}{other if self.same_columns is False else ''}"
        )


@dataclass(frozen=True)
class Recount:
    """What to count again: files, the columns that were named, and how to count."""

    files: Sequence[str]
    named: Mapping[str, str]
    counting: Mapping[str, Any]
    answers: Path | None = None

    def of(self, certificate: Certificate) -> Recounted:
        """Count for a certificate, and compare."""
        with progress_bar("counting") as progress:
            counting = {**self.counting, "progress": progress}
            if isinstance(certificate, BatchCertificate) and self.answers is not None:
                again = _batch_again(certificate, self.files, self.answers, self.named, counting)
            else:
                again = recounted(certificate, self.files, self.named, **counting)
        stored, found = certificate.provenance, again.provenance
        columns = {role: name for role, name in stored.columns.items() if role != SCALE}
        return Recounted(
            [
                *differing(certificate, again),
                *_other_names(stored.drawn_by, found.drawn_by),
                *_other_order(certificate, again),
            ],
            same_files=unnamed(stored.sources) == unnamed(found.sources),
            same_columns=self.named.items() <= columns.items() if columns else None,
        )


def recounted(
    certificate: Certificate, files: Sequence[str], said: Mapping[str, str], **counting: Any
) -> Certificate:
    """What `files` give for what the certificate asked. `said` names columns by their roles where
    they are not named as in its provenance; `counting` is the rest of what counting takes.
    """
    by_claim = certificate.by.recounting(certificate)
    question = certificate.by.question_of(certificate)
    columns = _columns(certificate, question, said)
    draw: dict[str, Any] = {}
    drawn = certificate.draw
    if drawn is not None:
        bound = "cluster_bound" if drawn.by == "clusters" else "weight_bound"
        draw = {"seed": drawn.seed, bound: drawn.bound}
        # Where tables were joined, the clusters follow from the id.
        if drawn.by == "clusters" and "clusters" in columns:
            draw["among"] = list(dict(drawn.among)) or "all"
    scale = certificate.scale_of(counting.get("scale"))
    given = {**columns, **by_claim, **draw, **_grading(certificate), **counting, "scale": scale}
    if given.get("answers") is not None:
        asked_text = certificate.by.asked_text(certificate.values)
        given["answers"] = returned(given["answers"], asked_text)
    tally = Tally.count(question, data=list(files), **given)
    # The counts are the same with looks and without, and none may be planned at other rows.
    asked = {name: value for name, value in certificate.asked_for.items() if name != "looks"}
    again: Certificate = certificate.by.certify(tally, asked)
    return again


def _grading(certificate: Certificate) -> dict[str, Any]:
    """How outcomes were graded."""
    graded = certificate.graded
    return {} if graded is None else {"graded_by": graded.by, "quality_scale": graded.scale}


def _batch_again(
    certificate: BatchCertificate,
    files: Sequence[str],
    answers: Path,
    named: Mapping[str, str],
    counting: Mapping[str, Any],
) -> Certificate:
    """How the batch of these rows ends by the answers of the expert in a file."""
    header = read_header(answers)
    if header is None:
        raise InvalidValueError(f"{answers} is not there, or holds no answers: name another file.")
    columns = {**dict(header.get("columns", {})), **certificate.provenance.columns, **named}
    absent = [role for role in ("confidence", "prediction") if role not in columns]
    if absent:
        raise InvalidTypeError(
            f"The batch does not say which column its {absent[0]} was in, because it was an array: "
            f"name it with --column {absent[0]}=NAME."
        )
    options = {**counting, "scale": certificate.scale_of(counting.get("scale"))}
    reading = ReadingOptions.of(options, files, ("classes", "missing"), "a batch")
    records = records_of_files(list(files), columns["confidence"], columns["prediction"], reading)
    limits = limits_of({**header, "xi": certificate.xi, "delta": certificate.delta})
    with OpenBatch(records, limits, answers, columns=columns) as going:
        step = going.step()
    if step.certificate is None:
        raise InvalidValueError(
            f"{answers} lacks the answers to {len(step.ask):,} rows, the first in row "
            f"{step.ask[0]}: the batch has not ended."
        )
    return step.certificate


def differing(certificate: Certificate, again: Certificate) -> list[str]:
    """A line for each cell whose counts differ, the first of them, and how many more there are."""
    stored, found = ({**_all_rows(each), **each.by.cells(each)} for each in (certificate, again))
    lines = [
        f"{cell}: the certificate has {_counts(stored.get(cell))}, the data "
        f"{_counts(found.get(cell))}"
        for cell in [*stored, *(cell for cell in found if cell not in stored)]
        if stored.get(cell) != found.get(cell)
    ]
    beyond = len(lines) - MOST_SHOWN
    return [*lines[:MOST_SHOWN], *([f"and {beyond:,} more"] if beyond > 0 else [])]


def _other_names(stored: Mapping[str, str], found: Mapping[str, str]) -> list[str]:
    """A line for each kind of names that are not those that the rows were drawn by: names that are
    spelt otherwise draw other rows.
    """
    return [
        f"names of {role}: the certificate has {stored[role]}, the data {found[role]}: other rows "
        "may have been drawn"
        for role in stored.keys() & found.keys()
        if stored[role] != found[role]
    ]


def _other_order(certificate: Certificate, again: Certificate) -> list[str]:
    """Why as many rows of the same clusters may count otherwise."""
    before, now = (_all_rows(each).get("before the draw") for each in (certificate, again))
    by_place = before is not None and "row_id" not in certificate.provenance.drawn_by
    if not by_place or before != now or certificate.counts_digest == again.counts_digest:
        return []
    return ["rows were drawn by their place in the table, which may be sorted otherwise now"]


def _all_rows(certificate: Certificate) -> Cells:
    cells = {"all": {"rows": certificate.n}}
    if certificate.draw is not None:
        drawn = certificate.draw
        among = {f"{name} rows": rows for name, rows in drawn.among}
        cells["before the draw"] = {"rows": drawn.rows, "clusters or rows": drawn.units, **among}
    return cells


def _columns(certificate: Certificate, question: Any, said: Mapping[str, str]) -> dict[str, Any]:
    """The columns as the question that was counted takes them: those that are said, and else those
    of the certificate.
    """
    known = (*question.roles, *DRAWN_BY, *JOINED_BY)
    named = chosen(certificate, readable_roles(question, known), said)
    if not named.keys() & question.roles.keys():
        raise InvalidTypeError(
            "The certificate does not say which columns it was counted from, because they were "
            "arrays: name them with --column ROLE=NAME. Its roles are "
            f"{', '.join(question.roles)}."
        )
    return for_question(question, named)


def _counts(cell: Mapping[str, int] | None) -> str:
    if cell is None:
        return "no such step"
    words = {"only_slow": "only slow right", "only_fast": "only fast right"}
    said = [f"{count:,} {words.get(name, name)}" for name, count in cell.items() if count]
    return ", ".join(said) or "none"
