"""Tables of rollouts come back from files as they were, the command line reads them, and frames
carry their labels."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

pytest.importorskip("joblib", reason="joblib is not installed: pip install 'pacbound[shield]'")

from tests.shield.cars import Car, brake, danger, is_recoverable, labelled, rash, slippery

from pacbound import Tally, certify_shield
from pacbound.errors import InvalidValueError
from pacbound.shield import Frames, Rollouts, ShieldedRollouts, run_shielded


@pytest.fixture(scope="module")
def rollouts() -> Rollouts:
    return labelled(slippery, rash, brake, danger, seeds=range(300), horizon=40)


@pytest.mark.parametrize("name", ["rollouts.npz", "rollouts.csv", "rollouts.tsv"])
def test_a_table_comes_back_as_it_was(rollouts: Rollouts, tmp_path: Path, name: str) -> None:
    rollouts.save(tmp_path / name)
    back = Rollouts.load(tmp_path / name)
    for column, values in rollouts.columns.items():
        assert back.columns[column].dtype == values.dtype
        np.testing.assert_array_equal(back.columns[column], values)
    assert repr(back) == repr(rollouts)
    assert len(back) == 300


def test_errors_with_commas_and_quotes_come_back(tmp_path: Path) -> None:
    class Broken(Car):
        def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
            if self.gap == 20:
                raise RuntimeError('a "bent", axle')
            return super().step(action)

        def reset(
            self, *, seed: int | None = None, options: dict[str, Any] | None = None
        ) -> tuple[Any, dict[str, Any]]:
            super().reset(seed=seed)
            self.gap, self.speed = 15 + int(seed or 0), 1
            return self._look(), {}

    made = labelled(Broken, rash, brake, danger, seeds=range(8), horizon=1)
    made.save(tmp_path / "rollouts.csv")
    assert Rollouts.load(tmp_path / "rollouts.csv").error.tolist() == made.error.tolist()
    assert 'RuntimeError: a "bent", axle' in made.error


@pytest.mark.parametrize("name", ["rollouts.npz", "rollouts.csv", "rollouts.tsv"])
def test_the_command_line_certifies_from_the_file_as_it_is(
    rollouts: Rollouts, tmp_path: Path, name: str
) -> None:
    pytest.importorskip("duckdb", reason="reading text needs the extra `frames`")
    assert np.isneginf(rollouts.score).any()
    rollouts.save(tmp_path / name)
    counted = Tally.count("shield", data=tmp_path / name, score="score", unsafe="unsafe")
    expected = certify_shield(rollouts.score, rollouts.unsafe, xi=0.3, delta=0.05)
    assert certify_shield(data=counted, xi=0.3, delta=0.05).threshold == expected.threshold
    assert expected.certified
    assert certify_shield(data=rollouts.tally(), xi=0.3, delta=0.05).threshold == expected.threshold


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.csv", "", "is empty"),
        ("a.csv", "seed,score\n1,0.5\n", "has no column 'unsafe'"),
        ("a.csv", "seed,score\n1\n", "line 2 has 1 values: expected 2"),
        ("a.npz", "seed", "cannot be read as .npz"),
        ("a.parquet", "", "ends in .npz, .csv or .tsv"),
    ],
)
def test_what_is_no_table_is_refused(tmp_path: Path, name: str, text: str, message: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InvalidValueError, match=message):
        Rollouts.load(tmp_path / name)


def test_a_table_with_values_that_are_none_is_refused(rollouts: Rollouts, tmp_path: Path) -> None:
    path = tmp_path / "rollouts.csv"
    rollouts.save(path)
    path.write_text(path.read_text().replace("true", "perhaps"))
    with pytest.raises(InvalidValueError, match="is not a table of rollouts: 'perhaps'"):
        Rollouts.load(path)
    with pytest.raises(InvalidValueError, match=r"ends in \.npz, \.csv or \.tsv"):
        rollouts.save(tmp_path / "rollouts.parquet")


def test_frames_are_what_the_policy_acted_on_with_the_label_of_their_state(tmp_path: Path) -> None:
    rollouts = labelled(
        Car,
        rash,
        brake,
        None,
        seeds=range(60),
        horizon=40,
        folder=tmp_path,
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


def test_a_fraction_keeps_that_share_of_the_recoverable_frames_and_all_others(
    tmp_path: Path,
) -> None:
    def kept(share: float) -> Frames:
        folder = tmp_path / str(share)
        labelled(
            Car,
            rash,
            brake,
            None,
            seeds=range(200),
            horizon=40,
            folder=folder,
            keep_frames=share,
            follow_through=True,
        )
        return Frames.load(folder)

    whole, some = kept(1.0), kept(0.25)
    assert some.unrecoverable.sum() == whole.unrecoverable.sum()
    assert 0.2 < (~some.unrecoverable).sum() / (~whole.unrecoverable).sum() < 0.3
    late = [whole.unrecoverable[whole.seed == seed] for seed in np.unique(whole.seed)]
    assert all((np.diff(labels.astype(int)) >= 0).all() for labels in late)
    assert any(labels.sum() > 1 for labels in late)


class Sensing(gymnasium.ObservationWrapper[Any, Any, Any]):
    """Observations in a dictionary, with a small picture and a pair in it."""

    def __init__(self) -> None:
        super().__init__(Car())

    def observation(self, observation: Any) -> Any:
        gap, speed = observation
        return {
            "picture": np.full((2, 3), gap, np.uint8),
            "body": {"speed": np.float32(speed)},
            "both": (gap, np.int16(speed)),
        }


def plain(answer: Any) -> Any:
    return lambda observation: answer(observation["both"])


def test_nested_observations_are_kept_by_their_paths_in_their_own_dtype(tmp_path: Path) -> None:
    options: dict[str, Any] = {"seeds": range(30), "horizon": 40, "keep_frames": True}
    labelled(Sensing, plain(rash), brake, plain(danger), folder=tmp_path / "nested", **options)
    labelled(Car, rash, brake, danger, folder=tmp_path / "flat", **options)
    nested, flat = Frames.load(tmp_path / "nested"), Frames.load(tmp_path / "flat")
    assert {
        name: (array.dtype, array.shape[1:]) for name, array in nested.observations.items()
    } == {
        "picture": (np.dtype("u1"), (2, 3)),
        "body/speed": (np.dtype("f4"), ()),
        "both/0": (np.dtype("f4"), ()),
        "both/1": (np.dtype("i2"), ()),
    }
    np.testing.assert_array_equal(nested.observations["picture"][:, 0, 0], flat.observations[:, 0])
    np.testing.assert_array_equal(nested.unrecoverable, flat.unrecoverable)


def test_a_collection_without_frames_says_so_and_kinds_are_not_mixed(tmp_path: Path) -> None:
    labelled(Car, rash, brake, danger, seeds=range(5), horizon=40, folder=tmp_path / "plain")
    with pytest.raises(InvalidValueError, match="holds no frames"):
        Frames.load(tmp_path / "plain")
    with pytest.raises(InvalidValueError, match="holds rollouts: expected shielded rollouts"):
        ShieldedRollouts.load(tmp_path / "plain")
    run_shielded(
        Car, rash, brake, danger, 0.5, seeds=range(5), horizon=40, folder=tmp_path / "shielded"
    )
    with pytest.raises(InvalidValueError, match="holds shielded rollouts: expected rollouts"):
        Rollouts.load(tmp_path / "shielded")


@pytest.mark.parametrize("method", [8, 9, 12, 14, 99])
@pytest.mark.parametrize("member", ["score.npy", "task.json"])
def test_a_record_that_is_damaged_is_refused(
    rollouts: Rollouts, tmp_path: Path, member: str, method: int
) -> None:
    path = tmp_path / "rollouts.npz"
    rollouts.save(path)
    data = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        found, directory = archive.getinfo(member), archive.start_dir
    listed = data.find(member.encode(), directory) - 46
    # Another method of compression, in the record and in the list of records; and other bytes.
    data[found.header_offset + 8] = data[listed + 10] = method
    data[found.header_offset + 30 + len(member) + 20] ^= 255
    path.write_bytes(data)
    calls: list[Callable[[], Any]] = [
        lambda: Rollouts.load(path),
        lambda: certify_shield("score", "unsafe", data=path, xi=0.3, delta=0.05),
    ]
    for call in calls:
        with pytest.raises(InvalidValueError, match=r"cannot be read as \.npz"):
            call()
