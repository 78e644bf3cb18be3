"""Whatever holds the probabilities and the labels, the same calls give the same claim."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pacbound import PACCalibrator, calibrate
from pacbound.claims.calibration_certificate import CalibrationCertificate
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.tally import top_label

NAMES = np.array(["bird", "cat", "dog"])
SCOPES = ["top", "per-class", "all-labels"]
Convert = Callable[[Any], Any]


class OnlyDLPack:
    """Memory that is reached by the DLPack protocol and in no other way."""

    def __init__(self, array: Any) -> None:
        self._array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self._array.__dlpack_device__()


def _rows() -> tuple[Any, Any]:
    """Probabilities in float32, which every holder keeps exactly, and the column of each true
    class."""
    rng = np.random.default_rng(0)
    table = rng.dirichlet([1.0, 0.7, 0.4], size=2000).astype(np.float32)
    table[:4] = [[0.75, 0.25, 0.0], [1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.0, 0.25, 0.75]]
    return table, (rng.random((2000, 1)) > table.cumsum(axis=1)).sum(axis=1).clip(0, 2)


def _torch(array: Any) -> Any:
    return pytest.importorskip("torch").from_numpy(np.array(array))


def _torch_with_gradient(array: Any) -> Any:
    tensor = _torch(array)
    return tensor.requires_grad_() * 1 if tensor.is_floating_point() else tensor


def _torch_not_contiguous(array: Any) -> Any:
    wide = _torch(np.repeat(np.array(array), 2, axis=0))[::2]
    assert not wide.is_contiguous()
    return wide


def _torch_transposed(array: Any) -> Any:
    return (
        _torch(np.ascontiguousarray(np.array(array).T)).T if np.ndim(array) == 2 else _torch(array)
    )


def _jax(array: Any) -> Any:
    return pytest.importorskip("jax.numpy").asarray(array)


def _pandas(array: Any) -> Any:
    pd = pytest.importorskip("pandas")
    index = np.arange(len(array))[::-1]
    return (
        pd.DataFrame(array, columns=list(NAMES), index=index)
        if np.ndim(array) == 2
        else pd.Series(array, index=index)
    )


def _pandas_nullable(array: Any) -> Any:
    return _pandas(array).convert_dtypes()


CONVERSIONS: dict[str, Convert] = {
    "numpy float64": lambda array: array.astype(np.float64),
    "numpy in column order": np.asfortranarray,
    "numpy in other byte order": lambda array: array.astype(array.dtype.newbyteorder(">")),
    "numpy objects": lambda array: array.astype(object),
    "masked array without masks": np.ma.masked_array,
    "list": lambda array: array.tolist(),
    "tuple": lambda array: (
        tuple(map(tuple, array.tolist())) if array.ndim == 2 else tuple(array.tolist())
    ),
    "memoryview": lambda array: np.ascontiguousarray(array).data,
    "torch": _torch,
    "torch with gradient": _torch_with_gradient,
    "torch, not contiguous": _torch_not_contiguous,
    "torch, transposed": _torch_transposed,
    "jax": _jax,
    "pandas": _pandas,
    "pandas, nullable": _pandas_nullable,
    "only DLPack": OnlyDLPack,
    "only DLPack, from torch": lambda array: OnlyDLPack(_torch(array)),
}


@pytest.mark.parametrize("kind", CONVERSIONS)
@pytest.mark.parametrize(
    "edges",
    [None, [0.0, 0.5, 0.75, 1.0], "equal-mass"],
    ids=["equal width", "given", "equal mass"],
)
def test_calibrate_makes_the_same_claim(kind: str, edges: Any) -> None:
    table, labels = _rows()
    convert = CONVERSIONS[kind]
    confidence, prediction = top_label(convert(table))
    assert np.array_equal(prediction, table.argmax(axis=1))
    expected = calibrate(table.max(axis=1), table.argmax(axis=1) == labels, delta=0.01, edges=edges)
    edges = convert(np.array(edges)) if isinstance(edges, list) else edges
    for correct in (
        prediction == labels,
        (prediction == labels).astype(np.uint8),
        (prediction == labels).astype(np.float32),
    ):
        certificate = calibrate(convert(confidence), convert(correct), delta=0.01, edges=edges)
        assert certificate.claim_digest == expected.claim_digest
        assert np.array_equal(
            certificate.interval(convert(confidence)), expected.interval(table.max(axis=1))
        )


def _certificate_of_a_pipeline(scope: Any) -> tuple[CalibrationCertificate, Any, Any]:
    pytest.importorskip("sklearn")
    from sklearn.datasets import make_classification
    from sklearn.frozen import FrozenEstimator
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from pacbound import PACClassifier

    class Single(LogisticRegression):  # type: ignore[misc]
        """Up to scikit-learn 1.8 it answers float32 with float64, which not every holder keeps."""

        def predict_proba(self, X: Any) -> Any:
            return super().predict_proba(X).astype(np.float32)

    rows, y = make_classification(2000, n_informative=4, n_classes=3, flip_y=0.3, random_state=0)
    rows = rows.astype(np.float32)
    pipeline = make_pipeline(StandardScaler(), Single()).fit(rows[:1000], NAMES[y[:1000]])
    model = PACClassifier(FrozenEstimator(pipeline), scope=scope).fit(rows[1000:], NAMES[y[1000:]])
    return model.certificate_, pipeline.predict_proba(rows[1000:]), y[1000:]


@pytest.mark.parametrize("kind", CONVERSIONS)
@pytest.mark.parametrize("scope", SCOPES)
def test_a_scikit_learn_pipeline_with_string_labels_makes_the_claim_of_its_probabilities(
    kind: str, scope: Any
) -> None:
    expected, table, labels = _certificate_of_a_pipeline(scope)
    assert table.dtype == np.float32
    convert = CONVERSIONS[kind]
    calibrator = PACCalibrator(scope=scope).fit(convert(table), convert(labels))
    assert calibrator.certificate_.claim_digest == expected.claim_digest


@pytest.mark.parametrize("place", ["probabilities", "confidence"])
def test_a_torch_bfloat16_is_refused_with_the_remedy(place: str) -> None:
    torch = pytest.importorskip("torch")
    table, labels = _rows()
    half = _torch(table).to(torch.bfloat16)
    with pytest.raises(
        InvalidTypeError,
        match=rf"{place} is a Tensor that NumPy cannot read.*BFloat16.*values\.float\(\)",
    ):
        (
            PACCalibrator().fit(half, labels)
            if place == "probabilities"
            else calibrate(half[:, 0], labels == 0, delta=0.01)
        )
    assert PACCalibrator().fit(half.float(), labels).certificate_.n == 2000


def test_missing_values_of_a_frame_are_refused() -> None:
    pd = pytest.importorskip("pandas")
    with pytest.raises(InvalidValueError, match=r"probabilities\[1\] is nan"):
        PACCalibrator().fit(pd.DataFrame({"a": [0.5, None], "b": [0.5, 0.5]}), [0, 1])
    with pytest.raises((InvalidTypeError, InvalidValueError), match="labels"):
        PACCalibrator().fit([[0.5, 0.5], [0.5, 0.5]], pd.Series([0, None], dtype="Int64"))
