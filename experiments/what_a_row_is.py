"""What a row is: claims that were false because of how a row was drawn or tossed for, before the
repair and after it.

    python -m experiments.what_a_row_is            # writes results/what_a_row_is.*
    python -m experiments.what_a_row_is --quick --out FOLDER

Every law is one whose truth is known and of which the claim is false. `before` is recorded from the
commit 7fd54567. `after` is counted here, from fixed seeds or exactly, and `chance` is the
probability of so many false claims, or more, if each were false with probability delta.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from scipy.special import bdtrc

from experiments.record import RESULTS, p_text, provenance, publish, show_progress, table
from pacbound import calibrate, certify_replacement, certify_shield
from pacbound.monitor import Monitor

NAME: Final = "what_a_row_is"
DELTA: Final = 0.05


@dataclass(frozen=True)
class Case:
    """A law and a false claim about it: `is_false` makes a sample from a generator, and a seed for
    what is drawn or tossed, and says whether the claim was made. `before` is how many of how many
    samples made it at the commit 7fd54567.
    """

    what: str
    before: tuple[int, int]
    is_false: Callable[[np.random.Generator, int], bool]
    runs: int = 400
    delta: float = DELTA


def seeds() -> list[Case]:
    """One seed for everybody, against one that is drawn for each sample: a generator with a fixed
    seed stands for the operating system.
    """
    return [
        Case("new model worse by .3954 in every answer: 'at most .394'", (60, 60), _grades_lost),
        Case("quality .612 in every answer: outside of its interval", (30, 30), _quality_missed),
        Case(
            "179 clusters of 4, the first row wrong: interval misses 3/4", (60, 60), _place_missed
        ),
        Case("1,084 clusters of 4, the second row lost: 'at most .249'", (60, 60), _place_lost),
        Case(
            "a monitor of clusters of 2, the first lost, rate xi: an alarm", (20, 20), _rings, 100
        ),
    ]


def _grades_lost(rng: np.random.Generator, seed: int) -> bool:
    old = rng.uniform(0.3954, 1.0, size=300)
    quality = np.column_stack([old, old - 0.3954])
    return certify_replacement(quality=quality, xi=0.394, delta=DELTA, seed=seed).certified


def _quality_missed(rng: np.random.Generator, seed: int) -> bool:
    scores = rng.random(300)
    made = calibrate(scores, quality=np.full(300, 0.612), n_bins=1, delta=DELTA, seed=seed)
    low, high = made.interval(0.5)
    return not low <= 0.612 <= high


def _place_missed(rng: np.random.Generator, seed: int) -> bool:
    right = np.tile([False, True, True, True], 179)
    clusters = np.repeat(np.arange(179), 4)
    made = calibrate(rng.random(716), right, n_bins=1, delta=DELTA, clusters=clusters, seed=seed)
    low, high = made.interval(0.5)
    return not low <= 0.75 <= high


def _place_lost(rng: np.random.Generator, seed: int) -> bool:
    label = rng.integers(0, 3, size=4 * 1084)
    lost = np.tile([False, True, False, False], 1084)
    answers = np.column_stack([label, np.where(lost, (label + 1) % 3, label)])
    clusters = np.repeat(np.arange(1084), 4)
    made = certify_replacement(answers, label, xi=0.249, delta=DELTA, clusters=clusters, seed=seed)
    return made.certified


def _rings(rng: np.random.Generator, seed: int) -> bool:
    unsafe, clusters = np.arange(800) % 8 == 0, np.arange(800) // 2
    made = certify_shield(
        np.full(800, 0.1), unsafe, xi=0.5, delta=DELTA, clusters=clusters, seed=seed
    )
    monitor = Monitor(made, delta=DELTA)
    # The seed that it has drawn, by a generator here.
    begun = {**monitor.to_dict(), "seed": int(rng.integers(2**53))}
    monitor.go_on_from(resealed(begun), "the state")
    rows = {"unsafe": np.tile([True, False], 4000), "clusters": np.repeat(np.arange(4000), 2)}
    return monitor.update(rows) is not None


def resealed(document: Mapping[str, Any]) -> dict[str, Any]:
    """A state with the digest of what it holds now."""
    from pacbound.documents import sealed  # noqa: PLC0415 - nobody else changes a state

    return sealed({key: value for key, value in document.items() if key != "digest"})


TABLES: Final[Mapping[str, Callable[[], list[Case]]]] = {
    "One seed for everybody, and one for each sample": seeds,
}
"""The tables, by their titles: a function for each."""


def counted(title: str, number: int, runs: int | None) -> dict[str, Any]:
    """What a table comes to; `runs` are those of each case, if they are not its own."""
    rows = []
    for place, case in enumerate(TABLES[title]()):
        samples, wrong = case.runs if runs is None else runs, 0
        for run in range(samples):
            rng = np.random.default_rng([number, place, run])
            wrong += case.is_false(rng, int(rng.integers(2**53)))
            show_progress(run + 1, samples, case.what)
        rows.append(
            {
                "what": case.what,
                "delta": case.delta,
                "before": list(case.before),
                "after": [int(wrong), samples],
                "chance": chance(int(wrong), samples, case.delta),
            }
        )
    return {"title": title, "rows": rows}


def chance(wrong: int, runs: int, delta: float) -> float:
    """P(at least `wrong` of `runs`) at the probability delta."""
    return 1.0 if wrong == 0 else float(bdtrc(wrong - 1, runs, delta))


def markdown(record: dict[str, Any]) -> str:
    parts = [
        f"# What a row is\n\nWritten by `{record['command']}`. False claims, of laws whose truth "
        "is known: before at the commit 7fd54567, and now. `chance` is the probability of so many, "
        "or more, if each were false with probability delta.\n"
    ]
    for one in record["tables"]:
        lines = [
            (
                row["what"],
                f"{row['before'][0]} of {row['before'][1]}",
                f"{row['after'][0]} of {row['after'][1]}",
                f"{row['delta']:g}",
                p_text(row["chance"]),
            )
            for row in one["rows"]
        ]
        head = ("law and claim", "false before", "false now", "delta", "chance")
        parts.append(f"## {one['title']}\n\n{table(head, lines)}")
    return "\n".join(parts)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="few runs, to show that it works")
    parser.add_argument("--out", type=Path, default=RESULTS, help="the folder to write to")
    options = parser.parse_args(arguments)
    runs = 5 if options.quick else None
    record = {
        **provenance("python -m experiments.what_a_row_is", seeds=list(range(len(TABLES)))),
        "tables": [counted(title, number, runs) for number, title in enumerate(TABLES)],
    }
    publish(options.out, NAME, record, report=markdown)


if __name__ == "__main__":
    main()
