"""The figures of the experiment: what shields do in new rooms, in numbers and from above."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from experiments.method_figures import safety_against_desired, success_against_safety
from experiments.robot import DangerModel, ImagePolicy, IndoorNavigation, brake
from experiments.shield.rooms_from_above import Drive, drawn
from experiments.shield.task import HORIZON
from experiments.shield.thresholds import DELTA, METHODS, XI, Choice
from pacbound import Shield
from pacbound.shield import ShieldedRollouts

SHOWN = 0.1
NAMES = {
    "exact": "exact",
    "product": "product",
    "histogram": "histogram binning",
    "naive": "threshold 0.5",
    "xi-naive": "threshold xi",
}
CERTIFIED = [NAMES[method] for method, (_, certified) in METHODS.items() if certified]


def success_safety(record: dict[str, Any]) -> Figure:
    """Left: success against safety at one xi. Right: the safety that was reached against that which
    was asked for."""
    figure = Figure(figsize=(14, 6), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subfigures(1, 2, squeeze=False)[0]
    rows, total = record["results"], record["test_rollouts"]
    counts = {
        NAMES[row["method"]]: (row["unsafe"], row["success"]) for row in rows if row["xi"] == SHOWN
    }
    counts["no shield"] = (record["policy_alone"]["unsafe"], record["policy_alone"]["success"])
    success_against_safety(
        left.add_subplot(), counts, rollouts=total, xi=SHOWN, certified=CERTIFIED, delta=DELTA
    )
    unsafe = {
        name: [row["unsafe"] for row in rows if row["method"] == method]
        for method, name in NAMES.items()
    }
    safety_against_desired(
        right.add_subplot(), XI, unsafe, rollouts=total, certified=CERTIFIED, delta=DELTA
    )
    return figure


def rollouts(chosen: list[Choice], tested: ShieldedRollouts) -> Figure:
    """A room in which the policy alone collides, and the certified shield brakes in time."""
    threshold = next(
        choice.threshold for choice in chosen if (choice.xi, choice.method) == (SHOWN, "exact")
    )
    alone, shielded = tested.at(np.inf), tested.at(threshold)
    # The first room in which the robot has driven for a while before it matters, so that there is
    # something to see.
    worth_seeing = alone.unsafe & ~shielded.unsafe & (shielded.fired_at >= 20)
    seed = int(alone.seed[np.flatnonzero(worth_seeing)[0]])
    drives = {
        "Shield off": drive(seed, np.inf),
        f"Shield on, certified for {SHOWN:g}": drive(seed, threshold),
    }
    env = IndoorNavigation()
    _, info = env.reset(seed=seed)
    return drawn(info["room"], drives)


def drive(seed: int, threshold: float) -> Drive:
    """The way of the robot under a shield, until it stands, arrives or collides."""
    env, shield = (
        IndoorNavigation(),
        Shield(ImagePolicy.load(), brake, DangerModel.load(), threshold),
    )
    observation, info = env.reset(seed=seed)
    poses, fired_at = [info["pose"]], -1
    while not (info["unsafe"] or info["success"] or (fired_at < 0 and len(poses) > HORIZON)):
        action = shield(observation)
        if shield.fired and fired_at < 0:
            fired_at = len(poses) - 1
        if shield.fired and env.is_stopped():
            break
        observation, _, _, _, info = env.step(action)
        poses.append(info["pose"])
    return Drive(
        np.array(poses),
        fired_at=fired_at,
        collided=info["unsafe"],
        success=info["success"] and fired_at < 0,
    )
