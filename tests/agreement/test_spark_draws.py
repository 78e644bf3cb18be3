"""Every verb with groups, clusters, weights, coins and answers on a master and two workers, against
the arrays; and in the middle of a draw, one of the workers dies.

One cluster and one driver serve all. The draw in which a worker dies has a million rows, the others
have few: what they share with it is counted by the same query.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.agreement.test_spark_cluster import (
    Program,
    _cluster,
    _finished,
    _running,
    _settings,
    pytestmark,
)

import pacbound

__all__ = ["pytestmark"]

ROWS, FEW, FILES, LABELLED = 1_000_000, 20_000, 40, 5_000
ALL_VERBS = 1200.0  # seconds that a busy machine may take for them
BEFORE_THE_KILL = 5  # tasks of the last draw that the worker has finished by then

CLUSTERS = {"clusters": "patient", "row_ids": "id", "seed": 3}
BOUND = {**CLUSTERS, "cluster_bound": 60}
WEIGHTS = {"weights": "w", "row_ids": "id", "weight_bound": 2.5}
COINS = {"quality_scale": [1, 5], "graded_by": "a judge", "row_ids": "id"}
RISK = {"xi": 0.2, "delta": 0.1}
CASCADE = {"confidence": ["c"], "prediction": ["fast", "slow"]}

# By a name: the verb, and what it is asked: of all rows, and of the first few.
MANY: dict[str, tuple[str, dict[str, Any]]] = {
    "calibration by clusters": (
        "calibrate",
        {"confidence": "c", "correct": "ok", "groups": "site", "delta": 0.1, **CLUSTERS},
    ),
}
OTHERS: dict[str, tuple[str, dict[str, Any]]] = {
    "calibration by weights": (
        "calibrate",
        {"confidence": "c", "correct": "ok", "delta": 0.1, **WEIGHTS},
    ),
    "calibration by coins": (
        "calibrate",
        {"confidence": "c", "quality": "grade", "delta": 0.1, **COINS},
    ),
    "recall among clusters": (
        "certify_recall",
        {"score": "c", "positive": "u", "target": 0.9, "delta": 0.1, **BOUND},
    ),
    "cascade by answers": ("certify_cascade", {**CASCADE, "label": "y", **RISK}),
    "abstention": (
        "certify_abstention",
        {"confidence": "c", "correct": "ok", **RISK, **WEIGHTS},
    ),
    "false alarms": ("certify_false_alarms", {"score": "c", "positive": "u", **RISK, **CLUSTERS}),
    "alarm range": (
        "certify_alarm_range",
        {"score": "c", "positive": "u", "target": 0.8, **RISK, **CLUSTERS},
    ),
    "precision": (
        "certify_precision",
        {"score": "c", "positive": "u", "target": 0.2, "delta": 0.1, **BOUND},
    ),
    "shield": ("certify_shield", {"score": "c", "unsafe": "u", **RISK, **CLUSTERS}),
    "cascade by coins": (
        "certify_cascade",
        {**CASCADE, "quality": ["q_fast", "q_slow"], **RISK, **CLUSTERS},
    ),
    "cascade in groups": (
        "certify_cascade",
        {**CASCADE, "label": "slow2", "groups": "site", **RISK, **WEIGHTS},
    ),
    "replacement": (
        "certify_replacement",
        {"prediction": ["fast", "slow"], "label": "slow2", **RISK, **CLUSTERS},
    ),
    "sets": (
        "certify_sets",
        {"probability": ["p0", "p1", "p2"], "label": "slow", **RISK, **CLUSTERS},
    ),
}

PROGRAM = """
import json, sys
from pyspark.sql import SparkSession
import pacbound

spark = SparkSession.builder.master(sys.argv[1]).appName("draws").getOrCreate()
asked = json.load(open("asked.json"))


def digests(table, verb, given):
    rows = spark.read.parquet(table)
    if given.get("label") == "y":
        given["answers"] = spark.read.parquet("answers.parquet")
    made = getattr(pacbound, verb)(data=rows, **given)
    return made.counts_digest, dict(made.provenance.drawn_by)


found = {name: digests(*each) for name, each in asked.items()}
print("the last draw", flush=True)
found["last"] = digests(*asked["calibration by clusters"])
json.dump(found, open("found.json", "w"))
spark.stop()
"""


def _columns() -> dict[str, Any]:
    rng = np.random.default_rng(11)
    label = rng.integers(0, 3, ROWS)
    patient = rng.integers(0, ROWS // 20, ROWS)
    p = rng.dirichlet([1, 1, 1], ROWS)
    fast = np.where(rng.random(ROWS) < 0.8, label, (label + 1) % 3)
    return {
        "c": rng.random(ROWS),
        "ok": rng.random(ROWS) < 0.7,
        "u": rng.random(ROWS) < 0.3,
        "fast": fast,
        "slow": label,
        "slow2": np.where(rng.random(ROWS) < 0.9, label, fast),
        "site": np.array(["north", "é south"])[patient % 2],
        "patient": np.char.add("p", patient.astype(str)),
        "id": np.char.add("ü", np.arange(ROWS).astype(str)),
        "w": rng.uniform(0, 2.5, ROWS),
        "grade": rng.integers(1, 6, ROWS),
        "q_fast": rng.random(ROWS),
        "q_slow": rng.random(ROWS),
        **{f"p{place}": p[:, place] for place in range(3)},
        "pac_row": np.arange(ROWS),
    }


def _answers(columns: dict[str, Any]) -> dict[str, Any]:
    chosen = np.random.default_rng(12).choice(FEW, LABELLED, replace=False)
    return {"pac_row": chosen, "y": columns["slow2"][chosen], "fast": columns["fast"][chosen]}


def _from_arrays(columns: dict[str, Any], rows: int, verb: str, asked: dict[str, Any]) -> Any:
    def array(role: str, name: Any) -> Any:
        if role == "label" and name == "y":
            answers, label = _answers(columns), np.full(rows, None, dtype=object)
            label[answers["pac_row"]] = answers["y"]
            return label.tolist()
        if isinstance(name, list) and isinstance(name[0], str):
            return np.column_stack([columns[one][:rows] for one in name])
        taken = isinstance(name, str) and name in columns
        return columns[name][:rows] if taken else name

    made = getattr(pacbound, verb)(**{role: array(role, name) for role, name in asked.items()})
    return made.counts_digest, dict(made.provenance.drawn_by)


def _write(folder: Path, columns: dict[str, Any]) -> None:
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = pa.table(columns)
    for name, rows, files in (("many", ROWS, FILES), ("few", FEW, 2)):
        (folder / name).mkdir()
        for part in range(files):
            first, last = part * rows // files, (part + 1) * rows // files
            parquet.write_table(
                table.slice(first, last - first), folder / name / f"part-{part:03}.parquet"
            )
    parquet.write_table(pa.table(_answers(columns)), folder / "answers.parquet")
    asked = {name: ("many", *each) for name, each in MANY.items()}
    asked |= {name: ("few", *each) for name, each in OTHERS.items()}
    (folder / "asked.json").write_text(json.dumps(asked), encoding="utf-8")
    (folder / "draws.py").write_text(PROGRAM, encoding="utf-8")
    (folder / "events").mkdir()
    settings = {**_settings(folder), "spark.eventLog.enabled": "false"}
    settings |= {"spark.sql.files.minPartitionNum": FILES, "spark.sql.shuffle.partitions": 8}
    lines = "".join(f"{name} {value}\n" for name, value in settings.items())
    (folder / "spark-defaults.conf").write_text(lines, encoding="utf-8")


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Any, str]:
    """What the cluster found, one worker of which died in the last draw; the columns; and what the
    driver said.
    """
    pytest.importorskip("pyspark")
    folder = tmp_path_factory.mktemp("draws")
    columns = _columns()
    _write(folder, columns)
    with _cluster(folder) as (address, workers):
        command = [sys.executable, "draws.py", address]
        with _running(command, "driver", folder) as driver:
            _kill_one_in_the_last_draw(driver, workers)
            assert driver.process.wait(timeout=ALL_VERBS) == 0, driver.end_of_log()
            said = driver.log.read_text(encoding="utf-8", errors="replace")
    return json.loads((folder / "found.json").read_text(encoding="utf-8")), columns, said


def _kill_one_in_the_last_draw(driver: Program, workers: list[Program]) -> None:
    driver.once_it_says("(the last draw)", ALL_VERBS)
    before = [_finished(worker) for worker in workers]

    def at_work() -> Program | None:
        done = zip(workers, before, strict=True)
        return next((one for one, n in done if _finished(one) >= n + BEFORE_THE_KILL), None)

    driver.until(at_work, "a worker at work").kill()


@pytest.mark.parametrize("name", [*MANY, *OTHERS])
def test_a_cluster_gives_the_digests_that_arrays_give(found: Any, name: str) -> None:
    digests, columns, _ = found
    rows, each = (ROWS, MANY[name]) if name in MANY else (FEW, OTHERS[name])
    assert tuple(digests[name]) == _from_arrays(columns, rows, *each)


def test_a_worker_dies_in_the_middle_of_a_draw_and_the_digests_are_the_same(found: Any) -> None:
    digests, _, said = found
    assert "Lost executor" in said
    assert digests["last"] == digests["calibration by clusters"]
