"""Random orders follow from their key alone, and are the same forever."""

import numpy as np
import pytest
from tests.cascade.batch_problems import key_of

from pacbound.procedures import batch
from pacbound.procedures.batch import keyed_permutation


def test_the_order_of_a_key_never_changes() -> None:
    assert keyed_permutation(10, "0" * 30 + "2a").tolist() == [7, 1, 6, 4, 3, 5, 9, 0, 2, 8]


@pytest.mark.parametrize("size", [0, 1, 2, 1000])
def test_an_order_holds_every_number_once(size: int) -> None:
    order = keyed_permutation(size, key_of(0))
    assert sorted(order.tolist()) == list(range(size))


def test_every_order_of_four_comes_up_equally_often() -> None:
    rng = np.random.default_rng(1)
    orders = [tuple(keyed_permutation(4, rng.bytes(16).hex()).tolist()) for _ in range(4800)]
    _, counts = np.unique(orders, axis=0, return_counts=True)
    assert len(counts) == 24
    # Chi-squared with 23 degrees of freedom exceeds 49.7 with a chance of 0.001.
    assert ((counts - 200) ** 2 / 200).sum() < 49.7


@pytest.mark.parametrize("block", [1, 7, 2**20])
@pytest.mark.parametrize("first", [0, 1, 5, 499, 500])
def test_the_first_of_an_order_are_its_first_however_many_are_drawn_at_a_time(
    monkeypatch: pytest.MonkeyPatch, block: int, first: int
) -> None:
    monkeypatch.setattr(batch, "_BLOCK", block)
    key = key_of(first)
    assert (
        keyed_permutation(500, key, first).tolist() == keyed_permutation(500, key)[:first].tolist()
    )


def test_a_key_has_32_digits_and_follows_from_the_generator() -> None:
    keys = [key_of(seed) for seed in (0, 0, 1)]
    assert keys[0] == keys[1] != keys[2]
    assert all(len(key) == 32 and int(key, 16) >= 0 for key in keys)


def test_equal_words_are_told_apart_by_the_second_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    class Words:
        def __init__(self, key: int) -> None:
            assert key == 0

        def random_raw(self, size: int) -> np.ndarray:
            return np.array([5, 5, 1, 9, 2, 0], dtype=np.uint64)[:size]

    monkeypatch.setattr(np.random, "Philox", Words)
    assert keyed_permutation(3, "0" * 32).tolist() == [2, 1, 0]
    assert keyed_permutation(3, "0" * 32, 2).tolist() == [2, 1]
