"""Options that several commands have, declared once, and the panels that `--help` shows them in.

A group is a dataclass whose fields are options. A command takes it as one argument, by its type,
and `expanded` shows typer the options in its place.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import fields
from inspect import Signature, signature
from typing import Annotated, Any, ClassVar, get_args, get_type_hints

from typer.core import TyperCommand
from typer.models import OptionInfo

CLAIM = "Claim"
RESULT = "Result"
ROWS = "Rows: how they are read and drawn"
"""The panels; what belongs to none of them is among the options."""


class OptionGroup:
    """The base of groups. Each field is an option, with its default; `--help` shows them in the
    `panel`.
    """

    panel: ClassVar[str] = ROWS


def expanded(command: Callable[..., Any]) -> Callable[..., Any]:
    """The command as typer is to see it: with the options of its groups, in their places."""
    hints, groups, shown = get_type_hints(command, include_extras=True), {}, []
    for parameter in signature(command).parameters.values():
        kind = hints[parameter.name]
        if not (isinstance(kind, type) and issubclass(kind, OptionGroup)):
            shown.append(parameter.replace(annotation=kind))
            continue
        groups[parameter.name] = kind
        within: Any = kind
        annotations = get_type_hints(kind, include_extras=True)
        shown += [
            parameter.replace(
                name=option.name,
                annotation=_in_panel(annotations[option.name], kind.panel),
                default=option.default,
            )
            for option in fields(within)
        ]

    def run(**given: Any) -> Any:
        for name, kind in groups.items():
            options: Any = kind
            given[name] = options(
                **{option.name: given.pop(option.name) for option in fields(options)}
            )
        return command(**given)

    run.__name__, run.__doc__ = command.__name__, command.__doc__
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
    run.__dict__["__signature__"] = Signature(shown)
    return run


def _in_panel(annotation: Any, panel: str) -> Any:
    """The annotation of an option, which names the panel."""
    kind, *notes = get_args(annotation)
    shown = [copy(note) for note in notes]
    for note in shown:
        if isinstance(note, OptionInfo):
            note.rich_help_panel = panel
    return Annotated[kind, *shown]


class PanelCommand(TyperCommand):
    """A command whose `--help` has the options in panels, in plain text."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the panels, one after the other."""
        panels: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                panels.setdefault(panel_of(parameter), []).append(record)
        for title, records in panels.items():
            with formatter.section(title):
                formatter.write_dl(records)


def panel_of(parameter: Any) -> str:
    """The panel that an option or an argument is shown in."""
    if parameter.param_type_name == "argument":
        return "Arguments"
    if parameter.name in ("output", "as_json", "help"):
        return RESULT
    return parameter.rich_help_panel or "Options"
