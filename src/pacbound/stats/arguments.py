"""What a failure probability, a tolerated rate and a count may be; anything else raises with the
remedy.

Shared by every layer above, so that `delta=1.2` reads the same wherever it is passed. Singular
names take one number and give a Python number; plural names take anything array-like and give an
array of the same shape.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from pacbound.errors import InvalidTypeError, InvalidValueError

# Counts above this are no longer exact in float64 arithmetic, which the bounds run in.
LARGEST_COUNT = 2**53

_MOST_CLAIMED = 0.5

Word = TypeVar("Word")


def real_number(value: Any, name: str, what: str) -> float:
    """`value` as a float that is not NaN; `what` says in the error what it should have been."""
    if type(value) is float and value == value:  # noqa: PLR0124, RUF100
        return value
    array = _array(value, name, what)
    if array.ndim != 0 or array.dtype.kind not in "iufO" or value is None:
        raise InvalidTypeError(f"{name}={value!r} is not {what}: expected one number.")
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidTypeError(f"{name}={value!r} is not {what}: expected one number.") from None
    if np.isnan(number):
        raise InvalidValueError(f"{name} is NaN, which is not {what}.")
    return number


def real_numbers(values: Any, name: str, what: str) -> tuple[float, ...]:
    """`values`, one or several, each as a float that is not NaN."""
    listed = np.ravel(np.asarray(values, dtype=object)).tolist()
    return tuple(real_number(value, name, what) for value in listed)


def failure_probability(delta: Any, name: str = "delta") -> float:
    """`delta` as a float in (0, 1), the chance that a guarantee may be wrong."""
    value = real_number(delta, name, "a failure probability")
    if not 0.0 < value < 1.0:
        raise _not_a_failure_probability(delta, name)
    return value


def claimed_delta(delta: Any, name: str = "delta") -> float:
    """`delta` as a float in (0, 0.5], the chance that what is certified is wrong.

    A bound may be asked for at any level, but a claim that is more often wrong than right is a
    confidence that was passed as `delta`.
    """
    value = failure_probability(delta, name)
    if value > _MOST_CLAIMED:
        raise InvalidValueError(
            f"{name}={delta}: {name} is the chance that the claim is wrong; for 95 % confidence "
            "pass 0.05."
        )
    return value


def failure_probabilities(delta: Any, name: str = "delta") -> NDArray[np.float64]:
    """`delta` as float64, every one in (0, 1); one number gives an array without dimensions."""
    if isinstance(delta, float) or _array(delta, name, "failure probabilities").ndim == 0:
        return np.asarray(failure_probability(delta, name))
    values = _reals(delta, name, "failure probabilities")
    bad = ~((values > 0.0) & (values < 1.0))
    if bad.any():
        raise _not_a_failure_probability(values[bad][0], name)
    return values


def tolerated_rate(xi: Any, name: str = "xi") -> float:
    """`xi` as a float in [0, 1), the rate that the user allows."""
    value = real_number(xi, name, "a rate")
    if not 0.0 <= value < 1.0:
        raise InvalidValueError(
            f"{name}={xi} is not a rate to be kept: expected 0 <= {name} < 1. To allow 2 % pass "
            f"{name}=0.02."
        )
    return value


def required_share(target: Any, name: str = "target") -> float:
    """`target` as a float in (0, 1), the share that must be reached."""
    value = real_number(target, name, "a share")
    if not 0.0 < value < 1.0:
        raise InvalidValueError(
            f"{name}={target} is not a share that can be certified: expected 0 < {name} < 1. To "
            f"find 95 % pass {name}=0.95."
        )
    return value


def probabilities(values: Any, name: str) -> NDArray[np.float64]:
    """`values` as float64, every one in [0, 1]."""
    array = _reals(values, name, "probabilities")
    bad = ~((array >= 0.0) & (array <= 1.0))
    if bad.any():
        raise InvalidValueError(
            f"{name} holds {array[bad][0]}, which is not a probability: expected 0 <= {name} <= 1."
        )
    return array


def whole_number(value: Any, name: str, *, least: int = 0) -> int:
    """`value` as one int of at least `least`."""
    if _array(value, name, "a count").ndim != 0:
        raise InvalidTypeError(f"{name}={value!r} is not a count: expected one whole number.")
    return int(whole_numbers(value, name, least=least))


def whole_numbers(values: Any, name: str, *, least: int = 0) -> NDArray[np.int64]:
    """`values` as int64 of at least `least`, without rounding anything and without reading meaning
    into booleans or text.
    """
    array = _array(values, name, "counts")
    if array.dtype.kind == "f":
        array = array.astype(np.promote_types(array.dtype, np.float64))
        fractional = ~(np.isfinite(array) & (array == np.floor(array)))
        if fractional.any():
            raise InvalidValueError(
                f"{name} holds {array[fractional][0]}, which is not a count: expected whole "
                "numbers. Pass counts, not rates."
            )
    elif array.dtype.kind not in "iu":
        raise InvalidTypeError(
            f"{name} has dtype {array.dtype}, which does not hold counts: expected integers. Sum "
            "booleans before passing them."
        )
    if array.size and (array.min() < least or array.max() > LARGEST_COUNT):
        bad = array[(array < least) | (array > LARGEST_COUNT)][0]
        raise InvalidValueError(
            f"{name} holds {bad}, which is not a count: expected {least} to 2**53."
        )
    return array.astype(np.int64)


def truth_value(value: Any, name: str) -> bool:
    """`value` as a bool, without reading meaning into numbers or text."""
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    raise InvalidTypeError(f"{name}={value!r} is not a truth value: expected True or False.")


def generator(rng: Any, name: str = "rng") -> np.random.Generator:
    """`rng`, if random numbers can be drawn from it."""
    if isinstance(rng, np.random.Generator):
        return rng
    raise InvalidTypeError(
        f"{name} is of type {type(rng).__name__}: expected numpy.random.default_rng(seed)."
    )


def is_one_of(value: Any, choices: Iterable[str | None]) -> bool:
    """Whether `value` is one of some words; an array, which compares by its entries, is none."""
    return (value is None or isinstance(value, str)) and value in tuple(choices)


def one_of(value: Word, choices: Sequence[str], name: str) -> Word:
    """`value`, if it is one of the words in `choices`."""
    if not is_one_of(value, choices):
        *others, last = map(repr, choices)
        raise InvalidValueError(
            f"{name}={value!r} is not known: expected {', '.join(others)} or {last}."
        )
    return value


def exact_sum(counts: NDArray[np.int64]) -> int:
    """The sum of `counts`, however large: sums in int64 wrap around without a word."""
    high, low = counts >> 32, counts & 0xFFFFFFFF
    return (int(high.sum()) << 32) + int(low.sum())


def successes_of_trials(successes: Any, trials: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Both as int64 of one shape, no success without a trial."""
    hits, attempts = whole_numbers(successes, "successes"), whole_numbers(trials, "trials")
    hits, attempts = together(successes=hits, trials=attempts)
    if (hits > attempts).any():
        where = np.flatnonzero((hits > attempts).ravel())[0]
        raise InvalidValueError(
            f"{hits.ravel()[where]} successes of {attempts.ravel()[where]} trials cannot be: "
            "expected successes <= trials. Check the order of the arguments."
        )
    return hits, attempts


def together(**arrays: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    """The arrays broadcast to one shape; the keywords are the names that the error will use."""
    if len({array.shape for array in arrays.values()}) == 1:
        return tuple(arrays.values())
    try:
        return np.broadcast_arrays(*arrays.values())
    except ValueError:
        shapes = " and ".join(f"{name} of shape {array.shape}" for name, array in arrays.items())
        raise InvalidValueError(f"{shapes} do not fit together: pass one shape.") from None


def _not_a_failure_probability(delta: Any, name: str) -> InvalidValueError:
    return InvalidValueError(
        f"{name}={delta} is not a failure probability: expected 0 < {name} < 1. For a 95 % "
        f"guarantee pass {name}=0.05."
    )


def _array(values: Any, name: str, what: str) -> NDArray[Any]:
    if np.ma.is_masked(values):
        raise InvalidValueError(
            f"{name} holds masked entries, which are not {what}: pass an array without a mask. "
            "Leaving out what is masked is valid only if the mask does not depend on outcomes."
        )
    try:
        return np.asarray(values)
    except ValueError:
        raise InvalidTypeError(
            f"{name} holds rows of different lengths, which are not {what}: expected one array."
        ) from None


def _reals(values: Any, name: str, what: str) -> NDArray[np.float64]:
    array = _array(values, name, what)
    if array.dtype.kind not in "iuf":
        raise InvalidTypeError(
            f"{name} has dtype {array.dtype}, which does not hold {what}: expected floating-point "
            "numbers."
        )
    if np.isnan(array).any():
        raise InvalidValueError(f"{name} holds NaN, which is not among {what}.")
    return array.astype(np.float64)
