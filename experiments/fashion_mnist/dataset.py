"""Fashion-MNIST as arrays: from Debian's package, or from a folder of the four IDX files.

Wherever the files come from, their content must have the SHA-256 digests below, which are of the
uncompressed files: a folder may hold them with or without .gz. Nothing here knows which images are
trained on.
"""

from __future__ import annotations

import gzip
import hashlib
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

PACKAGE = "dataset-fashion-mnist"
FOLDER_IN_PACKAGE = Path("usr/share/datasets/fashion-mnist")
DIGESTS = {
    "train-images-idx3-ubyte": "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
    "train-labels-idx1-ubyte": "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
    "t10k-images-idx3-ubyte": "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
    "t10k-labels-idx1-ubyte": "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
}


@dataclass(frozen=True, eq=False)
class FashionMnist:
    """60,000 training and 10,000 test images of 28 x 28 grey values, with labels 0 to 9, in the
    files' own order."""

    train_images: NDArray[np.uint8]
    train_labels: NDArray[np.uint8]
    test_images: NDArray[np.uint8]
    test_labels: NDArray[np.uint8]


def load(folder: Path | None = None) -> FashionMnist:
    """The four files of `folder`, or of Debian's package where no folder is named."""
    if folder is not None:
        return FashionMnist(*(parse_idx(checked_content(folder, name)) for name in DIGESTS))
    with tempfile.TemporaryDirectory() as scratch:
        return load(fetch_package(Path(scratch)))


def fetch_package(scratch: Path) -> Path:
    """Download Debian's package into `scratch`, unpack it there without installing it, and return
    the folder of the files."""
    try:
        # Only root may refresh the package lists; lists that are fresh already do as well.
        subprocess.run(["apt-get", "--quiet", "update"], check=False)
        subprocess.run(["apt-get", "--quiet", "download", PACKAGE], cwd=scratch, check=True)
        (archive,) = scratch.glob(f"{PACKAGE}_*.deb")
        subprocess.run(["dpkg", "-x", archive, scratch], check=True)
    except (OSError, subprocess.CalledProcessError, ValueError) as error:
        raise SystemExit(
            f"Debian's package {PACKAGE} could not be fetched ({error}). "
            "Pass --folder with a folder that holds the four IDX files of Fashion-MNIST."
        ) from error
    return scratch / FOLDER_IN_PACKAGE


def checked_content(folder: Path, name: str) -> bytes:
    """The uncompressed bytes of the file `name` or `name`.gz, refused unless they are the ones this
    experiment is about."""
    plain, packed = folder / name, folder / f"{name}.gz"
    if plain.exists():
        content = plain.read_bytes()
    elif packed.exists():
        content = gzip.decompress(packed.read_bytes())
    else:
        raise SystemExit(
            f"{folder} holds neither {name} nor {name}.gz: expected the four IDX files of "
            "Fashion-MNIST."
        )
    digest = hashlib.sha256(content).hexdigest()
    if digest != DIGESTS[name]:
        raise SystemExit(
            f"{name} has the SHA-256 digest {digest}: expected {DIGESTS[name]}. "
            "The file is damaged or another dataset's; MNIST uses the same names. Fetch it again."
        )
    return content


def parse_idx(content: bytes) -> NDArray[np.uint8]:
    """The array of an IDX file of unsigned bytes: two zero bytes, 8, the number of axes, their
    big-endian lengths, the values."""
    zeros, kind, axes = content[:2], content[2], content[3]
    if zeros != b"\0\0" or kind != 8:
        raise SystemExit(
            f"a file starts with {content[:4]!r}: expected an IDX file of unsigned bytes."
        )
    shape = np.frombuffer(content, dtype=">u4", count=axes, offset=4).tolist()
    return np.frombuffer(content, dtype=np.uint8, offset=4 + 4 * axes).reshape(shape)
