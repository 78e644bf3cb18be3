"""What a row is: claims that were false because of how a row was drawn or tossed for, or of what a
rule saw of it, before the repair and after it.

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
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from scipy.special import bdtrc

from experiments import stopping_rules
from experiments.record import RESULTS, p_text, provenance, publish, show_progress, table
from pacbound import (
    calibrate,
    certify_abstention,
    certify_cascade,
    certify_false_alarms,
    certify_precision,
    certify_recall,
    certify_replacement,
    certify_sets,
    certify_shield,
)
from pacbound.errors import InvalidValueError
from pacbound.monitor import Monitor

NAME: Final = "what_a_row_is"
DELTA: Final = 0.05
# The chance of a false alarm of a monitor of an abstention.
RINGS: Final = 0.01
# Of 1,500 patients: what is claimed, and what is true of a random MRI row of a random one.
CLAIMED, TRUE, PATIENTS = 0.15, 0.1505, 1500

Made = Callable[[np.random.Generator, int], bool]


@dataclass(frozen=True)
class Case:
    """A law and a false claim about it: `is_false` makes a sample from a generator, and a seed for
    what is drawn or tossed, and says whether the claim was made. `before` is how many of how many
    samples made it at the commit 7fd54567, or makes a sample as the sentences of then allowed it;
    `held` says that it kept its promise there, too.
    """

    what: str
    before: tuple[int, int] | Made
    is_false: Made
    runs: int = 400
    delta: float = DELTA
    held: bool = False


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


def _grades_lost(rng: np.random.Generator, _: int) -> bool:
    old = rng.uniform(0.3954, 1.0, size=300)
    quality = np.column_stack([old, old - 0.3954])
    return certify_replacement(quality=quality, xi=0.394, delta=DELTA).certified


def _quality_missed(rng: np.random.Generator, _: int) -> bool:
    scores = rng.random(300)
    made = calibrate(scores, quality=np.full(300, 0.612), n_bins=1, delta=DELTA)
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
    monitor = begun_by(rng, Monitor(made, delta=DELTA))
    rows = {"unsafe": np.tile([True, False], 4000), "clusters": np.repeat(np.arange(4000), 2)}
    return monitor.update(rows) is not None


def begun_by(rng: np.random.Generator, monitor: Monitor) -> Monitor:
    """The monitor, with a seed that a generator has drawn here."""
    begun = {**monitor.to_dict(), "seed": int(rng.integers(2**53))}
    monitor.go_on_from(resealed(begun), "the state")
    return monitor


def resealed(document: Mapping[str, Any]) -> dict[str, Any]:
    """A state with the digest of what it holds now."""
    from pacbound.documents import sealed  # noqa: PLC0415 - nobody else changes a state

    return sealed({key: value for key, value in document.items() if key != "digest"})


def clusters() -> list[Case]:
    """Clusters that span groups, or bins, which are groups too: claims that are false by a little
    of a random row of a random cluster in each of them.
    """
    few, own = partial(_mri_recall, cluster_bound=10), partial(_mri_recall, group_thresholds="own")
    sure, rings = partial(_answered_once, verb="precision"), partial(_picked_rings, picked=False)
    return [
        _case("recall in groups, common threshold", 250, _mri_recall),
        _case("recall in groups, own thresholds", 250, own),
        _case("recall in groups, cluster_bound=10", 7, few),
        _case("false alarms in groups", 250, _mri_false_alarms),
        _case("abstention in groups", 250, _mri_abstention),
        _case("precision in groups", 250, _mri_precision),
        _case("calibration, the interval of MRI", 250, _mri_calibration),
        _case("cascade, common thresholds", 250, _mri_cascade),
        _case("replacement in groups", 250, _mri_replacement),
        _case("sets in groups", 250, _mri_sets),
        _case("shield in groups", 250, _mri_shield),
        _case("calibration, the upper of two bins", 250, _upper_bin),
        _case("abstention, each patient once", 1, _answered_once),
        _case("precision, each patient once", 5, sure),
        _case("abstention, cluster_bound=10", 5, _answered),
        _case("a monitor of an abstention, fed all rows", 0, rings, RINGS),
        _case(
            "a monitor of an abstention, fed answered rows",
            250,
            _picked_rings,
            RINGS,
        ),
    ]


def _case(what: str, before: int, is_false: Any, delta: float = DELTA) -> Case:
    return Case(what, (before, 250), is_false, 250, delta, held=before < 250)


def scanners(rng: np.random.Generator, largest: int = 10) -> dict[str, Any]:
    """Half of the patients have one MRI row, which is never bad. The others have one, which is bad
    in twice the share that is true of all, and nine CT rows, none of them bad.
    """
    mixed = np.arange(PATIENTS) >= PATIENTS // 2
    sizes = np.where(mixed, largest, 1)
    mri = np.zeros(sizes.sum(), dtype=bool)
    mri[np.cumsum(sizes) - sizes] = True
    clusters = np.repeat(np.arange(PATIENTS), sizes)
    bad = mixed[clusters] & mri & (rng.random(len(mri)) < 2 * TRUE)
    return {
        "bad": bad,
        "clusters": clusters,
        "groups": np.where(mri, "MRI", "CT"),
    }


def _scanned(rng: np.random.Generator, seed: int) -> tuple[Any, dict[str, Any]]:
    rows = scanners(rng)
    return rows.pop("bad"), {**rows, "delta": DELTA, "seed": seed}


def _mri_recall(rng: np.random.Generator, seed: int, **more: Any) -> bool:
    bad, rows = _scanned(rng, seed)
    made = certify_recall(
        np.where(bad, 0.2, 0.8), np.ones(len(bad), bool), target=1 - CLAIMED, **rows, **more
    )
    return bool(made.thresholds["MRI"] > 0.2)


def _mri_false_alarms(rng: np.random.Generator, seed: int) -> bool:
    bad, rows = _scanned(rng, seed)
    made = certify_false_alarms(
        np.where(bad, 0.8, 0.2), np.zeros(len(bad), bool), xi=CLAIMED, **rows
    )
    return bool(made.thresholds["MRI"] <= 0.8)


def _mri_abstention(rng: np.random.Generator, seed: int) -> bool:
    bad, rows = _scanned(rng, seed)
    made = certify_abstention(rng.random(len(bad)), ~bad, xi=CLAIMED, **rows)
    return bool(made.thresholds["MRI"] < np.inf)


def _mri_precision(rng: np.random.Generator, seed: int) -> bool:
    bad, rows = _scanned(rng, seed)
    made = certify_precision(rng.random(len(bad)), ~bad, target=1 - CLAIMED, **rows)
    return bool(made.thresholds["MRI"] < np.inf)


def _mri_calibration(rng: np.random.Generator, seed: int) -> bool:
    bad, rows = _scanned(rng, seed)
    made = calibrate(np.full(len(bad), 0.8), ~bad, n_bins=1, **rows)
    low, high = made.lower[1, 0], made.upper[1, 0]
    return bool(not low <= 1 - TRUE <= high)


def _mri_cascade(rng: np.random.Generator, seed: int) -> bool:
    bad, rows = _scanned(rng, seed)
    answers = np.column_stack([np.where(bad, 2, 1), np.ones(len(bad), int)])
    # Labels of several classes, as they are in use.
    shift = np.arange(len(bad)) % 5
    made = certify_cascade(
        np.full(len(bad), 0.8), answers + 10 * shift[:, None], 1 + 10 * shift, xi=CLAIMED, **rows
    )
    return bool(made.certified and made.thresholds[0] <= 0.8)


def _mri_replacement(rng: np.random.Generator, seed: int) -> bool:
    bad, rows = _scanned(rng, seed)
    shift = np.arange(len(bad)) % 5
    old = 1 + 10 * shift
    made = certify_replacement(
        np.column_stack([old, np.where(bad, 2 + 10 * shift, old)]), old, xi=CLAIMED, **rows
    )
    return bool(made.certified)


def _mri_sets(rng: np.random.Generator, seed: int) -> bool:
    bad, rows = _scanned(rng, seed)
    label = rng.integers(0, 2, size=len(bad))
    right = np.where(bad, 0.2, 0.8)
    probability = np.column_stack([np.where(label == k, right, 1 - right) for k in range(2)])
    made = certify_sets(probability, label, xi=CLAIMED, **rows)
    return bool(made.thresholds["MRI"] > 0.2)


def _mri_shield(rng: np.random.Generator, seed: int) -> bool:
    bad, rows = _scanned(rng, seed)
    made = certify_shield(np.where(bad, 0.2, 0.1), bad, xi=CLAIMED, **rows)
    return bool(made.thresholds["MRI"] > 0.2)


# Half of the patients have one row, sure and right; the others one that is sure and wrong, and nine
# that are unsure and wrong.
SURE, UNSURE, ALONE, OTHERS = 0.9, 0.3, 400, 400


def sure_and_unsure(rng: np.random.Generator, first: int = 0) -> dict[str, Any]:
    """The rows of so many patients of each kind, in random numbers."""
    wrong = rng.random(ALONE + OTHERS) < OTHERS / (ALONE + OTHERS)
    sizes = np.where(wrong, 10, 1)
    begins = np.cumsum(sizes) - sizes
    confidence = np.full(sizes.sum(), UNSURE)
    confidence[begins] = rng.uniform(SURE, 1.0, size=len(sizes))
    return {
        "confidence": confidence,
        "correct": ~np.repeat(wrong, sizes),
        "clusters": first + np.repeat(np.arange(len(sizes)), sizes),
    }


def _upper_bin(rng: np.random.Generator, seed: int) -> bool:
    """Half of the sure rows are right, by row and by patient."""
    rows = sure_and_unsure(rng)
    made = calibrate(**rows, n_bins=2, delta=DELTA, seed=seed)
    low, high = made.interval(SURE)
    return bool(not low <= 0.5 <= high)


# Of a random row of a random patient that is sure: one of a patient alone, or one in ten.
WRONG_IF_COUNTED_ONCE = 0.5 * 0.1 / (0.5 + 0.5 * 0.1)


def _answered_once(rng: np.random.Generator, seed: int, verb: str = "abstention") -> bool:
    """Whether less than is true of answers is claimed, if each patient counts once, answered or
    not.
    """
    rows = sure_and_unsure(rng)
    columns = rows["confidence"], rows["correct"]
    drawn = {"clusters": rows["clusters"], "seed": seed, "delta": DELTA}
    rate = 0.99 * WRONG_IF_COUNTED_ONCE
    if verb == "abstention":
        return bool(certify_abstention(*columns, xi=rate, **drawn).threshold < np.inf)
    return bool(certify_precision(*columns, target=1 - rate, **drawn).threshold < np.inf)


def _answered(rng: np.random.Generator, seed: int) -> bool:
    """The same of the share of answers, where the largest cluster is declared."""
    rows = sure_and_unsure(rng)
    made = certify_abstention(**rows, xi=0.49, delta=DELTA, cluster_bound=10, seed=seed)
    return bool(made.threshold < np.inf)


def _picked_rings(rng: np.random.Generator, seed: int, *, picked: bool = True) -> bool:
    """Whether a monitor of "at most 20 % of answers", which holds if each patient counts once,
    rings on new patients; with `picked` it is fed answered rows alone, and is right to refuse them.
    """
    known = np.random.default_rng(7)
    made = certify_abstention(**sure_and_unsure(known), xi=0.2, delta=DELTA, seed=seed)
    monitor = begun_by(rng, Monitor(made, delta=RINGS))
    rows = sure_and_unsure(rng, first=10**6)
    kept = (rows["confidence"] >= SURE) | (not picked)
    try:
        rung = monitor.update({name: column[kept] for name, column in rows.items()})
    except InvalidValueError:
        return False
    return rung is not None


def rules() -> list[Case]:
    """What the sentences allowed of a rule that sees no label, and what they allow."""
    return [
        Case(what, before=_ruled(rule, old=True), is_false=_ruled(rule, old=False))
        for what, rule in {
            "replacement: rows until many are from easy countries": stopping_rules.replaced,
            "cascade: rows until many scores are high": stopping_rules.lost,
            "answers that differ: rows until many scores are high": stopping_rules.differ,
            "cascade: xi after answers were compared": stopping_rules.xi_chosen,
            "cascade: the group of 20 in which few differ": stopping_rules.group_chosen,
            "calibration: rows until many scores are high, or few": stopping_rules.calibrated,
            "calibration: edges among 18 by scores": stopping_rules.edges_chosen,
            "recall: positives until many are from easy countries": stopping_rules.recalled,
            "recall of groups that overlap: until many are in one": (
                stopping_rules.recalled_overlapping
            ),
            "sets: clusters until many are small": stopping_rules.in_sets,
            "judge: rows until a slice has many passes, or few": stopping_rules.judged,
            "shield: rollouts until few were lost": stopping_rules.shielded,
        }.items()
    ]


def _ruled(rule: Callable[..., bool], *, old: bool) -> Made:
    return lambda rng, _: rule(rng, old=old)


TABLES: Final[Mapping[str, Callable[[], list[Case]]]] = {
    "One seed for everybody, and one for each sample": seeds,
    "Clusters that span groups and bins": clusters,
    "What a rule may see, by the sentences as they stood and as they stand": rules,
}
"""The tables, by their titles: a function for each."""


def counted(title: str, number: int, runs: int | None) -> dict[str, Any]:
    """What a table comes to; `runs` are those of each case, if they are not its own."""
    rows = []
    for place, case in enumerate(TABLES[title]()):
        samples = case.runs if runs is None else runs
        of = partial(_wrong, samples=samples, key=(number, place), what=case.what)
        before = [of(case.before), samples] if callable(case.before) else list(case.before)
        wrong = of(case.is_false)
        rows.append(
            {
                "what": case.what,
                "delta": case.delta,
                "before": before,
                "after": [wrong, samples],
                "chance": chance(wrong, samples, case.delta),
            }
        )
    return {"title": title, "rows": rows}


def _wrong(made: Made, *, samples: int, key: tuple[int, int], what: str) -> int:
    """How many of so many samples made the claim."""
    wrong = 0
    for run in range(samples):
        rng = np.random.default_rng([*key, run])
        wrong += made(rng, int(rng.integers(2**53)))
        show_progress(run + 1, samples, what)
    return int(wrong)


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
