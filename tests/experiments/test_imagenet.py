"""The exhibits on ImageNet, on a generated zoo: what they read, compute and write."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="figures need the extra `report`")

from experiments.imagenet import ablation, calibration, fast_inference
from experiments.imagenet.generated import zoo
from experiments.imagenet.source import Source, read

from pacbound import Tally, certify_cascade

ZOO = zoo(1_600)


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Source:
    monkeypatch.setattr("experiments.imagenet.source.QUICK_IMAGES", 1_600)
    monkeypatch.setattr(Source, "smaller", 32)
    monkeypatch.setattr(Source, "times", lambda self, full: 2)
    return read("experiments.imagenet.x", None, ["--quick", "--out", str(tmp_path)])


def test_what_a_cascade_does_to_test_rows_is_counted_row_by_row() -> None:
    data, rows = ZOO.outputs, np.arange(0, 1_600, 3)
    models = data.places("alexnet_pytorch", "resnet18_pytorch", "resnet101_pytorch")
    found = fast_inference.tested(data, rows, models, [0.9, 0.8], None)
    ran, losses, gains = dict.fromkeys(models, 0), 0, 0
    for row in rows:
        for m, threshold in zip(models, [0.9, 0.8, 0.0], strict=True):
            ran[m] += 1
            if data.confidences[row, m] >= threshold:
                break
        right = data.predictions[row, m] == data.labels[row]
        slow_right = data.predictions[row, models[-1]] == data.labels[row]
        losses, gains = losses + (slow_right and not right), gains + (right and not slow_right)
    assert (found.losses, found.gains) == (losses, gains)
    assert found.ran == pytest.approx({data.names[m]: n / len(rows) for m, n in ran.items()})


def test_a_threshold_of_the_exhibit_is_that_of_certify_cascade(source: Source) -> None:
    record = fast_inference.measured(source)
    data, seed = source.outputs, fast_inference.FIRST_SEED
    known = np.random.default_rng(seed).permutation(1_600)[: 20_000 // 32]
    fast, slow = data.places("resnet18_pytorch", "resnet101_pytorch")
    tally = Tally.count(
        "cascade",
        confidence=data.confidences[known][:, [fast]],
        prediction=data.predictions[known][:, [fast, slow]],
        label=data.labels[known],
    )
    expected = certify_cascade(data=tally, xi=fast_inference.XI, delta=fast_inference.DELTA)
    thresholds = record["methods"]["exact"]["splits"]["thresholds"][0]
    np.testing.assert_array_equal(thresholds, expected.thresholds)


def test_no_cell_of_the_ablation_violates_more_often_than_delta_allows(source: Source) -> None:
    record = ablation.measured(source)
    assert len(record["cells"]) == 8
    for cell in record["cells"]:
        assert cell["methods"]["exact"]["within_delta"]
        assert cell["methods"]["product"]["within_delta"]
        assert set(cell["methods"]) == set(ablation.SAID)


def test_calibration_finds_what_intervals_miss_and_how_wide_they_are() -> None:
    cells = calibration.Cells(
        ("a", "b"),
        np.array([0, 0, 0, 1, 1]),
        2,
        np.array([0.2, 0.5, 0.9, 0.9, 0.4]),
        np.array([True, False, True, True, False]),
    )
    images, accuracy = cells.truth()
    assert images.tolist() == [2, 1, 1, 1]
    assert accuracy.tolist() == [0.5, 1.0, 0.0, 1.0]
    lower, upper = cells.ends(cells.certificate(np.array([0, 0, 1, 2])))
    assert lower[2:].tolist() == [0, 0], "nothing was drawn of group b, so nothing is claimed"
    assert upper[2:].tolist() == [1, 1]
    assert upper[0] < 1 or lower[0] > 0
