"""`pacbound certify`: add tallies that were counted apart, and certify their sum."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from inspect import Parameter, signature
from operator import add
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from pacbound.asks import REQUIRED
from pacbound.claims import CLAIMS, claim_of, claims_of
from pacbound.claims.cascade import CLAIM as CASCADE
from pacbound.claims.cascade import certify_cascade
from pacbound.claims.certificate import Certificate
from pacbound.claims.claim import certify as certify_claim
from pacbound.cli.about import About
from pacbound.cli.delivery import BudgetOption, OutputOption, SampleOption, deliver
from pacbound.cli.exit_codes import ending_well
from pacbound.cli.file_options import Reads
from pacbound.cli.lists import numbers, whole_numbers
from pacbound.errors import CertificateError, InvalidTypeError
from pacbound.procedures.calibration import Correction, Side
from pacbound.procedures.cascade_groups import Shared
from pacbound.tally import Kind, Tally
from pacbound.tally.questions import with_article


def cascade_of(  # noqa: PLR0913, RUF100
    data: Any,
    *,
    xi: float,
    delta: float,
    claim: Any = "loss",
    costs: Any = None,
    bound: Any = "exact",
    method: Any = "paths",
    group_thresholds: Any = None,
    columns: Any = None,
    about: Any = None,
    sample: str | None = None,
    classes: Any = None,
    missing: Any = None,
    unseen_labels: Any = None,
    progress: Any = None,
    **draw: Any,
) -> Certificate:
    """A cascade from a tally, or from files and the names of their columns."""
    asked: dict[str, Any] = {"claim": claim, "costs": costs, "bound": bound, "method": method}
    rows = {
        "about": about,
        "sample": sample,
        "classes": classes,
        "missing": missing,
        "unseen_labels": unseen_labels,
        "progress": progress,
        **draw,
    }
    given = {name: value for name, value in rows.items() if value is not None}
    return certify_cascade(
        **(columns or {}),
        xi=xi,
        delta=delta,
        **asked,
        group_thresholds=group_thresholds,
        data=data,
        **given,
    )


OTHER_VERBS: dict[str, tuple[Kind, Callable[..., Certificate]]] = {
    "differ": (CASCADE.question.kind, partial(cascade_of, claim="differ")),
}
"""Other claims that tallies support, and what makes them."""


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
    costs: Annotated[
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
        Literal["all", "among-unsafe"] | None,
        typer.Option(help="Shield: all if left out, or among-unsafe."),
    ] = None,
    claim: Annotated[
        str | None,
        typer.Option(
            help=(
                "Another claim that the same counts support, such as false-alarms or alarm-range "
                "for those of a recall or a shield, and differ for a cascade without labels."
            )
        ),
    ] = None,
    shares: Annotated[
        str | None,
        typer.Option(help="Alarm-range: how delta is shared: misses=2,false-alarms=1"),
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
        "costs": None if costs is None else tuple(numbers(costs, "--costs")),
        "bound": bound,
        "looks": None if looks is None else whole_numbers(looks, "--looks"),
        "shares": shares,
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
    verb, takes, needed = _maker(tally, claim)
    unknown = min((name for name in options if name not in takes), default=None)
    if unknown is not None:
        option = unknown.replace("_", "-")
        raise InvalidTypeError(
            f"--{option} says nothing about {with_article(tally.kind)}, which is what these "
            "tallies are for: leave it out."
        )
    absent = next((name for name in needed if name not in ("delta", *options)), None)
    if absent is not None:
        what = "the share to be flagged" if absent == "target" else "the rate that is allowed"
        raise InvalidTypeError(
            f"These tallies are for {with_article(tally.kind)}, which needs --{absent}: {what}."
        )
    return verb(tally, delta=delta, **options)


def _maker(
    tally: Tally, claim: str | None
) -> tuple[Callable[..., Certificate], set[str], list[str]]:
    """What certifies a tally, what it takes beside it, and what of that it needs."""
    fitting = claims_of(tally.kind)
    others = {name: verb for name, (kind, verb) in OTHER_VERBS.items() if kind == tally.kind}
    if claim is not None and claim not in (*fitting, *others):
        named = [*fitting[1:], *others]
        rest = f"leave it out, or pass one of {', '.join(named)}" if named else "leave it out"
        about = ""
        if claim in CLAIMS:
            kinds = " or ".join(with_article(one.kind) for one in claim_of(claim).questions)
            about = f"is about tallies of {kinds}, and "
        raise InvalidTypeError(
            f"--claim {claim} {about}is not about tallies of {with_article(tally.kind)}, as these "
            f"are: {rest}."
        )
    if claim in others:
        verb = others[claim]
        takes = signature(verb).parameters
        needed = [
            name
            for name, one in takes.items()
            if one.default is Parameter.empty and one.kind is Parameter.KEYWORD_ONLY
        ]
        return verb, set(takes), needed
    by = claim_of(claim or fitting[0])

    def make(counted: Tally, **options: Any) -> Certificate:
        rows: dict[str, Any] = {
            name: options.pop(name) for name in ("about", "sample") if name in options
        }
        asked = {ask.name: ask.form.parsed(options.get(ask.name, ask.default)) for ask in by.asks}
        made: Certificate = certify_claim(by, {}, asked, counted, rows)
        return made

    needed = [ask.name for ask in by.asks if ask.default is REQUIRED]
    return make, {"about", "sample", *(ask.name for ask in by.asks if ask.option)}, needed
