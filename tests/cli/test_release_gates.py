"""The workflow on the page of recipes: its commands exist, and end as the page says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cli.conftest import Run

from pacbound import certify_cascade, certify_shield, load_certificate

yaml = pytest.importorskip("yaml", reason="PyYAML is missing: pip install pyyaml")
PAGE = Path(__file__).parents[2] / "docs" / "recipes.md"
ROWS = 2000


def _steps() -> dict[str, list[str]]:
    """The words of each pacbound command of the workflow, by its name."""
    blocks = re.findall(r"^```yaml\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    (workflow,) = [read for read in map(yaml.safe_load, blocks) if "jobs" in read]
    # YAML 1.1 reads `on` as a truth value.
    assert workflow[True] == ["pull_request"]
    (job,) = workflow["jobs"].values()
    runs = [shlex.split(step["run"]) for step in job["steps"] if "run" in step]
    assert [words[0] for words in runs] == ["pip", "pacbound", "pacbound"]
    return {words[1]: words[1:] for words in runs if words[0] == "pacbound"}


def _cascade(xi: float, **options: Any) -> Any:
    confidence, slow = np.linspace(0, 1, ROWS), np.arange(ROWS) % 5
    fast = np.where(confidence > 0.2, slow, (slow + 1) % 5)
    answers = np.column_stack([fast, slow])
    return certify_cascade(confidence, answers, slow, xi=xi, delta=0.01, **options)


def test_verify_ends_as_the_page_says(tmp_path: Path, pacbound: Run) -> None:
    words = _steps()["verify"]
    (tmp_path / "certificates").mkdir()
    path = tmp_path / "certificates" / "router.json"
    _cascade(0.02).save(path)
    pacbound(*words, code=0)
    _cascade(0.03).save(path)
    pacbound(*words, code=1)
    certify_shield([0.1] * 500, [False] * 500, xi=0.02, delta=0.01).save(path)
    pacbound(*words, code=1)
    certify_shield([0.1] * 20, [False] * 20, xi=0.02, delta=0.01).save(path)
    without = [word for word in words if word not in ("--require-certified", "--kind", "cascade")]
    pacbound(*without, code=3)
    path.write_text("{}", encoding="utf-8")
    pacbound(*words, code=2)


@pytest.mark.parametrize(("wrong", "code"), [(0, 0), (200, 3)])
def test_compare_ends_as_the_page_says(
    tmp_path: Path, pacbound: Run, wrong: int, code: int
) -> None:
    labels = [number % 5 for number in range(ROWS)]
    new = [(label + 1) % 5 if row < wrong else label for row, label in enumerate(labels)]
    rows = enumerate(zip(labels, new, strict=True))
    lines = [f"{label},{answer},{label},user {row}" for row, (label, answer) in rows]
    (tmp_path / "evaluation.csv").write_text("\n".join(["old,new,label,user", *lines]), "utf-8")
    (tmp_path / "certificates").mkdir()
    pacbound(*_steps()["compare"], code=code)
    replaced = load_certificate(tmp_path / "certificates" / "replacement.json")
    assert replaced.draw is not None
    assert f"--seed {replaced.draw.seed}" in PAGE.read_text("utf-8")
    (tmp_path / "evaluation.csv").write_text("old,new\n1,1\n", "utf-8")
    pacbound(*_steps()["compare"], code=2)
