"""`--engine`: the same certificate whichever engine counts, and bad files refused by all of them."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from pacbound import load_certificate

pl = pytest.importorskip("polars", reason="the engine polars needs the extra `polars`")

Run = Callable[..., subprocess.CompletedProcess[str]]

ROWS = 600
CALIBRATE = ("--confidence", "c", "--correct", "ok", "--delta", 0.01)
SPARK = pytest.param(
    "spark",
    marks=[
        pytest.mark.slow,
        pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java, and there is none here."),
    ],
)
ENGINES = ["duckdb", "polars", SPARK]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Two files in a folder partitioned by day, with every edge of a bin."""
    rng = np.random.default_rng(0)
    confidence = rng.beta(6, 1, size=ROWS)
    confidence[:21] = np.arange(21) / 20
    slow = rng.integers(0, 3, size=ROWS)
    frame = pl.DataFrame(
        {
            "c": confidence,
            "ok": rng.random(ROWS) < confidence,
            "fast": np.where(rng.random(ROWS) < 0.9, slow, (slow + 1) % 3),
            "slow": slow,
            "y": slow,
            "s": rng.random(ROWS),
            "u": rng.random(ROWS) < 0.1,
        }
    )
    for place, day in enumerate(("mon", "tue")):
        folder = tmp_path / "rows" / f"day={day}"
        folder.mkdir(parents=True)
        frame[place::2].write_parquet(folder / "part.parquet")
    return tmp_path / "rows"


VERBS = [
    ("calibrate", CALIBRATE),
    ("calibrate", (*CALIBRATE, "--group", "day")),
    ("cascade", ("--confidence", "c", "--prediction", "fast,slow", "--label", "y", "--xi", 0.2, "--delta", 0.01)),
    ("shield", ("--score", "s", "--unsafe", "u", "--xi", 0.1, "--delta", 0.01)),
]


@pytest.mark.parametrize("engine", ["polars", SPARK])
def test_every_engine_makes_the_claim_of_the_embedded_one(pacbound: Run, table: Path, engine: str) -> None:
    for verb, options in VERBS:
        made = []
        for name in ("duckdb", engine):
            done = pacbound(verb, table, *options, "--engine", name, "-o", f"{name}.json")
            assert done.stderr == ""
            made.append(load_certificate(table.parent / f"{name}.json").claim_digest)
        assert made[0] == made[1], (verb, options)


@pytest.mark.parametrize("engine", ENGINES)
def test_bad_files_are_refused_by_every_engine(pacbound: Run, tmp_path: Path, engine: str) -> None:
    (tmp_path / "cut.parquet").write_bytes(b"PAR1 and no more")
    pl.DataFrame({"c": [0.5], "right": [True]}).write_parquet(tmp_path / "column.parquet")
    pl.DataFrame({"c": [0.5, None], "ok": [True, True]}).write_parquet(tmp_path / "null.parquet")
    empty = {"c": pl.Float64, "ok": pl.Boolean}
    pl.DataFrame(schema=empty).write_parquet(tmp_path / "empty.parquet")
    for name, said in (("cut", "cut.parquet"), ("column", "'ok'"), ("null", "missing"), ("empty", "no rows")):
        done = pacbound("calibrate", f"{name}.parquet", *CALIBRATE, "--engine", engine, "-o", "out.json", code=2)
        assert said in done.stderr, (name, done.stderr)
        assert len(done.stderr.splitlines()) == 1
        assert not (tmp_path / "out.json").exists()


def test_options_of_another_engine_are_refused(pacbound: Run, table: Path) -> None:
    done = pacbound("calibrate", table, *CALIBRATE, "--master", "spark://127.0.0.1:7077", code=2)
    assert "engine spark" in done.stderr
    done = pacbound("calibrate", table, *CALIBRATE, "--engine", "polars", "--memory-limit", "500MB", code=2)
    assert "DuckDB" in done.stderr
    pacbound("calibrate", table, *CALIBRATE, "--memory-limit", "500MB")
    assert "not an amount" in pacbound("calibrate", table, *CALIBRATE, "--memory-limit", "lots", code=2).stderr


def test_polars_says_which_formats_it_reads(pacbound: Run, tmp_path: Path) -> None:
    np.savez(tmp_path / "rows.npz", c=np.array([0.5]), ok=np.array([True]))
    assert "duckdb reads more" in pacbound("calibrate", "rows.npz", *CALIBRATE, "--engine", "polars", code=2).stderr
