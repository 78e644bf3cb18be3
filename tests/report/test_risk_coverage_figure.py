"""What the risk-coverage figure draws is what the certificate holds."""

from __future__ import annotations

import numpy as np
import pytest
from tests.report.conftest import marks

from pacbound import certify_abstention
from pacbound.errors import InvalidValueError
from pacbound.figure import Dots, Level, Steps

pytest.importorskip(
    "matplotlib", reason="matplotlib is not installed: pip install 'pacbound[report]'"
)

CONFIDENCE = np.linspace(0.3, 1.0, 1000)
CORRECT = np.arange(1000) % 10 > 3 * (CONFIDENCE < 0.7)


def test_the_curve_is_that_of_the_certificate_and_the_dot_lies_on_it_at_the_threshold() -> None:
    certificate = certify_abstention(CONFIDENCE, CORRECT, xi=0.2, delta=0.05)
    figure = certificate.figure()
    (curve,), (dot,) = marks(figure, Steps), marks(figure, Dots, "certified")
    answered = certificate.threshold <= CONFIDENCE
    assert dot.x.tolist() == [pytest.approx(answered.mean())] == [certificate.coverage]
    assert dot.y.tolist() == [pytest.approx(1 - CORRECT[answered].mean())]
    assert (curve.x[-1], curve.y[-1]) == pytest.approx((1.0, 1 - CORRECT.mean()))
    assert curve.x[0] == pytest.approx(0.01, abs=1e-3)
    assert [level.y for level in marks(figure, Level)] == [0.2]
    assert "No point of the curve is certified" in " ".join(
        f"{figure.title} {figure.caption}".splitlines()
    )


def test_a_refusal_has_no_dot() -> None:
    refused = certify_abstention(CONFIDENCE, CORRECT, xi=0.001, delta=0.05)
    figure = refused.figure()
    assert marks(figure, Dots, "certified") == []
    assert figure.caption.endswith("nothing is.")


def test_groups_are_drawn_one_by_one() -> None:
    groups = np.where(np.arange(1000) % 2, "even", "odd")
    certificate = certify_abstention(CONFIDENCE, CORRECT, groups=groups, xi=0.35, delta=0.05)
    figure = certificate.figure("odd")
    assert "odd" in f"{figure.title} {figure.caption}"
    (dot,) = marks(figure, Dots, "certified")
    odd = CONFIDENCE[groups == "odd"] >= certificate.thresholds["odd"]
    assert dot.x.tolist() == [pytest.approx(odd.mean())]
    with pytest.raises(InvalidValueError, match="it has 'even', 'odd'"):
        certificate.figure()
