"""The router in examples/litellm_router.py, with LiteLLM itself and its mocked responses."""

from __future__ import annotations

import asyncio
import csv
import math
import os
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

from pacbound import certify_cascade

# Nothing is fetched.
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
litellm = pytest.importorskip("litellm", reason="litellm is missing: pip install litellm")
EXAMPLE = runpy.run_path(str(Path(__file__).parents[2] / "examples" / "litellm_router.py"))

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
    """The models that were asked; every tenth request is refused with 429 first."""
    made: list[str] = []
    real = litellm.acompletion

    async def mocked(*, model: str, messages: Any, **options: Any) -> Any:
        made.append(model)
        text = messages[0]["content"]
        refused = len(made) % 10 == 0
        mock: Any = "litellm.RateLimitError" if refused else _reply(model, text)
        return await real(model=model, messages=messages, mock_response=mock, **options)

    monkeypatch.setattr(litellm, "acompletion", mocked)
    for function in ("collect", "router"):
        EXAMPLE[function].__globals__["ASKING"] |= {"pause": 0.001}
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
    # One try more for every tenth that was refused, and none twice.
    assert len(calls) == 500 + len(calls) // 10


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
    assert len(calls) <= 3  # both models about the one, and a refused try
    assert [row["text"] for row in _read(tmp_path / "rows.csv")] == texts
    words[3] = "openai/other"
    with pytest.raises(SystemExit, match="begun for other requests or models"):
        _run(monkeypatch, *words)


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
