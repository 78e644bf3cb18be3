"""Tables of rollouts come back from files as they were, the command line reads them, and frames
carry their labels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("joblib", reason="joblib is not installed: pip install 'pacbound[shield]'")

from tests.shield.cars import Car, brake, danger, is_recoverable, labelled, rash, slippery

from pacbound import Tally, certify_shield
from pacbound.errors import InvalidValueError
from pacbound.shield import Frames, Rollouts


@pytest.fixture(scope="module")
def rollouts() -> Rollouts:
    return labelled(slippery, rash, brake, danger, seeds=range(300), horizon=40)


def test_a_table_comes_back_as_it_was(rollouts: Rollouts, tmp_path: Path) -> None:
    rollouts.save(tmp_path / "rollouts.npz")
    back = Rollouts.load(tmp_path / "rollouts.npz")
    for column, values in rollouts.columns.items():
        assert back.columns[column].dtype == values.dtype
        np.testing.assert_array_equal(back.columns[column], values)
    assert repr(back) == repr(rollouts)
    assert len(back) == 300


def test_a_claim_is_counted_from_the_file_as_it_is(rollouts: Rollouts, tmp_path: Path) -> None:
    assert np.isneginf(rollouts.score).any()
    table = tmp_path / "rollouts.npz"
    rollouts.save(table)
    counted = Tally.count("shield", data=table, score="score", unsafe="unsafe")
    expected = certify_shield(rollouts.score, rollouts.unsafe, xi=0.3, delta=0.05)
    assert certify_shield(data=counted, xi=0.3, delta=0.05).threshold == expected.threshold
    assert expected.certified
    assert certify_shield(data=rollouts.tally(), xi=0.3, delta=0.05).threshold == expected.threshold


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.npz", "seed", "cannot be read as .npz"),
        ("a.csv", "seed,score", "expected a name that ends in .npz"),
    ],
)
def test_what_is_no_table_is_refused(tmp_path: Path, name: str, text: str, message: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InvalidValueError, match=message):
        Rollouts.load(tmp_path / name)


def test_frames_are_what_the_policy_acted_on_with_the_label_of_their_state(tmp_path: Path) -> None:
    rollouts = labelled(
        Car,
        rash,
        brake,
        None,
        seeds=range(60),
        horizon=40,
        folder=tmp_path,
        identity="a car",
        keep_frames=True,
        chunk=7,
    )
    frames = Frames.load(tmp_path)
    assert frames.observations.dtype == np.float32
    assert len(frames) == rollouts.steps.sum()
    for (gap, speed), label in zip(
        frames.observations.astype(int).tolist(), frames.unrecoverable, strict=True
    ):
        assert label != is_recoverable(gap, speed, rash((gap, speed)))
    first = frames.unrecoverable
    assert dict(zip(frames.seed[first].tolist(), frames.step[first].tolist(), strict=True)) == {
        seed: step
        for seed, step in zip(
            rollouts.seed.tolist(), rollouts.first_unrecoverable.tolist(), strict=True
        )
        if step >= 0
    }
    assert sum(map(len, Frames.parts(tmp_path))) == len(frames)
