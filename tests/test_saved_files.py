"""Whatever is saved is loaded equal, for every kind of file that stays, whatever names look like:
texts of all of Unicode, brackets, quotes, controls, numbers and digests as texts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from copy import deepcopy
from functools import partial
from itertools import chain, count, cycle, islice
from pathlib import Path
from shutil import rmtree
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.certificate.conftest import LAYOUTS, made
from tests.kinds import KINDS
from tests.kinds.kind import Use
from tests.monitor.conftest import CLOCKS

from pacbound import (
    Monitor,
    Tally,
    calibrate,
    certify_cascade,
    certify_shield,
    certify_together,
    documents,
    exact_verifier,
    load_certificate,
)
from pacbound.cascade.answers import FORMAT, AnswersFile, read_header
from pacbound.claims.calibration_certificate import CalibrationCertificate
from pacbound.claims.certificate import certificate_from_dict
from pacbound.monitor import BundleMonitor
from pacbound.shield import ForkedRollouts, Rollouts, ShieldedRollouts
from pacbound.shield.rollouts.files import (
    ROWS,
    SEEDS,
    CheckpointFolder,
    arrays_of,
    packed,
    read_plan,
)
from pacbound.sources.opening import open_tables
from pacbound.sources.rewriting import write_rows
from pacbound.tally.questions import QUESTIONS
from pacbound.tally.questions.question import in_order

every_example = pytest.mark.parametrize(
    "examples",
    [
        pytest.param(50, marks=pytest.mark.slow),
        pytest.param(2000, marks=(pytest.mark.slow, pytest.mark.product)),
    ],
)

_LOOKALIKES = [
    *("[0, 10]", "[0,5)", "[", "[[[[[[[[", "]", "{", "}", '{"a": [1, 2]}', '"', "\\", '\\"'),
    *("\\u0000", "0", "-0", "1.0", "1e5", "1" * 30, "NaN", "Infinity", "+inf", "-inf", "null"),
    *("true", ","),
    *("\x00", "a\x00", "\x1b[2J", "\x7f", "\x85", "\u2028", "\ufeff", "\u202e", "\U0010ffff", "é"),
    *("e\u0301", "sha256:" + "0" * 64, "pacbound-tally", "pacbound-certificate", "digest"),
    *("\r", "\r\n", "\t", " "),
]
_PIECES = st.sampled_from([*_LOOKALIKES, *"[](){},:;\"'\\ \t\n\r0123456789.-+eE"])
TEXTS = st.one_of(
    st.sampled_from(_LOOKALIKES),
    st.text(max_size=8),
    st.lists(_PIECES, max_size=6).map("".join),
    st.integers().map(str),
    st.floats().map(str),
    st.binary(min_size=32, max_size=32).map(lambda data: f"sha256:{data.hex()}"),
)
# What names rows, groups and classes has something to be seen by. A NUL at its end is refused.
NAMES = TEXTS.filter(lambda text: text.strip() and not text.endswith("\0"))
POOLS = st.lists(NAMES, min_size=1, max_size=6, unique=True)


def named(pool: list[str], several: int) -> list[str]:
    """So many different names in order, those of a pool among them."""
    more = (f"{name}{place}{name}" for place in range(several) for name in pool)
    return list(in_order(islice(dict.fromkeys(chain(pool, more)), several)))


def line(text: str) -> str:
    """What a name on one line keeps of a text."""
    return documents.printable(text).strip()[:200]


def tried(examples: int, strategy: Any, check: Callable[[Any], None]) -> None:
    """Try `check` on so many examples."""
    of_each: Any = given(strategy)
    so_many: Any = settings(max_examples=examples)
    so_many(of_each(check))()


# ---- documents

LEAVES: Any = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**60), 2**60),
    st.floats(allow_nan=False, allow_infinity=False).map(lambda value: value + 0.0),
    TEXTS,
)


def nested(depth: int) -> Any:
    """Values, and lists and objects of them, one in the other up to so many."""
    if depth == 0:
        return LEAVES
    inside = nested(depth - 1)
    return st.one_of(
        LEAVES, st.lists(inside, max_size=3), st.dictionaries(TEXTS, inside, max_size=3)
    )


@every_example
def test_a_document(examples: int, tmp_path: Path) -> None:
    def check(document: dict[str, Any]) -> None:
        sealed = documents.sealed(document)
        documents.write(tmp_path / "d.json", sealed)
        assert documents.read(tmp_path / "d.json", "a document") == sealed
        assert exact_verifier.parse((tmp_path / "d.json").read_bytes()) == sealed

    tried(examples, st.dictionaries(TEXTS.filter(lambda key: key != "digest"), nested(3)), check)


# ---- certificates


def renamed(document: Mapping[str, Any], pool: list[str]) -> dict[str, Any]:
    """The document of a certificate with other names wherever somebody has chosen one."""
    changed: dict[str, Any] = deepcopy(dict(document))
    _rename(changed["claim"], pool)
    named_by = dict(zip(["model", "note", "owner-2"], pool, strict=False))
    changed["provenance"] |= {
        "about": named_by,
        "columns": named_by,
        "sources": pool,
        "sample": line(pool[0]),
        "samples": {name: line(name) for name in pool},
        "notes": {"worst_answer": f"31/80 {pool[0][:200]}"},
    }
    for part in ("claim", "provenance"):
        changed[f"{part}_digest"] = documents.digest(changed[part])
    counts = certificate_from_dict(changed).counts_digest
    return {**changed, "counts_digest": counts}


def _rename(claim: dict[str, Any], pool: list[str]) -> None:
    tables = [table for table in claim.get("tables", ()) if table.get("group") is not None]
    for table, name in zip(tables, named(pool, len(tables)), strict=True):
        table["group"] = name
    if claim.get("graded"):
        claim["graded"]["by"] = line(pool[-1])
    inner = claim.get("claims", {})
    for name, new in zip([*inner], named(pool, len(inner)), strict=True):
        _rename(inner[name], pool)
        inner[new] = inner.pop(name)


@every_example
@pytest.mark.parametrize("name", LAYOUTS)
def test_a_certificate_of_every_kind(examples: int, name: str, tmp_path: Path) -> None:
    written = made(name).to_dict()

    def check(pool: list[str]) -> None:
        document, path = renamed(written, pool), tmp_path / "c.json"
        certificate_from_dict(document).save(path)
        again = load_certificate(path)
        assert again.to_dict() == document == exact_verifier.parse(path.read_bytes())
        again.require_intact()
        assert again.claim() == document["claim"]
        assert again.provenance.to_dict() == document["provenance"]

    tried(examples, POOLS, check)


# Some names differ in spaces only, which is asked about.
@pytest.mark.filterwarnings("ignore:groups holds")
@every_example
def test_a_certificate_of_named_rows(examples: int, tmp_path: Path) -> None:
    def check(pool: list[str]) -> None:
        path, groups = tmp_path / "c.json", named(pool, 40)
        options: dict[str, Any] = {
            "about": {"note": pool[0]},
            "sample": line(pool[0]),
            "source": line(pool[-1]),
        }
        made = calibrate(
            [0.9] * 80, [True, False] * 40, delta=0.1, n_bins=2, groups=groups * 2, **options
        )
        made.save(path)
        again = load_certificate(path)
        assert isinstance(again, CalibrationCertificate)
        assert again.groups == in_order(groups)
        assert again.to_dict() == made.to_dict()
        assert again.provenance.about["note"] == pool[0]
        assert again.verify()
        assert exact_verifier.check_file(str(path))[0] == 0

    tried(examples, POOLS, check)


# ---- tallies


def _columns(question: str, pool: list[str]) -> dict[str, Any]:
    rows, groups = 80, named(pool, 40)
    rng = np.random.default_rng(len(pool))
    listed = named(pool, 5)
    classes = rng.choice(np.array(listed, dtype=object), size=(rows, 2))
    score, right = rng.random(rows).round(2), rng.random(rows) < 0.7
    # What may stand for a missing class is refused unless classes are listed.
    known: dict[str, Any] = {"classes": listed, "unseen_labels": 1, "unrelated_labels": True}
    models = {"prediction": classes, "label": classes[:, 1], **known}
    asked: dict[str, dict[str, Any]] = {
        "abstention": {"confidence": score, "correct": right},
        "calibration": {"confidence": score, "correct": right},
        "cascade": {"confidence": score, **models},
        "forks": {"rollout": range(80), "lowest": [0] * 80, "highest": [65537] * 80},
        "pass-rate": {"passed": right},
        "recall": {"score": score, "positive": right},
        "replacement": models,
        "sets": {"probability": np.full((rows, 2), 0.5), "label": right.astype(int)},
        "shield": {"score": score, "unsafe": right},
    }
    asked["forks"]["unsafe"] = right
    return {**asked[question], "groups": groups * 2, "source": line(pool[0])}


@every_example
@pytest.mark.parametrize(
    ("question", "draw"),
    [
        *((question, {}) for question in QUESTIONS),
        ("calibration", {"row_ids": 1}),
        ("cascade", {"seed": 75261937, "clusters": 3}),
    ],
)
def test_a_tally(examples: int, question: str, draw: dict[str, int], tmp_path: Path) -> None:
    def check(pool: list[str]) -> None:
        columns = {**_columns(question, pool), **draw}
        for name in columns.keys() & {"clusters", "row_ids"}:
            # A name such as "nan" is refused.
            several = [f"{text}:" for text in named(pool, 80 // draw[name])]
            columns[name] = list(islice(cycle(several), 80))
        counted = Tally.count(question, **columns)
        counted.save(tmp_path / "t.json")
        again = Tally.load(tmp_path / "t.json")
        assert again == counted
        assert again.to_dict() == counted.to_dict()
        assert set(again.groups) <= set(columns["groups"])

    tried(examples, POOLS, check)


# ---- answers that were paid for


@every_example
def test_a_file_of_answers(examples: int, tmp_path: Path) -> None:
    def check(drawn: tuple[list[str], dict[int, Any]]) -> None:
        pool, told = drawn
        path = tmp_path / "night.jsonl"
        path.unlink(missing_ok=True)
        asked: dict[str, Any] = {"columns": {"confidence": pool[0]}, "classes": pool}
        with closing(AnswersFile(path, asked, None)) as file:
            key = file.key
            for row, answer in told.items():
                file.append({row: answer})
        with closing(AnswersFile(path, asked, None)) as again:
            assert {row: answer for row, answer, _ in again.read()} == told
            assert again.key == key
        assert read_header(path) == {"format": FORMAT, **asked, "key": key}

    answers = st.one_of(TEXTS, st.integers(), st.none())
    tried(examples, st.tuples(POOLS, st.dictionaries(st.integers(0, 2**53), answers)), check)


# ---- states of monitors


@every_example
@pytest.mark.parametrize("clock", CLOCKS)
def test_the_state_of_a_monitor_of_every_kind(examples: int, clock: str, tmp_path: Path) -> None:
    uses = [kind.use() for kind in KINDS.values() if kind.use]

    def check(drawn: tuple[Use, int, int, bool]) -> None:
        use, seed, rows, bad = drawn
        monitor = Monitor(use.certificate, delta=1e-3, false_alarms=clock)
        monitor.update(use.rows(rows, np.random.default_rng(seed), bad))
        path = tmp_path / f"{seed}-{rows}-{bad}-{uses.index(use)}.json"
        path.unlink(missing_ok=True)
        monitor.save(path)
        assert Monitor.load(path, use.certificate).to_dict() == monitor.to_dict()

    drawn = st.tuples(st.sampled_from(uses), st.integers(0, 99), st.integers(9, 600), st.booleans())
    tried(examples, drawn, check)


@every_example
def test_the_state_of_monitors_of_named_claims_groups_and_classes(
    examples: int, tmp_path: Path
) -> None:
    def check(pool: list[str]) -> None:
        path = tmp_path / "state.json"
        path.unlink(missing_ok=True)
        # A class such as "null" must be listed, or it may be missing.
        listed, groups = named(pool, 3), named(pool, 4)
        classes = np.array(listed, dtype=object)
        rows: dict[str, Any] = {
            "confidence": [0.9] * 400,
            "prediction": np.column_stack([np.tile(classes[:2], 200)] * 2),
            "label": np.tile(classes[:2], 200),
            "groups": groups * 100,
        }
        shielded = partial(certify_shield, [0.1] * 500, [False] * 500, xi=0.02)
        lost = partial(certify_cascade, **rows, xi=0.2, classes=listed)
        claims: dict[str, Any] = dict(zip(named(pool, 2), [shielded, lost], strict=True))
        bundle = certify_together(claims, delta=0.02)
        monitor = BundleMonitor(bundle, delta=1e-3, classes=listed)
        rows["label"] = np.tile(classes, 134)[:400]
        shield, cascade = claims
        monitor.update({shield: [False] * 9, cascade: rows})
        monitor.save(path)
        assert BundleMonitor.load(path, bundle, classes=listed).to_dict() == monitor.to_dict()

    tried(examples, POOLS, check)


# ---- rollouts


of_each = pytest.mark.parametrize("table", [Rollouts, ForkedRollouts, ShieldedRollouts])


def _rollouts(table: Any, pool: list[str], task: Mapping[str, Any]) -> Any:
    forked = table is ForkedRollouts
    rows = [
        table.row(seed, *((0, 65537, True, 9) if forked else (number, seed % 2 == 0)), error=text)
        for seed, text, number in zip(count(), [*pool, ""], cycle([-np.inf, 0.25, np.nan]))
    ]
    columns = {name.removeprefix(ROWS): array for name, array in arrays_of(rows).items()}
    return table(**columns, task=task)


@of_each
@every_example
def test_a_table_of_rollouts(examples: int, table: Any, tmp_path: Path) -> None:
    def check(pool: list[str]) -> None:
        task = {"environment": pool[0], "policy": pool[-1], "horizon": 40}
        made = _rollouts(table, pool, task)
        made.save(tmp_path / "r.npz")
        again = table.load(tmp_path / "r.npz")
        for column, values in made.columns.items():
            np.testing.assert_array_equal(again.columns[column], values)
        assert again.task.items() >= task.items()

    tried(examples, POOLS, check)


@of_each
@every_example
def test_the_folder_of_a_collection(examples: int, table: Any, tmp_path: Path) -> None:
    def check(pool: list[str]) -> None:
        home = tmp_path / "home"
        rmtree(home, ignore_errors=True)
        task = {"identity": pool[0], "environment": pool[0], "policy": pool[-1]}
        plan = {**task, "kind": table.kind, "parts": 1}
        made, seeds = _rollouts(table, pool, task), np.arange(3)
        parts = {f"{ROWS}{column}": values for column, values in made.columns.items()}
        CheckpointFolder(home, plan).write(0, packed({**parts, SEEDS: seeds}))
        assert read_plan(home) == plan
        resumed = CheckpointFolder(home, plan).rows(0, seeds)
        again = table.load(home)
        assert resumed is not None
        assert again.task == task
        for column, values in made.columns.items():
            np.testing.assert_array_equal(again.columns[column], values)
            np.testing.assert_array_equal(resumed[column], values)

    tried(examples, POOLS, check)


# ---- checkpoints of training


@every_example
def test_a_checkpoint_of_training(examples: int, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from pacbound.cascade.early_exit import training

    def check(drawn: tuple[list[str], list[float]]) -> None:
        pool, losses = drawn
        state: dict[str, Any] = {
            "plan": {"optimizer": pool[0], "schedule": pool[-1]},
            "losses": {0: losses},
            "network": {name: torch.tensor(losses, dtype=torch.float64) for name in pool},
        }
        training._write(tmp_path / "t.pt", state)
        again = training._loaded(tmp_path / "t.pt", "t.pt")
        assert again["plan"] == state["plan"]
        assert again["losses"] == state["losses"]
        assert again["network"].keys() == state["network"].keys()
        for name in pool:
            assert torch.equal(again["network"][name], state["network"][name])

    tried(examples, st.tuples(POOLS, st.lists(st.floats(allow_nan=False), max_size=3)), check)


# ---- tables that `apply` writes


@every_example
@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("parquet", "parquet"),
        ("arrow", "jsonl"),
        ("jsonl", "arrow"),
        ("parquet", "csv"),
        ("csv", "tsv"),
        ("npz", "npz"),
    ],
)
def test_a_table_with_columns_added(
    examples: int, source: str, target: str, tmp_path: Path
) -> None:
    pytest.importorskip("pyarrow")
    certificate = KINDS["abstention"].made["abstention"]()

    def check(pool: list[str]) -> None:
        column = f"{line(pool[0])}:"
        rows: dict[str, Any] = {"confidence": [0.5] * len(pool), column: pool}
        if source == "npz":
            np.savez(tmp_path / "in.npz", **rows)
        else:
            write_rows(tmp_path / f"in.{source}", rows, [])
        certificate.apply_to_file(tmp_path / f"in.{source}", tmp_path / f"out.{target}")
        (table,) = open_tables(tmp_path / f"out.{target}")
        (batch,) = table.batches()
        found = batch.values(column)
        assert [*table.columns] == ["confidence", column, "pac_answer"]
        assert [found.distinct[place] for place in found.places] == pool

    tried(examples, st.lists(NAMES, min_size=1, unique=True), check)
