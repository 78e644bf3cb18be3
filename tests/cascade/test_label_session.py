"""Sessions: which labels are asked for, what they prove at every time, and what is refused."""

from __future__ import annotations

import copy
import json
import pickle
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.products import standing_for

from pacbound import certify_cascade, documents
from pacbound.cascade import LabelSession
from pacbound.data import fashion_mnist
from pacbound.errors import (
    CertificateError,
    InvalidTypeError,
    InvalidValueError,
    RepeatedSourceError,
    UnwritableFileError,
)
from pacbound.file_locks import locked

Array = NDArray[Any]
Table = tuple[Array, Array, Array]


def drawn(seed: int, *, models: int = 2, rows: int = 400) -> Table:
    """Scores, predictions and labels of a cascade that sometimes gains and sometimes loses."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 4, rows)
    scores = rng.choice(rng.random(40), size=(rows, models - 1)) ** 0.3
    accuracy = [*(0.5 + 0.5 * scores[:, m] for m in range(models - 1)), np.full(rows, 0.9)]
    columns = [
        np.where(rng.random(rows) < share, labels, rng.integers(0, 4, rows)) for share in accuracy
    ]
    return scores, np.column_stack(columns), labels


CASES = [
    (models, xi, bound)
    for models in (2, 3)
    for xi, bound in ((0.05, "exact"), (0.05, "pair"), (0.2, "product"), (0.0, "exact"))
]


@pytest.mark.parametrize(("models", "xi", "bound"), CASES)
@pytest.mark.parametrize("seed", standing_for(range(3), [0], rest="slow"))
def test_at_every_time_a_session_claims_what_the_same_labels_claim_at_once(
    seed: int, models: int, xi: float, bound: Any
) -> None:
    scores, predictions, labels = drawn(seed, models=models)
    asked: Any = {"xi": xi, "delta": 0.1, "bound": bound}
    session = LabelSession(scores, predictions, **asked)
    rng = np.random.default_rng(seed)
    known = np.full(len(labels), np.nan)
    for step in range(5):
        rows = rng.choice(len(labels), size=60, replace=False)
        session.tell(rows, labels[rows])
        known[rows] = labels[rows]
        if step:
            session.decline(session.ask(3))
        found = session.certificate()
        same = certify_cascade(scores, predictions, known, **asked)
        assert found.claim() == same.claim()
        assert found.verify()
        now = session.progress
        assert (now.thresholds == found.thresholds).all()
        assert (now.exit_rates == found.exit_rates).all()
        assert now.certified == found.certified
        differ = (predictions[:, :-1] != predictions[:, -1:]).any(axis=1)
        assert now.labels == np.isfinite(known[differ]).sum()
        if not now.declined:
            assert now.done == found.settled
            assert (now.best_possible.thresholds == found.best_possible.thresholds).all()
            assert (now.best_possible.exit_rates == found.best_possible.exit_rates).all()


@pytest.mark.parametrize(("models", "xi", "bound"), CASES)
@pytest.mark.parametrize("seed", standing_for(range(4), [0], rest="slow"))
def test_a_session_asks_until_it_claims_what_all_labels_claim(
    seed: int, models: int, xi: float, bound: Any
) -> None:
    scores, predictions, labels = drawn(seed, models=models)
    asked: Any = {"xi": xi, "delta": 0.1, "bound": bound}
    session = LabelSession(scores, predictions, **asked)
    differ = (predictions[:, :-1] != predictions[:, -1:]).any(axis=1)
    seen: set[int] = set()
    while not session.done:
        rows = session.ask(7)
        assert rows.size
        assert differ[rows].all()
        assert not seen & set(rows.tolist())
        seen |= set(rows.tolist())
        assert session.tell(rows, labels[rows]) == len(rows)
    assert session.ask().size == session.progress.open == 0
    full = certify_cascade(scores, predictions, labels, **asked)
    assert (session.progress.thresholds == full.thresholds).all()
    # Whatever the others turn out to be.
    others = np.flatnonzero(differ & ~np.isin(np.arange(len(labels)), list(seen)))
    for label in (predictions[others, 0], predictions[others, -1]):
        again = LabelSession(scores, predictions, **asked)
        again.tell(list(seen), labels[list(seen)])
        again.tell(others, label)
        assert (again.progress.thresholds == full.thresholds).all()


@pytest.mark.parametrize("xi", [0.05, 0.0])
@pytest.mark.parametrize("models", [2, 3])
def test_declined_rows_stay_losses_and_the_session_still_ends(models: int, xi: float) -> None:
    scores, predictions, labels = drawn(11, models=models)
    session = LabelSession(scores, predictions, xi=xi, delta=0.1)
    rounds = 0
    while not session.done:
        rows = session.ask(5)
        session.tell(rows[1:], labels[rows[1:]])
        session.tell(rows[:1], [None])
        assert rows[0] not in session.ask(1000)
        rounds += 1
    now = session.progress
    assert now.declined == rounds
    assert now.done
    declined = np.flatnonzero(
        np.isin(np.arange(len(labels)), session.ask(1000), invert=True)
        & (predictions[:, :-1] != predictions[:, -1:]).any(axis=1)
    )
    # A label that comes later all the same is taken.
    assert session.tell(declined, labels[declined]) > 0
    assert session.progress.declined == 0


def test_rows_come_from_the_top_and_where_the_slow_model_is_least_sure_first() -> None:
    scores = [0.9, 0.9, 0.9, 0.9, 0.99, 0.1] + [0.95] * 500
    predictions = [[0, 1]] * 6 + [[1, 1]] * 500
    sure = [0.7, 0.3, np.nan, 0.5, 0.9, 0.0] + [0.5] * 500
    asked: Any = {"xi": 0.02, "delta": 0.05}
    assert LabelSession(scores, predictions, **asked).ask(5).tolist() == [4, 0, 1, 2, 3]
    session = LabelSession(scores, predictions, slow_confidence=sure, **asked)
    assert session.ask(5).tolist() == [4, 1, 3, 0, 2]


def test_nothing_is_asked_for_below_the_best_possible_end() -> None:
    # Forty rows that lose at 0.5 fail whatever the rows below them do.
    scores = [0.9] * 300 + [0.5] * 40 + [0.1] * 60
    predictions = [[1, 1]] * 285 + [[0, 1]] * 15 + [[0, 1]] * 40 + [[0, 1]] * 60
    session = LabelSession(scores, predictions, xi=0.05, delta=0.05)
    session.tell(np.arange(300, 340), [1] * 40)
    assert not session.done
    assert set(session.ask(1000).tolist()) == set(range(285, 300))


@pytest.mark.parametrize(("xi", "count", "most"), [(0.01, 10, 370), (0.002, 5, 70)])
def test_few_labels_give_fashion_mnist_the_threshold_of_all(
    xi: float, count: int, most: int
) -> None:
    table = fashion_mnist()
    predictions = np.column_stack([table.prediction_fast, table.prediction_slow])
    session = LabelSession(table.confidence_fast, predictions, xi=xi, delta=0.01)
    full = certify_cascade(table.confidence_fast, predictions, table.label, xi=xi, delta=0.01)
    assert session.progress.exit_rates[0] >= 0.83 * full.exit_rates[0]
    while not session.done:
        rows = session.ask(count)
        session.tell(rows, table.label[rows])
    assert session.progress.labels <= most
    assert session.certificate().thresholds == full.thresholds


@pytest.mark.parametrize("label", [2, None])
def test_a_label_is_told_once(label: int | None) -> None:
    scores, predictions, _ = drawn(0)
    row = int(np.flatnonzero(predictions[:, 0] != predictions[:, 1])[0])
    session = LabelSession(scores, predictions, xi=0.05, delta=0.1)
    others = np.flatnonzero(predictions[:, 0] != predictions[:, 1])[1:3]
    assert session.tell([row], [1]) == 1
    assert session.tell([row], [1]) == 0
    before = session.certificate().claim()
    with pytest.raises(InvalidValueError, match=f"Row {row} has the label 1, and now (2|none) was"):
        session.tell([*others, row], [1, 1, label])
    with pytest.raises(InvalidValueError, match="is final"):
        session.tell([others[0], others[0]], [1, 2])
    with pytest.raises(InvalidValueError, match="is final"):
        session.decline([row])
    assert session.certificate().claim() == before
    assert session.progress.labels == 1


def test_labels_of_rows_in_which_all_agree_are_ignored() -> None:
    scores, predictions, labels = drawn(0)
    session = LabelSession(scores, predictions, xi=0.05, delta=0.1)
    differ = predictions[:, 0] != predictions[:, 1]
    assert session.tell(np.arange(len(labels)), labels) == differ.sum() == session.progress.labels
    assert session.done


@pytest.mark.parametrize(
    ("rows", "labels", "error", "said"),
    [
        ([400], [1], InvalidValueError, "There is no row 400"),
        ([-1], [1], InvalidValueError, "There is no row -1"),
        ([0.5], [1], InvalidTypeError, "dtype float64"),
        ([True], [1], InvalidTypeError, "dtype bool"),
        ([[0]], [1], InvalidTypeError, "shape"),
        ([0, 1], [1], InvalidValueError, "2 rows and 1 labels"),
        ([0], ["1"], InvalidValueError, "numbers never equal text"),
        ([0], [7], InvalidValueError, "no model predicts"),
        ([0], ["?"], InvalidValueError, "missing value"),
        ([0], [0.5], InvalidValueError, "not a whole number"),
    ],
)
def test_what_cannot_be_a_label_of_a_row_changes_nothing(
    rows: Any, labels: Any, error: type[Exception], said: str
) -> None:
    scores, predictions, _ = drawn(0)
    predictions[0] = [0, 1]
    session = LabelSession(scores, predictions, xi=0.05, delta=0.1)
    before = session.certificate().claim()
    with pytest.raises(error, match=said):
        session.tell(rows, labels)
    assert session.certificate().claim() == before
    assert session.tell([0], [1]) == 1


def test_listed_classes_do_not_let_text_pass_for_numbers() -> None:
    predictions = [[0, 1]] * 50
    session = LabelSession([0.9] * 50, predictions, xi=0.3, delta=0.1, classes=["0", "1", "2"])
    with pytest.raises(InvalidValueError, match="numbers never equal text"):
        session.tell([0], ["1"])
    assert session.tell([0], [2]) == 1
    open_ = LabelSession([0.9] * 50, predictions, xi=0.3, delta=0.1, unseen_labels=0.02)
    assert open_.tell([0], [2]) == 1
    with pytest.raises(InvalidValueError, match="no model predicts"):
        open_.tell([1], [2])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"xi": 1.0}, "xi"),
        ({"delta": 0.0}, "delta"),
        ({"bound": "best"}, "bound='best' is not known"),
        ({"costs": [1]}, "costs"),
        ({"confidence": [0.5, np.nan]}, "nan"),
        ({"confidence": [0.5]}, "Rows do not match"),
        ({"prediction": [[0, 1], [0, None]]}, "missing"),
        ({"prediction": [[0, "a"], [0, "b"]]}, "never equal"),
        ({"confidence": [], "prediction": np.zeros((0, 2), dtype=int)}, "no rows"),
        ({"slow_confidence": [0.5]}, "Rows do not match"),
        ({"columns": {"confidence": ["c"]}}, "columns"),
    ],
)
def test_what_no_session_can_be_made_of_raises(change: dict[str, Any], said: str) -> None:
    given: dict[str, Any] = {
        "confidence": [0.5, 0.6],
        "prediction": [[0, 1], [1, 1]],
        "xi": 0.1,
        "delta": 0.1,
    }
    with pytest.raises((InvalidValueError, InvalidTypeError), match=said):
        LabelSession(**{**given, **change})


@pytest.mark.parametrize("count", [0, -1, 1.5, True, "5"])
def test_a_number_of_rows_to_ask_for_is_a_whole_number_from_one(count: Any) -> None:
    session = LabelSession([0.9], [[0, 1]], xi=0.1, delta=0.1)
    with pytest.raises(InvalidValueError, match="whole number from 1"):
        session.ask(count)


def test_edges_end_at_once_or_ask_for_what_there_is() -> None:
    asked: Any = {"xi": 0.1, "delta": 0.1}
    agreeing = LabelSession([0.5] * 100, [[1, 1]] * 100, **asked)
    assert agreeing.done
    assert agreeing.progress.certified
    # One row cannot certify anything, whatever its label is.
    one = LabelSession([0.5], [[0, 1]], **asked)
    assert one.done
    assert not one.certificate().certified
    assert one.ask().size == 0
    alike = LabelSession([1.0] * 100, [[1, 1], [0, 0]] * 40 + [[0, 1]] * 20, **asked)
    assert not alike.done
    assert alike.ask().tolist() == list(range(80, 100))
    alike.tell(range(80, 100), [0] * 20)
    assert alike.progress.exit_rates.tolist() == [1.0]
    assert alike.done


def test_tallies_of_one_session_at_two_times_do_not_add_up(tmp_path: Path) -> None:
    for scores, predictions in (
        drawn(0)[:2],
        (np.full(9, 0.5), np.array([[0, 1]] * 9)),
    ):
        session = LabelSession(scores, predictions, xi=0.05, delta=0.1)
        before = session.tally
        session.tell(session.ask(1) if session.ask(1).size else [0], [1])
        with pytest.raises(RepeatedSourceError):
            before + session.tally
        session.save(tmp_path / f"{len(scores)}.json")
        loaded = LabelSession.load(tmp_path / f"{len(scores)}.json", scores, predictions)
        with pytest.raises(RepeatedSourceError):
            before + loaded.tally


@pytest.fixture
def saved(tmp_path: Path) -> tuple[Path, Table, LabelSession]:
    table = drawn(1)
    session = LabelSession(*table[:2], xi=0.05, delta=0.1, costs=[1, 3], classes=range(4))
    rows = session.ask(9)
    session.tell(rows[:7], table[2][rows[:7]])
    session.decline(rows[7:])
    session.save(tmp_path / "session.json")
    return tmp_path / "session.json", table, session


def test_a_session_goes_on_from_its_file(saved: tuple[Path, Table, LabelSession]) -> None:
    path, (scores, predictions, _), session = saved
    loaded = LabelSession.load(path, scores, predictions)
    assert repr(loaded) == repr(session)
    assert loaded.ask().tolist() == session.ask().tolist()
    assert loaded.certificate().claim() == session.certificate().claim()
    # Both have been looked at by now.
    session.save(path)
    before = path.read_bytes()
    loaded.save(path)
    assert path.read_bytes() == before
    # Types do not matter, values do.
    LabelSession.load(path, scores.tolist(), predictions.astype(float))


def test_rows_that_are_not_those_of_the_session_are_refused(
    saved: tuple[Path, Table, LabelSession],
) -> None:
    path, (scores, predictions, _), _ = saved
    swapped = predictions.copy()
    swapped[[0, 1]] = 1 - swapped[[0, 1]] % 2
    for other in (
        (scores[::-1], predictions),
        (scores, swapped),
        (scores[:-1], predictions[:-1]),
        (scores, (predictions + 1) % 4),
    ):
        with pytest.raises(InvalidValueError, match="other rows"):
            LabelSession.load(path, *other)


def test_a_file_that_was_cut_short_or_changed_is_refused_and_left_alone(
    saved: tuple[Path, Table, LabelSession],
) -> None:
    path, (scores, predictions, _), session = saved
    whole = path.read_bytes()
    document = json.loads(whole)
    changed = dict(document, asked={**document["asked"], "xi": 0.2})
    flipped = dict(document, labels=[3 - label for label in document["labels"]])
    for damaged in (
        whole[:-40],
        b"",
        b"[]",
        b"\xff\xfe",
        json.dumps(changed).encode(),
        json.dumps(flipped).encode(),
        json.dumps(dict(document, format="pacbound-tally")).encode(),
        json.dumps(dict(document, schema=2)).encode(),
    ):
        path.write_bytes(damaged)
        with pytest.raises(CertificateError):
            LabelSession.load(path, scores, predictions)
        with pytest.raises(CertificateError):
            session.save(path)
        assert path.read_bytes() == damaged


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("labels", [1]),
        ("labels", "text"),
        ("labelled", [0, 0, 0, 0, 0, 0, 0]),
        ("labelled", [10**6, 1, 2, 3, 4, 5, 6]),
        ("declined", [-1]),
        ("declined", None),
        ("asked", {}),
    ],
)
def test_a_file_with_a_fresh_digest_is_still_read_with_care(
    saved: tuple[Path, Table, LabelSession], key: str, value: Any
) -> None:
    path, (scores, predictions, _), _ = saved
    document = json.loads(path.read_bytes())
    document[key] = value
    del document["digest"]
    path.write_text(json.dumps({**document, "digest": documents.digest(document)}))
    with pytest.raises((CertificateError, InvalidValueError)):
        LabelSession.load(path, scores, predictions)


def test_saving_never_loses_another_session(saved: tuple[Path, Table, LabelSession]) -> None:
    path, (scores, predictions, labels), session = saved
    kept = path.read_bytes()
    asked: Any = {"xi": 0.05, "delta": 0.1, "costs": [1, 3], "classes": range(4)}
    others = [
        (LabelSession(scores[:-1], predictions[:-1], **asked), "other rows"),
        (LabelSession(scores, predictions, **{**asked, "xi": 0.06}), "may not change"),
        (LabelSession(scores, predictions, **{**asked, "costs": [1, 4]}), "may not change"),
        (LabelSession(scores, predictions, **asked), "labels that this session does not have"),
    ]
    for other, said in others:
        with pytest.raises(InvalidValueError, match=said):
            other.save(path)
        assert path.read_bytes() == kept
    rows = session.ask(1)
    session.tell(rows, labels[rows])
    session.save(path)
    assert LabelSession.load(path, scores, predictions).progress.labels == 8


def test_a_session_of_a_file_is_that_of_its_columns(tmp_path: Path) -> None:
    scores, predictions, labels = drawn(2, models=3)
    sure = np.random.default_rng(0).random(len(labels))
    names: Any = {"confidence": ["a", "b"], "prediction": ["p", "q", "r"]}
    np.savez(
        tmp_path / "rows.npz",
        **dict(zip(["a", "b"], scores.T, strict=True)),
        **dict(zip(["p", "q", "r"], predictions.T, strict=True)),
        s=sure,
    )
    lines = [
        ",".join(map(str, row))
        for row in zip(*scores.T.tolist(), *predictions.T.tolist(), sure.tolist(), strict=True)
    ]
    (tmp_path / "rows.csv").write_text("\n".join(["a,b,p,q,r,s", *lines]) + "\n")
    asked: Any = {"xi": 0.05, "delta": 0.1}
    arrays = LabelSession(scores, predictions, slow_confidence=sure, **asked)
    arrays.save(tmp_path / "session.json")
    for name in ("rows.npz", "rows.csv"):
        file = LabelSession(data=tmp_path / name, **names, slow_confidence="s", **asked)
        assert file.ask(100).tolist() == arrays.ask(100).tolist()
        assert file.certificate().claim() == arrays.certificate().claim()
        path = tmp_path / "session.json"
        LabelSession.load(path, data=tmp_path / name, **names, slow_confidence="s")


def test_the_published_numbers_of_labels_are_within_what_is_promised() -> None:
    path = Path(__file__).parents[2] / "experiments" / "results" / "label_sessions.json"
    for found, most in zip(json.loads(path.read_text()), (370, 190, 70), strict=True):
        assert found["labels"]["1"] <= most
        if found["xi"] == 0.01:
            assert found["exit_rate_without_labels"] >= 0.85 * found["exit_rate"]


def told(session: LabelSession, count: int, labels: Array) -> Array:
    rows = session.ask(count)
    session.tell(rows, labels[rows])
    return rows


LOOKS: dict[str, Any] = {
    "progress": lambda session: session.progress,
    "done": lambda session: session.done,
    "ask": lambda session: session.ask(1),
    "forecast": lambda session: session.forecast(),
    "tally": lambda session: session.tally,
    "certificate": lambda session: session.certificate(),
    "repr": repr,
    "str": str,
}


@pytest.mark.parametrize("look", LOOKS)
def test_a_label_can_be_taken_back_until_anything_that_depends_on_it_was_looked_at(
    look: str,
) -> None:
    scores, predictions, labels = drawn(3)
    session = LabelSession(scores, predictions, xi=0.05, delta=0.1)
    rows = session.ask(4)
    before = session.certificate().claim()
    session.tell(rows[:2], labels[rows[:2]])
    session.decline(rows[2:])
    assert len(session.labels) == 2  # what was told, not what it does
    assert session.undo().tolist() == sorted(rows[2:].tolist())
    assert session.undo().tolist() == rows[:2].tolist()
    assert session.undone[:2] == tuple((row, None) for row in sorted(rows[2:].tolist()))
    assert session.certificate().claim() == before
    assert not session.labels
    session.tell(rows, labels[rows])
    LOOKS[look](session)
    with pytest.raises(InvalidValueError, match="nothing to undo"):
        session.undo()
    assert len(session.labels) == 4


@pytest.mark.parametrize("models", [2, 3])
def test_a_session_after_undo_is_the_one_that_was_never_told(models: int) -> None:
    scores, predictions, labels = drawn(5, models=models)
    one, other = (LabelSession(scores, predictions, xi=0.05, delta=0.1) for _ in range(2))
    for round_ in range(6):
        rows = one.ask(9)
        assert rows.tolist() == other.ask(9).tolist()
        wrong = (labels[rows] + 1) % 4
        one.tell(rows[3:], wrong[3:])
        one.undo()
        one.decline(rows[:4])
        one.undo()
        for session in (one, other):
            session.tell(rows, labels[rows])
        assert str(one.progress) == str(other.progress)
        assert one.certificate().claim() == other.certificate().claim()
        assert one.tally.counts.tolist() == other.tally.counts.tolist()
        assert len(one.undone) == 10 * (round_ + 1)


def test_a_declined_row_that_got_a_label_is_declined_again_by_undo() -> None:
    scores, predictions, labels = drawn(5)
    session = LabelSession(scores, predictions, xi=0.05, delta=0.1)
    (row,) = session.ask(1)
    session.decline([row])
    assert session.progress.declined == 1
    session.tell([row], labels[[row]])
    session.undo()
    assert session.declined.tolist() == [row]
    assert row not in session.ask(1000)


def test_the_file_names_what_was_taken_back_and_gives_up_nothing_that_was_used(
    tmp_path: Path,
) -> None:
    scores, predictions, labels = drawn(5)
    session = LabelSession(scores, predictions, xi=0.05, delta=0.1)
    path, row = tmp_path / "s.json", int(session.ask(1)[0])
    session.tell([row], labels[[row]])
    session.undo()
    session.tell([row], (labels[[row]] + 1) % 4)
    session.save(path)
    # Whoever loads the file may look.
    with pytest.raises(InvalidValueError, match="nothing to undo"):
        session.undo()
    loaded = LabelSession.load(path, scores, predictions)
    assert loaded.undone == ((row, labels[row]),)
    assert loaded.labels == {row: (labels[row] + 1) % 4}
    with pytest.raises(InvalidValueError, match="nothing to undo"):
        loaded.undo()


def test_a_copy_uses_what_was_told() -> None:
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        session = LabelSession([0.9, 0.8], [[0, 1], [1, 1]], xi=0.1, delta=0.1)
        session.tell([0], [1])
        copied(session)
        with pytest.raises(InvalidValueError, match="nothing to undo"):
            session.undo()


def held_elsewhere(path: Path, is_let_go: threading.Event, is_held: threading.Event) -> None:
    with locked(path, wait=True):
        is_held.set()
        is_let_go.wait(60)


def test_a_label_that_may_be_taken_back_by_hand_is_loaded_once_it_may_not(tmp_path: Path) -> None:
    scores, predictions, labels = drawn(5)
    session = LabelSession(scores, predictions, xi=0.05, delta=0.1)
    path, (one, other) = tmp_path / "s.json", session.ask(2).tolist()
    session.tell([one], labels[[one]])
    session.decline([other])
    session._save_undoable(path)
    # Another thread holds the lock, as whoever labels by hand does.
    is_let_go, is_held = threading.Event(), threading.Event()
    holding = threading.Thread(target=held_elsewhere, args=(path, is_let_go, is_held))
    holding.start()
    is_held.wait(60)
    try:
        seen = LabelSession.load(path, scores, predictions)
    finally:
        is_let_go.set()
        holding.join()
    assert (seen.labels, seen.declined.tolist()) == ({one: labels[one]}, [])
    # It was not looked at, so it can be taken back.
    assert session.undo().tolist() == [other]
    session.tell([other], labels[[other]])
    session._save_undoable(path)
    both = {one: labels[one], other: labels[other]}
    assert LabelSession.load(path, scores, predictions).labels == both
    assert LabelSession.load(path, scores, predictions).undone == ((other, None),)
    # Now it was.
    session.undo()
    with pytest.raises(InvalidValueError, match="labels that this session does not have"):
        session._save_undoable(path)
    assert LabelSession.load(path, scores, predictions).labels == both


def test_a_file_that_cannot_be_changed_is_loaded_without_what_may_be_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = LabelSession([0.9, 0.8], [[0, 1], [1, 0]], xi=0.1, delta=0.1)
    session.tell([0], [1])
    session._save_undoable(tmp_path / "s.json")

    def refused(*_: Any) -> None:
        raise UnwritableFileError("no")

    monkeypatch.setattr(documents, "write", refused)
    loaded = LabelSession.load(tmp_path / "s.json", [0.9, 0.8], [[0, 1], [1, 0]])
    assert loaded.labels == {}


def test_no_label_of_another_session_is_replaced_by_taking_back_ones_own(tmp_path: Path) -> None:
    scores, predictions = [0.9, 0.8, 0.7, 0.6], [["a", "b"], ["a", "b"], ["a", "a"], ["b", "b"]]
    asked: Any = {"xi": 0.1, "delta": 0.1, "classes": ["a", "b"]}
    for name in ("save", "_save_undoable"):
        path = tmp_path / name
        first = LabelSession(scores, predictions, **asked)
        first.tell([0], ["b"])
        getattr(first, name)(path)
        for taken_back in ("a", "b"):
            second = LabelSession(scores, predictions, **asked)
            second.tell([0], [taken_back])
            second.undo()
            second.tell([0], ["a"])
            with pytest.raises(InvalidValueError, match="labels that this session does not have"):
                second.save(path)
        assert LabelSession.load(path, scores, predictions).labels == {0: "b"}


@pytest.mark.parametrize("key", ["unused", "undone"])
@pytest.mark.parametrize("undone", [3, [[1]], [[1, 2.5]], [["a", 1]], [[1, 2, 3]]])
def test_a_file_whose_undone_labels_cannot_be_read_is_refused(
    saved: tuple[Path, Table, LabelSession], undone: Any, key: str
) -> None:
    path, (scores, predictions, _), _ = saved
    body = json.loads(path.read_text())
    del body["digest"]
    documents.write(path, documents.sealed(body | {key: undone}))
    with pytest.raises(CertificateError, match=key):
        LabelSession.load(path, scores, predictions)


@pytest.mark.parametrize("models", [2, 3])
def test_a_forecast_changes_nothing_and_is_none_before_ten_labels(models: int) -> None:
    scores, predictions, labels = drawn(6, models=models, rows=1500)
    session = LabelSession(scores, predictions, xi=0.05, delta=0.1)
    told(session, 9, labels)
    assert session.forecast() is None
    told(session, 3, labels)
    before = session.certificate().claim(), str(session.progress), session.labels
    found, soon = session.forecast(), session.forecast(5)
    assert found is not None
    assert soon is not None
    assert found.done
    assert 0 < found.labels <= session.progress.open
    assert soon.labels == 5
    assert soon.exit_rates.sum() >= session.progress.exit_rates.sum()
    assert "forecast: at this rate about" in str(found)
    assert (session.certificate().claim(), str(session.progress), session.labels) == before
    with pytest.raises(InvalidValueError, match="labels=0 is not a number of labels"):
        session.forecast(0)


def test_a_forecast_comes_close_to_what_labels_then_show() -> None:
    table = fashion_mnist()
    predictions = np.column_stack([table.prediction_fast, table.prediction_slow])
    session = LabelSession(table.confidence_fast, predictions, xi=0.01, delta=0.01)
    told(session, 150, table.label)
    found = session.forecast()
    assert found is not None
    while not session.done:
        told(session, 20, table.label)
    assert abs(found.exit_rates[0] - session.progress.exit_rates[0]) < 0.04
    assert abs(found.labels + 150 - session.progress.labels) < 120
