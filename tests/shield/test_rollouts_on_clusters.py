"""The recipe of docs/engines.md: rollouts on Dask and on Ray, which are resumed."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "engines.md").read_text(encoding="utf-8")
# Rows of a first half are kept in the folder, and those of all seeds are made from there.
PROGRAM = """
from pathlib import Path
from tests.shield.cars import brake, danger, labelled, rash, slippery

def collect(seeds, n_jobs, folder, progress=None):
    return labelled(
        slippery, rash, brake, danger, horizon=40, seeds=seeds, n_jobs=n_jobs, folder=folder,
        chunk=8, progress=progress,
    )

class Stop(Exception):
    pass

def half(share):
    if share >= 0.5:
        raise Stop

if __name__ == "__main__":
    import joblib
{start}
    with joblib.parallel_config(backend={backend!r}):
        try:
            collect(range(64), 2, "parts", half)
        except Stop:
            kept = len(list(Path("parts").glob("*")))
        rows = collect(range(64), 2, "parts")
    alone = collect(range(64), 1, None)
    same = all((rows.columns[name] == alone.columns[name]).all() for name in ("seed", "unsafe"))
    print("kept" if kept > 1 else "nothing kept", "same" if same else "other")
"""


@pytest.mark.parametrize("backend", ["dask", "ray"])
def test_rollouts_are_made_and_resumed_on_a_cluster(tmp_path: Path, backend: str) -> None:
    package = "distributed" if backend == "dask" else "ray"
    if find_spec(package) is None:
        pytest.skip(f"{package} is not installed: pip install {package}")
    recipe = PAGE.split(f"```py\n# {backend}\n")[1].split("```")[0]
    start = "".join(f"    {line}\n" for line in recipe.splitlines())
    code = PROGRAM.format(start=start, backend=backend)
    (tmp_path / "program.py").write_text(code, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "program.py"],
        cwd=tmp_path,
        # Workers import what the program does.
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert "kept same" in done.stdout, done.stdout + done.stderr[-3000:]
