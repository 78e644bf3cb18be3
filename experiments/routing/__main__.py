"""Measure all pairs, print the table, and write it with the figure."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import binom

import experiments.routing
from experiments.routing.draws import CHOICES, DELTA, MAGIC, TOLERANCES, TrueTradeOff, measured
from experiments.routing.figure import figure
from experiments.routing.pairs import ANSWER, PER_MILLION, QUESTION, SHA256, pairs
from pacbound import __version__


def main() -> None:
    options = parse()
    found = pairs(options.data)
    record: dict[str, Any] = {
        "command": f"python -m experiments.routing --data FOLDER --draws {options.draws}",
        "sha256": SHA256,
        "versions": {"pacbound": __version__, "numpy": np.__version__},
        "seeds": [0, options.draws - 1],
        "delta": DELTA,
        "pairs": [measured(pair, options.draws) for pair in found],
    }
    options.out.mkdir(parents=True, exist_ok=True)
    target = options.out / "routing"
    target.with_suffix(".json").write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    report = markdown(record)
    target.with_suffix(".md").write_text(report, encoding="utf-8")
    drawn = figure(record["pairs"], [TrueTradeOff(pair) for pair in found])
    for suffix in (".png", ".svg"):
        drawn.savefig(target.with_suffix(suffix), dpi=150)
    print(report)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=experiments.routing.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", type=Path, required=True, help="the folder with both files")
    parser.add_argument("--draws", type=int, default=200, help="samples for each pair and xi")
    parser.add_argument(
        "--out", type=Path, default=Path("experiments/results"), help="the folder to write to"
    )
    return parser.parse_args()


def markdown(record: dict[str, Any]) -> str:
    draws = record["seeds"][1] + 1
    most = int(binom.isf(0.001, draws, DELTA))
    question, answer = (PER_MILLION["GPT-4-1106"], PER_MILLION["Qwen3-32B"])
    lines = [
        "# Routing: dollars saved at a certified loss",
        "",
        f"`{record['command']}`: a cheap model answers where its confidence reaches a threshold, "
        f"an expensive one elsewhere. Each of {draws} samples of n rows, drawn with replacement "
        "from the data set, gives a threshold; what it loses and costs over the whole data set is "
        "then exact. A sample violates if that loss is above xi; a method that keeps its promise "
        f"violates in at most {DELTA:.0%} of them (up to {most} of {draws} by chance, at a level "
        "of 0.001).",
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
        "What thresholds that nobody certified cost and lose, over the whole data set.",
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


def _names(pair: dict[str, Any]) -> str:
    fast, slow = pair["models"]
    return f"{pair['name']} | {fast} → {slow}"


if __name__ == "__main__":
    main()
