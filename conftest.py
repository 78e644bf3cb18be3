"""Examples in docstrings write files by short names: each runs in a folder of its own."""

from __future__ import annotations

import pytest
from _pytest.doctest import DoctestItem


@pytest.fixture(autouse=True)
def _own_folder_for_doctests(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if isinstance(request.node, DoctestItem):
        monkeypatch.chdir(request.getfixturevalue("tmp_path"))
