"""What `--help` says: every command, no sentence cut off, and nothing loaded that is not needed."""

import json
import re
import subprocess
import sys
from typing import Any

import pytest
from tests.cli.conftest import Run

from pacbound.cli.app import COMMANDS, PARTS, app, every_command, function_of
from pacbound.cli.options import ROWS, panel_of

NAMES = every_command()

LOADED = """
import json, sys
from pacbound.cli import main
sys.argv = ["pacbound", *{arguments}]
try:
    main()
except SystemExit as ended:
    code = ended.code
print(json.dumps([code, sorted(sys.modules)]))
"""


def _words(text: str) -> str:
    """The text without spaces: lines are broken, at hyphens too."""
    return re.sub(r"\s+", "", text)


def _command(name: str) -> Any:
    from typer.main import get_command

    found: Any = get_command(app)
    for part in name.split():
        found = found.get_command(None, part)
    return found


@pytest.mark.parametrize("columns", [80, 120])
def test_the_list_of_commands_cuts_no_sentence_off(
    pacbound: Run, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = pacbound("--help").stdout.splitlines()
    for title, group in COMMANDS.items():
        assert f"{title}:" in lines
        for name, says in group.items():
            assert re.fullmatch(rf"  {name} +{re.escape(says)}", lines[_place(lines, name)])
    assert max(map(len, lines)) <= columns
    assert not [line for line in lines[1:] if line.endswith(("...", "…"))]


@pytest.mark.parametrize("name", PARTS)
def test_a_file_in_the_place_of_one_of_several_commands_is_told_what_goes_there(
    pacbound: Run, name: str
) -> None:
    said = pacbound(name, "rows.csv", "--delta", 0.1, code=2).stderr
    *others, last = PARTS[name]
    assert f"after pacbound {name}: {', '.join(others)} or {last}." in " ".join(said.split())


@pytest.mark.parametrize("command", ["calibrate", "design", "certify recall", "together"])
@pytest.mark.parametrize("name", ["model", "dataset", "owner", "note"])
def test_what_a_certificate_is_about_has_one_option(pacbound: Run, command: str, name: str) -> None:
    done = pacbound(*command.split(), "rows.csv", f"--{name}", "x", code=2)
    assert done.stderr.endswith(f"No such option: --{name}. Expected: --about {name}=TEXT.\n")
    assert "--about" not in pacbound("verify", "c.json", f"--{name}", "x", code=2).stderr


@pytest.mark.parametrize("name", NAMES)
def test_a_command_has_at_most_15_options_beside_those_for_rows(name: str) -> None:
    options = [one for one in _command(name).params if one.param_type_name == "option"]
    assert len([one for one in options if panel_of(one) != ROWS]) <= 15


def _place(lines: list[str], name: str) -> int:
    return next(place for place, line in enumerate(lines) if line.startswith(f"  {name} "))


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize("name", NAMES)
def test_the_help_of_a_command_says_all_of_its_options(
    pacbound: Run, monkeypatch: pytest.MonkeyPatch, name: str, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERMINAL_WIDTH", str(columns))
    shown = pacbound(*name.split(), "--help").stdout
    assert max(map(len, shown.splitlines())) <= columns
    said = _words(shown)
    assert f"Usage:pacbound{_words(name)}" in said
    assert _words(function_of(name).__doc__.strip()) in said
    for parameter in _command(name).params:
        if parameter.param_type_name == "option":
            assert any(option in said for option in parameter.opts)
            assert _words(parameter.help) in said
        elif parameter.help:
            assert _words(parameter.help) in said


@pytest.mark.parametrize("name", NAMES)
def test_a_command_without_what_it_needs_is_bad_usage(pacbound: Run, name: str) -> None:
    if name == "demo":
        pytest.skip("the demo needs nothing")
    done = pacbound(*name.split(), code=2)
    assert "Missing" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], [], ["nonsense"]])
def test_what_counts_is_not_loaded_to_say_what_there_is(arguments: list[str]) -> None:
    program = LOADED.format(arguments=arguments)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    code, modules = json.loads(done.stdout.splitlines()[-1])
    assert (code or 0) == (0 if arguments and arguments[0].startswith("--") else 2)
    loaded = {name.split(".")[0] for name in modules}
    assert not loaded & {"numpy", "scipy", "rich", "duckdb", "narwhals", "matplotlib", "pyarrow"}
    assert {name for name in modules if name.startswith("pacbound.cli.")} <= {APP, STREAMS}


APP, STREAMS = "pacbound.cli.app", "pacbound.cli.streams"


def test_a_name_that_is_nearly_one_is_suggested(pacbound: Run) -> None:
    done = pacbound("calibate", code=2)
    assert "No such command 'calibate'. Did you mean calibrate?" in done.stderr
    assert "No such command 'xyz'." in pacbound("xyz", code=2).stderr


def test_a_package_that_is_missing_is_named_with_the_remedy() -> None:
    program = (
        "import sys; sys.modules['rich'] = None; sys.argv = ['pacbound', 'show', 'c.json']\n"
        "from pacbound.cli import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr == (
        "The command line needs rich, which is not installed. Run: pip install 'pacbound[cli]'\n"
    )
