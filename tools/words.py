"""Counts the words of the README and of each page of the documentation, outside blocks of code.

    python tools/words.py

A page that includes another file counts as it is written: the line that includes it. Exit code 1 if
a page, all pages for users, or all pages together, are longer than a reader should be asked to
read.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

README_LIMIT = 700
ALL_PAGES_LIMIT = 40_000
USERS_LIMIT = 29_500
PAGE_LIMIT = 2_500
LONG_PAGES = {"certificates.md", "proofs.md"}
"""Pages for those who check: the proofs, and the format of certificates. All others, which users
read, have a limit of their own.
"""

BLOCK = re.compile(r"^(?P<indent> *)```.*?^(?P=indent)``` *$", re.MULTILINE | re.DOTALL)


def words(text: str) -> int:
    """The number of words outside blocks of code. Marks of tables and comments are no words."""
    prose = re.sub(r"<!--.*?-->", " ", BLOCK.sub(" ", text), flags=re.DOTALL)
    return sum(bool(re.search(r"\w", word)) for word in prose.split())


def counts(root: Path) -> dict[str, int]:
    """The words of the README and of each page, by its name below docs."""
    docs = root / "docs"
    pages = {path.relative_to(docs).as_posix(): path for path in sorted(docs.rglob("*.md"))}
    pages = {"README.md": root / "README.md", **pages}
    return {name: words(path.read_text(encoding="utf-8")) for name, path in pages.items()}


def above(found: dict[str, int]) -> list[str]:
    """What is too long, in sentences."""
    pages = {name: number for name, number in found.items() if name != "README.md"}
    limits = {"README.md": README_LIMIT} | dict.fromkeys(pages.keys() - LONG_PAGES, PAGE_LIMIT)
    sentences = [
        f"{name} has {found[name]:,} words, {limits[name]:,} are allowed."
        for name in found
        if name in limits and found[name] > limits[name]
    ]
    users = sum(number for name, number in pages.items() if name not in LONG_PAGES)
    for what, total, limit in (
        ("pages", sum(pages.values()), ALL_PAGES_LIMIT),
        ("pages for users", users, USERS_LIMIT),
    ):
        if total > limit:
            sentences.append(f"The {what} have {total:,} words, {limit:,} are allowed.")
    return sentences


def main() -> int:
    """Print the counts, the longest page last."""
    found = counts(Path(__file__).parents[1])
    lines = [f"{found[name]:7,}  {name}" for name in sorted(found, key=found.__getitem__)]
    total = sum(found.values()) - found["README.md"]
    lines.append(f"{total - sum(map(found.__getitem__, LONG_PAGES)):7,}  all pages for users")
    lines.append(f"{total:7,}  all pages")
    sys.stdout.write("\n".join(lines) + "\n")
    sentences = above(found)
    sys.stderr.writelines(f"{sentence}\n" for sentence in sentences)
    return 1 if sentences else 0


if __name__ == "__main__":
    sys.exit(main())
