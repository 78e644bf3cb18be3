"""`--clusters` and `--weights` on the command line."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from pacbound import load_certificate

Run = Callable[..., subprocess.CompletedProcess[str]]

ROWS = 900
RNG = np.random.default_rng(0)
COLUMNS = {
    "c": RNG.beta(6, 1, size=ROWS),
    "ok": (RNG.random(ROWS) < 0.8).astype(int),
    "fast": RNG.integers(0, 2, size=ROWS),
    "slow": RNG.integers(0, 2, size=ROWS),
    "y": RNG.integers(0, 2, size=ROWS),
    "patient": RNG.integers(0, 150, size=ROWS),
    "w": RNG.uniform(0, 3, size=ROWS),
}
# Labels have something to do with what the slow model predicts.
COLUMNS["y"] = np.where(np.arange(ROWS) % 5 == 0, COLUMNS["y"], COLUMNS["slow"])

VERBS = [
    ("calibrate", ("--confidence", "c", "--correct", "ok", "--delta", 0.05)),
    (
        "cascade",
        (
            *("--confidence", "c", "--prediction", "fast,slow", "--label", "y"),
            *("--xi", 0.9, "--delta", 0.05),
        ),
    ),
    ("shield", ("--score", "c", "--unsafe", "ok", "--xi", 0.95, "--delta", 0.05)),
]
BY_CLUSTERS = ("--clusters", "patient", "--cluster-bound", 40, "--seed", 3)
BY_WEIGHTS = ("--weights", "w", "--weight-bound", 3, "--seed", 3)


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    lines = [",".join(COLUMNS)]
    lines += [
        ",".join(map(repr, row))
        for row in zip(*(v.tolist() for v in COLUMNS.values()), strict=True)
    ]
    path = tmp_path / "rows.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize(("verb", "named"), VERBS)
def test_every_verb_takes_row_ids_alone_and_refuses_rows_that_a_merge_doubled(
    pacbound: Run, rows: Path, verb: str, named: tuple[object, ...]
) -> None:
    header, *lines = rows.read_text().splitlines()
    numbered = [f"{line},r{place}" for place, line in enumerate(lines)]
    (rows.parent / "once.csv").write_text("\n".join([f"{header},id", *numbered]) + "\n")
    (rows.parent / "twice.csv").write_text(
        "\n".join([f"{header},id", *numbered, *numbered[:2]]) + "\n"
    )
    pacbound(verb, "once.csv", *named, "--row-ids", "id", "-o", "c.json")
    pacbound(verb, rows, *named, "-o", "plain.json")
    one, other = (load_certificate(rows.parent / name) for name in ("c.json", "plain.json"))
    assert one.claim_digest == other.claim_digest
    assert "same counts" in pacbound("verify", "c.json", "--data", "once.csv").stdout
    refused = pacbound(verb, "twice.csv", *named, "--row-ids", "id", code=2)
    assert "2 times, first in rows" in refused.stderr
    assert "(2 such ids)" in refused.stderr


@pytest.mark.slow
@pytest.mark.parametrize(("verb", "named"), VERBS)
@pytest.mark.parametrize("draw", [BY_CLUSTERS, BY_WEIGHTS])
def test_every_verb_draws_and_its_certificate_says_so(
    pacbound: Run, rows: Path, verb: str, named: tuple[object, ...], draw: tuple[object, ...]
) -> None:
    done = pacbound(verb, rows, *named, *draw, "-o", "c.json")
    assert "Drawn: " in done.stdout
    warned = "Seed 3: pass seed=3 to draw the same rows again."
    assert warned in done.stdout
    assert warned in pacbound("show", "c.json").stdout
    pacbound("report", "c.json", "-o", "page.html")
    assert warned in (rows.parent / "page.html").read_text()
    certificate = load_certificate(rows.parent / "c.json")
    assert certificate.draw is not None
    assert certificate.draw.rows == ROWS
    by, columns = certificate.draw.by, certificate.provenance.columns
    assert columns.get(by, columns.get(by.removesuffix("s"))) == draw[1]
    pacbound("verify", "c.json")


def test_parts_that_share_a_patient_are_not_certified_together(pacbound: Run, rows: Path) -> None:
    head, *lines = rows.read_text().splitlines()
    for part, some in (("a", lines[:400]), ("b", lines[400:])):
        (rows.parent / f"{part}.csv").write_text("\n".join([head, *some]) + "\n")
        pacbound(
            "tally", "calibration", f"{part}.csv", "--confidence", "c", "--correct", "ok",
            "--clusters", "patient", "--seed", 7, "-o", f"{part}.json",
        )  # fmt: skip
    parts = ("a.json", "b.json")
    done = pacbound("certify", "calibration", *parts, "--delta", 0.05, "-o", "c.json", code=2)
    assert "clusters are in both tallies" in done.stderr
    assert not (rows.parent / "c.json").exists()


def test_typing_a_command_again_draws_the_same_rows(pacbound: Run, rows: Path) -> None:
    typed = (
        "calibrate", rows.name, "--confidence", "c", "--correct", "ok", "--delta", 0.1,
        "--clusters", "patient", "-o",
    )  # fmt: skip

    def seed_in(name: str) -> int | None:
        draw = load_certificate(rows.parent / name).draw
        return None if draw is None else draw.seed

    assert "was drawn for this call" in pacbound(*typed, "c.json").stdout
    first, seed = load_certificate(rows.parent / "c.json"), seed_in("c.json")
    assert "the data have the same counts" in pacbound("verify", "c.json", "--data", rows).stdout
    again = pacbound(*typed, "c.json")
    assert f"c.json is about the same rows: its seed {seed} draws them again" in again.stderr
    assert load_certificate(rows.parent / "c.json").claim() == first.claim()
    # A certificate somewhere else lends nothing, and neither does one of other rows.
    pacbound(*typed, "d.json")
    with rows.open("a") as file:
        file.write(rows.read_text().splitlines()[-1] + "\n")
    pacbound(*typed, "c.json")
    assert len({seed, seed_in("c.json"), seed_in("d.json")}) == 3


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (("--weights", "w"), "needs weight_bound"),
        (("--weights", "w", "--weight-bound", 2), "above weight_bound=2"),
        (("--clusters", "patient", "--cluster-bound", 2), "more than cluster_bound=2"),
        (("--clusters", "nobody"), "no column 'nobody'"),
        (("--seed", 4), "nothing says by what"),
    ],
)
def test_a_draw_that_cannot_be_ends_with_2(
    pacbound: Run, rows: Path, draw: tuple[object, ...], message: str
) -> None:
    named = ("--confidence", "c", "--correct", "ok", "--delta", 0.05)
    done = pacbound("calibrate", rows, *named, *draw, "-o", "c.json", code=2)
    assert message in done.stderr
    assert not (rows.parent / "c.json").exists()
