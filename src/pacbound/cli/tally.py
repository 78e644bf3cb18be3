"""`pacbound tally`: count one part of the data, to be certified with the others later."""

from __future__ import annotations

from collections.abc import Mapping, Set
from pathlib import Path
from typing import Annotated, Any

import typer

from pacbound.cli.counting import EngineOption, FilesArgument, MasterOption, MemoryOption, counted
from pacbound.cli.exits import ending_well
from pacbound.cli.lists import names, numbers
from pacbound.cli.terminal import print_json
from pacbound.errors import InvalidTypeError

NAMES_MORE = "--confidence with --correct or --prediction and --label, or --score with --unsafe"


@ending_well
def tally(
    files: FilesArgument,
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the tally goes.")],
    confidence: Annotated[
        str | None, typer.Option(help="Calibration: the confidence column. Cascade: c1,c2")
    ] = None,
    correct: Annotated[
        str | None, typer.Option(help="Calibration: whether the prediction was right.")
    ] = None,
    prediction: Annotated[
        str | None, typer.Option(help="Calibration: the predicted class. Cascade: p1,p2,p3")
    ] = None,
    label: Annotated[str | None, typer.Option(help="Column with the true class.")] = None,
    group: Annotated[
        str | None, typer.Option(help="Calibration: column with a group, for a table of each.")
    ] = None,
    bins: Annotated[
        int | None, typer.Option(help="Calibration: number of bins, 20 if left out.")
    ] = None,
    edges: Annotated[
        str | None, typer.Option(help="Calibration: edges fixed beforehand: 0,0.5,0.9,1")
    ] = None,
    score: Annotated[
        str | None, typer.Option(help="Shield: running maximum of the danger.")
    ] = None,
    unsafe: Annotated[
        str | None, typer.Option(help="Shield: whether the rollout has an un-recoverable state.")
    ] = None,
    final_score: Annotated[
        str | None, typer.Option(help="Shield, for the product: danger at that state.")
    ] = None,
    engine: EngineOption = "duckdb",
    master: MasterOption = None,
    memory_limit: MemoryOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result for programs.")] = False,
) -> int:
    """Count one part of the data. The columns named say what for: calibration, a cascade or a
    shield.

    `pacbound certify` adds the tallies of all parts, and certifies as if all rows had been counted
    at once.
    """
    named = {
        "confidence": confidence,
        "correct": correct,
        "prediction": prediction,
        "label": label,
        "group": group,
        "bins": bins,
        "edges": edges,
        "score": score,
        "unsafe": unsafe,
        "final_score": final_score,
    }
    columns = _columns({name: value for name, value in named.items() if value is not None})
    total = counted(files, engine=engine, master=master, memory_limit=memory_limit, **columns)
    total.save(output)
    if as_json:
        print_json(
            {
                "tally": str(output),
                "kind": total.kind,
                "rows": total.rows,
                "outcomes": total.totals,
            }
        )
    else:
        typer.echo(
            f"{total}\nWritten to {output}. Add it to others and certify: pacbound certify "
            f"{output} …"
        )
    return 0


def _columns(given: Mapping[str, Any]) -> dict[str, Any]:
    """What was named, as counting takes it."""
    if "score" in given:
        return _only(given, "a shield", needs={"score", "unsafe"}, may={"final_score"})
    if "," in given.get("prediction", ""):
        columns = _only(given, "a cascade", needs={"confidence", "prediction", "label"})
        return {
            "confidences": names(columns["confidence"]),
            "predictions": names(columns["prediction"]),
            "label": columns["label"],
        }
    outcome = {"correct"} if "correct" in given else {"prediction", "label"}
    columns = _only(
        given, "a calibration", needs={"confidence", *outcome}, may={"group", "bins", "edges"}
    )
    if "edges" in columns:
        columns["edges"] = numbers(columns["edges"], "--edges")
    if "bins" in columns:
        columns["n_bins"] = columns.pop("bins")
    return columns


def _only(
    given: Mapping[str, Any], use: str, *, needs: Set[str], may: Set[str] = frozenset()
) -> dict[str, Any]:
    missing, odd = needs - given.keys(), given.keys() - needs - may
    if missing:
        raise InvalidTypeError(
            f"Counting {use} needs --{min(missing).replace('_', '-')} as well: name {NAMES_MORE}."
        )
    if odd:
        raise InvalidTypeError(
            f"--{min(odd).replace('_', '-')} says nothing about {use}: leave it out."
        )
    return dict(given)
