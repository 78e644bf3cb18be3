"""The networks that are timed: as many parameters and operations as the published ones."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from experiments.imagenet.cpu_time import weighted  # noqa: E402
from experiments.imagenet.networks import networks  # noqa: E402
from experiments.imagenet.outputs import GIGA_MACS  # noqa: E402

from pacbound.cascade.early_exit import count_macs  # noqa: E402

PARAMETERS = {
    "resnet18": 11_689_512,
    "resnet34": 21_797_672,
    "resnet50": 25_557_032,
    "resnet101": 44_549_160,
    "densenet121": 7_978_856,
    "densenet169": 14_149_480,
    "densenet201": 20_013_928,
    "mobilenetV2": 3_504_872,
}
"""As torchvision states them."""


@pytest.mark.parametrize("name", list(PARAMETERS))
def test_a_network_has_as_many_parameters_as_the_published_one(name: str) -> None:
    network = networks()[name]()
    assert sum(parameter.numel() for parameter in network.parameters()) == PARAMETERS[name]


@pytest.mark.parametrize("name", ["resnet18", "mobilenetV2"])
def test_a_network_costs_what_was_published(name: str) -> None:
    macs = count_macs(networks()[name](), (3, 224, 224))[0]
    assert macs / 1e9 == pytest.approx(GIGA_MACS[name], abs=0.005)


def test_a_cascade_takes_the_time_of_its_networks_as_often_as_they_run() -> None:
    seconds = {"resnet18": 0.1, "resnet101": 0.5}
    ran = {"resnet18_pytorch": 1.0, "resnet101_pytorch": 0.4}
    assert weighted(ran, seconds) == pytest.approx(0.3)
