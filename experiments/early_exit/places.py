"""Choose after which blocks the public ResNet-56 exits, by measured time. From the repository root,
after `experiments.early_exit.exits` and `experiments.early_exit.parts`:

    python -m experiments.early_exit.places

Tries every set of one and of three exits on the first 2,000 test images, with the times that were
measured as costs, and keeps the fastest of each size. Those images take no part in certifying: to
`experiments.early_exit.certified`, which has the other 8,000, heads, places and costs are fixed.
Needs no torch.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacbound import certify_cascade

FOLD = 2_000
XI, DELTA = 0.02, 0.1
"""What the fold is asked for: on 2,000 rows about as strict as delta = 0.01 is on 4,000."""
RESULTS = Path("experiments/results")
MILLION = 1_000_000

Times = Mapping[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=RESULTS, help="the folder to read and write")
    options = parser.parse_args()
    made = json.loads((options.out / "early_exit_table.json").read_text(encoding="utf-8"))
    parts = json.loads((options.out / "early_exit_parts.json").read_text(encoding="utf-8"))
    with np.load(options.out / "early_exit_table.npz", allow_pickle=False) as held:
        rows = {name: held[name][:FOLD] for name in ("confidence", "prediction", "label")}
    tried = {str(m): searched(rows, made["after_blocks"], parts["times"], m) for m in (2, 4)}
    record = {
        "command": "python -m experiments.early_exit.places",
        "fold": FOLD,
        "xi": XI,
        "delta": DELTA,
        "table_sha256": made["table_sha256"],
        "chosen": {m: found[0]["after"] for m, found in tried.items()},
        "fastest": {m: found[:5] for m, found in tried.items()},
        "tried": {m: len(found) for m, found in tried.items()},
        "times": parts["times"],
    }
    text = json.dumps(record, indent=1) + "\n"
    (options.out / "early_exit_places.json").write_text(text, encoding="utf-8")
    for m, found in tried.items():
        for each in found[:5]:
            print(f"M = {m}: after {each['after']}: {each['time']:.1%} of the time on the fold")


def running_costs(
    after: Sequence[int], places: Sequence[int], stages: Sequence[float], heads: Sequence[float]
) -> list[float]:
    """What a row costs that is answered at each of the exits after the blocks `after`, the whole
    network last, from the costs of the stages between all `places` and of the head at each."""
    reached = np.cumsum(stages)
    spent = np.cumsum([heads[places.index(block)] for block in after])
    early = [reached[places.index(block)] + spent[n] for n, block in enumerate(after)]
    return [*map(float, early), float(reached[-1] + spent[-1] + heads[-1])]


def whole(found: Mapping[str, Any]) -> float:
    """What the whole network takes, part by part as all else was timed: at once it has its features
    still in the cache, and takes less."""
    return float(sum(found["stages"]) + found["heads"][-1])


def time_costs(after: Sequence[int], places: Sequence[int], times: Times) -> tuple[int, ...]:
    """The same in time: millionths of what the whole network takes, the mean over the sizes of
    batches. A decision counts with its head."""
    shares = [
        np.array(
            running_costs(
                after,
                places,
                found["stages"],
                [*np.add(found["heads"][:-1], found["decisions"]), found["heads"][-1]],
            )
        )
        / whole(found)
        for found in times.values()
    ]
    return tuple(round(float(MILLION * share)) for share in np.mean(shares, axis=0))


def searched(
    rows: Mapping[str, NDArray[Any]], places: Sequence[int], times: Times, models: int
) -> list[dict[str, Any]]:
    """Every set of exits for so many `models`, the fastest on these rows first."""
    found = []
    for after in combinations(places, models - 1):
        columns = [places.index(block) for block in after]
        certificate = certify_cascade(
            rows["confidence"][:, columns],
            rows["prediction"][:, [*columns, -1]].astype(np.int64),
            rows["label"].astype(np.int64),
            xi=XI,
            delta=DELTA,
            costs=time_costs(after, places, times),
        )
        took = MILLION if certificate.expected_cost is None else certificate.expected_cost
        found.append({"after": list(after), "time": took / MILLION})
    return sorted(found, key=lambda each: each["time"])


def parts_table(places: Sequence[int], times: Times) -> list[str]:
    """A line for each part: its share of the time of the whole network."""
    lines = [
        "| part | " + " | ".join(f"batch of {batch}" for batch in times) + " |",
        "| --- |" + " --- |" * len(times),
    ]

    def line(name: str, share: Callable[[Mapping[str, Any]], float]) -> str:
        cells = " | ".join(f"{share(found) / whole(found):.1%}" for found in times.values())
        return f"| {name} | {cells} |"

    first = 1
    for n, block in enumerate([*places, 27]):
        stem = "the first convolution, " if n == 0 else ""
        lines.append(line(f"{stem}blocks {first} to {block}", lambda found: found["stages"][n]))  # noqa: B023
        if n < len(places):
            lines.append(line(f"head after block {block}", lambda found: found["heads"][n]))  # noqa: B023
            lines.append(line("deciding and packing there", lambda found: found["decisions"][n]))  # noqa: B023
        first = block + 1
    for name, seconds in (("all blocks and the last layer", whole), ("at once", alone)):
        cells = " | ".join(
            f"{1e3 * seconds(found) / int(batch):.2f} ms an image" for batch, found in times.items()
        )
        lines.append(f"| {name} | {cells} |")
    return [*lines, ""]


def alone(found: Mapping[str, Any]) -> float:
    """What the whole network took at once."""
    return float(found["alone"])


if __name__ == "__main__":
    main()
