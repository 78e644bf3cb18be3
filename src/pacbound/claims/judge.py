"""May a judge be trusted? Claims about its verdicts, held against people's labels, in one bundle.

Nothing is new under it: `certify_together` puts calibrations of a single bin, which bound rates,
and an abstention together, and each spends a share of delta.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Unpack

from pacbound.claims.abstention import certify_abstention
from pacbound.claims.bundle import CertificateBundle, certify_together
from pacbound.claims.calibration import calibrate
from pacbound.claims.calibration_certificate import CalibrationCertificate
from pacbound.errors import InvalidTypeError
from pacbound.stats.binomial import binomial_interval
from pacbound.tally.draws import CHOOSING
from pacbound.tally.keyed_numbers import seed_of
from pacbound.tally.row_options import RowOptions

# The names of the claims in the bundle.
VERDICTS, SLICES, STANDING = "verdicts", "slices", "standing"

# More labels than this are not worth naming.
_MOST_LABELS = 10**7


def certify_judge(
    verdict: Any = None,
    label: Any = None,
    confidence: Any = None,
    *,
    quality: Any = None,
    delta: float,
    xi: float | None = None,
    groups: Any = None,
    data: Any = None,
    **rows: Unpack[RowOptions],
) -> CertificateBundle:
    """How far a judge's verdicts may be trusted, by people's labels of the same rows: claims that
    are all right at once with probability at least 1 - `delta`.

    The rows must be independent draws from what the judge will meet in use, untouched by how its
    prompt or model was chosen, and their number, the groups, `xi` and `delta` fixed without a look
    at them (without groups and a confidence, a rule for their number may see verdicts). What is
    claimed: for each verdict, an interval for the rate at which it is right (of all its passes, and
    of all its fails); the same for each group; and, with a confidence, the confidence from which at
    most a share `xi` of the verdicts that stand is wrong.

    Parameters
    ----------
    verdict
        The judge's verdict on each row: any classes, such as "pass" and "fail", or which of two
        answers it prefers. With `data`, the name of its column.
    label
        What people say of each row, in the same classes.
    quality
        In the place of `label`: how good people find each verdict, from 0 to 1 or on
        `quality_scale`. Of several people, the share that agrees with the verdict; of grades, 1
        less the distance between the judge's and people's on a scale from 0 to 1. The claims are
        then about the mean quality of verdicts.
    confidence
        How sure the judge is, from 0 to 1; if it says so.
    delta
        The chance that any of the claims is wrong. They share it equally.
    xi
        With `confidence`: the share of the standing verdicts that may be wrong.
    groups
        The slice of each row: a language, a task, a length.
    data
        A frame (pandas, Polars, PyArrow, DuckDB, PySpark), a path or several paths.
    **rows
        How rows are read and drawn, see `RowOptions`.

    Returns
    -------
    CertificateBundle
        `bundle["verdicts"]`, a `CalibrationCertificate` with the interval of each verdict;
        `bundle["slices"]`, the same for each group, if there are groups; and `bundle["standing"]`,
        an `AbstentionCertificate`, if there is a confidence. Intervals are always certified; where
        no confidence is high enough, "standing" is refused.

    Raises
    ------
    InvalidValueError, InvalidTypeError
        If a column is missing or cannot be what it should be, or if `xi` and `confidence` do not
        stand together; the message names the value and the remedy.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> confidence = rng.uniform(0.5, 1, 2000)
    >>> label = rng.choice(["pass", "fail"], 2000)
    >>> right = rng.random(2000) < confidence
    >>> verdict = np.where(right, label, np.where(label == "pass", "fail", "pass"))
    >>> bundle = certify_judge(verdict, label, confidence, xi=0.1, delta=0.05)
    >>> list(bundle), round(bundle["standing"].threshold, 2)
    (['standing', 'verdicts'], 0.88)
    """
    if verdict is None or (label is None) == (quality is None):
        raise InvalidTypeError(
            "A judge needs verdict and label: its verdict on each row, and what people say; or "
            "quality in the place of label, how good people find the verdict."
        )
    if (confidence is None) != (xi is None):
        raise InvalidTypeError(
            "xi is the share of verdicts that may be wrong from some confidence on: pass both xi "
            "and confidence, or neither."
        )
    options: dict[str, Any] = dict(rows)
    whole = {name: options.pop(name, None) for name in ("about", "sample")}
    if any(options.get(by) is not None for by in CHOOSING):
        # All claims are about one draw.
        options["seed"] = seed_of(options.get("seed"))
    given: dict[str, Any] = {"prediction": verdict, "label": label, "data": data, **options}
    if quality is not None:
        given = {"quality": quality, "data": data, **options}
    claims: dict[str, Any] = {VERDICTS: partial(calibrate, groups=verdict, n_bins=1, **given)}
    if groups is not None:
        claims[SLICES] = partial(calibrate, groups=groups, n_bins=1, **given)
    if confidence is not None and xi is not None:
        claims[STANDING] = partial(certify_abstention, confidence, xi=xi, groups=groups, **given)
    return certify_together(claims, delta=delta, **whole)


def labels_needed(bundle: CertificateBundle, width: float) -> dict[str, tuple[int, int]]:
    """For each verdict of a judge, how many rows have it, and about how many would make its
    interval at most `width` wide, if its rate stays as it is. An estimate.
    """
    certificate = bundle[VERDICTS]
    if not isinstance(certificate, CalibrationCertificate):
        raise InvalidTypeError(
            f"{VERDICTS!r} is not a calibration: expected what certify_judge gives."
        )
    level = certificate.delta / len(certificate.tables)
    return {
        str(name): (int(bins.trials[0]), _needed(float(bins.estimate[0]), level, width))
        for name, bins in certificate.tables.items()
    }


def _needed(rate: float, delta: float, width: float) -> int:
    """About the least number of trials whose interval at this rate is narrow enough."""
    trials = 20
    while trials < _MOST_LABELS:
        lower, upper = binomial_interval(round(rate * trials), trials, delta=delta)
        if upper - lower <= width:
            return trials
        trials += max(1, trials // 20)
    return _MOST_LABELS
