"""A small table, what was made from it, and a run of every command on them, with its exit code."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from pacbound import Monitor, Tally, calibrate, certify_cascade, certify_recall, certify_shield

ROWS = "rows.csv"
JUDGED = ("--confidence", "c", "--correct", "ok")
MODELS = ("--confidence", "c1", "--prediction", "small,large")
FLAGS = ("--score", "s", "--positive", "u")


def roles(**named: str) -> tuple[str, ...]:
    """Columns by their roles, as they are typed."""
    return tuple(part for role, name in named.items() for part in ("--column", f"{role}={name}"))


COMMANDS: dict[str, tuple[tuple[str, ...], int]] = {
    "calibrate": (("calibrate", ROWS, *JUDGED, "--delta", "0.1"), 0),
    "abstain": (("abstain", ROWS, *JUDGED, "--xi", "0.0001", "--delta", "0.01"), 3),
    "cascade": (("cascade", ROWS, *MODELS, "--label", "y", "--xi", "0.2", "--delta", "0.1"), 0),
    "recall": (("recall", ROWS, *FLAGS, "--target", "0.9999", "--delta", "0.01"), 3),
    "precision": (("precision", ROWS, *FLAGS, "--target", "0.9999", "--delta", "0.01"), 3),
    "false-alarms": (("false-alarms", ROWS, *FLAGS, "--xi", "0.3", "--delta", "0.1"), 0),
    "shield": (
        ("shield", ROWS, "--score", "s", "--unsafe", "u", "--xi", "0.0001", "--delta", "0.01"),
        3,
    ),
    "rate": (("rate", ROWS, "--passed", "ok", "--target", "0.5", "--delta", "0.1"), 0),
    "forks": (
        (
            *("forks", ROWS, "--rollout", "i", "--lowest", "low", "--highest", "high"),
            *("--unsafe", "u", "--xi", "0.5", "--delta", "0.1"),
        ),
        0,
    ),
    "sets": (
        (
            *("sets", ROWS, "--probability", "c,s", "--label", "wrong", "--xi", "0.001"),
            *("--delta", "0.05"),
        ),
        3,
    ),
    "compare": (
        (
            *("compare", ROWS, "--prediction", "small,large", "--label", "y", "--xi", "0.05"),
            *("--delta", "0.05"),
        ),
        0,
    ),
    "judge": (
        (
            *("judge", ROWS, "--verdict", "small", "--label", "y", "--confidence", "c"),
            *("--xi", "0.0001", "--delta", "0.1"),
        ),
        3,
    ),
    "design": (
        (
            *("design", ROWS, "--confidence", "c1,c", "--prediction", "small,large"),
            *("--label", "y", "--costs", "1,9", "--xi", "0.2", "--delta", "0.1"),
        ),
        0,
    ),
    "batch": (
        (
            *("batch", ROWS, "--confidence", "c1", "--prediction", "small", "--xi", "0.2"),
            *("--delta", "0.1", "--ask", "ask.csv", "--answers", "night.jsonl"),
        ),
        0,
    ),
    "certify calibration": (("certify", "calibration", "tally.json", "--delta", "0.1"), 0),
    "together": (("together", "calibration.json", "shield.json"), 3),
    "verify": (("verify", "forged.json", "calibration.json"), 1),
    "show": (("show", "calibration.json"), 0),
    "report": (("report", "shield.json", "-o", "page.html"), 3),
    "monitor": (
        (
            *("monitor", "calibration.json", ROWS, *roles(confidence="c", correct="wrong")),
            *("--delta", "0.01"),
        ),
        1,
    ),
    "apply": (
        ("apply", "calibration.json", ROWS, "--column", "confidence=c", "-o", "applied.csv"),
        0,
    ),
    "tally calibration": (("tally", "calibration", ROWS, *JUDGED, "-o", "new.tally.json"), 0),
    "plan rate": (
        ("plan", "rate", "--target", "0.02", "--expected", "0.01", "--delta", "0.01"),
        0,
    ),
    "plan looks": (("plan", "looks", "--looks", "500", "--xi", "0.02", "--delta", "0.01"), 0),
    "plan pilot": (
        (
            *("plan", "pilot", ROWS, *roles(confidence="c", correct="ok")),
            *("--delta", "0.1", "--goal", "0.0001", "--sizes", "300", "--draws", "10"),
        ),
        3,
    ),
    "cost": (("cost", "cascade.json", ROWS, "--confidence", "c1", "--delta", "0.01"), 0),
}
"""Each command with what it ends with if nothing is in its way. Verdicts of all kinds are there."""


def write_folder(folder: Path) -> None:
    """Write the table, and what the commands above take beside it."""
    rng = np.random.default_rng(0)
    n = 400
    confidence = rng.beta(5, 1, size=n)
    right = rng.random(n) < confidence
    label = rng.integers(0, 3, size=n)
    large = np.where(rng.random(n) < 0.95, label, (label + 1) % 3)
    small = np.where(right, label, (label + 2) % 3)
    unsafe = rng.random(n) < 0.3
    score = np.where(unsafe, rng.beta(6, 2, size=n), rng.beta(2, 6, size=n))
    lines = ["c,ok,wrong,c1,small,large,y,s,u,g,i,low,high"]
    for i, (sure, danger) in enumerate(zip(confidence.tolist(), score.tolist(), strict=True)):
        lines.append(
            f"{sure!r},{int(right[i])},{int(not right[i])},{sure!r},{small[i]},{large[i]},"
            f"{label[i]},{danger!r},{int(unsafe[i])},{0.25 if i < n // 2 else 0.5},{i},0,65537"
        )
    (folder / ROWS).write_text("\n".join(lines) + "\n")
    made = calibrate(confidence, right, delta=0.1)
    made.save(folder / "calibration.json")
    certify_shield(score, unsafe, xi=0.0001, delta=0.01).save(folder / "shield.json")
    certify_recall(score, unsafe, target=0.5, delta=0.01).save(folder / "recall.json")
    forged = json.loads((folder / "calibration.json").read_text())
    forged["claim"]["delta"] = 0.01
    (folder / "forged.json").write_text(json.dumps(forged))
    Tally.count("calibration", confidence=confidence, correct=right).save(folder / "tally.json")
    answers = np.column_stack([small, large])
    cascade = certify_cascade(confidence, answers, label, xi=0.2, delta=0.1, costs=[1, 9])
    cascade.save(folder / "cascade.json")
    Monitor(made, delta=0.01).save(folder / "monitor.json")
