"""Never two different things under one identity: a folder is resumed with what it was begun with,
or not at all."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

pytest.importorskip("joblib", reason="joblib is not installed: pip install 'pacbound[shield]'")

import gymnasium
from tests.shield.cars import Car, brake, danger, labelled, rash, slippery

from pacbound.errors import InvalidValueError
from pacbound.shield import PerRollout, Rollouts, Task, run_shielded
from pacbound.shield.rollouts.identity import digest_of, name_of

ROOT = Path(__file__).parents[2]
SCALE = 0.1


class Model:
    """A danger model with weights."""

    def __init__(self, weight: float, hidden: Any = None) -> None:
        self.weights = np.full(3, weight)
        self.hidden = hidden

    def __call__(self, observation: Any) -> float:
        return float(np.clip(self.weights[0] * observation[1], 0, 1))

    def score(self, observation: Any) -> float:
        return self(observation)

    def other_score(self, observation: Any) -> float:
        return self(observation)


def closure(captured: Any) -> Callable[[Any], float]:
    def scaled(observation: Any) -> float:
        return float(np.clip(np.sum(captured) * observation[1], 0, 1))

    return scaled


def calling(model: Any) -> Callable[[Any], float]:
    return lambda observation: float(model(observation))


def with_default(weight: float) -> Callable[[Any], float]:
    def scaled(observation: Any, weight: float = weight) -> float:
        return float(np.clip(weight * observation[1], 0, 1))

    return scaled


def reads_a_global(scale: float) -> Callable[[Any], float]:
    """A function that reads a value of its module, as scripts and notebooks do."""
    home: dict[str, Any] = {"np": np, "SCALE": scale}
    exec("def scaled(x):\n    return float(np.clip(SCALE * x[1], 0, 1))", home)
    found: Callable[[Any], float] = home["scaled"]
    return found


def reads_a_module(scale: float) -> Callable[[Any], float]:
    """A function that reads a value of another module of the user's."""
    module = ModuleType("a_module_of_the_user")
    vars(module)["SCALE"] = scale
    home: dict[str, Any] = {"np": np, "settings": module}
    exec("def scaled(x):\n    return float(np.clip(settings.SCALE * x[1], 0, 1))", home)
    found: Callable[[Any], float] = home["scaled"]
    return found


def cached(weight: float) -> Callable[[Any], float]:
    @cache
    def scaled(speed: float) -> float:
        return min(1.0, weight * speed)

    return lambda observation: scaled(float(observation[1]))


def of_class(weight: float) -> Any:
    class Scaled:
        scale = weight

        def __call__(self, observation: Any) -> float:
            return float(np.clip(self.scale * observation[1], 0, 1))

    return Scaled()


def per_rollout(weight: float) -> PerRollout:
    return PerRollout(lambda rng: Model(weight))


def network(weight: float) -> Any:
    torch = pytest.importorskip("torch")
    module = torch.nn.Sequential(torch.nn.Linear(2, 1), torch.nn.Sigmoid())
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.fill_(weight)
    return module.double()


def asks_a_network(weight: float) -> Callable[[Any], float]:
    torch = pytest.importorskip("torch")
    module = network(weight).requires_grad_(False)
    return lambda observation: float(module(torch.tensor(observation, dtype=torch.float64)))


MAKERS = [
    Model,
    closure,
    lambda weight: closure(np.full(2, weight)),
    lambda weight: closure([weight]),
    lambda weight: calling(Model(weight)),
    with_default,
    reads_a_global,
    reads_a_module,
    cached,
    of_class,
    per_rollout,
    asks_a_network,
    lambda weight: Model(weight).score,
    lambda weight: partial(Model.__call__, Model(weight)),
    lambda weight: partial(calling, Model(weight))(),
    lambda weight: eval(f"lambda x: float(np.clip({weight} * x[1], 0, 1))"),
]


@pytest.mark.parametrize("make", MAKERS)
def test_things_of_one_name_with_other_contents_are_told_apart(
    make: Callable[[float], Any],
) -> None:
    one, same, other = make(0.1), make(0.1), make(0.2)
    assert name_of(one) == name_of(other)
    assert digest_of(one) is not None
    assert digest_of(one) == digest_of(same)
    assert digest_of(one) != digest_of(other)


@pytest.mark.parametrize("make", MAKERS)
def test_a_folder_is_not_resumed_with_another_danger_model_of_the_same_name(
    make: Callable[[float], Any], tmp_path: Path
) -> None:
    def collected(weight: float) -> Rollouts:
        return labelled(
            slippery, rash, brake, make(weight), horizon=40, seeds=range(20), folder=tmp_path
        )

    first = collected(0.1)
    assert collected(0.1).score.tobytes() == first.score.tobytes()
    with pytest.raises(InvalidValueError, match=r"begun with another plan: danger was"):
        collected(0.2)


def test_two_methods_of_one_object_and_two_modes_of_one_network_are_told_apart() -> None:
    model = Model(0.1)
    assert digest_of(model.score) != digest_of(model.other_score)
    torch = pytest.importorskip("torch")
    module = network(0.1)
    assert digest_of(module.train()) != digest_of(module.eval())
    assert digest_of(torch.zeros(3)) != digest_of(torch.zeros(1, 3))
    half = torch.zeros(3, dtype=torch.bfloat16)
    assert digest_of(half) == digest_of(half.clone()) != digest_of(half.float())


class Secretive(Model):
    """A model that pickles without its weights, and finds them again."""

    def __getstate__(self) -> dict[str, Any]:
        return {}


def test_what_behaves_differently_is_told_apart_even_where_it_looks_alike() -> None:
    one, other = {"relu": 1, "linear": 2}, {"linear": 2, "relu": 1}
    assert digest_of(one) != digest_of(other), "a network may be built in that order"
    masked = [np.ma.masked_array([1.0, 2.0], mask) for mask in ([True, False], [False, False])]
    assert digest_of(masked[0]) != digest_of(masked[1])
    assert digest_of(Secretive(0.1)) is None, "a copy of it is another one"
    assert digest_of(np.array([1, "a"], dtype=object)) != digest_of(
        np.array([1, "b"], dtype=object)
    )
    assert digest_of(1) != digest_of(1.0) != digest_of(True)
    assert digest_of(("a", "bc")) != digest_of(("ab", "c"))


@pytest.mark.parametrize("part", ["policy", "backup", "danger", "success", "environment"])
def test_every_part_of_a_task_is_told_from_others(part: str, tmp_path: Path) -> None:
    def made(value: int) -> dict[str, Any]:
        parts: dict[str, Any] = {
            "environment": lambda: Car(slip=0.1 * value),
            "policy": lambda observation: value * 0 + rash(observation),
            "backup": lambda observation: value * 0 - 1,
            "danger": lambda observation: value * 0 + danger(observation),
            "success": lambda env, info: bool(value and info.get("success")),
        }
        return {part: parts[part]}

    plain: dict[str, Any] = {
        "environment": Car,
        "policy": rash,
        "backup": brake,
        "danger": danger,
        "horizon": 40,
    }
    options: dict[str, Any] = {"seeds": range(5), "folder": tmp_path / "plain"}
    labelled(Task(**{**plain, **made(1)}), **options)
    labelled(Task(**{**plain, **made(1)}), **options)
    with pytest.raises(InvalidValueError, match=f"{part} was"):
        labelled(Task(**{**plain, **made(2)}), **options)
    options = {
        "seeds": range(5),
        "folder": tmp_path / "shielded",
        "certificate_or_thresholds": 0.5,
    }
    run_shielded(Task(**{**plain, **made(1)}), **options)
    with pytest.raises(InvalidValueError, match=f"{part} was"):
        run_shielded(Task(**{**plain, **made(2)}), **options)


def test_a_registered_name_stands_for_what_it_makes(tmp_path: Path) -> None:
    def register(slip: float) -> None:
        gymnasium.registry.pop("pacbound/Car-v0", None)
        gymnasium.register("pacbound/Car-v0", lambda: Car(slip))  # type: ignore[arg-type]

    options: dict[str, Any] = {"horizon": 40, "seeds": range(5), "folder": tmp_path}
    try:
        for slip in (0.0, 0.0):
            register(slip)
            labelled("pacbound/Car-v0", rash, brake, danger, **options)
        register(0.5)
        with pytest.raises(InvalidValueError, match="environment was"):
            labelled("pacbound/Car-v0", rash, brake, danger, **options)
    finally:
        gymnasium.registry.pop("pacbound/Car-v0", None)


class Guarded(Model):
    """A danger model that holds what cannot be compared."""

    def __init__(self, weight: float) -> None:
        super().__init__(weight, threading.Lock())


def test_what_has_no_identity_begins_a_folder_and_is_not_resumed(tmp_path: Path) -> None:
    assert digest_of(Guarded(0.1)) is None
    assert digest_of(calling(Guarded(0.1))) is None
    assert digest_of(np.frompyfunc(rash, 1, 1)) is None

    def collected(weight: float, **more: Any) -> Rollouts:
        task = Task(Car, rash, brake, Guarded(weight), horizon=40, **more)
        return labelled(task, seeds=range(20), folder=tmp_path / str(len(more)))

    first = collected(0.1)
    for more in ({}, {"identity": {"danger": "guarded"}}):
        with pytest.raises(InvalidValueError, match=r"cannot be resumed.*of danger.*identity=\{"):
            labelled(
                Task(Car, rash, brake, Guarded(0.1), horizon=40, **more),  # type: ignore[arg-type]
                seeds=range(20),
                folder=tmp_path / "0",
            )
    assert Rollouts.load(tmp_path / "0").score.tobytes() == first.score.tobytes()
    collected(0.1, identity={"danger": "guarded"})
    again = collected(0.1, identity={"danger": "guarded"})
    assert again.score.tobytes() == first.score.tobytes()
    with pytest.raises(InvalidValueError, match=r"danger was .*'guarded'.* and is .*'another'"):
        collected(0.2, identity={"danger": "another"})


def test_one_text_stands_for_all_parts(tmp_path: Path) -> None:
    def collected(identity: str) -> Rollouts:
        return labelled(
            Car,
            rash,
            brake,
            Guarded(0.1),
            horizon=40,
            seeds=range(20),
            folder=tmp_path,
            identity=identity,
        )

    assert collected("of May").score.tobytes() == collected("of May").score.tobytes()
    with pytest.raises(InvalidValueError, match=r"backup was .*of May.* and is .*of June"):
        collected("of June")


def test_an_object_that_counts_its_calls_can_be_resumed(tmp_path: Path) -> None:
    class Counting(Model):
        calls = 0

        def __call__(self, observation: Any) -> float:
            self.calls += 1
            return super().__call__(observation)

    # Each run passes a new one; what a rehearsal does to it does not matter.
    for _ in range(2):
        labelled(Car, rash, brake, Counting(0.1), horizon=40, seeds=range(20), folder=tmp_path)


PROGRAM = """
from functools import partial
import numpy as np
from tests.shield import test_identity as here
from tests.shield.cars import Car, CarWithClearance, rash, slippery
from pacbound.shield import PerRollout
from pacbound.shield.rollouts.identity import digest_of

def names(x):
    return x in {"left", "right", "ahead"}

things = [Car, CarWithClearance, rash, slippery, names, partial(Car, slip=0.1), here.Model(0.1),
          here.closure({"a", "b", "c"}), here.closure({"b": 1, "a": 2}), here.cached(0.1),
          here.calling(here.Model(0.1)), here.per_rollout(0.1), here.reads_a_global(0.1),
          np.clip, np.exp, here.closure(frozenset(["u", "v", "w"])), lambda x: names(x)]
print([digest_of(thing) for thing in things])
"""


@pytest.mark.slow
def test_identities_are_the_same_in_every_process() -> None:
    told = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(told) == 1
    listed = told.pop()
    assert "None" not in listed
    assert len(set(listed.split(","))) == 17, "no two of them are the same"


def test_where_code_stands_in_a_file_does_not_matter() -> None:
    def compiled(before: str) -> Any:
        home: dict[str, Any] = {}
        exec(before + "def f(x):\n    return x + 1", home)
        return home["f"]

    assert digest_of(compiled("")) == digest_of(compiled("\n\n\n"))
    assert digest_of(compiled("")) != digest_of(eval("lambda x: x + 1"))


def test_things_that_lead_back_to_themselves_have_an_identity() -> None:
    def again(depth: int) -> Any:
        return again(depth - 1) if depth else loop

    loop: list[Any] = [1]
    loop.append(loop)
    assert digest_of(again) is not None
    assert digest_of(loop) is not None
