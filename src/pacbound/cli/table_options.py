"""The options that all verbs have that count tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import typer

from pacbound.cli.file_options import Reads
from pacbound.cli.lists import names, numbers
from pacbound.cli.option_groups import ROWS, OptionGroup
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.sources import Engine, Notation
from pacbound.sources.notation import NotationOptions
from pacbound.sources.standard_input import STANDARD_INPUT, Format, standard_input
from pacbound.tally.questions.calibration import EQUAL_MASS

FilesArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE...",
        help=(
            "CSV, Parquet, JSON lines, Arrow, .npz, a folder, a quoted glob, or - for standard "
            "input; all of them are counted together."
        ),
    ),
    Reads(),
]
EngineOption = Annotated[
    Engine, typer.Option(help="What counts: the embedded DuckDB, Polars, or Spark.")
]
MasterOption = Annotated[
    str | None,
    typer.Option(
        help="With --engine spark: spark://host:7077; all cores of this machine if left out."
    ),
]
MemoryOption = Annotated[
    str | None, typer.Option(help="What DuckDB may use, for example 500MB; 600MB if left out.")
]
ClassesOption = Annotated[
    str | None,
    typer.Option(
        help="All classes that there are: a,b,c. Any other is refused.", rich_help_panel=ROWS
    ),
]
MissingOption = Annotated[
    str | None,
    typer.Option(
        help="What stands for a missing class, for example NA or -1.", rich_help_panel=ROWS
    ),
]
UnseenOption = Annotated[
    float | None,
    typer.Option(
        help=(
            "Share of the rows whose label may be a class that no model ever predicts; 0 if left "
            "out."
        )
    ),
]
UnrelatedOption = Annotated[
    bool,
    typer.Option(
        "--unrelated-labels",
        help="Count labels that match the slow model no more often than by chance.",
    ),
]
ClustersOption = Annotated[
    str | None,
    typer.Option(help="Column with the patient, video, … of each row: one row of each is drawn."),
]
ClusterBoundOption = Annotated[
    int | None,
    typer.Option(help="The most rows any cluster can have: the claim is then about a random row."),
]
WeightsOption = Annotated[
    str | None,
    typer.Option(help="Column with the target's density over that of the rows, up to a factor."),
]
WeightBoundOption = Annotated[
    float | None, typer.Option(help="The largest weight that there can be, seen or not.")
]
RowIdsOption = Annotated[
    str | None, typer.Option(help="Column with a name for each row, where rows have no order.")
]
SeedOption = Annotated[
    int | None,
    typer.Option(help="Key of the draw by clusters or weights, 0 if left out. Try only one."),
]
StrataOption = Annotated[
    str | None,
    typer.Option(
        help="Rows were chosen by `pacbound stratify`: its --n-bins or --edges.",
        rich_help_panel=ROWS,
    ),
]


DelimiterOption = Annotated[
    str | None,
    typer.Option(
        help="Text: what stands between values, ';' or tab; as the name says if left out."
    ),
]
DecimalOption = Annotated[
    str | None, typer.Option(help="Text: what stands for the decimal point, '.' or ','.")
]
ScaleOption = Annotated[
    float | None,
    typer.Option(help="What a score of 1 is written as, for example 100 for percentages."),
]
FormatOption = Annotated[
    Format | None,
    typer.Option("--format", help="With -: what comes in, if its first bytes do not say it."),
]
LabelsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--labels",
        help=(
            "A file of labels that came back, joined to the rows by its column pac_row; the label "
            "column is in it. May be repeated."
        ),
        rich_help_panel=ROWS,
    ),
    Reads(),
]


@dataclass(frozen=True)
class Counter(OptionGroup):
    """What counts the rows."""

    engine: EngineOption = "duckdb"
    master: MasterOption = None
    memory_limit: MemoryOption = None

    def options(self) -> dict[str, Any]:
        """What was said, as the verbs take it."""
        return asdict(self)


@dataclass(frozen=True)
class Classes(OptionGroup):
    """Which classes there are."""

    classes: ClassesOption = None
    missing: MissingOption = None
    unseen_labels: UnseenOption = None

    def options(self) -> dict[str, Any]:
        """What was said, as the verbs take it."""
        return {
            "classes": None if self.classes is None else names(self.classes),
            "missing": None if self.missing is None else names(self.missing),
            "unseen_labels": self.unseen_labels,
        }


@dataclass(frozen=True)
class CascadeClasses(Classes):
    """Which classes there are, and what labels may look like beside the slow model."""

    unrelated_labels: UnrelatedOption = False

    def options(self) -> dict[str, Any]:
        """What was said, as the verbs take it."""
        return {**super().options(), "unrelated_labels": self.unrelated_labels or None}


@dataclass(frozen=True)
class RowDraw(OptionGroup):
    """How rows are drawn before they are counted."""

    clusters: ClustersOption = None
    cluster_bound: ClusterBoundOption = None
    weights: WeightsOption = None
    weight_bound: WeightBoundOption = None
    row_ids: RowIdsOption = None
    seed: SeedOption = None

    def columns(self) -> dict[str, str | None]:
        """The columns that rows are drawn by, as the verbs take them."""
        return {"clusters": self.clusters, "weights": self.weights, "row_ids": self.row_ids}

    def options(self) -> dict[str, Any]:
        """What was said beside the columns, as the verbs take it."""
        return {
            "cluster_bound": self.cluster_bound,
            "weight_bound": self.weight_bound,
            "seed": self.seed,
        }


@dataclass(frozen=True)
class Written(OptionGroup):
    """How tables are written."""

    delimiter: DelimiterOption = None
    decimal: DecimalOption = None
    scale: ScaleOption = None

    def options(self) -> NotationOptions:
        """What was said, as the verbs take it."""
        return {"delimiter": self.delimiter, "decimal": self.decimal, "scale": self.scale}

    def notation(self) -> Notation:
        """What was said, as tables are opened with it."""
        return Notation.of(**self.options())


@dataclass(frozen=True)
class WrittenOrPiped(Written):
    """How tables are written, one of which may come in over standard input."""

    standard_format: FormatOption = None

    def tables(self, files: Sequence[str]) -> list[str]:
        """The files, with one that holds standard input in the place of -."""
        if self.standard_format is not None and STANDARD_INPUT not in files:
            raise InvalidTypeError(
                "--format says what comes in over standard input, and - is not among the files: "
                "leave it out."
            )
        if list(files).count(STANDARD_INPUT) > 1:
            raise InvalidValueError("- is named twice, and standard input comes only once.")
        return [
            str(standard_input(self.standard_format)) if file == STANDARD_INPUT else file
            for file in files
        ]


def edges_option(edges: str | None) -> str | list[float] | None:
    """Edges as the verbs take them: numbers, or the word for those that are taken from the rows."""
    return edges if edges is None or edges == EQUAL_MASS else numbers(edges, "--edges")


def strata_option(strata: str | None) -> int | list[float] | None:
    """The bins that rows were chosen by: how many of equal width, or their edges."""
    if strata is None:
        return None
    return int(strata) if strata.strip().isdecimal() else numbers(strata, "--strata")
