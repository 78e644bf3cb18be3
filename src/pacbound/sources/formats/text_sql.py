"""The rules of `text` inside SQL: what a column of text stands for as a number, a truth value, a
class or a name.

Text that breaks a rule becomes null; where null is a value, it stops the query. Rare ways to write
a value, such as a truth value between tabs, may be taken for broken here. Nothing is accepted that
`text` refuses, and what is accepted has the same value.
"""

from __future__ import annotations

from typing import Literal

Kind = Literal["number", "number or nothing", "flag", "name"]
"""Classes are not here: what names one is decided on distinct values, outside of SQL."""

TRUE = ("1", "true", "t", "yes", "1.0")
FALSE = ("0", "false", "f", "no", "0.0")

_SPACES = "".join(chr(code) for code in range(0x3001) if chr(code).isspace())


def typed(column: str, kind: Kind, decimal: str = ".") -> str:
    """The expression for what the text in `column`, an expression itself, stands for."""
    trimmed = _trimmed(column)
    match kind:
        case "number":
            return _number(column, decimal)
        case "number or nothing":
            return (
                f"CASE WHEN coalesce({trimmed}, '') = '' THEN NULL ELSE "
                f"coalesce({_number(column, decimal)}, error('no number')) END"
            )
        case "flag":
            return (
                f"CASE WHEN {_one_of(column, TRUE)} THEN true WHEN {_one_of(column, FALSE)} THEN "
                "false END"
            )
        case "name":
            return f"nullif({trimmed}, '')"


def _number(column: str, decimal: str) -> str:
    # DuckDB takes 1_000 and +-1 for numbers.
    odd = f"contains({column}, '_') OR contains({column}, '+-')"
    if decimal == ",":
        odd, column = f"{odd} OR contains({column}, '.')", f"replace({column}, ',', '.')"
    return f"CASE WHEN {odd} THEN NULL ELSE try_cast({column} AS DOUBLE) END"


def _one_of(column: str, words: tuple[str, ...]) -> str:
    listed = ", ".join(f"'{word}'" for word in words)
    return f"lower({column}) IN ({listed})"


def _trimmed(column: str) -> str:
    # Trimming a set of characters is slow, and hardly any value has one of them at its ends.
    ends = f"ascii({column}) BETWEEN 33 AND 126 AND ascii(right({column}, 1)) BETWEEN 33 AND 126"
    return f"CASE WHEN {ends} THEN {column} ELSE trim({column}, '{_SPACES}') END"
