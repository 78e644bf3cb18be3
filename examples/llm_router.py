r"""Let a small language model answer for a large one, losing at most xi accuracy.

It works with every server that speaks OpenAI's chat completions and returns log-probabilities: the
vendor's own, vLLM, llama.cpp, SGLang. Set OPENAI_BASE_URL and OPENAI_API_KEY, then:

    # 1. A sample of real traffic goes to both models.
    python examples/llm_router.py collect sample.csv --text message --small m --large L \
        --classes refund,delivery,login -o rows.csv

    # 2. Certify. Add labels (a column `label`) where the models differ to let more be answered by
    #    the small one; a row without one counts as a loss.
    pacbound cascade rows.csv --confidence confidence --prediction small,large --label label \
        --xi 0.02 --delta 0.01 -o router.json

    # 3. Route what comes.
    python examples/llm_router.py route new.csv --text message --small m --large L \
        --classes refund,delivery,login --certificate router.json -o answers.csv

Every answer is on the disk before the next one is waited for, in a journal beside the output, and
no answer is paid for twice: after Ctrl-C, a crash or a day on which the server failed, type the
same command again. It asks for what is missing, and ends with 1 while something is. A request that
fails is sent again by the client (--retries), not before the server wants it.

Where the small model fails for good, the large one answers. What is certified is a router that does
not fail, so `route` says the share f of such rows: over all rows at most xi + f is lost.

The prompt, the classes and both models are part of what was certified: change one, certify again.
Rows that a model refuses for good do not belong in the sample, nor in the traffic that is routed.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import hashlib
import json
import math
import os
import string
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

from openai import AsyncOpenAI, OpenAIError

from pacbound.atomic_files import refuse_overwriting
from pacbound.cascade import Answer, AsyncCascade
from pacbound.file_locks import taken

Model = Callable[[int], Awaitable[Answer]]

NO_CLASS = "(no class)"
"""The answer of a model that names none of the classes."""


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

    A reply that is none of the letters has confidence 0, so that it is passed on, unless the
    certified threshold is 0: there every answer of the small model is used.
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
        # Nothing else would come for the other rows.
        raise SystemExit(f"{model} returns no log-probabilities: a router needs them as a score.")
    # " B" and "B" are two tokens of one letter.
    said = [token.logprob for token in tokens[0].top_logprobs if token.token.strip() == letter]
    return Answer(letters(classes)[letter], min(1.0, math.fsum(map(math.exp, said))))


class Journal:
    """What was answered, by the number of the row, on the disk as soon as it comes in. Only one
    process has it at a time, and a file that is none is left alone.
    """

    def __init__(self, path: Path, belongs_to: Sequence[Any]) -> None:
        told = json.dumps(belongs_to).encode()
        head = {"belongs_to": hashlib.sha256(told).hexdigest()}
        self.answers: dict[int, dict[str, Any]] = {}
        self._file = path.open("a+b")
        if not taken(self._file, wait=False):
            self._refuse(f"{path} is in use by another process: wait for it, or end it.")
        self._file.seek(0)
        # What follows the last line break was cut short, or is nothing.
        *lines, rest = self._file.read().split(b"\n")
        first = json.dumps(head).encode()
        if lines[0] != first if lines else not first.startswith(rest):
            self._refuse(f"{path} was begun for other rows or models: name another -o.")
        for line in map(json.loads, lines[1:]):
            self.answers.setdefault(line.pop("row"), {}).update(line)
        self._file.truncate(sum(len(line) + 1 for line in lines))
        if not lines:
            self._write(head)

    def _refuse(self, why: str) -> None:
        self._file.close()
        raise SystemExit(why)

    def keep(self, row: int, **answer: Any) -> None:
        """Write down what was answered about a row."""
        self._write({"row": row, **answer})
        self.answers.setdefault(row, {}).update(answer)

    def _write(self, line: dict[str, Any]) -> None:
        self._file.write(json.dumps(line).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


def paid_once(
    client: AsyncOpenAI, options: argparse.Namespace, rows: list[dict[str, str]], journal: Journal
) -> tuple[Model, Model]:
    """The small and the large model, as functions of the number of a row. What the journal holds is
    not asked again.
    """

    def model(place: str, name: str) -> Model:
        async def answer(row: int) -> Answer:
            known = journal.answers.get(row, {}).get(place)
            if known is None:
                said = await classify(client, name, options.classes, rows[row][options.text])
                known = [said.label, said.confidence]
                journal.keep(row, **{place: known})
            return Answer(*known)

        answer.__name__ = name
        return answer

    return model("small", options.small), model("large", options.large)


async def collect(client: AsyncOpenAI, options: argparse.Namespace) -> int:
    """Ask both models about every row."""
    rows, reasons = _rows(options.file), dict[int, str]()
    with _journal(options, rows) as journal:
        models = paid_once(client, options, rows, journal)
        wanted = [
            (row, place)
            for row in range(len(rows))
            for place, name in enumerate(("small", "large"))
            if name not in journal.answers.get(row, {})
        ]
        room = asyncio.Semaphore(options.concurrency)

        async def ask(row: int, place: int) -> None:
            async with room:
                try:
                    await models[place](row)
                except OpenAIError as error:
                    reasons[row] = f"{type(error).__name__}: {error}"

        asked = [asyncio.create_task(ask(*want)) for want in wanted]
        try:
            for done, one in enumerate(asyncio.as_completed(asked), start=1):
                await one
                _say(f"\r{done} of {len(wanted)} requests")
        finally:
            for task in asked:
                task.cancel()
            # Whatever ended this, nobody is told again of it by the others.
            await asyncio.gather(*asked, return_exceptions=True)
        answered = [journal.answers.get(row, {}) for row in range(len(rows))]
    told = []
    for answer in answered:
        small, confidence = answer.get("small", ("", ""))
        large, _ = answer.get("large", ("", ""))
        told.append({"small": small, "confidence": confidence, "large": large})
    return _finished(options, rows, told, reasons)


async def route(client: AsyncOpenAI, options: argparse.Namespace) -> int:
    """Answer every row by the certified router."""
    rows, reasons, failed = _rows(options.file), dict[int, str](), set[int]()
    with _journal(options, rows) as journal:
        models = paid_once(client, options, rows, journal)
        limits: Any = {"on_error": "slow", "concurrency": options.concurrency}
        router = AsyncCascade(models, options.certificate, **limits)
        wanted = [row for row in range(len(rows)) if "answer" not in journal.answers.get(row, {})]
        async with aclosing(router.stream(wanted, ordered=False)) as answers:
            async for done, routed in _numbered(answers):
                if any(failure.model == 0 for failure in routed.failures):
                    failed.add(routed.item)
                if routed.left_out:
                    reasons[routed.item] = routed.failures[-1].reason
                else:
                    name = (options.small, options.large)[routed.exit]
                    said = {"answer": routed.prediction, "model": name}
                    journal.keep(routed.item, **said, small_failed=routed.item in failed)
                _say(f"\r{done} of {len(wanted)} rows")
        answered = [journal.answers.get(row, {}) for row in range(len(rows))]
    told = [{name: answer.get(name, "") for name in ("answer", "model")} for answer in answered]
    by = [row["model"] for row in told if row["model"]]
    share = by.count(options.small) / max(1, len(by))
    _say(f"\n{options.small} answered {share:.1%} of {len(by)} rows.")
    failed |= {row for row, answer in enumerate(answered) if answer.get("small_failed")}
    if failed:
        _say(
            f"\nIt failed on {len(failed)}, f = {len(failed) / len(rows):.2%} of all rows: at most "
            "xi + f is lost over all of them."
        )
    return _finished(options, rows, told, reasons)


async def _numbered(results: AsyncIterator[Any]) -> AsyncIterator[tuple[int, Any]]:
    done = 0
    async for result in results:
        done += 1
        yield done, result


def _journal(options: argparse.Namespace, rows: list[dict[str, str]]) -> Journal:
    path = options.output.with_name(f"{options.output.name}.journal")
    asked = [options.step, options.small, options.large, options.classes]
    certificate = options.certificate.read_text("utf-8") if options.certificate else None
    return Journal(path, [*asked, certificate, [row[options.text] for row in rows]])


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _finished(
    options: argparse.Namespace,
    rows: list[dict[str, str]],
    told: list[dict[str, Any]],
    reasons: dict[int, str],
) -> int:
    """Write all rows with what was answered, and say which were not."""
    # In its place at once: never half a file.
    fresh = options.output.with_name(f"{options.output.name}.part")
    with fresh.open("w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, [*rows[0], *told[0]] if rows else [])
        table.writeheader()
        table.writerows(row | answers for row, answers in zip(rows, told, strict=True))
    fresh.replace(options.output)
    _say(f"\n{len(rows) - len(reasons)} of {len(rows)} rows in {options.output} are answered.\n")
    if not reasons:
        return 0
    row, reason = min(reasons.items())
    _say(
        f"{len(reasons)} are not; the first is row {row}: {reason}\nType the same command again to "
        "ask for these alone.\n"
    )
    return 1


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
    parser.add_argument("--concurrency", type=int, default=8, help="requests under way at once")
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds for a request")
    parser.add_argument("--retries", type=int, default=4, help="how often a failure is tried again")
    options = parser.parse_args(arguments)
    letters(options.classes)
    if options.step == "route" and options.certificate is None:
        parser.error("route needs --certificate.")
    read = {"FILE": options.file, "--certificate": options.certificate}
    refuse_overwriting(
        {"-o": options.output}, {name: path for name, path in read.items() if path is not None}
    )

    async def run() -> int:
        limits: Any = {"max_retries": options.retries, "timeout": options.timeout}
        async with AsyncOpenAI(**limits, **client) as models:
            return await (collect if options.step == "collect" else route)(models, options)

    return asyncio.run(run())


if __name__ == "__main__":
    sys.exit(main())
