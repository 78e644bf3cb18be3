"""What the recall figure draws is what the certificate holds."""

from __future__ import annotations

import numpy as np
import pytest
from tests.report.conftest import marks

from pacbound import certify_recall
from pacbound.errors import InvalidValueError
from pacbound.figure import Level, Steps, Upright

pytest.importorskip(
    "matplotlib", reason="matplotlib is not installed: pip install 'pacbound[report]'"
)

SCORE = np.linspace(0, 1, 1001)
POSITIVE = np.arange(1001) % 3 == 0


def test_the_curves_are_those_of_the_certificate() -> None:
    certificate = certify_recall(SCORE, POSITIVE, target=0.9, delta=0.05)
    figure = certificate.figure()
    (recall,), (flagged,) = marks(figure, Steps), marks(figure, Steps, panel=1)
    place = np.flatnonzero(recall.x >= certificate.threshold)[0]
    assert recall.y[place] == pytest.approx(certificate.share("positive"))
    assert flagged.y[place] == pytest.approx(certificate.coverage)
    assert [mark.x for mark in marks(figure, Upright, "certified")] == [certificate.threshold]
    assert [mark.y for mark in marks(figure, Level, "certified")] == [0.9]
    assert "n = 1,001, delta = 0.05" in f"{figure.title} {figure.caption}"
    assert "Certified is what was asked for" in f"{figure.title} {figure.caption}"


def test_a_refusal_has_no_threshold_and_without_positives_there_is_no_curve() -> None:
    figure = certify_recall([0.2, 0.9], [False, False], target=0.9, delta=0.05).figure()
    assert marks(figure, Upright) == []
    assert "Nothing is certified" in figure.caption
    assert marks(figure, Steps) == []
    assert len(marks(figure, Steps, panel=1)) == 1


def test_groups_are_drawn_one_by_one() -> None:
    groups = np.where(np.arange(1001) % 2, "even", "odd")
    certificate = certify_recall(SCORE, POSITIVE, groups=groups, target=0.9, delta=0.05)
    assert "odd" in certificate.figure("odd").title
    with pytest.raises(InvalidValueError, match="it has 'even', 'odd'"):
        certificate.figure()
