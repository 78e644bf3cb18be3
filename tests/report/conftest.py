from __future__ import annotations

from typing import Any

import numpy as np

from pacbound.report.with_matplotlib import Display


def marks(display: Display, kind: type, look: str | None = None, *, panel: int = 0) -> list[Any]:
    """The marks of one kind, and of one look, in a panel of a display."""
    drawn = display.figure.panels[panel].marks
    return [one for one in drawn if isinstance(one, kind) and look in (None, one.look)]


def named(display: Display, name: str) -> Any:
    """The only mark with a name."""
    (found,) = [
        mark for panel in display.figure.panels for mark in panel.marks if mark.name == name
    ]
    return found


def legend(display: Display) -> list[str]:
    return [mark.name for mark in display.figure.legend]


def rows(*columns: Any) -> list[list[float]]:
    return np.transpose(columns).tolist()  # type: ignore[no-any-return]
