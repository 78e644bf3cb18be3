"""One certificate of each kind and verdict, small enough to change in every place."""

from functools import cache
from pathlib import Path

import pytest
from tests.kinds import KINDS
from tests.products import standing_for

from pacbound.claims.certificate import Certificate

MAKERS = {name: make for kind in KINDS.values() for name, make in kind.made.items()}
LAYOUTS = tuple(name for kind in KINDS.values() for name in kind.layouts)
"""Of these, made here or frozen, one or the other has every key that a certificate can have: they
stand for all where only the layout of a document matters."""

FROZEN = sorted((Path(__file__).parent / "frozen").glob("*.json"))
ONE_OF_EACH_LAYOUT = standing_for(
    FROZEN, [path for path in FROZEN if path.stem[:-2] in LAYOUTS], rest="slow"
)
"""All frozen certificates; those of layouts run everywhere, the others in `make test`."""


@cache
def made(name: str) -> Certificate:
    return MAKERS[name]()


@pytest.fixture(params=standing_for(sorted(MAKERS), LAYOUTS))
def certificate(request: pytest.FixtureRequest) -> Certificate:
    """One for each layout of a document, and all of them in `make test-all`."""
    return made(request.param)


@pytest.fixture(params=sorted(MAKERS))
def every_certificate(request: pytest.FixtureRequest) -> Certificate:
    return made(request.param)
