"""The duels as a whole: the command, its records, and the page that follows from them."""

from pathlib import Path

import pytest
from benchmarks.duels import page
from benchmarks.duels.__main__ import DUELS, main
from benchmarks.duels.duel import at_least

ROOT = Path(__file__).parents[2]


def test_the_chance_of_as_many_violations_is_that_of_a_binomial() -> None:
    assert at_least(0, 10, 0.1) == 1
    assert at_least(1, 10, 0.1) == pytest.approx(1 - 0.9**10)
    assert at_least(10, 10, 0.1) == pytest.approx(1e-10)


def test_results_are_written_only_for_whole_duels_on_the_public_data() -> None:
    with pytest.raises(SystemExit):
        main(["pac_labels", "--write"])


@pytest.mark.parametrize("name", DUELS)
def test_the_table_says_what_the_record_says(name: str) -> None:
    kept = (ROOT / page.table(name)).read_text(encoding="utf-8")
    assert page.rendered(name, DUELS[name], ROOT) == kept
    assert f'--8<-- "{page.table(name)}"' in (ROOT / "docs" / "benchmarks.md").read_text("utf-8")


def test_the_figure_of_the_readme_shows_also_what_pacbound_loses() -> None:
    pytest.importorskip("matplotlib", reason="the figure is drawn by matplotlib")
    panels = page.summary(ROOT)
    assert [len(panel.lines) for panel in panels] == [4, 1, 9, 12]
    *others, judges = ([ours > theirs for _, ours, theirs in panel.lines] for panel in panels)
    assert all(map(all, others))
    assert sum(judges) == 6
    notes = [panel.note for panel in panels]
    assert notes == ["", "", "9 of 26 settings: the first of each pair, all with δ = 0.1", ""]
    assert (ROOT / page.SUMMARY).read_text(encoding="utf-8").startswith("<?xml")
