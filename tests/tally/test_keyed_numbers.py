"""Random numbers by name: the same for ever, and as random as they must be."""

import numpy as np
from scipy.special import bdtr

from pacbound.tally.keyed_numbers import keyed_numbers, uniforms

FROZEN = [[10533308357501219704, 15138579770014947881], [1655787586065050667, 999235525540075702]]


def test_the_numbers_of_a_name_never_change() -> None:
    # Certificates record a seed: the same rows must be drawn by it in every version.
    assert keyed_numbers(0, "cluster", ["p1", ""], each=2).tolist() == FROZEN


def test_a_number_depends_on_its_name_alone() -> None:
    together = keyed_numbers(7, "row", ["a", "b", "c"])
    assert keyed_numbers(7, "row", ["c", "a"]).tolist() == together[[2, 0]].tolist()


def test_another_seed_or_purpose_gives_other_numbers() -> None:
    names = ["a", "b"]
    found = [
        keyed_numbers(seed, purpose, names).tolist()
        for seed in (0, 1)
        for purpose in ("cluster", "row", "name")
    ]
    assert len({str(numbers) for numbers in found}) == len(found)


def test_half_a_character_is_a_name() -> None:
    assert keyed_numbers(0, "row", ["\ud800"]).shape == (1, 1)


def test_uniforms_are_below_one_and_spread_evenly() -> None:
    largest = np.array([0, 2**64 - 1], dtype=np.uint64)
    assert uniforms(largest).tolist() == [0.0, 1 - 2.0**-53]
    found = uniforms(keyed_numbers(3, "row", map(str, range(20_000)))[:, 0])
    for share in (0.01, 0.1, 0.5, 0.9):
        below = int((found < share).sum())
        tail = min(bdtr(below, 20_000, share), 1 - bdtr(below - 1, 20_000, share))
        assert tail > 1e-4
