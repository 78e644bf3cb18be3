"""`pacbound demo`: the whole story on real predictions and rollouts that ship with the package."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from pacbound.abstention.certify import certify_abstention
from pacbound.atomic_files import atomic_file
from pacbound.baselines import NAIVE_THRESHOLD, POLICY_ALONE, HistogramBinning
from pacbound.calibration.certify import calibrate
from pacbound.calibration.metrics import expected_calibration_error, induced_calibration_error
from pacbound.calibration.rows import apply_to_file
from pacbound.cascade.certify import certify_cascade
from pacbound.certificate import (
    AbstentionCertificate,
    CalibrationCertificate,
    CascadeCertificate,
    load_certificate,
)
from pacbound.certificate.files import certificate_from_dict
from pacbound.cli.exit_codes import ending_well
from pacbound.data import (
    FashionMnistPredictions,
    IndoorNavigationRollouts,
    fashion_mnist,
    indoor_navigation,
)
from pacbound.errors import MissingDependencyError
from pacbound.monitor import Monitor
from pacbound.shield.certify import certify_shield
from pacbound.stats.trinomial import paired_upper

Rows = NDArray[np.int64]

DELTA = 0.01
XI = 0.01
UNSAFE_XI = 0.1
MACS = (115_456, 3_733_888)
"""Multiplications for an image that the early exit answers, and for one that it passes on."""


@ending_well
def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The folder that everything is written to.")
    ] = Path("pacbound-demo"),
) -> int:
    """Calibrate, certify an abstention, a cascade and a shield, verify and draw, on a network's
    real predictions and a robot's rollouts.
    """
    output.mkdir(parents=True, exist_ok=True)
    table, rollouts = fashion_mnist(), indoor_navigation()
    # Half of the rows certify, the other half plays the future; the halves are drawn by a seed
    # fixed here.
    order = np.random.default_rng(2021).permutation(len(table.label))
    held, future = np.sort(order[:10_000]), np.sort(order[10_000:])
    calibration = _show_calibration(table, held, future, output)
    abstention = _show_abstention(table, held, future, output)
    cascade = _show_cascade(table, held, future, output)
    thresholds = _show_shield(rollouts, held, future, output)
    monitor = _show_monitor(cascade, table, future, output)
    written = ("calibration", "abstention", "cascade", "shield")
    _show_verification([output / f"{name}.json" for name in written])
    _draw(calibration, abstention, table, future, output)
    _draw_shields(thresholds, rollouts, future, output)
    _draw_evidence(monitor, output)
    typer.echo(f"\nEverything is in {output}/.")
    return 0


def _show_calibration(
    table: FashionMnistPredictions, held: Rows, future: Rows, output: Path
) -> CalibrationCertificate:
    confidence, correct = table.confidence_slow, table.prediction_slow == table.label
    typer.echo(f"1. CALIBRATE the network on {len(held):,} images it was not trained on.\n")
    certificate = calibrate(confidence[held], correct[held], delta=DELTA, n_bins=10)
    certificate.save(output / "calibration.json")
    typer.echo(certificate.summary())
    cells = certificate.grid.cells(confidence[future].astype(np.float64))
    trials = np.bincount(cells, minlength=10)
    rate = np.bincount(cells, weights=correct[future], minlength=10) / np.maximum(trials, 1)
    inside = (certificate.bins.lower <= rate) & (rate <= certificate.bins.upper)
    typer.echo(
        f"\nOn {len(future):,} other images the accuracy of {int(inside[trials > 0].sum())} of "
        f"{int((trials > 0).sum())} bins lies in the interval (a small bin may miss by its own "
        "noise)."
    )
    _show_errors(certificate, confidence, correct, held, future)
    _apply(certificate, table, future, output)
    return certificate


def _show_errors(
    certificate: CalibrationCertificate,
    confidence: NDArray[np.float32],
    correct: NDArray[np.bool_],
    held: Rows,
    future: Rows,
) -> None:
    binning = HistogramBinning(n_bins=10).fit_confidence(confidence[held], correct[held])
    plain = expected_calibration_error(confidence[future], correct[future], n_bins=10)
    binned = expected_calibration_error(
        np.nan_to_num(binning.recalibrate(confidence[future])), correct[future], n_bins=10
    )
    low, high = induced_calibration_error(
        certificate.interval(confidence[future]),
        certificate.estimate(confidence[future]),
        correct[future],
        n_bins=10,
    )
    typer.echo(
        f"Calibration error there: softmax {plain:.2%}, histogram binning {binned:.2%}, "
        f"induced by the intervals [{low:.2%}, {high:.2%}]."
    )


def _apply(
    certificate: CalibrationCertificate, table: FashionMnistPredictions, future: Rows, output: Path
) -> None:
    rows, target = output / "predictions.npz", output / "predictions_with_intervals.npz"
    with atomic_file(rows) as file:
        np.savez(
            file,
            confidence=table.confidence_slow[future],
            prediction=table.prediction_slow[future],
        )
    count = apply_to_file(certificate, rows, target, confidence="confidence").rows
    typer.echo(f"{count:,} predictions with their intervals: {target}.")


def _show_abstention(
    table: FashionMnistPredictions, held: Rows, future: Rows, output: Path
) -> AbstentionCertificate:
    typer.echo(
        f"\n2. ABSTAIN: the network answers only where at most {XI:.0%} of its answers are wrong.\n"
    )
    confidence, correct = table.confidence_slow, table.prediction_slow == table.label
    certificate = certify_abstention(confidence[held], correct[held], xi=XI, delta=DELTA)
    certificate.save(output / "abstention.json")
    typer.echo(certificate.summary())
    answered = certificate.answers(confidence[future])
    wrong = int((answered & ~correct[future]).sum())
    typer.echo(
        f"On {len(future):,} other images {answered.mean():.1%} are answered, "
        f"{wrong / answered.sum():.2%} of them wrongly; {1 - correct[future].mean():.2%} without "
        "abstaining."
    )
    return certificate


def _show_cascade(
    table: FashionMnistPredictions, held: Rows, future: Rows, output: Path
) -> CascadeCertificate:
    typer.echo(
        "\n3. CERTIFY A CASCADE: the early exit answers for the whole network, losing at most "
        f"{XI:.0%} accuracy.\n"
    )
    predictions = np.column_stack([table.prediction_fast, table.prediction_slow])[held]
    certificate = certify_cascade(
        table.confidence_fast[held], predictions, table.label[held], xi=XI, delta=DELTA, costs=MACS
    )
    certificate.save(output / "cascade.json")
    typer.echo(certificate.summary())
    exits = table.confidence_fast[future].astype(np.float64) >= certificate.thresholds[0]
    slow_right = table.prediction_slow[future] == table.label[future]
    fast_right = table.prediction_fast[future] == table.label[future]
    lost, gained = (
        int((exits & slow_right & ~fast_right).sum()),
        int((exits & fast_right & ~slow_right).sum()),
    )
    # The threshold was fixed before these images were looked at, so this bound holds as it stands.
    bound = paired_upper(lost, gained, len(future), delta=DELTA)
    typer.echo(
        f"On {len(future):,} other images {exits.mean():.1%} exit early and "
        f"{(lost - gained) / len(future):+.2%} accuracy is lost (at most {bound:.2%} with "
        f"probability {1 - DELTA:g})."
    )
    return certificate


def _show_shield(
    rollouts: IndoorNavigationRollouts, held: Rows, future: Rows, output: Path
) -> dict[str, float]:
    typer.echo(
        f"\n4. CERTIFY A SHIELD: a robot brakes before it is too late, in all but {UNSAFE_XI:.0%} "
        "of its rollouts.\n"
    )
    scores, unsafe, last = rollouts.score[held], rollouts.unsafe[held], rollouts.final_score[held]
    certificate = certify_shield(scores, unsafe, xi=UNSAFE_XI, delta=DELTA)
    certificate.save(output / "shield.json")
    typer.echo(certificate.summary())
    product = certify_shield(
        scores, unsafe, xi=UNSAFE_XI, delta=DELTA, bound="product", final_scores=last
    )
    thresholds = {
        "certified": certificate.threshold,
        "the paper's product": product.threshold,
        "threshold 0.5": NAIVE_THRESHOLD,
        "no shield": POLICY_ALONE,
    }
    typer.echo(f"\nOn {len(future):,} other rollouts:")
    for name, threshold in thresholds.items():
        missed, reached = _under_shield(rollouts, future, threshold)
        typer.echo(
            f"  {name:20} {missed / len(future):6.2%} unsafe, {reached / len(future):6.2%} reach "
            "the goal"
        )
    return thresholds


def _under_shield(
    rollouts: IndoorNavigationRollouts, rows: Rows, threshold: float
) -> tuple[int, int]:
    """How many rollouts are unsafe, and how many reach the goal, if the shield fires at
    `threshold`.

    Until it fires a rollout is the one that was recorded, and braking up to the first
    un-recoverable state is safe.
    """
    drives_on, unsafe = rollouts.score[rows] < threshold, rollouts.unsafe[rows]
    return int((drives_on & unsafe).sum()), int(
        (drives_on & ~unsafe & rollouts.success[rows]).sum()
    )


def _show_monitor(
    certificate: CascadeCertificate, table: FashionMnistPredictions, future: Rows, output: Path
) -> Monitor:
    typer.echo(
        "\n5. MONITOR the cascade in use: the alarm rings once it loses more, and ever falsely "
        "with probability at most 0.001.\n"
    )
    monitor, slow, labels = Monitor(certificate, delta=1e-3), table.prediction_slow, table.label
    # From half-way on, a fault pairs each image with the early exit's answer to the one before.
    shifted = np.roll(table.prediction_fast[future], 1)
    half = len(future) // 2
    fast = np.where(np.arange(len(future)) < half, table.prediction_fast[future], shifted)
    monitor.update(
        {
            "confidences": table.confidence_fast[future],
            "predictions": np.column_stack([fast, slow[future]]),
            "labels": labels[future],
        }
    )
    monitor.save(output / "monitor.json")
    for alarm in monitor.alarms:
        typer.echo(f"From image {half + 1:,} on, answers are mixed up.\n{alarm}")
    return monitor


def _show_verification(paths: list[Path]) -> None:
    typer.echo(
        "\n6. VERIFY the certificates without the data, and one that somebody has improved.\n"
    )
    for path in paths:
        typer.echo(f"{path}: {load_certificate(path).verify()}")
    document = json.loads(paths[0].read_text())
    document["claim"]["tables"][0]["lower"][-1] += 0.01
    typer.echo(
        "the first with its last lower bound raised by 0.01: "
        f"{certificate_from_dict(document).verify()}"
    )


def _draw(
    certificate: CalibrationCertificate,
    abstention: AbstentionCertificate,
    table: FashionMnistPredictions,
    future: Rows,
    output: Path,
) -> None:
    try:
        # Matplotlib is optional.
        from pacbound.report import (  # noqa: PLC0415
            AccuracyConfidenceDisplay,
            ReliabilityDisplay,
            RiskCoverageDisplay,
        )
    except MissingDependencyError as error:
        typer.echo(f"\n7. The figures are left out: {error}")
        return
    correct = table.prediction_slow[future] == table.label[future]
    typer.echo("\n7. DRAW.\n")
    for name, display in (
        ("reliability.png", ReliabilityDisplay.from_certificate(certificate)),
        ("risk_coverage.png", RiskCoverageDisplay.from_certificate(abstention)),
        (
            "accuracy_confidence.png",
            AccuracyConfidenceDisplay.from_certificate(
                certificate, table.confidence_slow[future], correct
            ),
        ),
    ):
        _save(display, output / name)


def _draw_shields(
    thresholds: dict[str, float], rollouts: IndoorNavigationRollouts, future: Rows, output: Path
) -> None:
    try:
        from pacbound.report import SuccessSafetyDisplay  # noqa: PLC0415 - matplotlib is optional
    except MissingDependencyError:
        return
    display = SuccessSafetyDisplay.from_counts(
        {
            name: _under_shield(rollouts, future, threshold)
            for name, threshold in thresholds.items()
        },
        rollouts=len(future),
        xi=UNSAFE_XI,
        certified=["certified", "the paper's product"],
        delta=DELTA,
    )
    _save(display, output / "shield.png")


def _draw_evidence(monitor: Monitor, output: Path) -> None:
    try:
        from pacbound.report import EvidenceDisplay  # noqa: PLC0415 - matplotlib is optional
    except MissingDependencyError:
        return
    _save(EvidenceDisplay.from_monitor(monitor), output / "monitor.png")


def _save(display: Any, path: Path) -> None:
    with atomic_file(path) as file:
        display.figure_.savefig(file, dpi=150, format="png")
    typer.echo(f"{path}")
