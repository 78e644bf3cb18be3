"""A tally that no rows could have given is refused, also where its digest is right."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pacbound import Tally, documents
from pacbound.errors import CertificateError
from pacbound.tally import EqualWidthBins
from pacbound.tally.probabilities import count_probabilities

SCORES, FLAGS = [0.15, 0.95, 0.95, 0.35], [True, True, False, False]
PROBABILITIES, LABELS = [[0.1, 0.9], [0.8, 0.2], [0.3, 0.7]], [1, 1, 0]
BINS = EqualWidthBins(20)

TALLIES: dict[str, Tally] = {
    "top": Tally.count("calibration", confidence=SCORES, correct=FLAGS),
    "groups": Tally.count(
        "calibration", confidence=SCORES, correct=FLAGS, groups=["a", "b", "b", "a"]
    ),
    "overlapping": Tally.count(
        "calibration",
        confidence=SCORES,
        correct=FLAGS,
        groups={"a": FLAGS, "b": [1, 1, 1, 0], "none": [0] * 4},
    ),
    "per-class": count_probabilities(PROBABILITIES, LABELS, grid=BINS, scope="per-class"),
    "all-labels": count_probabilities(PROBABILITIES, LABELS, grid=BINS, scope="all-labels"),
    "equal mass": Tally.count(
        "calibration", confidence=SCORES, correct=FLAGS, edges="equal-mass", n_bins=2
    ),
    "shield": Tally.count("shield", score=[0.15, -np.inf, 0.95], unsafe=[False, True, True]),
    **{
        f"cascade of {exits} exits": Tally.count(
            "cascade",
            confidence=np.random.default_rng(0).random((5, exits)),
            prediction=np.random.default_rng(1).integers(0, 3, (5, exits + 1)),
            label=[0, 1, 2, 0, 1],
            unseen_labels=1,
        )
        for exits in range(1, 6)
    },
}


def signed(tally: Tally, **changes: Any) -> dict[str, Any]:
    """The document of a tally with some values changed, and a digest that fits them."""
    body = {key: value for key, value in tally.to_dict().items() if key != "digest"} | changes
    return {**body, "digest": documents.digest(body)}


@pytest.mark.parametrize("name", TALLIES)
def test_what_was_counted_is_read(name: str) -> None:
    tally = TALLIES[name]
    assert Tally.from_dict(signed(tally)) == tally
    assert Tally.from_dict(tally.zero().to_dict()) == tally.zero()
    again = replace(tally, sources=frozenset(["another day"]))
    assert Tally.from_dict((tally + again).to_dict()) == tally + again


LAYOUTS: list[tuple[str, dict[str, Any], str]] = [
    ("top", {"kind": "calibrations"}, "which is not a question"),
    ("top", {"kind": ["calibration"]}, "which is not a question"),
    ("groups", {"scope": "group"}, "scope 'group', which no calibration has"),
    ("groups", {"scope": "top"}, "cells of 2 scores"),
    ("top", {"scope": "groups"}, "cells of 0 scores"),
    ("top", {"groups": ["a"]}, "groups where none belong"),
    ("shield", {"scope": "per-class"}, "scope 'per-class', which no shield has"),
    ("groups", {"scope": "per-class"}, "not numbered 0, 1"),
    ("groups", {"groups": ["a", "a"]}, "twice, or out of order"),
    ("groups", {"groups": ["b", "a"]}, "twice, or out of order"),
    ("top", {"outcomes": ["right", "wrong"]}, "other outcomes"),
    ("top", {"outcomes": ["safe", "unsafe"]}, "other outcomes"),
    (
        "top",
        {"outcomes": ["wrong", "right", "other"], "counts": [[0, 1, 0], [1, 0, 0], [1, 1, 0]]},
        "other outcomes",
    ),
    ("shield", {"outcomes": ["unsafe", "safe"]}, "other outcomes"),
    (
        "cascade of 1 exits",
        {"outcomes": ["only_fast", "agree", "only_slow", "neither", "unlabelled"]},
        "other outcomes",
    ),
    ("top", {"grid": {"rule": "dyadic", "bits": 16}}, "a dyadic grid, which no calibration has"),
    ("shield", {"grid": {"rule": "equal-width", "n_bins": 70_000}}, "another grid"),
    (
        "cascade of 1 exits",
        {"width": 6, "cells": [], "counts": [], "rows": 0},
        "cells of 6 scores",
    ),
]
GRIDS: list[tuple[str, dict[str, Any], str]] = [
    (name, {"grid": {"rule": "dyadic", "bits": bits}}, "another grid")
    for name, own in [("shield", 16), ("cascade of 1 exits", 16), ("cascade of 2 exits", 10)]
    for bits in (1, 10, 15, 16, 17, 20, 30)
    if bits != own
]
CELLS: list[tuple[str, dict[str, Any], str]] = [
    ("groups", {"cells": [[-1, 2], [0, 6], [1, 18]]}, "more groups than names"),
    ("groups", {"cells": [[0, 2], [0, 6], [2, 18]]}, "more groups than names"),
    ("top", {"cells": [[-1], [6], [18]]}, "cells outside its grid"),
    ("top", {"cells": [[2], [6], [20]]}, "cells outside its grid"),
    ("shield", {"cells": [[-2], [9830], [62259]]}, "cells outside its grid"),
    ("top", {"cells": [[2], [2], [18]]}, "twice, or out of order"),
    ("top", {"cells": [[6], [2], [18]]}, "twice, or out of order"),
    ("groups", {"cells": [[0, 2], [1, 6], [0, 18]]}, "twice, or out of order"),
    ("top", {"cells": [[2], [6]]}, "more or fewer cells than counts"),
    ("shield", {"counts": [[1, 0], [0, 1], [0, 1]]}, "lost at their start"),
]
COUNTS: list[tuple[str, dict[str, Any], str]] = [
    ("top", {"rows": 5}, "not one of 5 rows"),
    ("top", {"rows": -4}, "not one of -4 rows"),
    ("top", {"counts": [[0, 5], [-2, 0], [1, 0]]}, "not one of 4 rows"),
    (
        "top",
        {"counts": [[2**62, 2**62], [2**62, 2**62], [4, 0]]},
        "add up to 18446744073709551620",
    ),
    (
        "top",
        {"rows": 2**53 + 1, "counts": [[0, 2**53 - 3], [1, 1], [1, 1]]},
        "not one of 9007199254740993 rows",
    ),
    ("overlapping", {"rows": 2}, "not one of 2 rows"),
    ("all-labels", {"rows": 4}, "not one of 4 rows"),
    ("all-labels", {"rows": 4, "groups": [], "cells": [], "counts": []}, "not one of 4 rows"),
]
TYPES: list[tuple[str, dict[str, Any], str]] = [
    ("top", {"rows": 4.0}, "integers"),
    ("top", {"rows": "4"}, "integers"),
    ("top", {"counts": [[0, 1.9], [1, 0], [1, 1]]}, "not all integers"),
    ("top", {"counts": [[0, True], [1, 0], [1, 1]]}, "not all integers"),
    ("top", {"counts": [[0, "1"], [1, 0], [1, 1]]}, "not all integers"),
    ("top", {"cells": [[2.5], [6], [18]]}, "not all integers"),
    ("top", {"cells": [2, 6, 18]}, "not all lists"),
    ("top", {"counts": [[0, 1, 1, 0], [1, 1]]}, "not all lists"),
    ("groups", {"cells": [[0], [2], [0], [6], [1], [18]]}, "not all lists"),
    ("groups", {"groups": [1, 2]}, "not a list of names"),
    ("groups", {"groups": "ab"}, "not a list of names"),
    ("top", {"sources": "abc"}, "not a list of names"),
    ("top", {"cells": [[2], [6], [2**64]]}, "cannot be read"),
]


@pytest.mark.parametrize(
    ("name", "changes", "message"), [*LAYOUTS, *GRIDS, *CELLS, *COUNTS, *TYPES]
)
def test_what_no_rows_give_is_refused(name: str, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(CertificateError, match=message):
        Tally.from_dict(signed(TALLIES[name], **changes))


def test_a_tally_of_sets_with_a_missing_label_is_loaded(tmp_path: Path) -> None:
    tally = Tally.count("sets", [[0.9, 0.1], [0.4, 0.6]], [0, None])
    assert tally.cells[0].tolist() == [-1]
    tally.save(tmp_path / "sets.json")
    assert Tally.load(tmp_path / "sets.json") == tally
