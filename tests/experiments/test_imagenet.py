"""The exhibits on ImageNet, on a generated zoo: what they read, compute and write."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="figures need the extra `report`")

from experiments.imagenet import ablation, calibration, fast_inference, outputs
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


def clone(folder: Path, names: list[str], images: int) -> Path:
    """A clone of the public repository, with the five classes of each image in any order."""
    rng = np.random.default_rng(0)
    for name in names:
        network, framework = name.rsplit("_", 1)
        place = folder / f"{framework}_imagenet"
        place.mkdir(exist_ok=True, parents=True)
        probabilities = rng.dirichlet(np.ones(6), images).astype(np.float32)[:, :5]
        classes = np.argsort(rng.random((images, 8)), axis=1)[:, :5].astype(np.int64)
        np.save(place / f"{network}_{framework}_imagenet_top5probs.npy", probabilities)
        np.save(place / f"{network}_{framework}_imagenet_top5preds.npy", classes)
    return folder


def test_a_clone_and_the_compact_file_made_of_it_hold_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["resnet101_pytorch", "resnet18_pytorch", "vgg16_bn_pytorch", "mobilenetV2_keras"]
    folder = clone(tmp_path / "clone", names, 400)
    with pytest.raises(SystemExit, match="SHA-256") as refused:
        outputs.outputs(folder)
    found = str(refused.value).split("SHA-256 ")[1][:64]
    monkeypatch.setattr(outputs, "SHA256", found)
    data = outputs.outputs(folder)
    compact = tmp_path / "compact.npz"
    np.savez(
        compact,
        model=np.array(data.names),
        prediction=data.predictions.T.astype(np.uint16),
        confidence=data.confidences.T.astype(np.float32),
        label=data.labels.astype(np.uint16),
    )
    again = outputs.outputs(compact)
    assert again.names == data.names == tuple(names)
    np.testing.assert_array_equal(again.confidences, data.confidences)
    place = folder / "pytorch_imagenet" / "resnet18_pytorch_imagenet_top5probs.npy"
    np.testing.assert_array_equal(data.confidences[:, 1], np.load(place).max(axis=1))
    np.testing.assert_array_equal(data.labels, np.repeat(np.arange(8), 50))


def test_one_changed_confidence_is_refused(tmp_path: Path) -> None:
    folder = clone(tmp_path, ["resnet18_pytorch", "mobilenetV2_keras"], 100)
    with pytest.raises(SystemExit) as first:
        outputs.outputs(folder)
    place = folder / "keras_imagenet" / "mobilenetV2_keras_imagenet_top5probs.npy"
    changed = np.load(place)
    changed[7] = np.array([1, 0, 0, 0, 0], dtype=np.float32)
    np.save(place, changed)
    with pytest.raises(SystemExit) as second:
        outputs.outputs(folder)
    assert str(first.value) != str(second.value)


def test_a_folder_that_is_no_clone_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="pass a clone"):
        outputs.outputs(tmp_path)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("resnet101_pytorch", "ResNet-101"),
        ("mobilenetV2_keras", "MobileNetV2"),
        ("vgg16_bn_pytorch", "VGG-16"),
        ("squeezenet1_1_pytorch", "SqueezeNet 1.1"),
    ],
)
def test_networks_are_named_as_papers_name_them(name: str, expected: str) -> None:
    assert outputs.said(name) == expected


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


def test_a_network_that_answers_nothing_is_not_asked() -> None:
    models = ZOO.outputs.places("alexnet_pytorch", "resnet101_pytorch")
    found = fast_inference.tested(ZOO.outputs, np.arange(50), models, [np.inf], None)
    assert found.ran == {"resnet101_pytorch": 1.0}
    assert found.losses == found.gains == 0


def test_fast_inference_writes_what_it_measured(source: Source, monkeypatch: Any) -> None:
    monkeypatch.setattr(fast_inference, "read", lambda *_: source)
    fast_inference.main()
    record = json.loads((source.out / "imagenet_fast_inference.json").read_text())
    assert set(record["methods"]) == set(fast_inference.SAID)
    assert record["inputs_sha256"] == source.inputs
    printed = record["methods"]["printed"]
    assert printed["ran"]["resnet101_pytorch"] == 0, "as printed every row exits"
    assert printed["splits_above_xi"] == 2
    slow = record["methods"]["slow"]
    assert slow["saved"]["mean"] == slow["loss"]["mean"] == 0
    for ending in ("svg", "png", "md"):
        assert (source.out / f"imagenet_fast_inference.{ending}").stat().st_size > 500


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


def test_a_cell_that_violates_too_often_is_marked() -> None:
    losses, costs = np.array([0.03, 0.01, 0.03, 0.03]), np.array([0.5, 0.6, 0.5, 0.5])
    found = ablation._summary(losses, costs, 0.02, 0.01)
    assert found["violations"] == 3
    assert found["p_value"] == pytest.approx(4 * 0.01**3 * 0.99 + 0.01**4)
    assert not found["within_delta"]
    assert ablation._summary(losses, costs, 0.03, 0.01)["within_delta"], "xi itself is allowed"


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


def test_calibration_measures_every_network(source: Source) -> None:
    record = calibration.measured(source)
    assert set(record["networks"]) == set(source.outputs.names)
    slow = record["networks"]["resnet101_pytorch"]
    assert len(slow["sizes"]) == 2
    assert len(slow["scopes"]) == 3
    assert all(r["scopes"]["all images"]["within_delta"] for r in record["networks"].values())
    said = calibration.markdown(json.loads(json.dumps(record)))
    assert "nasnetlarge" in said
