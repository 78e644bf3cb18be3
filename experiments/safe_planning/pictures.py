"""Pictures of rollouts: what the camera sees on the way to something unsafe, and when the certified
shield would have stopped it. From the repository root:

    MUJOCO_GL=egl python -m experiments.safe_planning.pictures camera
    python -m experiments.safe_planning.pictures sidewalk

Shows the first new rollout in which the policy alone ends unsafe after a while and the shield,
certified at the default xi and delta, stops it in time. Seconds to minutes.
"""

from __future__ import annotations

import argparse
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray

from experiments import palette
from experiments.palette import light_grid
from experiments.record import STYLE
from experiments.robot.rooms import TEST
from experiments.safe_planning.ablation import DEFAULT_DELTA, DEFAULT_XI
from experiments.safe_planning.methods import threshold
from experiments.safe_planning.report import capital
from experiments.safe_planning.tasks import RESULTS, WORDS, collected, task
from pacbound import Shield
from pacbound.shield import Task

SHOWN = 6
LONG_ENOUGH, EARLY_ENOUGH = 24, 3
"""A rollout worth seeing has so many steps, and the shield fires so many before its end."""


@dataclass(frozen=True)
class Walk:
    """What the camera saw at each step, how dangerous it looked, and how it ended."""

    pictures: list[NDArray[np.uint8]]
    dangers: list[float]
    fired_at: int
    unsafe: bool


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("task", choices=("camera", "sidewalk"))
    parser.add_argument("--out", type=Path, default=RESULTS, help="the folder to write to")
    options = parser.parse_args()
    law = collected(options.task)
    if law is None:
        raise SystemExit(f"There are no rollouts of {options.task} yet.")
    limit = threshold("exact", law, xi=DEFAULT_XI, delta=DEFAULT_DELTA)
    seed, alone, shielded = found(task(options.task), limit)
    title = capital(WORDS[options.task].title)
    with rc_context(STYLE):
        figure = drawn(alone, shielded, limit, title)
        path = options.out / f"safe_planning_pictures_{options.task}"
        figure.savefig(path.with_suffix(".svg"), metadata={"Date": None})
    print(f"seed {seed}: {len(alone.dangers)} steps alone, fires at {shielded.fired_at}")


def found(whole: Task, limit: float) -> tuple[int, Walk, Walk]:
    """The first new rollout that is worth seeing, without and with the shield."""
    make: Any = whole.environment
    env = make()
    for seed in TEST:
        alone = walked(whole, env, seed, np.inf)
        if not alone.unsafe or len(alone.dangers) < LONG_ENOUGH:
            continue
        shielded = walked(whole, env, seed, limit)
        early = 0 <= shielded.fired_at <= len(alone.dangers) - EARLY_ENOUGH
        if early and not shielded.unsafe:
            return seed, alone, shielded
    raise SystemExit("There is no rollout that is worth seeing.")


def walked(whole: Task, env: Any, seed: int, limit: float) -> Walk:
    """One rollout under a shield, until it stands, arrives or is unsafe."""
    shield = Shield(whole.policy, whole.backup, whole.danger, limit)
    observation, info = env.reset(seed=int(seed))
    pictures, dangers, fired_at = [], [], -1
    for step in range(2 * whole.horizon):
        # A copy, since pictures are drawn when they are looked at.
        observation = deepcopy(observation)
        seen = observation["rgb"] if isinstance(observation, dict) else observation
        pictures.append(np.array(seen, dtype=np.uint8))
        dangers.append(float(whole.danger(observation)))
        if env.is_unsafe() or info.get("success") or (fired_at < 0 and step >= whole.horizon):
            break
        action = shield(observation)
        if shield.fired and fired_at < 0:
            fired_at = step
        if shield.fired and step > fired_at and env.is_stopped():
            break
        observation, _, _, _, info = env.step(action)
    return Walk(pictures, dangers, fired_at, env.is_unsafe())


def drawn(alone: Walk, shielded: Walk, limit: float, title: str) -> Figure:
    """Above, what the camera sees without a shield; below, the danger of every step."""
    figure = Figure(figsize=(12.5, 4.6), layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.add_gridspec(2, SHOWN, height_ratios=(1, 1.15))
    last, fires = len(alone.dangers) - 1, shielded.fired_at
    for column, step in enumerate(steps_shown(last, fires)):
        ax = figure.add_subplot(grid[0, column])
        ax.imshow(alone.pictures[step], interpolation="nearest")
        colour, words = palette.POLICY, f"step {step}"
        if step == fires:
            colour, words = palette.CERTIFIED, f"step {step}: the shield fires"
        elif step == last:
            colour, words = palette.UNSAFE, f"step {step}: unsafe"
        ax.set_title(words, color=colour)
        ax.set_xticks([])
        ax.set_yticks([])
        for spine in ax.spines.values():
            spine.set(color=colour, linewidth=1 if colour == palette.POLICY else 3)
    ax = figure.add_subplot(grid[1, :])
    light_grid(ax)
    ax.plot(alone.dangers, color=palette.OBSERVED, marker=".", label="danger without a shield")
    ax.axhline(limit, color=palette.IDEAL, linestyle=":", label=f"certified threshold {limit:.2f}")
    ax.axvline(fires, color=palette.CERTIFIED, linestyle="--", label="the shield fires, and stops")
    ax.axvline(last, color=palette.UNSAFE, linestyle="-", label="unsafe without a shield")
    ax.set(xlabel="step", ylabel="danger", xlim=(-0.5, last + 0.5))
    figure.legend(loc="outside lower center", ncols=4, frameon=False)
    figure.suptitle(title)
    return figure


def steps_shown(last: int, fires: int) -> list[int]:
    """Steps from the first to the last, that at which the shield fires among them."""
    steps = np.linspace(0, last, SHOWN).round().astype(int).tolist()
    nearest = min(range(1, SHOWN - 1), key=lambda place: abs(steps[place] - fires))
    steps[nearest] = fires
    return sorted(set(steps))


if __name__ == "__main__":
    main()
