"""How many examples a property is tried on: HYPOTHESIS_PROFILE picks a profile, and CI=true picks
"ci"."""

from __future__ import annotations

import os

from hypothesis import settings

# Derandomised, so that a failure is seen by everyone or by no one; "thorough" is the one that looks
# for new ones.
settings.register_profile(
    "default", deadline=None, max_examples=100, derandomize=True, database=None
)
settings.register_profile("ci", deadline=None, max_examples=300, derandomize=True, database=None)
settings.register_profile("thorough", deadline=None, max_examples=5000, print_blob=True)
settings.load_profile(
    os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") == "true" else "default")
)
