"""Whatever is passed to a public function, what comes out is a result or an error of pacbound.

Nothing here is a list of functions: they are found by name, their arguments by their signatures,
and each argument in turn is replaced by what users pass by mistake. A new function whose arguments
have names of their own gives `LEGAL` a value for them.
"""

from __future__ import annotations

import asyncio
import inspect
import warnings
from collections.abc import Callable, Iterator
from dataclasses import is_dataclass
from functools import partial
from importlib import import_module
from itertools import chain, combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pacbound import (
    Cascade,
    Monitor,
    PACCalibrator,
    Shield,
    Tally,
    calibrate,
    certify_abstention,
    certify_cascade,
    certify_false_alarms,
    certify_recall,
    certify_shield,
    certify_together,
)
from pacbound.errors import PacboundError
from pacbound.monitor import Shadow
from pacbound.tally.questions import QUESTIONS

PACKAGES = (
    "pacbound",
    "pacbound.baselines",
    "pacbound.calibration",
    "pacbound.cascade",
    "pacbound.monitor",
    "pacbound.planning",
    "pacbound.claims.false_alarms",
    "pacbound.claims.recall",
    "pacbound.claims.sets",
    "pacbound.claims.shield",
    "pacbound.tally",
)
N = 40
PLACE = np.arange(N)
SCORE = (PLACE * 7 % N) / N
RIGHT = PLACE % 3 > 0
CLASS = PLACE % 2
TABLE = np.column_stack([1 - SCORE, SCORE])
TALLY = Tally.count("calibration", confidence=SCORE, correct=RIGHT)
CASCADE = certify_cascade(
    SCORE[:, None].repeat(20, 0),
    np.ones((20 * N, 2)),
    np.ones(20 * N),
    xi=0.05,
    delta=0.01,
    costs=[1, 2],
)
try:
    import polars
except ImportError:
    # A core install has no frames, and refuses them.
    FRAME: Any = None
else:
    FRAME = polars.DataFrame({"c": SCORE, "ok": RIGHT})


def _model(rows: Any) -> Any:
    return np.column_stack([np.zeros(len(rows)), np.ones(len(rows))])


LEGAL: dict[str, Any] = {
    "X": np.zeros((3, 2)),
    "about": None,
    "backup": lambda _: 0,
    "batches": [np.zeros((3, 2))],
    "batch": np.zeros((3, 2)),
    "bins": 10,
    "certificate": CASCADE,
    "certificate_or_threshold": 0.5,
    "certificate_or_thresholds": [0.5],
    "certificates": {"a": CASCADE},
    "claims": {"a": partial(calibrate, SCORE, RIGHT)},
    "confidence": SCORE,
    "confidences": SCORE,
    "correct": RIGHT,
    "costs": [1.0, 2.0],
    "danger": lambda _: 0.5,
    "delta": 0.05,
    "draws": 10,
    "epsilon": 0.1,
    "document": TALLY.to_dict(),
    "estimates": SCORE,
    "estimator": None,
    "expected": 0.01,
    "frame": FRAME,
    "group": "a",
    "question": QUESTIONS["calibration"],
    "intervals": np.column_stack([SCORE / 2, SCORE]),
    "label": CLASS,
    "labels": CLASS,
    "logits": TABLE,
    "looks": [500, 1000],
    "losses": 0.9,
    "models": [_model, _model],
    "monitor": Monitor(CASCADE, delta=0.05),
    "n_bins": 4,
    "n_models": 2,
    "other": PACCalibrator(delta=0.05).fit(TABLE, CLASS),
    "outcomes": {"losses": [False] * 3},
    "columns": {"confidence": "c", "correct": "ok"},
    "path": "there.json",
    "paths": "nowhere.csv",
    "pilot": TALLY,
    "policy": lambda _: 1,
    "positive": RIGHT,
    "prediction": CLASS,
    "predictions": np.column_stack([CLASS, CLASS]),
    "probabilities": TABLE,
    "rate": 0.1,
    "rng": np.random.default_rng(0),
    "rows": 200,
    "scores": SCORE,
    "score": SCORE,
    "seed": 3,
    "share": 0.5,
    "sizes": [100],
    "expert": lambda rows: np.ones(len(rows)),
    "answers": None,
    "slow_error": 0.1,
    "source": "nowhere.csv",
    "successes": 3,
    "tally": TALLY,
    "target": 0.2,
    "temperature": 1.0,
    "threshold": 0.5,
    "thresholds": [0.5],
    "trials": 10,
    "unsafe": RIGHT,
    "wait": False,
    "where": "here",
    "xi": 0.1,
    "y": CLASS,
    "shadow": Shadow(0.5, key="a key"),
    "take": print,
}
ODD: dict[str, Any] = {
    "an integer of NumPy": np.int64(3),
    "a float of NumPy": np.float32(0.05),
    "a float in an array": np.array(0.05),
    "an integer in an array": np.array(3),
    "a truth value": True,
    "text": "text",
    "a path": Path("nowhere.json"),
    "nothing": None,
    "NaN": float("nan"),
    "a negative number": -1,
    "a number out of all range": 10**30,
    "an empty list": [],
    "an empty array": np.array([]),
    "a list of one": [0.5],
    "a mapping": {"a": 1},
    "a tuple": (0.5, None),
    "an object": object(),
    "a function": lambda *_: None,
}


OPTIONAL = ("correct", "positive", "unsafe", "predictions", "labels", "delta", "target", "rng")
"""What a call may need although its signature can do without: the first few that make it legal."""

INTERNAL = (
    *("claim", "claimed", "counted", "from_claim", "from_front", "recomputed"),
    *("go_on_from", "leave_out", "of", "take_drawn", "update_rows"),
)
"""Methods by which the package speaks to itself."""

CHEAP = {"draws": 10, "pause": 0.0, "retries": 0, "sizes": [100]}
"""What keeps a call short."""


def _public() -> dict[str, Callable[..., Any]]:
    """The functions, and the classes that are made by whoever uses them, by their names."""
    found: dict[Any, str] = {}
    for package in PACKAGES:
        module = import_module(package)
        for name in getattr(module, "__all__", ()):
            value = getattr(module, name)
            made = inspect.isclass(value) and not (is_dataclass(value) or is_protocol(value))
            if inspect.isfunction(value) or (made and not issubclass(value, Exception)):
                found.setdefault(value, f"{package}.{name}")
    return {name: value for value, name in found.items()}


def is_protocol(value: type) -> bool:
    return bool(getattr(value, "_is_protocol", False))


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [p for p in inspect.signature(function).parameters.values() if p.kind not in several]


def _called(function: Callable[..., Any], arguments: dict[str, Any]) -> None:
    result = function(**arguments)
    if inspect.iscoroutine(result):
        asyncio.run(result)


def _legal_arguments(function: Callable[..., Any]) -> dict[str, Any]:
    """Arguments with which the call gives a result, or the required ones if none are found."""
    names = {parameter.name for parameter in _parameters(function)}
    required = {
        parameter.name: LEGAL[parameter.name]
        for parameter in _parameters(function)
        if parameter.default is parameter.empty
    }
    cheap = {name: value for name, value in CHEAP.items() if name in names}
    others = [name for name in OPTIONAL if name in names and name not in required]
    for more in chain.from_iterable(combinations(others, size) for size in range(4)):
        arguments = {**required, **cheap, **{name: LEGAL[name] for name in more}}
        try:
            _called(function, arguments)
        except (PacboundError, FileNotFoundError):
            continue
        return arguments
    return {**required, **cheap}


def _methods() -> Iterator[tuple[str, Callable[..., Any]]]:
    """The public methods of what users hold in their hands."""
    for held in OBJECTS:
        for name, member in inspect.getmembers_static(held):
            is_method = inspect.isfunction(member) or isinstance(member, classmethod)
            if is_method and not name.startswith("_") and name not in INTERNAL:
                yield f"{type(held).__name__}.{name}", getattr(held, name)


OBJECTS = (
    TALLY,
    CASCADE,
    calibrate(SCORE, RIGHT, delta=0.05),
    calibrate(SCORE, RIGHT, groups=CLASS, delta=0.05),
    certify_abstention(SCORE, RIGHT, xi=0.1, delta=0.05),
    certify_recall(SCORE, RIGHT, target=0.5, delta=0.05),
    certify_false_alarms(SCORE, RIGHT, xi=0.5, delta=0.05),
    certify_shield(SCORE, RIGHT, xi=0.5, delta=0.05),
    certify_together({"a": partial(calibrate, SCORE, RIGHT)}, delta=0.05),
    Cascade([_model, _model], [0.5]),
    Monitor(CASCADE, delta=0.05),
    PACCalibrator(delta=0.05).fit(TABLE, CLASS),
    Shield(len, len, len, 0.5),
)
CALLS = {**_public(), **dict(_methods())}


def test_every_argument_of_a_public_function_has_a_legal_value() -> None:
    lacking = {
        f"{name}: {parameter.name}"
        for name, function in CALLS.items()
        for parameter in _parameters(function)
        if parameter.default is parameter.empty and parameter.name not in LEGAL
    }
    assert not lacking, f"give LEGAL a value for {sorted(lacking)}"


@pytest.mark.parametrize("name", CALLS)
def test_an_odd_argument_gives_a_result_or_an_error_of_pacbound(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    function = CALLS[name]
    legal = _legal_arguments(function)
    raised = []
    for parameter in _parameters(function):
        for what, odd in ODD.items():
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    _called(function, {**legal, parameter.name: odd})
            except (PacboundError, FileNotFoundError):
                # A file that is not there may be said in Python's own words.
                continue
            except Exception as error:  # what must not come out
                raised.append(f"{parameter.name} = {what}: {type(error).__name__}: {error}")
    assert not raised, "\n".join(raised)
