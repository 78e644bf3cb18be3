"""The commands that are made from claims: those that certify rows, `tally` and `certify`.

An option for every column that rows bring and for everything that may be asked for, beside those
about rows and about the result. `tally` counts a part of the rows; `certify` adds the counts of all
parts, and certifies their sum: the same certificate as from all rows at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from inspect import Parameter
from operator import add
from pathlib import Path
from typing import Annotated, Any

import typer

from pacbound.claims import claim_of, claims_of
from pacbound.claims.certificate import Certificate, load_certificate
from pacbound.claims.claim import Claim, certify
from pacbound.cli.delivery import (
    AboutOption,
    OutputOption,
    about_of,
    deliver,
    progress_bar,
    say,
)
from pacbound.cli.exit_codes import ending_well
from pacbound.cli.lent_seeds import seed_for
from pacbound.cli.options import CLAIM, ROWS, JsonOption, Reads, Writes, names
from pacbound.cli.rows import (
    CLASSES,
    COUNTED,
    DRAWN,
    GRADED,
    PIPED,
    POSITIVE,
    RELATED,
    FilesArgument,
    RowChoices,
    files_argument,
    with_options,
)
from pacbound.cli.to_label import ask_for_labels, label_options, require_askable, with_labels
from pacbound.errors import CertificateError, InvalidTypeError, InvalidValueError, PacboundError
from pacbound.forms import REQUIRED, Ask
from pacbound.tally import Tally
from pacbound.tally.questions.question import RowColumn, subject_of
from pacbound.tally.row_options import JOINED_BY

GROUPS = RowColumn(
    "groups", "The group of each row: the claim then holds in every group.", "name", needed=False
)
TalliesArgument = Annotated[
    list[Path],
    typer.Argument(metavar="TALLY...", help="What `pacbound tally` wrote, one for each part."),
    Reads(),
]
# With --id, tables of several models are joined.
_FilesOfModels = files_argument(
    " With --id: one file for each model, named one by one, in the order of the models."
)
TallyOption = Annotated[
    Path, typer.Option("--output", "-o", help="Where the tally goes."), Writes()
]


def certifying(kind: str) -> Callable[..., Any]:
    """The command that certifies rows."""
    claim = claim_of(kind)

    def run(**given: Any) -> int:
        rows, columns = given["rows"], _named(claim, given)
        tables = rows.tables(given["files"])
        asked = {ask.name: given[ask.name] for ask in claim.asks if ask.option}
        options = {**rows.options(), "about": about_of(given["about"]) or None}
        seed = seed_for(given["output"], kind, tables, {**columns, **options})
        options |= {} if seed is None else {"seed": seed}
        asks = require_askable(given)
        options = with_labels(options, columns) if asks else options
        with progress_bar("counting") as progress:
            certificate = certify(claim, columns, asked, tables, {**options, "progress": progress})
        _require_later(claim, certificate, given["output"])
        if asks:
            ask_for_labels(claim, certificate, columns, tables, rows, given)
        return _delivered(certificate, given)

    return _command(
        run,
        claim.command,
        f"{claim.help}\n\nExit code 0: certified. 3: refused.",
        [
            _parameter("files", _FilesOfModels if claim.question.joins else FilesArgument),
            *map(_of_column, columns_of(claim)),
            *(_of_ask(ask) for ask in claim.asks if ask.option),
            *(label_options() if claim.asks_for_labels else []),
            _parameter("rows", Annotated[RowChoices, (*_rows(claim), "sample")]),
            *_RESULT,
        ],
    )


def _require_later(claim: Claim[Any], certificate: Certificate, output: Path | None) -> None:
    """Refuse to write over a certificate that is an earlier look and does not agree."""
    if output is None or not output.is_file():
        return
    try:
        before = load_certificate(output)
    except (PacboundError, OSError):
        return  # Something else, which is written over like any file.
    try:
        claim.require_later(before, certificate)
    except InvalidValueError as error:
        raise InvalidValueError(f"{output}: {error}") from None


def tallying(kind: str) -> Callable[..., Any]:
    """The command that counts a part of the rows."""
    claim = claim_of(kind)
    counts_by = [ask for ask in claim.asks if ask.name in claim.counts_by]

    def run(**given: Any) -> int:
        columns, output = _named(claim, given), given["output"]
        tables, options = given["rows"].tables(given["files"]), given["rows"].options()
        asked = {ask.name: given.get(ask.name, ask.default) for ask in claim.asks}
        passed = {**columns, **claim.counting(asked, columns, tables, options), **options}
        question = claim.question_for(columns, tables)
        claim.told(tables)  # A tally does not say what its rows are of.
        among = claim.drawn_among(asked, question) or "all" if options.get("clusters") else None
        seed = seed_for(output, question.kind, tables, passed)
        passed |= {} if seed is None else {"seed": seed}
        with progress_bar("counting") as progress:
            total = Tally.count(question, data=tables, among=among, progress=progress, **passed)
        total.save(output)
        told = {"kind": total.kind, "rows": total.rows, "outcomes": total.totals}
        drawn, words = {}, ""
        if total.seed is not None:
            drawn = {"seed": total.seed}
            words = f"Seed {total.seed}: pass --seed {total.seed} to all other parts.\n"
        words += (
            f"{total}\nWritten to {output}. Add it to others and certify: pacbound certify {kind} "
            f"{output} …"
        )
        say(words, {"tally": str(output), **told, **drawn}, as_json=given["as_json"])
        return 0

    return _command(
        run,
        "tally",
        f"Count one part of the rows for {subject_of(kind)}.\n\n`pacbound certify {kind}` adds "
        "the tallies of all parts, and certifies as if all rows had been counted at once.",
        [
            _parameter("files", _FilesOfModels if claim.question.joins else FilesArgument),
            *map(_of_column, columns_of(claim)),
            *map(_of_ask, counts_by),
            _parameter("rows", Annotated[RowChoices, _rows(claim)]),
            _parameter("output", TallyOption),
            _AS_JSON,
        ],
    )


def certifying_tallies(kind: str) -> Callable[..., Any]:
    """The command that certifies the sum of tallies."""
    claim = claim_of(kind)
    # What says how rows are counted was said when they were.
    asks = [ask for ask in claim.asks if ask.option and ask.name not in claim.counts_by]

    def run(**given: Any) -> int:
        total = summed(given["tallies"])
        fitting = claims_of(total.kind)
        if kind not in fitting:
            raise InvalidTypeError(
                f"These are tallies for {subject_of(total.kind)}, not for {subject_of(kind)}: "
                f"certify them by {' or '.join(f'pacbound certify {one}' for one in fitting)}."
            )
        asked = {ask.name: given[ask.name] for ask in asks}
        options = {**given["rows"].options(), "about": about_of(given["about"]) or None}
        return _delivered(certify(claim, {}, asked, total, options), given)

    return _command(
        run,
        "certify",
        f"Add tallies of parts of the data. {claim.help}\n\nThe certificate is the same as from "
        "all rows at once. Each part counts once: a tally that holds rows of another one again is "
        "refused.\n\nExit code 0: certified. 3: refused.",
        [
            _parameter("tallies", TalliesArgument),
            *map(_of_ask, asks),
            _parameter("rows", Annotated[RowChoices, ("sample",)]),
            *_RESULT,
        ],
    )


def summed(paths: Iterable[str | Path]) -> Tally:
    """The sum of tallies, read from their files."""
    return reduce(add, map(_loaded, paths))


def _loaded(path: str | Path) -> Tally:
    try:
        return Tally.load(path)
    except CertificateError as error:
        message = str(error)
        raise CertificateError(message if str(path) in message else f"{path}: {message}") from None


def _command(
    run: Callable[..., int], command: str, doc: str, shown: list[Parameter]
) -> Callable[..., Any]:
    run.__name__, run.__doc__ = command.replace("-", "_"), doc
    return ending_well(with_options(run, shown))


def _parameter(name: str, annotation: Any, default: Any = Parameter.empty) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


_AS_JSON = _parameter("as_json", JsonOption, default=False)
_RESULT = (
    _parameter("output", OutputOption, None),
    _parameter("about", AboutOption, None),
    _AS_JSON,
)


def _delivered(certificate: Certificate, given: Mapping[str, Any]) -> int:
    return deliver(certificate, given["output"], as_json=given["as_json"])


def columns_of(claim: Claim[Any]) -> tuple[RowColumn, ...]:
    """What rows bring; their group, where the claim is made for groups."""
    takes_groups = all("groups" in question.roles for question in claim.questions)
    return (*claim.columns, *([GROUPS] if takes_groups and claim.by_groups else []))


def _named(claim: Claim[Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The names of the columns; lists of them where there is one for each model."""
    return {
        column.name: names(given[column.name])
        if column.several and given[column.name] is not None
        else given[column.name]
        for column in columns_of(claim)
    }


def _rows(claim: Claim[Any]) -> tuple[str, ...]:
    """The options about rows: which classes there are, where predictions are compared with labels;
    how outcomes are graded, where they may be.
    """
    compared = [column for column in claim.question.columns if column.holds == "class"]
    several = any(column.several for column in compared)
    classes = () if len(compared) < 2 else RELATED if several else CLASSES
    if any(column.holds == "flag" for column in claim.question.columns):
        classes = tuple(dict.fromkeys((*POSITIVE, *classes)))
    graded = GRADED if claim.question.may_be_graded else ()
    joins = JOINED_BY if claim.question.joins else ()
    back = ("labels", "cannot_tell")
    return (*joins, *classes, *graded, *DRAWN, *back, *PIPED, *COUNTED)


def _of_column(column: RowColumn) -> Parameter:
    text = f"{column.help} Several, with commas: a,b,c" if column.several else column.help
    panel = ROWS if column.name in ("groups", "quality", "preferred") else CLAIM
    option = typer.Option(help=f"Column: {text}", rich_help_panel=panel)
    if column.needed:
        return _parameter(column.name, Annotated[str, option])
    return _parameter(column.name, Annotated[str | None, option], None)


def _of_ask(ask: Ask) -> Parameter:
    """The option; its value is checked where it is read, so that the error names the option."""

    def check(value: Any) -> Any:
        try:
            shown_as = f"--{ask.name.replace('_', '-')}"
            return ask.checked(ask.form.parsed(value), shown_as=shown_as)
        except PacboundError as error:
            raise typer.BadParameter(str(error)) from None

    option = typer.Option(help=ask.help, callback=check, rich_help_panel=CLAIM)
    kind = ask.form.option if ask.default is not None else ask.form.option | None
    hint: Any = Annotated[kind, option]
    return _parameter(ask.name, hint, Parameter.empty if ask.default is REQUIRED else ask.default)
