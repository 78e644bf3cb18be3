"""Measure all pairs, print the table, and write it with the figure."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from scipy.stats import binom

import experiments.routing
from experiments.record import RESULTS, known, provenance, publish
from experiments.routing.draws import CHOICES, DELTA, MAGIC, TOLERANCES, TrueTradeOff, measured
from experiments.routing.figure import figure
from experiments.routing.pairs import (
    ANSWER,
    PER_MILLION,
    QUESTION,
    SHA256,
    Pair,
    generated,
    pairs,
)

NAME = "routing"
DRAWS, FEW = 1_000, 10
SHOWN_XI, OFTEN_PICKED = "0.01", "0.9"


def main() -> None:
    options = parse()
    found = generated() if options.quick else pairs(options.data)
    draws = FEW if options.quick else options.draws
    how = "--quick" if options.quick else f"--data {options.data.resolve().name} --draws {draws}"
    record = known(options.out, NAME) if options.redraw else made(found, draws, how)
    publish(
        options.out,
        NAME,
        record,
        report=markdown,
        figures=lambda held: {"": figure(held["pairs"], [TrueTradeOff(pair) for pair in found])},
    )


def made(found: list[Pair], draws: int, how: str) -> dict[str, Any]:
    return {
        **provenance(
            f"python -m experiments.routing {how}",
            seeds=[0, draws - 1],
            inputs={} if how == "--quick" else SHA256,
        ),
        "delta": DELTA,
        "pairs": [measured(pair, draws) for pair in found],
    }


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=experiments.routing.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", type=Path, help="the folder with both files")
    parser.add_argument("--draws", type=int, default=DRAWS, help="samples for each pair and xi")
    parser.add_argument("--quick", action="store_true", help="two generated pairs, few samples")
    parser.add_argument(
        "--redraw", action="store_true", help="tables and figure again, from the JSON in OUT"
    )
    parser.add_argument("--out", type=Path, default=RESULTS, help="the folder to write to")
    options = parser.parse_args()
    if options.data is None and not options.quick:
        parser.error("pass --data FOLDER, or --quick")
    return options


def markdown(record: dict[str, Any]) -> str:
    draws = record["seeds"][1] + 1
    most = int(binom.isf(0.001, draws, DELTA))
    tested = len(record["pairs"]) * len(TOLERANCES)
    question, answer = (PER_MILLION["GPT-4-1106"], PER_MILLION["Qwen3-32B"])
    lines = [
        "# Routing: dollars saved at a certified loss",
        "",
        f"`{record['command']}`: a cheap model answers where its confidence reaches a threshold, "
        f"an expensive one elsewhere. Each of {draws} samples of n rows, drawn with replacement "
        "from the data set, gives a threshold; what it loses and costs over the whole data set is "
        "then exact. A sample violates if that loss is above xi; a method that keeps its promise "
        f"violates in at most {DELTA:.0%} of them: up to {most} of {draws} by chance, at a level "
        f"of 0.001 in each cell. A method has {tested} cells, so one that keeps its promise is "
        f"above that in any of them with probability at most {tested * 0.001:.2g} (union bound).",
        "",
        "| data set | models | n | xi | method | dollars per 10,000 | saved | mean loss | largest "
        "loss | violations |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for pair in record["pairs"]:
        slow = pair["dollars"][1]
        for xi in map(str, TOLERANCES):
            for name in CHOICES:
                got = pair["chosen"][xi][name]
                lines.append(
                    f"| {_names(pair)} | {pair['n']:,} | {xi} | {name} | {got['dollars']:.2f} | "
                    f"{1 - got['dollars'] / slow:.1%} | {got['loss']:+.4f} | "
                    f"{got['largest_loss']:+.4f} | {got['violations']} of {got['draws']} |"
                )
            best = pair["best_possible"][xi]
            lines.append(
                f"| {_names(pair)} | all | {xi} | best possible | {best['dollars']:.2f} | "
                f"{1 - best['dollars'] / slow:.1%} | {best['loss']:+.4f} | | |"
            )
    lines += [
        "",
        "## The same money, spent by feeling",
        "",
        f"Dollars per 10,000 rows and loss over the whole data set at xi = {SHOWN_XI}, beside the "
        f"thresholds that people pick, {', '.join(map(str, MAGIC))}. The same budget buys a "
        "different one of them on each data set, and nobody knows which without labels; beside it "
        f"what {OFTEN_PICKED} does everywhere. **✗**: loses more than xi.",
        "",
        "| data set | models | certified, mean of the samples | what the same budget buys by "
        f"feeling | always {OFTEN_PICKED} |",
        "|---|---|---|---|---|",
        *(f"| {_names(pair)} | {' | '.join(_budget(pair))} |" for pair in record["pairs"]),
        "",
        "All of them:",
        "",
        "| data set | models | " + " | ".join(f"≥ {threshold}" for threshold in MAGIC) + " |",
        "|---|---|" + "---|" * len(MAGIC),
    ]
    for pair in record["pairs"]:
        cells = (pair["magic"][str(threshold)] for threshold in MAGIC)
        lines.append(
            f"| {_names(pair)} | "
            + " | ".join(f"{cell['dollars']:.2f} $, {cell['loss']:+.4f}" for cell in cells)
            + " |"
        )
    lines += [
        "",
        "## What to know",
        "",
        "- Prices of APIs are those of 2020, from FrugalML. Those of language models are list "
        f"prices for a million tokens: GPT-4-1106 {question[0]:g} and {question[1]:g} dollars "
        f"(questions and answers), Qwen3-32B {answer[0]:g} and {answer[1]:g}; {QUESTION} tokens "
        f"for a question and {ANSWER} for an answer are assumed.",
        "- Speech commands come from 1,887 speakers, whose commands are not independent: a sample "
        "takes one command of each of 1,887 random speakers, and losses are those of a random "
        "command of a random speaker.",
        "- Of GPT-4 only whether it is right is public.",
        "- Where the cheap model is not asked at all, it is not paid: a refusal costs as much as "
        "the expensive model alone.",
    ]
    return "\n".join(lines) + "\n"


def _budget(pair: dict[str, Any]) -> tuple[str, str, str]:
    """What is certified, the dearest threshold by feeling that costs no more, and the usual one."""
    got, slow = pair["chosen"][SHOWN_XI]["certified"], pair["dollars"][1]
    within = {
        threshold: point
        for threshold, point in pair["magic"].items()
        if point["dollars"] <= got["dollars"]
    }
    bought = "none of them"
    if within:
        threshold, point = max(within.items(), key=lambda item: item[1]["dollars"])
        bought = f"≥ {threshold}: {_spent(point, slow)}"
    return _spent(got, slow), bought, _spent(pair["magic"][OFTEN_PICKED], slow)


def _spent(point: dict[str, float], slow: float) -> str:
    above = " **✗**" if point["loss"] > float(SHOWN_XI) else ""
    return (
        f"{point['dollars']:.2f} $ ({1 - point['dollars'] / slow:.0%} saved), "
        f"{point['loss']:+.4f}{above}"
    )


def _names(pair: dict[str, Any]) -> str:
    fast, slow = pair["models"]
    return f"{pair['name']} | {fast} → {slow}"


if __name__ == "__main__":
    main()
