"""Text means the same inside DuckDB as outside of it: what both accept has one value, and nothing
more is accepted inside."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pacbound.errors import InvalidValueError
from pacbound.sources.embedded_duckdb import Connection, QueryError, connected
from pacbound.sources.engines.duckdb import Kind, typed
from pacbound.sources.formats import records
from pacbound.sources.notation import FALSE, TRUE

AWKWARD = [
    *(
        "",
        " ",
        "0.5",
        " 0.5 ",
        "\t0.5\n",
        "\u00a00.5\u3000",
        "0.1_5",
        "1_0",
        "+0.5",
        ".5",
        "5.",
        "1e-3",
        "1e400",
        "-inf",
        "Infinity",
    ),
    *(
        "nan",
        "NaN",
        " nan ",
        "0x1",
        "0,5",
        "1d",
        "٣",
        "3",
        "3.0",
        "3.00",
        "-3.0",
        "3.50",
        "03.0",
        "3.",
        "cat",
        " cat",
        "cat ",
        "c.at",
    ),
    *(
        "a\x00",
        "é",
        "e\u0301",
        "İ",
        "NULL",
        "None",
        "tRuE",
        " true",
        "maybe",
        "2",
        "1.00",
        "-0",
        "\x1f1\x1f",
        "'",
        '"',
        "--",
    ),
    *("+-0", "+-0.5", "-+0", "--0", "++0", "1e+-3"),
    *("0.15000000000000002", "0.1500000000000000055511151231257827", "4.9e-324"),
]

values = (
    st.sampled_from([*AWKWARD, *TRUE, *FALSE])
    | st.text(max_size=6)
    | st.floats().map(repr)
    | st.integers().map(str)
)


@pytest.fixture(scope="module")
def connection() -> Iterator[Connection]:
    with connected(ordered=True) as opened:
        yield opened


def outside(value: str, kind: Kind) -> Any:
    """What the reader that goes row by row makes of it; None if it is refused or missing."""
    column = pyarrow.array([value])
    try:
        match kind:
            case "number":
                return float(records.numbers_in(column, "x", 0)[0])
            case "number or nothing":
                return float(records.numbers_in(column, "x", 0, missing=True)[0])
            case "flag":
                return bool(records.flags_in(column, "x", 0)[0])
            case "name":
                return str(records.names_in(column, "x", 0)[0])
    except InvalidValueError:
        return None


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["number", "flag", "name"])
@given(given_values=st.lists(values, min_size=1, max_size=20))
def test_what_is_accepted_inside_has_the_value_it_has_outside(
    connection: Connection, kind: Kind, given_values: list[str]
) -> None:
    # A NUL ends a NumPy string, so the two readers need not agree on where one is.
    plain = [value for value in given_values if "\x00" not in value]
    rows = connection.execute(
        f"SELECT {typed('x', kind)} FROM (SELECT unnest(?::VARCHAR[]) AS x)", [plain]
    ).fetchall()
    for value, (found,) in zip(plain, rows, strict=True):
        if found is not None:
            assert repr(found) == repr(outside(value, kind)), value
        elif kind == "name":
            assert outside(value, kind) is None, value


@pytest.mark.parametrize("value", [value for value in AWKWARD if "\x00" not in value])
def test_where_nothing_is_a_value_what_is_no_number_stops_the_query(
    connection: Connection, value: str
) -> None:
    expected = outside(value, "number or nothing")
    try:
        [(found,)] = connection.execute(
            f"SELECT {typed('x', 'number or nothing')} FROM (SELECT ?::VARCHAR AS x)", [value]
        ).fetchall()
    except QueryError:
        assert expected is None or value.strip() != value
    else:
        assert np.array_equal(np.nan if found is None else found, expected, equal_nan=True)


@pytest.mark.parametrize("value", ["0.5", "1e-3", "-inf", "1", "0"])
def test_plain_numbers_are_read_inside(connection: Connection, value: str) -> None:
    found = connection.execute(
        f"SELECT {typed('x', 'number')} FROM (SELECT ?::VARCHAR AS x)", [value]
    ).fetchall()
    assert found == [(float(value),)]


@pytest.mark.parametrize("value", ["1_0", "+-0", "+-0.5", " +-1", "--0", "-+0", "0x1"])
def test_what_only_duckdb_takes_for_a_number_is_none_inside(
    connection: Connection, value: str
) -> None:
    assert outside(value, "number") is None
    found = connection.execute(
        f"SELECT {typed('x', 'number')} FROM (SELECT ?::VARCHAR AS x)", [value]
    ).fetchall()
    assert found == [(None,)]
