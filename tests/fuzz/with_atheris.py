"""Damaged files found by coverage: `make fuzz-atheris`, for the readers that are written in Python.

atheris sees which lines of pacbound a file reaches, and builds on the files that reach new ones.
The first byte picks the target, the rest is the file; the sound files are where it starts from.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import mkdtemp


def main() -> None:
    import atheris

    with atheris.instrument_imports(include=["pacbound"]):
        from tests.fuzz.targets import TARGETS

    # Damage that needs a source of randomness is not for a fuzzer that makes the bytes itself.
    targets = [
        target for name, target in TARGETS.items() if not name.endswith(("inside", "values"))
    ]

    def one_file(data: bytes) -> None:
        if data:
            target = targets[data[0] % len(targets)]
            target.run(target.seeds()[0], data[1:])

    corpus = Path(mkdtemp(prefix="pacbound-corpus-"))
    for place, target in enumerate(targets):
        for number, seed in enumerate(target.seeds()):
            (corpus / f"{place}-{number}").write_bytes(bytes([place]) + seed)
    atheris.Setup([*sys.argv, str(corpus)], one_file)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
