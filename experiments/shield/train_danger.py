"""Train the robot's danger model on rollouts of its policy, and measure how well it ranks, from the
repository root:

    python -m experiments.shield.train_danger

It takes a few minutes on two cores: 500 rollouts with horizon 100, as in the paper, each of them
followed up to the first state from which simulated braking comes too late. The policy must be
trained first.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import rankdata

from experiments.robot import DangerModel, ImagePolicy, IndoorNavigation, brake
from experiments.robot.inference import WEIGHTS
from experiments.robot.rooms import DANGER_TRAINING, TUNING
from experiments.shield.networks import arrays, train_danger, write_weights
from experiments.shield.progress import shown
from experiments.shield.task import HORIZON
from pacbound.shield import Frames, Rollouts, Task, collect_rollouts

FIRST_ROOM = 2000  # of those for tuning; the design of the network was chosen on the ones before


def main() -> None:
    options = parse()
    torch.set_num_threads(
        1
    )  # the networks are small, and the weights must not depend on the machine's cores
    torch.use_deterministic_algorithms(mode=True)
    started = time.perf_counter()
    policy = ImagePolicy.load(options.policy)
    print(f"{options.rollouts} rollouts of the policy")
    _, frames = rolled_out(policy, None, DANGER_TRAINING[: options.rollouts], options.jobs)
    print(
        f"training on {len(frames)} frames, {int(frames.unrecoverable.sum())} of them "
        "un-recoverable"
    )
    network = train_danger(
        frames.observations,
        frames.unrecoverable,
        epochs=options.epochs,
        seed=options.seed,
        progress=shown("training"),
    )
    write_weights(options.out, arrays(network))
    print(f"measuring on {options.measured} new rooms")
    figures = measured(policy, DangerModel.load(options.out), options.measured, options.jobs)
    trained_on = {"frames": len(frames), "unrecoverable": int(frames.unrecoverable.sum())}
    print(
        json.dumps(
            {**trained_on, **figures, "minutes": round((time.perf_counter() - started) / 60, 1)},
            indent=2,
        )
    )


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--policy", type=Path, help="the policy's .npz file (default: the one of the package)"
    )
    parser.add_argument(
        "--out", type=Path, default=WEIGHTS / "danger.npz", help="the .npz file to write"
    )
    parser.add_argument("--rollouts", type=int, default=500)
    parser.add_argument("--epochs", type=int, default=80)
    parser.add_argument(
        "--seed", type=int, default=0, help="of the first weights and the order of the frames"
    )
    parser.add_argument(
        "--measured", type=int, default=1000, help="how many new rooms the model is measured on"
    )
    parser.add_argument("--jobs", type=int, default=2)
    return parser.parse_args()


def rolled_out(
    policy: ImagePolicy, danger: DangerModel | None, seeds: range, jobs: int
) -> tuple[Rollouts, Frames]:
    """Rollouts of the policy up to the first un-recoverable state, and every frame of them with its
    label."""
    with tempfile.TemporaryDirectory() as folder:
        rollouts = collect_rollouts(
            Task(IndoorNavigation, policy, brake, danger, horizon=HORIZON, identity="training"),
            seeds=seeds,
            outcome="labels",
            keep_frames=True,
            folder=folder,
            n_jobs=jobs,
            progress=shown("rollouts"),
        )
        return rollouts, Frames.load(folder)


def measured(policy: ImagePolicy, danger: DangerModel, rooms: int, jobs: int) -> dict[str, Any]:
    """How well the danger tells un-recoverable frames from others, and unsafe rollouts from safe
    ones, in new rooms."""
    rollouts, frames = rolled_out(policy, danger, TUNING[FIRST_ROOM : FIRST_ROOM + rooms], jobs)
    seen = frames.observations
    dangers = np.array(
        [danger({name: seen[name][row] for name in seen}) for row in range(len(frames))]
    )
    misses = np.quantile(rollouts.score[rollouts.unsafe], [0.05, 0.1, 0.2])
    return {
        "rollouts": len(rollouts),
        "unsafe": round(float(np.mean(rollouts.unsafe)), 3),
        "auc_of_frames": round(auc(dangers, frames.unrecoverable), 4),
        "auc_of_rollouts": round(auc(rollouts.score, rollouts.unsafe), 4),
        "safe_rollouts_stopped_when_missing_5_10_20_percent_of_unsafe": [
            round(float(np.mean(rollouts.score[~rollouts.unsafe] >= threshold)), 3)
            for threshold in misses
        ],
    }


def auc(scores: NDArray[np.float64], positive: NDArray[np.bool_]) -> float:
    """The chance that a positive scores above a negative, ties counting half."""
    ranks = rankdata(scores)
    positives, negatives = int(positive.sum()), int((~positive).sum())
    return float(
        (ranks[positive].sum() - positives * (positives + 1) / 2) / (positives * negatives)
    )


if __name__ == "__main__":
    main()
