"""Run the experiment, print its table and write it with the numbers behind it."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import betainc

import experiments.abstention
from experiments.abstention.methods import Draw, methods
from experiments.abstention.tables import Case, cases


def main() -> None:
    options = parse()
    results = [measured(case, options.draws) for case in cases(options)]
    made_by = "python -m experiments.abstention" + "".join(
        f" --{name} {path.name}"
        for name in ("cifar", "imagenet", "mmlu")
        if (path := getattr(options, name)) is not None
    )
    options.out.mkdir(parents=True, exist_ok=True)
    record = {"command": made_by, "draws": options.draws, "cases": results}
    target = options.out / "abstention.json"
    target.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    report = markdown(results, made_by)
    target.with_suffix(".md").write_text(report, encoding="utf-8")
    print(report)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=experiments.abstention.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    for name in ("cifar", "imagenet", "mmlu"):
        parser.add_argument(f"--{name}", type=Path, help=f"the .npz file of {name}")
    parser.add_argument("--draws", type=int, default=300, help="how often rows are drawn")
    parser.add_argument("--out", type=Path, default=Path("experiments/results"))
    return parser.parse_args()


def measured(case: Case, draws: int) -> dict[str, Any]:
    """Coverage against the oracle's, and how often the risk is above xi, for each method."""
    order = np.argsort(-case.confidence, kind="stable")
    scores = case.confidence[order]
    risk = np.cumsum(~case.correct[order]) / np.arange(1, scores.size + 1)
    last = np.append(scores[1:] != scores[:-1], True)
    good = np.flatnonzero(last & (risk <= case.xi))
    oracle = (int(good[-1]) + 1) / scores.size if good.size else 0.0
    found: dict[str, Any] = {}
    for name, (method, most) in methods().items():
        rng = np.random.default_rng(2024)
        coverages, violations, tried = [], 0, min(draws, most)
        for _ in range(tried):
            rows = rng.integers(0, scores.size, size=case.n)
            threshold = method(case, Draw(case.confidence[rows], case.correct[rows]))
            answered = int(np.searchsorted(-scores, -threshold, side="right"))
            coverages.append(answered / scores.size)
            violations += answered > 0 and bool(risk[answered - 1] > case.xi)
        found[name] = {
            "draws": tried,
            "share_of_oracle": float(np.mean(coverages)) / oracle,
            "standard_error": float(np.std(coverages)) / oracle / np.sqrt(tried),
            "answers_nothing": float(np.mean(np.array(coverages) == 0)),
            "violations": violations,
            "chance_of_so_many": so_many(violations, tried, case.delta),
        }
        print(case.name, name, found[name], flush=True)
    return {
        "name": case.name,
        "source": case.source,
        "rows": int(scores.size),
        "error": float(1 - case.correct.mean()),
        "n": case.n,
        "xi": case.xi,
        "delta": case.delta,
        "oracle_coverage": oracle,
        "methods": found,
    }


def so_many(violations: int, draws: int, delta: float) -> float:
    """The chance of so many violations if each has the chance delta: an exact binomial test."""
    return float(betainc(violations, draws - violations + 1, delta)) if violations else 1.0


def markdown(results: list[dict[str, Any]], made_by: str) -> str:
    """The table."""
    lines = [
        "# Abstention: how much is answered, and how often xi is broken",
        "",
        f"Made by `{made_by}`.",
        "Every table stands for the whole population and is drawn from with replacement; the",
        "oracle knows it. Share: mean coverage as a share of the oracle's, 0 where nothing is",
        "answered. Broken: draws in which more than xi of the answers are wrong, and the chance of",
        "so many if the method kept delta. MAPIE was given 100 of the draws.",
        "",
        "| data | n, xi, delta | oracle answers | method | share | answers nothing | broken |",
        "|---|---|---|---|---|---|---|",
    ]
    for case in results:
        for name, row in case["methods"].items():
            claim = f"{case['n']:,}, {case['xi']:g}, {case['delta']:g}"
            lines.append(
                f"| {case['name']} | {claim} | {case['oracle_coverage']:.3f} | {name} | "
                f"{row['share_of_oracle']:.3f} ± {row['standard_error']:.3f} | "
                f"{row['answers_nothing']:.1%} | {row['violations']} of {row['draws']} "
                f"({row['chance_of_so_many']:.1g}) |"
            )
    lines += ["", "The tables:", ""]
    lines += [f"- {case['name']}: {case['rows']:,} rows, {case['source']}" for case in results]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
