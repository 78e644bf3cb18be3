"""A cascade answers as if every model had seen every row and the first that is sure enough had been
believed."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from pacbound import Tally, load_certificate
from pacbound.cascade import Answers, Cascade, CascadeStatistics
from pacbound.claims.cascade import CascadeCertificate, certify_cascade
from pacbound.errors import (
    CertificateError,
    InvalidTypeError,
    InvalidValueError,
    ModelError,
    PacboundError,
)
from pacbound.tally import top_label

Array = np.typing.NDArray[Any]


class Table:
    """A model that knows its answers by heart; rows are their own numbers. It remembers what it was
    asked."""

    def __init__(self, probabilities: Any) -> None:
        self.probabilities = np.asarray(probabilities)
        self.asked: list[list[int]] = []

    def __call__(self, X: Any) -> Array:
        self.asked.append(np.asarray(X).tolist())
        return self.probabilities[np.asarray(X, dtype=np.intp)]


def _tables(n: int, *, models: int = 2, classes: int = 3, seed: int = 0) -> list[Array]:
    rng = np.random.default_rng(seed)
    return [rng.dirichlet([0.4] * classes, size=n) for _ in range(models)]


def _all_then_select(tables: list[Any], thresholds: Any) -> tuple[Array, Array, Array]:
    """The reference: every model on every row, then the first whose float64 score reaches its
    threshold."""
    tops = [np.asarray(table) for table in tables]
    scores = np.column_stack(
        [np.minimum(table.max(axis=1).astype(np.float64), 1.0) for table in tops]
    )
    labels = np.column_stack([table.argmax(axis=1) for table in tops])
    reached = scores >= np.array([*np.asarray(thresholds, dtype=np.float64), -np.inf])
    exits = reached.argmax(axis=1)
    rows = np.arange(len(exits))
    return labels[rows, exits], exits, scores[rows, exits]


def _assert_same(cascade: Cascade, X: Any, expected: tuple[Array, Array, Array]) -> None:
    result = cascade.run(X)
    assert np.array_equal(result.predictions, expected[0])
    assert np.array_equal(result.exits, expected[1])
    assert np.array_equal(result.confidences, expected[2])
    assert np.array_equal(cascade.predict(X), expected[0])
    assert np.array_equal(cascade.run(X).exits, expected[1])


# ---------------------------------------------------------------------------------------------- the
# rule

GRID = st.sampled_from(
    [
        0.0,
        2.0**-16,
        0.25,
        0.5,
        0.9,
        np.float64(np.float32(0.9)),
        np.float64(np.float16(0.9)),
        1 - 2.0**-16,
        1.0,
    ]
)


@st.composite
def _cascades(draw: st.DrawFn) -> tuple[list[Array], list[float]]:
    models, rows, classes = (
        draw(st.integers(2, 4)),
        draw(st.integers(0, 12)),
        draw(st.integers(2, 4)),
    )
    tables = [
        draw(
            arrays(
                draw(st.sampled_from([np.float16, np.float32, np.float64])),
                (rows, classes),
                elements=st.floats(0, 1, width=16),
            )
        )
        for _ in range(models)
    ]
    for table in tables:
        for row in range(rows):
            if draw(st.booleans()):
                table[row, draw(st.integers(0, classes - 1))] = draw(GRID)
    seen = [float(score) for table in tables for score in table.ravel()] or [0.5]
    threshold = st.one_of(GRID, st.just(np.inf), st.sampled_from(seen), st.floats(0, 1))
    return tables, [float(draw(threshold)) for _ in range(models - 1)]


@given(_cascades(), st.sampled_from([None, 1, 2, 5]))
def test_routing_equals_running_every_model_on_every_row_and_selecting(
    case: tuple[list[Array], list[float]], batch_size: int | None
) -> None:
    tables, thresholds = case
    cascade = Cascade([Table(table) for table in tables], thresholds, batch_size=batch_size)
    _assert_same(cascade, np.arange(len(tables[0])), _all_then_select(tables, thresholds))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_a_score_equal_to_the_threshold_exits_and_the_next_one_below_does_not(dtype: Any) -> None:
    score = dtype(0.9)
    fast = Table(np.array([[score, 0], [np.nextafter(score, dtype(0)), 0]], dtype=dtype))
    cascade = Cascade([fast, Table([[0.0, 1.0]] * 2)], [float(score)])
    assert cascade.run([0, 1]).exits.tolist() == [0, 1]


def test_saturated_scores_exit_at_threshold_one_and_never_at_infinity() -> None:
    tables = [np.array([[1.0, 0.0], [1 - 1e-12, 0.0]]), np.array([[0.0, 1.0], [0.0, 1.0]])]
    assert Cascade([Table(t) for t in tables], [1.0]).run([0, 1]).exits.tolist() == [0, 1]
    assert Cascade([Table(t) for t in tables], [np.inf]).run([0, 1]).exits.tolist() == [1, 1]
    assert Cascade([Table(t) for t in tables], [0.0]).run([0, 1]).exits.tolist() == [0, 0]


def test_probabilities_a_hair_above_one_count_as_one() -> None:
    hair = np.nextafter(np.float32(1), np.float32(2))
    result = Cascade([Table(np.array([[hair, 0]])), Table([[1.0, 0.0]])], [1.0]).run([0])
    assert (result.exits.tolist(), result.confidences.tolist()) == ([0], [1.0])


def test_later_models_see_only_the_rows_that_are_left_and_order_is_restored() -> None:
    fast, middle, slow = (
        Table(p)
        for p in (
            [[0.9, 0.1]] * 2 + [[0.6, 0.4]] * 3,
            [[0.1, 0.9]] * 3 + [[0.5, 0.5]] * 2,
            [[1.0, 0]] * 5,
        )
    )
    result = Cascade([fast, middle, slow], [0.8, 0.8]).run([4, 1, 2, 3, 0])
    assert (fast.asked, middle.asked, slow.asked) == ([[4, 1, 2, 3, 0]], [[4, 2, 3]], [[4, 3]])
    assert result.exits.tolist() == [2, 0, 1, 2, 0]
    assert result.predictions.tolist() == [0, 0, 1, 0, 0]
    assert result.predictions.dtype == result.exits.dtype == np.intp
    assert result.confidences.dtype == np.float64
    assert (len(result), result.answered.tolist()) == (5, [2, 1, 2])


def test_no_model_gets_more_rows_than_the_batch_size_and_the_slow_one_gets_whole_batches() -> None:
    tables = [np.array([[0.9, 0.1], [0.6, 0.4]] * 8), np.array([[0.0, 1.0]] * 16)]
    fast, slow = map(Table, tables)
    Cascade([fast, slow], [0.8], batch_size=4).predict(np.arange(16))
    assert [len(rows) for rows in fast.asked] == [4, 4, 4, 4]
    assert slow.asked == [[1, 3, 5, 7], [9, 11, 13, 15]]


# ----------------------------------------------------------------------------------------------
# certificates


def _certificate(rows: int, xi: float) -> tuple[CascadeCertificate, list[Array]]:
    tables = _tables(rows, seed=3)
    labels = tables[1].argmax(axis=1)
    (confidence, fast), (_, slow) = map(top_label, tables)
    tally = Tally.count(
        "cascade",
        confidence=confidence,
        prediction=np.column_stack([fast, slow]),
        label=labels,
    )
    return certify_cascade(data=tally, xi=xi, delta=0.05), tables


def test_the_cascade_of_a_certificate_exits_exactly_as_often_as_the_certificate_counted() -> None:
    certificate, tables = _certificate(3000, 0.3)
    assert certificate.certified
    cascade = Cascade([Table(t) for t in tables], certificate)
    assert np.array_equal(cascade.thresholds, certificate.thresholds)
    assert (cascade.run(np.arange(3000)).exits == 0).mean() == certificate.exit_rates[0]
    assert 0 < certificate.exit_rates[0] < 1


def test_the_cascade_of_a_refused_certificate_never_exits() -> None:
    certificate, tables = _certificate(20, 0.001)
    assert not certificate.certified
    assert (
        Cascade([Table(t) for t in tables], certificate).run(np.arange(20)).exits.tolist()
        == [1] * 20
    )


def test_a_certificate_that_was_changed_on_disk_is_refused(tmp_path: Path) -> None:
    certificate, _ = _certificate(3000, 0.3)
    path = tmp_path / "cascade.json"
    certificate.save(path)
    document = json.loads(path.read_text())
    document["claim"]["xi"] = 0.2
    path.write_text(json.dumps(document))
    changed = load_certificate(path)
    assert isinstance(changed, CascadeCertificate)
    with pytest.raises(CertificateError, match="was changed"):
        Cascade([len, len], changed)


@pytest.mark.parametrize(
    ("thresholds", "message"),
    [
        ([0.5, 0.5], "2 thresholds for 2 models: expected 1"),
        ([], "0 thresholds for 2 models"),
        ([np.nan], r"thresholds\[0\] is nan"),
        ([-0.1], r"thresholds\[0\] is -0.1"),
        ([95], r"thresholds\[0\] is 95.0: expected 0 to 1, or \+inf"),
        ([-np.inf], "expected 0 to 1"),
        ("0.9", "is not the path of a certificate"),
        ([None], "thresholds"),
        ([True], "thresholds"),
    ],
)
def test_thresholds_that_are_none_are_refused(thresholds: Any, message: str) -> None:
    with pytest.raises(PacboundError, match=message):
        Cascade([len, len], thresholds)


def test_an_async_function_is_sent_to_the_async_cascade() -> None:
    async def remote(X: Any) -> Any: ...

    class Remote:
        async def __call__(self, X: Any) -> Any: ...

    for model in (remote, Remote()):
        with pytest.raises(InvalidTypeError, match=r"Model 1 .*is async.*AsyncCascade"):
            Cascade([len, model], [0.5])


# ----------------------------------------------------------------------------------------------
# what holds the rows


def _torch(X: Array) -> Any:
    return pytest.importorskip("torch").from_numpy(X.copy())


def _jax(X: Array) -> Any:
    return pytest.importorskip("jax.numpy").asarray(X)


def _pandas(X: Array) -> Any:
    return pytest.importorskip("pandas").DataFrame(
        X, columns=["a", "b"], index=np.arange(len(X))[::-1] * 7
    )


def _sparse(name: str) -> Callable[[Array], Any]:
    from scipy import sparse

    hold: Callable[[Array], Any] = getattr(sparse, name)
    return hold


HOLDERS: dict[str, tuple[Callable[[Array], Any], Callable[[Any], Array]]] = {
    "numpy": (lambda X: X, np.asarray),
    "numpy float32, in column order": (
        lambda X: np.asfortranarray(X, dtype=np.float32),
        np.asarray,
    ),
    "torch": (_torch, lambda X: X.numpy()),
    "torch with gradient": (lambda X: _torch(X).requires_grad_(), lambda X: X.detach().numpy()),
    "jax": (_jax, np.asarray),
    "pandas": (_pandas, lambda X: X[["a", "b"]].to_numpy()),
    "pandas series of text": (
        lambda X: pytest.importorskip("pandas").Series(
            [json.dumps(row.tolist()) for row in X], index=np.arange(len(X))[::-1]
        ),
        lambda X: np.array([json.loads(row) for row in X]),
    ),
    "pyarrow": (
        lambda X: pytest.importorskip("pyarrow").table({"a": X[:, 0], "b": X[:, 1]}),
        lambda X: np.column_stack([X.column("a").to_numpy(), X.column("b").to_numpy()]),
    ),
    "scipy csr": (_sparse("csr_array"), lambda X: X.toarray()),
    "scipy csc matrix": (_sparse("csc_matrix"), lambda X: X.toarray()),
    "scipy coo": (_sparse("coo_array"), lambda X: X.toarray()),
    "strings": (
        lambda X: [json.dumps(row.tolist()) for row in X],
        lambda X: np.array([json.loads(row) for row in X]),
    ),
    "tuple of objects": (
        lambda X: tuple({"row": row} for row in X),
        lambda X: np.array([holder["row"] for holder in X]),
    ),
    "dictionary of columns": (
        lambda X: {"a": X[:, 0], "b": X[:, 1].tolist()},
        lambda X: np.column_stack([X["a"], X["b"]]),
    ),
    "dictionary of tensors": (
        lambda X: {"a": _torch(X[:, 0]), "b": _torch(X[:, 1])},
        lambda X: np.column_stack([X["a"].numpy(), X["b"].numpy()]),
    ),
}


@pytest.mark.parametrize("holder", HOLDERS)
@pytest.mark.parametrize("batch_size", [None, 7])
def test_rows_may_be_held_by(holder: str, batch_size: int | None) -> None:
    hold, read = HOLDERS[holder]
    rows = np.random.default_rng(5).random((40, 2)).astype(np.float32).astype(np.float64)
    kinds = set()

    def fast(X: Any) -> Array:
        kinds.add(type(X))
        first = np.asarray(read(X), dtype=np.float64)[:, 0]
        return np.column_stack([first, 1 - first])

    def slow(X: Any) -> Array:
        kinds.add(type(X))
        second = np.asarray(read(X), dtype=np.float64)[:, 1]
        return np.column_stack([second, 1 - second])

    expected = _all_then_select([fast(hold(rows)), slow(hold(rows))], [0.8])
    assert set(expected[1]) == {0, 1}
    kinds.clear()
    _assert_same(Cascade([fast, slow], [0.8], batch_size=batch_size), hold(rows), expected)
    assert len(kinds) == 1, "later models get the rows in what the first one got them in"


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ("one text", "put it into a list"),
        (
            (row for row in [1, 2]),
            r"list\(\) its rows, or run the cascade on one batch after the other",
        ),
        (3, "has no rows to pick"),
        (np.float64(0.3), "a single value without rows"),
        ({}, "no common number of rows: it is empty"),
        ({"a": [1], "b": [1, 2]}, r"X\['a'\] has 1, X\['b'\] has 2"),
        ({"a": [1], "b": 3}, r"X\['b'\] is a int"),
    ],
)
def test_what_has_no_rows_is_refused(X: Any, message: str) -> None:
    with pytest.raises((InvalidTypeError, InvalidValueError), match=message):
        Cascade([len, len], [0.5]).predict(X)


# ----------------------------------------------------------------------------------------------
# what models give back


def _as_torch(table: Array) -> Any:
    return pytest.importorskip("torch").from_numpy(table.copy())


class OnAnotherDevice:
    """Memory that NumPy cannot read until it has been copied to the host, as that of a GPU."""

    def __init__(self, table: Array) -> None:
        self._table = table

    def __array__(self, dtype: Any = None, copy: Any = None) -> Array:
        raise TypeError("can't convert cuda:0 device type tensor to numpy")

    def detach(self) -> OnAnotherDevice:
        return self

    def cpu(self) -> Array:
        return self._table


OUTPUTS: dict[str, Callable[[Array], Any]] = {
    "list": lambda table: table.tolist(),
    "numpy float32": lambda table: table.astype(np.float32),
    "numpy float16": lambda table: table.astype(np.float16),
    "numpy transposed": np.asfortranarray,
    "on another device": OnAnotherDevice,
    "torch": _as_torch,
    "torch with gradient": lambda table: _as_torch(table).requires_grad_() * 1,
    "jax": _jax,
    "pandas": lambda table: pytest.importorskip("pandas").DataFrame(table),
}


@pytest.mark.parametrize("kind", OUTPUTS)
def test_models_may_give(kind: str) -> None:
    convert = OUTPUTS[kind]
    tables = [np.round(table * 256) / 256 for table in _tables(50)]
    models = [lambda X, table=table: convert(table[np.asarray(X)]) for table in tables]
    _assert_same(Cascade(models, [0.75]), np.arange(50), _all_then_select(tables, [0.75]))


def test_scikit_learn_models_are_routed_by_predict_proba() -> None:
    pytest.importorskip("sklearn")
    from sklearn.datasets import make_classification
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression

    X, y = make_classification(600, n_informative=4, n_classes=3, random_state=0)
    names = np.array(["bird", "cat", "horse"])
    fast = LogisticRegression().fit(X[:200], names[y[:200]])
    slow = RandomForestClassifier(20, random_state=0).fit(X[:200], names[y[:200]])
    tables = [fast.predict_proba(X[200:]), slow.predict_proba(X[200:])]
    labels, exits, _ = _all_then_select(tables, [0.7])
    cascade = Cascade([fast.predict_proba, slow.predict_proba], [0.7], classes=fast.classes_)
    result = cascade.run(X[200:])
    assert set(exits) == {0, 1}
    assert np.array_equal(result.exits, exits)
    assert np.array_equal(result.predictions, names[labels])
    assert (
        repr(cascade)
        == "Cascade(LogisticRegression.predict_proba >= 0.7, RandomForestClassifier.predict_proba)"
    )
    with pytest.raises(
        InvalidTypeError,
        match=(
            r"Model 1 is a RandomForestClassifier, which cannot be called. Pass its predict_proba"
        ),
    ):
        Cascade([fast.predict_proba, slow], [0.7])


def test_models_without_probabilities_give_labels_and_confidences() -> None:
    def small(texts: list[str]) -> Answers:
        return Answers(
            ["short" if len(text) < 5 else "?" for text in texts],
            [1.0 if len(text) < 5 else 0.2 for text in texts],
        )

    def large(texts: list[str]) -> Answers:
        return Answers(["a rather long text" for _ in texts])

    result = Cascade([small, large], [0.9]).run(["one", "something longer", "two"])
    assert result.predictions.tolist() == ["short", "a rather long text", "short"]
    assert result.exits.tolist() == [0, 1, 0]
    assert np.array_equal(result.confidences, [1.0, np.nan, 1.0], equal_nan=True)


# ----------------------------------------------------------------------------------------------
# failures


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.nan, r"Model 1 \(Table\) gave confidence nan for row 3: expected 0 to 1\.$"),
        (
            1.5,
            (
                r"Model 1 \(Table\) gave confidence 1.5 for row 3: expected 0 to 1. These look "
                r"like logits"
            ),
        ),
        (np.inf, r"Model 1 \(Table\) gave confidence inf for row 3"),
        (-0.2, r"Model 1 \(Table\) gave probability -0.2 for row 3"),
        (-np.inf, r"Model 1 \(Table\) gave probability -inf for row 3"),
        (1 + 2e-6, r"Model 1 \(Table\) gave confidence 1.000002 for row 3"),
    ],
)
@pytest.mark.parametrize("batch_size", [None, 1])
def test_an_output_that_is_no_probability_names_the_model_and_the_row(
    value: float, message: str, batch_size: int | None
) -> None:
    slow = np.full((4, 2), 0.5)
    slow[3, 0] = value
    cascade = Cascade(
        [Table([[0.9, 0.1]] * 2 + [[0.5, 0.5]] * 2), Table(slow)], [0.8], batch_size=batch_size
    )
    with pytest.raises(ModelError, match=message) as caught:
        cascade.predict(np.arange(4))
    assert (caught.value.model, caught.value.row) == (1, 3)
    assert cascade.statistics.rows == 0


@pytest.mark.parametrize(
    ("output", "message"),
    [
        (np.full((3, 2), 0.5), r"gave shape \(3, 2\) for 2 rows: expected \(2, classes\)"),
        (np.full(2, 0.5), r"gave shape \(2,\) for 2 rows.*For two classes, return both columns"),
        (np.full((2, 2, 1), 0.5), r"gave shape \(2, 2, 1\)"),
        (np.empty((2, 0)), r"gave shape \(2, 0\)"),
        (None, "gave 2 rows no answer"),
        ([["a", "b"]] * 2, "gave 2 rows no answer: probabilities has dtype <U1"),
        (
            [[0.5], [0.5, 0.5]],
            "gave 2 rows no answer: probabilities is a list that NumPy cannot read",
        ),
        (
            ([0, 1], [0.9, 0.8]),
            r"a tuple, which could mean many things: return Answers\(labels, confidence\)",
        ),
        ([[0.3], [0.9]], r"shape \(2, 1\), one score per row: for a sigmoid pass \[1 - p, p\]"),
        ({"logits": [[0.5, 0.5]] * 2}, "gave 2 rows no answer"),
        (Answers([0, 1]), "gave no confidence, without which nothing can exit"),
        (Answers([0, 1, 2], [0.5] * 3), "gave 3 labels for 2 rows"),
        (Answers([0, 1], [0.5] * 3), "gave 3 confidences for 2 rows"),
        (Answers([0, 1], [0.5, 2.0]), "gave confidence 2.0 for row 1"),
        (Answers([0, 1], ["high", "low"]), "gave 2 rows no answer: confidence has dtype"),
        (Answers([0, None], [0.5, 0.5]), "gave 2 rows no answer: labels has 1 missing"),
        (Answers(np.array([1j, 2]), [0.5, 0.5]), "labels of dtype complex128"),
    ],
)
def test_an_output_of_the_wrong_shape_or_type_names_the_model(output: Any, message: str) -> None:
    with pytest.raises(ModelError, match=r"^Model 0 \(<lambda>\) gave .*") as caught:
        Cascade([lambda X: output, Table([[1.0, 0.0]] * 2)], [0.5]).predict([0, 1])
    caught.match(message)
    assert caught.value.model == 0


def test_a_model_that_raises_is_named_with_its_rows_and_the_cause_is_kept() -> None:
    def broken(X: Any) -> Any:
        raise ConnectionError("no route to host")

    fast = Table([[0.9, 0.1], [0.5, 0.5], [0.5, 0.5]])
    cascade = Cascade([fast, broken], [0.8])
    cascade.predict([0])
    before = cascade.statistics.answered.tolist(), cascade.statistics.seconds.tolist()
    with pytest.raises(
        ModelError, match=r"Model 1 \(broken\) failed on 2 rows: ConnectionError: no route to host"
    ) as caught:
        cascade.predict([0, 1, 2])
    assert isinstance(caught.value, RuntimeError)
    assert isinstance(caught.value.__cause__, ConnectionError)
    assert (cascade.statistics.answered.tolist(), cascade.statistics.seconds.tolist()) == before


def test_an_interrupt_is_not_turned_into_a_model_error() -> None:
    def interrupted(X: Any) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Cascade([interrupted, len], [0.5]).predict([0])


# ----------------------------------------------------------------------------------------------
# batches and statistics


@pytest.mark.parametrize("X", [[], np.empty((0, 5)), {"a": np.empty(0)}, ()])
def test_no_rows_give_an_empty_result_and_no_model_is_called(X: Any) -> None:
    def never(X: Any) -> Any:
        raise AssertionError

    result = Cascade([never, never], [0.5]).run(X)
    assert len(result) == 0
    assert result.predictions.dtype == result.exits.dtype == np.intp
    assert result.answered.tolist() == [0, 0]
    assert Cascade([never, never], [0.5], classes=["a", "b"]).predict(X).dtype == np.dtype("U1")


def test_statistics_count_every_row_of_calls_from_several_threads() -> None:
    tables = _tables(100)
    cascade = Cascade([table.__getitem__ for table in tables], [0.7])
    expected = cascade.run(np.arange(100)).answered
    cascade.statistics.reset()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(cascade.predict, [np.arange(100)] * 200))
    assert cascade.statistics.answered.tolist() == (200 * expected).tolist()


def test_a_cascade_of_picklable_models_can_be_sent_to_another_process() -> None:
    cascade = Cascade([Table([[0.9, 0.1]]), Table([[0.5, 0.5]])], [0.8])
    cascade.predict([0])
    again = pickle.loads(pickle.dumps(cascade))
    assert again.run([0]).exits.tolist() == [0]
    assert isinstance(again.statistics, CascadeStatistics)
    assert (again.statistics.rows, cascade.statistics.rows) == (2, 1)
