"""The options that every certifying verb takes, declared once: how rows are read, judged and drawn.

`RowOptions` types the verbs (`**rows: Unpack[RowOptions]`). `ROWS` is the same at run time, for the
options of the command line, for checks, and for the documentation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Annotated, Any, Final, Literal, TypedDict, get_args, get_type_hints

from pacbound.errors import InvalidTypeError
from pacbound.sources.batches import Engine, Progress

Part = Literal[
    "reading",
    "source",
    "notation",
    "answers",
    "joining",
    "classes",
    "grading",
    "draw",
    "certificate",
]


@dataclass(frozen=True)
class Row:
    """What a row option is for.

    Attributes
    ----------
    help : str
        One line.
    part : str
        What it says something about: "reading" files; the "source" of the rows; the
        "notation" of tables, or the "answers"
        to their rows; the "joining" of several tables; "classes", the "grading" of outcomes, or the
        "draw" of rows, also of arrays; or the "certificate".
    column : bool
        Whether it is a column of the table, or an array beside the others.
    option : type or None
        What the command line reads; None where it has no such option.
    """

    help: str
    part: Part
    column: bool = False
    option: Any = None


class RowOptions(TypedDict, total=False):
    """How rows are read, judged and drawn before they are counted. Every function that certifies
    takes these.
    """

    engine: Annotated[
        Engine | None,
        Row("What counts files: the embedded duckdb, polars, or spark.", "reading", option=Engine),
    ]
    master: Annotated[
        str | None,
        Row(
            "Spark's master, such as spark://host:7077; all cores of this machine if left out.",
            "reading",
            option=str,
        ),
    ]
    memory_limit: Annotated[
        str | None,
        Row("What DuckDB may use, such as 500MB; 600MB if left out.", "reading", option=str),
    ]
    progress: Annotated[
        Progress | None, Row("Called with the share that is counted, from 0 to 1.", "reading")
    ]
    source: Annotated[
        str | None,
        Row(
            "What you call these rows, such as epoch-17: a tally of the same name is not added.",
            "source",
            option=str,
        ),
    ]
    delimiter: Annotated[
        str | None,
        Row(
            "What separates the values of text files: ';' or tab; as the name says if left out.",
            "notation",
            option=str,
        ),
    ]
    decimal: Annotated[
        str | None, Row("The decimal sign of text files, '.' or ','.", "notation", option=str)
    ]
    scale: Annotated[
        float | None,
        Row("What a score of 1 is written as: 100 for percentages.", "notation", option=float),
    ]
    answers: Annotated[
        Any,
        Row("Labels that came back for the rows, by their pac_id: files or a frame.", "answers"),
    ]
    cannot_tell: Annotated[
        str | None,
        Row(
            "What stands for 'nobody can tell' in labels that came back, such as '?'.",
            "answers",
            option=str,
        ),
    ]
    id: Annotated[
        Any,
        Row(
            "The column that joins the models' tables where each model has its own: doc_id",
            "joining",
            option=str,
        ),
    ]
    where: Annotated[
        Any,
        Row(
            "With id: only rows where a column has a value, such as filter=strict-match.",
            "joining",
            option=str,
        ),
    ]
    classes: Annotated[
        Any, Row("All classes that there are: a,b,c. Any other is refused.", "classes", option=str)
    ]
    missing: Annotated[
        Any, Row("What stands for a missing class, for example NA or -1.", "classes", option=str)
    ]
    positive_class: Annotated[
        Any,
        Row(
            "The class that counts, where truth values are written as classes: ill",
            "classes",
            option=str,
        ),
    ]
    unseen_labels: Annotated[
        float,
        Row(
            "The share of labels that may be of classes no model predicts; 0 if left out.",
            "classes",
            option=float,
        ),
    ]
    unrelated_labels: Annotated[
        bool,
        Row(
            "Count labels that match the slow model no more often than by chance.",
            "classes",
            option=bool,
        ),
    ]
    quality_scale: Annotated[
        Any,
        Row(
            "The worst and the best grade of quality, 1,5; or all that there are, 1,2,3,4,5. 0,1 "
            "if left out.",
            "grading",
            option=str,
        ),
    ]
    graded_by: Annotated[
        str | None,
        Row(
            "Who graded the quality: a judge, a rubric, people. The claim says so.",
            "grading",
            option=str,
        ),
    ]
    clusters: Annotated[
        Any,
        Row(
            "The patient, video or speaker of each row: one row of each is drawn, for each of its "
            "groups.",
            "draw",
            column=True,
            option=str,
        ),
    ]
    cluster_bound: Annotated[
        int | None,
        Row(
            "The most rows any cluster can have: the claim is then about a random row.",
            "draw",
            option=int,
        ),
    ]
    weights: Annotated[
        Any,
        Row(
            "The weight of each row: the density in use over that of the rows, up to a factor.",
            "draw",
            column=True,
            option=str,
        ),
    ]
    weight_bound: Annotated[
        float | None,
        Row("The largest weight that there can be, seen or not.", "draw", option=float),
    ]
    row_ids: Annotated[
        Any, Row("A name for each row, where rows have no order.", "draw", column=True, option=str)
    ]
    seed: Annotated[
        int | None,
        Row(
            "Repeats a draw of rows: a whole number that was drawn at random, once, without sight "
            "of the rows (0 and 42 are not). The operating system draws one if left out; needed "
            "where labels are still missing.",
            "draw",
            option=int,
        ),
    ]
    sample: Annotated[
        str | None,
        Row(
            "What you call these rows: the deltas of all claims about the same rows add up.",
            "certificate",
        ),
    ]
    about: Annotated[
        Mapping[str, Any] | None,
        Row(
            "What the certificate is about, for people: texts by names such as model and owner.",
            "certificate",
        ),
    ]


# What each row option is for.
ROWS: Final[Mapping[str, Row]] = {
    name: next(part for part in get_args(hint) if isinstance(part, Row))
    for name, hint in get_type_hints(RowOptions, include_extras=True).items()
}

# The class that counts, where truth values are written as classes; certificates keep it beside the
# names of the columns.
POSITIVE: Final = "positive_class"

# The options that say how tables are joined.
JOINED_BY: Final = tuple(name for name, row in ROWS.items() if row.part == "joining")

# The options that are columns: rows are drawn by them.
DRAWN_BY: Final = tuple(name for name, row in ROWS.items() if row.column)

RowOptions.__doc__ = f"{RowOptions.__doc__}\n\nParameters\n----------\n" + "\n".join(
    f"{name}\n    {row.help}" for name, row in ROWS.items()
)


def require_row_options(given: Mapping[str, Any], beside: Iterable[str] = ()) -> None:
    """Raise if something is not a row option; the nearest is named, among those and what else the
    function takes.
    """
    for name in given:
        if name in ("quality", "preferred"):
            raise InvalidTypeError(
                f"{name} grades answers, for calibration, abstention and cascades: this claim is "
                "about rows of one outcome, which a grade cannot tell. Decide beforehand from "
                "which grade on a row counts as one, and pass that as a truth value."
            )
        if name not in ROWS:
            near = get_close_matches(name, [*ROWS, *beside], 1)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise InvalidTypeError(f"{name} is not an option of this function.{hint}")


def options_about(part: Part, given: Mapping[str, Any]) -> dict[str, Any]:
    """The options that say something about one part, of all that were given."""
    return {
        name: given[name]
        for name, row in ROWS.items()
        if row.part == part and given.get(name) is not None
    }
