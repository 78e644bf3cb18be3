"""The shipped table keeps its promises, and the recorded accuracies are the table's own."""

from __future__ import annotations

import hashlib
import json
from dataclasses import fields
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pacbound.data import FashionMnistPredictions, fashion_mnist

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
SPLITS = {0: "train_tail", 1: "test"}


@pytest.fixture(scope="module")
def table() -> FashionMnistPredictions:
    return fashion_mnist()


@pytest.fixture(scope="module")
def record() -> dict[str, Any]:
    if not EXPERIMENTS.exists():
        pytest.skip("the source distribution carries no experiments")
    document: dict[str, Any] = json.loads(
        (EXPERIMENTS / "results/fashion_mnist_training.json").read_text(encoding="utf-8")
    )
    return document


def packaged(name: str) -> bytes:
    return files("pacbound.data").joinpath(name).read_bytes()


def test_every_column_has_one_value_per_image(table: FashionMnistPredictions) -> None:
    assert {field.name: getattr(table, field.name).shape for field in fields(table)} == {
        "confidence_fast": (20_000,),
        "prediction_fast": (20_000,),
        "confidence_slow": (20_000,),
        "prediction_slow": (20_000,),
        "label": (20_000,),
        "split": (20_000,),
    }


@pytest.mark.parametrize("name", ["confidence_fast", "confidence_slow"])
def test_a_top_confidence_among_ten_classes_lies_between_a_tenth_and_one(
    table: FashionMnistPredictions, name: str
) -> None:
    confidence = getattr(table, name)
    assert confidence.dtype == np.float32
    assert confidence.min() >= 0.1
    assert confidence.max() <= 1.0


@pytest.mark.parametrize("name", ["prediction_fast", "prediction_slow", "label"])
def test_classes_are_the_digits_zero_to_nine(table: FashionMnistPredictions, name: str) -> None:
    classes = getattr(table, name)
    assert classes.dtype == np.uint8
    assert set(np.unique(classes).tolist()) == set(range(10))


def test_the_tail_of_the_training_file_comes_first_and_the_test_file_second(
    table: FashionMnistPredictions,
) -> None:
    assert table.split.dtype == np.uint8
    assert table.split.tolist() == [0] * 10_000 + [1] * 10_000


def test_the_test_file_holds_a_thousand_images_of_every_class(
    table: FashionMnistPredictions,
) -> None:
    assert np.bincount(table.label[table.split == 1]).tolist() == [1000] * 10


def test_every_call_returns_arrays_of_its_own(table: FashionMnistPredictions) -> None:
    other = fashion_mnist()
    other.label[:] = 0
    assert table.label.any()


def test_the_file_stays_small() -> None:
    assert len(packaged("fashion_mnist.npz")) < 500_000


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("exit_name", ["fast", "slow"])
def test_recorded_accuracies_are_those_of_the_table(
    table: FashionMnistPredictions, record: dict[str, Any], split: int, exit_name: str
) -> None:
    rows = table.split == split
    right = int((getattr(table, f"prediction_{exit_name}")[rows] == table.label[rows]).sum())
    recorded = record["held_out"][SPLITS[split]]
    assert recorded["images"] == rows.sum()
    assert recorded[f"right_{exit_name}"] == right
    assert recorded[f"accuracy_{exit_name}"] == right / 10_000


def test_the_record_is_of_the_shipped_file(record: dict[str, Any]) -> None:
    assert record["table_sha256"] == hashlib.sha256(packaged("fashion_mnist.npz")).hexdigest()


def test_the_readme_quotes_the_command_and_the_accuracies_of_the_record(
    record: dict[str, Any],
) -> None:
    readme = packaged("README.md").decode()
    assert record["command"] in readme
    for split in SPLITS.values():
        for exit_name in ("fast", "slow"):
            assert (
                f"{record['held_out'][split][f'accuracy_{exit_name}']:.2%}".replace("%", " %")
                in readme
            )
