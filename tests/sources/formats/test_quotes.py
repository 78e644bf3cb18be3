"""A quote out of place is refused, since rows would be lost; what others write is not."""

from pathlib import Path

import pytest

from pacbound import Tally
from pacbound.errors import InvalidValueError

ROW = "0.5,1,x\n"
OPEN = [
    ROW * 5 + '0.5,1,"x\n' + ROW,
    '0.5,1,"x\n' + ROW * 5,
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
        Tally.count("calibration", data=tmp_path / named, confidence="c", correct="ok")


def test_a_quote_inside_of_a_value_is_a_part_of_it_and_no_row_is_lost(tmp_path: Path) -> None:
    for text in ('x"', '5" pipe', 'a"b"c'):
        (tmp_path / "rows.csv").write_text("c,ok,text\n" + ROW * 5 + f"0.5,1,{text}\n" + ROW)
        assert (
            Tally.count(
                "calibration", data=tmp_path / "rows.csv", confidence="c", correct="ok"
            ).rows
            == 7
        )
