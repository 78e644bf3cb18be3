"""The headline: what the first page says is what was measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("matplotlib", reason="figures need the extra `report`")


from experiments import headline

RESULTS = Path(__file__).parents[2] / "experiments" / "results"


@pytest.fixture(scope="module")
def record() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RESULTS / "headline.json").read_text(encoding="utf-8"))
    return found


def test_no_split_of_the_headline_is_one_that_the_search_was_developed_on(
    record: dict[str, Any],
) -> None:
    assert len(record["seeds"]) == 100
    assert not set(record["seeds"]) & set(record["developed_on"])
    with pytest.raises(SystemExit, match="developed on"):
        headline.measured({"seeds": [3, 100], "paper": {"slow": (1, 1), "product": (1, 1)}}, {})


def test_the_headline_is_what_the_splits_of_fast_inference_showed(record: dict[str, Any]) -> None:
    names = ("imagenet_fast_inference.json", "imagenet_cpu_time.json")
    cascades, times = (json.loads((RESULTS / name).read_text(encoding="utf-8")) for name in names)
    again = headline.measured(cascades, times)
    assert {k: v for k, v in again.items() if k != "versions"} == {
        k: v for k, v in record.items() if k != "versions"
    }


def test_the_headline_says_how_often_the_slow_network_is_never_asked(
    record: dict[str, Any],
) -> None:
    never = record["splits_that_never_ask_the_slow_network"]
    assert 0 < never < len(record["seeds"])
    said = headline.markdown(record)
    assert f"In {never} of {len(record['seeds'])} splits it never asks ResNet-101" in said
    assert (RESULTS / "headline.md").read_text(encoding="utf-8").strip() == said.strip()
    silent = {**record, "splits_that_never_ask_the_slow_network": 0, "instead": None}
    assert "It asks ResNet-101 in every split." in headline.markdown(silent)


def test_the_certified_cascades_are_not_shown_to_lose_more_than_they_may(
    record: dict[str, Any],
) -> None:
    for result in record["methods"].values():
        assert result["loss"]["mean"] < record["settings"]["xi"]
        assert result["splits_shown_above_xi"] <= 0.05 * len(record["seeds"])
