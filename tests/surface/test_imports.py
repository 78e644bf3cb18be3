"""`import pacbound` is cheap: numpy and scipy.special, the standard library, and nothing else."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

HEAVY = [
    "duckdb",
    "gymnasium",
    "jax",
    "joblib",
    "matplotlib",
    "mujoco",
    "narwhals",
    "pandas",
    "polars",
    "pyarrow",
    "pyspark",
    "rich",
    "scipy.optimize",
    "scipy.stats",
    "sklearn",
    "torch",
    "typer",
]

PROGRAM = """
import json, sys
import numpy, scipy.special
before = set(sys.modules)
import pacbound
now = set(sys.modules)
loaded = {"file": pacbound.__file__, "added": sorted(now - before), "all": sorted(now)}
print(json.dumps(loaded))
"""


@cache
def _loaded() -> dict[str, list[str]]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    modules: dict[str, list[str]] = json.loads(done.stdout)
    return modules


@pytest.mark.parametrize("module", HEAVY)
def test_importing_pacbound_does_not_load(module: str) -> None:
    assert module not in _loaded()["all"]


def test_importing_pacbound_loads_itself_the_standard_library_numpy_and_scipy_special_only() -> (
    None
):
    own = {"pacbound", "numpy"}
    strange = [
        name
        for name in _loaded()["added"]
        if name.split(".")[0] not in own | sys.stdlib_module_names
    ]
    assert strange == []


def test_the_package_under_test_is_the_one_of_this_repository() -> None:
    assert Path(str(_loaded()["file"])).is_relative_to(Path(__file__).parents[2] / "src")


VERIFY = """
import json, sys
from pacbound.cli import main
try:
    main()
except SystemExit as ended:
    code = ended.code
print(json.dumps([code, [name for name in sys.modules if name.split(".")[0] == "pacbound"]]))
"""
MOST_MODULES = {"recall-1": 90, "calibration-1": 90, "shield-1": 90, "cascade-exact-1": 90}
"""Frozen certificates, and how many modules of the package `pacbound verify` may load for each."""


@pytest.mark.parametrize("name", MOST_MODULES)
def test_verifying_loads_little_of_the_package(name: str) -> None:
    import typer  # noqa: F401, the command needs it

    path = Path(__file__).parents[1] / "certificate" / "frozen" / f"{name}.json"
    done = subprocess.run(
        [sys.executable, "-c", VERIFY, "verify", str(path)],
        capture_output=True,
        text=True,
        check=True,
    )
    code, loaded = json.loads(done.stdout.splitlines()[-1])
    assert not code
    assert len(loaded) <= MOST_MODULES[name]
    for_rows = {"pacbound.cli.recount", "pacbound.sources.standard_input", "pacbound.tally.count"}
    assert not for_rows & {*loaded}
