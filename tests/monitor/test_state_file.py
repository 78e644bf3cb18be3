"""A state is resumed exactly, and refused when it is not whole or belongs elsewhere."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.kinds.cascade import watched as cascade
from tests.kinds.kind import Use
from tests.kinds.shield import watched as shield

from pacbound import Monitor, certify_shield, documents
from pacbound.errors import CertificateError


def test_a_monitor_that_was_saved_goes_on_bit_for_bit(use: Use, clock: str, tmp_path: Path) -> None:
    rng, path = np.random.default_rng(5), tmp_path / "state.json"
    rows = use.rows(2000, rng, False)
    whole = Monitor(use.certificate, delta=1e-3, false_alarms=clock)
    Monitor(use.certificate, delta=1e-3, false_alarms=clock).save(path)
    for start in range(0, 2000, 333):
        part = use.part(rows, slice(start, start + 333))
        whole.update(part)
        resumed = Monitor.load(path, use.certificate)
        resumed.update(part)
        resumed.save(path)
        assert resumed.evidence == whole.evidence
    assert Monitor.load(path, use.certificate).to_dict() == whole.to_dict()


def _saved(path: Path, clock: str = "ever") -> dict[str, Any]:
    monitor = Monitor(shield(), delta=1e-3, false_alarms=clock)
    monitor.update([False] * 250 + [True] * 2)
    monitor.save(path)
    document: dict[str, Any] = json.loads(path.read_text())
    return document


def test_a_state_that_was_cut_short_anywhere_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    _saved(path)
    data = path.read_bytes()
    for size in [*range(0, len(data) - 1, 97), len(data) - 3]:
        path.write_bytes(data[:size])
        with pytest.raises(CertificateError, match=r"state\.json"):
            Monitor.load(path, shield())


@pytest.mark.parametrize("clock", ["ever", "one per 1000 labels"])
def test_a_state_with_any_value_changed_is_refused(tmp_path: Path, clock: str) -> None:
    path = tmp_path / "state.json"
    document = _saved(path, clock)
    for key in document:
        changed = {**document, key: _other(document[key])}
        path.write_text(json.dumps(changed))
        with pytest.raises(CertificateError):
            Monitor.load(path, shield())


def _other(value: Any) -> Any:
    if isinstance(value, (int, float)):
        return value + 1
    if isinstance(value, str):
        return value + "x"
    return [] if value else ["x"]


EDITS: dict[str, Callable[[dict[str, Any]], object]] = {
    "wealth below 0": lambda d: d["wealth"][0]["wealth"].__setitem__(0, -1.0),
    "infinite wealth": lambda d: d["wealth"][0]["wealth"].__setitem__(0, "+inf"),
    "too few bets": lambda d: d["wealth"][0]["wealth"].pop(),
    "no wealth": lambda d: d["wealth"].clear(),
    "a position beyond the block": lambda d: d["wealth"][0].update(position=200),
    "more losses than labels": lambda d: d["seen"].__setitem__(1, 10**6),
    "fewer rows than labels": lambda d: d.update(rows=1),
    "negative counts": lambda d: d["seen"].__setitem__(slice(None), [-2, 254]),
    "a history of other labels": lambda d: d["history"].update(labels=10**6),
    "a history of odd stretches": lambda d: d["history"].update(stride=3),
    "an alarm in the future": lambda d: d["alarms"].append(
        {"label": 10**6, "evidence": 2000.0, "place": 0}
    ),
    "an alarm elsewhere": lambda d: d["alarms"].append(
        {"label": 1, "evidence": 2000.0, "place": 7}
    ),
    "two alarms that stay": lambda d: d["alarms"].extend(
        {"label": label, "evidence": 2000.0, "place": 0} for label in (1, 2)
    ),
    "no such promise": lambda d: d.update(false_alarms="never"),
    "no delta": lambda d: d.pop("delta"),
    "classes that are none": lambda d: d["classes"].update(labelled=[0.5]),
    "something else beside it": lambda d: d.update(extra=1),
    "a truth value for a number": lambda d: d["wealth"][0].update(restarts=True),
    "sources that are none": lambda d: d.update(sources=[1]),
}


@pytest.mark.parametrize("edit", EDITS)
def test_a_state_that_no_labels_lead_to_is_refused_even_with_its_digest(
    tmp_path: Path, edit: str
) -> None:
    path = tmp_path / "state.json"
    document = _saved(path)
    EDITS[edit](document)
    body = {key: value for key, value in document.items() if key != "digest"}
    path.write_text(json.dumps({**body, "digest": documents.digest(body)}))
    with pytest.raises((CertificateError, ValueError)):
        Monitor.load(path, shield())


def test_the_state_of_another_certificate_is_refused(tmp_path: Path) -> None:
    _saved(tmp_path / "state.json")
    for other in (cascade(), certify_shield([0.2] * 999, [False] * 999, xi=0.02, delta=0.01)):
        with pytest.raises(CertificateError, match="is of another certificate"):
            Monitor.load(tmp_path / "state.json", other)


KILLED = """
import sys
import numpy as np
from pacbound import Monitor, load_certificate
certificate = load_certificate("shield.json")
losses = np.load("losses.npy")
monitor = Monitor(certificate, delta=1e-3)
while True:
    monitor.update(losses[monitor.labels : monitor.labels + 7])
    monitor.save("state.json")
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs a signal that kills")
def test_a_process_that_is_killed_leaves_a_state_to_go_on_from(tmp_path: Path) -> None:
    losses = np.random.default_rng(8).random(200_000) < 0.015
    shield().save(tmp_path / "shield.json")
    np.save(tmp_path / "losses.npy", losses)
    killed = subprocess.Popen([sys.executable, "-c", KILLED], cwd=tmp_path)
    state = tmp_path / "state.json"
    for _ in range(600):
        if state.exists() and Monitor.load(state, shield()).labels > 50:
            break
        time.sleep(0.1)
    os.kill(killed.pid, signal.SIGKILL)
    killed.wait()
    resumed = Monitor.load(state, shield())
    assert resumed.labels > 50
    assert resumed.labels % 7 == 0
    whole = Monitor(shield(), delta=1e-3)
    whole.update(losses[: resumed.labels])
    assert resumed.to_dict() == whole.to_dict()
