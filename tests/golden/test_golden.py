"""Decisions stay what they are, whatever moves: names, signatures, documents, modules.

Two files keep them. `frozen.json` has, for each frozen certificate, what was counted and asked for
and what follows; `shipped.json` has what each verb decides on the tables that ship with the
package. Neither depends on how a document is written.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.certificate.conftest import FROZEN, ONE_OF_EACH_LAYOUT
from tests.golden.cases import CASES, NUMBERS
from tests.golden.snapshot import decided, given, read, same

from pacbound import load_certificate


@pytest.mark.parametrize("path", ONE_OF_EACH_LAYOUT, ids=lambda path: path.stem)
def test_counts_decide_what_they_decided(path: Path) -> None:
    kept = read("frozen")[path.stem]
    certificate = load_certificate(path)
    assert same(given(certificate), kept["given"])
    assert same(decided(certificate.recomputed()), kept["decided"])


@pytest.mark.parametrize("name", CASES)
def test_a_verb_decides_what_it_decided(name: str) -> None:
    assert same(decided(CASES[name]()), read("shipped")[name])


@pytest.mark.parametrize("name", NUMBERS)
def test_what_is_computed_around_it_is_what_it_was(name: str) -> None:
    assert same(NUMBERS[name](), read("shipped")[name])


def test_no_snapshot_is_left_without_its_case() -> None:
    assert read("frozen").keys() == {path.stem for path in FROZEN}
    assert read("shipped").keys() == CASES.keys() | NUMBERS.keys()


def test_a_snapshot_tells_another_decision() -> None:
    kept = read("frozen")["recall-1"]["decided"]
    assert same(kept, kept)
    assert not same({**kept, "threshold": kept["threshold"] + 2**-16}, kept)
    assert not same({**kept, "allowed_misses": kept["allowed_misses"] + 1}, kept)
