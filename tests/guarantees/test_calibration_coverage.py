"""All calibration intervals hold together with probability at least 1 - delta: by enumeration, and
by simulation.

The true confidence of a bin is computed from the law with a tie rule of its own, written here from
the words of the guarantee, so that a row counted into the wrong bin shows as a violation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from numpy.polynomial import Polynomial
from numpy.typing import NDArray
from scipy.special import gammaln
from tests.products import standing_for

from pacbound import PACCalibrator, calibrate
from pacbound.calibration.calibrator import CalibratorScope
from pacbound.claims.calibration_certificate import CalibrationCertificate
from pacbound.procedures.calibration import Correction, Side, cell_intervals
from pacbound.stats.binomial import binomial_lower
from pacbound.tally.grids import AtomBins

Floats = NDArray[np.float64]
Judge = Callable[[int, int, float], None]

CORRECTIONS: tuple[Correction, ...] = ("sidak", "bonferroni")
SIDES: tuple[Side, ...] = ("both", "lower", "upper")
OPTIONS = list(product(CORRECTIONS, SIDES))
ACCURACIES = (0.001, 0.03, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.97, 0.999)


# ---- the law of a small sample space, summed over


def splits(n: int, parts: int) -> NDArray[np.int64]:
    """Every way to put n rows into so many categories."""
    bars = np.array(list(combinations(range(n + parts - 1), parts - 1)), dtype=np.int64).reshape(
        -1, parts - 1
    )
    padded = np.column_stack([np.full(len(bars), -1), bars, np.full(len(bars), n + parts - 1)])
    return np.diff(padded, axis=1) - 1


def weights(counts: NDArray[np.int64], probabilities: Floats) -> Floats:
    """The multinomial probability of each line of counts, one column per law; probabilities are
    (laws, categories)."""
    n = counts[0].sum()
    coefficient = gammaln(n + 1) - gammaln(counts + 1).sum(axis=1)
    return np.asarray(np.exp(coefficient[:, None] + counts @ np.log(probabilities).T))


def with_outcomes(mass: Floats, accuracy: Floats) -> Floats:
    """(laws, types) of masses and accuracies as (laws, 2 * types): each type wrong, then right."""
    joint = np.stack([mass * (1 - accuracy), mass * accuracy], axis=-1)
    return joint.reshape(len(mass), -1)


def small_laws(types: int) -> tuple[Floats, Floats]:
    """Masses and accuracies of many laws over a few types of rows, rare types and extreme
    accuracies among them."""
    masses = {
        1: [[1.0]],
        2: [[0.5, 0.5], [0.9, 0.1], [0.02, 0.98]],
        3: [[1 / 3, 1 / 3, 1 / 3], [0.8, 0.15, 0.05], [0.1, 0.1, 0.8]],
    }[types]
    pairs = list(product(masses, product(ACCURACIES, repeat=types)))
    return np.array([mass for mass, _ in pairs]), np.array([accuracy for _, accuracy in pairs])


@pytest.mark.parametrize("cells", standing_for([1, 2, 3], [1, 2], rest="long"))
@pytest.mark.parametrize(("correction", "side"), OPTIONS)
def test_some_cell_is_missed_with_probability_at_most_delta_in_every_small_sample_space(
    cells: int, correction: Correction, side: Side
) -> None:
    delta, (mass, accuracy) = 0.2, small_laws(cells)
    largest = 0.0
    for n in (1, 2, 3, 5, 8):
        counts = splits(n, 2 * cells)
        trials, right = counts[:, ::2] + counts[:, 1::2], counts[:, 1::2]
        bounds = [
            cell_intervals(
                m[None], k[None], delta=delta, correction=correction, side=side, overlapping=False
            )
            for m, k in zip(trials, right, strict=True)
        ]
        lower, upper = (np.concatenate(ends)[:, None, :] for ends in zip(*bounds, strict=True))
        missed = ((accuracy < lower) | (accuracy > upper)).any(axis=2)
        chance = (missed * weights(counts, with_outcomes(mass, accuracy))).sum(axis=0)
        assert chance.max() <= delta * (1 + 1e-9)
        largest = max(largest, float(chance.max()))
    # For so few rows only one end of a two-sided interval can miss at a time, and that with delta /
    # 2.
    assert largest > (0.2 if side == "both" else 0.4) * delta, "these laws hardly test the bound"


def test_without_a_correction_the_same_sample_space_misses_more_often_than_delta() -> None:
    delta, cells, (mass, accuracy) = 0.2, 3, small_laws(3)
    counts = splits(8, 2 * cells)
    trials, right = counts[:, ::2] + counts[:, 1::2], counts[:, 1::2]
    lower = binomial_lower(right, trials, delta=delta)[:, None, :]
    missed = (accuracy < lower).any(axis=2)
    chance = (missed * weights(counts, with_outcomes(mass, accuracy))).sum(axis=0)
    assert chance.max() > 1.2 * delta


# ---- laws over finitely many types of rows, counted through the public functions


@dataclass(frozen=True)
class Types:
    """What each type of row is to each table: its score there, and whether the table holds it. Both
    (tables, types)."""

    score: Floats
    member: NDArray[np.bool_]

    def inside(self, certificate: CalibrationCertificate) -> NDArray[np.bool_]:
        """(tables, cells, types): which types a cell speaks of, by the rule as the documentation
        words it."""
        grid, score = certificate.grid, self.score[:, None, :]
        if isinstance(grid, AtomBins):
            edges = np.array([-np.inf, *grid.limits, np.inf])
            cells = [(edges[i] < score) & (score < edges[i + 1]) for i in range(len(edges) - 1)]
            atoms = [score == edge for edge in grid.limits]
            held = np.concatenate(
                [cell for pair in zip(cells, [*atoms, cells[0]], strict=True) for cell in pair][
                    :-1
                ],
                axis=1,
            )
        else:
            begin, end = (bound[None, :, None] for bound in (grid.edges[:-1], grid.edges[1:]))
            held = (begin < score) & (score <= end)
            held[:, 0] |= score[:, 0] == 0
        result: NDArray[np.bool_] = held & self.member[:, None, :]
        return result

    def missed(
        self, certificate: CalibrationCertificate, mass: Floats, accuracy: Floats
    ) -> NDArray[np.bool_]:
        """Whether any cell's true confidence is outside its interval, for each law; accuracy is
        (laws, tables, types)."""
        inside = self.inside(certificate)
        assert (inside.sum(axis=1) == self.member).all(), "a score has no bin, or two"
        here = np.einsum("kct,lt->lkc", inside, mass)
        right = np.einsum("kct,lt,lkt->lkc", inside, mass, accuracy)
        truth = right / np.where(here > 0, here, np.nan)
        outside = (truth < certificate.lower) | (truth > certificate.upper)
        result: NDArray[np.bool_] = outside.any(axis=(1, 2))
        return result


def chances_of_a_miss(
    certify: Callable[[NDArray[np.int64]], CalibrationCertificate],
    n: int,
    types: Types,
    mass: Floats,
    accuracy: Floats,
    categories: Floats,
) -> Floats:
    """Sum over every sample of n rows; `certify` gets how many rows each category has."""
    counts = splits(n, categories.shape[1])
    missed = np.stack([types.missed(certify(line), mass, accuracy) for line in counts])
    return np.asarray((missed * weights(counts, categories)).sum(axis=0))


def one_table(score: Floats) -> Types:
    return Types(score[None], np.ones((1, len(score)), dtype=bool))


def rows(values: Any, counts: NDArray[np.int64]) -> tuple[Any, NDArray[np.bool_]]:
    """Rows of each type, wrong and right, as often as the counts say."""
    doubled = np.repeat(np.asarray(values), 2, axis=0)
    return np.repeat(doubled, counts, axis=0), np.repeat(
        np.tile([False, True], len(values)), counts
    )


@pytest.mark.parametrize("n_bins", standing_for([1, 2, 3, 7], [2], rest="long"))
@pytest.mark.parametrize(
    "score", [(0.2, 0.5, 0.9), (0.0, 0.5, 1.0), (0.5, np.nextafter(0.5, 1), 1.0)]
)
@pytest.mark.filterwarnings("ignore:confidence and correct are equal")
def test_quantiles_of_the_same_scores_as_edges_miss_with_probability_at_most_delta(
    score: tuple[float, ...], n_bins: int
) -> None:
    delta, (mass, accuracy) = 0.2, small_laws(3)
    largest = 0.0
    for n in (1, 2, 5):
        chance = chances_of_a_miss(
            lambda counts: calibrate(
                *rows(score, counts), delta=delta, n_bins=n_bins, edges="equal-mass"
            ),
            n,
            one_table(np.array(score)),
            mass,
            accuracy[:, None],
            with_outcomes(mass, accuracy),
        )
        assert chance.max() <= delta * (1 + 1e-9)
        largest = max(largest, float(chance.max()))
    assert largest > 0.3 * delta


MEMBERS = {
    "a shared type": np.array([[True, True, False], [False, True, True]]),
    "disjoint after all": np.eye(3, dtype=bool),
    "one within the other": np.array([[True, True, True], [True, False, False]]),
}


@pytest.mark.parametrize("name", standing_for(MEMBERS, ["a shared type"], rest="long"))
@pytest.mark.parametrize(
    ("correction", "side"), [("sidak", "both"), ("sidak", "lower"), ("bonferroni", "upper")]
)
def test_overlapping_groups_miss_with_probability_at_most_delta_in_a_small_sample_space(
    name: str, correction: Correction, side: Side
) -> None:
    delta, member, (mass, accuracy) = 0.2, MEMBERS[name], small_laws(3)
    types = Types(np.full(member.shape, 0.6), member)

    def certify(counts: NDArray[np.int64]) -> CalibrationCertificate:
        kind, correct = rows(np.arange(3), counts)
        groups = {str(place): inside[kind] for place, inside in enumerate(member)}
        return calibrate(
            types.score[0, kind],
            correct,
            delta=delta,
            n_bins=1,
            groups=groups,
            correction=correction,
            side=side,
        )

    accuracies = np.repeat(accuracy[:, None], len(member), axis=1)
    chance = chances_of_a_miss(certify, 6, types, mass, accuracies, with_outcomes(mass, accuracy))
    assert 0.15 * delta < chance.max() <= delta * (1 + 1e-9)


@pytest.mark.parametrize("scope", ["top", "per-class", "all-labels"])
def test_every_scope_misses_with_probability_at_most_delta_in_a_small_sample_space(
    scope: CalibratorScope,
) -> None:
    delta, (mass, first) = 0.2, small_laws(2)
    table = np.array([[0.75, 0.25], [0.5, 0.5]])  # class 0 wins the tie
    kinds = {
        "top": one_table(table.max(axis=1)),
        "per-class": Types(
            np.tile(table.max(axis=1), (2, 1)), np.array([[True, True], [False, False]])
        ),
        "all-labels": Types(table.T, np.ones((2, 2), dtype=bool)),
    }
    accuracy = {
        "top": first[:, None],
        "per-class": np.repeat(first[:, None], 2, axis=1),
        "all-labels": np.stack([first, 1 - first], axis=1),
    }

    def certify(counts: NDArray[np.int64]) -> CalibrationCertificate:
        probabilities, is_first = rows(table, counts)
        return (
            PACCalibrator(4, delta, scope).fit(probabilities, np.where(is_first, 0, 1)).certificate_
        )

    for n in (1, 4, 7):
        chance = chances_of_a_miss(
            certify, n, kinds[scope], mass, accuracy[scope], with_outcomes(mass, first)
        )
        assert chance.max() <= delta * (1 + 1e-9)
    assert chance.max() > 0.2 * delta


# ---- laws with atoms and a smooth part, sampled


@dataclass(frozen=True)
class Law:
    """Atoms (score, mass, accuracy); the rest of the mass has the density k s^(k-1) and a
    polynomial for its accuracy."""

    atoms: tuple[tuple[float, float, float], ...] = ()
    power: int = 1
    accuracy: tuple[float, ...] = (0.0, 1.0)

    def draw(self, rng: np.random.Generator, n: int) -> tuple[Floats, NDArray[np.bool_]]:
        values = np.array([value for value, _, _ in self.atoms] + [0.0])
        share = np.cumsum([mass for _, mass, _ in self.atoms])
        which = np.searchsorted(share * (1 + 1e-15), rng.random(n), side="right")
        smooth = rng.random(n) ** (1 / self.power)
        score = np.where(
            which < len(self.atoms), values[np.minimum(which, len(self.atoms))], smooth
        )
        chance = np.where(
            which < len(self.atoms),
            np.array([a for _, _, a in self.atoms] + [0.0])[which],
            Polynomial(self.accuracy)(smooth),
        )
        return score, rng.random(n) < chance

    def confidence(self, begin: float, end: float, *, with_begin: bool, with_end: bool) -> float:
        """The share of right predictions among scores from begin to end; NaN if there are none."""
        density = (
            (1 - sum(mass for _, mass, _ in self.atoms))
            * self.power
            * Polynomial([0.0] * (self.power - 1) + [1.0])
        )
        mass, right = (
            self._between(p, begin, end) for p in (density, density * Polynomial(self.accuracy))
        )
        for value, weight, accuracy in self.atoms:
            if (
                begin < value < end
                or (with_begin and value == begin)
                or (with_end and value == end)
            ):
                mass, right = mass + weight, right + weight * accuracy
        if mass <= 1e-12:
            # One value of the smooth part: its accuracy there.
            return (
                float(Polynomial(self.accuracy)(begin))
                if begin == end and self._smooth
                else float("nan")
            )
        return right / mass

    @property
    def _smooth(self) -> bool:
        return sum(mass for _, mass, _ in self.atoms) < 1 - 1e-9

    @staticmethod
    def _between(density: Polynomial, begin: float, end: float) -> float:
        whole = density.integ()
        return float(whole(end) - whole(begin))

    def missed(self, certificate: CalibrationCertificate) -> bool:
        for cell in np.flatnonzero(certificate.trials[0]).tolist():
            truth = self._truth(certificate, cell)
            if not certificate.lower[0, cell] <= truth <= certificate.upper[0, cell]:
                assert not np.isnan(truth), "a row was counted where the law has none"
                return True
        return False

    def _truth(self, certificate: CalibrationCertificate, cell: int) -> float:
        if isinstance(certificate.grid, AtomBins):
            edges = (0.0, *certificate.grid.limits, 1.0)
            if cell % 2:
                return self.confidence(
                    edges[cell // 2 + 1], edges[cell // 2 + 1], with_begin=True, with_end=True
                )
            last = cell == certificate.grid.n_cells - 1
            return self.confidence(
                edges[cell // 2], edges[cell // 2 + 1], with_begin=cell == 0, with_end=last
            )
        edges = tuple(certificate.grid.edges.tolist())
        return self.confidence(edges[cell], edges[cell + 1], with_begin=cell == 0, with_end=True)


HALF = 0.5
ULP = tuple(float(x) for x in (HALF, np.nextafter(HALF, 1), np.nextafter(np.nextafter(HALF, 1), 1)))


@dataclass(frozen=True)
class Setting:
    law: Law
    n: int = 150
    bins: Any = 5

    @property
    def options(self) -> dict[str, Any]:
        return {"n_bins": self.bins} if isinstance(self.bins, int) else {"edges": self.bins}


SETTINGS = {
    "calibrated": Setting(Law()),
    "overconfident": Setting(Law(power=6, accuracy=(0, 0, 0.9)), bins=10),
    "anti-calibrated": Setting(Law(accuracy=(1, -1))),
    "saturated": Setting(Law(((1.0, 0.6, 0.9), (0.0, 0.1, 0.3)), accuracy=(0.2, 0.5))),
    # Among these edges are 7/25 and 14/25, which times 25 round to more than 7 and 14.
    "on the edges": Setting(
        Law(tuple((k / 25, 1 / 26, 0.9 if k % 2 else 0.2) for k in range(26))), n=400, bins=25
    ),
    "one bin only": Setting(Law(((0.97, 0.5, 0.8), (0.99, 0.3, 0.95), (1.0, 0.2, 0.6))), bins=20),
    "five rows": Setting(Law(accuracy=(0.3, 0.4)), n=5),
    "one row": Setting(Law(((0.6, 1.0, 0.85),)), n=1),
    "all wrong": Setting(Law(accuracy=(0.0,))),
    "all right": Setting(Law(accuracy=(1.0,))),
    "nearly all right": Setting(Law(accuracy=(0.99,)), n=300),
    "heavy ties": Setting(Law(((0.31, 0.5, 0.4), (0.32, 0.3, 0.7), (0.9, 0.2, 0.5))), bins=7),
    "two points": Setting(Law(((0.0, 0.5, 0.1), (1.0, 0.5, 0.9))), bins=3),
    "one unit apart": Setting(
        Law(
            tuple(
                (value, 1 / 3, accuracy)
                for value, accuracy in zip(ULP, (0.2, 0.5, 0.8), strict=True)
            )
        ),
        bins=(0.0, ULP[0], ULP[1], 1.0),
    ),
}
DELTA = 0.2


@pytest.mark.parametrize(
    "name", standing_for(SETTINGS, ["calibrated", "one unit apart"], rest="long")
)
def test_calibrate_misses_some_bin_with_probability_at_most_delta(name: str, judge: Judge) -> None:
    setting, rng, runs = SETTINGS[name], np.random.default_rng(101), 600
    certificates = (
        calibrate(*setting.law.draw(rng, setting.n), delta=DELTA, **setting.options)
        for _ in range(runs)
    )
    judge(sum(map(setting.law.missed, certificates)), runs, DELTA)


@pytest.mark.parametrize(
    "name", standing_for(["calibrated", "saturated", "heavy ties"], ["heavy ties"], rest="long")
)
@pytest.mark.parametrize(("correction", "side"), OPTIONS[1:])
def test_every_correction_and_side_misses_with_probability_at_most_delta(
    name: str, correction: Correction, side: Side, judge: Judge
) -> None:
    setting, rng, runs, missed = SETTINGS[name], np.random.default_rng(102), 250, 0
    for _ in range(runs):
        data = setting.law.draw(rng, setting.n)
        missed += setting.law.missed(
            calibrate(*data, delta=DELTA, correction=correction, side=side, **setting.options)
        )
    judge(missed, runs, DELTA)


@pytest.mark.parametrize(
    "name",
    standing_for(
        [name for name, setting in SETTINGS.items() if isinstance(setting.bins, int)],
        ["heavy ties"],
        rest="long",
    ),
)
def test_edges_from_the_same_scores_miss_with_probability_at_most_delta(
    name: str, judge: Judge
) -> None:
    setting, rng, runs = SETTINGS[name], np.random.default_rng(103), 300
    missed = 0
    for _ in range(runs):
        data = setting.law.draw(rng, setting.n)
        missed += setting.law.missed(
            calibrate(*data, delta=DELTA, n_bins=setting.bins, edges="equal-mass")
        )
    judge(missed, runs, DELTA)


def test_the_sampled_laws_come_close_enough_to_delta_to_notice_a_wrong_level(
    judge: Judge,
) -> None:
    # The same draws at a level two and a half times too large are refuted, so the checks above are
    # able to fail.
    setting, rng, runs = SETTINGS["two points"], np.random.default_rng(101), 400
    wrong = [
        calibrate(*setting.law.draw(rng, setting.n), delta=0.5, **setting.options)
        for _ in range(runs)
    ]
    missed = sum(map(setting.law.missed, wrong))
    assert missed > 0.3 * runs
    with pytest.raises(AssertionError):
        judge(missed, runs, DELTA)


def test_edges_chosen_by_looking_at_the_labels_miss_far_more_often_than_delta() -> None:
    # Every score is right half of the time. The window of 20 rows that looks best is then claimed
    # to be better than that.
    law, rng, runs, n, width, missed = (
        Law(accuracy=(0.5,)),
        np.random.default_rng(104),
        150,
        200,
        20,
        0,
    )
    for _ in range(runs):
        score, correct = law.draw(rng, n)
        ordered, right = np.sort(score), correct[np.argsort(score)]
        best = int(np.argmax(np.convolve(right, np.ones(width), mode="valid")[1:])) + 1
        edges = [0.0, ordered[best - 1], ordered[best + width - 1], 1.0]
        missed += law.missed(calibrate(score, correct, delta=0.05, edges=edges))
    assert missed > 0.25 * runs


# ---- tables: groups, classes, labels


def test_disjoint_groups_miss_with_probability_at_most_delta(judge: Judge) -> None:
    # Type t has group t % 3; scores on an edge, saturated and at zero.
    score, accuracy = (
        np.array([0.25, 0.5, 1.0, 0.26, 0.0, 0.75]),
        np.array([0.2, 0.5, 0.9, 0.7, 0.4, 0.95]),
    )
    mass, group = np.array([0.3, 0.3, 0.2, 0.1, 0.05, 0.05]), np.arange(6) % 3
    types = Types(np.tile(score, (3, 1)), group == np.arange(3)[:, None])
    rng, runs, missed = np.random.default_rng(105), 600, 0
    for _ in range(runs):
        kind = rng.choice(6, size=200, p=mass)
        certificate = calibrate(
            score[kind],
            rng.random(200) < accuracy[kind],
            delta=DELTA,
            n_bins=4,
            groups=group[kind],
        )
        missed += types.missed(certificate, mass[None], np.tile(accuracy, (1, 3, 1)))[0]
    judge(missed, runs, DELTA)


def test_overlapping_groups_miss_with_probability_at_most_delta(judge: Judge) -> None:
    score, accuracy = np.array([0.25, 0.5, 1.0, 0.26]), np.array([0.2, 0.5, 0.9, 0.7])
    mass, member = (
        np.array([0.4, 0.3, 0.2, 0.1]),
        np.array([[True] * 4, [True, True, False, False], [False, True, True, True]]),
    )
    types = Types(np.tile(score, (3, 1)), member)
    rng, runs, missed = np.random.default_rng(106), 600, 0
    for _ in range(runs):
        kind = rng.choice(4, size=200, p=mass)
        groups = {name: member[place, kind] for place, name in enumerate("abc")}
        certificate = calibrate(
            score[kind], rng.random(200) < accuracy[kind], delta=DELTA, n_bins=4, groups=groups
        )
        missed += types.missed(certificate, mass[None], np.tile(accuracy, (1, 3, 1)))[0]
    judge(missed, runs, DELTA)


PROBABILITIES = {
    "three classes": np.array(
        [
            [1, 0, 0],
            [0.5, 0.5, 0],
            [0.25, 0.25, 0.5],
            [0.2, 0.7, 0.1],
            [0, 0, 1],
            [1 / 3, 1 / 3, 1 / 3],
        ],
        dtype=float,
    ),
    "one class is never predicted": np.array([[0.75, 0.25], [0.5, 0.5], [0.99, 0.01]]),
}


@pytest.mark.parametrize("name", standing_for(PROBABILITIES, ["three classes"], rest="long"))
@pytest.mark.parametrize("scope", ["top", "per-class", "all-labels"])
@pytest.mark.parametrize("correction", CORRECTIONS)
def test_the_calibrator_misses_with_probability_at_most_delta(
    name: str, scope: CalibratorScope, correction: Correction, judge: Judge
) -> None:
    table, rng, runs, n = PROBABILITIES[name], np.random.default_rng(107), 250, 120
    kinds, classes = table.shape
    mass, label = rng.dirichlet(np.ones(kinds)), rng.dirichlet(np.ones(classes), size=kinds)
    top = table.argmax(axis=1)
    if scope == "all-labels":
        types, accuracy = Types(table.T, np.ones((classes, kinds), dtype=bool)), label.T
    else:
        tables = 1 if scope == "top" else classes
        member = (
            np.ones((1, kinds), dtype=bool)
            if scope == "top"
            else top == np.arange(classes)[:, None]
        )
        types = Types(np.tile(table.max(axis=1), (tables, 1)), member)
        accuracy = np.tile(label[np.arange(kinds), top], (tables, 1))
    missed = 0
    for _ in range(runs):
        kind = rng.choice(kinds, size=n, p=mass)
        y = (rng.random(n)[:, None] > np.cumsum(label[kind], axis=1)[:, :-1]).sum(axis=1)
        parts = PACCalibrator(4, DELTA, scope, correction=correction)
        parts.partial_fit(table[kind[:50]], y[:50]).partial_fit(table[kind[50:]], y[50:])
        missed += types.missed(parts.certificate_, mass[None], accuracy[None])[0]
    judge(missed, runs, DELTA)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_the_interval_looked_up_is_that_of_the_bin_the_score_was_counted_in(dtype: Any) -> None:
    score = np.array([0.0, 0.1, 0.15, 0.2, 0.5, 0.7, 0.85, 0.9, 1.0], dtype=dtype)
    for options in (
        {"n_bins": 20},
        {"n_bins": 3},
        {"edges": (0.0, 0.15, 0.7, 1.0)},
        {"n_bins": 4, "edges": "equal-mass"},
    ):
        certificate = calibrate(
            np.repeat(score, 30), np.tile([True, True, False], 90), delta=0.1, **options
        )
        inside = one_table(score.astype(float)).inside(certificate)[0]
        for place, interval in enumerate(certificate.interval(score)):
            (cell,) = np.flatnonzero(inside[:, place])
            assert certificate.trials[0, cell] == 30 * inside[cell].sum()
            assert interval.tolist() == [certificate.lower[0, cell], certificate.upper[0, cell]]


def test_a_float32_softmax_that_sums_to_a_little_more_than_one_counts_as_one() -> None:
    certificate = calibrate(np.full(90, 1 + 1e-7), np.tile([True, True, False], 30), delta=0.1)
    assert certificate.trials[0].tolist() == [0] * 19 + [90]
    assert certificate.interval([1 + 1e-7]).tolist() == certificate.interval([1.0]).tolist()
