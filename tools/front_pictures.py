"""Draws the picture and the badges at the top of the README.

    python tools/front_pictures.py

writes docs/figures/front.svg from the predictions that ship with the package: rows that were held
out, the certificate that follows from them, and what it does to rows that it has not seen. Badges
say what pyproject.toml says, and need no other host. Both have a ground of their own, so that they
are read in light and in dark.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import numpy as np

from pacbound import certify_cascade
from pacbound.data import fashion_mnist
from pacbound.version import VERSION

ROOT = Path(__file__).parents[1]
FIGURES = ROOT / "docs" / "figures"
XI, DELTA = 0.01, 0.01
CLASSES = (
    "T-shirt", "trousers", "pullover", "dress", "coat",
    "sandal", "shirt", "sneaker", "bag", "boot",
)  # fmt: skip
SHOWN = 5
"""How many rows the picture shows."""
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#57606a"


def measured() -> dict[str, Any]:
    """Half of the rows certify, the other half is new."""
    images = fashion_mnist()
    held_out = images.split == 0
    answers = np.column_stack([images.prediction_fast, images.prediction_slow])
    certificate = certify_cascade(
        images.confidence_fast[held_out],
        answers[held_out],
        images.label[held_out],
        xi=XI,
        delta=DELTA,
    )
    new = ~held_out
    early = images.confidence_fast[new] >= certificate.thresholds[0]
    routed = np.where(early, answers[new, 0], answers[new, 1])
    lost = (answers[new, 1] == images.label[new]).mean() - (routed == images.label[new]).mean()
    # A picture shows something if the two differ somewhere, and someone is right.
    rows = np.flatnonzero(held_out)
    first = rows[answers[rows, 0] == answers[rows, 1]][: SHOWN - 2]
    then = rows[answers[rows, 0] != answers[rows, 1]][:2]
    table = [
        (
            f"{images.confidence_fast[row]:.2f}",
            *(CLASSES[int(answer)] for answer in (*answers[row], images.label[row])),
        )
        for row in np.sort(np.concatenate([first, then]))
    ]
    return {
        "table": table,
        "held_out": int(held_out.sum()),
        "new": int(new.sum()),
        "threshold": float(certificate.thresholds[0]),
        "early": float(early.mean()),
        "lost": float(lost),
    }


def picture(found: dict[str, Any]) -> str:
    """The picture as SVG."""
    early, points = found["early"], 100 * found["lost"]
    parts = [
        _text(30, 38, f"Held-out rows: {found['held_out']:,}", size=16, weight="bold"),
        *_table(found["table"]),
        _arrow(312),
        _text(350, 38, "One certificate", size=16, weight="bold"),
        f'<rect x="350" y="54" width="240" height="166" rx="8" fill="#f6f8fa" stroke="{BLUE}"/>',
        _text(366, 84, "The fast network answers", weight="bold"),
        _text(366, 106, f"from score {found['threshold']:.3f} on.", weight="bold"),
        _text(366, 138, f"At most {100 * XI:g} point of accuracy"),
        _text(366, 158, f"is lost, at {1 - DELTA:.0%} confidence."),
        _text(366, 192, "✓ anyone can verify it, without", fill=BLUE, size=13),
        _text(380, 208, "your data and your model", fill=BLUE, size=13),
        _arrow(602),
        _text(640, 38, f"New images: {found['new']:,}", size=16, weight="bold"),
        _bar(640, 70, 250 * early, BLUE, f"{early:.0%} fast network"),
        _bar(640 + 250 * early, 70, 250 * (1 - early), GREY, f"{1 - early:.0%} slow"),
        _text(640, 148, f"{points:.1f} points of accuracy lost,", weight="bold"),
        _text(640, 170, f"{100 * XI:g} was allowed"),
    ]
    title = (
        "From held-out rows to a certified threshold: the fast network answers "
        f"{early:.0%} of new images and loses {points:.1f} points of accuracy"
    )
    inside = "\n  ".join(parts)
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 920 236" role="img"
  font-family="system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif">
  <title>{title}</title>
  <rect x="1" y="1" width="918" height="234" rx="12" fill="#ffffff" stroke="#d0d7de"/>
  {inside}
</svg>
"""


def _text(x: float, y: float, words: str, *, size: int = 14, **how: Any) -> str:
    style = "".join(
        f' {"font-weight" if name == "weight" else name.replace("_", "-")}="{value}"'
        for name, value in ({"fill": "#1f2328"} | how).items()
    )
    return f'<text x="{x:g}" y="{y:g}" font-size="{size}"{style}>{words}</text>'


def _table(rows: list[tuple[str, ...]]) -> list[str]:
    columns = (30, 84, 158, 232)
    head = [
        _text(x, 68, name, size=12, fill=GREY)
        for x, name in zip(columns, ("score", "fast", "slow", "truth"), strict=True)
    ]
    cells = []
    for place, (score, fast, slow, truth) in enumerate(rows):
        y = 92 + 26 * place
        for x, value in zip(columns, (score, fast, slow, truth), strict=True):
            wrong = value in (fast, slow) and value != truth and x in columns[1:3]
            cells.append(_text(x, y, value, size=13, fill=ORANGE if wrong else "#1f2328"))
    return [*head, '<path d="M30 76H300" stroke="#d0d7de"/>', *cells]


def _arrow(x: float) -> str:
    return f'<path d="M{x} 130h22m-8 -7l8 7l-8 7" fill="none" stroke="{GREY}" stroke-width="2"/>'


def _bar(x: float, y: float, width: float, colour: str, words: str) -> str:
    return (
        f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="40" fill="{colour}"/>'
        f'<text x="{x + 8:.1f}" y="{y + 25}" font-size="13" fill="#ffffff">{words}</text>'
    )


def badges() -> dict[str, str]:
    """What each badge says, by its name."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pythons = re.findall(r"Python :: (3\.\d+)", "\n".join(project["classifiers"]))
    return {
        "version": VERSION,
        "python": f"{pythons[0]} to {pythons[-1]}",
        "license": project["license"],
        "types": "mypy --strict",
    }


def badge(name: str, value: str) -> str:
    """A badge as SVG: what it is about on grey, what it says on blue."""
    left, right = (round(12 + 6.8 * len(words)) for words in (name, value))
    width = left + right
    return f"""<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="20" role="img"
  font-family="Verdana, 'DejaVu Sans', sans-serif" font-size="11" fill="#ffffff">
  <title>{name}: {value}</title>
  <rect width="{width}" height="20" rx="3" fill="{BLUE}"/>
  <path d="M3 0h{left - 3}v20h-{left - 3}a3 3 0 0 1 -3 -3v-14a3 3 0 0 1 3 -3" fill="#4d4d4d"/>
  <text x="6" y="14" textLength="{left - 12}">{name}</text>
  <text x="{left + 6}" y="14" textLength="{right - 12}">{value}</text>
</svg>
"""


def drawn() -> dict[str, str]:
    """All pictures, by the names of their files."""
    small = {f"badge_{name}.svg": badge(name, value) for name, value in badges().items()}
    return {"front.svg": picture(measured()), **small}


def main() -> int:
    """Write the pictures."""
    for name, text in drawn().items():
        (FIGURES / name).write_text(text, encoding="utf-8", newline="\n")
        sys.stdout.write(f"docs/figures/{name}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
