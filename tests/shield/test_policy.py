"""The shield fires at the threshold, stays fired until reset, and brakes whenever the danger is in
doubt."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pacbound import Shield, calibrate, certify_shield
from pacbound.claims.certificate import certificate_from_dict
from pacbound.documents import digest
from pacbound.errors import CertificateError, InvalidTypeError, InvalidValueError
from pacbound.shield import VectorShield


def guard(danger: Callable[[Any], Any], threshold: Any) -> Shield:
    return Shield(lambda _: "drive", lambda _: "brake", danger, threshold)


def certificate(xi: float = 0.1) -> Any:
    rng = np.random.default_rng(0)
    unsafe = rng.random(500) < 0.3
    return certify_shield(
        np.where(unsafe, rng.beta(5, 2, 500), rng.beta(1, 5, 500)), unsafe, xi=xi, delta=0.05
    )


def saying(value: Any) -> Callable[[Any], Any]:
    return lambda _: value


def raising(error: BaseException) -> Callable[[Any], Any]:
    def danger(_: Any) -> Any:
        raise error

    return danger


def test_it_fires_at_the_threshold_and_stays_fired_until_reset() -> None:
    shield = guard(lambda x: x, 0.5)
    assert [shield(x) for x in (0.0, np.nextafter(0.5, 0))] == ["drive", "drive"]
    assert not shield.fired
    assert [shield(x) for x in (0.5, 0.0, 0.0)] == ["brake"] * 3
    assert shield.fired
    assert shield.danger == 0.5
    shield.reset()
    assert not shield.fired
    assert np.isnan(shield.danger)
    assert shield(0.2) == "drive"
    assert shield.failures == 0


@pytest.mark.parametrize(
    "value",
    [
        0.25,
        1,
        0,
        np.float32(0.25),
        np.array(0.25),
        np.array([0.25]),
        np.array([[0.25]], np.float16),
        [0.25],
        1 + 1e-7,
    ],
)
def test_one_number_in_any_shape_is_a_danger(value: Any) -> None:
    shield = guard(saying(value), 0.5)
    assert shield(None) == ("brake" if float(np.asarray(value).ravel()[0]) >= 0.5 else "drive")
    assert shield.failures == 0
    assert 0 <= shield.danger <= 1


@pytest.mark.parametrize("threshold", [0.5, 0.0, 1.0, np.inf])
@pytest.mark.parametrize(
    "danger",
    [
        *map(
            saying,
            [
                float("nan"),
                np.float32("nan"),
                None,
                "0.1",
                True,
                np.bool_(False),
                -0.1,
                1.1,
                np.inf,
                -np.inf,
                10**30,
            ],
        ),
        *map(
            saying,
            [
                1j,
                [],
                [0.1, 0.1],
                np.array([]),
                {"danger": 0.1},
                np.ma.masked_array([0.1], [True]),
                object(),
                b"0.1",
            ],
        ),
        *map(
            raising,
            [
                ValueError("no camera"),
                ZeroDivisionError(),
                MemoryError(),
                StopIteration(),
                RecursionError(),
            ],
        ),
    ],
)
def test_what_is_no_danger_brakes_and_is_recorded(
    danger: Callable[[Any], Any], threshold: float
) -> None:
    shield = guard(danger, threshold)
    assert shield(None) == "brake"
    assert shield.fired
    assert (shield.failures, np.isnan(shield.danger)) == (1, True)
    assert isinstance(shield.last_error, Exception)
    shield(None)
    assert shield.failures == 1, "once it has fired, the danger is not asked again"
    shield.reset()
    shield(None)
    assert shield.failures == 2


def test_an_interrupt_is_not_swallowed() -> None:
    with pytest.raises(KeyboardInterrupt):
        guard(raising(KeyboardInterrupt()), 0.5)(None)


def test_a_certificate_brings_its_threshold() -> None:
    certified = certificate()
    shield = guard(lambda x: x, certified)
    assert shield.threshold == certified.threshold
    assert 0 < shield.threshold < 1
    assert shield(np.nextafter(certified.threshold, 0)) == "drive"
    assert shield(certified.threshold) == "brake"


def test_a_refused_certificate_always_brakes_without_asking() -> None:
    refused = certificate(xi=0.001)
    assert not refused.certified
    shield = guard(raising(AssertionError("asked")), refused)
    assert [shield(None) for _ in range(3)] == ["brake"] * 3
    assert shield.failures == 0


def test_the_danger_is_compared_in_float64() -> None:
    # In float16, as NumPy compares a float16 with a Python float, the two are equal.
    threshold = 45889 / 2**16
    danger = np.float16(0.7)
    assert float(danger) < threshold
    assert bool(danger >= threshold)
    assert guard(saying(danger), threshold)(None) == "drive"
    assert VectorShield(
        saying(np.ones(1)), saying(np.zeros(1)), saying(np.array([danger])), threshold, num_envs=1
    )(None) == [1.0]


@pytest.mark.parametrize("mended", [False, True])
def test_a_changed_certificate_is_not_used(mended: bool) -> None:
    document = json.loads(json.dumps(certificate().to_dict()))
    document["claim"]["tables"][0]["threshold"] = 0.984375
    if mended:
        document["claim_digest"] = digest(document["claim"])
    with pytest.raises(CertificateError, match="Do not use it"):
        guard(lambda x: x, certificate_from_dict(document))


@pytest.mark.parametrize(
    ("threshold", "error"),
    [
        (1.5, InvalidValueError),
        (-0.1, InvalidValueError),
        (float("nan"), InvalidValueError),
        ("0.5", InvalidValueError),
        (None, InvalidTypeError),
        (True, InvalidTypeError),
        ([0.5], InvalidTypeError),
        (calibrate([0.9], [1], delta=0.1), InvalidTypeError),
    ],
)
def test_what_is_no_threshold_is_refused(threshold: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        guard(lambda x: x, threshold)


class Recurrent:
    """Predicts as stable-baselines3 does: the state goes out with the action and comes back with
    the next observation."""

    def __init__(self) -> None:
        self.seen: list[tuple[Any, Any]] = []

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None
    ) -> tuple[Any, Any]:
        self.seen.append((state, episode_start))
        return observation, (0 if state is None else state) + 1

    def __call__(self, observation: Any) -> Any:
        raise AssertionError("predict is what gives an action")


@pytest.mark.parametrize(
    "ask", [lambda model: model.predict, lambda model: partial(model.predict, episode_start=None)]
)
def test_the_method_of_an_object_that_predicts_is_asked_as_the_object_is(ask: Any) -> None:
    model = Recurrent()
    shield = Shield(ask(model), lambda _: "brake", lambda _: 0.1, 0.5)
    assert [shield(x) for x in (1, 2)] == [1, 2]
    assert [state for state, _ in model.seen] == [None, 1]


def test_a_certificate_may_be_the_path_of_its_file(tmp_path: Path) -> None:
    certificate().save(tmp_path / "shield.json")
    assert guard(saying(0.1), tmp_path / "shield.json").threshold == certificate().threshold
    with pytest.raises(InvalidValueError, match="is not the path of a certificate"):
        guard(saying(0.1), "typo.json")


def test_an_object_that_predicts_is_asked_by_it_and_keeps_its_state_until_reset() -> None:
    model = Recurrent()
    shield = Shield(model, saying("brake"), saying(0.1), 0.5)
    assert [shield(i) for i in range(3)] == [0, 1, 2]
    shield.reset()
    shield(3)
    assert [state for state, _ in model.seen] == [None, 1, 2, None]


LSTM_STATE = np.zeros((1, 1, 8)), np.zeros((1, 1, 8))


@pytest.mark.parametrize("state", [LSTM_STATE, LSTM_STATE[0]])
@pytest.mark.parametrize("role", ["policy", "backup"])
def test_a_function_that_gives_the_state_of_a_recurrent_model_is_refused(
    role: str, state: Any
) -> None:
    parts: dict[str, Any] = {"policy": saying(0), "backup": saying(0), role: saying((1, state))}
    shield = Shield(**parts, danger=lambda x: x, certificate_or_threshold=0.5)
    with pytest.raises(InvalidTypeError, match=rf"The {role} gives a state .* model\.predict"):
        shield(0.25 if role == "policy" else 0.75)


class Counts:
    """Counts its steps since the reset; as a policy, a backup and a danger."""

    def __init__(self) -> None:
        self.steps, self.resets = 0, list[Any]()

    def __call__(self, observation: Any) -> Any:
        self.steps += 1
        return min(1.0, self.steps / 8)

    def predict(self, observation: Any) -> Any:
        return self(observation), None

    def reset(self, mask: Any = None) -> None:
        self.steps = 0
        self.resets.append(None if mask is None else mask.tolist())


@pytest.mark.parametrize("ask", [lambda x: x, lambda x: x.predict, lambda x: partial(x.predict)])
def test_what_can_be_reset_is_reset_with_the_shield(ask: Any) -> None:
    policy, backup, danger = Counts(), Counts(), Counts()
    shield = Shield(ask(policy), ask(backup), danger, 0.5)
    for _ in range(2):
        assert [shield(0) for _ in range(5)] == [1 / 8, 2 / 8, 3 / 8, 1 / 8, 2 / 8]
        shield.reset()
    assert policy.resets == backup.resets == danger.resets == [None, None]


# ---- parallel environments


def test_a_vector_shield_is_a_shield_for_each_environment() -> None:
    rng = np.random.default_rng(5)
    n = 7
    vector = VectorShield(lambda x: np.ones(n), lambda x: np.zeros(n), lambda x: x, 0.8, num_envs=n)
    singles = [Shield(lambda _: 1.0, lambda _: 0.0, lambda x: x, 0.8) for _ in range(n)]
    for _ in range(300):
        danger = rng.random(n)
        danger[rng.random(n) < 0.02] = rng.choice([np.nan, np.inf, -1.0])
        assert vector(danger).tolist() == [
            single(float(x)) for single, x in zip(singles, danger, strict=True)
        ]
        assert vector.fired.tolist() == [single.fired for single in singles]
        assert vector.failures.tolist() == [single.failures for single in singles]
        np.testing.assert_array_equal(vector.danger, [single.danger for single in singles])
        begun = rng.random(n) < 0.2
        vector.reset(begun)
        for single in np.flatnonzero(begun):
            singles[single].reset()
    assert vector.failures.sum() > 0


@pytest.mark.parametrize(
    "danger",
    [
        *map(
            saying,
            [0.1, [0.1], [0.1] * 4, [[0.1] * 3], None, ["a"] * 3, [True] * 3, [0.1, None, 0.1]],
        ),
        raising(ValueError("no camera")),
    ],
)
def test_a_danger_that_does_not_fit_the_environments_brakes_all_of_them(
    danger: Callable[[Any], Any],
) -> None:
    shield = VectorShield(saying(np.ones(3)), saying(np.zeros(3)), danger, np.inf, num_envs=3)
    assert shield(None).tolist() == [0, 0, 0]
    assert shield.failures.tolist() == [1, 1, 1]
    assert isinstance(shield.last_error, Exception)


def test_a_failure_in_one_environment_brakes_that_one_alone() -> None:
    shield = VectorShield(
        saying(np.ones(3)),
        saying(np.zeros(3)),
        saying([[0.1], [np.nan], [0.2]]),
        np.inf,
        num_envs=3,
    )
    assert shield(None).tolist() == [1, 0, 1]
    assert shield.failures.tolist() == [0, 1, 0]
    assert "environment 1" in str(shield.last_error)
