"""Frames of Spark: how often their rows are read, what comes back, what is refused and in which
words; and that no setting of a session changes a count.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

from pacbound import Tally, calibrate, certify_cascade
from pacbound.errors import InvalidTypeError, InvalidValueError, RepeatedSourceError
from pacbound.sources.engines.spark import explained
from pacbound.tally import classes
from pacbound.tally.frames import answer_columns, counting, engine_rows
from pacbound.tally.questions import cascade

N = 2_000
PLACE = np.arange(N)
SCORE = PLACE * 7 % 101 / 100
LABEL = PLACE % 5
FAST, MIDDLE, SLOW = (np.where(PLACE % k, LABEL, (LABEL + 1) % 5) for k in (4, 7, 11))
NAMES = np.array(["ant", "bee", "cat", "dog", "eel"])
TABLE = pa.table(
    {
        "c": SCORE,
        "d": SCORE[::-1].copy(),
        "ok": FAST == LABEL,
        "fast": FAST,
        "middle": MIDDLE.astype(np.float64),
        "slow": SLOW,
        "y": LABEL,
        "name": NAMES[LABEL],
        "said": NAMES[FAST],
        "group": PLACE % 3,
        "e": SCORE * 0.5,
        "patient": PLACE % 700,
        "at": PLACE,
        # Two rows for each rollout: one up to a threshold, one from there on.
        "rollout": PLACE // 2,
        "lowest": np.where(PLACE % 2, 100 + PLACE // 2, 0),
        "highest": np.where(PLACE % 2, 2**16 + 1, 99 + PLACE // 2),
        "crashed": PLACE % 14 == 1,
    }
)
ARRAYS = {name: TABLE[name].to_numpy() for name in TABLE.column_names}
CORRECT: dict[str, Any] = {"confidence": "c", "correct": "ok"}
CLASSES: dict[str, Any] = {"confidence": "c", "prediction": "fast", "label": "y"}
TWO: dict[str, Any] = {"confidence": ["c"], "prediction": ["fast", "slow"], "label": "y"}
THREE: dict[str, Any] = {
    "confidence": ["c", "d"],
    "prediction": ["fast", "middle", "slow"],
    "label": "y",
}
DRAWN: dict[str, Any] = {"clusters": "patient", "row_ids": "at", "seed": 0}
WEIGHED: dict[str, Any] = {"weights": "e", "weight_bound": 1, "row_ids": "at", "seed": 0}
# With how often rows are read.
QUESTIONS: dict[str, tuple[str, dict[str, Any], int]] = {
    "calibration": ("calibration", CORRECT, 1),
    "calibration in groups": ("calibration", {**CORRECT, "groups": "group"}, 1),
    "recall": ("recall", {"score": "c", "positive": "ok"}, 1),
    "calibration by classes": ("calibration", CLASSES, 2),
    "names": ("calibration", {"confidence": "c", "prediction": "said", "label": "name"}, 2),
    "two models": ("cascade", TWO, 2),
    "three models, and floats": ("cascade", {**THREE, "groups": "group"}, 2),
    "without labels": ("cascade", {**TWO, "label": None}, 2),
    "replacement": ("replacement", {"prediction": ["slow", "fast"], "label": "y"}, 2),
    "sets": ("sets", {"probability": ["c", "d", "e"], "label": "group"}, 2),
    "a class": ("recall", {"score": "c", "positive": "name", "positive_class": "ant"}, 2),
    "one rate": ("calibration", {"correct": "ok", "n_bins": 1, "groups": "group"}, 1),
    "forks": (
        "forks",
        {"rollout": "rollout", "lowest": "lowest", "highest": "highest", "unsafe": "crashed"},
        1,
    ),
    "clusters": ("calibration", {**CORRECT, **DRAWN}, 3),
    "clusters and classes": ("cascade", {**TWO, **DRAWN}, 3),
    "weights": ("recall", {"score": "c", "positive": "ok", **WEIGHED}, 3),
    "grades": (
        "cascade",
        {"confidence": ["c"], "quality": ["d", "e"]},
        2,
    ),
}


def _from_arrays(question: str, columns: dict[str, Any]) -> Tally:
    def of(name: Any) -> Any:
        several = isinstance(name, list)
        return np.column_stack([ARRAYS[n] for n in name]) if several else ARRAYS.get(name, name)

    given = {role: of(name) for role, name in columns.items() if name is not None}
    return Tally.count(question, **given)


@contextmanager
def _set(spark: Any, **settings: str) -> Iterator[None]:
    names = {name.replace("_", "."): value for name, value in settings.items()}
    before = {name: spark.conf.get(name) for name in names}
    for name, value in names.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


@contextmanager
def _times_read(spark: Any, group: str) -> Iterator[Callable[[], int]]:
    """How often the rows of files were read: what executors keep is read in whole batches, which
    are few.
    """
    context = spark.sparkContext
    scala = context._jsc.sc()

    def read() -> int:
        scala.listenerBus().waitUntilEmpty()
        tracker = context.statusTracker()
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
        stages = {stage for job in jobs for stage in job.stageIds}
        store = scala.statusStore()
        return int(sum(store.lastStageAttempt(stage).inputRecords() for stage in stages) // N)

    context.setJobGroup(group, group)
    try:
        yield read
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)


@pytest.mark.long
def test_all_questions_read_rows_once_and_classes_once_more(spark: Any, tmp_path: Path) -> None:
    parquet.write_table(TABLE, tmp_path / "rows.parquet")
    frame = spark.read.parquet(str(tmp_path))
    for case, (question, columns, passes) in QUESTIONS.items():
        with _times_read(spark, case) as times:
            counted = Tally.count(question, data=frame, **columns)
            assert times() == passes, case
        assert counted == _from_arrays(question, columns), case


# Labels that came back, to a table that has none.
UNLABELLED = TABLE.drop(["ok", "y"]).append_column("pac_id", pa.array(PLACE))
CAME = pa.table({"pac_id": PLACE[::-1], "ok": ARRAYS["ok"][::-1], "y": LABEL[::-1]})
ANSWERED: dict[str, tuple[str, dict[str, Any], int]] = {
    "answers": ("calibration", CORRECT, 3),
    "answers and classes": ("cascade", TWO, 4),
    "answers and clusters": ("calibration", {**CORRECT, **DRAWN}, 5),
}


@pytest.mark.long
@pytest.mark.parametrize("case", ANSWERED)
def test_answers_take_two_passes_more(spark: Any, tmp_path: Path, case: str) -> None:
    question, columns, passes = ANSWERED[case]
    parquet.write_table(UNLABELLED, tmp_path / "rows.parquet")
    frame, came = spark.read.parquet(str(tmp_path)), CAME.select(["pac_id", _label(columns)])
    with _times_read(spark, case) as times:
        counted = Tally.count(question, data=frame, answers=came, **columns)
        assert times() == passes
    assert counted == _from_arrays(question, columns)


def _label(columns: dict[str, Any]) -> str:
    return str(columns.get("label", "ok"))


@pytest.mark.long
def test_what_labels_say_of_the_slow_model_is_what_arrays_say(spark: Any) -> None:
    given: dict[str, Any] = {**THREE}
    counted = Tally.count("cascade", data=spark.createDataFrame(TABLE), **given)
    assert counted.matches == _from_arrays("cascade", given).matches


SETTINGS = {
    "ansi": {"spark_sql_ansi_enabled": "true"},
    "not ansi": {"spark_sql_ansi_enabled": "false"},
    "Kiritimati": {"spark_sql_session_timeZone": "Pacific/Kiritimati"},
    "without code generation": {"spark_sql_codegen_wholeStage": "false"},
}


@pytest.mark.long
@pytest.mark.parametrize("case", SETTINGS)
def test_settings_of_the_session_change_no_count(spark: Any, tmp_path: Path, case: str) -> None:
    folder = tmp_path / "rows"
    parquet.write_to_dataset(TABLE, folder, partition_cols=["group"])
    given = {**THREE, "groups": "group"}
    expected = _from_arrays("cascade", given)
    with _set(spark, **SETTINGS[case]):
        assert Tally.count("cascade", data=spark.createDataFrame(TABLE), **given) == expected
        assert Tally.count("cascade", data=folder, engine="spark", **given) == expected
        if case == "not ansi":
            _all_as_from_arrays(spark)
    assert Tally.count("cascade", data=folder, engine="polars", **given) == expected
    assert Tally.count("cascade", data=folder, **given) == expected


def _all_as_from_arrays(spark: Any) -> None:
    """Draws of classes; forks, clusters, weights and grades; and answers, to each of a kind."""
    rows, unlabelled = (spark.createDataFrame(table) for table in (TABLE, UNLABELLED))
    for case in ("replacement", "sets", "a class"):
        question, columns, _ = QUESTIONS[case]
        drawn = Tally.count(question, data=rows, **columns, **DRAWN)
        assert drawn == _from_arrays(question, {**columns, **DRAWN})
    for case in ("forks", "clusters", "weights", "grades"):
        question, columns, _ = QUESTIONS[case]
        assert Tally.count(question, data=rows, **columns) == _from_arrays(question, columns)
    for question, columns, _ in ANSWERED.values():
        came = spark.createDataFrame(CAME.select(["pac_id", _label(columns)]))
        counted = Tally.count(question, data=unlabelled, answers=came, **columns)
        assert counted == _from_arrays(question, columns)


def _engines(spark: Any, table: Any) -> dict[str, Any]:
    return {
        "spark": spark.createDataFrame(table),
        "duckdb": duckdb.from_arrow(table),
        "polars": pl.DataFrame(table).lazy(),
    }


@pytest.mark.long
@pytest.mark.parametrize("zone", ["UTC", "Pacific/Kiritimati"])
def test_times_name_no_group_no_cluster_and_no_row_in_any_time_zone(spark: Any, zone: str) -> None:
    """As text they would be other names in every zone."""
    hours = np.datetime64("2026-03-29T00:30:00", "us") + PLACE[:20] * np.timedelta64(1, "h")
    plain = pa.array(hours)
    times = {"at": plain, "utc": plain.cast(pa.timestamp("us", "UTC")), "day": plain.cast("date32")}
    table = pa.table({**times, "c": SCORE[:20], "ok": ARRAYS["ok"][:20], "id": PLACE[:20]})
    uses: list[Any] = [
        {"groups": None},
        {"row_ids": None},
        {"clusters": None, "row_ids": "id"},
        {"clusters": "id", "row_ids": None},
    ]
    with _set(spark, spark_sql_session_timeZone=zone):
        engines = _engines(spark, table)
        for data, name, use in product(engines.values(), times, uses):
            named = {role: column or name for role, column in use.items()}
            with pytest.raises(InvalidTypeError, match=f"^{name} has type .*expected integers or"):
                Tally.count("calibration", data=data, **CORRECT, **named)
    for use in uses:
        passed = {role: hours if column is None else PLACE[:20] for role, column in use.items()}
        with pytest.raises(InvalidTypeError, match=r"has dtype datetime64.*expected integers or"):
            Tally.count("calibration", SCORE[:20], ARRAYS["ok"][:20], **passed)


@pytest.mark.long
def test_a_column_of_ids_is_no_column_of_classes_in_any_engine(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (classes, answer_columns):
        monkeypatch.setattr(module, "MOST_CLASSES", 500)
    table = TABLE.append_column("id", pa.array(PLACE))
    given: dict[str, Any] = {"confidence": ["c"], "prediction": ["fast", "id"], "label": "y"}
    refused = "^id holds more than 500 distinct values: expected classes"
    for data in _engines(spark, table).values():
        with pytest.raises(InvalidValueError, match=refused):
            Tally.count("cascade", data=data, **given)
    with pytest.raises(InvalidValueError, match=r"prediction\[:, 1\] holds more than 500 distinct"):
        Tally.count(
            "cascade", confidence=SCORE, prediction=np.column_stack([FAST, PLACE]), label=LABEL
        )


GRADED: dict[str, Any] = {
    "confidence": ["c", "d"],
    "quality": ["e", "f", "d"],
    "row_ids": "at",
}
MANY: dict[str, tuple[dict[str, Any], tuple[int, int], str]] = {
    "combinations": (THREE, (1_000, 10**6), "c, d were met in more than 1,000 combinations"),
    "cells": (THREE, (2_500, 6_000), "c, d were met in 2,000 joint cells:"),
    "cells of groups": (
        {**THREE, "groups": "group"},
        (2_500, 6_000),
        "c, d were met in 2,000 joint cells in 3 groups:",
    ),
    "grades": (GRADED, (2_500, 6_000), "c, d were met in 2,000 joint cells:"),
}


@pytest.mark.long
@pytest.mark.parametrize("case", MANY)
def test_more_cells_than_may_come_back_are_refused_and_the_remedy_works(
    spark: Any, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    """Confidences that know nothing of each other meet in nearly as many cells as there are
    rows.
    """
    columns, (combinations, entries), refused = MANY[case]
    monkeypatch.setattr(engine_rows, "MOST_COMBINATIONS", combinations)
    monkeypatch.setattr(engine_rows, "MOST_ENTRIES", entries)
    wide = dict(zip("cdf", np.random.default_rng(0).random((3, N)), strict=True))

    def table(confidences: dict[str, Any]) -> Any:
        plain = TABLE.drop(["c", "d"]).append_column("f", pa.array(wide["f"]))
        for name, values in confidences.items():
            plain = plain.append_column(name, pa.array(values))
        return plain

    fine = table({name: wide[name] for name in "cd"})
    for engine, data in _engines(spark, fine).items():
        with pytest.raises(InvalidValueError, match=refused) as caught:
            Tally.count("cascade", data=data, **columns)
        found = re.search(r"floor\((\d+) \* confidence\) / \1, here and in use", str(caught.value))
        assert found is not None
        steps = int(found[1])
        coarse = table({name: np.floor(steps * wide[name]) / steps for name in "cd"})
        counted = Tally.count("cascade", data=_engines(spark, coarse)[engine], **columns)
        assert counted.rows == N
        # As fine as it may be.
        outcomes = len(counted.outcomes) * max(1, len(counted.groups))
        assert (steps + 1) ** 2 * outcomes <= combinations < (2 * steps + 1) ** 2 * outcomes
    # What is loaded, and files that can be read in order, need nothing to come back.
    assert Tally.count("cascade", data=pl.DataFrame(fine), **columns).rows == N


def test_four_models_come_back_in_32nds() -> None:
    """What docs/engines.md says of the limits."""
    three, four = (len(cascade.outcomes_of(exits)) for exits in (2, 3))
    assert three * 1025**2 <= engine_rows.MOST_ENTRIES
    assert engine_rows.MOST_ENTRIES // four == 472_597
    assert 33**3 * four <= engine_rows.MOST_COMBINATIONS < 65**3 * four


@pytest.mark.long
def test_files_whose_types_differ_are_refused_with_the_file_the_column_and_both_types(
    spark: Any, tmp_path: Path
) -> None:
    parquet.write_table(TABLE.select(["c", "ok"]), tmp_path / "a.parquet")
    text = pa.table({"c": ["high"] * 3, "ok": [True] * 3})
    parquet.write_table(text, tmp_path / "b.parquet")
    with pytest.raises(InvalidValueError, match=r"different types .*DOUBLE.*STRING.*unionByName"):
        Tally.count("calibration", data=tmp_path, engine="spark", **CORRECT)
    frame = spark.read.schema("c double, ok boolean").parquet(str(tmp_path))
    with pytest.raises(
        InvalidValueError, match=r"b\.parquet, column c, Expected Spark type double, actual"
    ):
        Tally.count("calibration", data=frame, **CORRECT)


@pytest.mark.long
def test_a_driver_whose_heap_is_full_is_given_more_memory(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Java itself says so, of an array that no heap holds: nothing is filled, so that the session
    goes on.
    """

    def too_much(_: Any) -> Any:
        return spark.sparkContext._jvm.java.util.ArrayList(2**31 - 1)

    monkeypatch.setattr(counting, "_collected_by_spark", too_much)
    with pytest.raises(InvalidValueError, match=r"driver of Spark ran out.* --driver-memory 4g"):
        Tally.count("calibration", data=spark.createDataFrame(TABLE), **CORRECT)
    monkeypatch.undo()
    assert Tally.count("calibration", data=spark.createDataFrame(TABLE), **CORRECT).rows == N


FULL = {
    "Job aborted due to stage failure: Task 1 in stage 0.0 failed 4 times, most recent failure: "
    "Lost task 1.3 in stage 0.0 (TID 7) (10.0.0.2 executor 1): java.lang.OutOfMemoryError: Java "
    "heap space": "executor-memory",
    "Job aborted due to stage failure: Task 0 in stage 0.0 failed 1 times, most recent failure: "
    "Lost task 0.0 in stage 0.0 (TID 0) (localhost executor driver): java.lang.OutOfMemoryError: "
    "Java heap space": "driver-memory",
    "An error occurred while calling o90.collectToPython.\n: java.lang.OutOfMemoryError: Java heap "
    "space": "driver-memory",
    "ExecutorLostFailure (executor 2 exited caused by one of the running tasks) Reason: Command "
    "exited with code 137": "executor-memory",
    "Answer from Java side is empty": "driver-memory",
}


@pytest.mark.parametrize("text", FULL)
def test_whose_memory_was_full_is_read_from_what_spark_says(text: str) -> None:
    assert f"--{FULL[text]} 4g" in str(explained(Exception(text)))


@pytest.mark.long
@pytest.mark.parametrize(
    "case",
    [
        "result",
        # What a full heap does first differs from run to run.
        pytest.param("heap", marks=pytest.mark.product),
    ],
)
def test_memory_that_is_full_is_named_with_the_setting_that_gives_more(case: str) -> None:
    """In a process of its own, whose driver is small."""
    expected = {"result": "spark.driver.maxResultSize allows: raise it", "heap": "--driver-memory"}
    done = subprocess.run(
        [sys.executable, "-c", _SMALL, case],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert expected[case] in done.stdout, done.stdout + done.stderr[-2000:]


_SMALL = """
import os, sys
os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
from pyspark.sql import SparkSession, functions as F
from pacbound import Tally
small = {"result": ("64k", "1g"), "heap": ("2g", "512m")}[sys.argv[1]]
settings = {"spark.driver.maxResultSize": small[0], "spark.driver.memory": small[1],
            "spark.ui.enabled": "false", "spark.log.level": "OFF",
            "spark.sql.shuffle.partitions": "1"}
spark = SparkSession.builder.master("local[1]").config(map=settings).getOrCreate()
length = 1 if sys.argv[1] == "result" else 20_000_000
wide = F.concat(F.repeat(F.lit("x"), length), F.col("id").cast("string"))
frame = spark.range(20_000 if length == 1 else 40).select(
    F.rand(1).alias("c"), F.lit(True).alias("ok"), wide.alias("g"))
try:
    Tally.count("recall", "c", "ok", groups="g", data=frame)
except Exception as error:
    print(error)
    os._exit(0)
"""


@pytest.mark.long
def test_a_stream_is_refused_with_what_counts_its_batches(spark: Any, tmp_path: Path) -> None:
    parquet.write_table(TABLE.select(["c", "ok"]), tmp_path / "a.parquet")
    stream = spark.readStream.schema("c double, ok boolean").parquet(str(tmp_path))
    certificate = calibrate(SCORE, ARRAYS["ok"], delta=0.05)
    for verb in (
        lambda: Tally.count("calibration", data=stream, **CORRECT),
        lambda: calibrate(data=stream, **CORRECT, delta=0.05),
        lambda: certify_cascade(data=stream, **TWO, xi=0.05, delta=0.05),
        lambda: certificate.apply(stream, confidence="c"),
    ):
        with pytest.raises(InvalidTypeError, match=r"a stream of Spark.*foreachBatch.*source="):
            verb()


@pytest.mark.long
def test_a_batch_that_is_replayed_is_not_added_again(spark: Any, tmp_path: Path) -> None:
    """The recipe of docs/engines.md: a query is stopped after its function has counted a batch, and
    before Spark has noted that. The batch comes again.
    """
    page = (Path(__file__).parents[2] / "docs" / "engines.md").read_text(encoding="utf-8")
    recipe = page.split("```py\n# foreachBatch\n")[1].split("```")[0]
    total, seen = tmp_path / "total.json", list[int]()
    space: dict[str, Any] = {"total": total}
    exec(recipe, space)
    (tmp_path / "rows").mkdir()

    def run(count: Callable[[Any, int], None]) -> None:
        stream = spark.readStream.schema("c double, ok boolean").parquet(str(tmp_path / "rows"))
        started = stream.writeStream.foreachBatch(count)
        started = started.option("checkpointLocation", str(tmp_path / "checkpoint"))
        started.trigger(availableNow=True).start().awaitTermination()

    def interrupted(batch: Any, number: int) -> None:
        seen.append(number)
        space["count"](batch, number)
        if number == 1:
            raise RuntimeError("stopped before the batch was noted")

    def resumed(batch: Any, number: int) -> None:
        seen.append(number)
        space["count"](batch, number)

    half = N // 2
    part = TABLE.select(["c", "ok"])
    parquet.write_table(part.slice(0, half), tmp_path / "rows" / "a.parquet")
    run(interrupted)
    parquet.write_table(part.slice(half), tmp_path / "rows" / "b.parquet")
    with pytest.raises(Exception, match="stopped before the batch was noted"):
        run(interrupted)
    assert Tally.load(total).rows == N
    run(resumed)
    assert seen == [0, 1, 1]
    assert Tally.load(total) == _from_arrays("calibration", CORRECT)
    again = Tally.count("calibration", SCORE[:5], ARRAYS["ok"][:5], source="epoch-1")
    with pytest.raises(RepeatedSourceError, match="source='epoch-1'"):
        Tally.load(total) + again
