"""The shadow: a keyed draw that any machine repeats."""

from __future__ import annotations

from hashlib import blake2b

import pytest
from scipy.special import bdtr, bdtrc

from pacbound.monitor import Shadow


def test_a_row_is_drawn_by_its_name_and_the_key_alone() -> None:
    shadow = Shadow(0.3, key="a key")
    rows = [f"request-{i}" for i in range(500)]
    mask = shadow.mask(rows)
    assert [shadow.wants(row) for row in reversed(rows)] == mask.tolist()[::-1]
    assert Shadow(0.3, key=b"a key").mask(rows).tolist() == mask.tolist()
    assert Shadow(0.3, key="another").mask(rows).tolist() != mask.tolist()
    assert shadow.mask(range(50)).tolist() == shadow.mask(map(str, range(50))).tolist()


def test_the_draw_is_the_one_that_is_written_down() -> None:
    shadow = Shadow(0.1, key="7d1f")
    for row in range(200):
        drawn = blake2b(str(row).encode(), digest_size=8, key=b"7d1f").digest()
        assert shadow.wants(row) == (int.from_bytes(drawn, "big") / 2**64 < 0.1)


@pytest.mark.parametrize("share", [0.01, 0.25, 0.9])
def test_the_share_is_drawn(share: float) -> None:
    drawn, rows = int(Shadow(share, key="seed").mask(range(20_000)).sum()), 20_000
    assert min(bdtr(drawn, rows, share), bdtrc(drawn - 1, rows, share)) > 1e-4


def test_a_larger_share_draws_the_same_rows_and_more() -> None:
    some, more = (Shadow(share, key="seed").mask(range(2000)) for share in (0.1, 0.4))
    assert (more | ~some).all()
    assert Shadow(1.0, key="seed").mask(range(2000)).all()
