"""Without matplotlib the report can be imported; drawing says what to install."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pacbound import calibrate, report
from pacbound.errors import MissingDependencyError


def test_public_names_are_sorted_and_exist() -> None:
    names = vars(report)["__all__"]
    assert names == sorted(set(names))
    assert all(hasattr(report, name) for name in names)


def test_importing_the_report_does_not_load_matplotlib() -> None:
    program = "import sys, pacbound.report; print('matplotlib' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"


def test_drawing_without_matplotlib_names_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ["", ".axes", ".figure", ".backends.backend_agg"]:
        monkeypatch.setitem(sys.modules, f"matplotlib{name}", None)
    with pytest.raises(
        MissingDependencyError,
        match=r"Plotting needs matplotlib.*pip install 'pacbound\[report\]'",
    ):
        calibrate([0.5], [True], delta=0.1).plot()
