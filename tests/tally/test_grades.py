"""Graded answers: levels and losses, the same from every source."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.tally.table_writers import write_csv, write_parquet

from pacbound import (
    Tally,
    calibrate,
    certify_abstention,
    certify_cascade,
    certify_recall,
    documents,
)
from pacbound.errors import (
    CertificateError,
    InvalidTypeError,
    InvalidValueError,
    RepeatedSourceError,
)

RNG = np.random.default_rng(3)
ROWS = 400
SCORE = RNG.random(ROWS)
GRADE: Any = RNG.integers(1, 6, size=ROWS)
IDS = np.array([f"row {k}" for k in range(ROWS)])
QUALITY = RNG.random((ROWS, 2))
QUALITY[::9, 0] = np.nan
QUALITY[::7, 1] = np.nan
ANSWERS = RNG.integers(0, 3, size=(ROWS, 2))
TABLE: dict[str, Any] = {
    "id": IDS,
    "c": SCORE,
    "grade": GRADE.astype(float),
    "fast": ANSWERS[:, 0],
    "slow": ANSWERS[:, 1],
    "q_fast": QUALITY[:, 0],
    "q_slow": QUALITY[:, 1],
}
GRADED: dict[str, Any] = {"confidence": SCORE, "quality": GRADE, "quality_scale": (1, 5)}
LEVELS: dict[str, Any] = {**GRADED, "quality_scale": (1, 2, 3, 4, 5)}
CASCADE: dict[str, Any] = {
    "confidence": SCORE,
    "prediction": ANSWERS,
    "quality": QUALITY,
}
NAMED: dict[str, dict[str, Any]] = {
    "calibration": {"confidence": "c", "quality": "grade", "quality_scale": (1, 5)},
    "cascade": {
        "confidence": ["c"],
        "prediction": ["fast", "slow"],
        "quality": ["q_fast", "q_slow"],
    },
}
ARRAYS = {"calibration": GRADED, "cascade": CASCADE}


def test_a_grade_counts_on_its_level_or_on_the_one_below() -> None:
    counted = Tally.count("calibration", **LEVELS)
    assert list(counted.totals.values()) == [int((k == GRADE).sum()) for k in range(1, 6)]
    fine = Tally.count("calibration", **GRADED)
    assert {name: rows for name, rows in fine.totals.items() if rows} == {
        str(64 * k): int((k + 1 == GRADE).sum()) for k in range(5)
    }
    between = Tally.count("abstention", [0.5, 0.5], quality=[0.99, 0.01])
    assert [name for name, rows in between.totals.items() if rows] == ["2", "253"]


def test_equal_answers_lose_nothing_whatever_the_judge_said() -> None:
    same = np.column_stack([ANSWERS[:, 0], ANSWERS[:, 0]])
    tally = Tally.count("cascade", SCORE, same, quality=QUALITY)
    assert {name: n for name, n in tally.totals.items() if n} == {"rows": ROWS}


def test_preferences_are_wins_ties_and_losses() -> None:
    said = np.array(["fast", "slow", "tie", ""] * (ROWS // 4), dtype=object)
    said[said == ""] = None
    tally = Tally.count("cascade", SCORE, preferred=said)
    assert tally.totals == {
        **dict.fromkeys(("agree", "only_fast", "only_slow", "unlabelled"), ROWS // 4),
        "neither": 0,
    }
    number = np.select([said == "slow", said == "tie", said == "fast"], [1.0, 0.5, 0.0], np.nan)
    assert Tally.count("cascade", SCORE, quality=number) == tally


@pytest.mark.parametrize("kind", NAMED)
def test_every_source_counts_the_same_grades(kind: str, tmp_path: Path) -> None:
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    duckdb = pytest.importorskip("duckdb")
    named, wanted = NAMED[kind], Tally.count(kind, **ARRAYS[kind])
    frame = polars.DataFrame(TABLE).with_columns(polars.col("q_fast", "q_slow").fill_nan(None))
    sources: list[Any] = [pandas.DataFrame(TABLE), frame, frame.lazy(), frame.to_arrow()]
    writers: dict[str, Any] = {"rows.csv": write_csv, "rows.parquet": write_parquet}
    for name, write in writers.items():
        write(frame.to_dict(as_series=False), tmp_path / name)
        sources.append(tmp_path / name)
    sources.append(duckdb.from_arrow(frame.to_arrow()))
    for source in sources:
        assert Tally.count(kind, data=source, **named) == wanted


def test_parts_with_ids_add_up_to_the_whole() -> None:
    parts = [
        Tally.count("cascade", SCORE[part], ANSWERS[part], quality=QUALITY[part], row_ids=IDS[part])
        for part in (slice(0, 150), slice(150, ROWS))
    ]
    whole = Tally.count("cascade", row_ids=IDS, **CASCADE)
    assert parts[0] + parts[1] == whole
    assert sum(parts) == whole
    with pytest.raises(RepeatedSourceError):
        parts[0] + whole


@pytest.mark.parametrize("changed", [{"graded_by": "another"}, {"quality_scale": (0, 5)}, None])
def test_other_judges_and_scales_do_not_add(changed: dict[str, Any] | None) -> None:
    first: dict[str, Any] = {"quality": GRADE[:200], "quality_scale": (1, 5)}
    one = Tally.count("abstention", SCORE[:200], row_ids=IDS[:200], **first)
    rest: dict[str, Any] = {"quality": GRADE[200:], "quality_scale": (1, 5), **(changed or {})}
    if changed is None:
        rest = {"correct": GRADE[200:] > 2}
    other = Tally.count("abstention", SCORE[200:], row_ids=IDS[200:], **rest)
    with pytest.raises(InvalidValueError, match="graded in different ways do not add"):
        one + other


@pytest.mark.parametrize("kind", ARRAYS)
def test_a_graded_tally_is_read_as_it_was_written(kind: str, tmp_path: Path) -> None:
    tally = Tally.count(kind, row_ids=IDS, graded_by="two people", **ARRAYS[kind])
    tally.save(tmp_path / "tally.json")
    again = Tally.load(tmp_path / "tally.json")
    assert again == tally
    assert again.graded == tally.graded


@pytest.mark.parametrize("kind", ARRAYS)
def test_a_graded_tally_without_its_grading_is_not_read(kind: str) -> None:
    document = dict(Tally.count(kind, **ARRAYS[kind]).to_dict())
    for name in ("graded", "digest"):
        del document[name]
    document["schema"] = 1 if kind == "cascade" else 2
    with pytest.raises(CertificateError, match=r"outcomes|schema"):
        Tally.from_dict({**document, "digest": documents.digest(document)})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"quality": GRADE}, r"quality\[0\] is .*expected grades from 0 to 1.*quality_scale"),
        ({"quality": np.where(GRADE > 3, np.nan, 0.5)}, r"is missing .*every row needs a quality"),
        ({"quality": np.full(ROWS, np.inf)}, "expected grades from 0 to 1"),
        ({"quality": np.full(ROWS, 0.5), "quality_scale": (5, 1)}, "does not rise"),
        ({"quality": np.full(ROWS, 0.5), "quality_scale": (1, np.inf)}, "does not rise"),
        ({"quality": np.full(ROWS, 0.5), "graded_by": " "}, "does not say who graded"),
        ({"quality": np.full(ROWS, 0.5), "quality_scale": (1, 3, 4)}, "does not rise in equal"),
        (
            {"quality": np.full(ROWS, 1.5), "quality_scale": (1, 2, 3)},
            "lists other grades: 1, 2, 3",
        ),
    ],
)
def test_grades_that_cannot_be_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        Tally.count("calibration", SCORE, **given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"correct": GRADE > 2, "quality": QUALITY[:, 0]}, "or quality"),
        ({"correct": GRADE > 2, "graded_by": "me"}, "graded_by says how outcomes were graded"),
        ({"quality": QUALITY[:, 0], "quality_scale": "1,5"}, "is not a scale"),
        ({"quality": QUALITY[:, 0], "quality_scale": 5}, "is not a scale"),
        ({"quality": QUALITY[:, 1], "seed": 3}, "seed says how rows are drawn"),
    ],
)
def test_grades_that_do_not_go_with_the_rest_are_refused(
    given: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidTypeError, match=message):
        Tally.count("calibration", SCORE, **given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"quality": QUALITY, "label": ANSWERS[:, 0]}, "both say how good answers are"),
        ({"quality": np.column_stack([QUALITY, QUALITY])}, "4 columns of quality do not fit 2"),
        ({"label": ANSWERS[:, 0]}, "prediction is missing"),
        (
            {"confidence": np.column_stack([SCORE, SCORE]), "preferred": ["tie"] * ROWS},
            "one of two",
        ),
    ],
)
def test_qualities_that_do_not_fit_the_models_are_refused(
    given: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidTypeError, match=message):
        Tally.count("cascade", **{"confidence": SCORE, **given})


def test_a_model_that_is_not_there_cannot_be_preferred() -> None:
    with pytest.raises(InvalidValueError, match=r"preferred\[1\] is 'gpt'.*'fast', 'slow', 'tie'"):
        Tally.count("cascade", SCORE, preferred=["tie", "gpt"] * (ROWS // 2))


def test_fractions_in_the_place_of_outcomes_and_classes_are_told_where_to_go() -> None:
    grades = QUALITY[:, 1]
    grades = np.where(np.isnan(grades), 0.25, grades)
    hint = "Grades, such as a judge's, are passed as quality"
    with pytest.raises(InvalidValueError, match=hint):
        calibrate(SCORE, grades, delta=0.05)
    with pytest.raises(InvalidValueError, match=hint):
        certify_recall(SCORE, grades, target=0.9, delta=0.05)
    with pytest.raises(InvalidValueError, match=hint):
        certify_cascade(SCORE, np.column_stack([grades, grades]), xi=0.1, delta=0.05)
    with pytest.raises(InvalidTypeError, match="this claim is about rows of one outcome"):
        certify_recall(SCORE, GRADE > 2, target=0.9, delta=0.05, quality=grades)  # type: ignore[call-arg]


def test_answers_that_differ_are_not_graded() -> None:
    asked: dict[str, Any] = {"xi": 0.1, "delta": 0.05}
    with pytest.raises(InvalidValueError, match="claim='differ' takes no labels"):
        certify_cascade(SCORE, ANSWERS, quality=QUALITY, claim="differ", **asked)
    tally = Tally.count("cascade", SCORE, quality=QUALITY)
    with pytest.raises(InvalidValueError, match="whatever their quality"):
        certify_cascade(data=tally, claim="differ", **asked)


def test_a_graded_claim_says_by_whom() -> None:
    asked: dict[str, Any] = {"xi": 0.9, "delta": 0.1, "graded_by": "the rubric"}
    made = certify_abstention(**LEVELS, **asked)
    said = made.summary()
    assert "over the draw of these rows, the mean quality" in said
    assert "as graded by the rubric" in said
    assert "Graded from 1 to 5 in 4 steps by the rubric." in said
    assert "coin" not in said
    assert "Seed" not in said
    assert "graded-on-levels" in made.values["assumes"]
    cascade = certify_cascade(**CASCADE, **asked)
    assert "as graded by the rubric" in cascade.summary()
    assert "graded-on-levels" in cascade.values["assumes"]


@pytest.mark.parametrize("kind", ["calibration", "abstention"])
def test_grades_of_groups_are_those_of_each_alone(kind: str) -> None:
    groups = np.where(np.arange(ROWS) % 3 == 0, "a", "b")
    tally = Tally.count(kind, **LEVELS, groups=groups)
    for place, name in enumerate("ab"):
        own = {
            key: value[groups == name] for key, value in LEVELS.items() if key != "quality_scale"
        }
        alone = Tally.count(kind, **own, quality_scale=LEVELS["quality_scale"])
        assert np.array_equal(tally.counts[tally.cells[:, 0] == place], alone.counts)


def test_a_start_is_not_declared_for_grades() -> None:
    with pytest.raises(InvalidTypeError, match="grades need none: leave it out"):
        certify_abstention(**LEVELS, xi=0.5, delta=0.1, first_threshold=0.9)
