"""The plain sentence of a claim promises what is certified, and marks what was only seen."""

from __future__ import annotations

import pytest
from tests.certificate.conftest import MAKERS, made

from pacbound import certify_recall
from pacbound.says import Quantity, confidence


@pytest.mark.parametrize("name", sorted(MAKERS))
def test_every_kind_is_said_in_a_plain_sentence(name: str) -> None:
    certificate = made(name)
    said = certificate.says
    plain = str(said.plain)
    if said.refused:
        assert not certificate.certified
        assert "do not show that" in plain
        assert said.costs is None
    elif certificate.kind not in ("batch", "bundle"):
        assert plain.startswith("In the long run, ")
        assert plain.endswith(f"({confidence(certificate.delta).text} confidence).")
        draw = certificate.draw
        once = draw is not None and draw.by == "clusters" and draw.bound is None
        assert ("if each cluster counts once" in plain) == once
    # What was seen is never part of the sentence that promises.
    assert said.costs is None or str(said.costs).startswith(
        ("On these ", "The slow model answered")
    )
    assert "these rows," not in plain
    assert str(said.heading)


@pytest.mark.parametrize(
    ("value", "side", "text"),
    [
        (0.95, "down", "95 of 100"),
        (0.0125, "up", "125 of 10,000"),
        (1 / 3, "up", "33.34 % of"),
        (1 / 3, "down", "33.33 % of"),
        (0.0, "up", "0 of 100"),
        (0.0049, "near", "5 of 1,000"),
        (0.99999, "near", "99,999 of 100,000"),
        (1e-9, "near", "0.0000001 % of"),
        (1.0, "near", "100 of 100"),
    ],
)
def test_a_share_is_counted_as_people_do_and_a_promise_is_not_rounded(
    value: float, side: str, text: str
) -> None:
    assert Quantity(value, "often", side).text == text  # type: ignore[arg-type]


def test_a_target_that_no_short_number_says_is_rounded_to_the_safe_side() -> None:
    score, positive = [0.9] * 400, [True] * 400
    certificate = certify_recall(score, positive, target=0.66666666666, delta=0.05)
    assert "at least 66.66 % of positives are flagged" in str(certificate.says.plain)
