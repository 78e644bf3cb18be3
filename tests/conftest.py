"""How many examples a property is tried on: few where slow tests are left out; else
HYPOTHESIS_PROFILE picks a profile, and CI=true picks "ci"."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

# Derandomised, so that a failure is seen by everyone or by no one; "thorough" is the one that looks
# for new ones.
settings.register_profile(
    "default", deadline=None, max_examples=100, derandomize=True, database=None
)
settings.register_profile("few", deadline=None, max_examples=25, derandomize=True, database=None)
settings.register_profile("ci", deadline=None, max_examples=300, derandomize=True, database=None)
settings.register_profile("thorough", deadline=None, max_examples=5000, print_blob=True)
settings.load_profile(
    os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") == "true" else "default")
)


def pytest_configure(config: pytest.Config) -> None:
    if "not slow" in config.getoption("markexpr") and "HYPOTHESIS_PROFILE" not in os.environ:
        settings.load_profile("few")
