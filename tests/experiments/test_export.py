"""Outputs of a user's own networks and images, on generated images and random weights."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
Image = pytest.importorskip("PIL.Image")

from experiments.imagenet import export  # noqa: E402

from pacbound.cascade.early_exit import early_exit_resnet, resnet101  # noqa: E402


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    for label in ("n01", "n02"):
        (tmp_path / "val" / label).mkdir(parents=True)
        for number, size in enumerate([(300, 260), (260, 400)]):
            pixels = rng.integers(0, 256, (*size, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / "val" / label / f"{number}.png")
    Image.new("L", (40, 30)).save(tmp_path / "val" / "n02" / "grey.JPEG")
    (tmp_path / "val" / "n02" / "notes.txt").write_text("no image")
    return tmp_path / "val"


def test_the_file_holds_what_the_networks_say(folder: Path, tmp_path: Path) -> None:
    torch.manual_seed(0)
    linear = torch.nn.Sequential(torch.nn.AvgPool2d(56), torch.nn.Flatten(), torch.nn.Linear(48, 3))
    out = tmp_path / "outputs.npz"
    export.export(
        folder, {("a",): lambda x: (linear(x),), ("b", "c"): lambda x: (-linear(x), linear(x))}, out
    )
    with np.load(out, allow_pickle=False) as arrays:
        assert arrays["model"].tolist() == ["a", "b", "c"]
        assert arrays["label"].tolist() == [0, 0, 1, 1, 1]
        assert arrays["path"][-1] == "n02/grey.JPEG"
        images = torch.stack([export.prepared(folder / name) for name in arrays["path"]])
        said = linear(images).softmax(dim=1).detach().numpy()
        np.testing.assert_array_equal(arrays["prediction"][0], said.argmax(axis=1))
        np.testing.assert_allclose(arrays["confidence"][0], said.max(axis=1), rtol=1e-5)
        np.testing.assert_array_equal(arrays["prediction"][0], arrays["prediction"][2])


def test_an_image_is_cut_from_its_middle_and_normalised(tmp_path: Path) -> None:
    pixels = np.zeros((256, 512, 3), dtype=np.uint8)
    pixels[:, 128:384] = 255
    Image.fromarray(pixels).save(tmp_path / "middle.png")
    found = export.prepared(tmp_path / "middle.png")
    assert tuple(found.shape) == (3, 224, 224)
    expected = (1 - np.array(export.MEAN)) / np.array(export.SPREAD)
    np.testing.assert_allclose(found.amin(dim=(1, 2)), expected, rtol=1e-5)


def test_trained_exits_are_models_of_their_own(tmp_path: Path) -> None:
    torch.manual_seed(0)
    network = early_exit_resnet(resnet101(), after=(8,))
    path = tmp_path / "exits.pt"
    torch.save({"after": [8], "state_dict": network.state_dict()}, path)
    names, answers = export.with_exits(path, "cpu")
    assert names == ("resnet101_exit_8", "resnet101")
    image = torch.rand(1, 3, 64, 64)
    with torch.inference_mode():
        expected = network.eval()(image)
        for found, logits in zip(answers(image), expected, strict=True):
            torch.testing.assert_close(found, logits)


def test_a_folder_without_images_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="FOLDER/CLASS/IMAGE"):
        export.listed(tmp_path)


def test_no_network_is_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(SystemExit):
        export.main([str(folder), "-o", str(tmp_path / "o.npz")])
