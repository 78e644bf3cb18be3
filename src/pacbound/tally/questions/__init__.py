"""The questions that rows can be asked, one file each. To add one, add it here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.stats.arguments import is_one_of
from pacbound.tally.questions.cascade import CASCADE
from pacbound.tally.questions.correctness import ABSTENTION, CALIBRATION
from pacbound.tally.questions.flagged_scores import ROLLOUTS, SCORE_BY_POSITIVE
from pacbound.tally.questions.forked_rollouts import FORKS
from pacbound.tally.questions.label_scores import LABEL_SCORES
from pacbound.tally.questions.passed import PASSED
from pacbound.tally.questions.question import Judged, Question, Scope, with_article
from pacbound.tally.questions.replacement import REPLACEMENT

# All questions by their names.
QUESTIONS: Mapping[str, Question] = {
    question.kind: question
    for question in (
        CALIBRATION,
        ABSTENTION,
        CASCADE,
        ROLLOUTS,
        FORKS,
        SCORE_BY_POSITIVE,
        LABEL_SCORES,
        REPLACEMENT,
        PASSED,
    )
}


def question_named(question: Any) -> Question:
    """A question by its name.

    Parameters
    ----------
    question
        One of the names in `QUESTIONS`.

    Returns
    -------
    Question
        The question.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If there is no such question; the message lists the columns of each.

    Examples
    --------
    >>> question_named("recall").outcomes
    ('negative', 'positive')
    """
    if is_one_of(question, QUESTIONS):
        return QUESTIONS[question]
    listed = "; ".join(f"{name!r}: {', '.join(one.roles)}" for name, one in QUESTIONS.items())
    error = InvalidValueError if isinstance(question, str) else InvalidTypeError
    raise error(f"question={question!r} is not known: expected one of {listed}.")


__all__ = [
    "ABSTENTION",
    "CALIBRATION",
    "CASCADE",
    "QUESTIONS",
    "Judged",
    "Question",
    "Scope",
    "question_named",
    "with_article",
]
