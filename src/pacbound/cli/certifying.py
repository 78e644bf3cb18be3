"""The commands that certify, made from claims: an option for every column that rows bring and for
everything that may be asked for, beside those about rows and about the result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from inspect import Parameter, Signature
from typing import Annotated, Any

import typer

from pacbound.asks import REQUIRED, Ask
from pacbound.claims import claim_of
from pacbound.claims.claim import Claim, certify
from pacbound.cli.about import About
from pacbound.cli.delivery import BudgetOption, OutputOption, SampleOption, deliver
from pacbound.cli.exit_codes import ending_well
from pacbound.cli.file_options import Reads
from pacbound.cli.lists import names
from pacbound.cli.option_groups import CLAIM
from pacbound.cli.table_options import (
    CascadeClasses,
    Classes,
    Counter,
    FilesArgument,
    LabelsOption,
    RowDraw,
    StrataOption,
    WrittenOrPiped,
    strata_option,
)
from pacbound.cli.terminal import progress_bar
from pacbound.errors import PacboundError
from pacbound.tally.questions.question import RowColumn

GROUPS = RowColumn(
    "groups", "The group of each row: the claim then holds in every group.", "name", needed=False
)


def certifying(kind: str) -> Callable[..., Any]:
    """The command that certifies a claim, with its options as groups."""
    claim = claim_of(kind)

    def run(**given: Any) -> int:
        return _run(claim, given)

    run.__name__, run.__doc__ = claim.command.replace("-", "_"), _described(claim)
    shown = [
        _parameter("files", FilesArgument),
        *(_of_column(column) for column in _columns(claim)),
        *(_of_ask(ask) for ask in claim.asks if ask.option),
        *_of_classes(claim.question),
        _parameter("draw", RowDraw),
        *([_parameter("strata", StrataOption, None)] if _has_bins(claim) else []),
        _parameter("labels", LabelsOption, None),
        _parameter("written", WrittenOrPiped),
        _parameter("counter", Counter),
        _parameter("output", OutputOption, None),
        _parameter("budget", BudgetOption, None),
        _parameter("sample", SampleOption, None),
        _parameter("about", About),
        _parameter(
            "as_json",
            Annotated[bool, typer.Option("--json", help="Print the result for programs.")],
            default=False,
        ),
    ]
    run.__dict__["__signature__"] = Signature(shown)
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
    return ending_well(run)


def _columns(claim: Claim[Any]) -> tuple[RowColumn, ...]:
    """What rows bring; their group, where the claim is made for groups."""
    takes_groups = all("groups" in question.roles for question in claim.questions)
    return (*claim.columns, *([GROUPS] if takes_groups and claim.by_groups else []))


def _described(claim: Claim[Any]) -> str:
    return f"{claim.help}\n\nExit code 0: certified. 3: refused."


def _parameter(name: str, annotation: Any, default: Any = Parameter.empty) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


def _of_column(column: RowColumn) -> Parameter:
    text = f"{column.help} Several, with commas: a,b,c" if column.several else column.help
    option = typer.Option(help=f"Column: {text}", rich_help_panel=CLAIM)
    if column.needed:
        return _parameter(column.name, Annotated[str, option])
    return _parameter(column.name, Annotated[str | None, option], None)


def _has_bins(claim: Claim[Any]) -> bool:
    """Whether rows are counted in bins, so that they may have been chosen per bin."""
    return any(ask.name == "n_bins" for ask in claim.asks)


def _of_classes(question: Any) -> Iterator[Parameter]:
    """Which classes there are, where predictions are compared with labels."""
    compared = [column for column in question.columns if column.holds == "class"]
    if len(compared) > 1:
        several = any(column.several for column in compared)
        yield _parameter("classes", CascadeClasses if several else Classes)


def _of_ask(ask: Ask) -> Parameter:
    """The option; its value is checked where it is read, so that the error names the option."""

    def check(value: Any) -> Any:
        try:
            return ask.checked(ask.form.parsed(value), shown_as=_option(ask.name))
        except PacboundError as error:
            raise typer.BadParameter(str(error)) from None

    option = typer.Option(help=ask.help, callback=check, rich_help_panel=CLAIM)
    kind = ask.form.option if ask.default is not None else ask.form.option | None
    hint: Any = Annotated[kind, option]
    if ask.form.names_files:
        hint = Annotated[kind, option, Reads()]
    return _parameter(ask.name, hint, Parameter.empty if ask.default is REQUIRED else ask.default)


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _run(claim: Claim[Any], given: dict[str, Any]) -> int:
    written, counter, about = given["written"], given["counter"], given["about"]
    columns = {
        column.name: names(given[column.name])
        if column.several and given[column.name] is not None
        else given[column.name]
        for column in _columns(claim)
    }
    tables, told = written.tables(given["files"]), claim.told(given["files"])
    asked = {ask.name: given[ask.name] for ask in claim.asks if ask.option}
    asked |= {name: value for name, value in told.asked.items() if asked[name] is None}
    with progress_bar("counting") as progress:
        rows = {
            **(given["classes"].options() if "classes" in given else {}),
            **given["draw"].columns(),
            **given["draw"].options(),
            "strata": strata_option(given.get("strata")),
            **counter.options(),
            **written.options(),
            "answers": given["labels"],
            "about": {**told.about, **about.told()} or None,
            "sample": given["sample"],
            "progress": progress,
        }
        options = {name: value for name, value in rows.items() if value is not None}
        certificate = certify(claim, columns, asked, tables, options)
    return deliver(certificate, given["output"], as_json=given["as_json"], budget=given["budget"])
