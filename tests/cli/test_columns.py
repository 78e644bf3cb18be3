"""`--column ROLE=NAME`: what is typed, as the questions of certificates take it."""

import pytest

from pacbound.cli.rows import for_question, named_columns, require_roles, several_of
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.tally.questions import QUESTIONS


def test_pairs_are_parted_at_the_first_equals_sign_and_names_stay_as_they_are() -> None:
    assert named_columns(None) == {}
    pairs = ["score=a=b", "label= y ", "groups=a,b"]
    assert named_columns(pairs) == {"score": "a=b", "label": " y ", "groups": "a,b"}


@pytest.mark.parametrize("pair", ["score", "score=", "=c", ""])
def test_what_is_not_a_pair_is_refused(pair: str) -> None:
    with pytest.raises(InvalidValueError, match="expected ROLE=NAME"):
        named_columns([pair])


def test_a_role_that_there_is_not_is_refused_with_those_that_there_are() -> None:
    require_roles({"score": "s"}, ["score", "positive"], "a recall")
    with pytest.raises(InvalidTypeError, match="a recall has no role 'scores'") as no:
        require_roles({"scores": "s"}, ["score", "positive"], "a recall")
    assert str(no.value).endswith("Did you mean score=s? Its roles are score, positive.")


def test_several_models_have_lists_and_a_single_name_may_have_commas() -> None:
    cascade, calibration = QUESTIONS["cascade"], QUESTIONS["calibration"]
    assert several_of(cascade) == {"confidence", "prediction", "quality"}
    assert [*for_question(cascade, {"prediction": "a, b"}).values()] == [["a", "b"]]
    assert for_question(calibration, {"confidence": "a, b"}) == {"confidence": "a, b"}
