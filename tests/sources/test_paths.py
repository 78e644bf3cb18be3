"""Files, globs and folders stand for the files that are meant, each once."""

import re
from pathlib import Path

import pytest

from pacbound.errors import InvalidValueError, RepeatedSourceError
from pacbound.sources.paths import expanded, format_of, partitions_of


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in (
        "b.csv",
        "a.csv",
        "c.parquet",
        "notes.md",
        "deep/d.csv",
        "deep/.hidden.csv",
        "deep/_SUCCESS",
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("c\n")
    return tmp_path


def names(paths: list[Path], folder: Path) -> list[str]:
    return [str(path.relative_to(folder)) for path in paths]


def test_a_glob_stands_for_its_matches_in_order(folder: Path) -> None:
    assert names(expanded(folder / "*.csv"), folder) == ["a.csv", "b.csv"]
    assert names(expanded(str(folder / "**/*.csv")), folder) == ["a.csv", "b.csv", "deep/d.csv"]


def test_a_file_whose_name_is_a_pattern_is_that_file(tmp_path: Path) -> None:
    for name in ("x[1].csv", "x1.csv"):
        (tmp_path / name).touch()
    assert expanded(tmp_path / "x[1].csv") == [tmp_path / "x[1].csv"]


def test_a_folder_stands_for_the_tables_in_it_and_below_without_the_notes_of_whoever_wrote_it(
    folder: Path,
) -> None:
    assert names(expanded(folder / "deep"), folder) == ["deep/d.csv"]


def test_several_paths_keep_their_order(folder: Path) -> None:
    assert names(expanded([folder / "c.parquet", folder / "deep", folder / "a.csv"]), folder) == [
        "c.parquet",
        "deep/d.csv",
        "a.csv",
    ]


def test_a_folder_of_several_formats_is_refused_rather_than_read_in_part(folder: Path) -> None:
    with pytest.raises(InvalidValueError, match=r"more than tables of one format .*notes\.md"):
        expanded(folder)


@pytest.mark.parametrize("there", [True, False])
def test_a_link_in_a_folder_that_would_not_be_followed_is_refused(
    folder: Path, there: bool
) -> None:
    (folder / "elsewhere").mkdir()
    (folder / "deep" / "link").symlink_to(folder / ("elsewhere" if there else "nowhere"))
    with pytest.raises(InvalidValueError, match="name the files that are meant"):
        expanded(folder / "deep")


@pytest.mark.parametrize(
    "twice",
    [("a.csv", "a.csv"), ("a.csv", "*.csv"), ("*.csv", "deep/../a.csv"), ("a.csv", "link.csv")],
)
def test_a_file_that_is_meant_twice_is_refused(folder: Path, twice: tuple[str, str]) -> None:
    (folder / "link.csv").symlink_to(folder / "a.csv")
    with pytest.raises(RepeatedSourceError, match="named twice"):
        expanded([folder / name for name in twice])


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("*.tsv", "matches no file"),
        ("none.csv", "does not exist"),
        ("notes.md", "not a table"),
        ("empty", "folder without tables"),
    ],
)
def test_a_path_that_stands_for_nothing_is_refused(folder: Path, path: str, message: str) -> None:
    (folder / "empty").mkdir()
    with pytest.raises(InvalidValueError, match=message):
        expanded(folder / path)
    with pytest.raises(InvalidValueError, match="Name each file with an option of its own"):
        expanded(f"{folder / 'a.csv'},{folder / 'b.csv'}")


@pytest.mark.parametrize(
    "address", ["s3://bucket/rows.parquet", "https://example.org/*.csv", "gs:/bucket/rows.csv"]
)
def test_an_address_is_not_downloaded(address: str) -> None:
    with pytest.raises(InvalidValueError, match="only local files"):
        expanded(address)


def test_nothing_named_is_refused() -> None:
    with pytest.raises(InvalidValueError, match="No files"):
        expanded([])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.CSV", "delimited"),
        ("a.csv.gz", "delimited"),
        ("a.jsonl.gz", "json"),
        ("a.parquet.gz", None),
        ("a.gz", None),
        ("a.feather", "arrow"),
        ("a", None),
    ],
)
def test_the_end_of_the_name_says_the_format(name: str, expected: str | None) -> None:
    assert format_of(Path(name)) == expected


def test_the_parts_of_a_path_are_columns_as_hive_writes_them() -> None:
    path = Path("logs/day=monday/place=a%20b/none=__HIVE_DEFAULT_PARTITION__/eq=a=b/x=1.csv")
    assert partitions_of(path) == {"day": "monday", "place": "a b", "none": None, "eq": "a=b"}


def test_a_name_that_stands_twice_in_a_path_is_refused() -> None:
    with pytest.raises(InvalidValueError, match="names 'day' twice"):
        partitions_of(Path("day=monday/deep/d%61y=tuesday/x.csv"))


LOGS = {
    "_delta_log/00000000000000000000.json": "Delta Lake",
    "metadata/v1.metadata.json": "Apache Iceberg",
    "metadata/version-hint.text": "Apache Iceberg",
    ".hoodie/hoodie.properties": "Apache Hudi",
    "_spark_metadata/0": "Spark Structured Streaming",
}


@pytest.mark.parametrize("log", LOGS)
@pytest.mark.parametrize(
    "named",
    [
        "lake/table",
        "lake",
        "lake/*",
        "lake/table/**/*.parquet",
        "**/*.parquet",
        "lake/table/data/day=1/a.parquet",
        "link.parquet",
    ],
)
def test_the_files_of_a_table_with_a_log_are_refused_however_they_are_named(
    tmp_path: Path, log: str, named: str
) -> None:
    table = tmp_path / "lake" / "table"
    for name in (log, "data/day=1/a.parquet", "data/day=2/b.parquet"):
        (table / name).parent.mkdir(parents=True, exist_ok=True)
        (table / name).touch()
    (tmp_path / "link.parquet").symlink_to(table / "data" / "day=1" / "a.parquet")
    with pytest.raises(
        InvalidValueError,
        match=rf"^{re.escape(str(table))} is a table of {LOGS[log]} .* Pass the table as a frame, "
        rf"such as \w+\..*{re.escape(str(table))}",
    ):
        expanded(tmp_path / named)


def test_what_is_beside_a_table_with_a_log_or_is_not_one_of_its_files_is_read(
    tmp_path: Path,
) -> None:
    for name in ("table/_delta_log/0.json", "table/a.parquet", "b.parquet", "table/c.csv"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    for name in ("b.parquet", "table/c.csv"):
        assert names(expanded(tmp_path / name), tmp_path) == [name]
