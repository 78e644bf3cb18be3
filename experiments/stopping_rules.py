"""Rules that fix the number of rows, bins, groups or `xi` by what they see of the rows: what the
sentences of certificates allowed once, and what they allow.

Each function makes a sample of a law of which the claim is just false, does with `old` what seeing
no label allowed, else what the sentence of the claim allows now, and says whether the claim is
made. The old rules wait until rows that are seldom wrong are over-represented.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr

from pacbound import (
    binomial_upper,
    calibrate,
    certify_cascade,
    certify_judge,
    certify_recall,
    certify_replacement,
    certify_sets,
    certify_shield,
)

Array = NDArray[Any]
Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]

DELTA: Final = 0.05
# What a claim allows, and what is true where it is just false.
ALLOWED, TRUE_RATE = 0.4, 0.4005
# Half of the rows are easy, and are events by so much less often than all; half are hard.
SPREAD = 0.38
MOST = 400


def _rates(easy: Flags) -> Floats:
    """How often rows are events."""
    return np.where(easy, TRUE_RATE - SPREAD, TRUE_RATE + SPREAD)


def _best(rates: Floats, least: int = 60) -> int:
    """The number of rows at which so few events are expected, for the noise of their number, that
    the claim is most likely made.
    """
    expected, variance = np.cumsum(rates), np.cumsum(rates * (1 - rates))
    few = (ALLOWED * np.arange(1, len(rates) + 1) - expected) / np.sqrt(variance)
    return least + int(few[least - 1 :].argmax())


def _number(rng: np.random.Generator, rates: Floats, *, old: bool, least: int = 60) -> int:
    """How many rows there are: by what the rule sees of them, or by nothing."""
    return _best(rates, least) if old else int(rng.integers(least, len(rates) + 1))


def _easy_and_events(rng: np.random.Generator, rows: int = MOST) -> tuple[Flags, Flags]:
    easy = rng.random(rows) < 0.5
    return easy, rng.random(rows) < _rates(easy)


def _answers(lost: Flags) -> tuple[Array, Array]:
    """Answers of a right model and of one that loses these rows, and labels of three classes."""
    label = np.arange(len(lost)) % 3
    return np.column_stack([label, np.where(lost, (label + 1) % 3, label)]), label


def replaced(rng: np.random.Generator, *, old: bool) -> bool:
    easy, lost = _easy_and_events(rng)
    n = _number(rng, _rates(easy), old=old)
    answers, label = _answers(lost[:n])
    return certify_replacement(answers, label, xi=ALLOWED, delta=DELTA).certified


def lost(rng: np.random.Generator, *, old: bool, claim: Literal["loss", "differ"] = "loss") -> bool:
    easy, lost = _easy_and_events(rng)
    n = _number(rng, _rates(easy), old=old)
    answers, label = _answers(lost[:n])
    made = certify_cascade(
        np.where(easy[:n], 0.9, 0.6),
        answers[:, ::-1],
        label if claim == "loss" else None,
        xi=ALLOWED,
        delta=DELTA,
        claim=claim,
    )
    return bool(made.thresholds[0] <= 0.6)


def differ(rng: np.random.Generator, *, old: bool) -> bool:
    return lost(rng, old=old, claim="differ")


# What is lost up to each of seven steps.
LOST: Final = 0.015 * 1.6 ** np.arange(7)


def xi_chosen(rng: np.random.Generator, *, old: bool) -> bool:
    """Seven steps; at each another xi is just false, and nine of ten rows that differ are lost."""
    rows, steps = 800, len(LOST)
    step = rng.integers(0, steps, size=rows)
    differs = rng.random(rows) < (np.diff(LOST, prepend=0) * steps / 0.9)[step]
    lost = differs & (rng.random(rows) < 0.9)
    seen = np.array([np.mean(differs & (step <= place)) for place in range(steps)])
    chosen = int(((seen - LOST / 0.9) / np.sqrt(LOST)).argmin()) if old else rng.integers(steps)
    answers, label = _differing(differs, lost)
    xi = float(LOST[chosen] - 5e-4)
    made = certify_cascade(0.95 - step / 20, answers, label, xi=xi, delta=DELTA)
    return bool(made.thresholds[0] <= 0.95 - chosen / 20)


def _differing(differs: Flags, lost: Flags) -> tuple[Array, Array]:
    """Answers of a fast and a slow model, and labels: where nothing is lost both are wrong."""
    label = np.arange(len(lost)) % 3
    fast = np.where(differs, (label + 1) % 3, label)
    return np.column_stack([fast, np.where(differs & ~lost, (label + 2) % 3, label)]), label


def group_chosen(rng: np.random.Generator, *, old: bool) -> bool:
    """Half of the rows are in each of 20 groups, and four of five that differ are lost."""
    rows = 400
    groups, differs = rng.random((20, rows)) < 0.5, rng.random(rows) < TRUE_RATE / 0.8
    lost = differs & (rng.random(rows) < 0.8)
    share = (groups & differs).sum(axis=1) / groups.sum(axis=1)
    member = groups[share.argmin() if old else 0]
    answers, label = _differing(differs, lost)
    made = certify_cascade(
        np.full(rows, 0.9),
        answers,
        label,
        groups=np.where(member, "picked", "others"),
        group_thresholds="own",
        xi=ALLOWED,
        delta=2 * DELTA,
    )
    return bool(made.thresholds["picked"][0] <= 0.9)


def calibrated(rng: np.random.Generator, *, old: bool) -> bool:
    """Whoever sees scores waits until right ones are over-represented, or wrong ones are."""
    easy, wrong = _easy_and_events(rng)
    off = np.abs(np.cumsum(_rates(easy) - TRUE_RATE))[59:] / np.sqrt(np.arange(60, MOST + 1))
    n = 60 + int(off.argmax()) if old else int(rng.integers(60, MOST + 1))
    score = np.where(easy[:n], 0.9, 0.6)
    low, high = calibrate(score, ~wrong[:n], n_bins=1, delta=DELTA).interval(0.9)
    return not low <= 1 - TRUE_RATE <= high


def edges_chosen(rng: np.random.Generator, *, old: bool) -> bool:
    """Every second of 20 scores is nearly always wrong; where the second bin begins is chosen."""
    rates = np.where(np.arange(20) % 2, 0.97, 0.03)
    score = rng.integers(0, 20, size=200)
    wrong = rng.random(200) < rates[score]
    counts = np.bincount(score, minlength=20)
    off = [max(_off(counts[:cut], rates[:cut]), _off(counts[cut:], rates[cut:])) for cut in CUTS]
    cut = CUTS[int(np.argmax(off))] if old else 10
    made = calibrate((score + 0.5) / 20, ~wrong, edges=[0, cut / 20, 1], delta=DELTA)
    truths = 1 - np.array([rates[:cut].mean(), rates[cut:].mean()])
    return not ((made.bins.lower <= truths) & (truths <= made.bins.upper)).all()


CUTS: Final = range(1, 19)


def _off(counts: Array, rates: Floats) -> float:
    """How far the rate of a bin is from its truth, as far as its scores tell."""
    rows = counts.sum()
    return float(abs(counts @ rates / rows - rates.mean()) * np.sqrt(rows))


def recalled(
    rng: np.random.Generator,
    *,
    old: bool,
    overlapping: bool = False,
) -> bool:
    """Half of the rows are positive; whoever may see no more stops at a number of positives."""
    easy, missed = _easy_and_events(rng)
    positive = rng.random(MOST) < 0.7
    rates = _rates(easy)[positive]
    stop = _best(rates, 60) if old else _sharpest(60, len(rates))
    n = 1 + int(np.flatnonzero(positive)[stop - 1])
    groups = {"all": np.ones(n, bool), "old": easy[:n]} if overlapping else None
    made = certify_recall(
        np.where(missed, 0.2, 0.8)[:n],
        positive[:n],
        target=1 - ALLOWED,
        delta=(1 + overlapping) * DELTA,
        groups=groups,
        group_thresholds="own" if overlapping else "common",
    )
    return bool((made.thresholds["all"] if overlapping else made.threshold) > 0.2)


def recalled_overlapping(rng: np.random.Generator, *, old: bool) -> bool:
    return recalled(rng, old=old, overlapping=True)


@cache
def _sharpest(least: int, most: int) -> int:
    """The number of trials whose test is most often passed where the claim is just false."""
    trials = np.arange(least, most + 1)
    passes = [binomial_upper(np.arange(n + 1), int(n), delta=DELTA) <= ALLOWED for n in trials]
    allowed = [int(one.sum()) - 1 for one in passes]
    return int(trials[np.argmax(bdtr(allowed, trials, TRUE_RATE))])


def in_sets(rng: np.random.Generator, *, old: bool) -> bool:
    """Clusters of one row, or of five; all sets of one miss the label, or none does."""
    easy, missed = _easy_and_events(rng)
    n = _number(rng, _rates(easy), old=old)
    sizes = np.where(easy[:n], 1, 5)
    likely = np.repeat(np.where(missed[:n], 0.2, 0.8), sizes)
    label = np.arange(len(likely)) % 2
    made = certify_sets(
        np.column_stack([np.where(label == one, likely, 1 - likely) for one in (0, 1)]),
        label,
        xi=ALLOWED,
        delta=DELTA,
        clusters=np.repeat(np.arange(n), sizes),
        seed=int(rng.integers(2**53)),
    )
    return bool(made.threshold > 0.2)


def judged(rng: np.random.Generator, *, old: bool) -> bool:
    """Passes are nearly always right, fails often wrong, in both slices."""
    most = 3000
    passes, wrong = _easy_and_events(rng, most)
    slices = np.arange(most) % 2
    parts = [np.cumsum(np.where(slices == one, _rates(passes) - TRUE_RATE, 0)) for one in (0, 1)]
    off = np.abs(parts).max(axis=0)[99:] / np.sqrt(np.arange(100, most + 1))
    n = 100 + int(off.argmax()) if old else int(rng.integers(100, most + 1))
    verdict = np.where(passes, "pass", "fail")[:n]
    label = np.where(passes ^ wrong, "pass", "fail")[:n]
    made: Any = certify_judge(verdict, label, groups=slices[:n], delta=DELTA)["slices"]
    return not all(one.lower[0] <= 1 - TRUE_RATE <= one.upper[0] for one in made.tables.values())


def shielded(rng: np.random.Generator, *, old: bool) -> bool:
    """Three of four unsafe rollouts were lost."""
    lost = rng.random(MOST) < 0.3
    others = (TRUE_RATE - 0.3) / 0.7
    unsafe = lost | (rng.random(MOST) < others)
    few = (ALLOWED * np.arange(1, MOST + 1) - np.cumsum(np.where(lost, 1, others)))[59:]
    best = 60 + int(np.argmax(few / np.sqrt(np.arange(60, MOST + 1))))
    n = best if old else int(rng.integers(60, MOST + 1))
    danger = np.where(lost, -np.inf, np.where(unsafe, 0.2, 0.8))[:n]
    return bool(certify_shield(danger, unsafe[:n], xi=ALLOWED, delta=DELTA).threshold > 0.2)
