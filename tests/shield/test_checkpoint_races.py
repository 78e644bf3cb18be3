"""Collections that begin in one folder at once never mix their rollouts."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

from pacbound import documents
from pacbound.errors import InvalidValueError
from pacbound.shield.rollouts.files import PLAN, CheckpointFolder


def test_of_two_plans_at_once_one_is_refused(tmp_path: Path) -> None:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    for attempt in range(20):
        folder, gate = tmp_path / str(attempt), threading.Barrier(2)
        begun, refused = list[str](), list[str]()

        def begin(
            name: str,
            folder: Path = folder,
            gate: threading.Barrier = gate,
            begun: list[str] = begun,
            refused: list[str] = refused,
        ) -> None:
            gate.wait()
            try:
                CheckpointFolder(folder, {"policy": name})
                begun.append(name)
            except InvalidValueError:
                refused.append(name)

        threads = [threading.Thread(target=begin, args=(name,)) for name in ("old", "new")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (len(begun), len(refused)) == (1, 1)
        assert documents.read(folder / PLAN, "a plan") == {"policy": begun[0]}
    sys.setswitchinterval(before)
