"""`python -m tests.golden` adds snapshots of new cases; those that are kept are never written anew.

A snapshot that a change makes wrong is taken out by hand, in a commit that says why.
"""

from __future__ import annotations

from tests.certificate.conftest import FROZEN
from tests.golden.cases import CASES, NUMBERS
from tests.golden.snapshot import decided, given, read, write

from pacbound import load_certificate


def main() -> None:
    """Take the snapshots that are missing."""
    frozen = read("frozen")
    for path in FROZEN:
        if path.stem not in frozen:
            certificate = load_certificate(path)
            frozen[path.stem] = {"given": given(certificate), "decided": decided(certificate)}
    write("frozen", frozen)
    shipped = read("shipped")
    shipped |= {name: decided(CASES[name]()) for name in CASES.keys() - shipped.keys()}
    shipped |= {name: NUMBERS[name]() for name in NUMBERS.keys() - shipped.keys()}
    write("shipped", shipped)


if __name__ == "__main__":
    main()
