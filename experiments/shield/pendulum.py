"""Gymnasium's InvertedPendulum in a wind that its policy has never met.

The policy is a PPO that was stopped after 13,312 steps of training. The pole must not lean too far,
and the cart must not come to the end of its rail. The backup is an LQR, which has to keep the pole
for two seconds more, and at times loses it to a gust. The danger is what the LQR itself expects to
pay from where it would take over.

Training, wind and the length of the backup were chosen on other seeds than those of the results:
38 settings were looked at, with 150 to 600 rollouts each, in a simulation of the same equations.
Among them were settings in which forks and labels certify the same (little wind), and settings in
which neither certifies a useful threshold (much wind: the LQR itself drops the pole).
"""

from __future__ import annotations

from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import gymnasium
import mujoco
import numpy as np
from gymnasium.envs.mujoco.inverted_pendulum_v5 import InvertedPendulumEnv
from numpy.typing import NDArray
from scipy.linalg import solve_discrete_are

from pacbound.shield import Task

NAME = "InvertedPendulum-v5"
TRAINING = 13_312
GUSTS, KEPT = 2.2, 0.9  # newtons, and the share of a gust that is left after a step
HORIZON, BACKUP_STEPS = 100, 50  # of 0.04 seconds
MOST_FORCE, MOST_LEAN, RAIL = 3.0, 0.2, 0.95
WORST = 8.0  # the root of the LQR's cost at which the danger is 1

Array = NDArray[np.float64]


class Windy(InvertedPendulumEnv):
    """Gymnasium's pendulum with a force on its pole that changes from step to step, which MuJoCo
    keeps in its state. Rewards are left out: nobody looks at them, and steps are many."""

    whole = mujoco.mjtState.mjSTATE_INTEGRATION  # all that the next step depends on
    strength = GUSTS * np.sqrt(1 - KEPT**2)

    def step(self, action: Any) -> Any:
        data = self.data
        wind = data.xfrc_applied[2]
        wind[0] = KEPT * wind[0] + self.strength * self.np_random.standard_normal()
        data.ctrl[0] = action[0]
        mujoco.mj_step(self.model, data, nstep=self.frame_skip)
        return self._get_obs(), 0.0, False, False, {}

    def _get_obs(self) -> Array:
        seen = np.empty(4)
        seen[:2], seen[2:] = self.data.qpos, self.data.qvel
        return seen

    def save_state(self) -> Array:
        state = np.empty(mujoco.mj_stateSize(self.model, self.whole))
        mujoco.mj_getState(self.model, self.data, state, self.whole)
        return state

    def restore_state(self, state: Array) -> None:
        mujoco.mj_setState(self.model, self.data, state, self.whole)

    def is_unsafe(self) -> bool:
        place, lean = self.data.qpos
        return bool(abs(lean) > MOST_LEAN or abs(place) > RAIL)


def lqr() -> tuple[Array, Array]:
    """The gains of a linear controller and the matrix of what it expects to pay, from finite
    differences of the simulator."""
    env: Any = InvertedPendulumEnv()
    env.reset(seed=0)

    def after(state: Array, action: float) -> Array:
        mujoco.mj_resetData(env.model, env.data)
        env.data.qpos[:], env.data.qvel[:] = state[:2], state[2:]
        env.do_simulation([action], env.frame_skip)
        return np.concatenate([env.data.qpos, env.data.qvel])

    tiny, zero = 1e-5, np.zeros(4)
    moves = np.array([(after(tiny * one, 0.0) - after(zero, 0.0)) / tiny for one in np.eye(4)]).T
    pushed = ((after(zero, tiny) - after(zero, 0.0)) / tiny)[:, None]
    costs, price = np.diag([1.0, 50.0, 0.1, 1.0]), np.array([[0.1]])
    value: Array = solve_discrete_are(moves, pushed, costs, price)
    gains: Array = np.linalg.solve(price + pushed.T @ value @ pushed, pushed.T @ value @ moves)
    return gains, value


def steered(gains: Array, seen: Array) -> Array:
    """What the LQR does."""
    force = -float(gains[0] @ seen)
    return np.array([min(max(force, -MOST_FORCE), MOST_FORCE)])


def strain(value: Array, seen: Array) -> float:
    """The root of what the LQR expects to pay from here, in [0, 1]."""
    return min(1.0, float(np.sqrt(seen @ value @ seen)) / WORST)


def pendulum(policy: Path) -> Task:
    """The task; its policy is trained if there is no such file yet."""
    ppo = import_module("stable_baselines3").PPO
    if not policy.exists():
        policy.parent.mkdir(parents=True, exist_ok=True)
        learner = ppo("MlpPolicy", gymnasium.make(NAME), seed=0, n_steps=1024, device="cpu")
        learner.learn(TRAINING).save(policy)
    gains, value = lqr()
    return Task(
        Windy,
        partial(acted, weights_of(ppo.load(policy, device="cpu"))),
        partial(steered, gains),
        partial(strain, value),
        horizon=HORIZON,
        backup_steps=BACKUP_STEPS,
        success=lambda _env, _info: True,  # the pole still stands
        identity=f"InvertedPendulum in the wind, PPO of {TRAINING} steps",
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
    return np.clip(weight @ seen + bias, -MOST_FORCE, MOST_FORCE)
