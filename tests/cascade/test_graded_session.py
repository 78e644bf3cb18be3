"""Sessions that are told the quality of answers: the same claims as from all grades at once, what
is asked for, and what is refused.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from pacbound import certify_cascade, documents
from pacbound.cascade import LabelSession
from pacbound.errors import (
    CertificateError,
    InvalidTypeError,
    InvalidValueError,
    RepeatedSourceError,
)

Array = NDArray[Any]
ASKED: Any = {"xi": 0.1, "delta": 0.1}
SCALE: Any = {"quality_scale": (1, 5), "graded_by": "two people"}
LEVELS = np.arange(1, 6)


def drawn(seed: int, *, models: int = 2, rows: int = 300) -> tuple[Array, Array, Array]:
    """Scores, predictions and grades from 1 to 5 of a cascade that loses more where scores are
    low."""
    rng = np.random.default_rng(seed)
    scores = rng.choice(rng.random(40), size=(rows, models - 1)) ** 0.4
    slow = rng.choice(LEVELS, size=rows, p=[0.05, 0.05, 0.1, 0.3, 0.5])
    worse = rng.random(scores.shape) < 0.7 * (1 - scores)
    fast = np.clip(slow[:, None] - np.where(worse, 3, rng.integers(-1, 2, scores.shape)), 1, 5)
    prediction = np.column_stack([rng.integers(0, 3, scores.shape), np.ones(rows, dtype=int)])
    return scores, prediction, np.column_stack([fast, slow]).astype(float)


def graded_session(scores: Any, prediction: Any = None, **options: Any) -> LabelSession:
    return LabelSession(scores, prediction, outcome="quality", **{**ASKED, **SCALE, **options})


def same_claim(session: LabelSession, scores: Any, prediction: Any, seen: Any, **more: Any) -> Any:
    """The certificate of the session, which is that of the same grades at once."""
    found = session.certificate()
    same = certify_cascade(
        scores, prediction, quality=seen, **{"seed": 0, **ASKED, **SCALE, **more}
    )
    assert found.claim() == same.claim()
    assert (found.claim_digest, found.counts_digest) == (same.claim_digest, same.counts_digest)
    assert found.verify()
    return found


@pytest.mark.slow
@pytest.mark.parametrize("ids", [False, True])
@pytest.mark.parametrize("predicted", [False, True])
@pytest.mark.parametrize(
    ("models", "xi", "bound"), [(2, 0.1, "exact"), (2, 0.0, "pair"), (3, 0.1, "pair")]
)
def test_at_every_time_a_session_claims_what_the_same_grades_claim_at_once(
    models: int, xi: float, bound: str, *, predicted: bool, ids: bool
) -> None:
    scores, prediction, grades = drawn(models, models=models)
    answers = prediction if predicted else None
    more: Any = {"xi": xi, "bound": bound, "seed": 7}
    if ids:
        more["row_ids"] = [f"row {place}" for place in range(len(scores))]
    session = graded_session(scores, answers, **more)
    rng = np.random.default_rng(1)
    seen = np.full_like(grades, np.nan)
    same_claim(session, scores, answers, seen, **more)
    for _ in range(4):
        # Of some rows one grade, of others all: some of them a second time.
        rows = rng.choice(len(scores), size=70, replace=False)
        told = np.where(rng.random((70, models)) < 0.6, grades[rows], np.nan)
        told = told[np.isfinite(told).any(axis=1)]
        rows = rows[: len(told)]
        told = np.where(np.isfinite(told), grades[rows], np.nan)
        session.tell(rows, quality=told)
        seen[rows] = np.where(np.isfinite(told), told, seen[rows])
        found, now = same_claim(session, scores, answers, seen, **more), session.progress
        assert (now.thresholds == found.thresholds).all()
        assert (now.exit_rates == found.exit_rates).all()
        assert now.done == found.settled
        assert (now.best_possible.thresholds == found.best_possible.thresholds).all()


@pytest.mark.parametrize("one_by_one", [False, True])
@pytest.mark.parametrize("models", [2, 3])
def test_a_session_asks_until_it_claims_what_all_grades_claim(
    models: int, *, one_by_one: bool
) -> None:
    """Grades come for all models at once, or one model's after the other's."""
    scores, prediction, grades = drawn(3, models=models)
    session = graded_session(scores, prediction)
    full = certify_cascade(scores, prediction, quality=grades, **ASKED, **SCALE, seed=0)
    asked = 0
    while not session.done:
        rows = session.ask(7)
        assert rows.size
        told = grades[rows]
        if one_by_one:
            had = session.qualities
            lacks = [[one is None for one in had.get(row, [None] * models)] for row in rows]
            # The first that is missing: the slow model's comes last.
            told = np.where(np.cumsum(lacks, axis=1) * lacks == 1, told, np.nan)
        assert session.tell(rows, quality=told) == len(rows)
        asked += len(rows)
    assert session.ask().size == session.progress.open == 0
    assert session.progress.thresholds.tolist() == full.thresholds.tolist()
    differ = int((prediction[:, :-1] != prediction[:, -1:]).any(axis=1).sum())
    assert session.progress.labels < differ == session.progress.differ
    assert session.progress.labels <= asked


def test_declined_rows_stay_as_bad_as_they_can_be_and_the_session_ends() -> None:
    scores, _, grades = drawn(4)
    session = graded_session(scores)
    while not session.done:
        rows = session.ask(6)
        # Of the first nothing is known, of the second only the slow model's.
        session.tell(rows[:1], quality=[[None, None]])
        session.tell(rows[1:2], quality=[[None, grade] for grade in grades[rows[1:2], 1]])
        session.decline(rows[1:2])
        session.tell(rows[2:], quality=grades[rows[2:]])
        assert not np.isin(rows[:2], session.ask(1000)).any()
    declined = session.declined
    assert len(declined) == session.progress.declined > 0
    seen = np.full_like(grades, np.nan)
    for row, qualities in session.qualities.items():
        seen[row] = [np.nan if one is None else 1 + 4 * one for one in qualities]
    same_claim(session, scores, None, seen)
    # A grade that comes later all the same is taken.
    assert session.tell(declined, quality=grades[declined]) == len(declined)
    assert session.progress.declined == 0


def test_wins_ties_and_losses_are_one_column_for_two_models() -> None:
    scores, prediction, _ = drawn(5)
    won = np.random.default_rng(0).choice([0, 0.5, 1], size=len(scores), p=[0.2, 0.5, 0.3])
    session = graded_session(scores, prediction, quality_scale=None)
    rows = np.arange(0, len(scores), 2)
    session.tell(rows, quality=won[rows])
    seen = np.full(len(scores), np.nan)
    seen[rows] = won[rows]
    same_claim(session, scores, prediction, seen, quality_scale=None)
    three = graded_session(*drawn(5, models=3)[:2])
    with pytest.raises(InvalidTypeError, match="1 columns of quality do not fit 3 models"):
        three.tell([0], quality=[0.5])


def test_coins_go_by_ids_so_that_order_and_labeller_cannot_move_them() -> None:
    scores, _, grades = drawn(6)
    ids, order = np.arange(len(scores)), np.random.default_rng(0).permutation(len(scores))
    forth = graded_session(scores, row_ids=ids)
    back = graded_session(scores[order], row_ids=ids[order])
    forth.tell(ids, quality=grades)
    back.tell(ids[::-1], quality=grades[order][::-1])
    assert forth.certificate().claim() == back.certificate().claim()
    by_place = graded_session(scores[order])
    by_place.tell(ids, quality=grades[order])
    assert by_place.certificate().claim() != forth.certificate().claim()
    with pytest.raises(InvalidValueError, match="each row needs an id of its own"):
        graded_session(scores, row_ids=[0, *ids[:-1]])
    with pytest.raises(RepeatedSourceError):
        _ = forth.tally + forth.tally


def test_a_grade_can_be_taken_back_until_it_was_used(tmp_path: Path) -> None:
    scores, _, _ = drawn(7)
    session = graded_session(scores)
    before = session.certificate().claim()
    session.tell([3], quality=[[4, None]])
    session.tell([3, 5], quality=[[4, 2], [1, 1]])
    assert session.undo().tolist() == [3, 5]
    assert session.qualities == {3: (0.75, None)}
    assert session.undo().tolist() == [3]
    assert session.undone == ((3, (0.75, 0.25)), (5, (0.0, 0.0)), (3, (0.75, None)))
    assert session.qualities == {}
    session.save(tmp_path / "s.json")
    again = LabelSession.load(tmp_path / "s.json", scores)
    assert again.undone == session.undone
    assert again.certificate().claim() == session.certificate().claim() == before
    again.tell([3], quality=[[5, 5]])
    assert again.progress.labels == 1
    with pytest.raises(InvalidValueError, match="nothing to undo"):
        again.undo()
    again.save(tmp_path / "s.json")
    with pytest.raises(InvalidValueError, match="holds labels that this session does not have"):
        session.save(tmp_path / "s.json")


def test_of_a_half_told_row_only_the_half_that_was_not_used_is_taken_back(tmp_path: Path) -> None:
    scores, path = [0.9, 0.8, 0.7, 0.6], tmp_path / "s.json"
    session = graded_session(scores)
    session.tell([0], quality=[[4, None]])
    assert session.progress.labels == 1
    session.tell([0], quality=[[None, 2]])
    session._save_undoable(path)
    session.undo()
    session._save_undoable(path)
    assert LabelSession.load(path, scores).qualities == {0: (0.75, None)}
    session.tell([0], quality=[[None, 3]])
    session._save_undoable(path)
    assert LabelSession.load(path, scores).qualities == {0: (0.75, 0.5)}
    other = graded_session(scores)
    other.tell([0], quality=[[1, None]])
    other.undo()
    other.tell([0], quality=[[1, 5]])
    for save in (other.save, other._save_undoable):
        with pytest.raises(InvalidValueError, match="holds labels that this session does not have"):
            save(path)
    assert LabelSession.load(path, scores).qualities == {0: (0.75, 0.5)}


@pytest.mark.parametrize("ids", [None, "named"])
def test_a_session_goes_on_from_its_file_as_if_it_had_not_been_killed(
    tmp_path: Path, ids: str | None
) -> None:
    scores, prediction, grades = drawn(8)
    named: Any = {} if ids is None else {"row_ids": np.arange(len(scores)) + 100}
    session = graded_session(scores, prediction, seed=5, **named)
    path = tmp_path / "s.json"
    while not session.done:
        rows = session.ask(9)
        part = np.where(np.arange(len(rows))[:, None] % 3 == 1, [np.nan, 0], 0)
        session.tell(rows, quality=grades[rows] + part)
        session.decline(rows[1::3])
        session.save(path)
        session = LabelSession.load(path, scores, prediction, **named)
    seen = np.full_like(grades, np.nan)
    for row, qualities in session.qualities.items():
        seen[row] = [np.nan if one is None else 1 + 4 * one for one in qualities]
    same_claim(session, scores, prediction, seen, seed=5, **named)
    assert session.graded is not None
    assert (session.graded.seed, session.graded.by) == (5, "two people")
    for other, said in (
        ({"seed": 4}, "was begun with seed = 5, not 4"),
        ({"graded_by": "a judge"}, "was begun with graded_by = two people, not a judge"),
        ({"quality_scale": (0, 5)}, r"was begun with quality_scale = \(1.0, 5.0\), not \(0.0, 5.0"),
    ):
        with pytest.raises(InvalidValueError, match=said):
            LabelSession.load(path, scores, prediction, **named, **other)
    LabelSession.load(path, scores, prediction, **named, seed=5, **SCALE)
    if ids is None:
        with pytest.raises(InvalidTypeError, match="know rows by their places: leave out row_ids"):
            LabelSession.load(path, scores, prediction, row_ids=np.arange(len(scores)))
    else:
        with pytest.raises(InvalidTypeError, match="know rows by row_ids: pass row_ids"):
            LabelSession.load(path, scores, prediction)
        with pytest.raises(InvalidValueError, match="or their ids, or their order, are not"):
            LabelSession.load(path, scores, prediction, row_ids=np.arange(len(scores)))
    with pytest.raises(InvalidValueError, match="is the session of other rows"):
        LabelSession.load(path, scores, **named)
    with pytest.raises(InvalidValueError, match="the session of other rows, and stays"):
        graded_session(scores, prediction, seed=6, **named).save(path)


@pytest.mark.parametrize(
    "change",
    [
        {"labels": [[0.5, 1.5]]},
        {"labels": [[0.5, "1"]]},
        {"labels": [1]},
        {"graded": None},
        {"graded": {"seed": 0, "by": None, "scale": [5.0, 1.0], "ids": "places"}},
        {"undone": [[0, 3]]},
    ],
)
def test_a_file_that_holds_what_cannot_be_is_refused(tmp_path: Path, change: Any) -> None:
    session = graded_session([0.9, 0.8])
    session.tell([0], quality=[[2, 3]])
    session.save(tmp_path / "s.json")
    body = documents.read(tmp_path / "s.json", "a session", largest=2**20)
    body.pop("digest", None)
    documents.write(tmp_path / "s.json", documents.sealed({**body, **change}))
    with pytest.raises((CertificateError, InvalidValueError)):
        LabelSession.load(tmp_path / "s.json", [0.9, 0.8])


@pytest.mark.slow
@pytest.mark.parametrize("models", [2, 3])
def test_a_forecast_is_near_what_comes(models: int) -> None:
    scores, _, grades = drawn(9, models=models, rows=1000)
    session = graded_session(scores, xi=0.2, bound="pair")
    assert session.forecast() is None
    rows = session.ask(120)
    session.tell(rows, quality=grades[rows])
    ahead, hundred = session.forecast(), session.forecast(100)
    assert ahead is not None
    assert hundred is not None
    assert str(hundred).startswith("forecast: at this rate about")
    assert "after about 100 more grades" in str(hundred)
    before = session.certificate().claim()
    assert session.forecast() is not None
    assert session.certificate().claim() == before
    rows = session.ask(100)
    session.tell(rows, quality=grades[rows])
    assert abs(session.progress.exit_rates.sum() - hundred.exit_rates.sum()) < 0.1
    told = 100
    while not session.done:
        rows = session.ask(10)
        session.tell(rows, quality=grades[rows])
        told += len(rows)
    assert ahead.done
    assert abs(session.progress.exit_rates.sum() - ahead.exit_rates.sum()) < 0.15
    assert 0.4 * told < ahead.labels < 2.5 * told


def test_a_forecast_goes_on_with_the_trend() -> None:
    """The first rows lose hardly anything, those with low scores much."""
    rng = np.random.default_rng(0)
    scores = rng.random(2000)
    slow = rng.integers(3, 6, 2000)
    fast = np.where(rng.random(2000) < 0.4 * (1 - scores), slow - 2, slow)
    grades = np.column_stack([fast, slow]).astype(float)
    session = graded_session(scores, xi=0.05, delta=0.05)
    full = certify_cascade(scores, quality=grades, **SCALE, xi=0.05, delta=0.05, seed=0)
    rows = session.ask(800)
    session.tell(rows, quality=grades[rows])
    ahead = session.forecast()
    assert ahead is not None
    assert abs(ahead.exit_rates[0] - full.exit_rates[0]) < 0.12


def test_the_report_speaks_of_quality() -> None:
    session = graded_session([0.9] * 60)
    session.tell(range(60), quality=[[4, 4]] * 60)
    certificate = session.certificate()
    numbers = dict(certificate.by.numbers(certificate))
    assert numbers["What xi bounds"] == "the quality lost against the slow model"
    assert "Quality lost, as seen" in numbers
    walk, *_ = certificate.figures()
    assert walk.panels[0].y.label == "Quality lost, as seen"


def test_a_file_s_columns_are_recorded_with_its_ids(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("who,c\n" + "".join(f"row {place},0.9\n" for place in range(60)))
    session = graded_session("c", data=path, row_ids="who")
    columns = session.certificate().provenance.columns
    assert columns == {"confidence": "c", "row_ids": "who"}


def test_what_is_off_the_scale_is_refused_and_nothing_is_taken_in() -> None:
    session = graded_session([0.9, 0.8, 0.7])
    plain = graded_session([0.9, 0.8, 0.7], quality_scale=None)
    above = np.nextafter(1.0, 2.0)
    for one, quality, said in (
        (session, [[1, 5], [0, 3]], r"quality\[:, 0\]\[1\] is 0.0 .*from 1 to 5"),
        (session, [[1, 5], [3, np.inf]], r"quality\[:, 1\]\[1\] is inf"),
        (session, [[1, -np.inf], [3, 4]], r"is -inf"),
        (plain, [[4, 5], [3, 4]], r"is 4.0 .*from 0 to 1. If they go from 1 to 5, pass quality_sc"),
        (plain, [[above, 1], [1, 1]], r"is 1.0000000000000002 .*from 0 to 1"),
    ):
        with pytest.raises(InvalidValueError, match=said):
            one.tell([0, 1], quality=quality)
        assert one.progress.labels == 0
    with pytest.raises(InvalidTypeError, match="quality"):
        session.tell([0], quality=[["4", "5"]])
    with pytest.raises(InvalidValueError, match="quality has shape"):
        session.tell([0], quality="4")
    with pytest.raises((InvalidTypeError, InvalidValueError), match="quality"):
        session.tell([0], quality=[[True, False]])
    with pytest.raises(InvalidValueError, match="does not rise: expected the worst grade and then"):
        graded_session([0.9], quality_scale=(5, 1))
    with pytest.raises(InvalidTypeError, match="is not a scale"):
        graded_session([0.9], quality_scale=(1, 3, 5))
    # As floats these are the ends of the scale.
    assert plain.tell([0, 1], quality=[[-0.0, 1 + 1e-16], [0.0, 1.0]]) == 2
    assert plain.tell([0], quality=[[0.0, 1.0]]) == 0


def test_a_quality_is_told_once() -> None:
    session = graded_session([0.9, 0.8, 0.7])
    session.tell([0, 1], quality=[[2, 4], [None, 3]])
    before = session.certificate().claim()
    for rows, quality, said in (
        ([0], [[2, 5]], "Row 0 has the quality 2, 4, and now 2, 5 was passed"),
        ([2, 0], [[1, 1], [None, 5]], "Row 0 has the quality 2, 4, and now 2, 5 was passed"),
        ([1], [[1, 4]], "Row 1 has the quality none, 3, and now none, 4 was passed"),
        ([0], [[None, None]], "Row 0 has the quality 2, 4, and now none, none was passed"),
        ([2, 2], [[1, 1], [1, 2]], "Row 2 has the quality 1, 1, and now 1, 2 was passed"),
    ):
        with pytest.raises(InvalidValueError, match=f"{said}.*is final"):
            session.tell(rows, quality=quality)
    with pytest.raises(InvalidValueError, match="is final"):
        session.decline([0])
    assert session.certificate().claim() == before
    # The same again, and what was missing.
    assert session.tell([0, 1, 1], quality=[[2, 4], [5, None], [5, None]]) == 1
    # Rows that were not asked for are taken; of those in which answers are equal, nothing is.
    equal = graded_session([0.9, 0.8], [[1, 1], [0, 1]])
    assert equal.tell([0, 1], quality=[[1, 5], [2, 3]]) == 1
    for row, error in ((5, InvalidValueError), (-1, InvalidValueError), (0.5, InvalidTypeError)):
        with pytest.raises(error):
            equal.tell([row], quality=[[1, 1]])
    with pytest.raises(InvalidValueError, match="there are 2 rows and 1 grades"):
        equal.tell([0, 1], quality=[[1, 1]])


def test_labels_and_qualities_do_not_mix(tmp_path: Path) -> None:
    graded, plain = graded_session([0.9]), LabelSession([0.9], [[0, 1]], **ASKED)
    with pytest.raises(InvalidTypeError, match="takes the quality of answers, and labels were pa"):
        graded.tell([0], [1])
    with pytest.raises(InvalidTypeError, match="takes the quality of answers, and labels were pa"):
        graded.tell([0], [1], quality=[[1, 2]])
    with pytest.raises(InvalidTypeError, match="takes labels, and quality was passed"):
        plain.tell([0], quality=[[1, 1]])
    with pytest.raises(InvalidTypeError, match="quality is missing: pass one for each row"):
        graded.tell([0])
    with pytest.raises(InvalidTypeError, match="labels is missing: pass one for each row"):
        plain.tell([0])
    with pytest.raises(InvalidTypeError, match=r"prediction is missing.*outcome='quality'"):
        LabelSession([0.9], **ASKED)
    for name, value in (*SCALE.items(), ("seed", 3), ("row_ids", ["a"])):
        with pytest.raises(InvalidTypeError, match=f"{name} says .* pass outcome='quality'"):
            LabelSession([0.9], [[0, 1]], **ASKED, **{name: value})
    with pytest.raises(InvalidValueError, match="outcome='grades' is not known"):
        LabelSession([0.9], [[0, 1]], outcome="grades", **ASKED)  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError, match="bound='product' is about answers"):
        graded_session([0.9], bound="product")
    plain.save(tmp_path / "labels.json")
    with pytest.raises(InvalidTypeError, match="is a session of labels: leave seed out"):
        LabelSession.load(tmp_path / "labels.json", [0.9], [[0, 1]], seed=3)
    assert graded.labels == {}
    assert plain.qualities == {}
