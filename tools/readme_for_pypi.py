"""A metadata hook of hatchling: the README as package indexes show it.

In a clone, and wherever the repository is hosted, the links of the README are relative. An index
has no such files beside it, so there each link and picture names the file of this version in the
repository that `project.urls` names as Source.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

README = "README.md"
PICTURES = (".svg", ".png")


def absolute(text: str, source: str, tag: str) -> str:
    """The text with every relative link made absolute."""

    def linked(found: re.Match[str]) -> str:
        target = found[2]
        if "://" in target or target.startswith("#"):
            return found[0]
        kind = "raw" if target.endswith(PICTURES) else "blob"
        return f"{found[1]}{source}/{kind}/{tag}/{target})"

    return re.sub(r"(\]\()([^)\s]+)\)", linked, text)


class ReadmeHook(MetadataHookInterface):  # type: ignore[misc, unused-ignore]
    """Sets `readme` for both distributions."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        """Called with the table `project` of pyproject.toml."""
        text = (Path(self.root) / README).read_text(encoding="utf-8")
        source, tag = metadata["urls"]["Source"], f"v{metadata['version']}"
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": absolute(text, source, tag),
        }
