"""Run the experiment, print its tables and write them, the counts behind them and two figures."""

from __future__ import annotations

import argparse
import hashlib
from pathlib import Path
from typing import Any

import experiments.cascade
from experiments.cascade import figures
from experiments.cascade.models import Models, networks, shipped
from experiments.cascade.splits import DELTA, LEVEL, SEEDS, more_models, two_models
from experiments.cascade.tables import markdown
from experiments.record import dumped

SHIPPED_XI, SHIPPED_SHOWN = (0.005, 0.01, 0.02, 0.05), 0.02
CIFAR_XI, CIFAR_SHOWN = (0.005, 0.01, 0.02), 0.01


def main() -> None:
    options = parse()
    models = shipped()
    pairs = [(models, described(models, two_models(models, SHIPPED_XI)), SHIPPED_SHOWN)]
    parts = [pairs[0][1]]
    if options.logits is not None:
        two, three = networks(options.logits, (20, 56)), networks(options.logits, (20, 44, 56))
        pairs.append((two, described(two, two_models(two, CIFAR_XI)), CIFAR_SHOWN))
        parts += [pairs[1][1], described(three, {CIFAR_SHOWN: more_models(three, CIFAR_SHOWN)})]
    made_by = "python -m experiments.cascade" + (
        "" if options.logits is None else f" --logits {options.logits.name}"
    )
    report = markdown(parts, made_by)
    record = {"command": made_by, **source(options.logits), **settings(), "parts": parts}
    target = options.out / ("cascade_fashion_mnist" if options.logits is None else "cascade")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.with_suffix(".json").write_text(dumped(record), encoding="utf-8")
    target.with_suffix(".md").write_text(report, encoding="utf-8")
    for draw in (figures.error_cost, figures.desired_achieved):
        path = target.with_name(f"{target.name}_{draw.__name__}.png")
        draw(pairs).savefig(
            path, dpi=80, pil_kwargs={"optimize": True}, metadata={"Comment": made_by}
        )
    print(report)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=experiments.cascade.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--logits", type=Path, help="an .npz file with logits of each network and labels y"
    )
    parser.add_argument(
        "--out", type=Path, default=Path("experiments/results"), help="the folder to write to"
    )
    return parser.parse_args()


def described(models: Models, results: dict[float, dict[str, Any]]) -> dict[str, Any]:
    return {
        "name": models.name,
        "rows": len(models.labels),
        "errors": models.wrong.mean(axis=0).tolist(),
        "costs": models.costs,
        "slow_cost": models.slow_cost,
        "results": results,
    }


def source(logits: Path | None) -> dict[str, str]:
    return (
        {} if logits is None else {"logits_sha256": hashlib.sha256(logits.read_bytes()).hexdigest()}
    )


def settings() -> dict[str, Any]:
    return {"seeds": list(range(SEEDS)), "delta": DELTA, "level_of_the_test": LEVEL}


if __name__ == "__main__":
    main()
