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

Every answer of `collect` is in a journal beside the output as soon as it comes in. If a request
fails for good, the others are still answered; type the same command again to ask for what is
missing.

Prompt, parameters and both models are part of what was certified: change one, certify again.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import json
import math
import sys
from pathlib import Path
from typing import Any

import litellm

from pacbound.atomic_files import refuse_overwriting
from pacbound.cascade import Answer, Asking, AsyncCascade
from pacbound.file_locks import taken

ASKING: dict[str, Any] = {"concurrency": 8, "retries": 3, "timeout": 60.0}
"""Tries are counted here, and not by LiteLLM, too: `Asking` waits as long as a server says."""


async def ask(model: str, text: str, **options: Any) -> Answer:
    """What a model answers, and how sure it is: exp of the mean log-probability of its tokens, 0
    where the provider gives none: the least sure, though not below a threshold of 0.
    """
    reply: Any = await litellm.acompletion(
        model=model,
        messages=[{"role": "user", "content": text}],
        temperature=0,
        logprobs=True,
        num_retries=0,
        **options,
    )
    (choice,) = reply.choices
    said = getattr(choice, "logprobs", None)
    tokens = [token.logprob for token in said.content or ()] if said else []
    mean = math.fsum(tokens) / len(tokens) if tokens else -math.inf
    return Answer((choice.message.content or "").strip(), min(1.0, math.exp(mean)))


def router(small: str, large: str, certificate: Any, **options: Any) -> AsyncCascade:
    """The small model answers where its certified threshold allows it, the large one elsewhere.
    `options` go to LiteLLM.
    """

    async def fast(text: str) -> Answer:
        return await ask(small, text, **options)

    async def slow(text: str) -> Answer:
        return await ask(large, text, **options)

    return AsyncCascade([fast, slow], certificate, on_error="slow", asking=Asking(**ASKING))


async def collect(
    small: str, large: str, texts: list[str], journal: Path, **options: Any
) -> list[dict[str, Any]]:
    """What both models answer to each text, as rows to certify on. What is in the journal is not
    asked for again.

    A failure that does not pass raises, once all else is answered and kept: rows may not be left
    out because a model failed on them.
    """
    asking = Asking(**ASKING)
    with journal.open("ab", buffering=0) as file:
        if not taken(file, wait=False):
            raise SystemExit(f"{journal} is in use by another process: wait for it, or end it.")
        known = kept(journal, [small, large, texts])

        async def answer(place: int, row: int) -> list[Any]:
            if (place, row) not in known:
                model, text = (small, large)[place], texts[row]
                said = await asking.awaited(lambda: ask(model, text, **options), RuntimeError)
                known[place, row] = [said.label, said.confidence]
                file.write(f"{json.dumps([place, row, known[place, row]])}\n".encode())
            return known[place, row]

        async def both(row: int) -> dict[str, Any]:
            fast, slow = await answer(0, row), await answer(1, row)
            return {"small": fast[0], "confidence": fast[1], "large": slow[0]}

        found = await asyncio.gather(*map(both, range(len(texts))), return_exceptions=True)
    for one in found:
        if isinstance(one, BaseException):
            raise one
    return [one for one in found if isinstance(one, dict)]


def kept(journal: Path, belongs_to: list[Any]) -> dict[tuple[int, int], list[Any]]:
    """The answers in a journal by model and row; it is begun if it is empty."""
    first = json.dumps(belongs_to)
    if not journal.stat().st_size:
        journal.write_text(f"{first}\n", encoding="utf-8")
    head, *lines = journal.read_text(encoding="utf-8").split("\n")
    if head != first:
        raise SystemExit(f"{journal} was begun for other requests or models: name another -o.")
    if lines.pop():
        # The last line was cut short.
        journal.write_text("\n".join([head, *lines, ""]), encoding="utf-8")
    return {(place, row): said for place, row, said in map(json.loads, lines)}


async def route(cascade: AsyncCascade, texts: list[str]) -> list[dict[str, Any]]:
    """The answer to each text, and which model gave it."""
    result = await cascade.run(texts)
    models = {0: "small", 1: "large"}
    answers = zip(result.predictions.tolist(), result.exits.tolist(), strict=True)
    return [{"answer": answer, "model": models.get(exit_, "none")} for answer, exit_ in answers]


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
    if options.what == "collect":
        journal = options.output.with_name(f"{options.output.name}.journal")
        try:
            rows = asyncio.run(collect(options.small, options.large, texts, journal))
        except RuntimeError as error:
            raise SystemExit(f"{error}\nAll other answers are kept in {journal}.") from None
    elif options.certificate is None:
        parser.error("route needs --certificate.")
    else:
        rows = asyncio.run(route(router(options.small, options.large, options.certificate), texts))
    with options.output.open("w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, ["text", *(rows[0] if rows else ())])
        table.writeheader()
        table.writerows({"text": text, **row} for text, row in zip(texts, rows, strict=True))
    return 0


if __name__ == "__main__":
    sys.exit(main())
