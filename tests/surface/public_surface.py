"""What users may type today: parameters of public functions and classes, options of commands, and
methods of public classes.
"""

from __future__ import annotations

import inspect
from importlib import import_module
from pathlib import Path
from typing import Any

from typer.main import get_command

import pacbound
from pacbound import Certificate
from pacbound.baselines import HistogramBinning, TemperatureScaling
from pacbound.claims.certificate import Verification
from pacbound.cli.app import app, every_command
from pacbound.monitor import Alarm
from pacbound.planning import PilotPlan, PlanPoint
from pacbound.stats.looks import PlannedLooks

SOURCES = Path(pacbound.__file__).parents[1]
Names = dict[str, list[str]]


def surface() -> dict[str, Names]:
    """Parameters by function or class, options by command, methods and properties by class."""
    exported = {name: getattr(pacbound, name) for name in pacbound.__all__ if name[0] != "_"}
    public = {**exported, **{thing.__name__: thing for thing in returned()}}
    functions = {name: thing for name, thing in public.items() if callable(thing)}
    counting = {"Tally.count": pacbound.Tally.count}
    classes = {name: thing for name, thing in public.items() if inspect.isclass(thing)}
    return {
        "parameters": {
            name: _parameters(thing) for name, thing in {**functions, **counting}.items()
        },
        "options": _options(),
        "methods": {name: _members(thing) for name, thing in classes.items()},
    }


def returned() -> list[type]:
    """What the exported functions and methods return, by hand but for the certificates."""
    for path in (Path(pacbound.__file__).parent / "claims").rglob("[a-z]*.py"):
        import_module(".".join(path.relative_to(SOURCES).with_suffix("").parts))
    classes = [Alarm, PilotPlan, PlanPoint, PlannedLooks, Verification]
    return [*classes, HistogramBinning, TemperatureScaling, *_below(Certificate)]


def _below(cls: type) -> list[type]:
    """The classes below `cls` that have none below them, in order of their names."""
    below: list[type] = cls.__subclasses__()
    leaves = [leaf for one in below for leaf in _below(one)] if below else [cls]
    return sorted(leaves, key=lambda one: one.__name__)


def _parameters(thing: Any) -> list[str]:
    try:
        return [name for name in inspect.signature(thing).parameters if name != "self"]
    except ValueError:
        return []


def _options() -> Names:
    context: Any = None
    found: Names = {}
    for name in every_command():
        command: Any = get_command(app)
        for part in name.split():
            command = command.get_command(context, part)
        options = (one for one in command.params if one.param_type_name == "option")
        found[name] = sorted(option.opts[0] for option in options)
    return found


def _members(thing: type) -> list[str]:
    """The methods and properties that pacbound itself gives a class."""
    own = [base for base in thing.__mro__ if base.__module__.startswith("pacbound")]
    found = {name for base in own for name in vars(base) if not name.startswith("_")}
    # What was asked for is read by its name, and stands in the class with its type.
    asked = {name for base in own for name in vars(base).get("__annotations__", ())}
    members = {name for name in found if _is_member(inspect.getattr_static(thing, name, None))}
    return sorted(members | asked)


def _is_member(member: Any) -> bool:
    return isinstance(member, (property, classmethod, staticmethod)) or inspect.isfunction(member)
