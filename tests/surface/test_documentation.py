"""The documentation as a whole: how long it is, and the reports that its build makes."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from runpy import run_path

import pytest

ROOT = Path(__file__).parents[2]
WORDS = run_path(str(ROOT / "tools" / "words.py"))
HOOKS = run_path(str(ROOT / "docs" / "site_hooks.py"))
JOBS = {
    "abstention", "batch", "calibration", "cascade", "judge", "recall", "replacement", "shield",
}  # fmt: skip
SEARCHED = {
    "small": "cascade", "large": "cascade", "routing": "cascade", "escalation": "cascade",
    "proxy": "batch", "oracle": "batch", "selective prediction": "abstention",
    "non-inferiority": "compare", "guardrail": "shield", "runtime monitor": "monitor",
}  # fmt: skip
"""The words that others use for a job, and its page."""


def test_words_are_counted_outside_of_code() -> None:
    text = "Two words.\n\n```sh\nnot these\n```\n\n- one\n    ```text\n    nor these\n    ```\n"
    assert WORDS["words"](text + "| a | -- | <!-- no --> |\n") == 4


def test_what_is_too_long_is_named() -> None:
    found = {"README.md": 701, "a.md": 2_501, "proofs.md": 9_000, "b.md": 30_000}
    assert WORDS["above"](found) == [
        "README.md has 701 words, 700 are allowed.",
        "a.md has 2,501 words, 2,500 are allowed.",
        "b.md has 30,000 words, 2,500 are allowed.",
        "The pages have 41,501 words, 40,000 are allowed.",
        "The pages for users have 32,501 words, 29,500 are allowed.",
    ]
    assert WORDS["above"]({"README.md": 700, "a.md": 2_500}) == []


def test_nobody_is_asked_to_read_more_than_the_limits() -> None:
    assert WORDS["above"](WORDS["counts"](ROOT)) == [], "make words"


@pytest.mark.parametrize("words", SEARCHED)
def test_a_page_is_found_by_the_words_that_others_use(words: str) -> None:
    docs = ROOT / "docs"
    opening = (docs / f"{SEARCHED[words]}.md").read_text(encoding="utf-8").partition("\n## ")[0]
    assert re.search(rf"\b{words}\b", opening)
    sentences = (docs / "which.md").read_text(encoding="utf-8").splitlines()
    lines = [line for line in sentences if f"({SEARCHED[words]}.md)" in line]
    assert any(re.search(rf"\b{words}\b", line) for line in lines)


@pytest.mark.parametrize("name", sorted(JOBS))
def test_a_job_has_a_page_whose_first_block_makes_the_certificate_of_its_report(name: str) -> None:
    found = HOOKS["reports"](ROOT / "docs")
    assert found.keys() == {f"reports/{job}.html" for job in JOBS}
    tree = ast.parse(HOOKS["PYTHON"].search(found[f"reports/{name}.html"])[1])
    made = [node.targets[0] for node in tree.body if isinstance(node, ast.Assign)]
    assert "certificate" in {target.id for target in made if isinstance(target, ast.Name)}
    gallery = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
    assert f"(reports/{name}.html)" in gallery
    assert f"(reports/{name}.svg)" in gallery


def test_a_report_and_a_figure_are_made_of_the_first_block_of_a_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib", reason="figures need the extra `report`")
    monkeypatch.chdir(tmp_path)
    code = "from pacbound import calibrate\ncertificate = calibrate([1.0], [True], delta=0.05)\n"
    made = HOOKS["certificate"](f"```python\n{code}```\n")
    assert b"calibration" in HOOKS["report"](made).lower()
    assert HOOKS["drawn"](made).startswith(b"<?xml")
    assert Path.cwd() == tmp_path
