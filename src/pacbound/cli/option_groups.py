"""Options that several commands have, declared once.

A group is a dataclass whose fields are options. A command takes it as one argument, by its type,
and `expanded` shows typer the options in its place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from inspect import Signature, signature
from typing import Any, get_type_hints


class OptionGroup:
    """The base of groups. Each field is an option, with its default."""


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
                name=option.name, annotation=annotations[option.name], default=option.default
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
