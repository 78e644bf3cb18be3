"""`--engine`: the same certificate whichever engine counts, and bad files refused by all."""

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pacbound import Tally, load_certificate

pl = pytest.importorskip("polars", reason="the engine polars needs the extra `polars`")

Run = Callable[..., subprocess.CompletedProcess[str]]

ROWS = 600
KIND = "calibration"
COUNT = ("--confidence", "c", "--correct", "ok")
CALIBRATE = ("--confidence", "c", "--correct", "ok", "--delta", 0.01)
WITH_JAVA = [
    pytest.mark.long,
    pytest.mark.skipif(
        shutil.which("java") is None, reason="Spark needs Java, and there is none here."
    ),
]
SPARK = pytest.param("spark", marks=WITH_JAVA)
ENGINES = ["duckdb", "polars", SPARK]


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A session of Spark that is running before anything is counted."""
    from pyspark.sql import SparkSession

    from pacbound.sources.engines.spark import _started

    running = _started(SparkSession.builder, "local[1]", tmp_path_factory.mktemp("spark") / "log")
    yield running
    running.stop()


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    if request.param == "spark":
        request.getfixturevalue("session")
    return str(request.param)


def write(path: Path, **columns: list[Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    frame = pl.DataFrame(columns)
    (frame.write_parquet if path.suffix == ".parquet" else frame.write_ipc)(path)
    return path


def tally(pacbound: Run, engine: str, *arguments: object) -> Tally:
    pacbound("tally", KIND, *arguments, *COUNT, "--engine", engine, "-o", "tally.json")
    return Tally.load("tally.json")


def refusal(pacbound: Run, engine: str, *arguments: object) -> str:
    how = ("--engine", engine, "-o", "refused.json")
    done = pacbound("tally", KIND, *arguments, *COUNT, *how, code=2)
    assert not Path("refused.json").exists()
    assert len(done.stderr.splitlines()) == 1, done.stderr
    return done.stderr


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
    ("calibrate", (*CALIBRATE, "--groups", "day")),
    (
        "cascade",
        (
            "--confidence",
            "c",
            "--prediction",
            "fast,slow",
            "--label",
            "y",
            "--xi",
            0.2,
            "--delta",
            0.01,
        ),
    ),
    ("shield", ("--score", "s", "--unsafe", "u", "--xi", 0.1, "--delta", 0.01)),
]


@pytest.mark.parametrize("engine", ["polars", SPARK])
def test_every_engine_makes_the_claim_of_the_embedded_one(
    pacbound: Run, table: Path, engine: str
) -> None:
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
    for name, said in (
        ("cut", "cut.parquet"),
        ("column", "'ok'"),
        ("null", "missing"),
        ("empty", "no rows"),
    ):
        done = pacbound(
            "calibrate",
            f"{name}.parquet",
            *CALIBRATE,
            "--engine",
            engine,
            "-o",
            "out.json",
            code=2,
        )
        assert said in done.stderr, (name, done.stderr)
        assert len(done.stderr.splitlines()) == 1
        assert not (tmp_path / "out.json").exists()


def test_no_row_of_a_folder_is_left_out(pacbound: Run, tmp_path: Path, engine: str) -> None:
    write(tmp_path / "nested" / "y.parquet", c=[0.1], ok=[True])
    write(tmp_path / "nested" / "sub" / "x.parquet", c=[0.9, 0.9], ok=[False, False])
    write(tmp_path / "beside" / "g=a" / "x.parquet", c=[0.1], ok=[True])
    write(tmp_path / "beside" / "y.parquet", c=[0.9, 0.9], ok=[False, False])
    write(tmp_path / "within" / "g=a" / "x.parquet", c=[0.1], ok=[True])
    write(tmp_path / "within" / "g=a" / "sub" / "y.parquet", c=[0.9, 0.9], ok=[False, False])
    write(
        tmp_path / "deeper" / "g=a" / "sub" / "y.parquet",
        c=[0.9, 0.9, 0.1],
        ok=[False, False, True],
    )
    for folder in ("nested", "beside", "within", "deeper"):
        assert tally(pacbound, engine, folder).totals == {"wrong": 2, "right": 1}, folder


def test_a_file_that_an_engine_would_pass_over_is_counted_or_refused(
    pacbound: Run, tmp_path: Path, engine: str
) -> None:
    write(tmp_path / "_x.parquet", c=[0.1, 0.2], ok=[False, True])
    write(tmp_path / "y.parquet", c=[0.9], ok=[False])
    (tmp_path / "nothing.parquet").touch()
    if engine == "spark":
        assert "_x.parquet is passed over by Spark" in refusal(
            pacbound, engine, "_x.parquet", "y.parquet"
        )
    else:
        assert tally(pacbound, engine, "_x.parquet", "y.parquet").rows == 3
    assert "parquet" in refusal(pacbound, engine, "y.parquet", "nothing.parquet")


@pytest.mark.parametrize("engine", ["polars", "spark"])
def test_text_is_left_to_the_engine_that_guesses_nothing(
    pacbound: Run, tmp_path: Path, engine: str
) -> None:
    texts = {
        "csv": "c,ok\n0.5,1\n",
        "tsv": "c\tok\n0.5\t1\n",
        "jsonl": '{"c":0.5,"ok":1}\n',
        "json": '[{"c":0.5,"ok":1}]',
    }
    for ending, text in texts.items():
        (tmp_path / f"rows.{ending}").write_text(text)
        said = refusal(pacbound, engine, f"rows.{ending}")
        assert f"{engine.capitalize()} guesses the types of text, and rows may be lost" in said
        assert "engine duckdb" in said
        assert tally(pacbound, "duckdb", f"rows.{ending}").rows == 1
    if engine == "spark":
        assert "guesses the types" in refusal(pacbound, engine, "s3a://bucket/rows.csv.gz")
        assert "Count each apart" in refusal(
            pacbound, engine, "s3a://bucket/rows.parquet", "rows.csv"
        )


def test_every_engine_gives_the_tally_the_fingerprints_of_its_files(
    pacbound: Run, table: Path, engine: str
) -> None:
    made, embedded = tally(pacbound, engine, table), tally(pacbound, "duckdb", table)
    assert made == embedded
    assert made.sources == embedded.sources
    assert len(made.sources) == 2


@pytest.mark.slow
def test_partitions_hold_text(pacbound: Run, tmp_path: Path, engine: str) -> None:
    names = ["007", "7", "1.0", "1", "2024-01-01", "a%20b"]
    for place, name in enumerate(names):
        write(tmp_path / "rows[1]" / f"g={name}" / "x.parquet", c=[0.1 + place / 10], ok=[True])
    addresses = [f"file://{tmp_path}/rows[1]"] if engine == "spark" else []
    for path in ("rows[1]", "rows[[]1]/g=*/x.parquet", *addresses):
        made = tally(pacbound, engine, path, "--groups", "g")
        assert set(made.groups) == {"007", "7", "1.0", "1", "2024-01-01", "a b"}
        assert made == tally(pacbound, "duckdb", "rows[1]", "--groups", "g")
    assert tally(pacbound, engine, "rows[1]/g=007/x.parquet", "--groups", "g").groups == ("007",)
    write(tmp_path / "rows[1]" / "g=__HIVE_DEFAULT_PARTITION__" / "x.parquet", c=[0.1], ok=[False])
    assert ("empty" if engine == "duckdb" else "g has 1 missing") in refusal(
        pacbound, engine, "rows[1]", "--groups", "g"
    )
    assert tally(pacbound, engine, "rows[1]").rows == 7


@pytest.mark.parametrize("engine", [SPARK])
def test_a_running_session_is_left_as_it_was(
    pacbound: Run, table: Path, session: Any, engine: str
) -> None:
    session.conf.set("spark.sql.caseSensitive", "false")
    session.conf.set("spark.sql.files.ignoreCorruptFiles", "true")
    before = session.conf.getAll
    (table.parent / "cut.parquet").write_bytes(
        (table / "day=mon" / "part.parquet").read_bytes()[:-99]
    )
    assert "cut.parquet" in refusal(
        pacbound, engine, table / "day=tue" / "part.parquet", "cut.parquet"
    )
    assert tally(pacbound, engine, table).rows == ROWS
    assert session.conf.getAll == before
    assert session.range(3).count() == 3
    for name in ("spark.sql.caseSensitive", "spark.sql.files.ignoreCorruptFiles"):
        session.conf.unset(name)


@pytest.mark.parametrize("engine", [SPARK])
def test_an_address_goes_to_spark_as_it_is_named(
    pacbound: Run, table: Path, session: Any, engine: str
) -> None:
    from pacbound.sources.engines.spark import remote_parts

    with remote_parts([f"file://{table}"], master=None) as (part,):
        assert sorted(row.day for row in part.frame.select("day").distinct().collect()) == [
            "mon",
            "tue",
        ]
    assert "nowhere://bucket/rows cannot be read by Spark" in refusal(
        pacbound, engine, "nowhere://bucket/rows"
    )


def test_a_delta_table_is_not_counted_with_the_files_that_were_removed_from_it(
    pacbound: Run, table: Path, engine: str
) -> None:
    (table / "_delta_log").mkdir()
    for named in (table, table.parent, f"{table}/*/*.parquet", table / "day=mon" / "part.parquet"):
        assert f"{table} is a table of Delta Lake" in refusal(pacbound, engine, named)


@pytest.mark.parametrize("engine", [SPARK])
def test_a_table_with_a_log_is_refused_also_at_an_address(
    table: Path, session: Any, engine: str
) -> None:
    from pacbound.errors import InvalidValueError
    from pacbound.sources.engines.spark import remote_parts

    (table.parent / "metadata").mkdir()
    (table.parent / "metadata" / "00000-a [b].metadata.json").touch()
    with (
        pytest.raises(InvalidValueError, match=f"^file://{table.parent} is a table of Apache"),
        remote_parts([f"file://{table}"], master=None),
    ):
        pytest.fail("must not be read")


@pytest.mark.parametrize("engine", [SPARK])
def test_spark_reads_orc_each_file_once(
    pacbound: Run, tmp_path: Path, session: Any, engine: str
) -> None:
    frame = session.createDataFrame(
        [(0.1, True, "007"), (0.9, False, "7"), (0.8, False, "7")],
        "c double, ok boolean, g string",
    )
    frame.write.partitionBy("g").orc(str(tmp_path / "rows.orc"))
    made = tally(pacbound, engine, "rows.orc", "--groups", "g")
    assert (made.groups, made.totals) == (("007", "7"), {"wrong": 2, "right": 1})
    (file,) = (tmp_path / "rows.orc" / "g=007").glob("*.orc")
    assert tally(pacbound, engine, "rows.orc/*/*.orc").rows == 3
    assert "named twice" in refusal(pacbound, engine, "rows.orc", file)
    shutil.copy(file, tmp_path / "copy.orc")
    assert "same bytes" in refusal(pacbound, engine, "copy.orc", file)
    assert "does not exist" in refusal(pacbound, engine, "none.orc")
    session.createDataFrame([(1, True)], "c int, ok boolean").write.orc(str(tmp_path / "whole.orc"))
    assert "different types" in refusal(pacbound, engine, "rows.orc", "whole.orc")
    (tmp_path / "rows.orc" / "notes.txt").write_text("not a table")
    refusal(pacbound, engine, "rows.orc")
