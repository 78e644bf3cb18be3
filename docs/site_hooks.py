"""Hooks of mkdocs: what the site shows that is kept elsewhere, in one place only.

- Figures of experiments/results are beside the pages in docs/results, which name them
  without a folder.
- The page of proofs has the sentences of pacbound.claims.assumptions.
- A page that links to reports/NAME.html gets the report of its `certificate`, which its
  first block of Python makes from data that ship with the package, and a figure of it,
  reports/NAME.svg.
"""

import os
import re
import tempfile
from contextlib import redirect_stdout
from io import BytesIO
from pathlib import Path
from typing import Any

from pacbound.exact_verifier import CONDITIONS, MEANINGS

RESULTS = Path("experiments/results")
ASSUMPTIONS = "<!-- assumptions -->"
REPORT = re.compile(r"\]\((?:\.\./)?(reports/[a-z-]+\.html)\)")
PYTHON = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def on_files(files: Any, config: Any, **_: Any) -> Any:
    """Add the figures of the experiments and the reports of the pages."""
    # A test calls the other functions without mkdocs.
    from mkdocs.structure.files import File  # noqa: PLC0415

    root = Path(config["config_file_path"]).parent
    for path in sorted((root / RESULTS).glob("*.svg")):
        place = f"results/{path.name}"
        files.append(File.generated(config, place, abs_src_path=str(path)))
    for place, page in reports(root / "docs").items():
        made = certificate(page)
        for path, content in (
            (place, report(made)),
            (place.replace(".html", ".svg"), drawn(made)),
        ):
            files.append(File.generated(config, path, content=content))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Print what claims assume where the page asks for it."""
    return markdown.replace(ASSUMPTIONS, assumptions())


def assumptions() -> str:
    """The table of the names that documents hold, with their sentences."""
    rows = [
        f"| `{name}` | {what} | {sentence} |"
        for what, sentences in (("condition", CONDITIONS), ("meaning", MEANINGS))
        for name, sentence in sentences.items()
    ]
    return "\n".join(["| name | is a | what it says |", "|---|---|---|", *rows])


def reports(docs: Path) -> dict[str, str]:
    """The pages that link to a report, by the place of the report."""
    pages = [path.read_text(encoding="utf-8") for path in sorted(docs.rglob("*.md"))]
    with_code = [page for page in pages if PYTHON.search(page)]
    return {place: page for page in with_code for place in REPORT.findall(page)}


def certificate(page: str) -> Any:
    """The certificate that the first block of Python of a page makes."""
    (code,) = PYTHON.findall(page)[:1]
    names: dict[str, Any] = {"__name__": "__main__"}
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere):
                exec(code, names)  # noqa: S102
        finally:
            os.chdir(before)
    return names["certificate"]


def report(made: Any) -> bytes:
    """The page about a certificate."""
    from pacbound.report import write_report  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as folder:
        return write_report(made, Path(folder) / "report.html").path.read_bytes()


def drawn(made: Any) -> bytes:
    """The first figure of a certificate; of a bundle, that of its first claim."""
    from pacbound.report import plot  # noqa: PLC0415

    parts = list(made.inside.values()) or [made]
    figures = [figure for part in parts for figure in list(part.figures())[:1]]
    picture = BytesIO()
    plot(figures[0]).savefig(picture, format="svg", bbox_inches="tight")
    return picture.getvalue()
