"""Train the walker and its danger model with scikit-learn, from the repository root:

    python -m experiments.safe_planning.sidewalk_training

The walker imitates a driver that knows where the goal is, from a few demonstrations, and is
imperfect on purpose. The danger model learns from 500 rollouts of it. A minute or two on one core.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from numpy.typing import NDArray
from sklearn.neural_network import MLPClassifier

from experiments.robot.rooms import DANGER_TRAINING, POLICY_TRAINING, TUNING
from experiments.safe_planning.sidewalk_task import (
    DANGER,
    FORWARD,
    HORIZON,
    POLICY,
    TURN_LEFT,
    TURN_RIGHT,
    Sidewalk,
    StreetDanger,
    Walker,
    features,
    walk,
)
from experiments.shield.networks import write_weights
from experiments.shield.progress import shown
from experiments.shield.train_danger import auc
from pacbound.shield import Frames, collect_rollouts

ARRIVED = np.radians(12)


def main() -> None:
    options = parse()
    started = time.perf_counter()
    record = {
        "command": "python -m experiments.safe_planning.sidewalk_training",
        "scikit_learn": sklearn.__version__,
        "policy": make_policy(options),
        "danger": make_danger(options),
        "measured": measured(options),
        "minutes": round((time.perf_counter() - started) / 60, 1),
    }
    options.record.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(record, indent=2))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--demonstrations", type=int, default=12)
    parser.add_argument("--rollouts", type=int, default=500)
    parser.add_argument("--measured", type=int, default=100)
    parser.add_argument("--folder", type=Path, default=Path("experiments/runs/sidewalk_frames"))
    parser.add_argument(
        "--record",
        type=Path,
        default=Path("experiments/results/safe_planning_sidewalk_training.json"),
    )
    return parser.parse_args()


def make_policy(options: argparse.Namespace) -> dict[str, Any]:
    env, seen, done = Sidewalk(), [], []
    say = shown("demonstrations")
    for place, seed in enumerate(POLICY_TRAINING[: options.demonstrations]):
        observation, _ = env.reset(seed=seed)
        for _ in range(HORIZON):
            action = wanted(env.bearing)
            seen.append(features(observation[None])[0])
            done.append(action)
            observation, _, terminated, _, _ = env.step(action)
            if terminated:
                break
        say((place + 1) / options.demonstrations)
    model = MLPClassifier((32,), alpha=1e-3, max_iter=60, early_stopping=True, random_state=0)
    model.fit(np.array(seen), np.array(done))
    write_weights(POLICY, weights(model))
    return {"demonstrations": options.demonstrations, "frames": len(seen)}


def wanted(bearing: float) -> int:
    """What a driver does who knows where the goal is."""
    if abs(bearing) <= ARRIVED:
        return FORWARD
    return TURN_LEFT if bearing > 0 else TURN_RIGHT


def make_danger(options: argparse.Namespace) -> dict[str, Any]:
    collect_rollouts(
        walk(Walker(POLICY), None),
        seeds=DANGER_TRAINING[: options.rollouts],
        outcome="labels",
        keep_frames=True,
        folder=options.folder,
        n_jobs=1,
        progress=shown("rollouts"),
    )
    frames = Frames.load(options.folder)
    pictures = frames.observations
    model = MLPClassifier((32,), alpha=1e-2, max_iter=40, early_stopping=True, random_state=0)
    late = frames.unrecoverable
    # The rarer kind of frame weighs more.
    weight = np.where(late, ((~late).sum() / max(late.sum(), 1)) ** 0.5, 1.0)
    model.fit(features(pictures), late, sample_weight=weight)
    write_weights(DANGER, weights(model))
    return {
        "rollouts": options.rollouts,
        "frames": len(frames),
        "unrecoverable": int(late.sum()),
    }


def measured(options: argparse.Namespace) -> dict[str, Any]:
    rollouts = collect_rollouts(
        walk(Walker(POLICY), StreetDanger(DANGER)),
        seeds=TUNING[: options.measured],
        outcome="labels",
        n_jobs=1,
        progress=shown("measuring"),
    )
    return {
        "rollouts": len(rollouts),
        "unsafe": int(rollouts.unsafe.sum()),
        "lost": int(rollouts.lost.sum()),
        "success": int((rollouts.success & ~rollouts.unsafe).sum()),
        "steps": round(float(rollouts.steps.mean()), 1),
        "auc_of_rollouts": round(auc(rollouts.score, rollouts.unsafe), 4),
    }


def weights(model: MLPClassifier) -> dict[str, NDArray[np.float32]]:
    held = {}
    for place, (weight, bias) in enumerate(zip(model.coefs_, model.intercepts_, strict=True)):
        held[f"weight.{place}"] = weight.astype(np.float32)
        held[f"bias.{place}"] = bias.astype(np.float32)
    return held


if __name__ == "__main__":
    main()
