"""A reliability diagram shows what its certificate, or its bins, hold: to the last digit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.report.conftest import legend, marks, named, rows

from pacbound import PACCalibrator, calibrate, load_certificate
from pacbound.calibration.reliability import induced_reliability, reliability
from pacbound.data import fashion_mnist
from pacbound.documents import write
from pacbound.errors import CertificateError, InvalidValueError
from pacbound.figure import Bars, Boxes, Dots, Figure, Flats, Level
from pacbound.report import plot
from pacbound.report.plotting import figure_of

pytest.importorskip(
    "matplotlib", reason="matplotlib is not installed: pip install 'pacbound[report]'"
)


def _certified(confidence: Any, correct: Any, **options: Any) -> Figure:
    return calibrate(confidence, correct, **options).figure()


def _rows(n: int = 2000, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    confidence = rng.uniform(0.3, 1.0, n)
    return confidence, rng.random(n) < confidence


def _boxes(figure: Any, look: str) -> Any:
    """The left, right, low and high sides of all boxes of one look, as an (n, 4) array."""
    found = [np.stack([b.left, b.right, b.low, b.high], 1) for b in marks(figure, Boxes, look)]
    return np.concatenate(found or [np.empty((0, 4))])


def _shares(figure: Any) -> Any:
    (dots,) = marks(figure, Dots, "seen")
    return dots.y


def _title(figure: Figure) -> str:
    return f"{figure.title} {figure.caption}"


@pytest.mark.parametrize("side", ["both", "lower", "upper"])
@pytest.mark.parametrize("n_bins", [1, 2, 20, 100])
def test_boxes_are_the_certified_intervals_over_their_bins(side: Any, n_bins: int) -> None:
    certificate = calibrate(*_rows(), delta=0.05, n_bins=n_bins, side=side)
    figure = certificate.figure()
    bins = certificate.bins
    seen = bins.trials > 0
    between = (bins.end > bins.begin[seen].min()) & (bins.begin < bins.end[seen].max())
    expected = np.stack([bins.begin, bins.end, bins.lower, bins.upper], axis=1)
    np.testing.assert_array_equal(_boxes(figure, "certified"), expected[seen])
    np.testing.assert_array_equal(_boxes(figure, "unknown"), expected[~seen & between])
    (flats,) = marks(figure, Flats, "seen")
    np.testing.assert_array_equal(flats.y, bins.estimate[seen])
    np.testing.assert_array_equal(_shares(figure), bins.estimate[seen])


def test_the_axis_begins_at_the_first_bin_with_rows_and_says_how_many_have_rows() -> None:
    figure = _certified([0.95] * 9, [True] * 9, delta=0.05, n_bins=10)
    assert plot(figure).axes[0].get_xlim() == (0.9, 1.0)
    assert len(_boxes(figure, "unknown")) == 0
    assert "9 rows in 1 of 10 bins" in _title(figure)
    assert len(_shares(figure)) == 1


def test_bins_without_rows_among_others_are_hatched_from_zero_to_one() -> None:
    figure = _certified([0.15] * 9 + [0.95] * 9, [True] * 18, delta=0.05, n_bins=10)
    hatched = _boxes(figure, "unknown")
    assert len(hatched) == 7
    assert (hatched[:, 2:] == [0, 1]).all()
    assert [
        artist.get_hatch()
        for artist in plot(figure).axes[0].collections
        if artist.get_gid() == "Boxes unknown"
    ] == ["///"]
    assert "no rows: nothing is known" in legend(figure)


def test_no_hatch_is_explained_where_none_is_drawn() -> None:
    figure = _certified(np.linspace(0, 1, 50), np.ones(50), delta=0.05, n_bins=2)
    assert len(_boxes(figure, "unknown")) == 0
    assert legend(figure) == [
        "confidence equals accuracy",
        "certified interval",
        "share right, as seen (no guarantee)",
        "share of the rows in each bin",
    ]


def test_the_histogram_has_the_share_of_rows_of_each_bin() -> None:
    certificate = calibrate(*_rows(), delta=0.05)
    figure, trials = certificate.figure(), certificate.bins.trials
    (bars,) = marks(figure, Bars, panel=1)
    np.testing.assert_array_equal(bars.height, trials[trials > 0] / 2000)
    np.testing.assert_array_equal(bars.left, np.flatnonzero(trials) / 20)
    upper, lower = plot(figure).axes
    assert lower.get_ylim()[1] > bars.height.max()
    assert lower.get_xlim() == upper.get_xlim()


def test_the_title_says_n_and_delta_and_the_axes_what_they_are() -> None:
    figure = _certified(*_rows(), delta=0.05)
    assert _title(figure).startswith(
        "Reliability (n = 2,000, delta = 0.05) 2,000 rows in 14 of 20 bins. All intervals hold "
        "together with probability at least 1 - delta"
    )
    upper, lower = plot(figure).axes
    assert upper.get_ylabel() == "Accuracy (share right)"
    assert (lower.get_xlabel(), lower.get_ylabel()) == ("Confidence (0 to 1)", "Rows")


@pytest.mark.parametrize("side", ["lower", "upper"])
def test_a_one_sided_certificate_says_which_end_holds_and_marks_only_that(side: Any) -> None:
    certificate = calibrate(*_rows(), delta=0.05, side=side)
    figure = certificate.figure()
    assert f"certified {side} end" in legend(figure)
    assert f"All {side} ends hold" in _title(figure)
    seen = certificate.bins.trials > 0
    (ends,) = marks(figure, Flats, "certified")
    assert ends.y.tolist() == getattr(certificate.bins, side)[seen].tolist()


def test_a_cell_of_one_score_is_a_line_as_high_as_its_interval() -> None:
    certificate = calibrate(*_rows(), delta=0.05, edges="equal-mass", n_bins=5)
    bins, figure = certificate.bins, certificate.figure()
    point = bins.begin == bins.end
    assert point.sum() == 4
    expected = np.stack([bins.begin, bins.end, bins.lower, bins.upper], axis=1)
    np.testing.assert_array_equal(_boxes(figure, "certified"), expected)
    lines = [
        artist
        for artist in plot(figure).axes[0].collections
        if artist.get_gid() == "Boxes certified"
    ]
    assert len(lines) == 2
    corners = [np.asarray(path.vertices) for path in lines[1].get_paths()]
    drawn = [[c[:, 0].min(), c[:, 0].max(), c[:, 1].min(), c[:, 1].max()] for c in corners]
    np.testing.assert_array_equal(drawn, expected[point])
    assert np.all(np.asarray(lines[1].get_linewidth()) >= 1)
    assert "of 9 bins" in _title(figure)


@pytest.mark.parametrize("end", [0.0, 1.0])
def test_saturated_scores_show_their_interval_and_no_cell_beyond(end: float) -> None:
    confidence = np.concatenate([np.full(300, end), np.linspace(0.1, 0.9, 100)])
    certificate = calibrate(
        confidence, np.arange(400) % 5 > 0, delta=0.05, edges="equal-mass", n_bins=4
    )
    bins, figure = certificate.bins, certificate.figure()
    saturated = (bins.begin == end) & (bins.end == end) & (bins.trials == 300)
    expected = [end, end, bins.lower[saturated][0], bins.upper[saturated][0]]
    assert expected in _boxes(figure, "certified").tolist()
    unknown = _boxes(figure, "unknown")
    assert not (unknown[:, 0] == unknown[:, 1]).any()
    low, high = plot(figure).axes[0].get_xlim()
    assert low <= end <= high


def test_a_score_of_its_own_that_a_group_lacks_is_shown_as_unknown() -> None:
    confidence, correct = np.linspace(0.05, 0.95, 40), np.ones(40)
    groups = np.where(np.arange(40) % 2, "odd", "even")
    certificate = calibrate(
        confidence, correct, delta=0.05, edges="equal-mass", n_bins=4, groups=groups
    )
    for name in certificate.groups:
        figure, bins = (
            certificate.figure(name),
            certificate.tables[name],
        )
        empty = (bins.trials == 0) & (bins.begin == bins.end)
        unknown = _boxes(figure, "unknown")
        assert unknown[:, 0].tolist() == bins.begin[empty].tolist()
        assert (unknown[:, 2:] == [0, 1]).all()
        assert ("no rows: nothing is known" in legend(figure)) == bool(empty.any())


def test_all_rows_saturated_fill_the_last_bin() -> None:
    figure = _certified(np.ones(500), np.ones(500), delta=0.05)
    assert _boxes(figure, "certified")[:, [0, 1, 3]].tolist() == [[0.95, 1.0, 1.0]]
    assert plot(figure).axes[0].get_ylim()[1] >= 1


def test_all_wrong_is_drawn_at_zero() -> None:
    confidence, _ = _rows()
    figure = _certified(confidence, np.zeros(2000), delta=0.05)
    assert (_shares(figure) == 0).all()
    assert (_boxes(figure, "certified")[:, 2] == 0).all()
    assert plot(figure).axes[0].get_ylim()[0] <= 0


def test_one_row_is_enough() -> None:
    figure = _certified([0.42], [True], delta=0.05, n_bins=4)
    assert "n = 1," in _title(figure)
    assert len(_boxes(figure, "certified")) == 1


@pytest.mark.parametrize("asked", ["3", 3, np.int64(3)])
def test_each_group_has_its_own_diagram(asked: Any) -> None:
    table = fashion_mnist()
    groups, correct = table.prediction_fast, table.prediction_fast == table.label
    certificate = calibrate(table.confidence_fast, correct, delta=0.01, groups=groups)
    figure = certificate.figure(asked)
    bins = certificate.tables["3"]
    np.testing.assert_array_equal(_boxes(figure, "certified")[:, 2], bins.lower[bins.trials > 0])
    assert _title(figure).startswith("Reliability: group 3 (n = 20,000")
    assert f"{bins.trials.sum():,} rows in" in _title(figure)
    assert "All intervals of all 10 groups" in _title(figure)


def test_a_name_with_dollar_signs_is_not_a_formula() -> None:
    name = r"$\nonsense{$"
    certificate = calibrate([0.5] * 10, [True] * 10, delta=0.1, groups=[name] * 10)
    figure = certificate.figure(name)
    assert name in _title(figure)
    plot(figure).canvas.draw()


def test_a_group_without_rows_is_all_unknown() -> None:
    probabilities, labels = np.array([[0.7, 0.2, 0.1], [0.3, 0.6, 0.1]] * 20), np.array([0, 1] * 20)
    certificate = PACCalibrator(n_bins=5, scope="per-class").fit(probabilities, labels).certificate_
    figure = certificate.figure(2)
    assert len(_boxes(figure, "unknown")) == 5
    assert _title(figure).startswith("Reliability: predicted class 2 (n = 40")
    assert "0 rows in 0 of 5 bins" in _title(figure)
    plot(figure).canvas.draw()


def test_labels_are_not_called_accuracy() -> None:
    probabilities, labels = np.array([[0.7, 0.3], [0.4, 0.6]] * 20), np.array([0, 1] * 20)
    certificate = (
        PACCalibrator(n_bins=5, scope="all-labels").fit(probabilities, labels).certificate_
    )
    figure = certificate.figure(1)
    assert plot(figure).axes[-1].get_xlabel() == "Probability of label 1 (0 to 1)"
    assert plot(figure).axes[0].get_ylabel() == "Label 1 (share of rows)"


@pytest.mark.parametrize(
    ("groups", "asked"), [(None, "a"), (["a", "b"] * 5, None), (["a", "b"] * 5, "c")]
)
def test_a_group_that_does_not_exist_is_refused(groups: Any, asked: Any) -> None:
    certificate = calibrate([0.5] * 10, [True] * 10, delta=0.1, groups=groups)
    with pytest.raises(InvalidValueError, match="group="):
        certificate.figure(asked)


def test_a_changed_certificate_is_not_drawn(tmp_path: Path) -> None:
    document = calibrate(*_rows(), delta=0.05).to_dict()
    document["claim"]["tables"][0]["lower"][0] += 0.1
    write(tmp_path / "changed.json", document)
    certificate: Any = load_certificate(tmp_path / "changed.json")
    with pytest.raises(CertificateError, match="changed"):
        certificate.figure()


def test_induced_intervals_lie_at_the_accuracy_of_their_bin() -> None:
    certificate = calibrate(*_rows(500), delta=0.05, n_bins=10)
    confidence, correct = _rows(3000, seed=1)
    intervals, estimates = certificate.interval(confidence), certificate.estimate(confidence)
    figure = figure_of(induced_reliability(intervals, estimates, correct, n_bins=10))
    bins = induced_reliability(intervals, estimates, correct, n_bins=10)
    seen = bins.trials > 0
    claims = named(figure, "claimed interval")
    assert rows(claims.left, claims.right, claims.y) == rows(
        bins.lower[seen], bins.upper[seen], bins.accuracy[seen]
    )
    (bars,) = marks(figure, Bars, panel=1)
    np.testing.assert_array_equal(bars.height, bins.trials[seen] / 3000)
    assert named(figure, "no rows").left.size == (bins.trials[:-1] == 0).sum()
    assert "Induced calibration error [0.0000," in _title(figure)
    assert "Descriptive" in _title(figure)
    assert "delta" not in _title(figure)


def test_rows_without_an_estimate_are_drawn_and_counted() -> None:
    nan = float("nan")
    figure = figure_of(
        induced_reliability([[0.5, 0.9]] * 2 + [[0, 1]] * 2, [0.7, 0.7, nan, nan], [1, 1, 0, 1])
    )
    claims = named(figure, "claimed interval")
    assert rows(claims.left, claims.right, claims.y) == [[0.5, 0.9, 1.0]]
    without = named(figure, "no estimate: 2 rows")
    assert isinstance(without, Level)
    assert without.y == 0.5
    (bars,) = marks(figure, Bars, panel=1)
    assert bars.height.sum() == 0.5


def test_no_rows_but_those_without_an_estimate_are_drawn() -> None:
    figure = figure_of(induced_reliability([[0, 1]], [float("nan")], [True]))
    assert "no estimate: 1 row" in legend(figure)
    plot(figure).canvas.draw()


def test_plain_confidences_are_dots_at_their_mean() -> None:
    confidence, correct = _rows()
    bins = reliability(confidence, correct)
    figure = figure_of(bins)
    seen = bins.trials > 0
    (dots,) = marks(figure, Dots)
    assert rows(dots.x, dots.y) == rows(bins.lower[seen], bins.accuracy[seen])
    assert "Calibration error" in _title(figure)
