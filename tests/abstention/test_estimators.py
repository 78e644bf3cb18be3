"""`SelectiveClassifier`: a scikit-learn classifier that answers only where it may."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="scikit-learn is not installed")

from sklearn.datasets import make_classification
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from pacbound import SelectiveClassifier
from pacbound.errors import InvalidValueError

X, Y = make_classification(4000, n_features=6, n_informative=4, n_classes=3, random_state=0)


def model(**options: Any) -> SelectiveClassifier:
    given = {"xi": 0.2, "sentinel": -1, "random_state": 0, **options}
    return SelectiveClassifier(LogisticRegression(), **given)


# With so large a tolerance it answers on small data too, so that the checks see answers.
CHECKS = parametrize_with_checks(
    [SelectiveClassifier(LogisticRegression(), xi=0.5, delta=0.5, sentinel=-99, random_state=0)]
)


# Up to scikit-learn 1.8 the checks come from a generator, which pytest 9.1 warns of.
@pytest.mark.parametrize(CHECKS.args[0], list(CHECKS.args[1]), **CHECKS.kwargs)
def test_scikit_learns_own_checks_pass(estimator: Any, check: Any) -> None:
    check(estimator)


def test_it_answers_where_the_certificate_does_and_gives_the_sentinel_elsewhere() -> None:
    fitted = model().fit(X, Y)
    said, answered = fitted.predict(X), fitted.answers(X)
    assert fitted.certificate_.certified
    assert fitted.certificate_.n == 2000
    assert np.array_equal(said == -1, ~answered)
    own = fitted.estimator_.predict(X)
    assert np.array_equal(said[answered], own[answered])
    assert fitted.coverage(X) == answered.mean()
    assert 0.3 < fitted.coverage(X) < 0.95
    assert said.dtype == Y.dtype
    np.testing.assert_array_equal(fitted.predict_proba(X), fitted.estimator_.predict_proba(X))


@pytest.mark.parametrize("sentinel", [-1, None, "none"])
def test_score_says_that_rows_without_an_answer_count_as_wrong(sentinel: Any) -> None:
    fitted = model(sentinel=sentinel).fit(X, Y)
    answered = fitted.answers(X)
    right = answered & (fitted.estimator_.predict(X) == Y)
    with pytest.warns(UserWarning, match="score counts rows without an answer as wrong"):
        assert fitted.score(X, Y) == right.mean()
    with pytest.warns(UserWarning, match="without an answer"):
        assert fitted.score(X, Y, sample_weight=right) == 1.0


def test_a_sentinel_that_is_a_class_is_refused() -> None:
    with pytest.raises(InvalidValueError, match="sentinel=2 is one of the classes"):
        model(sentinel=2).fit(X, Y)


def test_what_cannot_be_certified_is_never_answered() -> None:
    fitted = model(xi=0.0001).fit(X, Y)
    assert not fitted.certificate_.certified
    assert (fitted.predict(X) == -1).all()
    assert fitted.coverage(X) == 0.0


def test_a_frozen_model_certifies_on_all_rows() -> None:
    trained = LogisticRegression().fit(X[:1000], Y[:1000])
    fitted = SelectiveClassifier(FrozenEstimator(trained), xi=0.2, sentinel=-1)
    fitted.fit(X[1000:], Y[1000:])
    assert fitted.certificate_.n == 3000
    # A label that the model does not know counts as a wrong answer.
    other = np.where(np.arange(3000) % 2, Y[1000:], 9)
    assert not SelectiveClassifier(FrozenEstimator(trained)).fit(X[1000:], other).answers(X).any()
