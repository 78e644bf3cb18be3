"""The repository as a stranger gets it: one version, no trace of where it was made, nothing
unfinished, nothing large."""

from __future__ import annotations

import re
import runpy
import shutil
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

from pacbound.version import VERSION

ROOT = Path(__file__).parents[2]
LARGEST_FILE = 2 * 2**20
OUR_HIDDEN = {".ci", ".editorconfig", ".github", ".gitignore", ".pre-commit-config.yaml"}
SKIPPED_FOLDERS = {"__pycache__", "demo-output", "dist", "fuzz-failures", "htmlcov", "site"}

# Written so that this file does not match itself.
UNWANTED = {
    "a path of one machine": r"/(?:work|root|opt|home/\w+)(?:/\w|\b/)|[f]ile:///",
    "a reminder": r"\b(?:T[O]DO|F[I]XME|X[X]X|H[A]CK)\b",
    "an issue number": r"(?i)\b(?:issue|ticket|closes|fixes|pull request|[p]r) #?\d+\b",
}


@cache
def _files() -> list[Path]:
    """What is, or would be, committed; without git, whatever is not made by a tool."""
    if (ROOT / ".git").exists() and shutil.which("git"):
        listing = [
            "git",
            "-C",
            str(ROOT),
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ]
        done = subprocess.run(listing, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return sorted(
                path for name in done.stdout.split("\0") if name and (path := ROOT / name).is_file()
            )
    return sorted(
        path
        for path in ROOT.rglob("*")
        if path.is_file() and not _made_by_tools(path.relative_to(ROOT))
    )


def _made_by_tools(path: Path) -> bool:
    hidden = any(part.startswith(".") and part not in OUR_HIDDEN for part in path.parts)
    return (
        hidden
        or bool(SKIPPED_FOLDERS & set(path.parts))
        or any(part.endswith(".egg-info") for part in path.parts)
    )


@pytest.mark.parametrize("what", UNWANTED)
def test_no_file_holds(what: str) -> None:
    pattern, found = re.compile(UNWANTED[what]), []
    for path in _files():
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError:
            continue
        found += [
            f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
            for number, line in enumerate(lines, 1)
            if pattern.search(line)
        ]
    assert [hit for hit in found if not hit.startswith(str(Path(__file__).relative_to(ROOT)))] == []


def test_every_link_of_the_readme_leads_to_a_file() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    links = {link for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link}
    assert len(links) > 5
    assert [link for link in links if not (ROOT / link.partition("#")[0]).exists()] == []


def test_the_readme_leads_to_no_page_that_only_the_built_site_can_show() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    pages = [link.partition("#")[0] for link in re.findall(r"\]\(([^)\s]+\.md[^)]*)\)", text)]
    assert pages
    including = [name for name in pages if "--8<--" in (ROOT / name).read_text(encoding="utf-8")]
    assert including == []


def test_indexes_of_packages_get_the_readme_with_links_that_name_a_host(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    interface = ModuleType("hatchling.metadata.plugin.interface")
    interface.MetadataHookInterface = object  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, interface.__name__, interface)
    hook = runpy.run_path(str(ROOT / "tools" / "readme_for_pypi.py"))
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = hook["absolute"](text, "https://example.org/p", "v1.2")
    links = re.findall(r"\]\(([^)\s]+)\)", shown)
    assert [link for link in links if "://" not in link] == []
    assert "(https://example.org/p/blob/v1.2/docs/cascade.md)" in shown
    assert "(https://example.org/p/raw/v1.2/docs/figures/front.svg)" in shown
    assert hook["absolute"]("[a](#b) [c](https://d.e)", "s", "v") == "[a](#b) [c](https://d.e)"


def test_the_pictures_of_the_readme_are_those_that_the_tool_draws() -> None:
    drawn = runpy.run_path(str(ROOT / "tools" / "front_pictures.py"))["drawn"]()
    kept = {name: (ROOT / "docs" / "figures" / name).read_text("utf-8") for name in drawn}
    assert kept == drawn


def test_no_file_is_large() -> None:
    assert [
        str(path.relative_to(ROOT)) for path in _files() if path.stat().st_size >= LARGEST_FILE
    ] == []


def test_the_packaged_version_is_the_one_in_version_py() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["project"].get("dynamic") == ["readme", "version"]
    rule = project["tool"]["hatch"]["version"]
    found = re.search(rule["pattern"], (ROOT / rule["path"]).read_text(encoding="utf-8"))
    assert found is not None
    assert found["version"] == VERSION


def test_the_citation_names_this_version() -> None:
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.findall(r"^version: (\S+)$", citation, re.MULTILINE) == [VERSION]


def test_actions_are_named_by_a_commit_and_a_release_is_tested_before_it_is_built() -> None:
    workflows = {
        path.name: path.read_text(encoding="utf-8")
        for path in (ROOT / ".github" / "workflows").glob("*.yml")
    }
    used = re.findall(r"uses: (.+)", "\n".join(workflows.values()))
    pinned = r"[\w-]+/[\w-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+"
    assert [action for action in used if not re.fullmatch(pinned, action)] == []
    release = workflows["release.yml"]
    assert "- run: make lint test test-slow\n" in release
    assert "  build:\n    needs: test\n" in release
    assert "  publish:\n    needs: build\n" in release


def test_the_changelog_has_this_version_or_what_is_unreleased() -> None:
    headings = re.findall(
        r"^## \[?([^\s\]]+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert {VERSION, "Unreleased"} & set(headings)


@pytest.mark.parametrize("name", ["constraints.txt", "constraints-lowest.txt"])
def test_constraints_are_plain_pins(name: str) -> None:
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if not re.fullmatch(r"[a-z0-9-]+==[0-9][0-9a-z.]*", line)] == []
    assert lines == sorted(lines)


def test_the_lowest_versions_that_are_tested_are_those_that_are_allowed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"].values()
    allowed = dict(
        requirement.split(">=")
        for requirement in [*project["dependencies"], *(one for extra in extras for one in extra)]
        if not requirement.startswith("pacbound[")
    )
    lines = (ROOT / "constraints-lowest.txt").read_text(encoding="utf-8").splitlines()
    tested = dict(line.split("==") for line in lines)
    # What is large.
    assert allowed.keys() - tested.keys() == {"pyspark", "torch"}
    for name in allowed.keys() & tested.keys():
        assert re.fullmatch(rf"{re.escape(allowed[name])}(\.0)*", tested[name]), name


def _targets_called_in(*paths: Path) -> set[str]:
    return {
        target
        for path in paths
        for command in re.findall(
            r"^ *(?:- run: |step |)make ([a-z -]+)",
            path.read_text(encoding="utf-8"),
            re.MULTILINE,
        )
        for target in command.split()
    }


def test_the_workflows_run_targets_that_the_makefile_has() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z][a-z-]*):", makefile, re.MULTILINE))
    workflows = _targets_called_in(*(ROOT / ".github" / "workflows").glob("*.yml"))
    here = _targets_called_in(ROOT / ".ci" / "run")
    assert (workflows | here) - targets == set()
    assert {"lint", "test", "test-slow", "test-core", "test-lowest", "docs", "dist"} <= here
    assert here | {"coverage", "fuzz", "test-all"} <= workflows


def test_the_slow_folders_are_there_and_are_listed_once() -> None:
    listed = re.search(
        r"^SLOW_FOLDERS = \((.+)\)$", (ROOT / "conftest.py").read_text(), re.MULTILINE
    )
    assert listed is not None
    folders = re.findall(r'"(\w+)"', listed[1])
    assert [name for name in folders if not (ROOT / "tests" / name).is_dir()] == []
    commands = [ROOT / "Makefile", ROOT / ".ci" / "run", ROOT / "pyproject.toml"]
    text = "\n".join(path.read_text(encoding="utf-8") for path in commands)
    assert [name for name in folders if f"=tests/{name}" in text] == []


def test_the_workflow_tests_every_python_that_is_promised_and_three_systems() -> None:
    checks = (ROOT / ".github" / "workflows" / "checks.yml").read_text(encoding="utf-8")
    listed = re.search(r"^ +python: \[(.*)\]$", checks, re.MULTILINE)
    assert listed is not None
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    promised = re.findall(r"Python :: (3\.\d+)", "\n".join(project["classifiers"]))
    assert re.findall(r"3\.\d+", listed[1]) == promised
    assert project["requires-python"] == f">={promised[0]}"
    assert re.findall(r"os: \[?(\w+)-latest", checks) == ["ubuntu", "macos", "windows"]


def test_style_is_checked_before_a_commit_by_the_version_that_checks_it_after() -> None:
    hooks = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    found = re.search(r"ruff-pre-commit\n +rev: v(\S+)", hooks)
    assert found is not None
    pins = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    assert f"ruff=={found[1]}" in pins


@pytest.mark.parametrize(
    "name",
    [
        ".editorconfig", ".github/ISSUE_TEMPLATE/defect.yml", ".github/pull_request_template.md",
        "CITATION.cff", "CONTRIBUTING.md", "LICENSE", "RELEASING.md", "SECURITY.md",
    ],
)  # fmt: skip
def test_a_stranger_finds(name: str) -> None:
    assert (ROOT / name).stat().st_size > 100
