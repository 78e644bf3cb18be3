"""`pacbound certify`: add tallies that were counted apart, and certify their sum."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial, reduce
from inspect import Parameter, signature
from operator import add
from pathlib import Path
from typing import Annotated, Any, Literal, Unpack

import typer

from pacbound.cascade.certify import certify_cascade
from pacbound.certificate import Certificate
from pacbound.claims.abstention import certify_abstention
from pacbound.claims.calibration import calibrate
from pacbound.cli.about import About
from pacbound.cli.delivery import BudgetOption, OutputOption, SampleOption, deliver
from pacbound.cli.exit_codes import ending_well
from pacbound.cli.file_options import Reads
from pacbound.cli.lists import numbers, whole_numbers
from pacbound.errors import CertificateError, InvalidTypeError
from pacbound.false_alarms import certify_alarm_range, certify_false_alarms
from pacbound.procedures.calibration import Correction, Side
from pacbound.procedures.cascade_groups import Shared
from pacbound.procedures.shield import Rate
from pacbound.recall.certify import certify_recall
from pacbound.shield.certify import certify_shield
from pacbound.tally import Kind, Tally
from pacbound.tally.draws import COLUMNS, DrawOptions
from pacbound.tally.intake import recorded_role
from pacbound.tally.questions import with_article
from pacbound.tally.row_options import ROWS, RowOptions


def _calibrated(
    data: Any,
    *,
    delta: float,
    columns: Mapping[str, str] | None = None,
    n_bins: int | None = None,
    edges: Any = None,
    correction: Correction = "sidak",
    side: Side = "both",
    **rows: Unpack[RowOptions],
) -> Certificate:
    """A calibration of tallies or files, asked for as the other verbs are."""
    return calibrate(
        **(columns or {}),
        data=data,
        delta=delta,
        n_bins=n_bins,
        edges=edges,
        correction=correction,
        side=side,
        **rows,
    )


def _abstention(  # noqa: PLR0913, RUF100
    data: Any,
    *,
    xi: float,
    delta: float,
    columns: Mapping[str, Any] | None = None,
    pool: Any = None,
    first_threshold: float | None = None,
    classes: Any = None,
    missing: Any = None,
    unseen_labels: float | None = None,
    engine: Any = None,
    master: str | None = None,
    memory_limit: str | None = None,
    progress: Any = None,
    about: Any = None,
    sample: str | None = None,
    **draw: Unpack[DrawOptions],
) -> Certificate:
    """The verb as tables of claims and tallies call it."""
    named = {recorded_role(role): name for role, name in (columns or {}).items()}
    named |= {
        role: named.pop(recorded_role(role)) for role in _PLURAL if recorded_role(role) in named
    }
    rows: dict[str, Any] = {
        "classes": classes,
        "missing": missing,
        "unseen_labels": unseen_labels,
        "engine": engine,
        "master": master,
        "memory_limit": memory_limit,
        "progress": progress,
        "about": about,
        "sample": sample,
        **draw,
    }
    given = {name: value for name, value in rows.items() if value is not None}
    asked = {"xi": xi, "delta": delta, "pool": pool, "first_threshold": first_threshold}
    found: Certificate = certify_abstention(**named, **asked, data=data, **given)
    return found


_PLURAL = ("groups", *COLUMNS)
VERBS: dict[Kind, Callable[..., Certificate]] = {
    "calibration": _calibrated,
    "abstention": _abstention,
    "cascade": certify_cascade,
    "shield": certify_shield,
    "recall": certify_recall,
}
CLAIMS: dict[str, Callable[..., Certificate]] = {
    "false-alarms": certify_false_alarms,
    "alarm-range": certify_alarm_range,
    "differ": partial(certify_cascade, claim="differ"),
}
"""Other claims that tallies support, and what makes them."""
_TALLIES_OF: dict[str, tuple[Kind, ...]] = {
    "false-alarms": ("recall", "shield"),
    "alarm-range": ("recall", "shield"),
    "differ": ("cascade",),
}


@ending_well
def certify(
    tallies: Annotated[
        list[Path],
        typer.Argument(metavar="TALLY...", help="What `pacbound tally` wrote, one for each part."),
        Reads(),
    ],
    delta: Annotated[float, typer.Option(help="Chance that the claim is wrong, for example 0.01.")],
    xi: Annotated[
        float | None,
        typer.Option(
            help=(
                "Abstention: the share of wrong answers allowed. Cascade: the accuracy that may "
                "be lost. Shield: the unsafe share."
            )
        ),
    ] = None,
    target: Annotated[
        float | None, typer.Option(help="Recall: the share of the positives that must be flagged.")
    ] = None,
    cost: Annotated[
        str | None, typer.Option(help="Cascade: what a row costs that each model answers: 1,10")
    ] = None,
    bound: Annotated[
        Literal["exact", "pair", "product"] | None,
        typer.Option(help="Cascade and shield: exact if left out."),
    ] = None,
    looks: Annotated[
        str | None,
        typer.Option(
            help="Shield, recall: planned numbers of rollouts or positives, fixed beforehand: 50,90"
        ),
    ] = None,
    rate: Annotated[
        Rate | None, typer.Option(help="Shield: all if left out, or among-unsafe.")
    ] = None,
    claim: Annotated[
        Literal["false-alarms", "alarm-range", "differ"] | None,
        typer.Option(
            help=(
                "Recall, shield: certify the false alarms (--xi) in place of the misses, or the "
                "thresholds that keep both (--xi, and --target or --missed). Cascade counted "
                "without labels: how many answers differ, in place of the loss."
            )
        ),
    ] = None,
    missed: Annotated[
        float | None,
        typer.Option(help="Shield, alarm-range: the share that may be unsafe under the shield."),
    ] = None,
    horizon: Annotated[
        int | None, typer.Option(help="Shield: the most steps of a rollout.", min=1)
    ] = None,
    method: Annotated[
        Literal["paths", "greedy"] | None,
        typer.Option(help="Cascade of more than two models: paths if left out."),
    ] = None,
    group_thresholds: Annotated[
        Shared | None,
        typer.Option(help="Cascade in groups: common if left out, or own ones of each group."),
    ] = None,
    correction: Annotated[
        Correction | None, typer.Option(help="Calibration: how delta is shared among the bins.")
    ] = None,
    side: Annotated[
        Side | None, typer.Option(help="Calibration: certify both ends, or one of them.")
    ] = None,
    first_threshold: Annotated[
        float | None,
        typer.Option(
            help=(
                "Abstention: the highest threshold to look at, declared before any label is seen, "
                "if many rows share the highest score."
            )
        ),
    ] = None,
    output: OutputOption = None,
    budget: BudgetOption = None,
    sample: SampleOption = None,
    *,
    about: About,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result for programs.")] = False,
) -> int:
    """Add tallies of parts of the data and certify their sum: the same certificate as from all rows
    at once.

    Each part counts once: a tally that holds rows of another one again is refused.
    """
    total = reduce(add, map(_loaded, tallies))
    options = {
        "xi": xi,
        "target": target,
        "costs": None if cost is None else tuple(numbers(cost, "--cost")),
        "bound": bound,
        "looks": None if looks is None else whole_numbers(looks, "--looks"),
        "rate": rate,
        "missed": missed,
        "horizon": horizon,
        "method": method,
        "group_thresholds": group_thresholds,
        "correction": correction,
        "side": side,
        "first_threshold": first_threshold,
        "about": about.told() or None,
        "sample": sample,
    }
    given = {name: value for name, value in options.items() if value is not None}
    certificate = _certified(total, claim, delta, given)
    return deliver(certificate, output, as_json=as_json, budget=budget)


def _loaded(path: Path) -> Tally:
    try:
        return Tally.load(path)
    except CertificateError as error:
        message = str(error)
        raise CertificateError(message if str(path) in message else f"{path}: {message}") from None


def _certified(
    tally: Tally, claim: str | None, delta: float, options: dict[str, Any]
) -> Certificate:
    if claim is not None and tally.kind not in _TALLIES_OF[claim]:
        fitting = " or ".join(map(with_article, _TALLIES_OF[claim]))
        raise InvalidTypeError(
            f"--claim {claim} is about tallies of {fitting}, and these are for "
            f"{with_article(tally.kind)}: leave it out."
        )
    verb = VERBS[tally.kind] if claim is None else CLAIMS[claim]
    takes = signature(verb).parameters
    known = {*takes, *(ROWS if "rows" in takes else ())}
    unknown = min((name for name in options if name not in known), default=None)
    if unknown is not None:
        option = "cost" if unknown == "costs" else unknown.replace("_", "-")
        raise InvalidTypeError(
            f"--{option} says nothing about {with_article(tally.kind)}, which is what these "
            "tallies are for: leave it out."
        )
    for name, what in (("xi", "the rate that is allowed"), ("target", "the share to be flagged")):
        if name in takes and takes[name].default is Parameter.empty and name not in options:
            raise InvalidTypeError(
                f"These tallies are for {with_article(tally.kind)}, which needs --{name}: {what}."
            )
    return verb(tally, delta=delta, **options)
