"""The latch in C (examples/latch.c) fires where the one in Python does, bit for bit."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from pacbound.shield.latch import Latch

SOURCE = Path(__file__).parents[2] / "examples" / "latch.c"
TINY = float(np.nextafter(0, 1))
EDGES = [
    *(0.0, -0.0, 1.0, TINY, -TINY, 2.0**-1030, float("nan"), float("inf"), -float("inf")),
    *(1 + 1e-6, float(np.nextafter(1 + 1e-6, 2)), float(np.nextafter(1, 2)), 1.5, -1e-300, 0.5),
    *(float(np.nextafter(0.5, 0)), float(np.nextafter(0.5, 1)), 32767 / 65536, 32769 / 65536),
    *(float(np.float32(0.1)), 0.1, 1e300, 65535 / 65536, float(np.nextafter(1, 0))),
]
THRESHOLDS = [-np.inf, 0.0, TINY, 0.1, 0.5, 32769 / 65536, 65535 / 65536, 1.0, np.inf]


class _Latch(ctypes.Structure):
    _fields_ = (("threshold", ctypes.c_double), ("fired", ctypes.c_bool))


@pytest.fixture(scope="module", params=["-O0", "-O2"])
def compiled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> object:
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("there is no C compiler (cc, gcc, clang)")
    target = tmp_path_factory.mktemp("latch") / "latch.so"
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", request.param]
    subprocess.run([compiler, *flags, "-o", str(target), str(SOURCE)], check=True)
    library = ctypes.CDLL(str(target))
    library.latch_look.argtypes = (ctypes.POINTER(_Latch), ctypes.c_double)
    library.latch_look.restype = ctypes.c_bool
    return library


def in_c(library: object, threshold: float, dangers: Sequence[float]) -> list[bool]:
    latch = _Latch(threshold, True)
    library.latch_reset(ctypes.byref(latch))  # type: ignore[attr-defined]
    look = library.latch_look  # type: ignore[attr-defined]
    return [bool(look(ctypes.byref(latch), danger)) for danger in dangers]


def in_python(threshold: float, dangers: Sequence[float]) -> list[bool]:
    latch = Latch(lambda danger: danger, threshold)
    return [bool(latch.look(danger)) for danger in dangers]


def test_each_edge_fires_alike(compiled: object) -> None:
    for threshold in THRESHOLDS:
        for danger in EDGES:
            one = in_c(compiled, threshold, [danger])
            assert one == in_python(threshold, [danger]), (threshold, danger)


def test_sequences_fire_alike_and_stay_fired(compiled: object) -> None:
    rng = np.random.default_rng(0)
    for _ in range(2000):
        threshold = float(rng.choice([*THRESHOLDS, rng.random(), rng.integers(65537) / 65536]))
        near = [threshold, np.nextafter(threshold, 0), np.nextafter(threshold, 1)]
        pool = [*rng.random(20) * rng.choice([0.2, 1.0]), *near, *rng.choice(EDGES, 2)]
        dangers = rng.choice(pool, size=int(rng.integers(1, 12))).tolist()
        assert in_c(compiled, threshold, dangers) == in_python(threshold, dangers)


def test_fast_math_is_refused(tmp_path: Path) -> None:
    compiler = shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("there is no C compiler (gcc, clang)")
    done = subprocess.run(
        [compiler, "-ffast-math", "-c", "-o", str(tmp_path / "latch.o"), str(SOURCE)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "must see NaN" in done.stderr
