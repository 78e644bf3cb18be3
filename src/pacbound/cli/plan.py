"""`pacbound plan`: how many labels a claim will take, in four ways."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import typer

from pacbound.claims.certificate import load_certificate
from pacbound.cli.columns import (
    ColumnOption,
    for_question,
    named_columns,
    require_roles,
    roles_of,
    several_of,
    typed_role,
)
from pacbound.cli.exit_codes import REFUSED, decided, ending_well
from pacbound.cli.figures import draw, require_drawable
from pacbound.cli.file_options import Reads, Writes
from pacbound.cli.lists import whole_numbers
from pacbound.cli.table_options import (
    CascadeClasses,
    Counter,
    FilesArgument,
    LabelsOption,
    WrittenOrPiped,
    edges_option,
)
from pacbound.cli.terminal import print_json, progress_bar
from pacbound.documents import Json
from pacbound.errors import InvalidTypeError
from pacbound.monitor.shadow import plan_shadow
from pacbound.planning import PilotPlan, plan_from_pilot
from pacbound.stats.looks import PlannedLooks, planned_looks
from pacbound.stats.planning import trials_needed
from pacbound.tally import Tally
from pacbound.tally.questions import QUESTIONS, with_article

DeltaOption = Annotated[float, typer.Option(help="Chance that the certificate is wrong.")]
SeedOption = Annotated[int, typer.Option(min=0, help="The seed of the draws.")]
FigureOption = Annotated[
    Path | None, typer.Option(help="Draw the plan into this file, .png, .svg or .pdf."), Writes()
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the result for programs.")]


@ending_well
def rate(
    target: Annotated[float, typer.Option(help="The rate to be certified, for example 0.02.")],
    expected: Annotated[
        float, typer.Option(help="The rate that you expect in truth, below the target.")
    ],
    delta: DeltaOption,
    power: Annotated[float, typer.Option(help="Chance that the certificate comes about.")] = 0.9,
    as_json: JsonOption = False,
) -> int:
    """Say how many labels it takes to certify that a rate is at most --target, if it is --expected
    in truth.
    """
    first, always = trials_needed(target, expected, delta=delta, power=power)
    if as_json:
        print_json(
            {
                "target": target,
                "expected": expected,
                "delta": delta,
                "power": power,
                "first": first,
                "always": always,
            }
        )
    else:
        typer.echo(
            f"{first:,} labels certify a rate of at most {target:g} (delta = {delta:g}) with "
            f"probability {power:g} if the true rate is {expected:g}.\nFrom {always:,} labels on, "
            "every number does. Fix the number before the first label is seen."
        )
    return 0


@ending_well
def looks(
    looks: Annotated[
        str, typer.Option(help="The numbers of labels at which you will look: 500,1000,2000")
    ],
    xi: Annotated[float, typer.Option(help="The rate to be certified.")],
    delta: Annotated[
        float, typer.Option(help="Chance that any of the looks certifies what is not so.")
    ],
    expected: Annotated[
        float | None,
        typer.Option(help="The rate that you expect in truth; half of xi if left out."),
    ] = None,
    figure: FigureOption = None,
    as_json: JsonOption = False,
) -> int:
    """Say how many errors each of several looks at a growing sample may show, so that all of them
    together are wrong with probability at most --delta.
    """
    require_drawable(figure)
    planned = planned_looks(xi, delta=delta, looks=whole_numbers(looks, "--looks"))
    truth = planned.xi / 2.0 if expected is None else expected
    if figure is not None:
        from pacbound.report import LooksDisplay  # noqa: PLC0415

        draw(LooksDisplay.from_plan(planned, rate=truth), figure)
    if as_json:
        drawn = {"figure": None if figure is None else str(figure)}
        print_json({**drawn, **_looks_document(planned, truth)})
        return 0
    typer.echo(
        f"Looks that certify a rate of at most {planned.xi:g}, all together at delta = {delta:g} "
        f"({planned.spent:.4g} is spent).\n\n{'labels':>12}{'errors':>10}"
    )
    for trials, most in zip(planned.looks, planned.largest_errors, strict=True):
        typer.echo(f"{trials:>12,}{f'<= {most}' if most >= 0 else 'none do':>10}")
    typer.echo(
        f"\nIf the true rate is {truth:g}, {planned.expected_labels(truth):,.0f} labels are looked "
        f"at on average, and some look passes with probability {sum(planned.passing(truth)):.3f}.\n"
        "Fix the looks before the first label is seen. They may be skipped, never added."
    )
    if figure is not None:
        typer.echo(f"Drawn into {figure}.")
    return 0


def _looks_document(planned: PlannedLooks, truth: float) -> dict[str, Json]:
    return {
        "xi": planned.xi,
        "delta": planned.delta,
        "looks": list(planned.looks),
        "levels": list(planned.levels),
        "largest_errors": list(planned.largest_errors),
        "spent": planned.spent,
        "expected": truth,
        "expected_labels": planned.expected_labels(truth),
        "passing": list(planned.passing(truth)),
    }


@ending_well
def pilot(
    files: FilesArgument,
    delta: DeltaOption,
    xi: Annotated[float | None, typer.Option(help="The rate to be certified.")] = None,
    target: Annotated[
        float | None, typer.Option(help="Recall: the share of the positives to be flagged.")
    ] = None,
    goal: Annotated[
        float | None,
        typer.Option(
            help=(
                "At least this exit rate of a cascade or coverage of an abstention, at most this "
                "mean width of a calibration, flag rate of a recall or intervention rate of a "
                "shield; false alarms: at least this share of positives found."
            )
        ),
    ] = None,
    claim: Annotated[
        str | None,
        typer.Option(
            help=(
                "Recall, shield: plan for its false alarms, with --xi. Cascade, without the role "
                "label: plan for the claim that few answers differ."
            )
        ),
    ] = None,
    kind: Annotated[
        Literal["abstention", "calibration"] | None,
        typer.Option(help="What columns are for that fit both, calibration if left out."),
    ] = None,
    sizes: Annotated[
        str | None, typer.Option(help="The numbers of rows to try: 1000,5000,20000")
    ] = None,
    label_cost: Annotated[float | None, typer.Option(help="What a label costs.")] = None,
    power: Annotated[float, typer.Option(help="Chance that the certificate comes about.")] = 0.9,
    draws: Annotated[int, typer.Option(help="Samples drawn of each size.")] = 50,
    seed: SeedOption = 0,
    n_bins: Annotated[
        int | None, typer.Option(help="Calibration: number of bins, 20 if left out.")
    ] = None,
    edges: Annotated[
        str | None, typer.Option(help="Calibration: edges fixed beforehand: 0,0.5,0.9,1")
    ] = None,
    column: ColumnOption = None,
    *,
    classes: CascadeClasses,
    labels: LabelsOption = None,
    written: WrittenOrPiped,
    counter: Counter,
    figure: FigureOption = None,
    as_json: JsonOption = False,
) -> int:
    """Estimate what larger samples will give and cost, from the rows of a pilot.

    A pilot is a small labelled sample, drawn as the real one will be. Name its columns by the roles
    that they play for the command that will certify: --column score=s --column positive=y

    Exit code 0: a size is enough. 3: none of those tried is.
    """
    require_drawable(figure)
    counting = {
        **classes.options(),
        **counter.options(),
        "answers": labels,
        **written.options(),
        "n_bins": n_bins,
        "edges": edges_option(edges),
    }
    tally = _counted(written.tables(files), named_columns(column), kind, counting)
    with progress_bar("drawing") as progress:
        found = plan_from_pilot(
            tally,
            delta=delta,
            xi=xi,
            target=target,
            claim=claim,
            goal=goal,
            sizes=None if sizes is None else whole_numbers(sizes, "--sizes"),
            label_cost=label_cost,
            power=power,
            draws=draws,
            rng=np.random.default_rng(seed),
            progress=progress,
        )
    return _print_pilot(found, figure, as_json=as_json)


def _counted(
    files: list[str], named: Mapping[str, str], kind: str | None, counting: Mapping[str, Any]
) -> Tally:
    question = _question(named, kind)
    require_roles(named, roles_of(question), with_article(question.kind))
    given = {**for_question(question, named), **counting}
    with progress_bar("counting") as progress:
        return Tally.count(
            question,
            data=files,
            progress=progress,
            **{name: value for name, value in given.items() if value is not None},
        )


def _question(named: Mapping[str, str], kind: str | None) -> Any:
    """The question of a kind, or the first that the columns are enough for."""
    known: Mapping[Any, Any] = QUESTIONS
    if kind is not None:
        return known[kind]
    lists = {role for role, column in named.items() if "," in column}
    for question in known.values():
        needed = {typed_role(role) for role, must in question.roles.items() if must}
        if needed <= named.keys() and lists <= several_of(question):
            return question
    every = dict.fromkeys(role for question in known.values() for role in roles_of(question))
    require_roles(named, every, "a pilot")
    listed = "; ".join(f"{name}: {', '.join(roles_of(one))}" for name, one in known.items())
    raise InvalidTypeError(
        f"The columns of {', '.join(sorted(named)) or 'no role'} are not enough to count by. Name "
        f"them with --column ROLE=NAME; the roles for {listed}."
    )


def _print_pilot(found: PilotPlan, figure: Path | None, *, as_json: bool) -> int:
    code = decided(REFUSED if found.needed is None and found.aims else 0)
    if figure is not None:
        from pacbound.report import PlanDisplay  # noqa: PLC0415

        draw(PlanDisplay.from_plan(found), figure)
    if as_json:
        print_json({"figure": None if figure is None else str(figure), **found.to_dict()})
    else:
        typer.echo(found.summary())
        if figure is not None:
            typer.echo(f"Drawn into {figure}.")
    return code


@ending_well
def shadow(
    certificate: Annotated[
        Path, typer.Argument(metavar="CERT", help="The certificate of the cascade."), Reads()
    ],
    losses: Annotated[
        float, typer.Option(help="The share of all rows lost, which is to be noticed: 0.05")
    ],
    rows: Annotated[
        int, typer.Option(help="Rows of traffic within which the alarm is to ring: 10000")
    ],
    delta: Annotated[float, typer.Option(help="Chance that the alarm ever rings falsely.")],
    gains: Annotated[
        float | None, typer.Option(help="The share of all rows gained, 0 if left out.")
    ] = None,
    usual: Annotated[
        float | None,
        typer.Option(help="The share lost before; gains and half of xi if left out."),
    ] = None,
    false_alarms: Annotated[
        str | None, typer.Option(help="As for pacbound monitor, 'ever' if left out.")
    ] = None,
    seen: Annotated[
        int | None, typer.Option(help="Labels that came before the rise, 50000 if left out.")
    ] = None,
    power: Annotated[float, typer.Option(help="Chance that the alarm rings in time.")] = 0.9,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> int:
    """Say what share of the traffic of a cascade in use to send to the slow model too, so that the
    monitor notices a rise in losses in time.
    """
    loaded: Any = load_certificate(certificate)
    given = {"gains": gains, "usual": usual, "false_alarms": false_alarms, "seen": seen}
    more: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    found = plan_shadow(
        loaded,
        losses=losses,
        rows=rows,
        delta=delta,
        power=power,
        rng=np.random.default_rng(seed),
        **more,
    )
    if as_json:
        print_json(
            {
                "status": "estimate",
                "share": found.share,
                "labels": found.labels,
                "losses": losses,
                "rows": rows,
                "delta": delta,
                "power": power,
                "seed": seed,
                **more,
            }
        )
    else:
        typer.echo(
            f"Send {found.share:.2%} of the traffic to the slow model too, drawn by a key before "
            f"anything is known of a row: if {losses:g} of the rows are lost, the alarm rings "
            f"within {rows:,} rows with probability {power:g}, after about {found.labels:,} labels "
            "at most.\nEstimated from simulated streams: nothing here is guaranteed."
        )
    return 0
