"""No option may overwrite what another one names, whatever command it belongs to.

The list of options is that of the command line itself: a new one that names a file and is not
marked as one fails here.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from inspect import Parameter, signature
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any, get_args

import pytest
from tests.cli.commands import COMMANDS, ROWS, write_folder
from typer.models import ArgumentInfo

from pacbound import Tally, calibrate
from pacbound.cli.app import every_command, function_of
from pacbound.cli.options import Reads, Writes
from pacbound.errors import InvalidValueError
from pacbound.report import write_report

Run = Callable[..., subprocess.CompletedProcess[str]]

VERBS = every_command()
FILE_WORDS = re.compile(r"^(Where|Write|Draw)|@FILE|\b(a|one|its|this) file\b|\.(csv|json|png)\b")


class Option:
    """A parameter of a command, as it is declared."""

    def __init__(self, declared: Parameter) -> None:
        self.name, self.required = declared.name, declared.default is Parameter.empty
        self.kind, *notes = get_args(declared.annotation)
        self.info = notes[0]
        self.mark = next((note for note in notes if isinstance(note, (Reads, Writes))), None)
        typed = [self.info.default, *(self.info.param_decls or ())]
        long = [one for one in typed if isinstance(one, str) and one.startswith("--")]
        self.typed = (long or [f"--{self.name.replace('_', '-')}"])[0]
        self.is_argument = isinstance(self.info, ArgumentInfo)

    def arguments(self, value: str) -> list[str]:
        return [value] if self.is_argument else [self.typed, value]

    def naming(self, path: str) -> str:
        """A value that names the file."""
        if isinstance(self.mark, Reads):
            several = "list" in str(self.kind)
            for value in (path, f"@{path}", f"text=@{path}"):
                if path in self.mark.files([value] if several else value):
                    return value
        return path

    @property
    def usual(self) -> str:
        if self.mark is not None or "Path" in str(self.kind):
            return f"some-{self.name}.json"
        if self.name == "group_thresholds":
            return "common"
        return "1" if "int" in str(self.kind) else "0.1" if "float" in str(self.kind) else "text"


def options_of(verb: str) -> list[Option]:
    return [Option(declared) for declared in signature(function_of(verb)).parameters.values()]


def clashes(verb: str) -> Iterator[tuple[Option, Option]]:
    """What is written, and what it may not be."""
    files = [option for option in options_of(verb) if option.mark is not None]
    for one, other in combinations(files, 2):
        if isinstance(one.mark, Writes):
            yield one, other
        elif isinstance(other.mark, Writes):
            yield other, one


def command_line(verb: str, given: dict[str, str]) -> list[str]:
    """The command with these options, and with anything at all for what else it needs."""
    line = verb.split()
    for option in sorted(options_of(verb), key=lambda option: not option.is_argument):
        if option.name in given:
            line += option.arguments(given[option.name])
        elif option.required:
            line += option.arguments(option.usual)
    return line


@pytest.mark.parametrize("verb", VERBS)
def test_every_option_that_names_a_file_is_marked(verb: str) -> None:
    options = options_of(verb)
    named = [
        option
        for option in options
        if "Path" in str(option.kind)
        or ("str" in str(option.kind) and FILE_WORDS.search(option.info.help or ""))
    ]
    # The only file of a command cannot be another one of its files.
    unmarked = [option.typed for option in named if option.mark is None and len(named) > 1]
    assert unmarked == []


def links_to(path: Path) -> dict[str, Path]:
    """Other names of a file."""
    soft, hard = path.with_name("soft.json"), path.with_name("hard.json")
    soft.symlink_to(path.name)
    os.link(path, hard)
    roundabout = path.parent / "folder" / ".." / path.name
    (path.parent / "folder").mkdir()
    return {"itself": path, "symbolic": soft, "hard": hard, "roundabout": roundabout}


@pytest.mark.parametrize("verb", [verb for verb in VERBS if next(clashes(verb), None) is not None])
def test_no_output_may_be_another_file_of_the_command(
    pacbound: Run, tmp_path: Path, verb: str
) -> None:
    data = b"what somebody needs"
    (tmp_path / "precious.json").write_bytes(data)
    names = links_to(tmp_path / "precious.json")
    for place, (written, other) in enumerate(clashes(verb)):
        # One check knows links, so the first pair of options stands for all.
        for link in [names["itself"]] if place else names.values():
            given = {
                written.name: written.naming(str(link)),
                other.name: other.naming(str(names["itself"])),
            }
            done = pacbound(*command_line(verb, given), code=2)
            assert "would replace it: name another file for" in done.stderr, given
            assert done.stdout == ""
            assert (tmp_path / "precious.json").read_bytes() == data
            assert names["hard"].read_bytes() == data
            assert names["symbolic"].is_symlink()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    write_folder(folder)
    return folder


def test_every_command_is_tried() -> None:
    made = {verb for verb in VERBS if verb.startswith(("tally ", "certify "))}
    assert {*COMMANDS, "demo"} - made == {*VERBS} - made
    # One of those that are made in the same way from all claims stands for the others.
    assert {verb.split()[0] for verb in made & {*COMMANDS}} == {verb.split()[0] for verb in made}


@pytest.mark.parametrize("verb", COMMANDS)
def test_a_command_writes_no_file_that_no_option_names(
    pacbound: Run, made: Path, tmp_path: Path, verb: str
) -> None:
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    line, code = COMMANDS[verb]
    if any(option.typed == "--output" and not option.required for option in options_of(verb)):
        line = (*line, "--output", "out.json")
    pacbound(*line, code=code)
    changed = {
        path.name
        for path in tmp_path.iterdir()
        if path.suffix != ".lock" and before.get(path) != path.read_bytes()
    }
    writing = {option.typed for option in options_of(verb) if isinstance(option.mark, Writes)}
    named = {
        value
        for option, value in pairwise(line)
        if option in writing or (option == "-o" and "--output" in writing)
    }
    assert changed <= named


APPLY = ("apply", "calibration.json", "--column", "confidence=c", "-o")


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("parts", "parts/day=monday/rows.csv"),
        ("parts/*/rows.csv", "parts/day=monday/rows.csv"),
        ("parts/**/*.csv", "parts/day=tuesday/rows.csv"),
        ("linked.csv", ROWS),
        (ROWS, "linked.csv"),
    ],
)
def test_folders_patterns_and_links_stand_for_their_files(
    pacbound: Run, made: Path, tmp_path: Path, source: str, target: str
) -> None:
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    for day in ("monday", "tuesday"):
        (tmp_path / "parts" / f"day={day}").mkdir(parents=True)
        shutil.copy(tmp_path / ROWS, tmp_path / "parts" / f"day={day}" / "rows.csv")
    (tmp_path / "linked.csv").symlink_to(ROWS)
    before = (tmp_path / target).read_bytes()
    done = pacbound(*APPLY, target, source, code=2)
    assert done.stderr == (
        f"error: {target} is read as FILE, and writing --output would replace it: name another "
        "file for --output.\n"
    )
    assert (tmp_path / target).read_bytes() == before


def test_what_was_counted_is_not_replaced_from_python(made: Path, tmp_path: Path) -> None:
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    rows = tmp_path / ROWS
    before = rows.read_bytes()
    columns: dict[str, Any] = {"confidence": "c", "correct": "ok"}
    tally = Tally.count("calibration", data=rows, **columns)
    with pytest.raises(InvalidValueError, match="holds rows that the tally was made from"):
        tally.save(rows)
    with pytest.raises(InvalidValueError, match="holds rows that the certificate was made from"):
        calibrate(**columns, data=rows, delta=0.1).save(rows)
    with pytest.raises(InvalidValueError, match="is read as the state of a monitor"):
        write_report(
            tmp_path / "calibration.json",
            tmp_path / "monitor.json",
            monitors=tmp_path / "monitor.json",
        )
    assert rows.read_bytes() == before
