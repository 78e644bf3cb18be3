"""The commands of the README and of the page about the command line work as they are pasted: in
order, in one folder, and none overwrites what another has written."""

from __future__ import annotations

import csv
import json
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.products import standing_for

ROOT = Path(__file__).parents[2]
PAGES = ("README.md", "docs/command-line.md")
SHELL = re.compile(r"^```sh\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
ELSEWHERE = ("make", "pip", "uvx")
"""Commands that set up an environment; `make dist` and the demo's own tests run those."""


def commands(page: str) -> list[list[str]]:
    """The words of each command of a page, in order."""
    text = (ROOT / page).read_text(encoding="utf-8")
    lines = [
        line
        for block in SHELL.finditer(text)
        for line in block["code"].replace("\\\n", " ").splitlines()
    ]
    found = [shlex.split(line, comments=True) for line in lines]
    return [words for words in found if words and words[0] not in ELSEWHERE]


def written(words: list[str]) -> list[str]:
    """The files that a command writes."""
    places = [place + 1 for place, word in enumerate(words) if word in ("-o", "--ask", "--session")]
    return [words[place] for place in places]


def test_make_dist_runs_what_the_readme_runs_with_uvx() -> None:
    readme, makefile = ((ROOT / name).read_text("utf-8") for name in ("README.md", "Makefile"))
    extras, command = re.findall(r'^uvx "pacbound(\[.+\])" (\w+)$', readme, re.MULTILINE)[0]
    recipe = makefile.partition("\ndist:")[2].partition("\n\n")[0]
    assert "/uvx " in recipe
    assert f'{extras}" pacbound {command} ' in recipe


@pytest.mark.parametrize("page", PAGES)
def test_every_file_is_written_once(page: str) -> None:
    files = [name for words in commands(page) for name in written(words)]
    assert len(files) > 5
    assert sorted(files) == sorted(set(files))


@pytest.mark.slow
@pytest.mark.parametrize("page", standing_for(PAGES, ["README.md"], rest="long"))
def test_the_commands_of_a_page_work_in_order_in_one_folder(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("typer", reason="the command line is an extra")
    from pacbound.cli import main

    make_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    for words in commands(page):
        assert words[0] == "pacbound", words
        monkeypatch.setattr(sys, "argv", words)
        with pytest.raises(SystemExit) as ended:
            main()
        told = capsys.readouterr()
        assert not ended.value.code, f"{shlex.join(words)}\n{told.out}\n{told.err}"
        assert [name for name in written(words) if not Path(name).exists()] == []


def make_files(folder: Path, rows: int = 3_000) -> None:
    """Simulated files with the columns that the commands name."""
    rng = np.random.default_rng(0)
    truth = rng.choice(["refund", "login", "delivery"], size=rows)
    other = np.where(truth == "refund", "login", "refund")
    sure = rng.beta(8, 1, size=(rows, 3))
    chance = sure ** np.array([1.0, 0.6, 0.1])
    said = np.where(rng.random((rows, 3)) < chance, truth[:, None], other[:, None])
    ids, half = np.arange(rows), rows // 2

    def by_lines(name: str, columns: dict[str, Any], order: Any) -> None:
        table = [{key: column[row].item() for key, column in columns.items()} for row in order]
        (folder / name).write_text("".join(f"{json.dumps(row)}\n" for row in table), "utf-8")

    def by_commas(name: str, columns: dict[str, Any], part: slice = slice(None)) -> None:
        with (folder / name).open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(columns)
            writer.writerows(
                zip(*(column[part].tolist() for column in columns.values()), strict=True)
            )

    def answers(model: int) -> dict[str, Any]:
        return {"id": ids, "answer": said[:, model], "truth": truth}

    by_lines("small.jsonl", {**answers(0), "confidence": sure[:, 0]}, ids)
    by_lines("fresh.jsonl", {**answers(0), "confidence": sure[:, 0]}, ids[:half])
    for name in ("large.jsonl", "old.jsonl"):
        by_lines(name, answers(2), rng.permutation(rows))
    by_lines("new.jsonl", answers(2), ids)
    right = (said[:, 1] == truth).astype(int)
    predicted = {"confidence": sure[:, 1], "answer": said[:, 1], "truth": truth, "right": right}
    by_commas("predictions.csv", predicted)
    by_commas("monday.csv", predicted, slice(half))
    by_commas("tuesday.csv", predicted, slice(half, None))
    by_commas("predictions_new.csv", {"confidence": sure[:, 1]})
    by_commas("records.csv", {"id": ids, "confidence": sure[:, 0], "answer": said[:, 0]})
    models = {
        f"{role}{m + 1}": each[:, m] for role, each in (("c", sure), ("p", said)) for m in range(3)
    }
    by_commas("models.csv", {**models, "truth": truth})
    by_commas("models_new.csv", models)
    pair = {"c1": sure[:, 0], "fast": said[:, 0], "slow": said[:, 2], "truth": truth}
    by_commas("rows.csv", pair)
    by_commas("pilot.csv", pair, slice(600))
    passes = rng.random(rows) < 0.7
    verdict = passes ^ (rng.random(rows) > sure[:, 0])
    words = np.array(["fail", "pass"])
    judged = {"verdict": words[verdict.astype(int)], "person": words[passes.astype(int)]}
    by_commas("judged.csv", {**judged, "sure": sure[:, 0]})
    ill = rng.random(rows) < 0.3
    score = 1 / (1 + np.exp(-np.where(ill, 2, -2) - rng.normal(size=rows)))
    clinic = rng.choice(["north", "south"], size=rows)
    by_commas("screened.csv", {"score": score, "ill": ill.astype(int), "clinic": clinic})
    unsafe = rng.random(rows) < 0.4
    danger = 1 / (1 + np.exp(-np.where(unsafe, 2, -2) - rng.normal(size=rows)))
    by_commas("rollouts.csv", {"danger": danger, "unsafe": unsafe.astype(int)})
    by_commas("week.csv", {"unsafe": (rng.random(500) < 0.03).astype(int)})
