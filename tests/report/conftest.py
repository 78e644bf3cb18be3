from __future__ import annotations

from typing import Any

import numpy as np

from pacbound.figure import Figure


def marks(figure: Figure, kind: type, look: str | None = None, *, panel: int = 0) -> list[Any]:
    """The marks of one kind, and of one look, in a panel of a figure."""
    drawn = figure.panels[panel].marks
    return [one for one in drawn if isinstance(one, kind) and look in (None, one.look)]


def named(figure: Figure, name: str) -> Any:
    """The only mark with a name."""
    (found,) = [mark for panel in figure.panels for mark in panel.marks if mark.name == name]
    return found


def legend(figure: Figure) -> list[str]:
    return [mark.name for mark in figure.legend]


def rows(*columns: Any) -> list[list[float]]:
    return np.transpose(columns).tolist()  # type: ignore[no-any-return]
