"""Checks certificates with Python's standard library alone; needs no installation.

    python -I -S tools/verify_certificate.py [--json] CERTIFICATE...

The verifier is one file, `src/pacbound/exact_verifier.py`, which can be copied anywhere and run in
the same way. This one only finds it.
"""

import runpy
from pathlib import Path

runpy.run_path(
    str(Path(__file__).parents[1] / "src" / "pacbound" / "exact_verifier.py"), run_name="__main__"
)
