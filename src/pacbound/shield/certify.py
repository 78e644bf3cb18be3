"""Shields: the danger at which a policy must hand over to its backup."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pacbound.certificate.shield import ShieldCertificate
from pacbound.errors import InvalidTypeError
from pacbound.procedures.shield import Bound
from pacbound.stats.arguments import failure_probability, tolerated_rate
from pacbound.tally.arrays import count_shield
from pacbound.tally.given import count_table, recorded_columns, refuse_arrays_beside_columns
from pacbound.tally.tally import Tally


def certify_shield(
    scores: Any,
    unsafe: Any = None,
    *,
    xi: float,
    delta: float,
    bound: Bound = "exact",
    final_scores: Any = None,
    columns: Mapping[str, str] | None = None,
) -> ShieldCertificate:
    """The danger from which to brake: at most a share `xi` of rollouts is then unsafe, with
    probability at least 1 - `delta`.

    The rollouts are of the policy *without* the shield, independent draws from the distribution of
    use (rooms, starts, noise), and `xi`, `delta` and their number were fixed beforehand. Every
    rollout that was started counts. What is certified is `xi`, over the whole population; the
    misses and interventions seen on these rollouts are descriptive.

    A state is recoverable if one more step of the policy, followed by the backup until it stands
    still, stays safe. A rollout is unsafe if it has a first un-recoverable state, and the shield
    must fire there or before. One whose backup fails at the very start, or that was lost on the
    way, is unsafe with score -inf: no threshold saves it.

    Parameters
    ----------
    scores
        (n,) running maxima in [0, 1] of the danger (high = un-recoverable), up to and including the
        first un-recoverable state, or over the whole rollout if there is none; or a `Tally` in
        place of all arrays; or, with `columns`, a frame (pandas, Polars, PyArrow, DuckDB, PySpark)
        or the paths of files, a row for each rollout.
    unsafe
        (n,) whether the rollout has an un-recoverable state.
    xi
        The share of the rollouts that may be unsafe under the shield.
    delta
        The chance that more are.
    bound
        "exact", one binomial over all rollouts; "product", the paper's: the rate of unsafe rollouts
        times the share missed.
    final_scores
        For "product": (n,) the danger at the first un-recoverable state. Those of safe rollouts are
        not looked at.
    columns
        The names of the table's columns: `score`, `unsafe`, and for "product" `final_score`.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> unsafe = rng.random(2000) < 0.05
    >>> scores = np.where(unsafe, rng.beta(8, 2, size=2000), rng.beta(1, 8, size=2000))
    >>> certificate = certify_shield(scores, unsafe, xi=0.02, delta=0.01)
    >>> stopped = f"{certificate.interventions} of {certificate.n} rollouts stopped"
    >>> print(f"brake at {certificate.threshold:.3f} and above: {stopped}")
    brake at 0.738 and above: 85 of 2000 rollouts stopped

    From a frame, which is counted inside its own engine:

    >>> import polars
    >>> frame = polars.DataFrame({"danger": scores, "crashed": unsafe})
    >>> named = {"score": "danger", "unsafe": "crashed"}
    >>> certify_shield(frame, xi=0.02, delta=0.01, columns=named).threshold == certificate.threshold
    True
    """
    rate, level = tolerated_rate(xi), failure_probability(delta)
    tally = shield_tally(scores, unsafe, final_scores, bound, columns)
    return ShieldCertificate.from_tally(
        tally, xi=rate, delta=level, bound=bound, columns=recorded_columns(columns)
    )


def shield_tally(
    scores: Any,
    unsafe: Any,
    final_scores: Any,
    bound: str,
    columns: Mapping[str, str] | None = None,
) -> Tally:
    """The tally that was passed in place of the arrays, or that of the arrays or the table's
    columns that `bound` looks at.
    """
    if columns is not None:
        refuse_arrays_beside_columns(unsafe=unsafe, final_scores=final_scores)
        _check_final_scores(bound, "the column final_score", given="final_score" in columns)
        return count_table(scores, "shield", columns)
    if isinstance(scores, Tally):
        if unsafe is not None or final_scores is not None:
            raise InvalidTypeError("A tally already holds unsafe and final scores: leave both out.")
        return scores
    if unsafe is None:
        raise InvalidTypeError(
            "unsafe is missing: pass it; or a Tally in place of both arrays; or a table and its "
            "columns."
        )
    _check_final_scores(bound, "final_scores", given=final_scores is not None)
    return count_shield(scores, unsafe, final_scores=final_scores)


def _check_final_scores(bound: str, name: str, *, given: bool) -> None:
    if bound == "product" and not given:
        raise InvalidTypeError(
            f"bound='product' needs {name}, the danger at the first un-recoverable state of each "
            "rollout."
        )
    if bound == "exact" and given:
        raise InvalidTypeError(
            f"{name} goes with bound='product': the exact bound looks at the running maxima alone."
        )
