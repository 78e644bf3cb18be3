"""Every verb that counts a table, with groups, clusters, weights, grades and answers, on a master
and two workers, against the arrays; in the middle of a count an executor dies, and in the middle of
a draw a worker.

One cluster and one driver serve all, and one test, so that no second cluster is started beside it.
In `make test-slow` every verb has a million rows, and so has every way to draw and to judge; the
rest of what takes long has few: it is counted by the same queries. `make test-all` gives all of
them a million.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
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
from pacbound.claims.judge import certify_judge

__all__ = ["pytestmark"]

ROWS, FEW, FILES, LABELLED = 1_000_000, 10_000, 40, 5_000
ALL_VERBS = 3600.0  # seconds that a busy machine may take for them
BEFORE_THE_KILL = 5  # tasks that a worker has finished by then

Asked = dict[str, Any]
GROUPS: Asked = {"groups": "site"}
CLUSTERS: Asked = {"clusters": "patient", "row_ids": "id", "seed": 3}
BOUND: Asked = {**CLUSTERS, "cluster_bound": 60}
WEIGHTS: Asked = {"weights": "w", "row_ids": "id", "weight_bound": 2.5, "seed": 0}
JUDGED: Asked = {"graded_by": "a judge"}
GRADE: Asked = {
    "graded_by": "a judge",
    "quality": "grade",
    "quality_scale": [1, 5],
    "correct": None,
}
RISK: Asked = {"xi": 0.2, "delta": 0.1}
OK: Asked = {"confidence": "c", "correct": "ok"}
SCORE: Asked = {"score": "c", "positive": "u"}
CASCADE: Asked = {"confidence": ["c"], "prediction": ["fast", "slow"], "label": "slow2"}
THREE: Asked = {**CASCADE, "confidence": ["c", "q_fast"], "prediction": ["fast", "mid", "slow"]}
REPLACED: Asked = {"prediction": ["slow", "fast"], "label": "slow2"}
BOTH: Asked = {**JUDGED, "quality": ["q_fast", "q_slow"], "label": None}
SETS: Asked = {"probability": ["p0", "p1", "p2"], "label": "slow"}
JUDGE: Asked = {"verdict": "fast", "label": "slow2", "confidence": "c"}

# By a name: the verb, what it is asked of a plain table, and in which other ways: what they change.
# A column that ends in _back, and y, come back as answers.
DRAWN: dict[str, Asked] = {"groups": GROUPS, "clusters": CLUSTERS, "weights": WEIGHTS}
CLASS: Asked = {"positive": "sick", "positive_class": "ill"}
VERBS: dict[str, tuple[str, Asked, dict[str, Asked]]] = {
    "calibration": (
        "calibrate",
        {**OK, "delta": 0.1},
        {
            **DRAWN,
            "classes": {"correct": None, "prediction": "fast", "label": "slow2"},
            "grades": GRADE,
            "answers": {"correct": "ok_back"},
            "answers and clusters": {"correct": "ok_back", **CLUSTERS},
        },
    ),
    "abstention": (
        "certify_abstention",
        {**OK, **RISK},
        {**DRAWN, "grades": GRADE, "answers": {"correct": "ok_back"}},
    ),
    "recall": (
        "certify_recall",
        {**SCORE, "target": 0.9, "delta": 0.1},
        {**DRAWN, "bound": BOUND, "class": {**BOUND, **CLASS}, "answers": {"positive": "u_back"}},
    ),
    "precision": (
        "certify_precision",
        {**SCORE, "target": 0.2, "delta": 0.1},
        {**DRAWN, "bound": BOUND, "class": CLASS, "answers": {"positive": "u_back"}},
    ),
    "false alarms": (
        "certify_false_alarms",
        {**SCORE, **RISK},
        {**DRAWN, "class": CLASS, "answers": {"positive": "u_back"}},
    ),
    "shield": (
        "certify_shield",
        {"score": "c", "unsafe": "u", **RISK},
        {**DRAWN, "answers": {"unsafe": "u_back"}},
    ),
    "cascade": (
        "certify_cascade",
        {**CASCADE, **RISK},
        {**DRAWN, "grades": {**BOTH, **CLUSTERS}, "answers": {"label": "y"}},
    ),
    "cascade of three": (
        "certify_cascade",
        {**THREE, **RISK},
        {
            **DRAWN,
            "grades": {**BOTH, "quality": ["q_slow", "q_fast", "p0"]},
            "answers": {"label": "y"},
        },
    ),
    "replacement": (
        "certify_replacement",
        {**REPLACED, **RISK},
        {
            **DRAWN,
            "grades": {**BOTH, **CLUSTERS, "prediction": None},
            "answers": {"label": "y", **GROUPS},
        },
    ),
    "sets": ("certify_sets", {**SETS, **RISK}, {**DRAWN, "answers": {"label": "y"}}),
    "judge": (
        "certify_judge",
        {**JUDGE, **RISK},
        {
            **DRAWN,
            "grades": {**GRADE, "label": None},
            "answers": {"label": "label_back"},
        },
    ),
    "forks": (
        "certify_forks",
        {"rollout": "rollout", "lowest": "low", "highest": "high", "unsafe": "crashed", **RISK},
        {"groups": {"groups": "room"}},
    ),
}


def _cases() -> dict[str, tuple[str, Asked]]:
    cases = {}
    for name, (verb, asked, ways) in VERBS.items():
        for way, changed in {"plain": {}, **ways}.items():
            both = {**asked, **changed}
            cases[f"{name}, {way}"] = verb, {k: v for k, v in both.items() if v is not None}
    return cases


CASES = _cases()
# They stand for the others, with a million rows: every verb, and every way in which rows are drawn
# and judged.
MANY = (
    "calibration, classes",
    "calibration, weights",
    "calibration, answers and clusters",
    "abstention, plain",
    "abstention, answers",
    "recall, plain",
    "precision, plain",
    "false alarms, plain",
    "false alarms, clusters",
    "shield, groups",
    "cascade, plain",
    "cascade, answers",
    "cascade of three, groups",
    "replacement, plain",
    "replacement, grades",
    "replacement, answers",
    "sets, plain",
    "judge, groups",
    "forks, groups",
)
# What takes longest, with few rows.
FEWER = (
    "calibration, grades",
    "recall, class",
    "precision, weights",
    "cascade, grades",
    "cascade of three, grades",
    "replacement, clusters",
    "sets, weights",
)
KILLED = "calibration, clusters"
COUNTED = "calibration, groups"

PROGRAM = """
import json, sys, time

began = time.monotonic()
from pyspark.sql import SparkSession
import pacbound
from pacbound.claims.judge import certify_judge

spark = SparkSession.builder.master(sys.argv[1]).appName("draws").getOrCreate()
asked = json.load(open("asked.json"))


def digests(table, verb, given):
    given = dict(given)
    for back in ("y", "ok_back", "u_back", "label_back"):
        if back in given.values():
            given["answers"] = spark.read.parquet(f"{table}-{back}.parquet")
    verb = certify_judge if verb == "certify_judge" else getattr(pacbound, verb)
    try:
        made = verb(data=spark.read.parquet(table), **given)
    except pacbound.PacboundError as error:
        return str(error)
    parts = {name: made[name] for name in made} if verb is certify_judge else {"": made}
    return {name: [one.counts_digest, dict(one.provenance.drawn_by)] for name, one in parts.items()}


found = {}
for name, each in asked["all"].items():
    found[name] = digests(*each)
    print("done:", name, round(time.monotonic() - began), "s", flush=True)
for what in ("count", "draw"):
    print("the last", what, flush=True)
    found[f"last {what}"] = digests(*asked[what])
    print("after the last", what, flush=True)
json.dump(found, open("found.json", "w"))
spark.stop()
"""


def _columns() -> dict[str, Any]:
    rng = np.random.default_rng(11)
    label = rng.integers(0, 3, ROWS)
    patient = rng.integers(0, ROWS // 20, ROWS)
    p = rng.dirichlet([1, 1, 1], ROWS)
    fast = np.where(rng.random(ROWS) < 0.8, label, (label + 1) % 3)
    rollout, fork = np.arange(ROWS) // 2, np.repeat(rng.integers(1, 2**16, ROWS // 2), 2)
    upper, ill = np.arange(ROWS) % 2 == 1, rng.random(ROWS) < 0.3
    return {
        "c": rng.random(ROWS),
        "ok": rng.random(ROWS) < 0.7,
        "u": ill,
        "sick": np.where(ill, "ill", "healthy"),
        "fast": fast,
        "mid": np.where(rng.random(ROWS) < 0.9, label, (label + 2) % 3),
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
        "pac_id": np.arange(ROWS),
        "rollout": rollout,
        "room": np.char.add("room ", (rollout % 3).astype(str)),
        "low": np.where(upper, fork, 0),
        "high": np.where(upper, 2**16 + 1, fork - 1),
        "crashed": upper & (rng.random(ROWS) < 0.1),
    }


# What comes back for each of them stands in the table of the arrays under this name.
BACK = {"y": "slow2", "ok_back": "ok", "u_back": "u", "label_back": "slow2"}


def _answers(columns: dict[str, Any], back: str, rows: int) -> dict[str, Any]:
    """All rows, but of the labels that may be missing only some, with an answer beside them."""
    rng = np.random.default_rng(12)
    chosen = rng.choice(rows, LABELLED, replace=False) if back == "y" else rng.permutation(rows)
    beside = {"fast": columns["fast"][chosen]} if back == "y" else {}
    return {"pac_id": chosen, back: columns[BACK[back]][chosen], **beside}


def _from_arrays(columns: dict[str, Any], rows: int, verb: str, asked: Asked) -> Any:
    def array(name: Any) -> Any:
        if name == "y":
            answers, label = _answers(columns, name, rows), np.full(rows, None, dtype=object)
            label[answers["pac_id"]] = answers[name]
            return label.tolist()
        if isinstance(name, list) and isinstance(name[0], str):
            return np.column_stack([columns[one][:rows] for one in name])
        if isinstance(name, str) and BACK.get(name, name) in columns:
            return columns[BACK.get(name, name)][:rows]
        return name

    called = certify_judge if verb == "certify_judge" else getattr(pacbound, verb)
    made = called(**{role: array(name) for role, name in asked.items()})
    several = {name: made[name] for name in made} if verb == "certify_judge" else {"": made}
    return {
        name: [one.counts_digest, dict(one.provenance.drawn_by)] for name, one in several.items()
    }


def _write(folder: Path, columns: dict[str, Any], all_cases: dict[str, str]) -> None:
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = pa.table(columns)
    for name, rows, files in (("many", ROWS, FILES), ("few", FEW, 2)):
        (folder / name).mkdir()
        for part in range(files):
            first, last = part * rows // files, (part + 1) * rows // files
            parquet.write_table(
                table.slice(first, last - first), folder / name / f"part-{part:03}.parquet"
            )
        for back in BACK:
            came = pa.table(_answers(columns, back, rows))
            parquet.write_table(came, folder / f"{name}-{back}.parquet")
    asked: dict[str, Any] = {
        "all": {name: (where, *CASES[name]) for name, where in all_cases.items()},
        "count": ("many", *CASES[COUNTED]),
        "draw": ("many", *CASES[KILLED]),
    }
    (folder / "asked.json").write_text(json.dumps(asked), encoding="utf-8")
    (folder / "draws.py").write_text(PROGRAM, encoding="utf-8")
    (folder / "events").mkdir()
    settings = {**_settings(folder), "spark.eventLog.enabled": "false"}
    settings |= {"spark.sql.files.minPartitionNum": FILES, "spark.sql.shuffle.partitions": 4}
    lines = "".join(f"{name} {value}\n" for name, value in settings.items())
    (folder / "spark-defaults.conf").write_text(lines, encoding="utf-8")


def _kill_one(driver: Program, workers: list[Program], what: str, *, whole: bool) -> None:
    """End a worker, or only its executor, which it starts anew, once some tasks are finished."""
    driver.once_it_says(f"(the last {what})", ALL_VERBS)
    before = [_finished(worker) for worker in workers]

    def at_work() -> Program | None:
        done = zip(workers, before, strict=True)
        return next((one for one, n in done if _finished(one) >= n + BEFORE_THE_KILL), None)

    worker = driver.until(at_work, "a worker at work")
    if whole:
        worker.kill()
        return
    listed = ["ps", "-o", "pid=", "--ppid", str(worker.process.pid)]
    for child in subprocess.run(listed, capture_output=True, text=True, check=True).stdout.split():
        os.kill(int(child), signal.SIGKILL)


def _agree_on_a_cluster(folder: Path, cases: dict[str, str]) -> None:
    """Compare the cases, each with the table that it is asked of, and what is done again after a
    loss.
    """
    pytest.importorskip("pyspark")
    columns = _columns()
    _write(folder, columns, cases)
    with _cluster(folder) as (address, workers):
        command = [sys.executable, "draws.py", address]
        with _running(command, "driver", folder) as driver:
            _kill_one(driver, workers, "count", whole=False)
            _kill_one(driver, workers, "draw", whole=True)
            assert driver.process.wait(timeout=ALL_VERBS) == 0, driver.end_of_log()
            said = driver.log.read_text(encoding="utf-8", errors="replace")
    found = json.loads((folder / "found.json").read_text(encoding="utf-8"))
    expected = {
        name: _from_arrays(columns, FEW if where == "few" else ROWS, *CASES[name])
        for name, where in cases.items()
    }
    expected["last count"] = _from_arrays(columns, ROWS, *CASES[COUNTED])
    expected["last draw"] = _from_arrays(columns, ROWS, *CASES[KILLED])
    assert [name for name in expected if found[name] != expected[name]] == []
    for what in ("count", "draw"):
        during = said.partition(f"the last {what}\n")[2].partition(f"after the last {what}\n")[0]
        assert "Lost executor" in during, what


def test_a_cluster_gives_the_digests_that_arrays_give_also_after_a_loss(tmp_path: Path) -> None:
    assert {name.partition(",")[0] for name in MANY} == set(VERBS)
    ways = {way for _, _, ways in VERBS.values() for way in ways}
    # The class of a recall has a bound.
    assert {name.partition(", ")[2] for name in (*MANY, *FEWER)} >= ways - {"bound"}
    _agree_on_a_cluster(tmp_path, {**dict.fromkeys(MANY, "many"), **dict.fromkeys(FEWER, "few")})


@pytest.mark.product
def test_a_cluster_gives_the_digests_of_a_million_rows_in_every_way(tmp_path: Path) -> None:
    _agree_on_a_cluster(tmp_path, dict.fromkeys(CASES, "many"))
