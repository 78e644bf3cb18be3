"""Training: the order, the frozen backbone, and runs that are killed and resumed."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.products import standing_for

pytest.importorskip("torch", reason="torch is not installed: pip install 'pacbound[torch]'")

import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import CosineAnnealingLR
from torch.utils.data import DataLoader, TensorDataset

from pacbound.cascade.early_exit import EarlyExitNetwork, train_heads
from pacbound.errors import InvalidValueError

SGD = partial(torch.optim.SGD, lr=0.1, momentum=0.9, weight_decay=1e-4, nesterov=True)
ADAM = partial(torch.optim.Adam, lr=0.01)
COSINE = partial(CosineAnnealingLR, T_max=3)
EPOCHS = 3


def network(seed: int = 0) -> EarlyExitNetwork:
    """Three exits with batch normalisation and dropout in backbone and heads."""
    torch.manual_seed(seed)
    stages = [
        nn.Sequential(nn.Linear(width, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.1))
        for width in (4, 8, 8)
    ]
    heads = [
        nn.Sequential(nn.Linear(8, 6), nn.BatchNorm1d(6), nn.Dropout(0.1), nn.Linear(6, 3))
        for _ in stages
    ]
    return EarlyExitNetwork(stages, heads)


def rows() -> TensorDataset:
    x = torch.randn(40, 4, generator=torch.Generator().manual_seed(5))
    return TensorDataset(x, x[:, :3].argmax(dim=1))


def shuffled(seed: int | None = None) -> DataLoader[Any]:
    generator = None if seed is None else torch.Generator().manual_seed(seed)
    return DataLoader(rows(), batch_size=10, shuffle=True, generator=generator)


def snapshot(module: nn.Module) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in module.state_dict().items()}


def same(first: dict[str, Tensor], second: dict[str, Tensor]) -> bool:
    return first.keys() == second.keys() and all(
        torch.equal(value, second[name]) for name, value in first.items()
    )


def test_the_backbone_and_the_slow_head_stay_the_same_to_the_bit_while_heads_are_trained() -> None:
    trained = network()
    backbone, slow, early = (
        snapshot(trained.stages),
        snapshot(trained.heads[2]),
        snapshot(trained.heads[0]),
    )
    train_heads(trained, shuffled(), epochs=EPOCHS, optimizer=SGD, train_slow=False)
    assert same(snapshot(trained.stages), backbone)
    assert same(snapshot(trained.heads[2]), slow)
    assert not same(snapshot(trained.heads[0]), early)


def test_the_slow_network_comes_first_and_is_what_training_it_alone_would_give() -> None:
    together, alone = network(), network()
    torch.manual_seed(1)
    train_heads(together, shuffled(), epochs=EPOCHS, optimizer=SGD)

    torch.manual_seed(1)
    slow = nn.Sequential(*alone.stages, alone.heads[2]).train()
    optimizer = SGD(slow.parameters())
    loader = shuffled()
    for _ in range(EPOCHS):
        for inputs, labels in loader:
            optimizer.zero_grad()
            torch.autograd.backward(nn.functional.cross_entropy(slow(inputs), labels))
            optimizer.step()
    assert same(snapshot(together.stages), snapshot(alone.stages))
    assert same(snapshot(together.heads[2]), snapshot(alone.heads[2]))


def test_a_head_is_what_training_it_alone_on_fixed_features_would_give() -> None:
    together, alone = network(), network().eval()
    torch.manual_seed(1)
    train_heads(
        together, shuffled(), epochs=EPOCHS, optimizer=ADAM, schedule=COSINE, train_slow=False
    )

    torch.manual_seed(1)
    head, loader = alone.heads[1].train(), shuffled()
    optimizer = ADAM(head.parameters())
    schedule = COSINE(optimizer)
    for _ in range(EPOCHS):
        for inputs, labels in loader:
            features = alone.features(inputs, 1).detach()
            optimizer.zero_grad()
            torch.autograd.backward(nn.functional.cross_entropy(head(features), labels))
            optimizer.step()
        schedule.step()
    assert same(snapshot(together.heads[1]), snapshot(alone.heads[1]))


def test_exits_are_trained_from_the_last_to_the_first_with_the_same_settings() -> None:
    made: list[tuple[int, dict[str, Any]]] = []

    def optimizer(parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
        result = SGD(parameters)
        made.append((sum(parameter.numel() for parameter in parameters), result.defaults))
        return result

    trained = network()
    losses = train_heads(trained, shuffled(), epochs=2, optimizer=optimizer)
    sizes = [
        sum(parameter.numel() for parameter in part.parameters())
        for part in (trained.stages, trained.heads[0])
    ]
    assert [size for size, _ in made] == [sum(sizes), sizes[1], sizes[1]]
    assert all(settings == made[0][1] for _, settings in made)
    assert list(losses) == [2, 1, 0]
    assert all(len(each) == 2 for each in losses.values())


def test_training_lowers_the_loss_of_every_exit_and_leaves_evaluation_mode() -> None:
    trained = network()
    losses = train_heads(trained, shuffled(), epochs=15, optimizer=SGD)
    assert all(each[-1] < each[0] for each in losses.values())
    assert not any(module.training for module in trained.modules())
    assert all(parameter.grad is None for parameter in trained.parameters())


class Killed(Exception):  # noqa: N818, RUF100
    """What stands for a kill: it is raised in the midst of an epoch."""


def killer(after: int) -> Callable[[float], None]:
    """A progress that kills the run after so many batches."""
    left = iter(range(after))

    def progress(_: float) -> None:
        if next(left, None) is None:
            raise Killed

    return progress


class Noisy(TensorDataset):
    """Rows augmented by three generators that a run shares with the world."""

    def __getitem__(self, index: int) -> tuple[Tensor, ...]:
        x, y = (column[index] for column in self.tensors)
        return (
            x + 0.1 * torch.randn(4) + 0.1 * random.random() + 0.1 * float(np.random.random()),  # noqa: NPY002
            y,
        )


def noisy_run(
    optimizer: Any, schedule: Any, loader_seed: int | None, *, seed: int, **options: Any
) -> tuple[dict[str, Tensor], dict[int, list[float]]]:
    trained = network(seed)
    seed_everything(seed)
    generator = None if loader_seed is None else torch.Generator().manual_seed(loader_seed)
    loader = DataLoader(Noisy(*rows().tensors), batch_size=10, shuffle=True, generator=generator)
    losses = train_heads(
        trained, loader, epochs=EPOCHS, optimizer=optimizer, schedule=schedule, **options
    )
    return snapshot(trained), losses


@pytest.mark.slow
@pytest.mark.parametrize(
    "batches", standing_for([0, 1, 3, 4, 7, 11, 12, 13, 24, 30, 35], [0, 7, 12, 35])
)
@pytest.mark.parametrize(
    ("optimizer", "schedule", "loader_seed"), [(SGD, None, None), (ADAM, COSINE, 3)]
)
def test_a_run_that_is_killed_and_resumed_ends_in_the_same_weights(
    batches: int, optimizer: Any, schedule: Any, loader_seed: int | None, tmp_path: Path
) -> None:
    run, file = partial(noisy_run, optimizer, schedule), tmp_path / "run.pt"
    expected, losses = run(loader_seed, seed=1)
    with pytest.raises(Killed):
        run(loader_seed, seed=1, checkpoint=file, progress=killer(batches))
    # A new process: other weights, other random states.
    other = None if loader_seed is None else 98
    resumed, again = run(other, seed=99, checkpoint=file)
    assert same(resumed, expected)
    assert again == losses


PROGRAM = """
import os, signal, sys, torch
from tests.cascade.early_exit.test_training import SGD, noisy_run

left = iter(range(17))

def die(*_):
    if next(left, None) is None:
        os.kill(os.getpid(), signal.SIGKILL)

def half(_, target):
    target.write(b"half")
    target.flush()
    os.kill(os.getpid(), signal.SIGKILL)

def late(_):
    if next(left, None) is None:
        torch.save = half

progress = {"in an epoch": die, "in a checkpoint": late}[sys.argv[1]]
noisy_run(SGD, None, None, seed=1, checkpoint=sys.argv[2], progress=progress)
"""


@pytest.mark.long
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs a signal that kills")
@pytest.mark.parametrize("where", ["in an epoch", "in a checkpoint"])
def test_a_process_that_is_killed_is_resumed_to_the_same_weights(
    where: str, tmp_path: Path
) -> None:
    file = tmp_path / "run.pt"
    command = [sys.executable, "-c", PROGRAM, where, str(file)]
    killed = subprocess.run(command, cwd=Path(__file__).parents[3], check=False, timeout=120)
    assert killed.returncode == -signal.SIGKILL
    assert file.exists()
    expected, losses = noisy_run(SGD, None, None, seed=1)
    batches: list[float] = []
    resumed, again = noisy_run(SGD, None, None, seed=99, checkpoint=file, progress=batches.append)
    assert len(batches) == 36 - 16, "the four epochs that were there are not trained again"
    assert same(resumed, expected)
    assert again == losses


def seed_everything(seed: int) -> None:
    torch.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002


def test_a_finished_run_is_read_and_not_repeated(tmp_path: Path) -> None:
    first, second = network(), network(seed=9)
    losses = train_heads(first, shuffled(), epochs=2, optimizer=SGD, checkpoint=tmp_path / "run.pt")
    again = train_heads(second, [], epochs=2, optimizer=SGD, checkpoint=tmp_path / "run.pt")
    assert again == losses
    assert same(snapshot(first), snapshot(second))


def test_a_checkpoint_is_replaced_whole_and_leaves_no_draft(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "run.pt"
    with pytest.raises(Killed):
        train_heads(
            network(), shuffled(), epochs=2, optimizer=SGD, checkpoint=file, progress=killer(5)
        )
    before = file.read_bytes()

    def half(_: Any, target: Any) -> None:
        target.write(b"half")
        raise Killed

    monkeypatch.setattr(torch, "save", half)
    with pytest.raises(Killed):
        train_heads(network(), shuffled(), epochs=2, optimizer=SGD, checkpoint=file)
    assert file.read_bytes() == before
    assert list(tmp_path.iterdir()) == [file]


def test_a_matrix_of_labels_is_refused_with_what_to_do() -> None:
    x, y = rows().tensors
    several = torch.nn.functional.one_hot(y, 3).float()
    with pytest.raises(InvalidValueError, match=r"shape \(40, 3\).*train and certify a network"):
        train_heads(network(), [(x, several)], epochs=1, optimizer=SGD)


def test_a_state_that_could_not_be_read_again_leaves_the_one_before(tmp_path: Path) -> None:
    """A schedule that counts with NumPy makes learning rates that are no data to torch."""

    def schedule(optimizer: torch.optim.Optimizer) -> Any:
        lr_scheduler: Any = torch.optim.lr_scheduler
        return lr_scheduler.MultiplicativeLR(optimizer, lambda epoch: np.float64(0.5))

    file = tmp_path / "run.pt"
    with pytest.raises(InvalidValueError, match="is not a training checkpoint"):
        train_heads(
            network(), shuffled(), epochs=3, optimizer=SGD, schedule=schedule, checkpoint=file
        )
    assert torch.load(file, weights_only=True)["losses"] == {}


def test_a_checkpoint_holds_data_only(tmp_path: Path) -> None:
    train_heads(
        network(),
        shuffled(),
        epochs=1,
        optimizer=ADAM,
        schedule=COSINE,
        checkpoint=tmp_path / "run.pt",
    )
    state = torch.load(tmp_path / "run.pt", weights_only=True)
    assert list(state["losses"]) == [2, 1, 0]


def test_a_checkpoint_of_another_network_is_refused(tmp_path: Path) -> None:
    train_heads(network(), shuffled(), epochs=1, optimizer=SGD, checkpoint=tmp_path / "run.pt")
    other = EarlyExitNetwork(
        [nn.Linear(4, 8) for _ in range(3)], [nn.Linear(8, 3) for _ in range(3)]
    )
    with pytest.raises(InvalidValueError, match="the checkpoint of another network"):
        train_heads(other, shuffled(), epochs=1, optimizer=SGD, checkpoint=tmp_path / "run.pt")


@pytest.mark.parametrize("content", [b"", b"not a checkpoint"])
def test_a_file_that_is_no_checkpoint_is_refused_and_kept(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "run.pt"
    file.write_bytes(content)
    with pytest.raises(InvalidValueError, match=r"run.pt is not a training checkpoint"):
        train_heads(network(), shuffled(), epochs=1, optimizer=SGD, checkpoint=file)
    assert file.read_bytes() == content
