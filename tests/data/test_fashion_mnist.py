"""The shipped table keeps its promises, and the recorded accuracies are the table's own."""

from __future__ import annotations

import hashlib
import json
from dataclasses import fields
from importlib.resources import files
from pathlib import Path
from typing import Any

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
