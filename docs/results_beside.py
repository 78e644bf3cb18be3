"""A hook of mkdocs: the figures of experiments/results stand beside the pages.

They are kept in one place only, and pages in docs/results name them without a folder.
"""

from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

RESULTS = Path("experiments/results")


def on_files(files: Any, config: Any, **_: Any) -> Any:
    root = Path(config["config_file_path"]).parent
    for path in sorted((root / RESULTS).glob("*.svg")):
        place = f"results/{path.name}"
        files.append(File.generated(config, place, abs_src_path=str(path)))
    return files
