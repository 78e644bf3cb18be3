"""`pacbound plan`: how many labels a claim will take, in three ways."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from pacbound.claims import CLAIMS, claim_of, claims_of
from pacbound.cli.delivery import draw, progress_bar, require_drawable, say, text_of
from pacbound.cli.exit_codes import REFUSED, decided, ending_well
from pacbound.cli.options import (
    ColumnOption,
    JsonOption,
    Writes,
    numbers,
    option,
    whole_numbers,
)
from pacbound.cli.rows import (
    CLUSTERED,
    COUNTED,
    PIPED,
    RELATED,
    FilesArgument,
    RowChoices,
    for_question,
    named_columns,
    require_roles,
    several_of,
)
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.forms import REQUIRED
from pacbound.planning import plan_from_pilot
from pacbound.stats.looks import planned_looks
from pacbound.stats.planning import trials_needed
from pacbound.tally import Tally
from pacbound.tally.grids import EQUAL_MASS
from pacbound.tally.questions import with_article

DeltaOption = Annotated[float, option("Chance that the certificate is wrong.")]
SeedOption = Annotated[int, typer.Option(min=0, help="The seed of the draws.")]
FigureOption = Annotated[
    Path | None, option("Draw the plan into this file, .png, .svg or .pdf."), Writes()
]


@ending_well
def rate(
    target: Annotated[float, option("The rate to be certified, for example 0.02.")],
    expected: Annotated[float, option("The rate that you expect in truth, below the target.")],
    delta: DeltaOption,
    power: Annotated[float, option("Chance that so many labels certify the rate.")] = 0.9,
    as_json: JsonOption = False,
) -> int:
    """Say how many labels it takes to certify that a rate is at most --target, if it is --expected
    in truth.
    """
    first, always = trials_needed(target, expected, delta=delta, power=power)
    asked = {"target": target, "expected": expected, "delta": delta, "power": power}
    say(
        f"{first:,} labels certify a rate of at most {target:g} (delta = {delta:g}) with "
        f"probability {power:g} if the true rate is {expected:g}.\nFrom {always:,} labels on, "
        "every number does. Fix the number before you look at the rows.",
        {**asked, "first": first, "always": always},
        as_json=as_json,
    )
    return 0


@ending_well
def looks(
    looks: Annotated[str, option("The numbers of labels at which you will look: 500,1000,2000")],
    xi: Annotated[float, option("The rate to be certified.")],
    delta: Annotated[
        float, option("Chance that any of the looks certifies a rate that is not kept.")
    ],
    expected: Annotated[
        float | None, option("The rate that you expect in truth; half of xi if left out.")
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
    drawn = ""
    if figure is not None:
        from pacbound.report.plotting import errors_by_look  # noqa: PLC0415

        drawn = draw(errors_by_look(planned, truth), figure)
    passing = planned.passing(truth)
    lines = [
        f"Looks that certify a rate of at most {planned.xi:g}, all together at delta = {delta:g} "
        f"({planned.spent:.4g} is spent).\n\n{'labels':>12}{'errors':>10}",
        *(
            f"{trials:>12,}{f'<= {most}' if most >= 0 else 'none do':>10}"
            for trials, most in zip(planned.looks, planned.largest_errors, strict=True)
        ),
        f"\nIf the true rate is {truth:g}, {planned.expected_labels(truth):,.0f} labels are looked "
        f"at on average, and some look passes with probability {sum(passing):.3f}.\n"
        f"Fix the looks before you look at the rows. They may be skipped, never added.{drawn}",
    ]
    found = {
        "figure": text_of(figure),
        "xi": planned.xi,
        "delta": planned.delta,
        "looks": list(planned.looks),
        "levels": list(planned.levels),
        "largest_errors": list(planned.largest_errors),
        "spent": planned.spent,
        "expected": truth,
        "expected_labels": planned.expected_labels(truth),
        "passing": list(passing),
    }
    say("\n".join(lines), found, as_json=as_json)
    return 0


@ending_well
def pilot(
    files: FilesArgument,
    delta: DeltaOption,
    xi: Annotated[float | None, option("The rate to be certified.")] = None,
    target: Annotated[
        float | None, option("Recall: the share of the positives to be flagged.")
    ] = None,
    goal: Annotated[
        float | None,
        option(
            "At least this exit rate of a cascade or coverage of an abstention, at most this "
            "mean width of a calibration, flag rate of a recall or intervention rate of a "
            "shield; false alarms: at least this share of positives found."
        ),
    ] = None,
    claim: Annotated[
        str | None,
        option(
            "Recall, shield: plan for its false alarms, with --xi. Recall: plan for precision. "
            "Cascade, without the role label: plan for the claim that few answers differ."
        ),
    ] = None,
    kind: Annotated[
        str | None,
        option(
            "What will be certified, such as recall; if left out, what the columns and --xi "
            "or --target are for."
        ),
    ] = None,
    sizes: Annotated[str | None, option("The numbers of rows to try: 1000,5000,20000")] = None,
    label_cost: Annotated[float | None, option("What a label costs.")] = None,
    power: Annotated[float, option("Chance that so many labels certify the rate.")] = 0.9,
    draws: Annotated[int, option("Samples drawn of each size.")] = 50,
    seed: SeedOption = 0,
    n_bins: Annotated[int | None, option("Calibration: number of bins, 20 if left out.")] = None,
    edges: Annotated[str | None, option("Calibration: edges fixed beforehand: 0,0.5,0.9,1")] = None,
    column: ColumnOption = None,
    *,
    rows: Annotated[
        RowChoices, (*RELATED, "positive_class", *CLUSTERED, "labels", *PIPED, *COUNTED)
    ],
    figure: FigureOption = None,
    as_json: JsonOption = False,
) -> int:
    """Estimate what larger samples will give and cost, from the rows of a pilot.

    A pilot is a small labelled sample, drawn as the real one will be. Name its columns by the roles
    that they play for the command that will certify: --column score=s --column positive=y

    Exit code 0: a size is enough. 3: none of those tried is.
    """
    require_drawable(figure)
    asked = {name for name, value in {"xi": xi, "target": target}.items() if value is not None}
    bins = {"n_bins": n_bins, "edges": _edges(edges)}
    named, tables = named_columns(column), rows.tables(files)
    question = _question(named, kind, asked)
    require_roles(named, question.roles, with_article(question.kind))
    given = {**for_question(question, named), **bins, **rows.options()}
    if "clusters" in given:
        given["among"] = _drawn_among(question, claim or kind)
    with progress_bar("counting") as progress:
        tally = Tally.count(question, data=tables, progress=progress, **given)
    with progress_bar("drawing") as progress:
        found = plan_from_pilot(
            tally,
            delta=delta,
            xi=xi,
            target=target,
            claim=claim or (kind if kind != tally.kind else None),
            goal=goal,
            sizes=None if sizes is None else whole_numbers(sizes, "--sizes"),
            label_cost=label_cost,
            power=power,
            draws=draws,
            rng=np.random.default_rng(seed),
            progress=progress,
        )
    code = decided(REFUSED if found.needed is None and found.aims else 0)
    words = f"{found.summary()}{draw(found, figure)}"
    say(words, {"figure": text_of(figure), **found.to_dict()}, as_json=as_json)
    return code


def _drawn_among(question: Any, planned: str | None) -> Any:
    """The outcomes that clusters are drawn among for the planned claim; if none is named, for the
    first claim of the question.
    """
    claim = claim_of(planned if planned in CLAIMS else claims_of(question.kind)[0])
    wishes = {ask.name: ask.default for ask in claim.asks}
    return claim.drawn_among(wishes, question) or "all"


def _edges(edges: str | None) -> str | list[float] | None:
    """Edges as they are counted by: numbers, or the word for those that are taken from the rows."""
    return edges if edges is None or edges == EQUAL_MASS else numbers(edges, "--edges")


def _question(named: Mapping[str, str], kind: str | None, asked: set[str]) -> Any:
    """What is counted for a kind; if none is named, for the first whose columns are all named and
    whose options are all given.
    """
    if kind is not None:
        if kind not in CLAIMS:
            raise InvalidValueError(f"--kind {kind} is not one of {', '.join(CLAIMS)}.")
        return claim_of(kind).question_for(named, None)
    fitting = list(_fitting(named))
    for claim, question in fitting:
        if {ask.name for ask in claim.asks if ask.default is REQUIRED} <= {"delta", *asked}:
            return question
    if fitting:
        return fitting[0][1]
    known = {kind: claim_of(kind).question.roles for kind in CLAIMS}
    require_roles(
        named, dict.fromkeys(role for roles in known.values() for role in roles), "a pilot"
    )
    listed = "; ".join(f"{name}: {', '.join(roles)}" for name, roles in known.items())
    raise InvalidTypeError(
        f"The columns of {', '.join(sorted(named)) or 'no role'} are not enough to count by. Name "
        f"them with --column ROLE=NAME; the roles for {listed}."
    )


def _fitting(named: Mapping[str, str]) -> Iterator[tuple[Any, Any]]:
    """The claims whose columns are all named, and what is counted for them."""
    lists = {role for role, column in named.items() if "," in column}
    for claim in map(claim_of, CLAIMS):
        for question in claim.questions:
            needed = {role for role, must in question.roles.items() if must}
            # Where no role is needed, at least what is named must be one of them.
            enough = needed or (named and named.keys() <= question.roles.keys())
            if enough and needed <= named.keys() and lists <= several_of(question):
                yield claim, question
