"""The evidence over the labels, in little room: the highest in each stretch of labels.

Stretches begin with single labels, and are joined in pairs whenever there are too many, so that the
history of any number of labels has at most 512 of them. It is a function of the labels alone: in
whatever parts they came, it is the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MOST: Final = 512


@dataclass(frozen=True)
class History:
    """The highest evidence in each stretch of `stride` labels; the last may not be full."""

    labels: int
    stride: int
    peaks: Floats

    @classmethod
    def fresh(cls) -> History:
        """Before the first label."""
        return cls(0, 1, np.empty(0))

    def after(self, evidence: Floats) -> History:
        """With the evidence after each of some more labels."""
        if not evidence.size:
            return self
        kept = self._coarser(self.labels + evidence.size)
        places = (self.labels + np.arange(evidence.size)) // kept.stride
        starts = np.flatnonzero(np.diff(places, prepend=-1))
        return kept._with(int(places[0]), np.maximum.reduceat(evidence, starts), evidence.size)

    def after_batch(self, evidence: float, labels: int) -> History:
        """With the evidence after a batch of labels that came at once, which stands for all of
        them.
        """
        kept = self._coarser(self.labels + labels)
        first, last = (place // kept.stride for place in (self.labels, self.labels + labels - 1))
        return kept._with(first, np.full(last - first + 1, evidence), labels)

    @property
    def ends(self) -> NDArray[np.int64]:
        """The label with which each stretch ends."""
        return np.minimum(self.stride * (1 + np.arange(self.peaks.size)), self.labels)

    def _with(self, first: int, peaks: Floats, labels: int) -> History:
        whole = np.concatenate([self.peaks, np.zeros(first + peaks.size - self.peaks.size)])
        whole[first:] = np.maximum(whole[first:], peaks)
        return History(self.labels + labels, self.stride, whole)

    def _coarser(self, labels: int) -> History:
        """The same in stretches so long that there are not too many at `labels`."""
        stride, peaks = self.stride, self.peaks
        while -(-labels // stride) > MOST:
            stride *= 2
            even = np.concatenate([peaks, np.zeros(peaks.size % 2)])
            peaks = even.reshape(-1, 2).max(axis=1)
        return History(self.labels, stride, peaks)
