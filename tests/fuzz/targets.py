"""What is given damaged files, and the small valid files that are damaged.

A target reads one file. It may refuse it with a `PacboundError`; anything else that it raises is a
defect, and so is an answer that its check does not bear out.
"""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from tests.fuzz.mutations import damaged_bytes, damaged_document

from pacbound import Monitor, Tally, calibrate, certify_shield, load_certificate
from pacbound.claims.shield import ShieldCertificate
from pacbound.errors import PacboundError

FROZEN = Path(__file__).parents[1] / "certificate" / "frozen"

Damage = Callable[[bytes, Random], bytes]


@dataclass(frozen=True)
class Target:
    """A reader of files: what it is given, how that is damaged, and what it does with it."""

    seeds: Callable[[], list[bytes]]
    damage: Damage
    read: Callable[[Path, bytes], None]
    suffix: str

    def damaged(self, random: Random) -> tuple[bytes, bytes]:
        """A valid file, and the same with some damage."""
        seed = random.choice(self.seeds())
        return seed, self.damage(seed, random)

    def run(self, seed: bytes, data: bytes) -> bool:
        """Whether the file was taken; False if it was refused. Raises for a defect."""
        with TemporaryDirectory(prefix="pacbound-fuzz-") as folder:
            path = Path(folder) / f"file{self.suffix}"
            path.write_bytes(data)
            try:
                self.read(path, seed)
            except PacboundError:
                return False
            return True


# ---- documents


def read_certificate(path: Path, seed: bytes) -> None:
    certificate = load_certificate(path)
    verification = certificate.verify()
    certificate.summary()
    certificate.to_dict()
    if verification.ok and not _digests_fit_again(path.read_bytes(), seed):
        # Whoever changes a claim and leaves the digests alone is found out.
        assert json.loads(path.read_bytes()) == json.loads(seed), "a changed certificate verified"


def _digests_fit_again(data: bytes, seed: bytes) -> bool:
    """Whether the digests are others than those of the original: the forger's own."""
    now, then = json.loads(data), json.loads(seed)
    return any(now[name] != then[name] for name in then if name.endswith("_digest"))


def read_tally(path: Path, seed: bytes) -> None:
    tally = Tally.load(path)
    assert Tally.from_dict(tally.to_dict()) == tally
    assert repr(tally)


def read_state(path: Path, seed: bytes) -> None:
    monitor = Monitor.load(path, _watched())
    assert json.loads(json.dumps(monitor.to_dict())) == json.loads(path.read_bytes())
    assert monitor.summary()
    # Whatever it holds, it can go on.
    monitor.update([False] * 500 + [True] * 500)
    assert monitor.alarms


@cache
def _watched() -> ShieldCertificate:
    return certify_shield([0.1] * 500, [False] * 500, xi=0.02, delta=0.01)


@cache
def states() -> list[bytes]:
    made = [Monitor(_watched(), delta=1e-3, false_alarms=words) for words in ("ever", 1e4)]
    for monitor in made:
        monitor.update([False] * 220 + [True] * 3)
    return [json.dumps(monitor.to_dict(), indent=1, sort_keys=True).encode() for monitor in made]


@cache
def certificates() -> list[bytes]:
    return [path.read_bytes() for path in sorted(FROZEN.glob("*.json"))]


@cache
def tallies() -> list[bytes]:
    rng = np.random.default_rng(0)
    score, ok = rng.random(30), rng.random(30) < 0.7
    predictions = rng.integers(0, 3, (30, 2))
    made = [
        Tally.count("calibration", confidence=score, correct=ok, n_bins=5),
        Tally.count(
            "calibration",
            confidence=score,
            correct=ok,
            edges=[0.0, 0.3, 1.0],
            groups=["a", "b"] * 15,
        ),
        Tally.count("cascade", confidence=score, prediction=predictions, label=predictions[:, 0]),
        Tally.count("shield", score=score, unsafe=ok),
        Tally.count("recall", score=score, positive=ok, groups={"a": ok, "all": np.ones(30)}),
    ]
    return [json.dumps(tally.to_dict(), indent=1, sort_keys=True).encode() for tally in made]


# ---- tables


@cache
def columns() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    return {
        "c": rng.random(12).round(3),
        "ok": rng.random(12) < 0.7,
        "y": np.array(["cat", "dog", 'a "b", c'])[rng.integers(0, 3, 12)],
    }


@cache
def table(suffix: str) -> list[bytes]:
    """The same small table in one format, by the writers that the tests of reading use."""
    from tests.tally.table_writers import WRITERS

    write = {name.removeprefix("rows"): write for name, write in WRITERS.items()}[suffix]
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"rows{suffix}"
        write(columns(), path)
        return [path.read_bytes()]


def read_table(path: Path, seed: bytes, *, suffix: str) -> None:
    """Count it, with the engine and in the group of a text column, and apply a certificate."""
    refused = 0
    questions: list[dict[str, Any]] = [
        {"confidence": "c", "correct": "ok"},
        {"confidence": "c", "correct": "ok", "groups": "y"},
        {"confidence": "c", "prediction": "y", "label": "y"},
    ]
    for named in questions:
        try:
            tally = Tally.count("calibration", data=path, **named)
            assert tally.rows > 0
        except PacboundError:
            refused += 1
    certificate = calibrate([0.1, 0.5, 0.9] * 50, [0, 1, 1] * 50, delta=0.05, n_bins=4)
    target = path.with_name(f"out{suffix}")
    try:
        certificate.apply_to_file(path, target, confidence="c")
    except PacboundError:
        refused += 1
        assert not target.exists(), "a refused file left half a result"
    if refused == 4:
        raise PacboundError("refused each time")


def damaged_inside(data: bytes, random: Random) -> bytes:
    """A compressed file that is sound, with damage in what it holds."""
    return gzip.compress(damaged_bytes(gzip.decompress(data), random), mtime=0)


def damaged_arrays(data: bytes, random: Random) -> bytes:
    """An archive of arrays that is sound, with damage in one of them."""
    import zipfile

    written = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(written, "w") as new:
        chosen = random.choice(old.namelist())
        for name in old.namelist():
            member = old.read(name)
            new.writestr(name, damaged_bytes(member, random) if name == chosen else member)
    return written.getvalue()


def of_table(suffix: str, damage: Damage = damaged_bytes) -> Target:
    return Target(partial(table, suffix), damage, partial(read_table, suffix=suffix), suffix)


TARGETS: dict[str, Target] = {
    "certificate bytes": Target(certificates, damaged_bytes, read_certificate, ".json"),
    "certificate values": Target(certificates, damaged_document, read_certificate, ".json"),
    "state bytes": Target(states, damaged_bytes, read_state, ".json"),
    "state values": Target(states, damaged_document, read_state, ".json"),
    "tally bytes": Target(tallies, damaged_bytes, read_tally, ".json"),
    "tally values": Target(tallies, damaged_document, read_tally, ".json"),
    **{
        f"table {suffix}": of_table(suffix)
        for suffix in (
            ".csv", ".tsv", ".csv.gz", ".jsonl", ".json",
            ".parquet", ".feather", ".arrow", ".npz", ".npy",
        )
    },
    "table .csv.gz inside": of_table(".csv.gz", damaged_inside),
    "table .npz inside": of_table(".npz", damaged_arrays),
}  # fmt: skip
