"""The duels as a whole: the command, its records, and the page that follows from them."""

import json
from pathlib import Path

import pytest
from benchmarks.duels import page
from benchmarks.duels.__main__ import DUELS, main, record
from benchmarks.duels.duel import at_least

ROOT = Path(__file__).parents[2]


def test_the_chance_of_as_many_violations_is_that_of_a_binomial() -> None:
    assert at_least(0, 10, 0.1) == 1
    assert at_least(1, 10, 0.1) == pytest.approx(1 - 0.9**10)
    assert at_least(10, 10, 0.1) == pytest.approx(1e-10)


def test_without_data_a_duel_uses_what_ships(capsys: pytest.CaptureFixture[str]) -> None:
    main(["trust_or_escalate", "--draws", "1", "--only", "slow head"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.startswith("| slow head |") for line in lines] == [True] * 4 + [False]


def test_results_are_written_only_for_whole_duels_on_the_public_data() -> None:
    with pytest.raises(SystemExit):
        main(["pac_labels", "--write"])


@pytest.mark.parametrize("name", DUELS)
def test_the_table_says_what_the_record_says(name: str) -> None:
    kept = (ROOT / page.table(name)).read_text(encoding="utf-8")
    assert page.rendered(name, DUELS[name], ROOT) == kept
    assert f'--8<-- "{page.table(name)}"' in (ROOT / "docs" / "benchmarks.md").read_text("utf-8")


@pytest.mark.parametrize("name", DUELS)
def test_a_record_is_made_by_the_command_that_it_names(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = page.load(name, ROOT)
    monkeypatch.chdir(tmp_path)
    page.results(name).parent.mkdir(parents=True)
    monkeypatch.setattr("benchmarks.duels.__main__.version", kept["versions"].get)
    record(name, DUELS[name], kept["rows"], kept["rows"][0]["draws"])
    written = json.loads(page.results(name).read_text(encoding="utf-8"))
    assert (written["command"], written["rows"]) == (kept["command"], kept["rows"])


def test_the_figure_of_the_readme_shows_also_what_pacbound_loses() -> None:
    pytest.importorskip("matplotlib", reason="the figure is drawn by matplotlib")
    panels = page.summary(ROOT)
    assert [len(panel.lines) for panel in panels] == [4, 1, 9, 12]
    *others, judges = ([ours > theirs for _, ours, theirs in panel.lines] for panel in panels)
    assert all(map(all, others))
    assert sum(judges) == 5
    notes = [panel.note for panel in panels]
    assert notes == ["", "", "9 of 26 settings: the first of each pair, all with δ = 0.1", ""]
    assert (ROOT / page.SUMMARY).read_text(encoding="utf-8").startswith("<?xml")
