"""Tallies add exactly, in any order and any split, and survive their documents."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from pacbound import Tally
from pacbound.errors import (
    CertificateError,
    InvalidTypeError,
    InvalidValueError,
    RepeatedSourceError,
)
from pacbound.tally import EqualWidthBins, table
from pacbound.tally.grids import DyadicGrid
from pacbound.tally.probabilities import count_probabilities
from pacbound.tally.questions import QUESTIONS
from pacbound.tally.questions.question import Judged
from pacbound.tally.table import CountTable

edge_scores = st.sampled_from([0.0, 0.05, 0.15, 0.3, 0.35, 0.6, 0.7, 1.0])
rows = st.lists(
    st.tuples(edge_scores | st.floats(0, 1), st.booleans(), st.sampled_from("abc")), max_size=40
)


def tally_of(part: list[tuple[float, bool, str]], use: str) -> Tally:
    scores = np.array([row[0] for row in part], dtype=float)
    flags = np.array([row[1] for row in part], dtype=bool)
    groups = np.array([row[2] for row in part], dtype="U1")
    if use == "calibration":
        return Tally.count("calibration", confidence=scores, correct=flags)
    if use == "groups":
        return Tally.count("calibration", confidence=scores, correct=flags, groups=groups)
    if use == "overlapping":
        return Tally.count(
            "calibration",
            confidence=scores,
            correct=flags,
            groups={"right": flags, "a": groups == "a"},
        )
    if use == "shield":
        return Tally.count("shield", score=scores, unsafe=flags)
    predictions = np.column_stack([groups, np.where(flags, groups, "a")])
    if use == "cascade of three":
        return Tally.count(
            "cascade",
            confidence=np.column_stack([scores, scores**2]),
            prediction=predictions[:, [0, 1, 1]],
            label=groups,
            classes=["a", "b", "c"],
        )
    return Tally.count(
        "cascade",
        confidence=scores,
        prediction=predictions,
        label=groups,
        classes=["a", "b", "c"],
    )


USES = [
    "calibration",
    "groups",
    "overlapping",
    "shield",
    "cascade",
    "cascade of three",
]


# In two rows a score may be the outcome by chance, and is asked about.
@pytest.mark.filterwarnings("ignore:.* are equal in every row:UserWarning")
@pytest.mark.parametrize("use", USES)
@given(data=st.data(), everything=rows)
def test_the_sum_over_any_split_in_any_order_is_the_tally_of_the_whole(
    use: str, data: st.DataObject, everything: list[tuple[float, bool, str]]
) -> None:
    places = data.draw(
        st.lists(st.integers(0, 3), min_size=len(everything), max_size=len(everything))
    )
    parts = [
        tally_of([row for row, place in zip(everything, places, strict=True) if place == part], use)
        for part in range(4)
    ]
    order = data.draw(st.permutations(parts))
    assert sum(order) == tally_of(everything, use)


@pytest.mark.parametrize("use", USES)
@given(everything=rows)
def test_zero_changes_nothing_and_a_document_gives_the_tally_back(
    use: str, everything: list[tuple[float, bool, str]]
) -> None:
    tally = tally_of(everything, use)
    assert tally + tally.zero() == tally
    assert tally.zero() + tally == tally
    again = Tally.from_dict(json.loads(json.dumps(tally.to_dict())))
    assert again == tally
    assert again.sources == tally.sources


def test_counting_the_same_rows_twice_is_refused() -> None:
    rng = np.random.default_rng(0)
    confidence, correct = rng.random(100), rng.random(100) < 0.5
    tally = Tally.count("calibration", confidence=confidence, correct=correct)
    with pytest.raises(RepeatedSourceError, match="twice"):
        tally + Tally.count(
            "calibration", confidence=confidence.tolist(), correct=correct.astype(int)
        )


def _epoch(question: str, seed: int, rows: int = 60) -> dict[str, Any]:
    """Rows of a batch for each question."""
    rng = np.random.default_rng(seed)
    score, label = rng.random((2, rows)), rng.integers(0, 3, rows)
    answers = np.column_stack([np.where(rng.random(rows) < 0.8, label, 0), label])
    flag = rng.random(rows) < 0.5
    return {
        "calibration": {"confidence": score[0], "correct": flag},
        "abstention": {"confidence": score[0], "correct": flag},
        "cascade": {"confidence": score[0], "prediction": answers, "label": label},
        "shield": {"score": score[0], "unsafe": flag},
        "forks": {
            "rollout": np.repeat(np.arange(rows), 2) + rows * seed,
            "lowest": np.tile([0, 300 + seed], rows),
            "highest": np.tile([299 + seed, 2**16 + 1], rows),
            "unsafe": np.column_stack([np.zeros(rows, dtype=bool), flag]).ravel(),
        },
        "recall": {"score": score[0], "positive": flag},
        "sets": {"probability": np.column_stack([*score, score[0]]) / 3, "label": label},
        "replacement": {"prediction": answers, "label": label},
        "pass-rate": {"passed": flag},
    }[question]


@pytest.mark.parametrize("question", QUESTIONS)
def test_rows_of_one_name_are_counted_once_for_every_question(question: str) -> None:
    """A batch that is replayed may hold other rows than before: its name tells."""
    first, again, next_one = (
        Tally.count(question, **_epoch(question, seed), source=f"epoch-{number}")
        for seed, number in ((0, 17), (1, 17), (2, 18))
    )
    known = Tally.from_dict(json.loads(json.dumps((first + next_one).to_dict())))
    assert known.rows == first.rows + next_one.rows
    for tally in (first, known):
        with pytest.raises(RepeatedSourceError, match="source='epoch-17'"):
            tally + again


@pytest.mark.parametrize(
    "other",
    [
        Tally.count("calibration", confidence=[0.5], correct=[1], n_bins=10),
        Tally.count("calibration", confidence=[0.5], correct=[1], groups=["a"]),
        Tally.count("shield", score=[0.5], unsafe=[1]),
    ],
)
def test_tallies_of_different_layout_do_not_add(other: Tally) -> None:
    with pytest.raises(InvalidValueError, match="layout"):
        Tally.count("calibration", confidence=[0.5], correct=[1]) + other


def test_probabilities_and_their_top_labels_give_one_tally_and_one_fingerprint() -> None:
    rng = np.random.default_rng(2)
    probabilities = rng.dirichlet(np.ones(5), size=20_000).astype(np.float32)
    labels = rng.integers(0, 5, size=20_000)
    whole = count_probabilities(probabilities, labels, grid=EqualWidthBins(20))
    column = Tally.count(
        "calibration",
        confidence=probabilities.max(axis=1),
        correct=probabilities.argmax(axis=1) == labels,
    )
    assert whole == column
    assert whole.sources == column.sources


@pytest.mark.parametrize("classes", [2, 10, 64, 65, 300])
def test_every_scope_counts_what_a_plain_loop_counts(classes: int) -> None:
    rng = np.random.default_rng(classes)
    probabilities, labels = (
        rng.dirichlet(np.ones(classes), size=300),
        rng.integers(0, classes, size=300),
    )
    grid = EqualWidthBins(10)
    for scope in ("top", "per-class", "all-labels"):
        expected = slow_count(probabilities, labels, grid, scope)
        assert (
            count_probabilities(probabilities, labels, grid=grid, scope=scope).dense() == expected
        ).all()


def slow_count(
    probabilities: NDArray[np.float64], labels: NDArray[np.int64], grid: EqualWidthBins, scope: str
) -> NDArray[np.int64]:
    table = np.zeros(
        (1 if scope == "top" else probabilities.shape[1], grid.n_cells, 2), dtype=np.int64
    )
    for row, label in zip(probabilities, labels, strict=True):
        top = int(np.argmax(row))
        for k in range(len(row)) if scope == "all-labels" else [top]:
            cell = next(i for i in range(grid.n_cells) if row[k] <= (i + 1) / grid.n_cells)
            table[0 if scope == "top" else k, cell, int(k == label)] += 1
    return table


def test_a_tally_that_was_changed_on_disk_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "part.json"
    Tally.count("calibration", confidence=[0.5, 0.7], correct=[1, 0]).save(path)
    path.write_text(path.read_text().replace('"rows": 2', '"rows": 3'))
    with pytest.raises(CertificateError, match="changed"):
        Tally.load(path)


@pytest.mark.parametrize(
    ("columns", "given", "message"),
    [
        (([0.5], [1]), {"confidence": [0.6]}, "confidence was passed twice"),
        (([0.5], [1], [1], [1], [1], [1]), {}, "6 columns were passed by their place"),
    ],
)
def test_a_column_is_passed_once_by_its_place_or_by_its_name(
    columns: Any, given: Any, message: str
) -> None:
    with pytest.raises(InvalidTypeError, match=message):
        Tally.count("calibration", *columns, **given)


def test_a_tally_is_never_added_to_itself_however_alike_its_rows_are(tmp_path: Path) -> None:
    alike = Tally.count("calibration", confidence=[1.0] * 100, correct=[True] * 100)
    alike.save(tmp_path / "part.json")
    for one, other in [(alike, alike), (alike, Tally.load(tmp_path / "part.json"))]:
        with pytest.raises(RepeatedSourceError, match="twice"):
            one + other
    with pytest.raises(RepeatedSourceError):
        sum([alike] * 10)
    with pytest.raises(RepeatedSourceError):
        Tally.load(tmp_path / "part.json") + Tally.load(tmp_path / "part.json")


def test_saturated_rows_are_recognised_by_their_outcomes_and_rows_all_alike_are_not() -> None:
    right = np.random.default_rng(0).random(1000) < 0.9
    one, again = (
        Tally.count("calibration", confidence=np.ones(1000), correct=right) for _ in range(2)
    )
    with pytest.raises(RepeatedSourceError, match="twice"):
        one + again
    alike, other = (
        Tally.count("calibration", confidence=[1.0] * 50, correct=[True] * 50) for _ in range(2)
    )
    assert (alike + other).rows == 100


def test_the_same_rows_with_more_labels_are_the_same_rows() -> None:
    rng = np.random.default_rng(1)
    scores, predictions = rng.random(200), np.column_stack([np.zeros(200), np.arange(200) % 2])
    labels = np.where(np.arange(200) % 2, 1.0, np.nan)
    few, all_ = (
        Tally.count("cascade", confidence=scores, prediction=predictions, label=given)
        for given in (labels, predictions[:, 1])
    )
    with pytest.raises(RepeatedSourceError):
        few + all_


def test_two_groups_of_one_text_are_refused() -> None:
    with pytest.raises(InvalidValueError, match="names one group twice: 1, '1'"):
        Tally.count(
            "calibration", confidence=[0.9, 0.2], correct=[1, 0], groups={1: [1, 0], "1": [1, 1]}
        )


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_few_rows_are_counted_as_many_are(
    monkeypatch: pytest.MonkeyPatch, grouped: bool, weighted: bool
) -> None:
    """In one table that is walked whole, in one that is sorted, and in both by turns."""
    rng = np.random.default_rng(0)
    blocks = [
        Judged(
            rows=rows,
            cells=rng.choice([-1, 0, 3, 2**16], size=(rows, 1)),
            outcomes=rng.integers(0, 2, rows),
            groups=("north", "east", "south") if grouped else (),
            places=rng.integers(0, 3, rows) if grouped else None,
            times=rng.integers(1, 9, rows) if weighted else None,
        )
        for rows in (5, 50, 1, 0)
    ]

    def counted(few: int) -> list[Any]:
        monkeypatch.setattr(table, "_FEW", few)
        whole = CountTable(DyadicGrid(16), scores=1, outcomes=2, grouped=grouped)
        for block in blocks:
            whole.add(block)
        *found, names = whole.result()
        return [*(part.tolist() for part in found), names]

    assert counted(0) == counted(16) == counted(10**9)
