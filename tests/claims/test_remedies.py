"""After a result of little use the certificate says what to change and what it costs: each of these
situations is made on purpose. None of them is said where the result is good."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pacbound import (
    Tally,
    calibrate,
    certify_abstention,
    certify_cascade,
    certify_false_alarms,
    certify_precision,
    certify_recall,
    exact_verifier,
    load_certificate,
)

N = 4000
RNG = np.random.default_rng(6)
POSITIVE = RNG.random(N) < 0.2
WEAK = np.where(POSITIVE, RNG.beta(3, 2, size=N), RNG.beta(2, 3, size=N))
STRONG = np.where(POSITIVE, RNG.beta(9, 2, size=N), RNG.beta(1, 9, size=N))
CONFIDENCE = RNG.beta(8, 1, size=N)
RIGHT = RNG.random(N) < CONFIDENCE
REMEDIES = ("Too wide", "More than half", "Nearly all", "share the score", "reversed", "beat")


def notes(certificate: Any) -> list[str]:
    return [note for note in map(str, certificate.says.notes) if any(w in note for w in REMEDIES)]


def test_wide_intervals_say_how_many_rows_or_bins_make_them_narrow() -> None:
    few = calibrate(CONFIDENCE[:200], RIGHT[:200], delta=0.01)
    (said,) = notes(few)
    assert said == (
        "Too wide to be of much use: for a mean width of 0.2 take about 668 rows, or 3 bins with "
        "these rows."
    )
    for other in (
        calibrate(CONFIDENCE[:668], RIGHT[:668], delta=0.01),
        calibrate(CONFIDENCE[:200], RIGHT[:200], delta=0.01, n_bins=3),
    ):
        assert 0.14 < np.average(other.upper - other.lower, weights=other.trials) < 0.26
    assert not notes(calibrate(CONFIDENCE, RIGHT, delta=0.01))
    assert not notes(calibrate(CONFIDENCE[:200], RIGHT[:200], delta=0.01, side="lower"))


def test_a_recall_that_flags_over_half_says_what_more_positives_or_a_lower_target_give() -> None:
    certificate = certify_recall(WEAK, POSITIVE, target=0.98, delta=0.01)
    assert certificate.coverage > 0.9
    (said,) = notes(certificate)
    assert said == (
        "More than half of the rows are flagged: many more positives would bring that to about "
        "88 %, a target of 70 % to 42 % (fresh rows); else use a score that separates better."
    )
    lower = certify_recall(WEAK, POSITIVE, target=0.7, delta=0.01)
    assert round(lower.coverage, 2) == 0.42
    assert not notes(certify_recall(STRONG, POSITIVE, target=0.95, delta=0.01))
    # Where most rows are positive most must be flagged.
    assert not notes(certify_recall(STRONG[POSITIVE], POSITIVE[POSITIVE], target=0.9, delta=0.01))
    grouped = certify_recall(WEAK, POSITIVE, target=0.98, delta=0.01, groups=np.arange(N) % 2)
    assert "More than half" in grouped.summary()


def test_an_abstention_that_answers_nearly_all_says_how_to_bound_rare_answers() -> None:
    """39 % of the answers "effusion", which is rare, are wrong."""
    answer = np.where(np.arange(N) % 50 == 0, "effusion", "clear")
    right = np.where(answer == "effusion", np.arange(N) % 100 > 0, np.arange(N) % 100 > 1)
    all_together = certify_abstention(CONFIDENCE, right, xi=0.05, delta=0.01)
    assert all_together.coverage == 1
    (said,) = notes(all_together)
    assert "a rare answer may be wrong far more often, which these counts do not show" in said
    assert "(pass prediction and label in place of correct to see it)" in said
    assert "pass the predictions as groups, at delta divided by their number." in said
    apart = certify_abstention(CONFIDENCE, right, xi=0.05, delta=0.01, groups=answer)
    assert apart.thresholds["effusion"] == np.inf
    assert not notes(apart)
    assert not notes(certify_abstention(CONFIDENCE, RIGHT, xi=0.05, delta=0.01))
    # What is flagged is not an answer.
    assert not notes(certify_precision(STRONG, POSITIVE, target=0.1, delta=0.01))


def test_an_abstention_names_the_rare_answer_that_is_wrong_most_often(tmp_path: Any) -> None:
    """39 % of the answers "effusion" are wrong, and 2 % of all."""
    answer = np.where(np.arange(N) % 40 == 0, "effusion", "clear")
    wrong = np.where(answer == "effusion", np.arange(N) // 40 % 100 < 39, np.arange(N) % 99 == 1)
    label = np.where(wrong, np.where(answer == "clear", "effusion", "clear"), answer)
    asked: Any = {"xi": 0.05, "delta": 0.01}
    named = certify_abstention(CONFIDENCE, prediction=answer, label=label, **asked)
    said = (
        "39 % of the answers 'effusion' are wrong (39 of 100), though nearly all rows are "
        "answered: certify per class. For that pass the predictions as groups, at delta divided by "
        "their number. Each class then needs enough rows of its own."
    )
    assert named.provenance.notes == {"worst_answer": "39/100 effusion"}
    assert said in map(str, named.says.notes)
    named.save(tmp_path / "c.json")
    loaded = load_certificate(tmp_path / "c.json")
    assert loaded.summary() == named.summary()
    assert not exact_verifier.check_document(named.to_dict()).wrong
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"c": CONFIDENCE, "p": answer, "y": label})
    frame.write_parquet(tmp_path / "rows.parquet")
    for data in (frame, tmp_path / "rows.parquet"):
        columns: Any = {"prediction": "p", "label": "y", "data": data}
        assert said in map(str, certify_abstention("c", **columns, **asked).says.notes)
    # By the tally alone the classes are not known; and where no answer is worse nothing is said.
    tally = Tally.count("abstention", CONFIDENCE, prediction=answer, label=label)
    assert "which these counts do not show" in certify_abstention(data=tally, **asked).summary()
    good = np.where(np.arange(N) % 50 == 1, "effusion", answer)
    fine = certify_abstention(CONFIDENCE, prediction=good, label=good, **asked)
    assert not [note for note in map(str, fine.says.notes) if "answers" in note]


def test_saturated_scores_say_that_a_finer_score_may_do_better() -> None:
    tied = notes(
        certify_false_alarms(np.where(WEAK > 0.5, 0.9, WEAK), POSITIVE, xi=0.1, delta=0.01)
    )
    assert len(tied) == 1
    assert tied[0].startswith("39 % of the rows share the score that decides")
    assert "a finer score (logits in float64, not rounded) may do better, on fresh rows" in tied[0]
    recall = certify_recall(WEAK.round(), POSITIVE, target=0.5, delta=0.01)
    assert "39 % of the rows share the score that decides" in notes(recall)[0]
    saturated = np.where(WEAK > 0.5, 1.0, WEAK)
    refused = certify_false_alarms(saturated, POSITIVE, xi=0.1, delta=0.01)
    assert "Use a score that tells them apart, such as logits in float64." in refused.summary()
    answers = np.column_stack([np.where(RIGHT, 0, 1), np.zeros(N, dtype=int)])
    cascade = certify_cascade(np.ones(N), answers, np.zeros(N, dtype=int), xi=0.02, delta=0.01)
    assert "Use a score that separates them (a temperature, logits in float64" in cascade.summary()


def test_an_exit_that_beats_the_whole_network_may_replace_it() -> None:
    label = np.zeros(N, dtype=int)
    answers = np.column_stack([np.arange(N) % 50 == 0, np.arange(N) % 9 == 0]).astype(int)
    certificate = certify_cascade(CONFIDENCE, answers, label, xi=0.02, delta=0.01)
    (said,) = notes(certificate)
    assert "the exits seem to beat the slow model" in said
    assert "certify on fresh rows that it may replace it (certify_replacement)" in said


@pytest.mark.parametrize(
    ("certificate", "said"),
    [
        (
            lambda: certify_recall(1 - WEAK, POSITIVE, target=0.9, delta=0.01),
            "The score seems to be reversed: a positive row scores above a negative one in only "
            "24 % of all pairs. If so, pass 1 - score; that takes fresh rows.",
        ),
        (
            lambda: certify_precision(1 - STRONG, POSITIVE, target=0.9, delta=0.01),
            "The score seems to be reversed: a positive row scores above a negative one in only "
            "0 % of all pairs. If so, pass 1 - score; that takes fresh rows.",
        ),
        (
            lambda: certify_abstention(1 - CONFIDENCE, RIGHT, xi=0.05, delta=0.01),
            "The confidence seems to be reversed: a right row scores above a wrong one in only "
            "25 % of all pairs. If so, pass 1 - confidence; that takes fresh rows.",
        ),
    ],
)
def test_a_score_that_is_reversed_is_said_to_be(certificate: Any, said: str) -> None:
    assert notes(certificate()) == [said]


def _rare() -> Any:
    answer = np.where(np.arange(N) % 40 == 0, "effusion", "clear")
    wrong = (answer == "effusion") & (np.arange(N) // 40 % 100 < 39)
    label = np.where(wrong, "clear", answer)
    return certify_abstention(CONFIDENCE, prediction=answer, label=label, xi=0.05, delta=0.01)


def _beaten() -> Any:
    answers = np.column_stack([np.arange(N) % 50 == 0, np.arange(N) % 9 == 0]).astype(int)
    return certify_cascade(CONFIDENCE, answers, np.zeros(N, dtype=int), xi=0.02, delta=0.01)


# Each useless result, made on purpose. `python -m tests.claims.test_remedies` prints what is said.
SITUATIONS: dict[str, tuple[Any, str]] = {
    "intervals wider than 0.2": (
        lambda: calibrate(CONFIDENCE[:200], RIGHT[:200], delta=0.01),
        "Too wide",
    ),
    "recall that flags over half": (
        lambda: certify_recall(WEAK, POSITIVE, target=0.98, delta=0.01),
        "More than half",
    ),
    "abstention that answers nearly all, one class is rare": (_rare, "certify per class"),
    "saturated scores": (
        lambda: certify_false_alarms(np.where(WEAK > 0.5, 0.9, WEAK), POSITIVE, xi=0.1, delta=0.01),
        "share the score",
    ),
    "an exit that beats the whole network": (_beaten, "seem to beat"),
    "a reversed score": (
        lambda: certify_recall(1 - WEAK, POSITIVE, target=0.9, delta=0.01),
        "reversed",
    ),
}


@pytest.mark.parametrize("name", SITUATIONS)
def test_every_useless_result_is_followed_by_one_sentence_that_helps(name: str) -> None:
    make, word = SITUATIONS[name]
    assert len([note for note in map(str, make().says.notes) if word in note]) == 1


if __name__ == "__main__":
    for name, (make, word) in SITUATIONS.items():
        (said,) = [note for note in map(str, make().says.notes) if word in note]
        print(f"{name}:\n    {said}")  # noqa: T201
