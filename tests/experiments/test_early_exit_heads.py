"""The heads of the exhibit about early exits: what they take, how they serve, that they learn."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed: pip install 'pacbound[torch]'")

import torch
from experiments.early_exit import exits, parts
from torch import nn

from pacbound.cascade.early_exit import count_macs, early_exit_resnet, resnet_cifar


@pytest.mark.parametrize("place", exits.PLACES)
def test_every_head_takes_what_its_block_gives(place: int) -> None:
    height, width, channels = exits.shape(place)
    logits = exits.head(place).eval()(torch.zeros(2, channels, height, width))
    assert logits.shape == (2, 10)


def test_the_shape_after_a_block_is_the_network_s() -> None:
    network = early_exit_resnet(resnet_cifar(56).eval(), after=(9, 10, 18, 19))
    x = torch.zeros(1, 3, 32, 32)
    for place, block in enumerate((9, 10, 18, 19)):
        _, channels, height, width = network.features(x, place).shape
        assert exits.shape(block) == (height, width, channels)


def test_a_head_serves_without_its_normalisation_and_says_the_same(tmp_path: Path) -> None:
    torch.manual_seed(0)
    trained = exits.head(13)
    for _ in range(3):
        trained(torch.randn(20, 32, 16, 16) + 1)
    torch.save(trained.state_dict(), tmp_path / "head_13.pt")
    network = early_exit_resnet(resnet_cifar(56).eval(), after=(13,))
    exits.load_heads(network, tmp_path, (13,))
    served = network.heads[0]
    assert not any(isinstance(module, nn.BatchNorm2d) for module in served.modules())
    x = torch.randn(5, 32, 16, 16)
    with torch.inference_mode():
        assert torch.allclose(served(x), trained.eval()(x), atol=1e-5)


def test_a_head_learns_from_features_that_are_kept() -> None:
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    labels = torch.from_numpy(rng.integers(2, size=256))
    held = rng.random((256, 8, 8, 64)) + labels.numpy()[:, None, None, None]
    module = exits.head(22)
    exits.fit(module, held.astype(np.float16), labels, epochs=20)
    x = torch.from_numpy(held).permute(0, 3, 1, 2).float()
    with torch.inference_mode():
        right = module(x).argmax(dim=1) == labels
    assert right.double().mean() > 0.95


def test_multiply_accumulates_of_the_parts_add_up() -> None:
    slow = resnet_cifar(20).eval()
    found = exits.parts(early_exit_resnet(slow, after=(3, 6)))
    assert [len(found[name]) for name in ("stages", "heads")] == [3, 3]
    assert sum(found["stages"]) + found["heads"][-1] == count_macs(slow, (3, 32, 32))[-1]


def test_every_part_is_timed_and_the_whole_network_beside_it() -> None:
    slow = resnet_cifar(20).eval()
    network = early_exit_resnet(slow, after=(3, 6))
    with torch.inference_mode():
        found = parts.medians(parts.jobs_of(network, slow, torch.randn(3, 3, 32, 32)), 1)
    assert [len(found[name]) for name in ("stages", "heads", "decisions")] == [3, 3, 2]
    assert found["alone"] > 0
