from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="session")
def oracle() -> Any:
    """The module beside this file: pytest's importlib mode leaves no package to import it from."""
    spec = importlib.util.spec_from_file_location(
        "pacbound_tests_stats_oracle", Path(__file__).with_name("oracle.py")
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
