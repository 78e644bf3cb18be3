"""Tables are read as they are said to be written; a wrong word is answered with the right one."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from pacbound import Tally, calibrate
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.sources.notation import Notation, NotationOptions

NAMED: dict[str, Any] = {"confidence": "c", "correct": "ok"}
SCORES = [0.05, 0.15, 0.3, 0.95, 1.0, 0.0, 1e-05, 0.123456789012345]
RIGHT = [1, 0, 1, 1, 1, 0, 0, 1]
WANTED = Tally.count("calibration", confidence=SCORES, correct=RIGHT)


def text(separator: str, decimal: str = ".") -> str:
    lines = [f"note{separator}c{separator}ok"]
    for score, right in zip(SCORES, RIGHT, strict=True):
        lines.append(separator.join(["n", repr(score).replace(".", decimal), str(right)]))
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("decimal", [".", ","])
@pytest.mark.parametrize("delimiter", [";", "tab", "|", "^", "\t"])
def test_delimiters_and_decimal_commas_are_read_as_they_are_said_to_be(
    delimiter: str, decimal: str, tmp_path: Path
) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(text("\t" if delimiter == "tab" else delimiter, decimal))
    found = Tally.count("calibration", data=path, delimiter=delimiter, decimal=decimal, **NAMED)
    assert found == WANTED
    packed = tmp_path / "packed.csv.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert (
        Tally.count("calibration", data=packed, delimiter=delimiter, decimal=decimal, **NAMED)
        == WANTED
    )


def test_a_decimal_comma_may_stand_in_quotes_between_commas(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    lines = [
        "c,ok",
        *(f'"{s!r}",{r}'.replace(".", ",") for s, r in zip(SCORES, RIGHT, strict=True)),
    ]
    path.write_text("\n".join(lines))
    assert Tally.count("calibration", data=path, decimal=",", **NAMED) == WANTED


@pytest.mark.parametrize("value", ["0.97", "1.000,5", "0,9,7", "0,97%", "a", "1_0", ""])
def test_what_is_no_number_with_a_decimal_comma_is_refused_inside_and_in_order(
    value: str, tmp_path: Path
) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(f"c;ok;p\n0,5;1;a\n{value};1;a\n")
    written: dict[str, Any] = {"delimiter": ";", "decimal": ","}
    for columns in (NAMED, {"confidence": "c", "prediction": "p", "label": "ok"}):
        with pytest.raises(InvalidValueError, match=r"c\[1\] is .*not a number"):
            Tally.count("calibration", data=path, **written, **columns)


HINTS: dict[str, tuple[str, dict[str, Any], str]] = {
    "semicolons": ("c;ok\n0.5;1\n", {}, r"pass --delimiter ';' \(delimiter=';'\)"),
    "tabs": ("c\tok\n0.5\t1\n", {}, r"pass --delimiter 'tab' \(delimiter='\\t'\)"),
    "commas": ("c,ok\n0.5,1\n", {"delimiter": ";"}, r"pass --delimiter ','"),
    "decimal comma": (
        "c;ok\n0,5;1\n",
        {"delimiter": ";"},
        r"c\[0\] is '0,5'.*pass --decimal , \(decimal=','\)",
    ),
    "decimal point": (
        "c;ok\n0.5;1\n",
        {"delimiter": ";", "decimal": ","},
        "leave --decimal , out",
    ),
    "percent sign": ("c,ok\n97%,1\n", {}, r"without the sign.*--scale 100"),
    "percentages": ("c,ok\n97,1\n", {}, r"c\[0\] is 97.0 .*scale=100, --scale 100"),
    "another scale": ("c,ok\n97,1\n", {"scale": 10}, r"c / 10\[0\] is 9.7 "),
}


@pytest.mark.parametrize("case", HINTS)
def test_a_table_that_is_written_in_another_way_says_what_to_pass(
    case: str, tmp_path: Path
) -> None:
    content, written, said = HINTS[case]
    path = tmp_path / "rows.csv"
    path.write_text(content)
    with pytest.raises(InvalidValueError, match=said):
        Tally.count("calibration", data=path, **written, **NAMED)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"delimiter": ";;"}, "cannot stand between values"),
        ({"delimiter": ""}, "cannot stand between values"),
        ({"delimiter": '"'}, "cannot stand between values"),
        ({"delimiter": "a"}, "cannot stand between values"),
        ({"delimiter": "."}, "cannot stand between values"),
        ({"delimiter": "\n"}, "cannot stand between values"),
        ({"delimiter": "§"}, "cannot stand between values"),
        ({"decimal": ";"}, "expected '.' or ','"),
        ({"decimal": ""}, "expected '.' or ','"),
        ({"scale": 0}, "above 0"),
        ({"scale": -100}, "above 0"),
        ({"scale": float("nan")}, "above 0"),
        ({"scale": float("inf")}, "above 0"),
        ({"scale": "100"}, "is not a number"),
        ({"scale": True}, "is not a number"),
        ({"delimiter": 1}, "is not text"),
    ],
)
def test_a_notation_that_cannot_be_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises((InvalidValueError, InvalidTypeError), match=said):
        Notation.of(**given)


def test_a_notation_of_text_is_refused_where_there_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    frame = pl.DataFrame({"c": SCORES, "ok": RIGHT})
    frame.write_parquet(path)
    for engine in ("duckdb", "polars"):
        with pytest.raises(InvalidTypeError, match=r"delimiter is about .*rows\.parquet is not:"):
            Tally.count("calibration", data=path, delimiter=";", engine=engine, **NAMED)
    with pytest.raises(InvalidTypeError, match="a frame was passed"):
        Tally.count("calibration", data=frame, decimal=",", **NAMED)
    with pytest.raises(InvalidTypeError, match="pass the scores divided by it"):
        Tally.count("calibration", confidence=SCORES, correct=RIGHT, scale=100)
    with pytest.raises(InvalidTypeError, match=r"delimeter is not an option .* mean delimiter"):
        calibrate(**NAMED, data=path, delta=0.05, delimeter=";")  # type: ignore[call-arg]


@pytest.mark.parametrize("ending", ["xlsx", "XLS", "ods"])
def test_a_spreadsheet_is_answered_with_the_way_to_a_table(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"rows.{ending}"
    path.write_bytes(b"PK\x03\x04")
    with pytest.raises(InvalidValueError, match="is a spreadsheet: save the sheet as CSV"):
        Tally.count("calibration", data=path, **NAMED)


def test_rows_go_out_in_the_notation_that_they_came_in(tmp_path: Path) -> None:
    certificate = calibrate(SCORES, RIGHT, delta=0.05, n_bins=3)
    source, target = tmp_path / "rows.csv", tmp_path / "out.csv"
    source.write_text(text(";", ","))
    notation: NotationOptions = {"delimiter": ";", "decimal": ","}
    certificate.apply_to_file(source, target, confidence="c", **notation)
    lines = target.read_text().splitlines()
    assert lines[0] == "note;c;ok;pac_lower;pac_upper;pac_estimate"
    assert lines[1].startswith("n;0,05;1;0,")
    assert "." not in "".join(lines)
    again = Tally.count("calibration", data=target, delimiter=";", decimal=",", **NAMED)
    assert again == WANTED
    lower = [float(line.split(";")[3].replace(",", ".")) for line in lines[1:]]
    assert lower == certificate.interval(SCORES)[:, 0].tolist()
    # A name that ends in .tsv says itself what stands between values.
    certificate.apply_to_file(source, tmp_path / "out.tsv", confidence="c", **notation)
    assert (tmp_path / "out.tsv").read_text().startswith("note\tc\tok\tpac_lower")


def test_a_quote_that_the_delimiter_makes_necessary_is_written(tmp_path: Path) -> None:
    source = tmp_path / "rows.csv"
    source.write_text('c|note\n0.5|"a|b"\n0.7|c^d\n')
    certificate = calibrate(SCORES, RIGHT, delta=0.05, n_bins=3)
    notation: NotationOptions = {"delimiter": "|"}
    certificate.apply_to_file(source, tmp_path / "out.csv", confidence="c", **notation)
    assert (tmp_path / "out.csv").read_text().splitlines()[1].startswith('0.5|"a|b"|')


def test_scores_are_divided_and_never_multiplied_by_a_reciprocal() -> None:
    percent = np.arange(101)
    frame = pl.DataFrame({"c": percent, "ok": percent % 2})
    found = Tally.count("calibration", data=frame, n_bins=100, scale=100, **NAMED)
    assert found == Tally.count(
        "calibration", confidence=percent / 100, correct=percent % 2, n_bins=100
    )
    assert found != Tally.count(
        "calibration", confidence=percent * (1 / 100), correct=percent % 2, n_bins=100
    )
