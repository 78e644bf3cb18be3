"""How often a monitor rings falsely, and how soon it rings when something happened.

    python -m experiments.monitor            # writes results/monitor.json and results/monitor.md
    python -m experiments.monitor --small    # shows that it runs; writes nothing

Streams are simulated with fixed seeds. The rate is exactly the one that is allowed where false
alarms are counted, which is the hardest case, and the number of streams that rang is judged by an
exact binomial test: `chance` is the probability of so many or more if each rang with the
probability that is promised.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtrc

from pacbound.atomic_files import atomic_file
from pacbound.monitor.state import Promise
from pacbound.stats.betting import Bets, Restarts, RunningSums, difference_bets, loss_bets

RESULTS = Path(__file__).parent / "results"
XI = 0.02
DELTAS = (0.1, 0.05, 0.01, 0.001)

Integers = NDArray[np.int64]


def losses(bets: Bets | None) -> Bets:
    assert bets is not None
    return bets


def chance(rang: int, streams: int, promised: float) -> float:
    """P(at least `rang` of `streams`) at the probability that is promised."""
    return 1.0 if rang == 0 else float(bdtrc(rang - 1, streams, promised))


def false_alarms_ever(streams: int, labels: int) -> list[dict[str, Any]]:
    """First clock: streams at the boundary, and those that rang within so many labels."""
    rng, bets = np.random.default_rng(61), losses(loss_bets(XI))
    highest = np.empty(streams)
    for stream in range(streams):
        outcomes = (rng.random(labels) < XI).astype(np.int64)
        highest[stream] = Restarts.fresh(bets).after(bets, outcomes)[1].max()
    return [
        {
            "delta": delta,
            "streams": streams,
            "labels": labels,
            "rang": (rang := int((highest >= Promise.of(delta, "ever").limit).sum())),
            "share": rang / streams,
            "chance": chance(rang, streams, delta),
        }
        for delta in DELTAS
    ]


def false_alarms_by(streams: int) -> list[dict[str, Any]]:
    """Second clock: at the boundary, the mean time to the alarm, and the streams that rang by t."""
    rng, bets, found = np.random.default_rng(62), losses(loss_bets(XI)), []
    for every in (200, 2000):
        limit, times = Promise.of(0.01, every).limit, np.empty(streams)
        for stream in range(streams):
            times[stream] = first_alarm(bets, limit, rng)
        for share in (0.05, 0.2):
            by = int(share * every)
            rang = int((times <= by).sum())
            found.append(
                {
                    "every": every,
                    "streams": streams,
                    "mean_time": float(times.mean()),
                    "standard_error": float(times.std() / np.sqrt(streams)),
                    "by": by,
                    "rang": rang,
                    "share": rang / streams,
                    "promised": share,
                    "chance": chance(rang, streams, share),
                }
            )
    return found


def first_alarm(bets: Bets, limit: float, rng: np.random.Generator) -> int:
    sums, done = RunningSums.fresh(bets), 0
    while True:
        sums, evidence = sums.after(bets, (rng.random(1000) < XI).astype(np.int64))
        over = np.flatnonzero(evidence >= limit)
        if over.size:
            return done + int(over[0]) + 1
        done += 1000


def delays(streams: int) -> list[dict[str, Any]]:
    """Labels from the rise, .012 to .06 at label 50,000, to the alarm."""
    bets, found = losses(loss_bets(XI)), []
    for words in ("ever", "one per 1e6 labels", "one per 1e5 labels"):
        promise, rng = Promise.of(1e-3, words), np.random.default_rng(63)
        delay = []
        for _ in range(streams):
            before = (rng.random(50_000) < 0.012).astype(np.int64)
            after = (rng.random(10_000) < 0.06).astype(np.int64)
            wealth, early = promise.fresh(bets).after(bets, before)
            _, evidence = wealth.after(bets, after)
            over = np.flatnonzero(evidence >= promise.limit)
            if not (early >= promise.limit).any():
                delay.append(int(over[0]) + 1 if over.size else len(after) + 1)
        found.append({"false_alarms": promise.text, **quantiles(delay), "streams": len(delay)})
    return found


def shadow_delays(streams: int) -> list[dict[str, Any]]:
    """A cascade: rows from the rise in its losses, .012 to .06, to the alarm, by the share."""
    bets, promise, found = difference_bets(XI), Promise.of(1e-3, "ever"), []
    for share in (1.0, 0.25, 0.1):
        rng, delay = np.random.default_rng(64), []
        for _ in range(streams):
            before = 1 + (rng.random(int(50_000 * share)) < 0.012).astype(np.int64)
            after = rng.random(40_000) < 0.06
            looked = np.flatnonzero(rng.random(40_000) < share)
            wealth, _ = promise.fresh(bets).after(bets, before)
            _, evidence = wealth.after(bets, 1 + after[looked].astype(np.int64))
            over = np.flatnonzero(evidence >= promise.limit)
            delay.append(int(looked[over[0]]) + 1 if over.size else len(after) + 1)
        found.append({"share": share, **quantiles(delay), "streams": streams})
    return found


def quantiles(delay: list[int]) -> dict[str, float]:
    return {
        "median": float(np.median(delay)),
        "tenth": float(np.quantile(delay, 0.1)),
        "ninetieth": float(np.quantile(delay, 0.9)),
    }


def markdown(results: dict[str, Any]) -> str:
    lines = [
        "# Monitors: false alarms and delays",
        "",
        "Written by `python -m experiments.monitor`. Rates of loss are simulated, xi = 0.02.",
        "",
        "False alarms on the first clock, `ever`, at the boundary. `chance` is the probability of "
        "so many or more if delta were exact.",
        "",
        "| delta | streams | labels each | rang | share | chance |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {row['delta']} | {row['streams']:,} | {row['labels']:,} | {row['rang']} | "
        f"{row['share']:.4f} | {row['chance']:.3f} |"
        for row in results["false_alarms_ever"]
    ]
    lines += [
        "",
        "False alarms on the second clock, one per A labels, at the boundary.",
        "",
        "| A | streams | mean time | by label | rang | share | promised | chance |",
        "|---|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {row['every']:,} | {row['streams']:,} | {row['mean_time']:,.0f} ± "
        f"{row['standard_error']:,.0f} | {row['by']} | {row['rang']} | {row['share']:.4f} | "
        f"{row['promised']} | {row['chance']:.3f} |"
        for row in results["false_alarms_by"]
    ]
    lines += [
        "",
        "Labels from a rise of .012 to .06 at label 50,000 to the alarm; delta = 0.001.",
        "",
        "| false alarms | streams | 10 % | median | 90 % |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {row['false_alarms']} | {row['streams']:,} | {row['tenth']:,.0f} | "
        f"{row['median']:,.0f} | {row['ninetieth']:,.0f} |"
        for row in results["delays"]
    ]
    lines += [
        "",
        "A cascade whose losses rise from .012 to .06 of all rows: rows of traffic to the alarm, "
        "by the share that the slow model answers too; first clock, delta = 0.001.",
        "",
        "| share | streams | 10 % | median | 90 % |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {row['share']} | {row['streams']:,} | {row['tenth']:,.0f} | "
        f"{row['median']:,.0f} | {row['ninetieth']:,.0f} |"
        for row in results["shadow_delays"]
    ]
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> None:
    small, started = "--small" in arguments, time.perf_counter()
    results = {
        "command": "python -m experiments.monitor",
        "xi": XI,
        "delays": delays(10 if small else 1000),
        "shadow_delays": shadow_delays(10 if small else 500),
        "false_alarms_by": false_alarms_by(50 if small else 4000),
        "false_alarms_ever": false_alarms_ever(*((20, 2000) if small else (2000, 200_000))),
    }
    print(markdown(results))
    print(f"{time.perf_counter() - started:.0f} s")
    if not small:
        for name, text in (
            ("monitor.json", json.dumps(results, indent=1) + "\n"),
            ("monitor.md", markdown(results)),
        ):
            with atomic_file(RESULTS / name) as file:
                file.write(text.encode())


if __name__ == "__main__":
    main(sys.argv[1:])
