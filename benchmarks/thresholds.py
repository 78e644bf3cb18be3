"""A threshold with a guarantee: how fast it is found, in how much memory, and how far it can go.

The question is that of a shield: how large a threshold may be so that, with probability at least 1
- delta, at most xi of all rollouts are unsafe and stay below it. MAPIE's controller is given the
same risk, the same xi and the same confidence.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import inputs
from benchmarks.peers import adapter, named
from benchmarks.processes import rise_of_peak
from benchmarks.row import Row
from benchmarks.sizes import Sizes
from benchmarks.timing import race
from pacbound import certify_shield

_XI, _DELTA = 0.05, 0.01
_CORRECTIONS = ("bonferroni_holm", "fixed_sequence")
_OURS = f"""
from pacbound import certify_shield
def control(scores, unsafe):
    certify_shield(scores, unsafe, xi={_XI}, delta={_DELTA})
"""
_THEIRS = f"""
from benchmarks.peers import mapie
def control(scores, unsafe):
    mapie.control(scores, unsafe, {_XI}, {_DELTA}, {{correction!r}})
"""

_WARM_UP = "dangers(2_000)"


def rows(sizes: Sizes) -> Iterator[Row]:
    mapie = adapter("mapie")
    if mapie is None:
        return
    scores, unsafe = inputs.dangers(sizes.rows)
    work = f"control a threshold, {sizes.rows:,} rows, xi = {_XI}, delta = {_DELTA}"
    for correction in _CORRECTIONS:
        ours, theirs = race(
            lambda: certify_shield(scores, unsafe, xi=_XI, delta=_DELTA),
            partial(mapie.control, scores, unsafe, _XI, _DELTA, correction),
            repeats=min(5, sizes.rounds),
        )
        yield Row(
            work,
            ours,
            "s",
            _peer(correction),
            theirs,
            label=f"threshold, {sizes.rows:,} rows: mapie, {correction}",
        )
    yield from _memory(scores, unsafe)
    for count in (1_000, 10_000):
        yield from _tightness(count)


def _peer(correction: str) -> str:
    return f"{named('mapie')} BinaryClassificationController({correction})"


def _memory(scores: Any, unsafe: Any) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        paths = [str(Path(folder) / f"{name}.npy") for name in ("scores", "unsafe")]
        np.save(paths[0], scores)
        np.save(paths[1], unsafe)
        ours = rise_of_peak(_OURS, "control", paths, warm_up=_WARM_UP)
        for correction in _CORRECTIONS:
            theirs = rise_of_peak(
                _THEIRS.format(correction=correction), "control", paths, warm_up=_WARM_UP
            )
            yield Row(
                "the same: rise of the peak resident memory, in a process of its own",
                ours,
                "bytes",
                _peer(correction),
                theirs,
            )


def _tightness(count: int) -> Iterator[Row]:
    """The share of the rollouts that the shield stops, on rows that neither has seen."""
    future, _ = inputs.dangers(1_000_000)
    scores, unsafe = inputs.dangers(count)
    ours = float(np.mean(future >= certify_shield(scores, unsafe, xi=_XI, delta=_DELTA).threshold))
    for correction in _CORRECTIONS:
        theirs = float(
            np.mean(future >= adapter("mapie").control(scores, unsafe, _XI, _DELTA, correction))
        )
        work = f"share of rollouts stopped, threshold from {count:,} rows"
        yield Row(
            work,
            ours,
            "share",
            _peer(correction),
            theirs,
            label=f"rollouts stopped, {count:,} rows: mapie, {correction}",
        )
