"""The ideal that early exits are measured against runs what `infer` needs, and nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed: pip install 'pacbound[torch]'")

import torch
from benchmarks import early_exit

from pacbound.cascade.early_exit import EarlyExitNetwork, early_exit_resnet, resnet_cifar

RATES = (0.5, 0.25)


@pytest.fixture(scope="module")
def case() -> Any:
    torch.manual_seed(0)
    images = torch.randn(16, 3, 32, 32)
    network = early_exit_resnet(resnet_cifar(20).eval(), after=(2, 4))
    network = early_exit.unsaturated(network, images)
    thresholds = early_exit.thresholds_for(network.exit_table([images]).confidence, RATES)
    return network, images, thresholds


def test_thresholds_let_the_shares_leave_that_were_asked_for(case: Any) -> None:
    network, images, thresholds = case
    assert np.bincount(network.infer(images, thresholds).exits).tolist() == [8, 4, 4]


def test_the_ideal_runs_the_rows_that_are_left_and_gives_the_same_answers(case: Any) -> None:
    network, images, thresholds = case
    answers = network.infer(images, thresholds)
    parts = early_exit.parts_needed(network, images, thresholds)
    assert [len(part.inputs) for part in parts] == [16, 8, 4]
    for place, logits in enumerate(early_exit.by_hand(parts)):
        reached = answers.exits >= place
        leave = answers.exits[reached] == place
        assert torch.equal(logits[leave].argmax(dim=1), answers.labels[reached][leave])


def test_the_ideal_of_a_row_that_leaves_at_once_has_one_part(case: Any) -> None:
    network, images, thresholds = case
    first = int((network.infer(images, thresholds).exits == 0).nonzero()[0])
    one = images[first : first + 1]
    assert len(early_exit.parts_needed(network, one, thresholds)) == 1


def test_the_recording_decides_as_the_network_does(case: Any) -> None:
    network, images, thresholds = case
    parts = early_exit.parts_needed(network, images, thresholds)
    recorded = early_exit.recording(parts, 3)
    assert isinstance(recorded, EarlyExitNetwork)
    assert torch.equal(
        recorded.infer(images, thresholds).exits, network.infer(images, thresholds).exits
    )


def test_everything_is_timed(case: Any) -> None:
    network, images, thresholds = case
    took = early_exit.measure(network, resnet_cifar(20).eval(), [images[:2]], thresholds, 1)
    assert min(took.slow, took.early, took.ideal) > 0
    assert took.decision >= 0
