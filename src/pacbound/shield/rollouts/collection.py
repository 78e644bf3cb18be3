"""Running seeds in parallel: in chunks, on whichever joblib backend is configured, resumable from a
folder.

Rows come out in the order of the seeds, whatever the number of workers: a chunk is decided by the
seeds alone, and what a seed gives depends on nothing but itself. All seeds are run, however long
each takes. Workers end with the process that started them, even if it is killed.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacbound.documents import Json
from pacbound.errors import InvalidValueError, MissingDependencyError
from pacbound.shield.rollouts.files import (
    ROWS,
    SEEDS,
    CheckpointFolder,
    Columns,
    joined,
    packed,
    unpacked,
)
from pacbound.shield.rollouts.task import Task
from pacbound.shield.rollouts.world import UnsoundClearanceError, World
from pacbound.sources.batches import Progress, require_progress
from pacbound.stats.arguments import whole_number

try:
    from joblib import Parallel, delayed, effective_n_jobs
except ImportError:
    raise MissingDependencyError.for_extra("joblib", "shield", "Collecting rollouts") from None

# What makes the arrays of a chunk of seeds; it must be picklable.
Job = Callable[[NDArray[np.int64]], Mapping[str, NDArray[Any]]]

_LONGEST_ERROR = 200
_ROUND = 4
# The thread of a worker that looks whether its parent is still there, and how often.
_WATCH = "pacbound-parent"
_WATCH_SECONDS = 0.5


@dataclass(frozen=True)
class Workers:
    """How seeds are run, which does not change what they give."""

    n_jobs: int | None = None
    chunk: int = 32
    folder: str | os.PathLike[str] | None = None
    progress: Progress | None = None

    def __post_init__(self) -> None:
        whole_number(self.chunk, "chunk", least=1)
        require_progress(self.progress)


def collect(
    job: Job, seeds: NDArray[np.int64], workers: Workers, plan: Mapping[str, Json]
) -> Columns:
    """The rows of all seeds, column by column. What a folder already holds is not made again."""
    chunks = [seeds[start : start + workers.chunk] for start in range(0, len(seeds), workers.chunk)]
    full_plan = {
        **plan,
        "format": 3,
        "seeds": f"sha256:{hashlib.sha256(seeds.astype('<i8').tobytes()).hexdigest()}",
        "rollouts": len(seeds),
        "parts": len(chunks),
    }
    parts = None if workers.folder is None else CheckpointFolder(workers.folder, full_plan)
    rows: dict[int, Columns] = {}
    for place, chunk in enumerate(chunks):
        found = None if parts is None else parts.rows(place, chunk)
        rows |= {} if found is None else {place: found}
    if rows:
        _require_same_again(job, joined(list(rows.values())), workers)
    tell = workers.progress or (lambda _: None)
    tell(sum(len(chunks[place]) for place in rows) / len(seeds))
    missing = [place for place in range(len(chunks)) if place not in rows]
    calls = [delayed(_run)(job, place, chunks[place], os.getpid()) for place in missing]
    with closing(_finished(calls, workers.n_jobs)) as finished:
        for place, data in finished:
            if parts is not None:
                parts.write(place, data)
            rows[place] = unpacked(data, ROWS)
            tell(sum(len(chunks[place]) for place in rows) / len(seeds))
    return joined([rows[place] for place in range(len(chunks))])


def _require_same_again(job: Job, made: Columns, workers: Workers) -> None:
    """Run the longest of the finished rollouts again: what a name does not say of a task shows in
    its rows. By a worker, whose arithmetic is that of the others.
    """
    seeds = made["rollout"] if "rollout" in made else made["seed"]
    whole = np.flatnonzero(made["error"] == "")
    if not whole.size:  # an error need not come twice
        return
    seed = seeds[whole[made["steps"][whole].argmax()]]
    ((_, data),) = _finished([delayed(_run)(job, 0, np.array([seed]), os.getpid())], workers.n_jobs)
    before = {name: column[seeds == seed] for name, column in made.items()}
    for name, now in unpacked(data, ROWS).items():
        if not np.array_equal(now, before[name], equal_nan=now.dtype.kind == "f"):
            raise InvalidValueError(
                f"{workers.folder} was begun with something else under this identity: seed {seed}, "
                f"run again, has {name} {now.tolist()}, and had {before[name].tolist()}. Give what "
                "has changed another identity, and collect into another folder."
            )


def _finished(calls: list[Any], n_jobs: int | None) -> Generator[tuple[int, bytes]]:
    """The results as they come, for the sake of progress. None is left out, so no rollout counts
    more for being short.
    """
    try:
        parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size=1)
    except ValueError:
        # The pools of multiprocessing, and Ray's, hand out lists only: in rounds, so that parts are
        # kept on the way.
        pool, size = Parallel(n_jobs=n_jobs, batch_size=1), _ROUND * effective_n_jobs(n_jobs)
        for start in range(0, len(calls), size):
            yield from pool(calls[start : start + size])
    else:
        with closing(parallel(calls)) as results:
            yield from results


def each_seed(
    task: Task,
    seeds: NDArray[np.int64],
    run: Callable[[World, int], Any],
    lost: Callable[[int, str], Any],
) -> list[Any]:
    """What `run` gives for each seed, in one environment; `lost` for a seed that raises, and raises
    again in a new one.
    """
    results, world = [], task.world()
    try:
        for seed in map(int, seeds):
            for is_last_try in (False, True):
                try:
                    results.append(run(world, seed))
                    break
                except UnsoundClearanceError:  # it says something about all rollouts
                    raise
                except Exception as error:  # a crash of the environment must not drop the rollout
                    with suppress(Exception):  # it has crashed already
                        world.close()
                    world = task.world()
                    if is_last_try:
                        results.append(lost(seed, _one_line(error)))
    finally:
        world.close()
    return results


def _run(job: Job, place: int, seeds: NDArray[np.int64], parent: int) -> tuple[int, bytes]:
    if os.getppid() == parent and all(thread.name != _WATCH for thread in threading.enumerate()):
        threading.Thread(target=_end_with, args=[parent], name=_WATCH, daemon=True).start()
    # Packed here, so that the work of it is shared, and a part on disk is what the worker made.
    return place, packed({**job(seeds), SEEDS: seeds})


def _end_with(parent: int) -> None:
    """End this worker once the process that it works for is gone: nobody would read what it makes.
    A parent that is killed has no time to say so.
    """
    while os.getppid() == parent:
        time.sleep(_WATCH_SECONDS)
    os._exit(1)


def _one_line(error: Exception) -> str:
    text = " ".join(f"{type(error).__name__}: {error}".split())
    return text if len(text) <= _LONGEST_ERROR else text[: _LONGEST_ERROR - 1] + "…"
