"""Temperature scaling from the top five classes: what is left is spread evenly over the others."""

from __future__ import annotations

import numpy as np
import pytest
from experiments.temperature import of_logits, of_top_five

from pacbound.baselines import softmax

CLASSES, ROWS = 12, 600


@pytest.fixture
def even_tails() -> tuple[np.ndarray, np.ndarray]:
    """Probabilities whose seven smallest are equal, so that nothing is lost by listing five."""
    rng = np.random.default_rng(0)
    logits = np.zeros((ROWS, CLASSES))
    logits[:, :5] = rng.uniform(0.5, 5, (ROWS, 5))
    labels = (rng.random((ROWS, 1)) > softmax(0.6 * logits).cumsum(axis=1)).sum(axis=1)
    return softmax(logits), labels


def test_five_classes_and_an_even_rest_are_scaled_as_the_whole_is(
    even_tails: tuple[np.ndarray, np.ndarray],
) -> None:
    probabilities, labels = even_tails
    order = np.argsort(-probabilities, axis=1)[:, :5]
    listed = np.take_along_axis(probabilities, order, axis=1)
    known = np.arange(0, ROWS, 2)
    whole = of_logits(np.log(probabilities), labels)(known)
    five = of_top_five(order, listed, labels, CLASSES)(known)
    np.testing.assert_allclose(five, whole, rtol=1e-6)
    assert (five < listed.max(axis=1)).mean() > 0.9, "the labels were drawn at a higher temperature"


def test_probabilities_that_add_up_to_one_leave_the_others_no_less_than_float32_can_tell() -> None:
    classes, labels = np.tile(np.arange(5), (4, 1)), np.array([0, 0, 1, 7])
    certain = np.tile(np.array([1, 0, 0, 0, 0], dtype=np.float32), (4, 1))
    scaled = of_top_five(classes, certain, labels, CLASSES)(np.arange(4))
    assert np.isfinite(scaled).all()
    assert (scaled < 1).all()
