"""A quote out of place is refused, since rows would be lost; what others write is not."""

import csv
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pacbound import Tally
from pacbound.errors import InvalidValueError
from pacbound.sources.quotes import QuoteCheck

ROW = "0.5,1,x\n"
OPEN = [
    ROW * 5 + '0.5,1,"x\n' + ROW,
    '0.5,1,"x\n' + ROW * 5,
    ROW * 5 + '0.5,1,x"\n' + ROW,
    ROW * 5 + '0.5,1,a"b\n' + ROW + '0.5,1,"x\n' + ROW,
    ROW + '0.5,1, "x"\n' + ROW,
    ROW + '0.5,1,"x" \n' + ROW,
    ROW + '0.5,1,"a"b"\n' + ROW,
    ROW + '0.5,1,"',
]


@pytest.mark.parametrize("rows", OPEN)
@pytest.mark.parametrize("named", ["rows.csv", "rows.tsv"])
def test_a_quote_out_of_place_is_refused_before_a_row_is_lost(
    tmp_path: Path, rows: str, named: str
) -> None:
    text = "c,ok,text\n" + rows
    (tmp_path / named).write_text(text.replace(",", "\t") if named == "rows.tsv" else text)
    with pytest.raises(InvalidValueError, match="quote"):
        Tally.from_files(tmp_path / named, confidence="c", correct="ok")


def is_sound(data: bytes, size: int, separator: str = ",") -> bool:
    check = QuoteCheck(separator)
    for start in range(0, len(data), size):
        check.feed(data[start : start + size])
    return check.is_sound


texts = st.text(alphabet='ab",\n\r é', max_size=6)


@given(
    rows=st.lists(st.lists(texts, min_size=2, max_size=3), min_size=1, max_size=5),
    style=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    ends=st.sampled_from(["\n", "\r\n"]),
    size=st.integers(1, 40),
    bom=st.booleans(),
)
def test_what_the_standard_library_writes_is_sound_in_pieces_of_any_size(
    rows: list[list[str]], style: int, ends: str, size: int, bom: bool
) -> None:
    file = io.StringIO()
    csv.writer(file, quoting=style, lineterminator=ends).writerows(rows)  # type: ignore[arg-type]
    data = (b"\xef\xbb\xbf" if bom else b"") + file.getvalue().encode()
    assert is_sound(data, size)


@given(data=st.text(alphabet='a",\n', max_size=20).map(str.encode), size=st.integers(1, 25))
def test_the_verdict_does_not_depend_on_the_pieces(data: bytes, size: int) -> None:
    assert is_sound(data, size) == is_sound(data, max(1, len(data)))
