"""The headline: what the first page says is what was measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("matplotlib", reason="figures need the extra `report`")


from experiments import headline

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def record() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        (ROOT / "experiments" / "results" / "headline.json").read_text(encoding="utf-8")
    )
    return found


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_the_first_page_opens_with_the_picture_and_the_numbers(
    page: str, record: dict[str, Any]
) -> None:
    opening = (ROOT / page).read_text(encoding="utf-8")[:2_000]
    assert "headline.svg" in opening
    for name in ("exact", "designed_4"):
        assert f"{record['methods'][name]['saved']['mean']:.0%}".replace("%", " %") in opening
    assert f"{record['reported_by_the_paper']['saved']:.0%}".replace("%", " %") in opening
    saved = record["methods"]["designed_4"]["saved"]
    assert f"{100 * saved['low']:.0f} to {100 * saved['high']:.0f} %" in opening
    assert f"{len(record['seeds'])} random splits" in opening
    lost = record["methods"]["designed_4"]["loss"]["mean"]
    assert f"{100 * lost:.1f} points lost on test images" in opening


def test_no_split_of_the_headline_is_one_that_the_search_was_developed_on(
    record: dict[str, Any],
) -> None:
    assert len(record["seeds"]) == 100
    assert not set(record["seeds"]) & set(record["developed_on"])
    with pytest.raises(SystemExit, match="developed on"):
        headline.measured({"seeds": [3, 100], "paper": {"slow": (1, 1), "product": (1, 1)}})


def test_the_headline_is_what_the_splits_of_fast_inference_showed(record: dict[str, Any]) -> None:
    path = ROOT / "experiments" / "results" / "imagenet_fast_inference.json"
    cascades = json.loads(path.read_text(encoding="utf-8"))
    again = headline.measured(cascades)
    assert {k: v for k, v in again.items() if k != "versions"} == {
        k: v for k, v in record.items() if k != "versions"
    }


def test_the_certified_cascades_are_not_shown_to_lose_more_than_they_may(
    record: dict[str, Any],
) -> None:
    for result in record["methods"].values():
        assert result["loss"]["mean"] < record["settings"]["xi"]
        assert result["splits_shown_above_xi"] <= 0.05 * len(record["seeds"])
