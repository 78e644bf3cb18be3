"""Forks against labels, from the same simulator: what each certifies, and what it costs.

    python -m experiments.shield.forks pendulum robot highway

Every task is collected twice on the same seeds, as forks and as labels, certified at the same xi
and delta, and the thresholds are compared on rollouts of other seeds: how often the shield never
fires and the rollout ends well, and how often it is unsafe. The pendulum is Gymnasium's
InvertedPendulum in a wind that its policy, a quick PPO, has never met; its backup is an LQR. The
highway is highway-env's own. What is found goes to experiments/results/shield_forks.json. The
pendulum needs stable-baselines3, the highway highway-env.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import gymnasium
import mujoco
import numpy as np
from scipy.linalg import solve_discrete_are

from experiments.shield.progress import shown
from experiments.shield.task import robot
from pacbound.shield import ForkedRollouts, Task, collect_rollouts
from pacbound.shield.robot import RestorableMujoco
from pacbound.shield.robot.rooms import CALIBRATION, TEST

RESULTS = Path("experiments/results/shield_forks.json")
PENDULUM, GUSTS, KEPT = "InvertedPendulum-v5", 4.0, 0.9


class Counted(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Counts the steps of all simulations in this process."""

    steps = 0

    def step(self, action: Any) -> Any:
        Counted.steps += 1
        return self.env.step(action)


class Wind(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Pushes the pole by a force that changes from step to step; MuJoCo keeps it in its state."""

    def step(self, action: Any) -> Any:
        env: Any = self.unwrapped
        pushes, noise = env.data.xfrc_applied, env.np_random.normal()
        pushes[2, 0] = KEPT * pushes[2, 0] + GUSTS * np.sqrt(1 - KEPT**2) * noise
        return self.env.step(action)


def still() -> Any:
    return gymnasium.make(PENDULUM, max_episode_steps=-1)


def windy() -> Any:
    return RestorableMujoco(Counted(Wind(still())), is_unsafe=_has_fallen, is_stopped=_is_upright)


def _has_fallen(env: Any) -> bool:
    return bool(abs(env.unwrapped.data.qpos[1]) > 0.2)


def _is_upright(env: Any) -> bool:
    data = env.unwrapped.data
    return bool(abs(data.qpos[1]) < 0.06 and abs(data.qvel[1]) < 0.5)


def lqr() -> np.ndarray[Any, Any]:
    """The gains of a linear controller, from finite differences of the simulator."""
    env = still().unwrapped
    env.reset(seed=0)

    def after(state: Any, action: float) -> Any:
        mujoco.mj_resetData(env.model, env.data)
        env.data.qpos[:], env.data.qvel[:] = state[:2], state[2:]
        env.do_simulation([action], env.frame_skip)
        return np.concatenate([env.data.qpos, env.data.qvel])

    tiny, zero = 1e-5, np.zeros(4)
    moves = np.array([(after(tiny * one, 0.0) - after(zero, 0.0)) / tiny for one in np.eye(4)]).T
    pushed = ((after(zero, tiny) - after(zero, 0.0)) / tiny)[:, None]
    costs, price = np.diag([1.0, 50.0, 0.1, 1.0]), np.array([[0.1]])
    value = solve_discrete_are(moves, pushed, costs, price)
    return np.linalg.solve(price + pushed.T @ value @ pushed, pushed.T @ value @ moves)


def steered(gains: Any, seen: Any) -> Any:
    return np.clip(-gains @ seen, -3.0, 3.0)


def leaning(seen: Any) -> float:
    """How far the pole leans, and how fast it goes on leaning."""
    return float(min(1.0, abs(seen[1] + 0.15 * seen[3]) / 0.3))


def pendulum(policy: Path) -> Task:
    ppo = import_module("stable_baselines3").PPO
    if not policy.exists():
        policy.parent.mkdir(parents=True, exist_ok=True)
        learner = ppo("MlpPolicy", gymnasium.make(PENDULUM), seed=0, n_steps=1024, device="cpu")
        learner.learn(30_000).save(policy)
    return Task(
        windy,
        partial(acted, weights_of(ppo.load(policy, device="cpu"))),
        partial(steered, lqr()),
        leaning,
        horizon=60,
        backup_steps=60,
        identity="InvertedPendulum in the wind, PPO of 30,000 steps",
    )


def weights_of(model: Any) -> list[tuple[Any, Any]]:
    """Weights and biases of a learned policy, layer by layer: it then acts without torch."""
    layers = [*model.policy.mlp_extractor.policy_net, model.policy.action_net]
    kept = (layer for layer in layers if hasattr(layer, "weight"))
    return [(x.weight.detach().numpy(), x.bias.detach().numpy()) for x in kept]


def acted(layers: list[tuple[Any, Any]], seen: Any) -> Any:
    """What the policy does, without its noise."""
    for weight, bias in layers[:-1]:
        seen = np.tanh(weight @ seen + bias)
    weight, bias = layers[-1]
    return np.clip(weight @ seen + bias, -3.0, 3.0)


def highway(_: Path) -> Task:
    """A driver that speeds up in its lane; the backup slows down."""
    import_module("highway_env")
    return Task(
        crowded,
        policy=lambda seen: 1 if seen[0][3] >= 28 else 3,
        backup=lambda _: 4,
        danger=closing_in,
        horizon=15,
        backup_steps=6,
        unsafe=lambda env, _: bool(env.unwrapped.vehicle.crashed),
        restore="deepcopy",
        identity="highway-fast-v0, keeps its lane",
    )


def crowded() -> Any:
    seen = {"type": "Kinematics", "vehicles_count": 5, "normalize": False}
    config = {"observation": seen, "duration": 40, "vehicles_count": 20}
    return Counted(gymnasium.make("highway-fast-v0", config=config, max_episode_steps=-1))


def closing_in(seen: Any) -> float:
    """High where the car ahead in the same lane would be reached soon."""
    others = seen[1:][seen[1:, 0] > 0]
    ahead = others[(others[:, 1] > 0) & (abs(others[:, 2]) < 2.0)]
    if not len(ahead):
        return 0.0
    seconds = np.maximum(0.0, ahead[:, 1] - 5.0) / np.maximum(0.1, -ahead[:, 3])
    return float(np.exp(-np.min(seconds) / 2))


def the_robot(_: Path) -> Task:
    task = robot()
    made: Any = task.environment
    return replace(task, environment=lambda: Counted(made()), identity="the robot, counted")


TASKS: dict[str, tuple[Callable[[Path], Task], int, float]] = {
    "pendulum": (pendulum, 2000, 0.1),
    "robot": (the_robot, 2000, 0.1),
    "highway": (highway, 500, 0.2),
}


def compared(task: Task, n: int, xi: float, delta: float = 0.01) -> dict[str, Any]:
    """Both ways on the same seeds, and both thresholds on others."""
    started, Counted.steps = time.perf_counter(), 0
    forks = collect_rollouts(task, seeds=CALIBRATION[:n], progress=shown("forks"))
    fork_steps, Counted.steps = Counted.steps, 0
    labels = collect_rollouts(
        task, seeds=CALIBRATION[:n], outcome="labels", progress=shown("labels")
    )
    label_steps = Counted.steps
    by_forks = forks.certify(xi=xi, delta=delta)
    by_labels = labels.certify(xi=xi, delta=delta)
    product = labels.certify(xi=xi, delta=delta, bound="product")
    fresh = collect_rollouts(task, seeds=TEST[: min(n, 1000)], progress=shown("fresh"))
    grid = np.unique(np.concatenate([forks.highest[forks.highest < 65537], [0]])) / 65536
    dominated = all(
        forks.unsafe_at(at).sum() <= (labels.unsafe & ~(labels.score >= at)).sum() for at in grid
    )
    ways = {"forks": by_forks, "labels": by_labels, "product": product}
    return {
        "n": n,
        "xi": xi,
        "delta": delta,
        "unsafe_without_a_shield": round(float(forks.unsafe_at(np.inf).mean()), 4),
        **{name: seen(fresh, certificate) for name, certificate in ways.items()},
        "misses_at_most_those_of_labels_at_every_threshold": bool(dominated),
        "simulator_steps": {"forks": fork_steps, "labels": label_steps},
        "minutes": round((time.perf_counter() - started) / 60, 1),
    }


def seen(fresh: ForkedRollouts, certificate: Any) -> dict[str, Any]:
    """What a threshold does on rollouts that it was not certified from."""
    if not certificate.certified:
        return {"certified": False}
    fired, alone = fresh.fired_at(certificate.threshold), fresh.unsafe_at(np.inf)
    return {
        "threshold": certificate.threshold,
        "never_fired_and_successful": round(float((~fired & ~alone).mean()), 4),
        "unsafe": round(float(fresh.unsafe_at(certificate.threshold).mean()), 4),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tasks", nargs="+", choices=list(TASKS))
    parser.add_argument("--policy", type=Path, default=Path("experiments/runs/pendulum_ppo.zip"))
    parser.add_argument("--rollouts", type=int, help="fewer than the task has")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    record = json.loads(options.out.read_text()) if options.out.exists() else {}
    for name in options.tasks:
        make, n, xi = TASKS[name]
        record[name] = {
            "command": f"python -m experiments.shield.forks {name}"
            + (f" --rollouts {options.rollouts}" if options.rollouts else ""),
            **compared(make(options.policy), options.rollouts or n, xi),
        }
        options.out.write_text(json.dumps(record, indent=2) + "\n")
        print(json.dumps(record[name], indent=2))


if __name__ == "__main__":
    main()
