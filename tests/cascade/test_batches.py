"""A batch is answered with few calls, nothing is paid for twice, and nothing is lost."""

import asyncio
import errno
import json
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cascade.servers import FlakyServer, serving

from pacbound import BatchSession, answer_batch, answer_batch_async, documents
from pacbound.cascade import Asking
from pacbound.cascade.batches.records import SampledOrder
from pacbound.claims.batch import BatchCertificate
from pacbound.claims.certificate import certificate_from_dict
from pacbound.errors import (
    CertificateError,
    InvalidTypeError,
    InvalidValueError,
    ModelError,
    PacboundError,
    UnwritableFileError,
)
from pacbound.procedures.batch import BatchPlan, new_key
from pacbound.tally import columns

N = 400
RNG = np.random.default_rng(3)
SLOW = RNG.integers(0, 4, size=N)
CONFIDENCE = RNG.beta(4, 1, size=N)
FAST = np.where(RNG.random(N) < CONFIDENCE, SLOW, (SLOW + 1) % 4)


class Oracle:
    """A slow model that counts how often it is asked about each row, and may fail."""

    def __init__(self, answers: Any = SLOW, fail_after: int | None = None) -> None:
        self.answers = np.asarray(answers)
        self.times = np.zeros(len(self.answers), dtype=int)
        self.calls = 0
        self.fail_after = fail_after

    def __call__(self, rows: np.ndarray) -> Any:
        self.calls += 1
        if self.fail_after is not None and self.calls > self.fail_after:
            raise ConnectionError("the line is dead")
        self.times[rows] += 1
        return self.answers[rows]


def answered(slow: Callable[[np.ndarray], Any], **options: Any) -> Any:
    given = {"xi": 0.05, "delta": 0.1, "rng": np.random.default_rng(0), "pause": 0.0, **options}
    confidence, fast = given.pop("confidence", CONFIDENCE), given.pop("prediction", FAST)
    return answer_batch(confidence, fast, slow, **given)


def test_every_answer_is_the_fast_or_the_slow_one_and_asked_says_which() -> None:
    slow = Oracle()
    result = answered(slow)
    assert (result.predictions == np.where(result.asked, SLOW, FAST)).all()
    assert (slow.times == result.asked).all()
    assert not result.failed.any()
    assert isinstance(result.certificate, BatchCertificate)
    assert result.certificate.asked == result.asked.sum() < N
    assert result.predictions.dtype == FAST.dtype


def test_the_same_generator_gives_the_same_batch() -> None:
    first, again = answered(Oracle()), answered(Oracle())
    assert first.certificate.counts_digest == again.certificate.counts_digest
    other = answered(Oracle(), rng=np.random.default_rng(1))
    assert other.certificate.key != first.certificate.key


def test_what_is_kept_stands_before_the_disagreement_that_is_too_many() -> None:
    result = answered(Oracle())
    order = np.argsort(-CONFIDENCE, kind="stable")
    kept = np.flatnonzero(~result.asked[order])
    assert kept.max() < result.certificate.stop
    stopping = order[result.certificate.stop]
    assert FAST[stopping] != SLOW[stopping]
    assert result.asked[stopping]


@pytest.mark.parametrize("chunk", [1, 7, 10_000])
def test_the_size_of_a_chunk_changes_nothing(chunk: int) -> None:
    slow = Oracle()
    result = answered(slow, chunk=chunk)
    assert result.certificate.counts_digest == answered(Oracle()).certificate.counts_digest
    assert slow.times.max() == 1


def test_progress_rises_to_one() -> None:
    seen: list[float] = []
    answered(Oracle(), progress=seen.append, chunk=5)
    assert seen == sorted(seen)
    assert seen[0] == 0
    assert seen[-1] == 1


def test_a_call_that_fails_is_repeated() -> None:
    slow, failures = Oracle(), iter([True, True, False] * N)

    def shaky(rows: np.ndarray) -> Any:
        if next(failures):
            raise TimeoutError
        return slow(rows)

    assert answered(shaky, retries=2).certificate.verify()
    assert slow.times.max() == 1


def test_a_run_that_failed_half_way_goes_on_and_pays_for_nothing_twice(tmp_path: Path) -> None:
    journal = tmp_path / "batch.jsonl"
    slow = Oracle(fail_after=9)
    with pytest.raises(ModelError, match="the line is dead") as caught:
        answered(slow, journal=journal, chunk=5, retries=0)
    assert isinstance(caught.value.__cause__, ConnectionError)
    assert slow.times.sum() == 45
    slow.fail_after = None
    # Another generator, or none: the permutation is that of the journal.
    result = answered(slow, journal=journal, chunk=5, rng=None)
    assert slow.times.max() == 1
    whole = answered(Oracle(), chunk=5)
    assert result.certificate.counts_digest == whole.certificate.counts_digest
    asked = slow.times.sum()
    again = answered(slow, journal=journal, rng=np.random.default_rng(9))
    assert slow.times.sum() == asked
    assert (again.predictions == result.predictions).all()


@pytest.mark.parametrize("cut", [1, 3, 40])
def test_a_journal_that_was_cut_short_loses_its_last_line_alone(tmp_path: Path, cut: int) -> None:
    journal = tmp_path / "batch.jsonl"
    with pytest.raises(ModelError):
        answered(Oracle(fail_after=6), journal=journal, chunk=20, retries=0)
    data = journal.read_bytes()
    journal.write_bytes(data[:-cut])
    lines = [json.loads(line) for line in data.splitlines()[1:-1]]
    kept = [row for line in lines for row in line["rows"]]
    slow = Oracle()
    result = answered(slow, journal=journal, chunk=20, rng=None)
    assert (
        sorted(kept + np.flatnonzero(slow.times).tolist()) == np.flatnonzero(result.asked).tolist()
    )
    assert len(kept) > 0
    # What is written next must not be glued to the rest of the line that was cut.
    again = Oracle()
    assert (answered(again, journal=journal, rng=None).asked == result.asked).all()
    assert again.calls == 0


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system cannot kill so")
def test_a_process_that_is_killed_loses_the_call_under_way_alone(tmp_path: Path) -> None:
    script = """
import os, signal, sys
import numpy as np
from pacbound import answer_batch
calls = 0
def slow(rows):
    global calls
    calls += 1
    if calls == 8:
        os.kill(os.getpid(), signal.SIGKILL)
    return [0] * len(rows)
scores = np.linspace(0, 1, 400)
answer_batch(scores, [0] * 400, slow, xi=0.05, delta=0.1, chunk=3, journal=sys.argv[1],
             rng=np.random.default_rng(0))
"""
    journal = tmp_path / "batch.jsonl"
    ended = subprocess.run([sys.executable, "-c", script, str(journal)], check=False)
    assert ended.returncode == -signal.SIGKILL
    asked: list[int] = []

    def slow(rows: np.ndarray) -> list[int]:
        asked.extend(rows.tolist())
        return [0] * len(rows)

    result = answer_batch(
        np.linspace(0, 1, 400), [0] * 400, slow, xi=0.05, delta=0.1, rng=None, journal=journal
    )
    assert len(asked) == result.asked.sum() - 7 * 3


@pytest.mark.parametrize("copied", [deepcopy, pickle.dumps])
def test_a_session_is_copied_or_pickled_only_without_a_journal(
    tmp_path: Path, copied: Callable[[BatchSession], Any]
) -> None:
    """Two copies would write to the same file, and pay for the same answers."""
    make = partial(BatchSession, CONFIDENCE, FAST, xi=0.05, delta=0.1)
    with (
        make(rng=np.random.default_rng(0), journal=tmp_path / "batch.jsonl") as session,
        pytest.raises(InvalidTypeError, match=r"only one may write to .*batch\.jsonl"),
    ):
        copied(session)
    copied(make(rng=np.random.default_rng(0)))


@pytest.mark.parametrize("kept", [1, 23, -1])
def test_a_journal_that_was_cut_in_its_first_line_is_refused(tmp_path: Path, kept: int) -> None:
    """It has lost its key: to draw another sample after answers were seen voids the guarantee."""
    journal = tmp_path / "batch.jsonl"
    answered(Oracle(), journal=journal)
    header = journal.read_bytes().splitlines(keepends=True)[0]
    journal.write_bytes(header[:kept])
    with pytest.raises(InvalidValueError, match=r"first line.*cut short.*delete the file"):
        answered(Oracle(), journal=journal)
    journal.write_bytes(b"")
    assert answered(Oracle(), journal=journal).certificate.verify()


def resealed(lines: list[dict[str, Any]]) -> bytes:
    """Lines of a journal, each with the digest that it should have."""
    before, data = None, b""
    for line in lines:
        body = {name: value for name, value in line.items() if name != "digest"}
        before = documents.digest([before, body])
        data += json.dumps(body | {"digest": before}).encode() + b"\n"
    return data


CHANGED: dict[str, Callable[[list[str]], list[str]]] = {
    "an answer": lambda lines: [
        *lines[:3],
        json.dumps(json.loads(lines[3]) | {"answers": [0] * len(json.loads(lines[3])["rows"])})
        + "\n",
        *lines[4:],
    ],
    "the key": lambda lines: [
        json.dumps(json.loads(lines[0]) | {"key": "0" * 32}) + "\n",
        *lines[1:],
    ],
    "a line taken out": lambda lines: lines[:3] + lines[4:],
    "two lines swapped": lambda lines: [*lines[:2], lines[3], lines[2], *lines[4:]],
    "no digest": lambda lines: [
        *lines[:-1],
        json.dumps({k: v for k, v in json.loads(lines[-1]).items() if k != "digest"}) + "\n",
    ],
}


@pytest.mark.parametrize("change", CHANGED)
def test_a_journal_that_was_changed_is_refused(tmp_path: Path, change: str) -> None:
    journal = tmp_path / "batch.jsonl"
    answered(Oracle(), journal=journal, chunk=20)
    lines = journal.read_text().splitlines(keepends=True)
    assert resealed([json.loads(line) for line in lines]) == journal.read_bytes()
    journal.write_text("".join(CHANGED[change](lines)))
    slow = Oracle()
    with pytest.raises(InvalidValueError, match="was changed after it was written"):
        answered(slow, journal=journal)
    assert slow.calls == 0


def test_a_last_line_of_which_a_disk_lost_some_bytes_is_dropped(tmp_path: Path) -> None:
    journal = tmp_path / "batch.jsonl"
    with pytest.raises(ModelError):
        answered(Oracle(fail_after=6), journal=journal, chunk=20, retries=0)
    data = journal.read_bytes()
    last = data.splitlines(keepends=True)[-1]
    torn = b"\0" * 16 + last[16:]
    journal.write_bytes(data[: -len(last)] + torn)
    slow = Oracle()
    assert answered(slow, journal=journal, rng=None).certificate.verify()
    rows = [json.loads(line)["rows"] for line in data.splitlines()[1:-1]]
    assert not slow.times[np.concatenate(rows)].any()


def test_a_file_that_is_no_journal_is_not_touched(tmp_path: Path) -> None:
    for content in (b"my thesis", b"a,b\n1,2\n", b'{"format": "pacbound-tally"}\n'):
        journal = tmp_path / "thesis.txt"
        journal.write_bytes(content)
        with pytest.raises(InvalidValueError, match="not a journal"):
            answered(Oracle(), journal=journal)
        assert journal.read_bytes() == content


def test_a_line_that_is_damaged_in_the_middle_is_refused(tmp_path: Path) -> None:
    journal = tmp_path / "batch.jsonl"
    answered(Oracle(), journal=journal, chunk=20)
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join([*lines[:2], b"oops\n", *lines[3:]]))
    with pytest.raises(InvalidValueError, match="line 3"):
        answered(Oracle(), journal=journal)
    for rows, answers in (
        ("[1]", "[]"),
        ("[-1]", "[1]"),
        ("[1, 1]", "[0, 1]"),
        (f"[{10**30}]", "[1]"),
    ):
        line = json.loads(f'{{"rows": {rows}, "answers": {answers}}}')
        others = [json.loads(each) for each in lines]
        journal.write_bytes(resealed([*others[:2], line, *others[3:]]))
        with pytest.raises(InvalidValueError, match="line 3"):
            answered(Oracle(), journal=journal)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"xi": 0.1}, "xi"),
        ({"delta": 0.2}, "delta"),
        ({"sample": 50}, "size of the sample"),
        ({"looks": 2}, "looks"),
        ({"whole_ties": True}, "ties"),
        ({"confidence": CONFIDENCE[::-1]}, "scores"),
        ({"prediction": np.roll(FAST, 1)}, "fast answers"),
        ({"prediction": (FAST + 1) % 4}, "fast model's answers"),
        ({"prediction": np.array(["cat", "dog", "cow", "owl"])[FAST]}, "fast model's answers"),
    ],
)
def test_a_journal_of_another_batch_is_refused_and_nothing_is_asked(
    tmp_path: Path, change: dict[str, Any], named: str
) -> None:
    journal = tmp_path / "batch.jsonl"
    answered(Oracle(), journal=journal)
    slow = Oracle()
    with pytest.raises(InvalidValueError, match=f"belongs to another batch.*{named}"):
        answered(slow, journal=journal, **change)
    assert slow.calls == 0


def test_two_processes_do_not_share_a_journal(tmp_path: Path) -> None:
    pytest.importorskip("fcntl")
    journal = tmp_path / "batch.jsonl"

    def opened() -> BatchSession:
        rng = np.random.default_rng(0)
        return BatchSession(CONFIDENCE, FAST, xi=0.05, delta=0.1, rng=rng, journal=journal)

    first = opened()
    with pytest.raises(InvalidValueError, match="in use by another process"):
        opened()
    first.close()
    opened().close()


def test_a_record_of_the_sample_without_an_answer_counts_as_a_disagreement() -> None:
    session = BatchSession(CONFIDENCE, FAST, xi=0.05, delta=0.1, rng=np.random.default_rng(0))
    sample = session.ask()
    skipped = int(sample[np.argmax(CONFIDENCE[sample])])
    answers = [None if row == skipped else int(SLOW[row]) for row in sample]
    session.tell(sample, answers)
    rest = session.ask()
    session.tell(rest, SLOW[rest])
    result = session.result()
    assert result.failed.tolist() == [row == skipped for row in range(N)]
    assert result.predictions[skipped] is None
    assert result.certificate.unanswered == 1
    assert "1 records have no answer" in result.certificate.summary()
    without = answered(Oracle())
    assert result.certificate.differing == without.certificate.differing + 1
    assert result.certificate.stop <= without.certificate.stop


def test_a_record_outside_the_sample_without_an_answer_loses_nothing(tmp_path: Path) -> None:
    journal = tmp_path / "batch.jsonl"
    whole = answered(Oracle())
    sampled = whole.certificate.sampled
    missing = np.flatnonzero(whole.asked)[-3:]
    answers = np.array([None if row in missing else int(SLOW[row]) for row in range(N)], object)
    slow = Oracle(answers)
    with pytest.raises(ModelError, match="outside the sample"):
        answered(slow, journal=journal, chunk=N)
    assert slow.times.sum() > sampled
    mended = Oracle()
    result = answered(mended, journal=journal, chunk=N, rng=None)
    assert set(np.flatnonzero(mended.times)) <= set(missing.tolist())
    assert (result.predictions == whole.predictions).all()


def test_records_may_be_left_without_an_answer() -> None:
    answers = np.array([None if row % 50 == 0 else int(SLOW[row]) for row in range(N)], object)
    result = answered(Oracle(answers), on_missing="leave")
    assert result.failed.any()
    assert (np.flatnonzero(result.failed) % 50 == 0).all()
    assert result.certificate.unanswered == result.failed.sum()
    assert result.certificate.verify()


def test_records_without_a_score_go_to_the_slow_model_in_the_first_round() -> None:
    confidence = CONFIDENCE.copy()
    confidence[:30] = np.nan
    session = BatchSession(confidence, FAST, xi=0.05, delta=0.1, rng=np.random.default_rng(0))
    assert set(range(30)) <= set(session.ask().tolist())
    result = answered(Oracle(), confidence=confidence)
    assert result.asked[:30].all()
    assert result.certificate.scored == N - 30
    assert result.certificate.tolerated == 20
    assert "30 records without a score" in result.certificate.summary()


def test_a_record_without_a_fast_answer_goes_to_the_slow_model() -> None:
    fast: list[int | None] = FAST.tolist()
    fast[3] = None
    result = answered(Oracle(), prediction=fast)
    assert result.asked[3]
    assert result.predictions[3] == SLOW[3]


def test_no_score_at_all_sends_everything_to_the_slow_model() -> None:
    result = answered(Oracle(), confidence=np.full(N, np.nan))
    assert result.asked.all()
    assert result.certificate.verify()


@pytest.mark.parametrize("records", [1, 2, 19])
def test_where_no_answer_may_differ_everything_is_asked_and_that_is_said(records: int) -> None:
    result = answered(Oracle(), confidence=CONFIDENCE[:records], prediction=FAST[:records])
    assert result.asked.all()
    assert (result.predictions == SLOW[:records]).all()
    assert "all records were sent to the slow model" in result.certificate.summary()
    assert result.certificate.verify()


def test_a_sample_of_everything_leaves_nothing_to_keep() -> None:
    result = answered(Oracle(), sample=N)
    assert result.asked.all()
    assert "of no use" in result.certificate.summary()


def test_equal_scores_are_kept_in_the_order_of_the_rows() -> None:
    result = answered(Oracle(), confidence=np.full(N, 0.5))
    kept = np.flatnonzero(~result.asked)
    assert kept.max() < result.certificate.stop
    assert result.certificate.verify()


def test_as_many_records_as_may_differ_are_kept_whatever_the_sample_says() -> None:
    result = answered(Oracle((FAST + 1) % 4))
    assert (~result.asked).sum() == 20
    assert (result.predictions != (FAST + 1) % 4).sum() == 20


def test_whole_ties_are_kept_by_a_threshold() -> None:
    confidence = np.round(CONFIDENCE, 1)
    result = answered(Oracle(), confidence=confidence, whole_ties=True)
    certificate = result.certificate
    sampled = np.zeros(N, dtype=bool)
    session = BatchSession(
        confidence, FAST, xi=0.05, delta=0.1, rng=np.random.default_rng(0), whole_ties=True
    )
    sampled[session.ask()] = True
    assert ((confidence >= certificate.threshold) & ~sampled == ~result.asked).all()
    split = answered(Oracle(), confidence=confidence)
    assert split.certificate.threshold is None
    assert certificate.exits <= split.certificate.exits


def test_whole_ties_of_one_score_are_all_kept_or_none() -> None:
    result = answered(Oracle(), confidence=np.full(N, 0.5), whole_ties=True)
    assert result.asked.all()
    assert result.certificate.threshold == np.inf
    perfect = answered(
        Oracle(FAST), confidence=np.full(N, 0.5), whole_ties=True, rng=np.random.default_rng(0)
    )
    assert perfect.certificate.threshold == 0.5


@pytest.mark.parametrize(
    "change",
    [
        lambda claim: claim["looks"][0]["disagreements"].__setitem__(0, 1),
        lambda claim: claim["looks"][1]["disagreements"].clear(),
        lambda claim: claim["whole_ties"].update(threshold=0.0),
    ],
)
def test_forged_looks_and_thresholds_are_found_although_the_digest_was_mended(
    change: Callable[[dict[str, Any]], None],
) -> None:
    rng = np.random.default_rng(5)
    slow = rng.integers(0, 4, size=4000)
    confidence = np.where(np.arange(4000) % 2, 0.9, rng.random(4000) * 0.8)
    fast = np.where(rng.random(4000) < 0.055, (slow + 1) % 4, slow)
    given: Any = {"confidence": confidence, "prediction": fast, "rng": np.random.default_rng(1)}
    result = answered(Oracle(slow), looks=2, whole_ties=True, **given)
    document = result.certificate.to_dict()
    document = json.loads(json.dumps(document))
    assert document["claim"]["looks"][1]["disagreements"]
    assert certificate_from_dict(document).verify()
    change(document["claim"])
    document["claim_digest"] = documents.digest(document["claim"])
    with pytest.raises(CertificateError, match=r"the look before found|not a score of the"):
        certificate_from_dict(document)


def test_a_second_look_is_taken_where_it_pays() -> None:
    rng = np.random.default_rng(5)
    slow = rng.integers(0, 4, size=4000)
    confidence = np.where(np.arange(4000) % 2, 0.9, rng.random(4000) * 0.8)
    fast = np.where(rng.random(4000) < 0.055, (slow + 1) % 4, slow)
    taken = [
        len(
            answered(
                Oracle(slow),
                confidence=confidence,
                prediction=fast,
                looks=2,
                rng=np.random.default_rng(seed),
            ).certificate.disagreements
        )
        for seed in range(8)
    ]
    assert set(taken) == {1, 2}


def test_a_slow_model_of_other_names_is_refused_and_can_be_taken_up(tmp_path: Path) -> None:
    journal = tmp_path / "batch.jsonl"
    names = np.array(["cat", "dog", "cow", "owl"])
    slow = Oracle(names[SLOW])
    with pytest.raises(InvalidTypeError, match="numbers on one side and names on the other"):
        answered(slow, journal=journal)
    assert slow.times.sum() > 0
    with pytest.raises(InvalidTypeError, match="numbers on one side and names on the other"):
        answered(slow, journal=journal)
    result = answered(slow, journal=journal, prediction=names[FAST])
    assert slow.times.max() == 1
    assert (result.predictions == names[np.where(result.asked, SLOW, FAST)]).all()


def test_fast_answers_that_were_corrected_by_those_of_the_slow_model_are_another_batch(
    tmp_path: Path,
) -> None:
    """All fast answers are distinct, so that which of them are equal says nothing of them."""
    journal = tmp_path / "batch.jsonl"
    slow = np.array([f"text {row}" for row in range(N)])
    fast = np.where(FAST == SLOW, slow, [f"other {row}" for row in range(N)])
    with BatchSession(
        CONFIDENCE, fast, xi=0.05, delta=0.1, rng=np.random.default_rng(0), journal=journal
    ) as session:
        sample = session.ask()
        session.tell(sample, slow[sample])
    fast[sample] = slow[sample]
    with pytest.raises(InvalidValueError, match="not those that its sample was drawn for"):
        BatchSession(CONFIDENCE, fast, xi=0.05, delta=0.1, journal=journal)


def test_many_fast_answers_are_not_named_anew(tmp_path: Path) -> None:
    """Which of them are equal says nothing of answers that are all different: they could be those
    of the slow model in the sample, and nonsense elsewhere.
    """
    journal = tmp_path / "batch.jsonl"
    slow = np.array([f"text {row}" for row in range(N)])
    limits: Any = {"xi": 0.05, "delta": 0.1, "journal": journal}
    with BatchSession(CONFIDENCE, np.arange(N), rng=np.random.default_rng(0), **limits) as session:
        sample = session.ask()
        with pytest.raises(InvalidTypeError, match="begin another batch with another journal"):
            session.tell(sample, slow[sample], paid=True)
    fast = np.array([f"nonsense {row}" for row in range(N)], dtype=object)
    fast[sample] = slow[sample]
    with pytest.raises(InvalidValueError, match="Only few classes may be named anew"):
        BatchSession(CONFIDENCE, fast, **limits)


def test_names_that_were_refused_are_fixed_again_when_answers_are_kept_under_them(
    tmp_path: Path,
) -> None:
    journal = tmp_path / "batch.jsonl"
    names = np.array(["cat", "dog", "cow", "owl"])
    limits: Any = {"xi": 0.05, "delta": 0.1, "journal": journal}
    with BatchSession(CONFIDENCE, FAST, rng=np.random.default_rng(0), **limits) as session:
        rows = session.ask()
        with pytest.raises(InvalidTypeError, match="numbers on one side"):
            session.tell(rows, names[SLOW[rows]])
        # It was the slow model's answers that were not meant.
        session.tell(rows[:20], SLOW[rows[:20]])
    with pytest.raises(InvalidValueError, match="not those that its sample was drawn for"):
        BatchSession(CONFIDENCE, names[FAST], **limits)
    with BatchSession(CONFIDENCE, FAST, **limits) as session:
        assert session.answered == 20


def test_names_that_were_refused_twice_can_be_mended_twice(tmp_path: Path) -> None:
    journal = tmp_path / "batch.jsonl"
    names, spelled = np.array(["cat", "dog", "cow", "owl"]), np.array(["CAT", "DOG", "COW", "OWL"])
    slow = Oracle(names[SLOW])
    for fast in (FAST, spelled[FAST]):
        with pytest.raises(PacboundError):
            answered(slow, journal=journal, prediction=fast)
    result = answered(slow, journal=journal, prediction=names[FAST])
    assert slow.times.max() == 1
    assert result.certificate.verify()


def test_a_slow_model_that_spells_classes_in_another_way_is_refused() -> None:
    with pytest.raises(InvalidValueError, match="upper and lower case"):
        answered(
            Oracle(np.array(["A", "B", "C", "D"])[SLOW]),
            prediction=np.array(["a", "b", "c", "d"])[FAST],
        )


def test_text_of_which_each_is_its_own_is_not_judged_by_its_spelling() -> None:
    slow = np.array([f"text {row}" for row in range(N)], dtype=object)
    fast = np.where(np.arange(N) % 7 == 0, [text.upper() for text in slow], slow)
    result = answered(Oracle(slow), prediction=fast.tolist())
    assert (result.predictions == np.where(result.asked, slow, fast)).all()
    with pytest.raises(InvalidValueError, match="no class in common"):
        answered(Oracle(slow), prediction=[text.upper() for text in slow])


@pytest.mark.parametrize("answer", [0.5, ["a"], "NA", b"x"])
def test_an_answer_that_is_no_class_is_refused(answer: Any) -> None:
    def slow(rows: np.ndarray) -> list[Any]:
        return [answer] * len(rows)

    with pytest.raises(PacboundError):
        answered(slow)


def test_of_a_chunk_with_an_answer_that_is_no_class_the_others_are_kept(tmp_path: Path) -> None:
    journal = tmp_path / "batch.jsonl"
    answers = SLOW.astype(object)
    odd = int(np.flatnonzero(answered(Oracle()).asked)[5])
    answers[odd] = 0.5
    with pytest.raises(InvalidValueError, match=r"0\.5"):
        answered(Oracle(answers), journal=journal, chunk=N)
    mended = Oracle()
    answered(mended, journal=journal, chunk=N, rng=None)
    kept = [json.loads(line)["rows"] for line in journal.read_text().splitlines()[1:]]
    assert mended.times[odd] <= 1
    assert mended.times.sum() < sum(map(len, kept))


@pytest.mark.parametrize(
    "answers", [lambda rows: [1], lambda rows: "dog", lambda rows: 3, lambda rows: None]
)
def test_another_number_of_answers_than_rows_is_refused(answers: Callable[..., Any]) -> None:
    with pytest.raises(ModelError, match="expected"):
        answered(answers)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"xi": 1.0}, InvalidValueError, "xi=1.0"),
        ({"xi": -0.1}, InvalidValueError, "xi=-0.1"),
        ({"delta": 0.0}, InvalidValueError, "delta=0.0"),
        ({"delta": 1.2}, InvalidValueError, "delta=1.2"),
        ({"rng": 7}, InvalidTypeError, "Generator"),
        ({"rng": None}, InvalidTypeError, "rng is missing"),
        ({"looks": 3}, InvalidValueError, "looks=3"),
        ({"sample": 0}, InvalidValueError, "sample"),
        ({"sample": N + 1}, InvalidValueError, "sample=401"),
        ({"chunk": 0}, InvalidValueError, "chunk"),
        ({"retries": -1}, InvalidValueError, "retries"),
        ({"on_missing": "drop"}, InvalidValueError, "on_missing='drop'"),
        ({"confidence": CONFIDENCE[:-1]}, InvalidValueError, "confidence has 399"),
        ({"confidence": CONFIDENCE * 9}, InvalidValueError, "logits"),
        ({"confidence": np.zeros((N, 2))}, InvalidValueError, "one fast model"),
        ({"confidence": [], "prediction": []}, InvalidValueError, "no records"),
        ({"prediction": FAST + 0.5}, InvalidValueError, "prediction"),
    ],
)
def test_bad_arguments_are_named_and_nothing_is_asked(
    change: dict[str, Any], error: type[Exception], message: str
) -> None:
    slow = Oracle()
    with pytest.raises(error, match=message):
        answered(slow, **change)
    assert slow.calls == 0


def test_rows_are_told_once_as_asked_and_as_they_were_first_answered() -> None:
    session = BatchSession(CONFIDENCE, FAST, xi=0.05, delta=0.1, rng=np.random.default_rng(0))
    rows = session.ask()
    strange = int(np.setdiff1d(np.arange(N), rows)[0])
    for bad, message in (
        ([strange], "not asked for"),
        ([N], "not asked for"),
        ([rows[0], rows[0]], "2 times"),
        ([-1], "not a count"),
    ):
        with pytest.raises(InvalidValueError, match=message):
            session.tell(bad, [0] * len(bad))
    with pytest.raises(InvalidValueError, match="one answer for each"):
        session.tell(rows[:2], [0])
    session.tell(rows[:1], [SLOW[rows[0]]])
    session.tell(rows[:1], [SLOW[rows[0]]])
    with pytest.raises(InvalidValueError, match="answered before, and differently"):
        session.tell(rows[:1], [SLOW[rows[0]] + 1])
    with pytest.raises(InvalidValueError, match="have no answer of the slow model yet"):
        session.result()
    assert session.answered == 1
    assert len(session.ask(3)) == 3


@pytest.mark.parametrize("room", [0, 10])
def test_answers_can_be_told_again_after_the_disk_was_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    journal, left, write = tmp_path / "batch.jsonl", [room], os.write
    limits: Any = {"xi": 0.05, "delta": 0.1, "journal": journal}

    def until_full(file: int, data: bytes) -> int:
        if not left[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        written = write(file, data[: left[0]])
        left[0] -= written
        return written

    with BatchSession(CONFIDENCE, FAST, rng=np.random.default_rng(0), **limits) as session:
        rows = session.ask()
        with monkeypatch.context() as patched:
            patched.setattr(os, "write", until_full)
            with pytest.raises(UnwritableFileError, match="No space left"):
                session.tell(rows, SLOW[rows])
        session.tell(rows, SLOW[rows])
    with BatchSession(CONFIDENCE, FAST, **limits) as session:
        assert session.answered == len(rows)


@pytest.mark.parametrize("damage", [{"key": "lost"}, {"key": None}, {"columns": 5}])
def test_a_first_line_that_is_damaged_is_named_and_the_journal_is_let_go(
    tmp_path: Path, damage: dict[str, Any]
) -> None:
    journal = tmp_path / "batch.jsonl"
    answered(Oracle(), journal=journal)
    whole = journal.read_text()
    first, *others = whole.splitlines(keepends=True)
    journal.write_bytes(resealed([json.loads(first) | damage, *map(json.loads, others)]))
    with pytest.raises(InvalidValueError, match=r"lost the key|damaged in line 1"):
        answered(Oracle(), journal=journal)
    journal.write_text(whole)
    slow = Oracle()
    assert answered(slow, journal=journal, rng=None).certificate.verify()
    assert slow.calls == 0


def test_a_journal_that_contradicts_itself_is_refused(tmp_path: Path) -> None:
    journal = tmp_path / "batch.jsonl"
    answered(Oracle(), journal=journal)
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    row = lines[1]["rows"][0]
    lines.append({"rows": [row], "answers": [(int(SLOW[row]) + 1) % 4]})
    journal.write_bytes(resealed(lines))
    with pytest.raises(InvalidValueError, match=f"Row {row} was answered before, and differently"):
        answered(Oracle(), journal=journal)


def test_the_work_for_an_answer_does_not_grow_with_the_number_of_classes() -> None:
    """Generated text is a class of its own in each record."""
    records = 4000
    texts = [f"text {row}" for row in range(records)]
    session = BatchSession(
        np.linspace(1, 0, records), texts, xi=0.05, delta=0.1, rng=np.random.default_rng(0)
    )
    looked_at = 0

    def count(frame: Any, event: str, argument: Any) -> Any:
        nonlocal looked_at
        looked_at += event == "line"
        return count

    for row in session.ask()[:20].tolist():
        before = sys.gettrace()
        sys.settrace(count)
        try:
            session.tell([row], [texts[row]])
        finally:
            sys.settrace(before)
    assert looked_at / 20 < records / 4


def test_the_journal_holds_whole_lines_and_the_key(tmp_path: Path) -> None:
    journal = tmp_path / "batch.jsonl"
    result = answered(Oracle(), journal=journal, chunk=50)
    header, *lines = [json.loads(line) for line in journal.read_text().splitlines()]
    assert header["key"] == result.certificate.key
    assert sum(len(line["rows"]) for line in lines) == result.asked.sum()


def test_awaited_calls_give_the_same_batch_with_no_more_at_once_than_allowed() -> None:
    under_way, most = 0, 0
    oracle = Oracle()

    async def slow(rows: np.ndarray) -> Any:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0)
        under_way -= 1
        return oracle(rows)

    result = asyncio.run(
        answer_batch_async(
            CONFIDENCE,
            FAST,
            slow,
            xi=0.05,
            delta=0.1,
            rng=np.random.default_rng(0),
            concurrency=5,
            chunk=3,
        )
    )
    assert 1 < most <= 5
    assert oracle.times.max() == 1
    assert result.certificate.counts_digest == answered(Oracle()).certificate.counts_digest


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"whole_ties": True}, {"looks": 2}, {"xi": 0.0}], ids=str)
def test_what_is_asked_ahead_would_be_asked_anyway(options: dict[str, Any]) -> None:
    """In whatever order answers come in, the batch is the same to the last row."""
    early = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        scores = rng.random(60).round(1 if seed % 2 else 3)
        scores[rng.random(60) < 0.05] = np.nan
        fast = np.arange(60) % 2
        slow = fast ^ (rng.random(60) < rng.random())
        limits: dict[str, Any] = {"xi": 0.1, "delta": 0.2, "sample": 20, **options}
        whole = BatchSession(scores, fast, rng=np.random.default_rng(seed), **limits)
        while not whole.done:
            whole.tell(whole.ask(), slow[whole.ask()])
        session = BatchSession(scores, fast, rng=np.random.default_rng(seed), **limits)
        while not session.done:
            row = rng.choice(session.ask(ahead=True))
            early += int(row not in session.ask())
            session.tell([row], [slow[row]])
        assert session.answered == whole.answered
        assert (session.result().asked == whole.result().asked).all()
        digests = {s.result().certificate.counts_digest for s in (session, whole)}
        assert len(digests) == 1
    assert early > 0 or {"looks", "xi"} & set(options)


def test_rows_that_may_be_kept_are_not_taken_ahead() -> None:
    session = BatchSession(CONFIDENCE, FAST, xi=0.05, delta=0.1, rng=np.random.default_rng(0))
    kept = np.setdiff1d(np.arange(N), session.ask(ahead=True))
    with pytest.raises(InvalidValueError, match="was not asked for"):
        session.tell([kept[0]], [0])


def test_a_call_that_is_slow_holds_back_no_other_not_even_those_after_the_sample() -> None:
    asked: list[int] = []

    async def main() -> Any:
        most_were_asked = asyncio.Event()

        async def slow(rows: np.ndarray) -> Any:
            asked.extend(rows.tolist())
            if len(asked) == 1:
                await most_were_asked.wait()
            if len(asked) > len(first) + 10:
                most_were_asked.set()
            return SLOW[rows]

        return await answer_batch_async(
            CONFIDENCE, FAST, slow, xi=0.05, delta=0.1, rng=np.random.default_rng(0), concurrency=2
        )

    first = BatchSession(CONFIDENCE, FAST, xi=0.05, delta=0.1, rng=np.random.default_rng(0)).ask()
    result = asyncio.run(asyncio.wait_for(main(), 30))
    assert sorted(asked) == np.flatnonzero(result.asked).tolist()
    assert result.certificate.counts_digest == answered(Oracle()).certificate.counts_digest


@pytest.mark.slow
def test_a_flaky_server_answers_a_batch_once_at_the_rate_that_it_allows(tmp_path: Path) -> None:
    async def main(server: FlakyServer, **options: Any) -> Any:
        async with serving(server):

            async def slow(rows: np.ndarray) -> list[int]:
                await server.ask(int(rows[0]))
                return list(SLOW[rows])

            limits: dict[str, Any] = {"xi": 0.05, "delta": 0.1, "journal": tmp_path / "b.jsonl"}
            rng = np.random.default_rng(0)
            return await answer_batch_async(CONFIDENCE, FAST, slow, rng=rng, **limits, **options)

    server = FlakyServer(fails=0.3, limit=20)
    # Which of the two comes first depends on how fast this machine asks.
    with pytest.raises(ModelError, match=r"HTTP (429|500) \(2 tries\).*call again to go on"):
        asyncio.run(main(server, retries=1, pause=0.01))
    paid = server.paid.total()
    assert paid > 0
    started = time.monotonic()
    result = asyncio.run(main(server, retries=20, pause=0.01, per_second=190, concurrency=16))
    assert set(server.paid.values()) == {1}, "nothing is paid for twice"
    assert server.paid.total() == result.asked.sum()
    assert time.monotonic() - started >= (result.asked.sum() - paid - 1) / 190
    assert result.certificate.verify()


def test_a_batch_that_is_cancelled_keeps_every_call_that_has_ended(tmp_path: Path) -> None:
    oracle, limits = Oracle(), {"xi": 0.05, "delta": 0.1, "journal": tmp_path / "b.jsonl"}

    async def main(*, cancelled: bool) -> Any:
        gate = asyncio.Event()

        async def slow(rows: np.ndarray) -> Any:
            await gate.wait()
            return oracle(rows)

        options: dict[str, Any] = {**limits, "rng": np.random.default_rng(0), "concurrency": 7}
        batch = asyncio.create_task(answer_batch_async(CONFIDENCE, FAST, slow, **options))
        await asyncio.sleep(0.1)
        gate.set()
        if cancelled:
            # All seven have their answers, and nobody has looked at these yet.
            await asyncio.sleep(0)
            batch.cancel()
        return await batch

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(main(cancelled=True))
    assert oracle.times.sum() == 7
    result = asyncio.run(main(cancelled=False))
    assert oracle.times.max() == 1
    assert oracle.times.sum() == result.asked.sum()


def test_options_that_only_awaited_calls_have_are_refused_with_the_remedy() -> None:
    for options in ({"timeout": 3}, {"concurrency": 2}):
        with pytest.raises(InvalidTypeError, match="answer_batch_async"):
            answered(Oracle(), **options)
    limits: dict[str, Any] = {"xi": 0.05, "delta": 0.1, "rng": np.random.default_rng(0)}
    with pytest.raises(InvalidTypeError, match="answer_batch_async"):
        answer_batch(CONFIDENCE, FAST, Oracle(), asking=Asking(timeout=3), **limits)
    with pytest.raises(InvalidTypeError, match="pauses is not an option of answer_batch"):
        answered(Oracle(), pauses=3)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system cannot kill so")
def test_awaited_calls_of_a_process_that_is_killed_are_lost_only_if_under_way(
    tmp_path: Path,
) -> None:
    script = """
import asyncio, os, signal, sys
import numpy as np
from pacbound import answer_batch_async
calls = 0
async def slow(rows):
    global calls
    calls += 1
    print(*rows, flush=True)
    await asyncio.sleep(0.001 * (calls % 3))
    if calls >= 40:
        os.kill(os.getpid(), signal.SIGKILL)
    return [0] * len(rows)
scores = np.linspace(0, 1, 400)
asyncio.run(answer_batch_async(scores, [0] * 400, slow, xi=0.05, delta=0.1, concurrency=5,
            journal=sys.argv[1], rng=np.random.default_rng(0)))
"""
    journal = tmp_path / "batch.jsonl"
    ended = subprocess.run(
        [sys.executable, "-c", script, str(journal)], check=False, capture_output=True, text=True
    )
    assert ended.returncode == -signal.SIGKILL
    before, after = list(map(int, ended.stdout.split())), list[int]()

    async def slow(rows: np.ndarray) -> list[int]:
        after.extend(rows.tolist())
        return [0] * len(rows)

    result = asyncio.run(
        answer_batch_async(
            np.linspace(0, 1, 400), [0] * 400, slow, xi=0.05, delta=0.1, rng=None, journal=journal
        )
    )
    assert len(before) >= 40
    assert len(set(before) & set(after)) <= 5, "those under way"
    assert set(before) | set(after) == set(np.flatnonzero(result.asked).tolist())


def test_awaited_calls_that_are_under_way_when_one_fails_are_kept(tmp_path: Path) -> None:
    journal = tmp_path / "batch.jsonl"
    oracle = Oracle()

    async def slow(rows: np.ndarray) -> Any:
        if oracle.calls == 10:
            oracle.calls += 1
            raise ConnectionError("the line is dead")
        answers = oracle(rows)
        await asyncio.sleep(0.01)
        return answers

    options: dict[str, Any] = {"xi": 0.05, "delta": 0.1, "journal": journal}
    options |= {"retries": 0, "concurrency": 4}
    with pytest.raises(ModelError, match="the line is dead"):
        asyncio.run(
            answer_batch_async(CONFIDENCE, FAST, slow, rng=np.random.default_rng(0), **options)
        )
    paid = oracle.times.copy()
    asyncio.run(answer_batch_async(CONFIDENCE, FAST, slow, rng=None, **options))
    assert paid.sum() >= 10
    assert oracle.times.max() == 1


def test_a_function_of_the_other_kind_is_refused() -> None:
    async def slow(rows: np.ndarray) -> Any:
        return SLOW[rows]

    with pytest.raises(InvalidTypeError, match="answer_batch_async"):
        answered(slow)
    with pytest.raises(InvalidTypeError, match="answer_batch_async"):
        answered(partial(slow))
    with pytest.raises(InvalidTypeError, match="cannot be awaited"):
        asyncio.run(
            answer_batch_async(
                CONFIDENCE,
                FAST,
                Oracle(),
                xi=0.05,
                delta=0.1,
                rng=np.random.default_rng(0),
                retries=0,
            )
        )


@pytest.mark.parametrize("kind", [np.uint8, np.int64, np.float32, bool])
def test_answers_have_the_type_of_the_fast_ones(kind: Any) -> None:
    fast, slow = (FAST % 2).astype(kind), SLOW % 2
    result = answered(Oracle(slow), prediction=fast)
    assert result.predictions.dtype == kind


def test_one_long_answer_does_not_make_all_answers_as_large() -> None:
    texts = np.array([f"text {row}" for row in range(N)], dtype=object)
    texts[int(np.argmax(CONFIDENCE))] = "word " * 20_000
    result = answered(Oracle(texts), prediction=texts.tolist())
    assert result.predictions.dtype == object
    assert (result.predictions == texts).all()


def test_text_answers_are_text() -> None:
    names = np.array(["cat", "dog", "cow", "owl"])
    result = answered(lambda rows: names[SLOW[rows]].tolist(), prediction=names[FAST].tolist())
    assert result.predictions.dtype.kind == "U"
    assert (result.predictions == names[np.where(result.asked, SLOW, FAST)]).all()


SCORES = {
    "apart": CONFIDENCE,
    "tied": np.round(CONFIDENCE, 1),
    "all equal": np.ones(N),
    "some missing": np.where(np.arange(N) % 7, CONFIDENCE, np.nan),
}


@pytest.mark.parametrize("scores", SCORES)
@pytest.mark.parametrize("options", [{}, {"looks": 2, "sample": 40}, {"whole_ties": True}])
def test_rows_that_are_looked_at_in_blocks_give_the_same_batch(
    monkeypatch: pytest.MonkeyPatch, scores: str, options: dict[str, Any]
) -> None:
    whole = answered(Oracle(), confidence=SCORES[scores], **options)
    monkeypatch.setattr(columns, "BLOCK", 17)
    parts = answered(Oracle(), confidence=SCORES[scores], **options)
    assert parts.predictions.tolist() == whole.predictions.tolist()
    assert (parts.asked == whole.asked).all()
    assert parts.certificate.provenance.sources == whole.certificate.provenance.sources
    assert parts.certificate.to_dict()["claim"] == whole.certificate.to_dict()["claim"]


@pytest.mark.parametrize("seed", range(40))
def test_the_order_is_by_falling_score_and_then_by_row(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(columns, "BLOCK", 5)
    rng = np.random.default_rng(seed)
    scores, scored = rng.integers(0, 4, size=23) / 4, rng.random(23) < rng.choice([0.5, 1.0])
    tolerated, drawn = int(rng.integers(1, 4)), int(rng.integers(1, 1 + scored.sum()))
    plan = BatchPlan(23, int(scored.sum()), tolerated, (drawn,), (0,))
    order = SampledOrder(np.where(scored, scores, np.nan), scored, plan, new_key(rng))
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
    result = answered(Oracle(slow), prediction=fast, confidence=np.linspace(0, 1, N), xi=0.01)
    assert (result.predictions[result.asked] == slow[result.asked]).all()
    assert len(set(slow[result.asked].tolist())) > 128


def test_bad_scores_are_counted_over_all_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "BLOCK", 50)
    bad = np.where(np.arange(N) >= N - 80, 3.0, CONFIDENCE)
    with pytest.raises(InvalidValueError, match=rf"confidence\[{N - 80}\] is 3.0 \(80 such"):
        answered(Oracle(), confidence=bad)
