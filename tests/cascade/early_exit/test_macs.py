"""Costs: by hand where that is possible, the published figure for ResNet-101."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="torch is not installed: pip install 'pacbound[torch]'")

import torch
from experiments.early_exit.resnets import resnet101
from torch import Tensor, nn

from pacbound.cascade.early_exit import count_macs


@pytest.mark.parametrize(
    ("module", "shape", "macs"),
    [
        (nn.Linear(7, 3), (7,), 7 * 3),
        (nn.Linear(7, 3), (4, 7), 4 * 7 * 3),
        (nn.Conv1d(8, 12, 3), (8, 9), 7 * 12 * 8 * 3),
        (nn.Conv2d(8, 12, 3, stride=2), (8, 9, 9), 16 * 12 * 8 * 9),
        (nn.Conv2d(8, 12, 3, stride=2, groups=4), (8, 9, 9), 16 * 12 * 2 * 9),
        (nn.Conv3d(2, 3, 2), (2, 4, 4, 4), 27 * 3 * 2 * 8),
        (nn.ConvTranspose2d(8, 12, 3, stride=2), (8, 9, 9), 81 * 8 * 12 * 9),
        (nn.Sequential(nn.BatchNorm1d(7), nn.ReLU(), nn.Dropout()), (7,), 0),
    ],
)
def test_a_layer_costs_what_it_does_by_hand(
    module: nn.Module, shape: tuple[int, ...], macs: int
) -> None:
    assert count_macs(module, torch.zeros(1, *shape)).tolist() == [macs]


class SelfAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(16, 2, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.attention(x, x, x, need_weights=False)[0]
        return result


@pytest.mark.parametrize("frozen", [False, True])
def test_attention_is_counted_whichever_kernel_would_run_it(frozen: bool) -> None:
    projections, products = 4 * 5 * 16 * 16, 2 * 5 * 5 * 16
    attention, row = SelfAttention().requires_grad_(not frozen), torch.zeros(1, 5, 16)
    assert count_macs(attention, row).tolist() == [projections + products]
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True).requires_grad_(not frozen)
    assert count_macs(layer, row).tolist() == [projections + products + 2 * 5 * 16 * 32]


def test_networks_that_take_tokens_are_counted_on_tokens() -> None:
    network = nn.Sequential(nn.Embedding(11, 8), nn.Linear(8, 3))
    assert count_macs(network, torch.zeros(1, 5, dtype=torch.int64)).tolist() == [5 * 8 * 3]


@pytest.mark.slow
def test_resnet101_costs_what_is_published_at_224_pixels() -> None:
    (cost,) = count_macs(resnet101(), torch.zeros(1, 3, 224, 224))
    assert cost == pytest.approx(7.80e9, rel=0.01)
