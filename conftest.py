"""One thread per test process, and a folder of its own for each example in a docstring, since they
write files by short names.
"""

from __future__ import annotations

import os

# Several test processes, each with as many threads as there are cores, spend their time waiting for
# each other. It must be said before NumPy and torch are loaded.
for _library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

import pytest  # noqa: E402, RUF100
from _pytest.doctest import DoctestItem  # noqa: E402, RUF100


@pytest.fixture(autouse=True)
def _own_folder_for_doctests(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    if isinstance(request.node, DoctestItem):
        monkeypatch.chdir(request.getfixturevalue("tmp_path"))
