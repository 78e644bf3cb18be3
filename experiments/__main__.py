r"""All exhibits, one after the other: every table and figure of the paper, and those beyond it.

    python -m experiments --outputs OUTPUTS --top-five TOP_FIVE --apis APIS --logits LOGITS \
        --data FOLDER

runs what it has the data for, and says what it leaves out. An exhibit that is done, because its
JSON is in the folder of the results with the same command, is not run again; `--again` does. Each
is a command of its own too: `--list` shows them. `--quick` runs a small version of each, on
generated data and on what ships with the package.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

OUT = Path("experiments/runs/results")

INPUTS = {
    "outputs": "what 34 networks say about ImageNet: a compact .npz file or a clone",
    "top-five": "the top five classes of three of them: a compact .npz file or a clone",
    "apis": "what commercial interfaces say about speech: an .npz file",
    "logits": "logits of four networks on CIFAR-10: an .npz file",
    "data": "the folder with what interfaces and language models say: two .npz files",
}


@dataclass(frozen=True)
class Exhibit:
    """A command: `made` is the JSON that it writes, without its ending; `reads` are the inputs that
    it cannot do without, and `takes` those that it uses if they are there; `quick` are the options
    of its small version, None if it has none."""

    module: str
    made: str
    reads: tuple[str, ...] = ()
    takes: tuple[str, ...] = ()
    quick: tuple[str, ...] | None = ("--quick",)


IMAGENET = ("outputs", "top-five")

EXHIBITS = (
    Exhibit("experiments.imagenet.fast_inference", "imagenet_fast_inference", IMAGENET),
    Exhibit("experiments.imagenet.ablation", "imagenet_ablation", IMAGENET),
    Exhibit(
        "experiments.imagenet.cpu_time",
        "imagenet_cpu_time",
        quick=("--rounds", "1", "--side", "64"),
    ),
    Exhibit("experiments.headline", "headline", quick=()),
    Exhibit("experiments.imagenet.calibration", "imagenet_calibration", IMAGENET),
    Exhibit("experiments.validity", "validity", ("outputs",), ("apis",)),
    Exhibit("experiments.safe_planning", "safe_planning"),
    Exhibit("experiments.early_exit.certified", "early_exit"),
    Exhibit("experiments.calibration", "calibration", ("logits",)),
    Exhibit("experiments.cascade", "cascade", ("logits",)),
    Exhibit("experiments.routing", "routing", ("data",)),
    Exhibit("experiments.data_as_it_is", "data_as_it_is"),
    Exhibit("experiments.clusters", "clusters"),
    Exhibit("experiments.what_a_row_is", "what_a_row_is"),
    Exhibit("experiments.grades.search", "graded_search"),
)
"""In the order in which they run: later ones read what earlier ones wrote."""


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    given = {name: getattr(options, name.replace("-", "_")) for name in INPUTS}
    if options.list:
        print("\n".join(f"python -m {exhibit.module}" for exhibit in EXHIBITS))
        return 0
    failed = []
    for exhibit in EXHIBITS:
        if options.only and exhibit.made not in options.only:
            continue
        found = command(exhibit, given, options.out, quick=options.quick)
        if isinstance(found, str):
            print(f"=== {exhibit.made}: left out, {found}")
        elif not options.again and is_done(exhibit, found, options.out):
            print(f"=== {exhibit.made}: done before")
        else:
            started = time.monotonic()
            print(f"=== {exhibit.made}: python {' '.join(found)}", flush=True)
            if subprocess.run([sys.executable, *found], check=False).returncode:
                failed.append(exhibit.made)
            print(f"=== {exhibit.made}: {time.monotonic() - started:.0f} s", flush=True)
    if failed:
        print(f"Failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m experiments",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    for name, described in INPUTS.items():
        parser.add_argument(f"--{name}", type=Path, help=described)
    parser.add_argument(
        "--only", nargs="+", choices=[exhibit.made for exhibit in EXHIBITS], help="some of them"
    )
    parser.add_argument("--quick", action="store_true", help="a small version of each")
    parser.add_argument("--again", action="store_true", help="also those that are done")
    parser.add_argument("--list", action="store_true", help="print the commands, and run none")
    parser.add_argument("--out", type=Path, default=OUT, help="the folder to write to")
    return parser.parse_args(arguments)


def command(
    exhibit: Exhibit, given: dict[str, Path | None], out: Path, *, quick: bool
) -> list[str] | str:
    """What python is to run, or why it cannot."""
    start, end = ["-m", exhibit.module], ["--out", str(out)]
    if quick:
        return (
            "it has no quick version" if exhibit.quick is None else [*start, *exhibit.quick, *end]
        )
    missing = [name for name in exhibit.reads if given[name] is None]
    if "top-five" in missing and (given["outputs"] or Path()).is_dir() and given["outputs"]:
        missing.remove("top-five")
    if missing:
        return "for want of " + " and ".join(f"--{name}" for name in missing)
    paths = [
        (name, given[name]) for name in (*exhibit.reads, *exhibit.takes) if given[name] is not None
    ]
    return [*start, *(part for name, path in paths for part in (f"--{name}", str(path))), *end]


def is_done(exhibit: Exhibit, arguments: list[str], out: Path) -> bool:
    """Whether the result is there, of a command with these options: inputs are known by their
    names, for their digests are checked when they are read."""
    path = out / f"{exhibit.made}.json"
    if not (path.exists() and path.with_suffix(".md").exists()):
        return False
    recorded: str = json.loads(path.read_text(encoding="utf-8")).get("command", "")
    asked = arguments[:-2]  # without --out
    return {part if part.startswith("-") else Path(part).name for part in asked} <= set(
        recorded.split()
    )


if __name__ == "__main__":
    sys.exit(main())
