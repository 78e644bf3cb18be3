"""Damaged files for as long as one likes: `python -m tests.fuzz --seconds 3600`.

Every defect is written to fuzz-failures/, the file that causes it beside what it caused, and makes
the exit code 1. The seed that is printed repeats a run.
"""

from __future__ import annotations

import argparse
import hashlib
import secrets
import sys
import time
from collections import Counter
from pathlib import Path
from random import Random

from tests.fuzz.judge import Judge, case
from tests.fuzz.targets import TARGETS


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(2**32))
    parser.add_argument("--target", action="append", choices=[*TARGETS])
    parser.add_argument("--failures", type=Path, default=Path("fuzz-failures"))
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    random, judge, seen = Random(options.seed), Judge(), Counter[str]()
    end, targets = time.monotonic() + options.seconds, options.target or [*TARGETS]
    while time.monotonic() < end:
        target = targets[seen.total() % len(targets)]
        seed, data = case(target, random)
        verdict = judge.verdict(target, seed, data)
        found = verdict not in ("taken", "refused")
        seen["defects" if found else verdict] += 1
        if found:
            _keep(options.failures, target, data, verdict)
    judge.close()
    print(", ".join(f"{count:,} {what}" for what, count in seen.most_common()))
    return 1 if seen["defects"] else 0


def _keep(folder: Path, target: str, data: bytes, verdict: str) -> None:
    """Defects of one kind share a folder: the last line of what was raised, or how it ended."""
    last = verdict.strip().splitlines()[-1]
    kind = "".join(letter if letter.isalnum() else "-" for letter in f"{target} {last}")[:80]
    place = folder / kind
    place.mkdir(parents=True, exist_ok=True)
    name = hashlib.sha256(data).hexdigest()[:12]
    (place / f"{name}{TARGETS[target].suffix}").write_bytes(data)
    (place / f"{name}.txt").write_text(verdict, encoding="utf-8")
    print(f"{target}: {last}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
