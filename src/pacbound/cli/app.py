"""The commands of `pacbound`, put together. Each is loaded when it is run: to list them takes
neither numpy nor what reads tables.
"""

from __future__ import annotations

from difflib import get_close_matches
from functools import cache
from importlib import import_module
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup
from typer.main import get_command

from pacbound.claims import CLAIMS, kind_of
from pacbound.version import VERSION

# What there is, by what a user wants to do, with a line for each. A command is the function of its
# name in the file of its name, with _ for -.
COMMANDS: dict[str, dict[str, str]] = {
    "Certify": {line.command: line.help for line in CLAIMS.values()},
    "Spend less": {
        "plan": "How many labels a claim will take.",
        "design": "Choose a cascade among many models, and certify it.",
        "cost": "An upper bound on what a certified cascade costs.",
        "batch": "Answer a table of records, asking the slow model little.",
    },
    "Count in parts": {
        "tally": "Count one part of the data.",
        "certify": "Add the counts of all parts, and certify their sum.",
    },
    "Claim several things": {
        "judge": "How far the verdicts of a judge may be trusted.",
        "together": "Certify several claims that hold at once, in one file.",
    },
    "Use a certificate": {
        "show": "Say what it claims, of what, and whether it follows.",
        "report": "Write a page about it that people open in a browser.",
        "verify": "Recompute every claim from its counts, for scripts.",
        "apply": "Add the interval or the decision to every row of a table.",
        "monitor": "Raise the alarm once a claim no longer holds in use.",
    },
    "See it all": {
        "demo": "Six steps on data that ship with the package.",
    },
}

# Commands that have commands of their own, each the function of its name in the file of the first.
PARTS: dict[str, dict[str, str]] = {
    "plan": {
        "rate": "How many labels show that a rate is low.",
        "looks": "How many errors each of several looks may show.",
        "pilot": "What larger samples will give and cost, from a small one.",
    },
    "tally": {kind: line.help for kind, line in CLAIMS.items()},
    "certify": {kind: line.help for kind, line in CLAIMS.items()},
}

# What people say of a certificate by `--about`, and look for as options.
_ABOUT = {"--model", "--dataset", "--owner", "--note"}

# Commands whose own commands are made from claims, and what makes them.
_FROM_CLAIMS = {"tally": "tallying", "certify": "certifying_tallies"}
# Commands that are not in the file of their name.
_FILES = {"judge": "together", "cost": "design"}

_STYLE: dict[str, Any] = {
    "add_completion": False,
    "pretty_exceptions_enable": False,
    "rich_markup_mode": None,
}


def every_command() -> list[str]:
    """Every command that can be run, as it is typed: `plan rate`, not `plan`."""
    known = [name for group in COMMANDS.values() for name in group]
    return [f"{name} {part}".strip() for name in known for part in PARTS.get(name, [""])]


def function_of(command: str) -> Any:
    """The function behind a command: of its own file, or made from its claim."""
    kind, (first, _, part) = kind_of(command), command.partition(" ")
    if kind is not None or first in _FROM_CLAIMS:
        make = _FROM_CLAIMS.get(first, "certifying")
        return getattr(import_module("pacbound.cli.certifying"), make)(kind or part)
    name = first.replace("-", "_")
    return getattr(import_module(f"pacbound.cli.{_FILES.get(name, name)}"), part or name)


class Commands(TyperGroup):
    """Commands under titles, each loaded when it is asked for."""

    @property
    def titled(self) -> dict[str, dict[str, str]]:
        """The commands with a line for each, by their titles."""
        return {"Commands": PARTS[self.name]} if self.name in PARTS else COMMANDS

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Without arguments show the help and end with 2, whichever click is installed."""
        if not args and not ctx.resilient_parsing:
            typer.echo(ctx.get_help(), err=True)
            ctx.exit(2)
        return list(super().parse_args(ctx, args))

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        """The names of all commands, in the order of their titles."""
        return [name for group in self.titled.values() for name in group]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of a name; None if there is none."""
        known = self.list_commands(ctx)
        if cmd_name not in known:
            near = get_close_matches(cmd_name, known)
            if near:
                ctx.fail(f"No such command {cmd_name!r}. Did you mean {' or '.join(near)}?")
            if self.name in PARTS:
                ctx.fail(
                    f"No such command {cmd_name!r}. Expected after pacbound {self.name}: "
                    f"{', '.join(known[:-1])} or {known[-1]}."
                )
            return None
        if cmd_name in PARTS:
            return _parts(cmd_name)
        return _command(f"{self.name} {cmd_name}" if self.name in PARTS else cmd_name)

    def invoke(self, ctx: Any) -> Any:
        """Run the command; where it does not have an option that a related one has, say which."""
        try:
            return super().invoke(ctx)
        except Exception as error:
            # Typer brings its own click, or uses that which is installed.
            if type(error).__name__ == "NoSuchOption" and self.name not in PARTS:
                _add_hint(error)
            raise

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands, none of whose lines is cut off."""
        width = max(map(len, self.list_commands(ctx)))
        for title, group in self.titled.items():
            with formatter.section(title):
                formatter.write_dl([(f"{name:{width}}", says) for name, says in group.items()])


# What to type where a command reads one table.
_JOIN: Final = (
    "compare and cascade join two files by an id; this command reads one table. Join the files "
    "first: python -c \"import duckdb; duckdb.sql('''COPY (FROM 'a.jsonl' JOIN 'b.jsonl' USING "
    "(id)) TO 'joined.parquet' ''')\""
)


def _add_hint(error: Any) -> None:
    """Name the other commands that have the option, or the option to use instead."""
    takes_about = any("--about" in one.opts for one in error.ctx.command.params)
    if takes_about and error.option_name in _ABOUT:
        error.possibilities = None
        error.message += f". Expected: --about {error.option_name[2:]}=TEXT."
        return
    if error.option_name == "--id":
        error.possibilities = None
        error.message += f". {_JOIN}"
        return
    near = {error.ctx.command.name, error.ctx.parent.command.name} & PARTS.keys()
    having = [
        f"pacbound {name} {part}"
        for name in near
        for part in PARTS[name]
        if any(error.option_name in one.opts for one in _parts(name).get_command(None, part).params)
    ]
    if having:
        error.message = f"{error.message.rstrip('.')}. It is an option of {', '.join(having)}."


@cache
def _command(typed: str) -> Any:
    """The command of this name."""
    alone = typer.Typer(**_STYLE)
    options = import_module("pacbound.cli.options")
    alone.command(typed.rsplit(maxsplit=1)[-1], cls=options.PanelCommand)(function_of(typed))
    return get_command(alone)


@cache
def _parts(name: str) -> Any:
    """The command that has commands of its own."""
    says = next(group[name] for group in COMMANDS.values() if name in group)
    group = typer.Typer(cls=Commands, name=name, help=says, no_args_is_help=True, **_STYLE)
    group.callback()(lambda: None)
    return get_command(group)


app = typer.Typer(
    cls=Commands,
    name="pacbound",
    help="Provable guarantees on what a trained classifier says.",
    epilog=(
        "Exit codes: 0 certified or verified, 1 not verified or the alarm rang, 2 bad usage or "
        "data, 3 refused, 70 a bug, 130 interrupted, 128 + n ended by signal n. If the output "
        "cannot be written, 0 becomes 141 (closed pipe) or 2 (full disk); 1 and 3 stay."
    ),
    no_args_is_help=True,
    **_STYLE,
)


def _show_version(wanted: bool) -> None:  # noqa: FBT001, RUF100
    if wanted:
        typer.echo(f"pacbound {VERSION}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Provable guarantees on what a trained classifier says."""
