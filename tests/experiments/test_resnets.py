"""The residual networks: sizes, parameter names, shortcuts, and cutting them into stages."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="torch is not installed: pip install 'pacbound[torch]'")

import torch
from experiments.early_exit.resnets import resnet101, resnet_cifar
from torch import nn

from pacbound.cascade.early_exit import early_exit_resnet
from pacbound.errors import InvalidValueError


@pytest.mark.parametrize(("depth", "millions"), [(20, 0.27), (32, 0.46), (44, 0.66), (56, 0.85)])
def test_networks_for_cifar_have_as_many_parameters_as_published(
    depth: int, millions: float
) -> None:
    network = resnet_cifar(depth)
    assert round(sum(parameter.numel() for parameter in network.parameters()) / 1e6, 2) == millions
    assert sum(isinstance(module, (nn.Conv2d, nn.Linear)) for module in network.modules()) == depth


def test_parameters_for_cifar_are_named_as_in_the_public_weights() -> None:
    norm = ["weight", "bias", "running_mean", "running_var", "num_batches_tracked"]
    names = {"conv1.weight", "linear.weight", "linear.bias", *(f"bn1.{name}" for name in norm)}
    for layer in (1, 2, 3):
        for block in range(9):
            for part in (1, 2):
                names |= {
                    f"layer{layer}.{block}.conv{part}.weight",
                    *(f"layer{layer}.{block}.bn{part}.{name}" for name in norm),
                }
    assert set(resnet_cifar(56).state_dict()) == names


def test_parameters_of_resnet101_are_named_as_in_torchvision() -> None:
    with torch.device("meta"):
        shapes = {name: tuple(value.shape) for name, value in resnet101().state_dict().items()}
    assert len(shapes) == 626
    assert (
        sum(
            torch.Size(shape).numel()
            for name, shape in shapes.items()
            if name.endswith(("weight", "bias"))
        )
        == 44_549_160
    )
    expected = {
        "conv1.weight": (64, 3, 7, 7),
        "bn1.running_mean": (64,),
        "layer1.0.conv1.weight": (64, 64, 1, 1),
        "layer1.0.downsample.0.weight": (256, 64, 1, 1),
        "layer1.0.downsample.1.running_var": (256,),
        "layer2.0.conv2.weight": (128, 128, 3, 3),
        "layer3.22.bn3.bias": (1024,),
        "layer4.2.conv3.weight": (2048, 512, 1, 1),
        "fc.weight": (1000, 2048),
        "fc.bias": (1000,),
    }
    assert {name: shapes.get(name) for name in expected} == expected
    assert "layer1.1.downsample.0.weight" not in shapes


def test_the_last_exit_answers_as_the_network_that_was_cut() -> None:
    torch.manual_seed(0)
    slow, x = resnet_cifar(20).eval(), torch.randn(3, 3, 32, 32)
    network = early_exit_resnet(slow, after=(2, 5), pool=2)
    assert not network.training
    assert torch.equal(network.exit_logits(x, 2), slow(x))
    assert [tuple(logits.shape) for logits in network(x)] == [(3, 10)] * 3


def test_weights_loaded_into_the_slow_network_reach_the_cut_one() -> None:
    torch.manual_seed(0)
    slow, other, x = resnet_cifar(20).eval(), resnet_cifar(20).eval(), torch.randn(2, 3, 32, 32)
    network = early_exit_resnet(slow, after=(4,))
    slow.load_state_dict(
        {name.removeprefix("module."): value for name, value in other.state_dict().items()}
    )
    assert torch.equal(network.exit_logits(x, 1), other(x))


@pytest.mark.parametrize("after", [(), (0,), (9,), (3, 3), (5, 2), (4, 10)])
def test_places_that_are_none_are_refused(after: tuple[int, ...]) -> None:
    with pytest.raises(InvalidValueError, match="expected increasing block numbers, 1 to 8"):
        early_exit_resnet(resnet_cifar(20), after=after)
