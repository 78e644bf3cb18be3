"""Hooks of mkdocs: what the site shows that is kept elsewhere, in one place only.

Figures of experiments/results are beside the pages in docs/results, which name them
without a folder. The page of proofs has the sentences of pacbound.claims.assumptions.
"""

from pathlib import Path
from typing import Any

from pacbound.claims.assumptions import ASSUMED

RESULTS = Path("experiments/results")
ASSUMPTIONS = "<!-- assumptions -->"


def on_files(files: Any, config: Any, **_: Any) -> Any:
    """Add the figures of the experiments."""
    # A test calls the other hook without mkdocs.
    from mkdocs.structure.files import File  # noqa: PLC0415

    root = Path(config["config_file_path"]).parent
    for path in sorted((root / RESULTS).glob("*.svg")):
        place = f"results/{path.name}"
        files.append(File.generated(config, place, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Print what claims assume where the page asks for it."""
    return markdown.replace(ASSUMPTIONS, assumptions())


def assumptions() -> str:
    """The table of the names that documents hold, with their sentences."""
    rows = "\n".join(f"| `{name}` | {sentence} |" for name, sentence in ASSUMED.items())
    return f"| name | what it says |\n|---|---|\n{rows}"
