r"""Let a small language model answer for a large one, losing at most xi accuracy.

It works with every server that speaks OpenAI's chat completions and returns log-probabilities: the
vendor's own, vLLM, llama.cpp, SGLang. Set OPENAI_BASE_URL and OPENAI_API_KEY, then:

    # 1. A sample of real traffic goes to both models; each row is paid for once, even after Ctrl-C.
    python examples/llm_router.py collect sample.csv --text message --small m --large L \
        --classes refund,delivery,login -o rows.csv

    # 2. Certify. Add labels (a column `label`) where the models differ to let more be answered by
    #    the small one; a row without one counts as a loss.
    pacbound cascade rows.csv --confidence confidence --prediction small,large --label label \
        --xi 0.02 --delta 0.01 -o router.json

    # 3. Route what comes.
    python examples/llm_router.py route new.csv --text message --small m --large L \
        --classes refund,delivery,login --certificate router.json -o answers.csv

The prompt, the classes and both models are part of what was certified: change one, certify again.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import math
import string
import sys
from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from typing import Any

from openai import AsyncOpenAI

from pacbound import load_certificate
from pacbound.cascade import Answer, AsyncCascade
from pacbound.claims.cascade import CascadeCertificate

NO_CLASS = "(no class)"
"""The answer of a model that names none of the classes."""

TOLD = ("small", "confidence", "large")
"""The columns that `collect` adds."""

AT_ONCE = 8
"""Requests under way at a time."""


def instruction(classes: Sequence[str]) -> str:
    """The system prompt: one letter for each class, so that an answer is a single token."""
    options = "\n".join(f"{letter}: {name}" for letter, name in letters(classes).items())
    return f"Classify the user's message. Reply with one letter and nothing else.\n{options}"


def letters(classes: Sequence[str]) -> dict[str, str]:
    """The letter of each class."""
    if not 2 <= len(set(classes)) == len(classes) <= len(string.ascii_uppercase):
        raise SystemExit(
            f"--classes names {len(classes)} classes: expected 2 to 26, all different."
        )
    return dict(zip(string.ascii_uppercase, classes, strict=False))


async def classify(client: AsyncOpenAI, model: str, classes: Sequence[str], text: str) -> Answer:
    """The class that `model` names, and the probability that it gave to that letter.

    A reply that is none of the letters has confidence 0, so that it is passed on.
    """
    reply = await client.chat.completions.create(
        model=model,
        messages=[
            {"role": "system", "content": instruction(classes)},
            {"role": "user", "content": text},
        ],
        max_tokens=1,
        temperature=0,
        logprobs=True,
        top_logprobs=20,
    )
    choice = reply.choices[0]
    letter = (choice.message.content or "").strip()
    if letter not in letters(classes):
        return Answer(NO_CLASS, 0.0)
    tokens = choice.logprobs.content if choice.logprobs else None
    if not tokens:
        raise RuntimeError(f"{model} returns no log-probabilities: a router needs them as a score.")
    # " B" and "B" are two tokens of one letter.
    said = [token.logprob for token in tokens[0].top_logprobs if token.token.strip() == letter]
    return Answer(letters(classes)[letter], min(1.0, math.fsum(map(math.exp, said))))


def router(
    client: AsyncOpenAI, small: str, large: str, classes: Sequence[str], certificate: Path
) -> AsyncCascade:
    """The small model answers where its certified threshold allows it, the large one elsewhere."""

    async def fast(text: str) -> Answer:
        return await classify(client, small, classes, text)

    async def slow(text: str) -> Answer:
        return await classify(client, large, classes, text)

    certified = load_certificate(certificate)
    if not isinstance(certified, CascadeCertificate):
        raise SystemExit(f"{certificate} is a {certified.kind} certificate: expected a cascade's.")
    return AsyncCascade([fast, slow], certified, concurrency=AT_ONCE)


async def collect(client: AsyncOpenAI, options: argparse.Namespace) -> int:
    """Ask both models about every row; rows that the output already holds are not asked again."""
    rows = _rows(options.file)
    done = _finished(options.output, rows)
    columns = [*rows[0], *TOLD] if rows else []
    # In its place at once, so that what was paid for is never half there.
    fresh = options.output.with_name(f"{options.output.name}.part")
    with fresh.open("w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, columns)
        table.writeheader()
        table.writerows(done)
    fresh.replace(options.output)
    with options.output.open("a", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, columns)
        for start in range(len(done), len(rows), AT_ONCE):
            part = rows[start : start + AT_ONCE]
            answers = await asyncio.gather(*(_both(client, options, row) for row in part))
            for row, (fast, slow) in zip(part, answers, strict=True):
                told = fast.label, repr(fast.confidence), slow.label
                table.writerow(row | dict(zip(TOLD, told, strict=True)))
            file.flush()
            _say(f"\r{start + len(part)} of {len(rows)} rows")
    _say(f"\n{len(rows)} rows are in {options.output}.\n")
    return 0


def _finished(output: Path, rows: list[dict[str, str]]) -> list[dict[str, str]]:
    """The rows that an earlier run finished; the last one may have been cut off."""
    if not output.exists():
        return []
    whole, _, _ = output.read_bytes().decode(errors="replace").rpartition("\n")
    done = [row for row in csv.DictReader(StringIO(whole, newline="")) if row.get(TOLD[-1])]
    if [{key: row[key] for key in row if key not in TOLD} for row in done] != rows[: len(done)]:
        raise SystemExit(f"{output} was collected from other rows: name another file with -o.")
    return done


async def _both(
    client: AsyncOpenAI, options: argparse.Namespace, row: dict[str, str]
) -> tuple[Answer, Answer]:
    text, classes = row[options.text], options.classes
    return await asyncio.gather(
        classify(client, options.small, classes, text),
        classify(client, options.large, classes, text),
    )


async def route(client: AsyncOpenAI, options: argparse.Namespace) -> int:
    """Answer every row by the certified router, in order."""
    rows = _rows(options.file)
    cascade = router(client, options.small, options.large, options.classes, options.certificate)
    result = await cascade.run([row[options.text] for row in rows])
    answers = zip(rows, result.predictions.tolist(), result.exits.tolist(), strict=True)
    with options.output.open("w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, [*rows[0], "answer", "model"] if rows else [])
        table.writeheader()
        for row, answer, exit_ in answers:
            table.writerow(row | {"answer": answer, "model": (options.small, options.large)[exit_]})
    share = (result.exits == 0).mean() if rows else 0.0
    _say(f"{options.small} answered {share:.1%} of {len(rows)} rows.\n")
    return 0


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _say(words: str) -> None:
    sys.stderr.write(words)
    sys.stderr.flush()


def main(arguments: Sequence[str] | None = None, **client: Any) -> int:
    """The command line; `client` is passed on to the client of the models."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("step", choices=["collect", "route"])
    parser.add_argument("file", type=Path, help="a CSV of messages")
    parser.add_argument("--text", required=True, help="the column with the message")
    parser.add_argument("--small", required=True, help="the name of the small model")
    parser.add_argument("--large", required=True, help="the name of the large model")
    parser.add_argument("--classes", required=True, type=lambda text: text.split(","))
    parser.add_argument("--certificate", type=Path, help="for route: what `pacbound cascade` wrote")
    parser.add_argument("-o", "--output", required=True, type=Path)
    options = parser.parse_args(arguments)
    letters(options.classes)
    if options.step == "route" and options.certificate is None:
        parser.error("route needs --certificate.")

    async def run() -> int:
        async with AsyncOpenAI(**client) as models:
            return await (collect if options.step == "collect" else route)(models, options)

    return asyncio.run(run())


if __name__ == "__main__":
    sys.exit(main())
