r"""Let a small model answer for a large one, both behind LiteLLM: any of its providers that returns
log-probabilities.

    # Both models answer a sample of real requests, one a line.
    python examples/litellm_router.py collect sample.txt --small S --large L -o rows.csv

    # Every difference counts as a loss, unless a column with labels or qualities says otherwise.
    pacbound cascade rows.csv --confidence confidence --prediction small,large \
        --xi 0.02 --delta 0.01 -o router.json

    # Route what comes.
    python examples/litellm_router.py route new.txt --small S --large L \
        --certificate router.json -o answers.csv

Every answer is in a journal beside the output as soon as it comes in. If a request fails for good,
or the process is killed, type the same command again to ask for what is missing. `route` ends with
1 while something is, and writes "none" for the model there.

Prompt, parameters and both models are part of what was certified: change one, certify again.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import json
import math
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import litellm
import openai

from pacbound.atomic_files import refuse_overwriting
from pacbound.cascade import Answer, AsyncCascade
from pacbound.file_locks import taken

Model = Callable[[int], Awaitable[Answer]]
CONCURRENCY = 8
"""How many rows are under way at once."""
ASKING: dict[str, Any] = {"num_retries": 3, "timeout": 60.0}
"""LiteLLM sends a request that failed again."""


async def ask(model: str, text: str, **options: Any) -> Answer:
    """What a model answers, and how sure it is: exp of the mean log-probability of its tokens, 0
    where the provider gives none: the least sure, though not below a threshold of 0.
    """
    reply: Any = await litellm.acompletion(
        model=model,
        messages=[{"role": "user", "content": text}],
        temperature=0,
        logprobs=True,
        **(ASKING | options),
    )
    (choice,) = reply.choices
    said = getattr(choice, "logprobs", None)
    tokens = [token.logprob for token in said.content or ()] if said else []
    mean = math.fsum(tokens) / len(tokens) if tokens else -math.inf
    return Answer((choice.message.content or "").strip(), min(1.0, math.exp(mean)))


@contextmanager
def paid_once(
    journal: Path, models: list[str], texts: list[str], **options: Any
) -> Iterator[list[Model]]:
    """The models, as functions of the number of a text. What the journal holds is not asked for
    again; only one process has it at a time. `options` go to LiteLLM.
    """
    with journal.open("a+b", buffering=0) as file:
        if not taken(file, wait=False):
            raise SystemExit(f"{journal} is in use by another process: wait for it, or end it.")
        known = kept(file, [models, texts])

        def model(place: int, name: str) -> Model:
            async def answer(row: int) -> Answer:
                if (place, row) not in known:
                    said = await ask(name, texts[row], **options)
                    known[place, row] = [said.label, said.confidence]
                    file.write(f"{json.dumps([place, row, known[place, row]])}\n".encode())
                return Answer(*known[place, row])

            return answer

        yield [model(place, name) for place, name in enumerate(models)]


def kept(journal: IO[bytes], belongs_to: list[Any]) -> dict[tuple[int, int], list[Any]]:
    """The answers in a journal by model and row; it is begun if it is empty."""
    first = json.dumps(belongs_to).encode()
    journal.seek(0)
    # What follows the last line break was cut short, or is nothing.
    *lines, rest = journal.read().split(b"\n")
    if lines[0] != first if lines else not first.startswith(rest):
        raise SystemExit(f"{journal.name} was begun for other requests or models: name another -o.")
    # Never written anew: what was paid for is on the disk at every moment.
    journal.truncate(sum(len(line) + 1 for line in lines))
    if not lines:
        journal.write(first + b"\n")
    return {(place, row): said for place, row, said in map(json.loads, lines[1:])}


async def collect(models: list[Model], rows: range) -> list[dict[str, Any]]:
    """What both models answer to each text, as rows to certify on.

    A failure that does not pass raises, once all else is answered and kept: rows may not be left
    out because a model failed on them.
    """
    room = asyncio.Semaphore(CONCURRENCY)

    async def both(row: int) -> dict[str, Any]:
        async with room:
            fast, slow = [await model(row) for model in models]
        return {"small": fast.label, "confidence": fast.confidence, "large": slow.label}

    found = await asyncio.gather(*map(both, rows), return_exceptions=True)
    for one in found:
        if isinstance(one, BaseException):
            raise one
    return [one for one in found if isinstance(one, dict)]


async def route(models: list[Model], rows: range, certificate: Path) -> list[dict[str, Any]]:
    """The answer to each text, and which model gave it: the small one where its certified threshold
    allows it, the large one elsewhere, and where the small one fails.
    """
    cascade = AsyncCascade(models, certificate, on_error="slow", concurrency=CONCURRENCY)
    result = await cascade.run(rows)
    names = {0: "small", 1: "large"}
    answers = zip(result.predictions.tolist(), result.exits.tolist(), strict=True)
    return [{"answer": answer, "model": names.get(exit_, "none")} for answer, exit_ in answers]


def main() -> int:
    """Collect or route, as the arguments ask."""
    parser = argparse.ArgumentParser(description="Route between two models behind LiteLLM.")
    parser.add_argument("what", choices=["collect", "route"])
    parser.add_argument("file", type=Path, help="One request a line.")
    parser.add_argument("--small", required=True)
    parser.add_argument("--large", required=True)
    parser.add_argument("--certificate", type=Path, help="For route: what was certified.")
    parser.add_argument("-o", "--output", type=Path, required=True)
    options = parser.parse_args()
    refuse_overwriting({"-o": options.output}, {"FILE": options.file})
    # At line breaks alone: a request may hold other signs that Python takes for one.
    with options.file.open(encoding="utf-8") as file:
        texts = [line.removesuffix("\n") for line in file]
    if options.what == "route" and options.certificate is None:
        parser.error("route needs --certificate.")
    journal = options.output.with_name(f"{options.output.name}.journal")
    with paid_once(journal, [options.small, options.large], texts) as models:
        places = range(len(texts))
        try:
            if options.what == "collect":
                rows = asyncio.run(collect(models, places))
            else:
                rows = asyncio.run(route(models, places, options.certificate))
        except openai.OpenAIError as error:
            raise SystemExit(f"{error}\nAll other answers are kept in {journal}.") from None
    with options.output.open("w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, ["text", *(rows[0] if rows else ())])
        table.writeheader()
        table.writerows({"text": text, **row} for text, row in zip(texts, rows, strict=True))
    missing = [text for text, row in zip(texts, rows, strict=True) if row.get("model") == "none"]
    if missing:
        sys.stderr.write(f"{len(missing)} requests failed, first {missing[0]!r}. Try again.\n")
    return int(bool(missing))


if __name__ == "__main__":
    sys.exit(main())
