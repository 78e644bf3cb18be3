"""Train the robot's policy by imitation of the expert, and measure it on new rooms, from the
repository root:

    python -m experiments.shield.train_policy

It takes a few minutes on two cores. The policy is imperfect on purpose: 200 demonstrations leave it
unsafe in about half of all rooms, as the policy of the paper is, so that a shield has something to
do.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from experiments.robot import ImagePolicy, IndoorNavigation, brake
from experiments.robot.inference import WEIGHTS
from experiments.robot.rooms import POLICY_TRAINING, TUNING
from experiments.shield.demonstrations import demonstrations
from experiments.shield.networks import arrays, train_policy, write_weights
from experiments.shield.progress import shown
from experiments.shield.task import HORIZON
from pacbound.shield import Task, collect_rollouts


def main() -> None:
    options = parse()
    torch.set_num_threads(
        1
    )  # the networks are small, and the weights must not depend on the machine's cores
    torch.use_deterministic_algorithms(mode=True)
    started = time.perf_counter()
    print(f"{options.rollouts} demonstrations of the expert")
    rows = demonstrations(POLICY_TRAINING[: options.rollouts], horizon=HORIZON, jobs=options.jobs)
    print(f"training on {len(rows['action'])} frames")
    network = train_policy(
        rows, rows["action"], epochs=options.epochs, seed=options.seed, progress=shown("training")
    )
    write_weights(options.out, arrays(network))
    print(f"measuring on {options.measured} new rooms")
    figures = {
        "frames": len(rows["action"]),
        **measured(ImagePolicy.load(options.out), options.measured, options.jobs),
    }
    print(
        json.dumps({**figures, "minutes": round((time.perf_counter() - started) / 60, 1)}, indent=2)
    )


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--out", type=Path, default=WEIGHTS / "policy.npz", help="the .npz file to write"
    )
    parser.add_argument(
        "--rollouts", type=int, default=200, help="how many rooms the expert demonstrates"
    )
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument(
        "--seed", type=int, default=0, help="of the first weights and the order of the frames"
    )
    parser.add_argument(
        "--measured", type=int, default=1000, help="how many new rooms the policy is measured on"
    )
    parser.add_argument("--jobs", type=int, default=2)
    return parser.parse_args()


def measured(policy: ImagePolicy, rooms: int, jobs: int) -> dict[str, Any]:
    """How often the policy stays recoverable and how often it reaches the goal, in rooms that it
    has not seen."""
    rollouts = collect_rollouts(
        Task(IndoorNavigation, policy, brake, horizon=HORIZON),
        seeds=TUNING[:rooms],
        outcome="labels",
        follow_through=True,
        n_jobs=jobs,
        progress=shown("rollouts"),
    )
    return {
        "rollouts": len(rollouts),
        "safe": round(float(np.mean(~rollouts.unsafe)), 3),
        "collided": round(float(np.mean(rollouts.collided)), 3),
        "success": round(float(np.mean(rollouts.success)), 3),
        "steps": round(float(np.mean(rollouts.steps)), 1),
    }


if __name__ == "__main__":
    main()
