"""A training run on disk: everything that decides how it goes on, random states included.

A file is written whole or not at all. Files hold tensors and plain values only and are read
with torch's `weights_only=True`, so reading one runs no code.
"""

from __future__ import annotations

import os
import pickle
import random
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from pacbound.atomic_files import atomic_file
from pacbound.errors import InvalidValueError

FORMAT = "pacbound early-exit training 1"


def write(path: str | os.PathLike[str], state: Mapping[str, Any]) -> None:
    """Write `state` to `path`; a crash leaves the old file or the new one, never half of one."""
    with atomic_file(path) as file:
        torch.save({"format": FORMAT, **state}, file)


def read(path: str | os.PathLike[str]) -> dict[str, Any] | None:
    """The state in `path`, or None if there is no such file yet."""
    if not Path(path).exists():
        return None
    try:
        state = torch.load(path, weights_only=True, map_location="cpu")
    except (pickle.UnpicklingError, RuntimeError, EOFError, ValueError) as error:
        raise InvalidValueError(
            f"{path} is not a training checkpoint of pacbound: {error}"
        ) from error
    if not isinstance(state, dict) or state.get("format") != FORMAT:
        raise InvalidValueError(
            f"{path} is not a training checkpoint of this version of pacbound: remove it to train "
            "anew."
        )
    return state


def random_states(loader: Iterable[Any]) -> dict[str, Any]:
    """The states of every generator that training may draw from.

    These are torch's, its devices', the loader's, Python's and NumPy's.
    """
    # Augmentations of others may draw from it.
    name, key, position, *rest = np.random.get_state(legacy=True)  # noqa: NPY002
    states: dict[str, Any] = {
        "torch": torch.get_rng_state(),
        "loader": [generator.get_state() for generator in _generators(loader)],
        "python": random.getstate(),
        "numpy": [name, torch.from_numpy(np.asarray(key).astype(np.int64)), position, *rest],
    }
    if torch.cuda.is_available():
        states["cuda"] = torch.cuda.get_rng_state_all()
    if torch.backends.mps.is_available():
        states["mps"] = torch.mps.get_rng_state()
    return states


def restore_random_states(loader: Iterable[Any], states: Mapping[str, Any]) -> None:
    """Set every generator to the state that `random_states` gave."""
    torch.set_rng_state(states["torch"])
    for generator, state in zip(_generators(loader), states["loader"], strict=True):
        generator.set_state(state)
    random.setstate(states["python"])
    name, key, *rest = states["numpy"]
    np.random.set_state((name, key.numpy().astype(np.uint32), *rest))  # noqa: NPY002
    if "cuda" in states and torch.cuda.is_available():
        torch.cuda.set_rng_state_all(states["cuda"])
    if "mps" in states and torch.backends.mps.is_available():
        torch.mps.set_rng_state(states["mps"])


def _generators(loader: Iterable[Any]) -> list[torch.Generator]:
    """The generators of a DataLoader and of its samplers; one that is shared is listed twice."""
    sampler, batch_sampler = (
        getattr(loader, "sampler", None),
        getattr(loader, "batch_sampler", None),
    )
    owners = (loader, sampler, batch_sampler, getattr(batch_sampler, "sampler", None))
    return [
        held
        for owner in owners
        if isinstance(held := getattr(owner, "generator", None), torch.Generator)
    ]
