"""Seeds: the operating system draws one where rows are drawn, and nowhere else; it is
kept, printed, and repeated by whoever passes it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pacbound import (
    Certificate,
    Tally,
    calibrate,
    certify_cascade,
    certify_replacement,
    certify_sets,
    exact_verifier,
    load_certificate,
)
from pacbound.errors import InvalidTypeError, InvalidValueError

RNG = np.random.default_rng(5)
ROWS = 240
SCORE = RNG.random(ROWS)
RIGHT = RNG.random(ROWS) < SCORE
PATIENT = np.arange(ROWS) // 4
ANSWERS = RNG.integers(0, 3, size=(ROWS, 2))
LABEL = np.where(RNG.random(ROWS) < 0.5, ANSWERS[:, 1], RNG.integers(0, 3, size=ROWS))
QUALITY = RNG.random((ROWS, 2))
PLAIN: dict[str, Any] = {"confidence": SCORE, "correct": RIGHT, "delta": 0.05}
DRAWS: dict[str, dict[str, Any]] = {
    "clusters": {**PLAIN, "clusters": PATIENT},
    "bounded": {**PLAIN, "clusters": PATIENT, "cluster_bound": 6},
    "weights": {**PLAIN, "weights": SCORE, "weight_bound": 1.0},
    "both": {"confidence": SCORE, "quality": QUALITY[:, 0], "delta": 0.05, "clusters": PATIENT},
}


def seeds_of(made: Certificate) -> set[int | None]:
    return set() if made.draw is None else {made.draw.seed}


@pytest.mark.parametrize("given", DRAWS.values(), ids=DRAWS)
def test_two_calls_share_no_draw_and_the_seed_of_one_repeats_it(
    given: dict[str, Any], tmp_path: Path
) -> None:
    made, other = calibrate(**given), calibrate(**given)
    (seed,) = seeds_of(made)
    assert seed is not None
    assert 0 <= seed < 2**53
    assert seeds_of(other) != {seed}
    assert other.claim() != made.claim()
    again = calibrate(**given, seed=seed)
    assert again.claim() == made.claim()
    assert f"Seed {seed} was drawn for this call; pass seed={seed} to" in made.summary()
    made.save(tmp_path / "c.json")
    for one in (again, load_certificate(tmp_path / "c.json")):
        assert f"Seed {seed}: pass seed={seed} to" in one.summary()
        assert "drawn at random, once, without sight of the rows" in one.summary()
        assert one.verify()


@pytest.mark.parametrize(
    "seed", [-7, 2**53, -(2**53) - 1, 2**64 + 1, 10**50, np.int64(9), np.uint64(2**63), 4.0]
)
def test_any_whole_number_is_a_seed_and_is_kept(
    seed: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = calibrate(**DRAWS["both"], seed=seed)
    assert seeds_of(made) == {int(seed)}
    made.save(tmp_path / "c.json")
    assert load_certificate(tmp_path / "c.json").claim() == made.claim()
    assert exact_verifier.main([str(tmp_path / "c.json")]) == 0
    assert capsys.readouterr().out
    tally = Tally.count("calibration", SCORE, RIGHT, clusters=PATIENT, seed=seed)
    tally.save(tmp_path / "t.json")
    assert Tally.load(tmp_path / "t.json") == tally


@pytest.mark.parametrize("seed", [True, "7", 1.5, [1], np.nan])
def test_what_is_no_whole_number_is_no_seed(seed: Any) -> None:
    with pytest.raises(InvalidTypeError, match="is not a seed: expected a whole number"):
        calibrate(**DRAWS["clusters"], seed=seed)


def _truth(known: int, column: Any = LABEL) -> np.ndarray:
    found = np.asarray(column, dtype=float).copy()
    found[known:] = np.nan
    return found


LACKING: dict[str, Any] = {
    "cascade": lambda **seed: certify_cascade(
        SCORE, ANSWERS, _truth(100), xi=0.9, delta=0.05, clusters=PATIENT, **seed
    ),
    "cascade without labels": lambda **seed: certify_cascade(
        SCORE, ANSWERS, xi=0.9, delta=0.05, clusters=PATIENT, **seed
    ),
    "replacement": lambda **seed: certify_replacement(
        ANSWERS, _truth(100), xi=0.9, delta=0.05, clusters=PATIENT, unrelated_labels=True, **seed
    ),
    "sets": lambda **seed: certify_sets(
        np.full((ROWS, 3), 1 / 3), _truth(100), xi=0.9, delta=0.05, clusters=PATIENT, **seed
    ),
    "grades": lambda **seed: certify_cascade(
        SCORE,
        quality=np.column_stack([QUALITY[:, 0], _truth(100, QUALITY[:, 1])]),
        xi=0.9,
        delta=0.05,
        clusters=PATIENT,
        **seed,
    ),
}


@pytest.mark.parametrize("look", LACKING.values(), ids=LACKING)
def test_a_look_before_all_labels_are_there_needs_a_seed_and_the_message_gives_one(
    look: Any,
) -> None:
    with pytest.raises(InvalidValueError, match=r"still lack their .* Pass seed=\d+") as error:
        look()
    seed = int(str(error.value).partition("Pass seed=")[2].split()[0])
    assert seeds_of(look(seed=seed)) == {seed}


def _of_every_cluster(tally: Tally) -> list[int]:
    """The rows that were drawn, where each row has a cell of its own."""
    return list(tally.cells[:, 0].tolist())


def test_an_arriving_label_or_grade_moves_no_drawn_row() -> None:
    ids = np.arange(ROWS)

    def drawn(answers: Any, known: int) -> list[int]:
        tally = Tally.count(
            "cascade",
            (ids + 0.5) / 2**16,
            answers,
            _truth(known),
            clusters=PATIENT,
            seed=6411,
            unrelated_labels=True,
            unseen_labels=1.0,
        )
        assert tally.rows == ROWS // 4
        return _of_every_cluster(tally)

    first = drawn(ANSWERS, 0)
    assert all(drawn(ANSWERS, known) == first for known in (1, 60, 150, ROWS))


def test_an_arriving_grade_moves_no_drawn_row() -> None:
    quality = np.column_stack([np.full(ROWS, 0.5), np.full(ROWS, 1.0)])
    late = quality.copy()
    late[::3, 0] = np.nan
    given: dict[str, Any] = {"clusters": PATIENT, "seed": 6411, "row_ids": np.arange(ROWS)}
    places = (np.arange(ROWS) + 0.5) / 2**16
    whole, part = (
        Tally.count("cascade", places, quality=each, **given) for each in (quality, late)
    )
    assert _of_every_cluster(whole) == _of_every_cluster(part)
    known = part.counts[:, 1] == 0
    assert (whole.counts[known] == part.counts[known]).all()


def test_rows_with_ids_are_drawn_alike_in_any_order_by_the_seed_of_the_first_call() -> None:
    order = np.random.default_rng(1).permutation(ROWS)
    given: dict[str, Any] = {**DRAWS["both"], "row_ids": np.arange(ROWS)}
    made = calibrate(**given)
    moved: dict[str, Any] = {
        k: v[order] if isinstance(v, np.ndarray) else v for k, v in given.items()
    }
    (seed,) = seeds_of(made)
    assert calibrate(**moved, seed=seed).claim() == made.claim()


def test_tallies_counted_apart_have_seeds_of_their_own_and_add_if_one_was_passed() -> None:
    def half(which: int, **seed: Any) -> Tally:
        rows = which == PATIENT % 2
        return Tally.count("calibration", SCORE[rows], RIGHT[rows], clusters=PATIENT[rows], **seed)

    with pytest.raises(InvalidValueError, match="counted apart have seeds of their own"):
        half(0) + half(1)
    first = half(0)
    whole = Tally.count("calibration", SCORE, RIGHT, clusters=PATIENT, seed=first.seed)
    assert first + half(1, seed=first.seed) == whole
