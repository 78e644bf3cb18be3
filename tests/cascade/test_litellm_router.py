"""The router in examples/litellm_router.py, with LiteLLM itself and its mocked responses."""

from __future__ import annotations

import asyncio
import csv
import math
import os
import runpy
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from pacbound import certify_cascade

# Nothing is fetched.
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
litellm = pytest.importorskip("litellm", reason="litellm is missing: pip install litellm")
ROOT = Path(__file__).parents[2]
EXAMPLE = runpy.run_path(str(ROOT / "examples" / "litellm_router.py"))

pytestmark = pytest.mark.filterwarnings("ignore")  # of what LiteLLM imports

TEXTS = [f"{number}: {'money' if number % 4 else 'money or parcel'}" for number in range(400)]


def _reply(model: str, text: str) -> dict[str, Any]:
    """What a model says: the small one is wrong, and unsure, where a text names two things."""
    hard = "parcel" in text
    said = "delivery" if hard and "large" in model else "refund"
    means = [-1.2, -0.4] if hard else [-0.01, -0.03]
    tokens: list[Any] = [
        {"token": "t", "logprob": mean, "bytes": None, "top_logprobs": []} for mean in means
    ]
    message = {"role": "assistant", "content": f" {said}\n"}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    return {"model": model, "choices": [{**choice, "logprobs": {"content": tokens}}]}


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The models that were asked."""
    made: list[str] = []
    real = litellm.acompletion

    async def mocked(*, model: str, messages: Any, **options: Any) -> Any:
        made.append(model)
        mock: Any = _reply(model, messages[0]["content"])
        return await real(model=model, messages=messages, mock_response=mock, **options)

    monkeypatch.setattr(litellm, "acompletion", mocked)
    return made


def test_a_score_is_exp_of_the_mean_log_probability(calls: list[str]) -> None:
    answer = asyncio.run(EXAMPLE["ask"]("openai/small", "money"))
    assert answer.label == "refund"
    assert math.isclose(answer.confidence, math.exp(-0.02))


def test_without_log_probabilities_nothing_is_sure() -> None:
    answer = asyncio.run(EXAMPLE["ask"]("openai/small", "money", mock_response="refund"))
    assert (answer.label, answer.confidence) == ("refund", 0.0)


def test_collect_certify_and_route(
    calls: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS), encoding="utf-8")
    models = ["--small", "openai/small", "--large", "openai/large"]
    _run(monkeypatch, "collect", tmp_path / "texts.txt", *models, "-o", tmp_path / "rows.csv")
    rows = _read(tmp_path / "rows.csv")
    assert [row["text"] for row in rows] == TEXTS
    certificate = certify_cascade(
        [float(row["confidence"]) for row in rows],
        [[row["small"], row["large"]] for row in rows],
        xi=0.03,
        delta=0.01,
    )
    assert certificate.certified
    certificate.save(tmp_path / "router.json")
    calls.clear()
    certified = ["--certificate", tmp_path / "router.json"]
    words = [tmp_path / "texts.txt", *models, *certified, "-o", tmp_path / "answers.csv"]
    _run(monkeypatch, "route", *words)
    answers = _read(tmp_path / "answers.csv")
    assert [row["answer"] for row in answers] == [row["large"] for row in rows]
    assert [row["model"] for row in answers].count("large") == 100
    assert len(calls) == 500


def test_a_request_that_fails_for_good_loses_no_answer(
    calls: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served, failing = litellm.acompletion, True

    async def refusing(*, model: str, messages: Any, **options: Any) -> Any:
        if failing and messages[0]["content"].startswith("7:"):
            raise litellm.BadRequestError("content policy", model=model, llm_provider="openai")
        return await served(model=model, messages=messages, **options)

    monkeypatch.setattr(litellm, "acompletion", refusing)
    texts = [f"{number}: money\u2028or not" for number in range(20)]
    (tmp_path / "texts.txt").write_text("\n".join(texts), encoding="utf-8")
    words: list[Any] = ["collect", tmp_path / "texts.txt", "--small", "openai/small"]
    words += ["--large", "openai/large", "-o", tmp_path / "rows.csv"]
    with pytest.raises(SystemExit, match=r"content policy[^\0]*All other answers are kept in"):
        _run(monkeypatch, *words)
    assert not (tmp_path / "rows.csv").exists()
    # What a process that was killed may leave.
    with (tmp_path / "rows.csv.journal").open("a", encoding="utf-8") as journal:
        journal.write('[0, 7, ["ref')
    failing = False
    calls.clear()
    _run(monkeypatch, *words)
    assert len(calls) == 2, "both models about the one"
    assert [row["text"] for row in _read(tmp_path / "rows.csv")] == texts
    words[3] = "openai/other"
    with pytest.raises(SystemExit, match="begun for other requests or models"):
        _run(monkeypatch, *words)


MODELS = ["--small", "openai/small", "--large", "openai/large"]
CHILD = """
import asyncio, runpy, sys
from tests.cascade.test_litellm_router import _reply, litellm

real, (paid, *sys.argv) = litellm.acompletion, sys.argv[1:]

async def mocked(*, model, messages, **options):
    await asyncio.sleep(0.02)
    text = messages[0]["content"]
    said = await real(
        model=model, messages=messages, mock_response=_reply(model, text), **options
    )
    with open(paid, "a") as file:
        file.write(f"{model} {text}\\n")
    return said

litellm.acompletion = mocked
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def _child(tmp_path: Path, *words: Any, program: str = CHILD) -> subprocess.Popen[str]:
    """The example in a process of its own, which writes down what is paid for."""
    command = [tmp_path / "paid", "examples/litellm_router.py", *words, "-o", tmp_path / "out.csv"]
    python = [sys.executable, "-W", "ignore", "-c", program, *map(str, command)]
    return subprocess.Popen(python, cwd=ROOT, stderr=subprocess.PIPE, text=True)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs a signal that kills")
@pytest.mark.parametrize("step", ["collect", "route"])
def test_a_process_that_is_killed_loses_the_requests_under_way_alone(
    tmp_path: Path, step: str
) -> None:
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS[:80]), encoding="utf-8")
    scores, answers = [0.9] * 90 + [0.5] * 30, [["refund"] * 2] * 90 + [["refund", "delivery"]] * 30
    certify_cascade(scores, answers, xi=0.1, delta=0.1).save(tmp_path / "router.json")
    words = [step, tmp_path / "texts.txt", *MODELS, "--certificate", tmp_path / "router.json"]
    child = _child(tmp_path, *words)
    paid = tmp_path / "paid"
    deadline = time.monotonic() + 60
    while not paid.exists() or paid.read_bytes().count(b"\n") < 40:
        assert child.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    child.kill()
    child.communicate(timeout=60)
    assert child.returncode == -signal.SIGKILL
    assert not (tmp_path / "out.csv").exists()
    again = _child(tmp_path, *words)
    assert again.communicate(timeout=60)[1] == ""
    assert again.returncode == 0
    rows = _read(tmp_path / "out.csv")
    said = [_reply("large", text)["choices"][0]["message"]["content"].strip() for text in TEXTS]
    assert [row["large" if step == "collect" else "answer"] for row in rows] == said[:80]
    times = Counter(paid.read_text(encoding="utf-8").splitlines())
    assert len(times) == (160 if step == "collect" else 100)
    assert times.total() - len(times) <= 8, "the eight requests under way"


@pytest.mark.slow
def test_a_journal_that_cannot_be_written_keeps_its_answers(
    calls: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("resource")
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS[:20]), encoding="utf-8")
    words = ["collect", tmp_path / "texts.txt", *MODELS]
    _run(monkeypatch, *words, "-o", tmp_path / "out.csv")
    journal = tmp_path / "out.csv.journal"
    whole = journal.read_bytes()
    journal.write_bytes(whole + b'[0, 7, ["ref')
    full = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\nrunpy.run_path"
    child = _child(tmp_path, *words, program=CHILD.replace("runpy.run_path", full))
    _, said = child.communicate(timeout=60)
    assert "File too large" in said
    assert journal.read_bytes() == whole


def test_route_needs_a_certificate(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "texts.txt").write_text("money", encoding="utf-8")
    with pytest.raises(SystemExit, match="2"):
        _run(
            monkeypatch, "route", tmp_path / "texts.txt", "--small", "s", "--large", "l", "-o", "o"
        )


def _run(monkeypatch: pytest.MonkeyPatch, *words: Any) -> None:
    monkeypatch.setattr(sys, "argv", ["litellm_router.py", *map(str, words)])
    assert EXAMPLE["main"]() == 0


def _read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))
