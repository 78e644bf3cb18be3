"""Training as in the paper's appendix: the slow network first, then each early head on top of it.

Every branch minimises the same cross-entropy on the same rows with the same hyper-parameters for
the same number of epochs. Nothing here looks at a held-out row: no early stopping, no choice
between runs.

A checkpoint holds everything that decides how training goes on, random states included. It is
written whole or not at all, holds tensors and plain values only, and is read with torch's
`weights_only=True`, so reading one runs no code.
"""

from __future__ import annotations

import math
import os
import pickle
import random
from collections.abc import Callable, Iterable, Mapping, Sized
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from pacbound.atomic_files import atomic_file
from pacbound.cascade.early_exit.batches import (
    Batch,
    batches,
    inputs_and_labels,
    moved,
    require_a_label_each,
    row_count,
)
from pacbound.cascade.early_exit.inference import require_classes
from pacbound.cascade.early_exit.network import EarlyExitNetwork
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.sources.batches import Progress
from pacbound.stats.arguments import whole_number

MakeOptimizer = Callable[[list[nn.Parameter]], Optimizer]
MakeSchedule = Callable[[Optimizer], LRScheduler]

FORMAT = "pacbound early-exit training 1"


def train_heads(
    network: EarlyExitNetwork,
    loader: Iterable[Any],
    *,
    epochs: int,
    optimizer: MakeOptimizer,
    schedule: MakeSchedule | None = None,
    train_slow: bool = True,
    progress: Progress | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
) -> dict[int, list[float]]:
    """Train the slow network, then the head of each early exit on the frozen backbone.

    Heads are trained from the last exit down to the first. While a head is trained
    the backbone is in evaluation mode and no gradient reaches it, so its parameters and buffers,
    the statistics of batch normalisation included, stay the same to the bit. The network is left in
    evaluation mode. Training gives no guarantee: calibrate on rows that took no part in it.

    Parameters
    ----------
    network
        The network, which is trained in place.
    loader
        Batches (inputs, labels), or dictionaries with an entry `labels`, which can be iterated over
        anew for each epoch.
    epochs
        The number of epochs for the slow network and for each head.
    optimizer
        A function that makes the optimizer from a list of parameters. It is called anew for the
        slow network and for each head, so all get the same hyper-parameters.
    schedule
        A function that makes the learning rate's schedule from the optimizer. The schedule is
        stepped once per epoch.
    train_slow
        Whether the slow network is trained; if not it is taken as it is.
    progress
        A function that is called with the share that is done.
    checkpoint
        A file that is written after each epoch. After an interruption the same call goes on from
        there, and on the same machine ends in the same weights as without one. Loader workers that
        persist between epochs keep random states of their own, which are not saved; a loader that
        needs the number of the epoch must be told it.

    Returns
    -------
    dict of int to list of float
        The mean training loss of every epoch, by exit.

    Raises
    ------
    InvalidTypeError
        If `loader` is one batch, or a batch is not a pair of inputs and labels; if `optimizer` or
        `schedule` is not a function that makes one.
    InvalidValueError
        If an epoch has no rows or a batch no labels, a head shares parameters or has none to train,
        the loss is not finite, or `checkpoint` is of another training.

    Examples
    --------
    >>> from functools import partial
    >>> import torch
    >>> from torch import nn
    >>> stages, heads = [nn.Linear(2, 8), nn.ReLU()], [nn.Linear(8, 2), nn.Linear(8, 2)]
    >>> network = EarlyExitNetwork(stages, heads)
    >>> batch = torch.tensor([[1.0, 0.0], [0.0, 1.0]]), torch.tensor([0, 1])
    >>> descent = partial(torch.optim.SGD, lr=0.5)
    >>> losses = train_heads(network, [batch], epochs=50, optimizer=descent)
    >>> list(losses), network.infer(batch[0], [0.9]).labels
    ([1, 0], tensor([0, 1]))
    """
    if not isinstance(network, EarlyExitNetwork):
        raise InvalidTypeError.of("network", network, "an EarlyExitNetwork")
    _require_makers(optimizer, schedule)
    exits = list(range(len(network.stages) - (1 if train_slow else 2), -1, -1))
    rounds, rows = whole_number(epochs, "epochs", least=1), batches(loader)
    run = _Run(network, rows, rounds, optimizer, schedule, progress, checkpoint, exits)
    _require_separate_heads(network)
    try:
        run.train()
    finally:
        network.zero_grad(set_to_none=True)
        network.eval()
    return run.losses


def _require_makers(optimizer: Any, schedule: Any) -> None:
    """Raise unless both can make something for the parameters of each head in turn."""
    for name, made, example in (
        ("optimizer", optimizer, "torch.optim.Adam, lr=1e-3"),
        ("schedule", schedule, "torch.optim.lr_scheduler.StepLR, step_size=10"),
    ):
        if made is not None and (isinstance(made, Optimizer | LRScheduler) or not callable(made)):
            raise InvalidTypeError(
                f"{name} is of type {type(made).__name__}: expected a function that makes one for "
                f"the slow network and for each head, such as functools.partial({example})."
            )
    if optimizer is None:
        raise InvalidTypeError(
            "optimizer is None: expected a function that makes one from a list of parameters, such "
            "as functools.partial(torch.optim.Adam, lr=1e-3)."
        )


@dataclass
class _Run:
    network: EarlyExitNetwork
    loader: Iterable[Any]
    epochs: int
    make_optimizer: MakeOptimizer
    make_schedule: MakeSchedule | None
    progress: Progress | None
    path: str | os.PathLike[str] | None
    exits: list[int]
    losses: dict[int, list[float]] = field(default_factory=dict)

    def train(self) -> None:
        saved = None
        if self.path is not None and Path(self.path).exists():
            saved = _loaded(self.path, self.path)
            self._restore(saved)
        for m in self.exits:
            if len(self.losses.get(m, [])) == self.epochs:
                continue
            branch = _Branch(self.network, m, self.make_optimizer, self.make_schedule)
            if saved is not None and saved["exit"] == m:
                branch.restore(saved["branch"])
            elif not self.losses:
                # What cannot be read back must fail now, not after hours.
                self._save(branch)
            while len(self.losses.setdefault(m, [])) < self.epochs:
                self.losses[m].append(branch.epoch(self._watched()))
                self._save(branch)

    def _watched(self) -> Iterable[Any]:
        """The batches of one epoch, reported to `progress`.

        It is called after every batch if the loader knows its length, or else after every epoch.
        """
        done, steps = sum(map(len, self.losses.values())), len(self.exits) * self.epochs
        length = len(self.loader) if isinstance(self.loader, Sized) else 0
        for number, batch in enumerate(self.loader, 1):
            yield batch
            if self.progress is not None and length:
                self.progress((done + min(number / length, 1.0)) / steps)
        if self.progress is not None and not length:
            self.progress((done + 1) / steps)

    def _save(self, branch: _Branch) -> None:
        if self.path is None:
            return
        state = {
            "plan": self._plan(),
            "exit": branch.m,
            "losses": self.losses,
            "network": self.network.state_dict(),
            "branch": branch.state(),
            "random": {name: get() for name, (get, _) in _generators(self.loader).items()},
        }
        _write(self.path, state)

    def _restore(self, saved: dict[str, Any]) -> None:
        plan = self._plan()
        if saved["plan"] != plan:
            raise InvalidValueError(
                f"{self.path} is the checkpoint of another training: it has {saved['plan']}, this "
                f"one {plan}. Name another file."
            )
        try:
            self.network.load_state_dict(saved["network"])
        except RuntimeError as error:
            raise InvalidValueError(
                f"{self.path} is the checkpoint of another network: {error}"
            ) from error
        for name, (_, restore) in _generators(self.loader).items():
            if name in saved["random"]:
                restore(saved["random"][name])
        self.losses = saved["losses"]

    def _plan(self) -> dict[str, Any]:
        example = self.make_optimizer([nn.Parameter(torch.zeros(1))])
        settings = ", ".join(f"{name}={value}" for name, value in sorted(example.defaults.items()))
        schedule = (
            None if self.make_schedule is None else type(self.make_schedule(example)).__name__
        )
        return {
            "exits": self.exits,
            "epochs": self.epochs,
            "optimizer": f"{type(example).__name__}({settings})",
            "schedule": schedule,
        }


class _Branch:
    """What one exit trains: its head, and for the last exit all stages too."""

    def __init__(
        self,
        network: EarlyExitNetwork,
        m: int,
        make_optimizer: MakeOptimizer,
        make_schedule: MakeSchedule | None,
    ) -> None:
        self.network, self.m = network, m
        self.is_slow = m == len(network.stages) - 1
        self.trained = nn.ModuleList(
            [*network.stages, network.heads[m]] if self.is_slow else [network.heads[m]]
        )
        parameters = [
            parameter for parameter in self.trained.parameters() if parameter.requires_grad
        ]
        if not parameters:
            raise InvalidValueError(
                f"Exit {m} has no parameters to train: expected some that require a gradient."
            )
        self.optimizer = make_optimizer(parameters)
        if not isinstance(self.optimizer, Optimizer):
            raise InvalidTypeError(
                f"optimizer gave a {type(self.optimizer).__name__}: expected a torch optimizer of "
                "the parameters that it is called with."
            )
        self.schedule = None if make_schedule is None else make_schedule(self.optimizer)

    def epoch(self, batches: Iterable[Any]) -> float:
        """One pass over the rows; the mean loss."""
        self.network.eval()
        self.trained.train()
        losses: list[tuple[Tensor, int]] = []
        for batch in batches:
            inputs, labels = inputs_and_labels(batch)
            if labels is None:
                raise InvalidValueError("A batch has no labels: expected (inputs, labels).")
            require_a_label_each(labels, row_count(inputs))
            logits = self._logits(moved(inputs, self.network.device))
            require_classes(logits, len(labels))
            loss = nn.functional.cross_entropy(logits, labels.to(self.network.device))
            self.optimizer.zero_grad()
            torch.autograd.backward(loss)
            self.optimizer.step()
            losses.append((loss.detach(), len(labels)))
        if self.schedule is not None:
            self.schedule.step()
        return _mean(losses, self.m)

    def _logits(self, inputs: Batch) -> Tensor:
        if self.is_slow:
            return self.network.exit_logits(inputs, self.m)
        with torch.no_grad():
            features = self.network.features(inputs, self.m)
        logits: Tensor = self.network.heads[self.m](features)
        return logits

    def state(self) -> dict[str, Any]:
        schedule = None if self.schedule is None else self.schedule.state_dict()
        return {"optimizer": self.optimizer.state_dict(), "schedule": schedule}

    def restore(self, state: dict[str, Any]) -> None:
        self.optimizer.load_state_dict(state["optimizer"])
        if self.schedule is not None:
            self.schedule.load_state_dict(state["schedule"])


def _mean(losses: list[tuple[Tensor, int]], m: int) -> float:
    rows = sum(count for _, count in losses)
    if not rows:
        raise InvalidValueError(
            "The loader gave no rows in an epoch: pass one that can be iterated over anew for each "
            "epoch."
        )
    mean = sum(float(loss) * count for loss, count in losses) / rows
    if not math.isfinite(mean):
        raise InvalidValueError(
            f"The training loss of exit {m} became {mean}: lower the learning rate, or check the "
            "inputs."
        )
    return mean


def _require_separate_heads(network: EarlyExitNetwork) -> None:
    """Training a head must change nothing else, which shared parameters would break."""
    owners: dict[int, str] = {
        id(parameter): "the backbone" for parameter in network.stages.parameters()
    }
    for m, head in enumerate(network.heads):
        for parameter in head.parameters():
            if owners.setdefault(id(parameter), f"head {m}") != f"head {m}":
                raise InvalidValueError(
                    f"Head {m} shares parameters with {owners[id(parameter)]}: expected heads of "
                    "their own, since each is trained while all else stays as it is."
                )


def _write(path: str | os.PathLike[str], state: Mapping[str, Any]) -> None:
    """Write `state` to `path`; a crash leaves the old file or the new one, never half of one, and a
    state that could not be read again, such as of a NumPy number, leaves the old one.
    """
    data = BytesIO()
    torch.save({"format": FORMAT, **state}, data)
    data.seek(0)
    _loaded(data, path)
    with atomic_file(path) as file:
        file.write(data.getbuffer())


def _loaded(
    source: str | os.PathLike[str] | BytesIO, path: str | os.PathLike[str]
) -> dict[str, Any]:
    """What a checkpoint holds that is called `path`."""
    try:
        state = torch.load(source, weights_only=True, map_location="cpu")
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


def _generators(loader: Iterable[Any]) -> dict[str, tuple[Callable[[], Any], Callable[..., Any]]]:
    """What gives the state of every generator that training may draw from, and what restores it:
    those of a DataLoader and of its samplers, too.
    """
    # Augmentations of others may draw from Python's and NumPy's.
    found: dict[str, tuple[Callable[[], Any], Callable[..., Any]]] = {
        "torch": (torch.get_rng_state, torch.set_rng_state),
        "python": (random.getstate, random.setstate),
        "numpy": (_numpy_state, np.random.set_state),
    }
    if torch.cuda.is_available():
        found["cuda"] = torch.cuda.get_rng_state_all, torch.cuda.set_rng_state_all
    if torch.backends.mps.is_available():
        found["mps"] = torch.mps.get_rng_state, torch.mps.set_rng_state
    batch_sampler = getattr(loader, "batch_sampler", None)
    owners = (
        *(loader, getattr(loader, "sampler", None)),
        *(batch_sampler, getattr(batch_sampler, "sampler", None)),
    )
    for place, owner in enumerate(owners):
        if isinstance(held := getattr(owner, "generator", None), torch.Generator):
            found[f"loader {place}"] = held.get_state, held.set_state
    return found


def _numpy_state() -> tuple[Any, ...]:
    name, key, *rest = np.random.get_state(legacy=True)  # noqa: NPY002
    # A checkpoint holds plain numbers and tensors.
    return name, np.asarray(key).tolist(), *rest
