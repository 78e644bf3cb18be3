"""A few cases of a product stand for all, and none is lost on the way."""

from __future__ import annotations

import pytest
from tests.products import standing_for


def test_the_few_run_always_and_the_rest_only_with_every_product() -> None:
    first, second, third = standing_for(["a", "b", "c"], ["b"])
    assert second == "b"
    assert [(one.values, [mark.name for mark in one.marks]) for one in (first, third)] == [
        (("a",), ["product"]),
        (("c",), ["product"]),
    ]


def test_the_rest_may_be_slow_only() -> None:
    first, second = standing_for(["a", "b"], ["a"], rest="slow")
    assert first == "a"
    assert [mark.name for mark in second.marks] == ["slow"]


def test_a_case_of_several_values_stays_one_case() -> None:
    first, second = standing_for([("a", 1), ("b", 2)], [("a", 1)])
    assert first == ("a", 1)
    assert second.values == ("b", 2)


@pytest.mark.parametrize("few", [[], ["d"]])
def test_a_product_without_a_case_that_always_runs_is_refused(few: list[str]) -> None:
    with pytest.raises(ValueError, match="cannot stand for"):
        standing_for(["a", "b"], few)
