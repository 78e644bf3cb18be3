"""The exhibit from the rollouts that are kept: ablations, tables and figures. From the repository
root:

    python -m experiments.safe_planning

No simulator runs: the rollouts by depth ship with the package, the others and the drives with the
shield on are what `collect` and `drive` left in experiments/results. Minutes; `--quick` takes few
draws.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from matplotlib import rc_context

from experiments.record import STYLE, provenance
from experiments.safe_planning import figures
from experiments.safe_planning.ablation import DEFAULT_XI, Cell, cells, run
from experiments.safe_planning.methods import Table
from experiments.safe_planning.report import capital, markdown
from experiments.safe_planning.tasks import NAMES, RESULTS, WORDS, collected
from experiments.shield.progress import shown

SEED = 14
REPEATS, FEW = 1_000, 20


def main() -> None:
    options = parse()
    repeats = options.repeats or (FEW if options.quick else REPEATS)
    parts: dict[str, Any] = {}
    for name in NAMES:
        law = collected(name, options.rollouts)
        if law is None:
            print(f"{name}: no rollouts were collected, left out")
            continue
        parts[name] = kept(options.out, name, law, repeats) or part(name, law, repeats)
    record = {
        **provenance(
            "python -m experiments.safe_planning" + (" --quick" if options.quick else ""),
            inputs={name: part["rollouts_sha256"] for name, part in parts.items()},
        ),
        "seed": SEED,
        "repeats": repeats,
        "tasks": parts,
        "drives": drives(options.rollouts),
    }
    publish(record, options.out, options.figures)
    print(markdown(record))


def part(name: str, law: Table, repeats: int) -> dict[str, Any]:
    """What is said of one task."""
    return {
        "title": WORDS[name].title,
        "rollouts": len(law),
        "rollouts_sha256": law.digest,
        "unsafe": int(law.unsafe.sum()),
        "success": int((law.success & ~law.unsafe).sum()),
        "ablation": run(
            law,
            asked_of(name, law),
            repeats=repeats,
            seed=SEED,
            progress=shown(f"draws, {name}", every=30),
        ),
    }


def asked_of(name: str, law: Table) -> list[Cell]:
    """The cells of a task. Over xi and delta a draw has as many rollouts as were collected; over n
    it may have more, for it is drawn with replacement."""
    return cells(len(law), WORDS[name].sizes)


def kept(out: Path, name: str, law: Table, repeats: int) -> dict[str, Any] | None:
    """What an earlier run said of the same rollouts with the same draws."""
    path = out / "safe_planning.json"
    if not path.exists():
        return None
    record = json.loads(path.read_text(encoding="utf-8"))
    found: dict[str, Any] | None = record["tasks"].get(name)
    if not found or (record["seed"], record["repeats"]) != (SEED, repeats):
        return None
    asked = {(cell.panel, cell.xi, cell.delta, cell.n) for cell in asked_of(name, law)}
    held = {(row["panel"], row["xi"], row["delta"], row["n"]) for row in found["ablation"]}
    return found if (found["rollouts_sha256"], held) == (law.digest, asked) else None


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="few draws for each cell")
    parser.add_argument("--repeats", type=int, help="draws for each cell")
    parser.add_argument(
        "--rollouts", type=Path, default=RESULTS, help="the folder with what was collected"
    )
    parser.add_argument("--out", type=Path, default=RESULTS, help="the folder to write to")
    parser.add_argument("--figures", type=Path, help="a folder for the figures as SVG once more")
    return parser.parse_args()


def drives(results: Path) -> dict[str, Any]:
    """What was driven with the shield on, by task."""
    found = {}
    for name in NAMES:
        path = results / ("shield.json" if name == "depth" else f"safe_planning_{name}_drives.json")
        if path.exists():
            held = json.loads(path.read_text(encoding="utf-8"))
            wanted = ("delta", "policy_alone", "results")
            found[name] = {key: held[key] for key in wanted}
    return found


def publish(record: dict[str, Any], out: Path, documentation: Path | None) -> None:
    out.mkdir(parents=True, exist_ok=True)
    text = json.dumps(record, indent=1) + "\n"
    (out / "safe_planning.json").write_text(text, encoding="utf-8")
    (out / "safe_planning.md").write_text(markdown(record), encoding="utf-8")
    # The same figure gives the same bytes.
    with rc_context(STYLE):
        drawn = {
            f"safe_planning_ablation_{name}": figures.ablation(
                held["ablation"], capital(held["title"])
            )
            for name, held in record["tasks"].items()
        }
        if record["drives"]:
            titles = {name: WORDS[name].title for name in NAMES}
            drawn["safe_planning_comparison"] = figures.comparison(
                record["drives"], titles, DEFAULT_XI
            )
        for name, figure in drawn.items():
            for folder in filter(None, (out, documentation)):
                figure.savefig(folder / f"{name}.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
