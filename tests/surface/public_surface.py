"""What users may type today: parameters of public functions and classes, options of commands, and
methods of public classes.
"""

from __future__ import annotations

import inspect
from typing import Any

from typer.main import get_command

import pacbound
from pacbound.cli.app import app

Names = dict[str, list[str]]


def surface() -> dict[str, Names]:
    """Parameters by function or class, options by command, methods and properties by class."""
    public = {name: getattr(pacbound, name) for name in pacbound.__all__ if name[0] != "_"}
    functions = {name: thing for name, thing in public.items() if callable(thing)}
    counting = {
        f"Tally.{name}": getattr(pacbound.Tally, name)
        for name in ("from_arrays", "from_frame", "from_files", "count")
    }
    classes = {name: thing for name, thing in public.items() if inspect.isclass(thing)}
    return {
        "parameters": {
            name: _parameters(thing) for name, thing in {**functions, **counting}.items()
        },
        "options": _options(),
        "methods": {name: _members(thing) for name, thing in classes.items()},
    }


def _parameters(thing: Any) -> list[str]:
    try:
        return [name for name in inspect.signature(thing).parameters if name != "self"]
    except ValueError:
        return []


def _options() -> Names:
    group: Any = get_command(app)
    context: Any = None
    return {
        name: sorted(
            parameter.opts[0]
            for parameter in group.get_command(context, name).params
            if parameter.param_type_name == "option"
        )
        for name in group.list_commands(context)
    }


def _members(thing: type) -> list[str]:
    """The methods and properties that pacbound itself gives a class."""
    own = [base for base in thing.__mro__ if base.__module__.startswith("pacbound")]
    found = {name for base in own for name in vars(base) if not name.startswith("_")}
    return sorted(name for name in found if _is_member(inspect.getattr_static(thing, name)))


def _is_member(member: Any) -> bool:
    return isinstance(member, (property, classmethod, staticmethod)) or inspect.isfunction(member)
