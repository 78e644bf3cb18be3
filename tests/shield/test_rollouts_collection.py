"""A collection gives the same rows whoever runs it, survives being killed, and drops no rollout."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("joblib", reason="joblib is not installed: pip install 'pacbound[shield]'")

import joblib
from tests.products import standing_for
from tests.shield.cars import Car, brake, danger, labelled, of_parts, rash, slippery

from pacbound.errors import InvalidValueError
from pacbound.shield import Frames, Rollouts, Task, collect_rollouts, run_shielded

ROOT = Path(__file__).parents[2]
collect = partial(labelled, slippery, rash, brake, danger, horizon=40, identity="first")


def same(one: Any, other: Any) -> bool:
    return all(
        column.tobytes() == other.columns[name].tobytes() for name, column in one.columns.items()
    )


@pytest.fixture(scope="module")
def plain() -> Rollouts:
    return collect(seeds=range(200))


@pytest.mark.slow
@pytest.mark.parametrize("chunk", [1, 7, 200, 1000])
def test_rows_do_not_depend_on_the_chunks(plain: Rollouts, chunk: int) -> None:
    assert same(plain, collect(seeds=range(200), chunk=chunk))


# Other tests load libraries with threads of their own, which warn when the process is forked.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning", "ignore:.*fork.*:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:.*_at_fork.*:pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("backend", ["loky", "threading", "multiprocessing"])
def test_rows_are_the_same_to_the_bit_in_one_process_and_in_two(
    plain: Rollouts, backend: str, tmp_path: Path
) -> None:
    with joblib.parallel_config(backend=backend):
        assert same(plain, collect(seeds=range(200), n_jobs=2))
        kept = collect(seeds=range(200), n_jobs=2, folder=tmp_path)
    assert same(plain, kept)
    assert same(plain, Rollouts.load(tmp_path))


def in_parts(way: Any, folder: Path, environment: Any, **options: Any) -> Any:
    """What a folder keeps in 40 parts: labels and their frames, forks, or shielded rollouts."""
    options |= {"folder": folder, "chunk": 5, "seeds": range(200), "horizon": 40}
    # The environment of a process that is killed is slower, and gives the same.
    options["identity"] = "slippery"
    parts = environment, rash, brake, danger
    if way == "shielded":
        return of_parts(run_shielded, *parts, [0.5, np.inf], **options)
    options["keep_frames"] = way == "labels"
    return of_parts(collect_rollouts, *parts, outcome=way, **options)


PROGRAM = """
import sys, time
from tests.shield.cars import Car
from tests.shield.test_rollouts_collection import in_parts

class Slow(Car):
    def step(self, action):
        time.sleep(0.001)
        return super().step(action)

def slippery():
    return Slow(slip=0.1)

in_parts(sys.argv[1], sys.argv[2], slippery, n_jobs=int(sys.argv[3]))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("way", "n_jobs"),
    standing_for(
        [("labels", 1), ("labels", 2), ("forks", 1), ("shielded", 2)], [("labels", 1)], rest="long"
    ),
)
def test_a_collection_that_is_killed_half_way_goes_on_and_loses_nothing(
    tmp_path: Path, way: str, n_jobs: int
) -> None:
    folder = tmp_path / "rollouts"
    command = [sys.executable, "-c", PROGRAM, way, str(folder), str(n_jobs)]
    child = subprocess.Popen(command, cwd=ROOT, start_new_session=True)
    deadline = time.monotonic() + 60
    while len(list(folder.glob("part-*.npz"))) < 5:
        assert child.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    child.send_signal(signal.SIGKILL)
    child.wait()
    before = {path.name: path.stat().st_mtime_ns for path in folder.glob("part-*.npz")}
    assert 5 <= len(before) < 40
    whole = in_parts(way, tmp_path / "whole", slippery)
    with pytest.raises(InvalidValueError, match=r"of 40 parts are missing.*resume"):
        type(whole).load(folder)
    shares: list[float] = []
    assert same(whole, in_parts(way, folder, slippery, progress=shares.append))
    assert same(whole, type(whole).load(folder))
    assert {name: (folder / name).stat().st_mtime_ns for name in before} == before, (
        "what was there is not made again"
    )
    assert shares[0] == len(before) * 5 / 200
    assert shares[-1] == 1.0
    if way == "labels":
        kept, expected = (Frames.load(one).observations for one in (folder, tmp_path / "whole"))
        assert kept.tobytes() == expected.tobytes()


def test_an_interrupt_keeps_what_is_complete_and_returns_nothing(
    plain: Rollouts, tmp_path: Path
) -> None:
    def interrupt(share: float) -> None:
        if share >= 0.5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        collect(seeds=range(200), chunk=20, folder=tmp_path, progress=interrupt)
    assert len(list(tmp_path.glob("part-*.npz"))) == 5
    assert same(plain, collect(seeds=range(200), chunk=20, folder=tmp_path))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seeds": range(1, 101)}, "seeds was .* and is"),
        ({"seeds": range(99)}, "rollouts was 100 and is 99"),
        ({"horizon": 30}, "horizon was 40 and is 30"),
        ({"backup_steps": 30}, "backup_steps was 1000 and is 30"),
        ({"identity": "second"}, 'identity was "first" and is "second"'),
        ({"follow_through": True}, "follow_through"),
        ({"keep_frames": 0.5}, "keep_frames was 0.0 and is 0.5"),
        ({"trust_clearance": False}, "trust_clearance was true and is false"),
        ({"check_clearance": 0.5}, "check_clearance was 0.02 and is 0.5"),
        ({"chunk": 10}, "parts was 2 and is 10"),
    ],
)
def test_a_folder_is_not_resumed_with_another_plan(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    given: dict[str, Any] = {"seeds": range(100), "chunk": 50, "folder": tmp_path}
    collect(**given)
    parts = sorted(path.read_bytes() for path in tmp_path.glob("*"))
    with pytest.raises(InvalidValueError, match=message):
        collect(**{**given, **changes})
    assert sorted(path.read_bytes() for path in tmp_path.glob("*")) == parts


def test_another_policy_or_environment_is_another_plan(tmp_path: Path) -> None:
    collect(seeds=range(10), folder=tmp_path)
    others: list[tuple[Any, Any, str]] = [
        (Car, rash, "environment was"),
        (slippery, brake, "policy was"),
    ]
    kept: dict[str, Any] = {"seeds": range(10), "folder": tmp_path, "identity": "first"}
    for environment, policy, message in others:
        with pytest.raises(InvalidValueError, match=message):
            labelled(environment, policy, brake, danger, horizon=40, **kept)


class Crashing(Car):
    """Some rollouts crash in the second step: those of seeds 3, 13, … always, those of 5, 15, … the
    first time in a process."""

    seen: set[int] = set()  # noqa: RUF012

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        self.seed = int(seed or 0)
        result = super().reset(seed=seed)
        self.gap, self.speed = 20, 1
        return result

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        if self.seed % 10 == 3 or (self.seed % 10 == 5 and self.seed not in self.seen):
            self.seen.add(self.seed)
            raise RuntimeError(f"the engine\nof {self.seed} failed")
        return super().step(action)


def test_a_rollout_that_raises_is_run_again_and_then_counted_as_lost_never_dropped() -> None:
    Crashing.seen.clear()
    rollouts = labelled(Crashing, rash, brake, danger, seeds=range(40), horizon=40, chunk=9)
    always = rollouts.seed % 10 == 3
    assert rollouts.lost.tolist() == always.tolist()
    assert rollouts.error[3] == "RuntimeError: the engine of 3 failed"
    assert (rollouts.error[~always] == "").all()
    assert (rollouts.score[always] == -np.inf).all()
    assert rollouts.unsafe[always].all()
    assert Crashing.seen >= {5, 15, 25, 35}
    assert repr(rollouts).endswith("4 of them lost, 4 by an error)")


def test_one_unlucky_seed_stops_nothing_but_a_policy_that_always_raises_is_an_error() -> None:
    rollouts = labelled(Crashing, rash, brake, danger, seeds=[3, 4, 6], horizon=40)
    assert rollouts.lost.tolist() == [True, False, False]

    def broken(observation: Any) -> int:
        raise ZeroDivisionError("no such action")

    for policy, backup in [(broken, brake), (rash, broken)]:
        with pytest.raises(ZeroDivisionError, match="no such action"):
            labelled(Car, policy, backup, danger, seeds=range(10), horizon=40)


class Model:
    """A danger model with weights."""

    def __init__(self, weight: float) -> None:
        self.weights = np.full(3, weight)

    def __call__(self, observation: Any) -> float:
        return float(np.clip(self.weights[0] * observation[1], 0, 1))


def driven(way: str, danger: Any, folder: Path, **options: Any) -> Any:
    task = Task(slippery, rash, brake, danger, horizon=40, identity="of May")
    if way == "shielded":
        return run_shielded(task, certificate_or_thresholds=0.5, folder=folder, **options)
    return collect_rollouts(task, outcome=way, folder=folder, **options)  # type: ignore[call-overload]


@pytest.mark.parametrize("way", ["labels", "forks", "shielded"])
@pytest.mark.parametrize("is_complete", [False, True])
def test_one_finished_seed_is_run_again_and_finds_what_the_name_leaves_out(
    way: str, is_complete: bool, tmp_path: Path
) -> None:
    def stop(share: float) -> None:
        if share >= 0.5 and not is_complete:
            raise KeyboardInterrupt

    begun: dict[str, Any] = {"seeds": range(20), "chunk": 5}
    with nullcontext() if is_complete else pytest.raises(KeyboardInterrupt):
        driven(way, Model(0.1), tmp_path, progress=stop, **begun)
    with pytest.raises(InvalidValueError, match=r"seed \d+, run again, has \w+ \[.*and had \["):
        driven(way, Model(0.2), tmp_path, **begun)
    again = driven(way, Model(0.1), tmp_path, **begun)
    assert same(again, driven(way, Model(0.1), tmp_path / "whole", **begun))


def test_lost_rollouts_are_not_run_again(tmp_path: Path) -> None:
    """An error need not come twice; of those here the first rollout that has none is run."""
    kept: dict[str, Any] = {"folder": tmp_path, "identity": "crashing", "horizon": 40}
    first = labelled(Crashing, rash, brake, danger, seeds=range(10), chunk=5, **kept)
    assert first.lost.any()
    assert same(first, labelled(Crashing, rash, brake, danger, seeds=range(10), chunk=5, **kept))
