"""A batch is answered with few calls, nothing is paid for twice, and nothing is lost.

`batches.json` was recorded from sessions with a journal, before these were replaced by a function
of the records, the key and the answers.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cascade.batch_problems import BatchProblem, batch_problem, key_of
from tests.products import standing_for

from pacbound import answer_batch, answer_batch_async, batch_step
from pacbound.cascade.records import SampledOrder
from pacbound.data import fashion_mnist
from pacbound.errors import InvalidTypeError, InvalidValueError, ModelError, PacboundError
from pacbound.procedures import batch as procedure
from pacbound.procedures.batch import BatchPlan
from pacbound.tally import columns

N = 400
RNG = np.random.default_rng(3)
SLOW = RNG.integers(0, 4, size=N)
CONFIDENCE = RNG.beta(4, 1, size=N)
FAST = np.where(RNG.random(N) < CONFIDENCE, SLOW, (SLOW + 1) % 4)
ASKED: dict[str, Any] = {"xi": 0.05, "delta": 0.1, "key": key_of(0)}


class Expert:
    """Counts how often it is asked about each row, and may fail after some calls."""

    def __init__(self, answers: Any = SLOW, fail_after: int | None = None) -> None:
        self.answers = np.asarray(answers)
        self.times = np.zeros(len(self.answers), dtype=int)
        self.calls, self.fail_after = 0, fail_after

    def __call__(self, rows: np.ndarray) -> Any:
        self.calls += 1
        if self.fail_after is not None and self.calls > self.fail_after:
            raise ConnectionError("the line is dead")
        self.times[rows] += 1
        return self.answers[rows]


def answered(expert: Callable[[np.ndarray], Any], **options: Any) -> Any:
    given = {"answers": None, **ASKED, **options}
    confidence, fast = given.pop("confidence", CONFIDENCE), given.pop("prediction", FAST)
    return answer_batch(confidence, fast, expert, **given)


# ---- which rows, and how it ends


def _digest(values: Any) -> str:
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()[:16]


def _ended(rows: BatchProblem, key: str) -> tuple[Any, list[list[int]], dict[int, Any]]:
    told: dict[int, Any] = {}
    rounds: list[list[int]] = []
    while True:
        step = batch_step(
            rows.confidence, rows.fast, answers=None, told=told, key=key, **rows.asked
        )
        if not len(step.ask):
            return step, rounds, told
        rounds.append(step.ask.tolist())
        told |= dict(zip(step.ask.tolist(), rows.ask(step.ask), strict=True))


@pytest.mark.parametrize("seed", standing_for(range(250), range(0, 250, 12), rest="long"))
def test_random_batches_ask_and_answer_as_sessions_did(seed: int) -> None:
    rows, recorded = batch_problem(seed), Path(__file__).with_name("batches.json")
    step, rounds, _ = _ended(rows, key_of(seed))
    found = step.certificate
    ties = found.ties and [found.ties.stop, found.ties.sampled_before, str(found.ties.threshold)]
    answers = list(map(str, step.predictions.tolist()))
    end = [found.stop, found.exits, [each.tolist() for each in found.disagreements], ties]
    digest = _digest([rounds, answers, step.answered_by.tolist(), *end])
    assert digest == json.loads(recorded.read_text())[seed]
    assert found.verify()


def test_on_fashion_mnist_the_calls_are_those_of_the_page() -> None:
    table, calls = fashion_mnist(), list[int]()

    def expert(rows: np.ndarray) -> Any:
        calls.extend(rows.tolist())
        return table.prediction_slow[rows]

    key = "5f82c2d9cfeb0fa321d7d982f8bd1045"
    done: Any = answer_batch(
        table.confidence_fast, table.prediction_fast, expert,
        xi=0.05, delta=0.1, answers=None, key=key,
    )  # fmt: skip
    assert len(calls) == len(set(calls)) == 5092 == done.certificate.asked
    assert (done.predictions != table.prediction_slow).sum() == 926
    assert done.predictions.dtype == table.prediction_fast.dtype


@pytest.mark.parametrize("seed", range(12))
def test_the_step_is_that_of_a_slow_and_plain_one(seed: int) -> None:
    """By sorting and counting: which rows, the stop, free ones, ties, and the second look."""
    rows = batch_problem(seed + 400)
    n = min(len(rows.fast), 40)
    rows = BatchProblem(
        rows.confidence[:n], rows.fast[:n], rows.expert[:n], {**rows.asked, "sample": None}
    )
    step, rounds, told = _ended(rows, key_of(seed))
    scored = [row for row in range(n) if not np.isnan(rows.confidence[row])]
    order = sorted(scored, key=lambda row: (-rows.confidence[row], row))
    limits = {name: rows.asked[name] for name in ("xi", "delta", "looks")}
    plan = procedure.plan(n, len(scored), **limits)
    drawn = [scored[at] for at in procedure.keyed_permutation(len(scored), key_of(seed)).tolist()]
    looks: list[list[int]] = []
    stops = [0]
    for size, allowed in zip(plan.drawn, plan.allowed, strict=True):
        if looks and not procedure.worth_another_look(
            np.array(looks[-1]), plan.drawn, plan.allowed, len(scored)
        ):
            break
        sample = set(drawn[:size])
        assert sample <= set(told)
        differ = [
            place for place, row in enumerate(order)
            if row in sample and rows.expert[row] != rows.fast[row]
        ]  # fmt: skip
        looks.append(differ)
        stops.append(differ[allowed] if allowed >= 0 and len(differ) > allowed else
                     len(scored) if allowed >= 0 else 0)  # fmt: skip
    taken = set(drawn[: plan.drawn[len(looks) - 1]]) if looks else set()
    free = unsampled = 0
    for row in order:
        unsampled += row not in taken
        if unsampled > plan.tolerated:
            break
        free += 1
    prefix = 0 if plan.asks_all else max(free, *stops)
    if rows.asked["whole_ties"] and prefix < len(order):
        prefix = sum(rows.confidence[row] > rows.confidence[order[prefix]] for row in order)
    kept = set(order[:prefix]) - taken
    by = ["fast" if r in kept else "none" if rows.expert[r] is None else "expert" for r in range(n)]
    assert step.answered_by.tolist() == by
    assert sum(map(len, rounds)) == len(told) == n - len(kept)


# ---- the loops


def test_every_answer_is_that_of_whom_it_names() -> None:
    expert = Expert()
    done = answered(expert)
    asked = done.answered_by == "expert"
    assert (done.predictions == np.where(asked, SLOW, FAST)).all()
    assert (expert.times == asked).all()
    assert done.certificate.asked == asked.sum() < N
    assert done.predictions.dtype == FAST.dtype
    assert not len(done.ask)


@pytest.mark.parametrize("chunk", [1, 7, 10_000])
def test_the_size_of_a_chunk_changes_nothing(chunk: int) -> None:
    expert = Expert()
    done = answered(expert, chunk=chunk)
    assert done.certificate.counts_digest == answered(Expert()).certificate.counts_digest
    assert expert.times.max() == 1


def test_progress_rises_to_one() -> None:
    seen: list[float] = []
    answered(Expert(), progress=seen.append, chunk=5)
    assert seen == sorted(seen)
    assert (seen[0], seen[-1]) == (0, 1)


def test_without_a_key_the_operating_system_draws_one_each_time() -> None:
    keys = {answered(Expert(), key=None).certificate.key for _ in range(5)}
    assert len(keys) == 5
    with pytest.raises(InvalidValueError, match="expected 32 hexadecimal digits"):
        answered(Expert(), key="7")


def test_a_record_without_an_answer_has_none() -> None:
    gone = set(range(0, N, 40))
    done = answered(lambda rows: [None if row in gone else SLOW[row] for row in rows.tolist()])
    none = done.answered_by == "none"
    assert none.sum() == done.certificate.unanswered > 0
    assert set(np.flatnonzero(none).tolist()) <= gone
    assert all(answer is None for answer in done.predictions[none])


@pytest.mark.parametrize(
    ("said", "error", "match"),
    [
        (lambda rows: SLOW[rows][:-1], ModelError, "answers for 64 rows: expected a list with one"),
        (lambda rows: 7, ModelError, "gave a int for 64 rows"),
        (lambda rows: "x" * len(rows), ModelError, "expected a list with one for each"),
        (lambda rows: [[1]] * len(rows), InvalidValueError, "one class per row"),
    ],
)
def test_what_is_no_answer_for_each_row_is_refused(said: Any, error: Any, match: str) -> None:
    with pytest.raises(error, match=match):
        answered(said)


def test_of_a_chunk_with_one_bad_answer_the_good_ones_are_kept(tmp_path: Path) -> None:
    path, calls = tmp_path / "night.jsonl", list[Any]()

    def expert(rows: np.ndarray) -> Any:
        calls.append(rows)
        return [{"no": "class"}, *SLOW[rows[1:]].tolist()]

    with pytest.raises(PacboundError):
        answered(expert, answers=path)
    assert len(path.read_text().splitlines()) == 1 + len(calls[0]) - 1


def test_names_that_never_meet_raise_after_ten_answers_which_are_on_the_disk(
    tmp_path: Path,
) -> None:
    names = np.array(["cat", "dog", "emu", "fox"])
    with pytest.raises(InvalidTypeError, match=r"numbers on one side and names on the other"):
        answered(lambda rows: names[SLOW[rows]], answers=tmp_path / "a.jsonl")
    expert = Expert(np.char.upper(names[SLOW]))
    with pytest.raises(InvalidValueError, match=r"No answer of the expert .*another spelling"):
        answered(expert, prediction=names[FAST], answers=tmp_path / "b.jsonl", chunk=1)
    assert expert.calls == 10
    assert len((tmp_path / "b.jsonl").read_text().splitlines()) == 11
    # Under the right names it is another batch.
    with pytest.raises(InvalidValueError, match="of another batch, as the scores and the fast ans"):
        answered(expert, prediction=np.char.upper(names[FAST]), answers=tmp_path / "b.jsonl")
    done = answered(expert, prediction=np.char.upper(names[FAST]), answers=tmp_path / "c.jsonl")
    assert done.certificate.verify()


def test_async_answers_are_those_of_one_call_after_the_other() -> None:
    under_way = most = 0

    async def expert(rows: np.ndarray) -> Any:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0)
        under_way -= 1
        return SLOW[rows]

    given: Any = (CONFIDENCE, FAST, expert)
    done: Any = asyncio.run(answer_batch_async(*given, answers=None, concurrency=5, **ASKED))
    assert most == 5
    assert done.certificate.counts_digest == answered(Expert()).certificate.counts_digest
    with pytest.raises(InvalidTypeError, match="use answer_batch_async"):
        answered(expert)
    with pytest.raises(InvalidTypeError, match=r"use answer_batch\."):
        asyncio.run(answer_batch_async(CONFIDENCE, FAST, Expert(), answers=None, **ASKED))


def test_if_an_async_call_fails_those_under_way_are_kept_and_no_other_is_begun(
    tmp_path: Path,
) -> None:
    path, begun = tmp_path / "night.jsonl", list[int]()

    async def expert(rows: np.ndarray) -> Any:
        begun.append(int(rows[0]))
        if len(begun) == 6:
            await asyncio.sleep(0.001)
            raise ConnectionError("out of credit")
        await asyncio.sleep(0.01)
        return SLOW[rows]

    with pytest.raises(ConnectionError, match="out of credit"):
        asyncio.run(
            answer_batch_async(CONFIDENCE, FAST, expert, answers=path, concurrency=6, **ASKED)
        )
    assert len(begun) == 6
    assert len(path.read_text().splitlines()) == 1 + 5


def test_what_has_ended_is_kept_if_an_async_batch_is_cancelled(tmp_path: Path) -> None:
    path = tmp_path / "night.jsonl"

    async def expert(rows: np.ndarray) -> Any:
        await asyncio.sleep(0 if rows[0] % 2 else 60)
        return SLOW[rows]

    async def cancelled() -> None:
        going = asyncio.ensure_future(
            answer_batch_async(CONFIDENCE, FAST, expert, answers=path, concurrency=N, **ASKED)
        )
        await asyncio.sleep(0.2)
        going.cancel()
        with pytest.raises(asyncio.CancelledError):
            await going

    asyncio.run(cancelled())
    rows = [json.loads(line)["row"] for line in path.read_text().splitlines()[1:]]
    assert rows
    assert all(row % 2 for row in rows)


# ---- the file


def test_a_run_that_failed_half_way_goes_on_and_pays_for_nothing_twice(tmp_path: Path) -> None:
    path, expert = tmp_path / "night.jsonl", Expert(fail_after=9)
    with pytest.raises(ConnectionError, match="the line is dead"):
        answered(expert, answers=path, chunk=5, key=None)
    assert expert.times.sum() == 45
    expert.fail_after = None
    done = answered(expert, answers=path, chunk=5, key=None)
    assert expert.times.max() == 1
    again = answered(expert, answers=path, key=None)
    assert expert.times.sum() == done.certificate.asked
    assert (again.predictions == done.predictions).all()
    assert json.loads(path.read_text().splitlines()[0])["key"] == done.certificate.key


@pytest.fixture
def night(tmp_path: Path) -> Path:
    answered(Expert(), answers=tmp_path / "night.jsonl")
    return tmp_path / "night.jsonl"


def test_any_part_of_the_lines_in_any_order_and_doubled_ends_in_the_same_certificate(
    night: Path,
) -> None:
    head, *lines = night.read_text().splitlines(keepends=True)
    whole = answered(Expert()).certificate
    rng = np.random.default_rng(0)
    for share in (0.0, 0.3, 0.9, 1.0):
        kept = [line for line in lines if rng.random() < share]
        some = rng.permutation([*kept, *kept[: len(kept) // 2]]).tolist() if kept else []
        night.write_text("".join([head, *some]))
        expert = Expert()
        assert answered(expert, answers=night).certificate.counts_digest == whole.counts_digest
        assert expert.times.sum() == whole.asked - len(kept)


def test_a_file_cut_at_any_byte_loses_the_last_line_or_is_refused(night: Path) -> None:
    data = night.read_bytes()
    head = data.index(b"\n")
    whole, cuts = answered(Expert()).certificate, range(1, len(data), 997)
    for cut in (*cuts, 1, head - 1, head, head + 1, len(data) - 1):
        night.write_bytes(data[:cut])
        if cut <= head:
            with pytest.raises(InvalidValueError, match="its first line, with the key"):
                answered(Expert(), answers=night)
            continue
        expert = Expert()
        assert answered(expert, answers=night).certificate.counts_digest == whole.counts_digest
        assert expert.times.sum() == whole.asked - (data[:cut].count(b"\n") - 1)
        assert night.read_bytes().count(b"\n") == data.count(b"\n")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("garbage", "line 5 is damaged: 'garbage'"),
        ('{"row": 1}', "line 5 is damaged"),
        ('{"row": -1, "answer": 1}', "line 5 is damaged"),
        ('{"row": true, "answer": 1}', "line 5 is damaged"),
        ('{"row": 1, "answer": 1.5}', "line 5 is damaged"),
        ('{"row": 1, "answer": [1]}', "line 5 is damaged"),
        ("[" * 5000, "line 5 is damaged"),
        ('{"row": 4000, "answer": 1}', "answers row 4000, and there are 400 rows"),
    ],
)
def test_a_damaged_line_is_refused_by_its_number(night: Path, line: str, said: str) -> None:
    lines = night.read_text().splitlines()
    lines[4] = line
    night.write_text("\n".join(lines) + "\n")
    with pytest.raises(InvalidValueError, match=said):
        answered(Expert(), answers=night)


def test_two_answers_to_one_row_are_refused_by_the_line(night: Path) -> None:
    lines = night.read_text().splitlines()
    last = json.loads(lines[-1])
    lines.append(json.dumps({**last, "answer": (last["answer"] + 1) % 4}))
    night.write_text("\n".join(lines) + "\n")
    with pytest.raises(InvalidValueError, match=rf"line {len(lines)}: row {last['row']} was answ"):
        answered(Expert(), answers=night)


CHANGED: dict[str, tuple[dict[str, Any], str]] = {
    "xi": ({"xi": 0.1}, "as xi changed: it was 0.05 and is 0.1"),
    "delta": ({"delta": 0.2}, "as delta changed"),
    "looks": ({"looks": 2}, "as the number of looks changed: it was 1 and is 2"),
    "sample": ({"sample": 9}, "as the size of the sample changed"),
    "ties": ({"whole_ties": True}, "as whether ties are split changed"),
    "scores": ({"confidence": CONFIDENCE[::-1]}, "as the scores and the fast answers changed"),
    "answers": ({"prediction": (FAST + 1) % 4}, "as the scores and the fast answers changed"),
    "key": ({"key": key_of(1)}, "has another key"),
}


@pytest.mark.parametrize("case", CHANGED)
def test_what_the_sample_was_drawn_for_stays(night: Path, case: str) -> None:
    more, said = CHANGED[case]
    with pytest.raises(InvalidValueError, match=said):
        answered(Expert(), answers=night, **more)


def test_other_files_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "mine.txt"
    for text in ("my notes", "my notes\n", '{"format": "pacbound-answers 1", "key": 1}\n', "\n"):
        path.write_text(text)
        with pytest.raises(InvalidValueError, match="is not a file of answers"):
            answered(Expert(), answers=path)
        assert path.read_text() == text


@pytest.mark.parametrize("names", [["[1, 2]", "{}"], ['a"b', "a\\n"], ["\U0001f600", "é"],
                                   [10**30, -1], ["nulls", "a b"]])  # fmt: skip
def test_answers_of_any_spelling_are_read_as_they_were_given(
    tmp_path: Path, names: list[Any]
) -> None:
    fast = np.array([names[place % 2] for place in range(60)], dtype=object)
    slow = np.array([names[place % 3 % 2] for place in range(60)], dtype=object)
    given: Any = {"confidence": np.linspace(0, 1, 60), "prediction": fast}
    done = answered(lambda rows: slow[rows].tolist(), answers=tmp_path / "a", **given)
    expert = Expert(slow)
    again = answered(expert, answers=tmp_path / "a", **given)
    assert expert.calls == 0
    assert again.predictions.tolist() == done.predictions.tolist()


def test_half_a_character_is_no_answer_and_no_line(tmp_path: Path) -> None:
    with pytest.raises(PacboundError, match="half a character"):
        answered(
            lambda rows: ["\ud83d"] * len(rows),
            prediction=np.full(N, "a"), answers=tmp_path / "a", xi=0.0,
        )  # fmt: skip
    assert len((tmp_path / "a").read_bytes().splitlines()) == 1


def test_one_process_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "night.jsonl"

    def expert(rows: np.ndarray) -> Any:
        with pytest.raises(InvalidValueError, match="in use by another process"):
            answered(Expert(), answers=path)
        return SLOW[rows]

    assert answered(expert, answers=path, chunk=N).certificate.verify()


_KILLED = """
import sys, time
import numpy as np
from pathlib import Path
from pacbound import answer_batch
n = 3000
rng = np.random.default_rng(5)
slow = rng.integers(0, 4, n)
score = rng.beta(4, 1, n)
fast = np.where(rng.random(n) < score, slow, (slow + 1) % 4)
paid = open(sys.argv[2], "a")
def expert(rows):
    time.sleep(0.001)
    paid.write("".join(f"{row}\\n" for row in rows.tolist()))
    paid.flush()
    return slow[rows]
done = answer_batch(score, fast, expert, xi=0.05, delta=0.1, answers=sys.argv[1], chunk=4)
print(done.certificate.counts_digest)
"""


@pytest.mark.long
def test_nothing_that_was_paid_is_lost_or_paid_for_again_by_kill_9(tmp_path: Path) -> None:
    answers, paid = tmp_path / "night.jsonl", tmp_path / "paid.txt"
    words = [sys.executable, "-c", _KILLED, str(answers), str(paid)]
    rng, kills = np.random.default_rng(0), 0
    while True:
        run = subprocess.Popen(words, stdout=subprocess.PIPE)
        if kills < 12:
            before = len(paid.read_text()) if paid.exists() else 0
            while run.poll() is None and (len(paid.read_text()) if paid.exists() else 0) == before:
                time.sleep(0.01)
            time.sleep(float(rng.random()) * 0.1)
        if kills < 12 and run.poll() is None:
            os.kill(run.pid, signal.SIGKILL)
            run.communicate()
            kills += 1
            continue
        said, _ = run.communicate()
        assert run.returncode == 0
        break
    assert kills >= 3
    times = np.bincount([int(row) for row in paid.read_text().split()])
    # At most the chunk that was under way was paid for again, at each kill.
    assert (times[times > 0] - 1).sum() <= 4 * kills
    again = subprocess.run(words, capture_output=True, check=True)
    assert again.stdout == said


def test_a_full_disk_loses_only_the_calls_under_way(tmp_path: Path) -> None:
    path, expert = tmp_path / "night.jsonl", Expert()
    before, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.getsignal(signal.SIGXFSZ)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1500, before[1]))
        with pytest.raises(OSError, match="the answers cannot be written"):
            answered(expert, answers=path, chunk=3)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    kept = path.read_bytes().count(b"\n") - 1
    assert 0 < kept < expert.times.sum()
    rest = Expert()
    done = answered(rest, answers=path)
    assert rest.times.sum() == done.certificate.asked - kept
    assert done.certificate.counts_digest == answered(Expert()).certificate.counts_digest


def test_a_step_by_hand_takes_answers_into_the_file(tmp_path: Path) -> None:
    path = tmp_path / "night.jsonl"
    rows: Any = (CONFIDENCE, FAST)
    step: Any = batch_step(*rows, answers=path, **ASKED)
    while len(step.ask):
        told = {int(row): int(SLOW[row]) for row in step.ask[:50]}
        step = batch_step(*rows, answers=path, told=told, **ASKED)
    assert step.certificate.counts_digest == answered(Expert()).certificate.counts_digest
    row = int(np.flatnonzero(step.answered_by == "expert")[0])
    with pytest.raises(InvalidValueError, match=f"row {row} was answered"):
        batch_step(*rows, answers=path, told={row: int(SLOW[row] + 1) % 4}, **ASKED)


# ---- the order of the records


@pytest.mark.parametrize("seed", standing_for(range(40), range(0, 40, 4)))
def test_the_order_is_by_falling_score_and_then_by_row(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(columns, "BLOCK", 5)
    rng = np.random.default_rng(seed)
    scores, scored = rng.integers(0, 4, size=23) / 4, rng.random(23) < rng.choice([0.5, 1.0])
    tolerated, drawn = int(rng.integers(1, 4)), int(rng.integers(1, 1 + scored.sum()))
    plan = BatchPlan(23, int(scored.sum()), tolerated, (drawn,), (0,))
    order = SampledOrder(np.where(scored, scores, np.nan), scored, plan, key_of(seed))
    order.draw(1)
    rows = np.flatnonzero(scored)
    rows = rows[np.argsort(-scores[rows], kind="stable")]
    differ = rng.random(23) < 0.3
    places = [place for place, row in enumerate(rows) if order.sample[row] and differ[row]]
    assert order.sample.sum() == drawn
    assert [ranks.tolist() for ranks in order.disagreements(differ)] == [places]
    for prefix in range(len(rows) + 1):
        first = rows[:prefix]
        assert sorted(first[~order.sample[first]]) == np.flatnonzero(order.kept(prefix)).tolist()
        assert order.sampled_before(prefix) == order.sample[first].sum()
        assert order.lowest(prefix) == (scores[first[-1]] if prefix else np.inf)
    left = np.cumsum(~order.sample[rows])
    assert order.beginning([np.zeros(1, dtype=int)], whole_ties=False) == (left <= tolerated).sum()


def test_more_classes_than_a_byte_numbers_are_told_apart() -> None:
    fast = np.arange(N) % 100
    slow = fast + 1000 * (np.arange(N) % 3)
    given: Any = {"prediction": fast, "confidence": np.linspace(0, 1, N), "xi": 0.01}
    done = answered(Expert(slow), **given)
    asked = done.answered_by == "expert"
    assert (done.predictions[asked] == slow[asked]).all()
    assert len(set(slow[asked].tolist())) > 128


@pytest.mark.parametrize("looks", [1, 2])
def test_the_size_of_a_block_changes_nothing(monkeypatch: pytest.MonkeyPatch, looks: int) -> None:
    whole = answered(Expert(), looks=looks)
    monkeypatch.setattr(columns, "BLOCK", 17)
    parts = answered(Expert(), looks=looks)
    assert parts.predictions.tolist() == whole.predictions.tolist()
    assert parts.certificate.provenance.sources == whole.certificate.provenance.sources
    assert parts.certificate.to_dict()["claim"] == whole.certificate.to_dict()["claim"]


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"xi": 1.0}, "xi"),
        ({"delta": 0.0}, "delta"),
        ({"chunk": 0}, "chunk"),
        ({"looks": 3}, "expected 1 or 2"),
        ({"sample": N + 1}, "more than the 400 records"),
        ({"rng": np.random.default_rng(0)}, "rng is not an option of a batch"),
        ({"confidence": np.full(N, 3.0)}, r"confidence\[0\] is 3.0"),
        ({"confidence": np.zeros((N, 2))}, "one fast model and the slow one"),
        ({"confidence": []}, "."),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_asked(
    options: dict[str, Any], match: str
) -> None:
    expert = Expert()
    with pytest.raises((InvalidValueError, InvalidTypeError), match=match):
        answered(expert, **options)
    assert expert.calls == 0
