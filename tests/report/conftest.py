from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

Extents = Callable[[Any, str], Any]


@pytest.fixture
def extents() -> Extents:
    """Of the artists with a name: the (left, right, bottom, top) of each of their parts, as an (n,
    4) array."""

    def extents_of(ax: Any, name: str) -> Any:
        paths = [
            path
            for artist in ax.collections
            if artist.get_gid() == name
            for path in artist.get_paths()
        ]
        corners = [path.vertices for path in paths]
        rows = [[c[:, 0].min(), c[:, 0].max(), c[:, 1].min(), c[:, 1].max()] for c in corners]
        return np.array(rows).reshape(-1, 4)

    return extents_of
