"""All exhibits: what is run, what is left out, and what is done already."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from experiments.__main__ import EXHIBITS, INPUTS, Exhibit, command

EXHIBIT = Exhibit("experiments.x", "x", ("outputs", "top-five"), ("apis",))
NOTHING: dict[str, Path | None] = dict.fromkeys(INPUTS)


def test_every_exhibit_is_a_module_and_reads_known_inputs() -> None:
    for exhibit in EXHIBITS:
        assert find_spec(exhibit.module) is not None
        assert {*exhibit.reads, *exhibit.takes} <= set(INPUTS)
    assert len({exhibit.made for exhibit in EXHIBITS}) == len(EXHIBITS)


def test_every_exhibit_has_a_quick_version() -> None:
    assert [exhibit.made for exhibit in EXHIBITS if exhibit.quick is None] == []


def test_an_exhibit_without_its_data_is_left_out_and_says_why() -> None:
    assert command(EXHIBIT, NOTHING, Path("o"), quick=False) == (
        "for want of --outputs and --top-five"
    )


def test_a_quick_run_needs_no_data() -> None:
    assert command(EXHIBIT, NOTHING, Path("o"), quick=True) == (
        ["-m", "experiments.x", "--quick", "--out", "o"]
    )
    slow = Exhibit("experiments.x", "x", quick=None)
    assert command(slow, NOTHING, Path("o"), quick=True) == "it has no quick version"
