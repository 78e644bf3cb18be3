"""The tasks by name: what is rolled out, and where its rollouts are kept."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from experiments.fixed_npz import write_table
from experiments.safe_planning.methods import Table, table_of
from pacbound.data import indoor_navigation
from pacbound.shield import Rollouts, Task

RESULTS = Path("experiments/results")
NAMES = ("depth", "camera", "sidewalk")
TYPES = {
    "seed": np.int32,
    "score": np.float64,
    "unsafe": np.bool_,
    "final_score": np.float64,
    "first_unrecoverable": np.int16,
    "steps": np.int16,
    "success": np.bool_,
}


@dataclass(frozen=True)
class Words:
    """How a task is called in tables and figures, and which sizes its ablation has."""

    title: str
    sizes: tuple[int, ...]


WORDS = {
    "depth": Words("the robot, by depth", (5_000, 10_000, 15_000, 20_000)),
    "camera": Words("the robot, by camera", (1_000, 2_000, 5_000, 10_000, 20_000)),
    "sidewalk": Words("MiniWorld's sidewalk", (1_000, 2_000, 5_000, 10_000, 20_000)),
}


def task(name: str, *, remember: bool = False) -> Task:
    """The task; what it needs is imported only here, since not everybody has all simulators. To
    `remember` answers saves pictures where a seed is driven at several thresholds.
    """
    if name == "depth":
        from experiments.shield.task import robot  # noqa: PLC0415

        return robot()
    if name == "camera":
        import torch  # noqa: PLC0415

        from experiments.safe_planning import camera_networks, camera_task  # noqa: PLC0415

        torch.set_num_threads(1)
        policy: Any = camera_networks.CameraPolicy(camera_task.POLICY)
        danger: Any = camera_networks.CameraDanger(camera_task.DANGER)
        if remember:
            policy, danger = camera_task.Remembered(policy), camera_task.Remembered(danger)
        return camera_task.camera_robot(policy, danger)
    from experiments.safe_planning import sidewalk_task  # noqa: PLC0415

    return sidewalk_task.walk(
        sidewalk_task.Walker(sidewalk_task.POLICY), sidewalk_task.StreetDanger(sidewalk_task.DANGER)
    )


def rollouts_file(name: str, results: Path = RESULTS) -> Path:
    return results / f"safe_planning_{name}.npz"


def collected(name: str, results: Path = RESULTS) -> Table | None:
    """The rollouts that are kept of a task; None if there are none yet. Those by depth ship with
    the package."""
    if name == "depth":
        return table_of(indoor_navigation())
    path = rollouts_file(name, results)
    if not path.exists():
        return None
    with np.load(path, allow_pickle=False) as held:
        return table_of(SimpleNamespace(**held))


def keep(name: str, rollouts: Rollouts, results: Path = RESULTS) -> Path:
    """Write the columns that matter, as small as they go; the same rollouts give the same bytes."""
    path = rollouts_file(name, results)
    write_table(path, {key: rollouts.columns[key].astype(kind) for key, kind in TYPES.items()})
    return path


def packages(name: str) -> dict[str, Any]:
    """The versions that a rollout depends on."""
    needed = {
        "depth": ("mujoco", "numpy"),
        "camera": ("mujoco", "numpy", "torch"),
        "sidewalk": ("miniworld", "pyglet", "numpy"),
    }
    return {package: version(package) for package in needed[name]}
