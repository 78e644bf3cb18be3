"""Train the two networks that see the camera image, from the repository root:

    MUJOCO_GL=egl python -m experiments.safe_planning.camera_training

The policy imitates the expert in 200 rooms. The danger model learns from 500 rollouts of that
policy with a horizon of 100, as in the paper, each followed up to its first un-recoverable state.
Both are measured in rooms for tuning. Minutes on one core; a run that was stopped goes on where it
was.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from experiments.robot import Expert
from experiments.robot.rooms import DANGER_TRAINING, POLICY_TRAINING, TUNING
from experiments.safe_planning.camera_networks import (
    CameraDanger,
    CameraPolicy,
    DangerNetwork,
    PolicyNetwork,
    train,
)
from experiments.safe_planning.camera_task import DANGER, POLICY, CameraRoom, camera_robot
from experiments.shield.networks import arrays, write_weights
from experiments.shield.progress import shown
from experiments.shield.train_danger import auc
from pacbound.shield import Frames, Rollouts, collect_rollouts

HORIZON = 100
SEED = 0


def main() -> None:
    options = parse()
    # The weights must not depend on how many cores there are.
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(mode=True)
    started = time.perf_counter()
    record: dict[str, Any] = {
        "command": "python -m experiments.safe_planning.camera_training",
        "demonstrations": options.demonstrations,
        "rollouts": options.rollouts,
    }
    if not POLICY.exists():
        record["policy"] = make_policy(options)
    if not DANGER.exists():
        record["danger"] = make_danger(options)
    record["measured"] = measured(options)
    record["minutes"] = round((time.perf_counter() - started) / 60, 1)
    options.record.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(record, indent=2))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--demonstrations", type=int, default=200)
    parser.add_argument("--rollouts", type=int, default=500)
    parser.add_argument("--policy-epochs", type=int, default=8)
    parser.add_argument("--danger-epochs", type=int, default=20)
    parser.add_argument("--measured", type=int, default=200)
    parser.add_argument("--folder", type=Path, default=Path("experiments/runs/camera_frames"))
    parser.add_argument(
        "--record",
        type=Path,
        default=Path("experiments/results/safe_planning_camera_training.json"),
    )
    return parser.parse_args()


def make_policy(options: argparse.Namespace) -> dict[str, Any]:
    """A policy that does as the expert did: least squares between the actions."""
    say = shown("demonstrations")
    rows = []
    env = CameraRoom()
    for place, seed in enumerate(POLICY_TRAINING[: options.demonstrations]):
        observation, info = env.reset(seed=seed)
        expert = Expert(info["room"])
        for _ in range(HORIZON):
            action = expert.act(env.pose, env.speed)
            rows.append({**observation, "action": action})
            observation, _, terminated, _, _ = env.step(action)
            if terminated:
                break
        say((place + 1) / options.demonstrations)
    env.close()
    held = {name: np.stack([row[name] for row in rows]) for name in rows[0]}
    targets = torch.from_numpy(held["action"].astype(np.float32))
    torch.manual_seed(SEED)
    network = PolicyNetwork()
    train(
        network,
        held,
        torch.stack([targets, targets * torch.tensor([1.0, -1.0])]),
        nn.functional.mse_loss,
        epochs=options.policy_epochs,
        rate=2e-3,
        progress=shown("training"),
    )
    write_weights(POLICY, arrays(network))
    return {"frames": len(rows), "epochs": options.policy_epochs}


def make_danger(options: argparse.Namespace) -> dict[str, Any]:
    """A danger that is high on un-recoverable states: cross-entropy, in which the rarer kind of
    state weighs more."""
    rollouts, frames = rolled_out(options, "training", DANGER_TRAINING[: options.rollouts])
    late = frames.unrecoverable
    targets = torch.from_numpy(late.astype(np.float32)).unsqueeze(1)
    torch.manual_seed(SEED)
    network = DangerNetwork()
    # The policy's eye has seen more frames than there are un-recoverable ones: it is where the
    # danger's begins.
    with np.load(POLICY) as weights:
        trained = dict(weights)
    network.eye.load_state_dict(
        {
            name.removeprefix("eye."): torch.from_numpy(value)
            for name, value in trained.items()
            if name.startswith("eye.")
        }
    )
    train(
        network,
        frames.observations,
        torch.stack([targets, targets]),
        nn.BCEWithLogitsLoss(pos_weight=torch.tensor(float((~late).sum() / late.sum()) ** 0.5)),
        epochs=options.danger_epochs,
        rate=3e-3,
        progress=shown("training"),
    )
    write_weights(DANGER, arrays(network))
    return {
        "frames": len(frames),
        "unrecoverable": int(late.sum()),
        "safe_rollouts": int((~rollouts.unsafe).sum()),
        "epochs": options.danger_epochs,
    }


def measured(options: argparse.Namespace) -> dict[str, Any]:
    """How good both are in rooms that neither has seen."""
    rollouts = collect_rollouts(
        camera_robot(CameraPolicy(POLICY), CameraDanger(DANGER)),
        seeds=TUNING[: options.measured],
        outcome="labels",
        folder=options.folder / "measured",
        n_jobs=1,
        progress=shown("measuring"),
    )
    return {
        "rollouts": len(rollouts),
        "unsafe": int(rollouts.unsafe.sum()),
        "success": int((rollouts.success & ~rollouts.unsafe).sum()),
        "auc_of_rollouts": round(auc(rollouts.score, rollouts.unsafe), 4),
    }


def rolled_out(options: argparse.Namespace, name: str, seeds: range) -> tuple[Rollouts, Frames]:
    """Rollouts of the policy up to the first un-recoverable state, and every frame of them."""
    folder = options.folder / name
    rollouts = collect_rollouts(
        camera_robot(CameraPolicy(POLICY), None),
        seeds=seeds,
        outcome="labels",
        keep_frames=True,
        folder=folder,
        n_jobs=1,
        progress=shown("rollouts"),
    )
    return rollouts, Frames.load(folder)


if __name__ == "__main__":
    main()
