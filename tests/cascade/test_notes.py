"""Beside the claim a cascade says what speaks for models that are named in the wrong order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pacbound import certify_cascade, load_certificate
from pacbound.claims.cascade.words import noted
from pacbound.report import write_report

N = 1500
SAID = "the exits seem to beat the slow model"


def _rows(order: int = 1) -> dict[str, Any]:
    """Two models that are right in 60 and in 95 % of the rows; `order` -1 swaps them."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, N)
    models = [np.where(rng.random(N) < right, labels, (labels + 1) % 3) for right in (0.6, 0.95)]
    return {
        "confidence": rng.random(N),
        "prediction": np.column_stack(models[::order]),
        "label": labels,
    }


def _certified(order: int, **options: Any) -> Any:
    return certify_cascade(**_rows(order), xi=0.05, delta=0.05, **options)


@pytest.mark.parametrize("options", [{}, {"groups": np.arange(N) % 2}])
def test_models_in_the_wrong_order_are_noted_and_others_are_not(options: dict[str, Any]) -> None:
    assert SAID not in _certified(1, **options).summary()
    swapped = _certified(-1, **options)
    assert swapped.certified
    assert f"{SAID}: only the exit is right in" in swapped.summary()
    assert "the slow one comes last" in swapped.summary()


def test_the_note_is_on_the_page_and_comes_back_from_a_file(tmp_path: Path) -> None:
    swapped = _certified(-1)
    swapped.save(tmp_path / "swapped.json")
    assert load_certificate(tmp_path / "swapped.json").summary() == swapped.summary()
    write_report([tmp_path / "swapped.json"], tmp_path / "page.html")
    assert SAID in (tmp_path / "page.html").read_text()


def test_exits_seem_to_beat_the_slow_model_from_a_sign_test_at_one_in_a_thousand_on() -> None:
    """Nine gains and no loss have the chance 1/512 if either is equally likely, ten 1/1024."""
    assert not noted({}, gains=9, losses=0)
    (line,) = noted({}, gains=10, losses=0)
    assert "right in 10 rows that exit early, and only the slow model in 0" in str(line)
    assert not noted({}, gains=0, losses=0)
