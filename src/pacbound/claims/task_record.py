"""What rollouts are of: as a collection knows it, as an archive keeps it beside the rows, and as a
certificate says it. The claim of a shield depends on all of it.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from pacbound import documents
from pacbound.claims.provenance import LONGEST_TEXT
from pacbound.documents import Json
from pacbound.errors import InvalidValueError
from pacbound.sources.formats.arrays import DAMAGED

# The name under which an .npz file keeps it, beside the arrays.
MEMBER = "task.json"

# How many states that `surely_recoverable()` cleared were simulated all the same.
CHECKS = "clearance_checks"
# How many readings of the danger there were, and how many of them failed.
READINGS, FAILURES = "danger_readings", "danger_failures"
_COUNTS = (CHECKS, READINGS, FAILURES)
# So large a share of failed readings is a fault of the danger model.
MANY_FAILED = 0.01

_LARGEST = 2**20
_TEXTS = (
    "identity", "environment", "environment_options", "policy", "backup", "danger", "unsafe"
)  # fmt: skip
_KINDS: dict[str, type] = {
    **dict.fromkeys(_TEXTS, str),
    "horizon": int,
    "backup_steps": int,
    "rests_when_terminated": bool,
    "trust_clearance": bool,
    "check_clearance": float,
    **dict.fromkeys(_COUNTS, int),
}


def known_task(plan: Mapping[str, Json]) -> dict[str, Json]:
    """What a plan or an archive says of the task, as far as it is what it should be."""
    return {name: plan[name] for name, kind in _KINDS.items() if type(plan.get(name)) is kind}


def about_task(task: Mapping[str, Json]) -> dict[str, str]:
    """What a certificate says of a task."""
    names = (*_TEXTS, "horizon", "backup_steps")
    told = {
        name.replace("_", "-"): str(task[name])[:LONGEST_TEXT]
        for name in names
        if task.get(name) not in (None, "")
    }
    failed = failed_readings(int(task.get(FAILURES) or 0), int(task.get(READINGS) or 0))
    told |= {"danger-failures": failed} if failed else {}
    if task.get("trust_clearance") is False:
        return {**told, "clearance-checks": "every state was simulated, none trusted"}
    # Where some are checked, the last of each rollout is: none checked, none cleared.
    if CHECKS not in task or (not task[CHECKS] and task.get("check_clearance")):
        return told
    checks = (
        f"{task[CHECKS]:,} states that surely_recoverable() cleared were simulated all the same, "
        "all safe"
    )
    return {**told, "clearance-checks": checks}


def failed_readings(failures: int, readings: int) -> str:
    """How many readings of the danger failed, in words; nothing if none did."""
    if not failures:
        return ""
    share = failures / max(readings, failures)
    said = (
        f"{failures:,} of {max(readings, failures):,} readings of the danger failed ({share:.2%}): "
        "NaN, out of range, or an error"
    )
    many = (
        ". In use each of them brakes: mend the danger model, and collect again"
        if share > MANY_FAILED
        else ""
    )
    return said + many


def read_task(path: str | os.PathLike[str]) -> dict[str, Json]:
    """The task that a file keeps; empty if it keeps none."""
    source = Path(path)
    if source.suffix.lower() != ".npz" or not source.is_file():
        return {}
    try:
        with zipfile.ZipFile(source) as archive:
            if MEMBER not in archive.namelist():
                return {}
            with archive.open(MEMBER) as file:
                data = file.read(_LARGEST + 1)
    except DAMAGED as error:
        raise InvalidValueError(
            f"{source} cannot be read as .npz ({error}). Was it cut short? Write it again."
        ) from None
    name = f"{source}, {MEMBER},"
    return known_task(documents.parse(data, what="a task", name=name, largest=_LARGEST))


def require_same_task(tasks: Sequence[Mapping[str, Json]]) -> None:
    """Raise if rollouts are of different tasks. Whether clearance is trusted or checked makes no
    other rollouts, nor do counts of what was read or checked.
    """
    besides = (*_COUNTS, "trust_clearance", "check_clearance")
    names = [name for name in _KINDS if name not in besides]
    differing = [name for name in names if len({task.get(name) for task in tasks}) > 1]
    if differing:
        raise InvalidValueError(
            f"These rollouts are of different tasks ({', '.join(differing)}): a claim is about one "
            "policy, backup, danger and horizon. Certify each by itself."
        )


def common_task(paths: Iterable[str | os.PathLike[str]]) -> dict[str, Json]:
    """The task of all files, if each keeps one; empty otherwise. Different tasks raise."""
    tasks = [read_task(path) for path in paths]
    require_same_task([task for task in tasks if task])
    same = [{name: value for name, value in task.items() if name not in _COUNTS} for task in tasks]
    if not tasks or not all(tasks) or any(task != same[0] for task in same):
        return {}
    counted = [name for name in _COUNTS if any(name in task for task in tasks)]
    return {**same[0], **{name: sum(task.get(name, 0) for task in tasks) for name in counted}}
