"""`pacbound plan`: how many labels a claim will take."""

from __future__ import annotations

from collections.abc import Mapping, Set
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import typer

from pacbound.certificate import load_certificate
from pacbound.cli.exit_codes import REFUSED, decided, ending_well
from pacbound.cli.figures import draw, require_drawable
from pacbound.cli.file_options import Reads, Writes
from pacbound.cli.lists import names, whole_numbers
from pacbound.cli.table_options import (
    CascadeClasses,
    Counter,
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

_RATE = {"target", "expected", "power"}
_LOOKS = {"looks", "xi", "expected", "figure"}
_SHADOW = {
    "shadow", "losses", "rows", "gains", "usual", "false-alarms", "seen", "power", "seed",
}  # fmt: skip
_NOT_PILOT = {"expected", "looks", *_SHADOW - {"power", "seed"}}
_MODES = (
    "plan a rate (--target, --expected), looks (--looks, --xi), from a pilot (--from), or the "
    "shadow of a cascade in use (--shadow, --losses, --rows)"
)


@ending_well
def plan(
    delta: Annotated[float, typer.Option(help="Chance that the certificate is wrong.")],
    target: Annotated[
        float | None,
        typer.Option(
            help=(
                "A rate: the rate to be certified, for example 0.02. Pilot, recall: the share of "
                "the positives to be flagged."
            )
        ),
    ] = None,
    expected: Annotated[
        float | None,
        typer.Option(help="A rate, or looks: the rate you expect in truth, below the target."),
    ] = None,
    looks: Annotated[
        str | None,
        typer.Option(help="Looks: the numbers of labels at which you will look: 500,1000,2000"),
    ] = None,
    pilot: Annotated[
        list[str] | None,
        typer.Option("--from", help="Pilot: its file, a folder or a quoted glob; may be repeated."),
        Reads(),
    ] = None,
    xi: Annotated[
        float | None, typer.Option(help="Looks, pilot: the rate to be certified.")
    ] = None,
    goal: Annotated[
        float | None,
        typer.Option(
            help=(
                "Pilot: at least this exit rate of a cascade or coverage of an abstention, at most "
                "this mean width of a calibration, flag rate of a recall or intervention rate of a "
                "shield; false alarms: at least this share of positives found."
            )
        ),
    ] = None,
    sizes: Annotated[
        str | None, typer.Option(help="Pilot: the numbers of rows to try: 1000,5000,20000")
    ] = None,
    label_cost: Annotated[float | None, typer.Option(help="Pilot: what a label costs.")] = None,
    draws: Annotated[
        int | None, typer.Option(help="Pilot: samples drawn of each size, 50 if left out.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Pilot, shadow: the seed of the draws, 0 if left out.")
    ] = None,
    figure: Annotated[
        Path | None,
        typer.Option(help="Pilot, looks: draw the plan into this file, .png, .svg or .pdf."),
        Writes(),
    ] = None,
    shadow: Annotated[
        Path | None,
        typer.Option(
            help=(
                "Shadow: the certificate of a cascade in use, of whose rows a share is sent to the "
                "slow model too, to be monitored."
            )
        ),
        Reads(),
    ] = None,
    losses: Annotated[
        float | None,
        typer.Option(help="Shadow: the share of all rows lost, which is to be noticed: 0.05"),
    ] = None,
    rows: Annotated[
        int | None,
        typer.Option(help="Shadow: rows of traffic within which the alarm is to ring: 10000"),
    ] = None,
    gains: Annotated[
        float | None, typer.Option(help="Shadow: the share of all rows gained, 0 if left out.")
    ] = None,
    usual: Annotated[
        float | None,
        typer.Option(help="Shadow: the share lost before; gains and half of xi if left out."),
    ] = None,
    false_alarms: Annotated[
        str | None, typer.Option(help="Shadow: as for pacbound monitor, 'ever' if left out.")
    ] = None,
    seen: Annotated[
        int | None,
        typer.Option(help="Shadow: labels that came before the rise, 50000 if left out."),
    ] = None,
    claim: Annotated[
        Literal["false-alarms", "differ"] | None,
        typer.Option(
            help=(
                "Pilot of a recall or a shield: plan for its false alarms, with --xi. Of a "
                "cascade, without --label: for the claim that few answers differ."
            )
        ),
    ] = None,
    kind: Annotated[
        Literal["abstention", "calibration"] | None,
        typer.Option(help="Pilot: what columns are for that fit both, calibration if left out."),
    ] = None,
    confidence: Annotated[
        str | None, typer.Option(help="Pilot: the confidence column. Cascade: c1,c2")
    ] = None,
    correct: Annotated[
        str | None, typer.Option(help="Pilot: whether the prediction was right.")
    ] = None,
    prediction: Annotated[
        str | None, typer.Option(help="Pilot: the predicted class. Cascade: p1,p2,p3")
    ] = None,
    label: Annotated[str | None, typer.Option(help="Pilot: column with the true class.")] = None,
    group: Annotated[str | None, typer.Option(help="Pilot: column with a group.")] = None,
    bins: Annotated[
        int | None, typer.Option(help="Pilot, calibration: number of bins, 20 if left out.")
    ] = None,
    edges: Annotated[
        str | None, typer.Option(help="Pilot, calibration: edges fixed beforehand: 0,0.5,0.9,1")
    ] = None,
    score: Annotated[
        str | None,
        typer.Option(help="Pilot, shield: running maximum of the danger. Recall: the score."),
    ] = None,
    positive: Annotated[
        str | None, typer.Option(help="Pilot, recall: whether the row is positive.")
    ] = None,
    unsafe: Annotated[
        str | None,
        typer.Option(help="Pilot, shield: whether the rollout has an un-recoverable state."),
    ] = None,
    *,
    classes: CascadeClasses,
    labels: LabelsOption = None,
    written: WrittenOrPiped,
    counter: Counter,
    power: Annotated[
        float | None,
        typer.Option(
            help=(
                "A rate, or pilot: chance that the certificate comes about; shadow: that the alarm "
                "rings in time. 0.9 if left out."
            )
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result for programs.")] = False,
) -> int:
    """Say how many labels it takes to certify.

    For a rate pass --target and --expected. For several looks at a growing sample pass --looks and
    --xi. From a pilot pass --from and its columns, as for the command that will certify. For the
    share of traffic to be monitored behind a cascade pass --shadow, --losses and --rows; --delta is
    then the chance of a false alarm.
    """
    given: dict[str, Any] = {
        "target": target,
        "expected": expected,
        "looks": looks,
        "from": pilot,
        "xi": xi,
        "goal": goal,
        "sizes": sizes,
        "label-cost": label_cost,
        "draws": draws,
        "seed": seed,
        "figure": figure,
        "shadow": shadow,
        "losses": losses,
        "rows": rows,
        "gains": gains,
        "usual": usual,
        "false-alarms": false_alarms,
        "seen": seen,
        "claim": claim,
        "kind": kind,
        "confidence": confidence,
        "correct": correct,
        "prediction": prediction,
        "label": label,
        "group": group,
        "bins": bins,
        "edges": edges,
        "score": score,
        "positive": positive,
        "unsafe": unsafe,
        "labels": labels,
        "format": written.standard_format,
        **{name.replace("_", "-"): said for name, said in classes.options().items()},
        **written.options(),
        "power": power,
    }
    options = {name: value for name, value in given.items() if value is not None}
    if "from" in options:
        _refuse_others(options, options.keys() - _NOT_PILOT, "--from")
        require_drawable(figure)
        options["from"] = written.tables(options["from"])
        reading = {
            **counter.options(),
            "answers": labels,
            **written.options(),
        }
        said = classes.options()
        tally = _pilot_tally(options, {**said, **reading})
        return _print_pilot(_planned(tally, options, delta), figure, as_json=as_json)
    if "shadow" in options:
        _refuse_others(options, _SHADOW, "--shadow")
        return _print_shadow(options, delta, as_json=as_json)
    if "looks" in options:
        _refuse_others(options, _LOOKS, "--looks")
        require_drawable(figure)
        return _print_looks(options, delta, figure, as_json=as_json)
    _refuse_others(options, _RATE, "--target")
    return _print_rate(options, delta, as_json=as_json)


def _refuse_others(options: Mapping[str, Any], allowed: Set[str], mode: str) -> None:
    other = next((name for name in options if name not in allowed), None)
    if other is not None:
        raise InvalidTypeError(f"--{other} does not go with {mode}: {_MODES}.")


def _required(options: Mapping[str, Any], name: str, mode: str) -> Any:
    if name not in options:
        raise InvalidTypeError(
            f"--{name} is missing: a plan {mode} needs it. {_MODES[0].upper()}{_MODES[1:]}."
        )
    return options[name]


def _print_rate(options: Mapping[str, Any], delta: float, *, as_json: bool) -> int:
    target = _required(options, "target", "of a rate")
    expected = _required(options, "expected", "of a rate")
    power = options.get("power", 0.9)
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


def _print_looks(
    options: Mapping[str, Any], delta: float, figure: Path | None, *, as_json: bool
) -> int:
    planned = planned_looks(
        _required(options, "xi", "of looks"),
        delta=delta,
        looks=whole_numbers(options["looks"], "--looks"),
    )
    truth = options.get("expected", planned.xi / 2.0)
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


def _print_shadow(options: Mapping[str, Any], delta: float, *, as_json: bool) -> int:
    certificate: Any = load_certificate(options["shadow"])
    renamed = {"gains": "gains", "usual": "usual", "false-alarms": "false_alarms", "seen": "seen"}
    more = {role: options[name] for name, role in renamed.items() if name in options}
    losses, rows = (_required(options, name, "of a shadow") for name in ("losses", "rows"))
    power, seed = options.get("power", 0.9), options.get("seed", 0)
    found = plan_shadow(
        certificate,
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


def _pilot_tally(options: Mapping[str, Any], counting: Mapping[str, Any]) -> Tally:
    several = "," in options.get("prediction", "")
    roles = {
        "confidence": "confidences" if several else "confidence",
        "correct": "correct",
        "prediction": "predictions" if several else "prediction",
        "label": "labels",
        "group": "groups",
        "bins": "n_bins",
        "edges": "edges",
        "score": "score" if "positive" in options else "scores",
        "positive": "positive",
        "unsafe": "unsafe",
        "kind": "kind",
    }
    columns = {role: options[name] for name, role in roles.items() if name in options}
    for role in ("confidences", "predictions"):
        if role in columns:
            columns[role] = names(columns[role])
    if "edges" in columns:
        columns["edges"] = edges_option(columns["edges"])
    said = {name: value for name, value in counting.items() if value is not None}
    with progress_bar("counting") as progress:
        return Tally.from_files(options["from"], progress=progress, **columns, **said)


def _planned(tally: Tally, options: Mapping[str, Any], delta: float) -> PilotPlan:
    with progress_bar("drawing") as progress:
        return plan_from_pilot(
            tally,
            delta=delta,
            xi=options.get("xi"),
            target=options.get("target"),
            claim=options.get("claim"),
            goal=options.get("goal"),
            sizes=whole_numbers(options["sizes"], "--sizes") if "sizes" in options else None,
            label_cost=options.get("label-cost"),
            power=options.get("power", 0.9),
            draws=options.get("draws", 50),
            rng=np.random.default_rng(options.get("seed", 0)),
            progress=progress,
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
