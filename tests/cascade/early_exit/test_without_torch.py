"""Without torch, importing says what to install; without being asked, nothing imports torch."""

from __future__ import annotations

import subprocess
import sys

BLOCKED = """
import sys
sys.modules["torch"] = None
from pacbound.errors import MissingDependencyError
try:
    import pacbound.cascade.early_exit
except MissingDependencyError as error:
    print(error)
"""


def test_importing_without_torch_names_the_command_that_installs_it() -> None:
    done = subprocess.run(
        [sys.executable, "-c", BLOCKED], capture_output=True, text=True, check=True
    )
    assert (
        done.stdout.strip()
        == "An early-exit network needs torch, which is not installed. Run: pip install"
        " 'pacbound[torch]'"
    )


def test_importing_cascades_does_not_load_torch() -> None:
    program = "import sys, pacbound.cascade; print('torch' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"
