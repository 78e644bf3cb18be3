"""A reliability diagram shows what its certificate, or its bins, hold: to the last digit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pacbound import PACCalibrator, calibrate, load_certificate
from pacbound.calibration.reliability import induced_reliability, reliability
from pacbound.data import fashion_mnist
from pacbound.documents import write
from pacbound.errors import CertificateError, InvalidTypeError, InvalidValueError
from pacbound.report import ReliabilityDisplay

pytest.importorskip(
    "matplotlib", reason="matplotlib is not installed: pip install 'pacbound[report]'"
)


def _rows(n: int = 2000, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    confidence = rng.uniform(0.3, 1.0, n)
    return confidence, rng.random(n) < confidence


def _dots(ax: Any) -> Any:
    """The positions of the observed shares, in order."""
    dots = [line.get_xydata() for line in ax.lines if line.get_marker() == "o"]
    drawn = np.concatenate(dots)
    return drawn[np.argsort(drawn[:, 0], kind="stable")]


def _legend(display: Any) -> list[str]:
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


def _title(display: Any) -> str:
    return str(display.ax_.get_title("left"))


@pytest.mark.parametrize("side", ["both", "lower", "upper"])
@pytest.mark.parametrize("n_bins", [1, 2, 20, 100])
def test_boxes_are_the_certified_intervals_over_their_bins(
    extents: Any, side: Any, n_bins: int
) -> None:
    certificate = calibrate(*_rows(), delta=0.05, n_bins=n_bins, side=side)
    display = ReliabilityDisplay.from_certificate(certificate)
    bins = certificate.bins
    seen = bins.trials > 0
    expected = np.stack([bins.begin, bins.end, bins.lower, bins.upper], axis=1)
    np.testing.assert_array_equal(extents(display.ax_, "intervals"), expected[seen])
    np.testing.assert_array_equal(extents(display.ax_, "unknown"), expected[~seen])
    np.testing.assert_array_equal(extents(display.ax_, "shares")[:, 2], bins.estimate[seen])
    np.testing.assert_array_equal(_dots(display.ax_)[:, 1], bins.estimate[seen])


def test_bins_without_rows_are_hatched_from_zero_to_one(extents: Any) -> None:
    display = ReliabilityDisplay.from_predictions([0.95] * 9, [True] * 9, delta=0.05, n_bins=10)
    hatched = extents(display.ax_, "unknown")
    assert len(hatched) == 9
    assert (hatched[:, 2:] == [0, 1]).all()
    assert [
        artist.get_hatch() for artist in display.ax_.collections if artist.get_gid() == "unknown"
    ] == ["///"]
    assert "no rows: [0, 1]" in _legend(display)
    assert len(_dots(display.ax_)) == 1


def test_no_hatch_is_explained_where_none_is_drawn(extents: Any) -> None:
    display = ReliabilityDisplay.from_predictions(
        np.linspace(0, 1, 50), np.ones(50), delta=0.05, n_bins=2
    )
    assert len(extents(display.ax_, "unknown")) == 0
    assert _legend(display) == ["ideal", "certified interval", "observed share"]


def test_the_histogram_has_the_share_of_rows_of_each_bin(extents: Any) -> None:
    display = ReliabilityDisplay.from_predictions(*_rows(), delta=0.05)
    bars = extents(display.panel_ax_, "rows")
    assert isinstance(display.bins.trials, np.ndarray)
    np.testing.assert_array_equal(bars[:, 3], display.bins.trials / 2000)
    np.testing.assert_array_equal(bars[:, 0], np.arange(20) / 20)
    assert display.panel_ax_ is not None
    assert display.panel_ax_.get_ylim()[1] > bars[:, 3].max()
    assert display.panel_ax_.get_xlim() == display.ax_.get_xlim()


def test_the_title_says_n_and_delta_and_the_axes_what_they_are() -> None:
    display = ReliabilityDisplay.from_predictions(*_rows(), delta=0.05)
    assert (
        _title(display)
        == "Certified confidence: n = 2,000, 20 bins, delta = 0.05\nAll intervals hold at once"
        " with probability ≥ 1 - delta"
    )
    assert display.ax_.get_ylabel() == "Accuracy (share right)"
    assert display.panel_ax_ is not None
    assert (display.panel_ax_.get_xlabel(), display.panel_ax_.get_ylabel()) == (
        "Confidence (0 to 1)",
        "Row share",
    )


@pytest.mark.parametrize("side", ["lower", "upper"])
def test_a_one_sided_certificate_says_which_end_holds_and_marks_only_that(side: Any) -> None:
    certificate = calibrate(*_rows(), delta=0.05, side=side)
    display = ReliabilityDisplay.from_certificate(certificate)
    assert f"certified {side} end" in _legend(display)
    assert f"All {side} ends hold" in _title(display)
    caps = [artist for artist in display.ax_.collections if artist.get_gid() is None]
    seen = certificate.bins.trials > 0
    assert len(caps) == 1
    ends = [np.asarray(path.vertices)[0, 1] for path in caps[0].get_paths()]
    assert ends == getattr(certificate.bins, side)[seen].tolist()


def test_a_cell_of_one_score_is_a_line_as_high_as_its_interval(extents: Any) -> None:
    certificate = calibrate(*_rows(), delta=0.05, edges="equal-mass", n_bins=5)
    bins, display = certificate.bins, ReliabilityDisplay.from_certificate(certificate)
    point = bins.begin == bins.end
    assert point.sum() == 4
    expected = np.stack([bins.begin, bins.end, bins.lower, bins.upper], axis=1)
    np.testing.assert_array_equal(extents(display.ax_, "interval values"), expected[point])
    np.testing.assert_array_equal(extents(display.ax_, "intervals"), expected[~point])
    np.testing.assert_array_equal(
        extents(display.panel_ax_, "rows at one score")[:, 3], bins.trials[point] / 2000
    )
    lines = [artist for artist in display.ax_.collections if artist.get_gid() == "interval values"]
    assert np.all(np.asarray(lines[0].get_linewidth()) >= 1)
    assert "the same at one score" in _legend(display)
    assert "9 cells" in _title(display)


@pytest.mark.parametrize("end", [0.0, 1.0])
def test_saturated_scores_show_their_interval_and_no_cell_beyond(extents: Any, end: float) -> None:
    confidence = np.concatenate([np.full(300, end), np.linspace(0.1, 0.9, 100)])
    certificate = calibrate(
        confidence, np.arange(400) % 5 > 0, delta=0.05, edges="equal-mass", n_bins=4
    )
    bins, display = certificate.bins, ReliabilityDisplay.from_certificate(certificate)
    lines = extents(display.ax_, "interval values")
    saturated = (bins.begin == end) & (bins.end == end) & (bins.trials == 300)
    assert [end, end, bins.lower[saturated][0], bins.upper[saturated][0]] in lines.tolist()
    assert len(extents(display.ax_, "unknown values")) == 0
    low, high = display.ax_.get_xlim()
    assert low < end < high


def test_a_score_of_its_own_that_a_group_lacks_is_shown_as_unknown(extents: Any) -> None:
    confidence, correct = np.linspace(0.05, 0.95, 40), np.ones(40)
    groups = np.where(np.arange(40) % 2, "odd", "even")
    certificate = calibrate(
        confidence, correct, delta=0.05, edges="equal-mass", n_bins=4, groups=groups
    )
    for name in certificate.groups:
        display, bins = (
            ReliabilityDisplay.from_certificate(certificate, group=name),
            certificate.tables[name],
        )
        empty = (bins.trials == 0) & (bins.begin == bins.end)
        unknown = extents(display.ax_, "unknown values")
        assert unknown[:, 0].tolist() == bins.begin[empty].tolist()
        assert (unknown[:, 2:] == [0, 1]).all()
        assert ("no rows at one score" in _legend(display)) == bool(empty.any())


def test_all_rows_saturated_fill_the_last_bin(extents: Any) -> None:
    display = ReliabilityDisplay.from_predictions(np.ones(500), np.ones(500), delta=0.05)
    assert extents(display.ax_, "intervals")[:, [0, 1, 3]].tolist() == [[0.95, 1.0, 1.0]]
    assert len(extents(display.ax_, "unknown")) == 19
    assert display.ax_.get_ylim()[1] > 1


def test_all_wrong_is_drawn_at_zero(extents: Any) -> None:
    confidence, _ = _rows()
    display = ReliabilityDisplay.from_predictions(confidence, np.zeros(2000), delta=0.05)
    assert (_dots(display.ax_)[:, 1] == 0).all()
    assert (extents(display.ax_, "intervals")[:, 2] == 0).all()
    assert display.ax_.get_ylim()[0] < 0


def test_one_row_is_enough(extents: Any) -> None:
    display = ReliabilityDisplay.from_predictions([0.42], [True], delta=0.05, n_bins=4)
    assert "n = 1," in _title(display)
    assert len(extents(display.ax_, "intervals")) == 1


@pytest.mark.parametrize("asked", ["3", 3, np.int64(3)])
def test_each_group_has_its_own_diagram(extents: Any, asked: Any) -> None:
    table = fashion_mnist()
    groups, correct = table.prediction_fast, table.prediction_fast == table.label
    certificate = calibrate(table.confidence_fast, correct, delta=0.01, groups=groups)
    display = ReliabilityDisplay.from_certificate(certificate, group=asked)
    bins = certificate.tables["3"]
    np.testing.assert_array_equal(
        extents(display.ax_, "intervals")[:, 2], bins.lower[bins.trials > 0]
    )
    assert f"Group 3: {bins.trials.sum():,} of n = 20,000" in _title(display)
    assert "All intervals of all 10 groups" in _title(display)


def test_a_name_with_dollar_signs_is_not_a_formula() -> None:
    name = r"$\nonsense{$"
    certificate = calibrate([0.5] * 10, [True] * 10, delta=0.1, groups=[name] * 10)
    display = ReliabilityDisplay.from_certificate(certificate, group=name)
    assert name in _title(display)
    assert display._repr_png_()


def test_a_group_without_rows_is_all_unknown(extents: Any) -> None:
    probabilities, labels = np.array([[0.7, 0.2, 0.1], [0.3, 0.6, 0.1]] * 20), np.array([0, 1] * 20)
    certificate = PACCalibrator(n_bins=5, scope="per-class").fit(probabilities, labels).certificate_
    display = ReliabilityDisplay.from_certificate(certificate, group=2)
    assert len(extents(display.ax_, "unknown")) == 5
    assert _title(display).startswith("Predicted class 2: 0 of n = 40")
    assert len(display._repr_png_() or b"") > 0


def test_labels_are_not_called_accuracy() -> None:
    probabilities, labels = np.array([[0.7, 0.3], [0.4, 0.6]] * 20), np.array([0, 1] * 20)
    certificate = (
        PACCalibrator(n_bins=5, scope="all-labels").fit(probabilities, labels).certificate_
    )
    display = ReliabilityDisplay.from_certificate(certificate, group=1)
    assert display.panel_ax_ is not None
    assert display.panel_ax_.get_xlabel() == "Probability of label 1 (0 to 1)"
    assert display.ax_.get_ylabel() == "Label 1 (share of rows)"


@pytest.mark.parametrize(
    ("groups", "asked"), [(None, "a"), (["a", "b"] * 5, None), (["a", "b"] * 5, "c")]
)
def test_a_group_that_does_not_exist_is_refused(groups: Any, asked: Any) -> None:
    certificate = calibrate([0.5] * 10, [True] * 10, delta=0.1, groups=groups)
    with pytest.raises(InvalidValueError, match="group="):
        ReliabilityDisplay.from_certificate(certificate, group=asked)


def test_what_is_no_calibration_certificate_is_refused() -> None:
    certificate: Any = "calibration.json"
    with pytest.raises(InvalidTypeError, match="expected a CalibrationCertificate"):
        ReliabilityDisplay.from_certificate(certificate)


def test_a_changed_certificate_is_not_drawn(tmp_path: Path) -> None:
    document = calibrate(*_rows(), delta=0.05).to_dict()
    document["claim"]["tables"][0]["lower"][0] += 0.1
    write(tmp_path / "changed.json", document)
    certificate: Any = load_certificate(tmp_path / "changed.json")
    with pytest.raises(CertificateError, match="changed"):
        ReliabilityDisplay.from_certificate(certificate)


def test_induced_intervals_lie_at_the_accuracy_of_their_bin(extents: Any) -> None:
    certificate = calibrate(*_rows(500), delta=0.05, n_bins=10)
    confidence, correct = _rows(3000, seed=1)
    intervals, estimates = certificate.interval(confidence), certificate.estimate(confidence)
    display = ReliabilityDisplay.from_intervals(intervals, estimates, correct, n_bins=10)
    bins = induced_reliability(intervals, estimates, correct, n_bins=10)
    seen = bins.trials > 0
    expected = np.stack([bins.lower, bins.upper, bins.accuracy, bins.accuracy], axis=1)
    np.testing.assert_array_equal(extents(display.ax_, "claims"), expected[seen])
    np.testing.assert_array_equal(extents(display.panel_ax_, "rows")[:, 3], bins.trials[:-1] / 3000)
    assert len(extents(display.panel_ax_, "unknown")) == (bins.trials[:-1] == 0).sum()
    assert "no rows" in _legend(display)
    assert "Induced calibration error [0.0000," in _title(display)
    assert "descriptive" in _title(display)
    assert "delta" not in _title(display)


def test_rows_without_an_estimate_are_drawn_and_counted(extents: Any) -> None:
    nan = float("nan")
    display = ReliabilityDisplay.from_intervals(
        [[0.5, 0.9]] * 2 + [[0, 1]] * 2, [0.7, 0.7, nan, nan], [1, 1, 0, 1]
    )
    assert extents(display.ax_, "claims").tolist() == [[0.5, 0.9, 1.0, 1.0]]
    assert extents(display.ax_, "claims without estimate").tolist() == [[0.0, 1.0, 0.5, 0.5]]
    assert "no estimate: 2 rows" in _legend(display)
    assert extents(display.panel_ax_, "rows")[:, 3].sum() == 0.5


def test_no_rows_but_those_without_an_estimate_are_drawn() -> None:
    display = ReliabilityDisplay.from_intervals([[0, 1]], [float("nan")], [True])
    assert "no estimate: 1 row" in _legend(display)
    assert display._repr_png_()


def test_plain_confidences_are_dots_at_their_mean() -> None:
    confidence, correct = _rows()
    bins = reliability(confidence, correct)
    display = ReliabilityDisplay(bins).plot()
    seen = bins.trials > 0
    np.testing.assert_array_equal(
        _dots(display.ax_), np.stack([bins.lower, bins.accuracy], axis=1)[seen]
    )
    assert "Calibration error" in _title(display)


def test_a_table_alone_can_be_drawn_but_claims_no_delta(extents: Any) -> None:
    display = ReliabilityDisplay(calibrate(*_rows(), delta=0.05).bins).plot()
    assert len(extents(display.ax_, "intervals")) == 14
    assert _title(display) == "Intervals: n = 2,000, 20 bins"


def test_delta_has_no_default() -> None:
    make: Any = ReliabilityDisplay.from_predictions
    with pytest.raises(TypeError, match="delta"):
        make([0.5], [True])
