"""Test the certified shield where it is used: with the shield on, in rooms that nothing has seen,
from the repository root:

    python -m experiments.shield.evaluate

Certifies shields from the 20,000 rollouts that ship with the package, takes the paper's baselines
beside them, drives 2,000 new rooms at each threshold, and tests whether more than xi of the
rollouts are unsafe. Also checks the labels by replay. Prints the tables, writes them and the counts
to experiments/results, and draws two figures for the documentation.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from scipy.stats import binom

from experiments.record import STYLE, provenance
from experiments.robot.rooms import TEST
from experiments.safe_planning.methods import table_of
from experiments.shield import checks, figures
from experiments.shield.progress import shown
from experiments.shield.task import robot
from experiments.shield.thresholds import DELTA, METHODS, Choice, choices
from pacbound.data import indoor_navigation
from pacbound.shield import ShieldedRollouts, run_shielded

LEVEL = 0.01
"""An unsafe rate is said to exceed xi if so many unsafe rollouts had a smaller probability than
this at a rate of xi. Each of the 15 rows is tested alone, in the same rooms: now and then one of
them exceeds by chance."""


def main() -> None:
    options = parse()
    chosen = choices(indoor_navigation())
    thresholds = sorted({choice.threshold for choice in chosen} | {np.inf})
    tested = run_shielded(
        robot(),
        certificate_or_thresholds=thresholds,
        seeds=TEST[: options.rollouts],
        folder=options.folder,
        n_jobs=options.jobs,
        progress=shown("rollouts", every=60),
    )
    rows = [judged(choice, tested.at(choice.threshold)) for choice in chosen]
    record = {
        **provenance(
            "python -m experiments.shield.evaluate",
            seeds=[int(TEST[0]), int(TEST[options.rollouts - 1])],
            inputs={"rollouts": table_of(indoor_navigation()).digest},
            more=("mujoco",),
        ),
        "delta": DELTA,
        "level_of_the_test": LEVEL,
        "test_rollouts": options.rollouts,
        "policy_alone": counted(tested.at(np.inf)),
        "results": rows,
        "checks": checks.all_checks(tested, options.jobs),
    }
    report = markdown(record)
    target = options.out / "shield"
    target.with_suffix(".json").write_text(
        json.dumps(finite(record), indent=2) + "\n", encoding="utf-8"
    )
    target.with_suffix(".md").write_text(report, encoding="utf-8")
    options.figures.mkdir(parents=True, exist_ok=True)
    with rc_context(STYLE):
        drawn = {
            "shield_success_safety": figures.success_safety(record),
            "shield_rollouts": figures.rollouts(chosen, tested),
        }
        for name, figure in drawn.items():
            figure.savefig(options.figures / f"{name}.png", dpi=110, pil_kwargs={"optimize": True})
    print(report)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rollouts", type=int, default=2_000, help="new rooms for each threshold")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument(
        "--folder",
        type=Path,
        default=Path("experiments/runs/shield_tests"),
        help="where parts are kept",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("experiments/results"),
        help="the folder to write tables to",
    )
    parser.add_argument(
        "--figures", type=Path, default=Path("docs/figures"), help="the folder to draw to"
    )
    return parser.parse_args()


def judged(choice: Choice, tested: ShieldedRollouts) -> dict[str, Any]:
    """What the shield did in new rooms, and how likely at least so many unsafe ones are if the rate
    is xi."""
    counts = counted(tested)
    surprise = float(binom.sf(counts["unsafe"] - 1, counts["rollouts"], choice.xi))
    return {
        "xi": choice.xi,
        "method": choice.method,
        "threshold": choice.threshold,
        **counts,
        "p_value": surprise,
        "exceeds_xi": surprise < LEVEL,
    }


def counted(tested: ShieldedRollouts) -> dict[str, int]:
    return {
        "rollouts": len(tested),
        "unsafe": int(tested.unsafe.sum()),
        "success": int((tested.success & ~tested.unsafe).sum()),
        "fired": int((tested.fired_at >= 0).sum()),
    }


def finite(value: Any) -> Any:
    """`value` as strict JSON has it."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [finite(item) for item in value]
    return (
        ("+inf" if value > 0 else "-inf") if isinstance(value, float) and np.isinf(value) else value
    )


def markdown(record: dict[str, Any]) -> str:
    alone = record["policy_alone"]
    lines = [
        "# Shields in new rooms",
        "",
        (
            f"{record['test_rollouts']:,} rollouts for each threshold, each in a room of its own "
            f"that nothing has seen. Without a shield {alone['unsafe'] / alone['rollouts']:.1%} "
            f"collide and {alone['success'] / alone['rollouts']:.1%} reach the goal."
        ),
        "",
        (
            "| xi | method | guarantee | threshold | unsafe | success | fired | p-value of unsafe "
            "<= xi |"
        ),
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in record["results"]:
        name, certified = METHODS[row["method"]]
        verdict = f"{row['p_value']:.3g}" + (", exceeds" if row["exceeds_xi"] else "")
        shares = " | ".join(
            f"{row[key] / row['rollouts']:.1%}" for key in ("unsafe", "success", "fired")
        )
        lines.append(
            f"| {row['xi']} | {name} | {'yes' if certified else 'none'} | {row['threshold']:.4f} | "
            f"{shares} | {verdict} |"
        )
    lines += [
        "",
        "## Labels",
        "",
        *(f"- {line}" for line in checks.sentences(record["checks"])),
        "",
    ]
    lines += [f"Made by `{record['command']}`.", ""]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
