"""Certificates of every kind for the page, and a browser to open it with."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from pacbound import (
    Monitor,
    calibrate,
    certify_abstention,
    certify_cascade,
    certify_recall,
    certify_shield,
)
from pacbound.claims.certificate import Certificate

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

HOSTILE = "<script>alert(1)</script>"

_BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def rows(count: int = 2000) -> dict[str, Any]:
    """A fast model that is often right where it is sure, and a slow one that is better."""
    rng = np.random.default_rng(11)
    labels = rng.integers(0, 10, size=count)
    confidence = rng.beta(5, 1, size=count)
    fast = np.where(rng.random(count) < confidence, labels, labels + 1)
    slow = np.where(rng.random(count) < 0.93, labels, labels + 2)
    return {"confidence": confidence, "fast": fast, "slow": slow, "labels": labels}


def cascade(count: int = 2000, **asked: Any) -> Certificate:
    table = rows(count)
    asked = {"xi": 0.05, "delta": 0.05, "costs": (1, 9), **asked}
    answers = np.column_stack([table["fast"], table["slow"]])
    certificate: Certificate = certify_cascade(
        table["confidence"], answers, table["labels"], **asked
    )
    return certificate


def calibration(**asked: Any) -> Certificate:
    table = rows()
    asked = {"delta": 0.05, "n_bins": 10, **asked}
    return calibrate(table["confidence"], table["fast"] == table["labels"], **asked)


def abstention(**asked: Any) -> Certificate:
    table = rows()
    asked = {"xi": 0.12, "delta": 0.05, **asked}
    return certify_abstention(table["confidence"], table["fast"] == table["labels"], **asked)


def recall(**asked: Any) -> Certificate:
    rng = np.random.default_rng(12)
    positive = rng.random(1500) < 0.3
    score = np.where(positive, rng.beta(4, 1, size=1500), rng.beta(1, 4, size=1500))
    return certify_recall(score, positive, **{"target": 0.9, "delta": 0.05, **asked})


def shield(count: int = 1000, **asked: Any) -> Certificate:
    rng = np.random.default_rng(13)
    unsafe = rng.random(count) < 0.2
    score = np.where(unsafe, rng.beta(4, 1, size=count), rng.beta(1, 4, size=count))
    return certify_shield(score, unsafe, **{"xi": 0.05, "delta": 0.05, **asked})


def alarmed(certificate: Certificate) -> Monitor:
    """A monitor of a shield that has rung."""
    monitor = Monitor(certificate, delta=0.01)
    monitor.update([False] * 200 + [True] * 40)
    return monitor


@pytest.fixture
def tampered(tmp_path: Path) -> Path:
    """A certificate that claims more than its counts imply."""
    path = tmp_path / "tampered.json"
    shield().save(path)
    document = json.loads(path.read_text(encoding="utf-8"))
    document["claim"]["xi"] = 0.001
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def browser() -> Iterator[Chrome]:
    """Chromium without a window; skips where there is none."""
    binary = next(filter(None, map(shutil.which, _BROWSERS)), None)
    driver = shutil.which("chromedriver")
    if binary is None or driver is None:
        pytest.skip("needs Chromium and chromedriver: apt-get install chromium chromium-driver")
    from selenium.webdriver import Chrome, ChromeOptions, ChromeService

    options = ChromeOptions()
    options.binary_location = binary
    # In a container there is neither a sandbox nor much shared memory.
    for switch in (
        "headless=new",
        "no-sandbox",
        "disable-gpu",
        "disable-dev-shm-usage",
        # The browser itself asks for nothing either.
        "disable-background-networking",
        "disable-component-update",
        "disable-sync",
        "no-first-run",
    ):
        options.add_argument(f"--{switch}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    opened = Chrome(service=ChromeService(driver), options=options)
    yield opened
    opened.quit()
