"""Shields: the danger at which a policy must hand over to its backup."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from pacbound.certificate.about import about_texts
from pacbound.certificate.samples import sample_name
from pacbound.certificate.shield import ShieldCertificate
from pacbound.errors import InvalidTypeError
from pacbound.procedures.shield import Bound, Rate
from pacbound.sources import Engine, Progress
from pacbound.stats.arguments import claimed_delta, is_one_of, tolerated_rate
from pacbound.stats.looks import PlannedLooks
from pacbound.tally.draws import DrawOptions
from pacbound.tally.intake import recorded_columns, require_mapping, tally_of
from pacbound.tally.tally import Tally


def certify_shield(  # noqa: PLR0913
    scores: Any,
    unsafe: Any = None,
    *,
    xi: float,
    delta: float,
    bound: Bound = "exact",
    rate: Rate = "all",
    final_scores: Any = None,
    looks: PlannedLooks | Sequence[int] | None = None,
    horizon: int | None = None,
    columns: Mapping[str, str | None] | None = None,
    engine: Engine | None = None,
    master: str | None = None,
    memory_limit: str | None = None,
    progress: Progress | None = None,
    about: Mapping[str, Any] | None = None,
    sample: str | None = None,
    **draw: Unpack[DrawOptions],
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
        The share of the rollouts that may be unsafe under the shield, or, as `rate` says, of the
        unsafe rollouts that may be missed.
    delta
        The chance that more are.
    bound
        "exact", one binomial over all rollouts; "product", the paper's: the rate of unsafe rollouts
        times the share missed.
    rate
        "all": `xi` is the share of all rollouts that may be unsafe under the shield;
        "among-unsafe": the share of the unsafe rollouts, those with an un-recoverable state, that
        may be missed, however rare they are. It implies the first, and cannot be monitored in use.
    final_scores
        For "product": (n,) the danger at the first un-recoverable state. Those of safe rollouts are
        not looked at.
    looks
        The planned looks, if the rollouts grow in number: as `planned_looks` takes or gives them,
        fixed before the first rollout. All rollouts up to this look are passed, in any order, and
        their number must be one of the looks. The thresholds of all looks hold together, so it is
        valid to stop at the first that is certified, or to go on. Only for "exact"
        and the rate "all".
    horizon
        The most steps of a rollout. It then stands in the claim, which says nothing about longer
        ones. `Rollouts.certify` fills it in.
    clusters, cluster_bound, weights, weight_bound, row_ids, seed
        For rows that are not independent draws from the distribution of use, see the documentation
        of data. `clusters`, the patient or the video of each row: one row of each is drawn, and the
        claim is about a random row of a random cluster; with `cluster_bound`, the most rows that
        any cluster can have, about a random row. `weights`, proportional to the density of the
        distribution of use over that of the rows, at most `weight_bound` wherever rows can be: a
        row is kept with that chance. `row_ids`, a name for each row, where rows have no order.
        `seed`, the key of the draw, 0 if left out: to try several voids the guarantee.
    columns
        The names of the table's columns, by the names of the arrays: `scores`, `unsafe`, and for
        "product" `final_scores`.
    engine, master, memory_limit
        For files: "duckdb" (if left out), "polars" or "spark"; Spark's master; what DuckDB may use,
        such as "500MB".
    delimiter, decimal, scale
        For tables: what stands between the values of text, such as ";"; what stands for its decimal
        point, "." or ","; and what a score of 1 is written as, such as 100 for percentages. Every
        score is divided by that once.
    answers
        For tables: labels that came back for the rows, in files or a frame, with a column `pac_row`
        that has the number of each row. A row's number is its place or, where the table has that
        column too, what stands there. Answers that cannot be to these rows raise.
    progress
        For files: called with the share that is counted, from 0 to 1.
    about
        What the certificate is about, for people: short texts by names such as "model", "dataset",
        "owner" and "note". A `pathlib.Path` stands for the name, the size and the SHA-256 of that
        file, or of all files of that folder. No part of the claim.
    sample
        What these rows are called, a short text such as "held-out, March". A `Budget` adds up the
        claims on rows of one name; claims that name no sample count for all of them. No part of the
        claim.

    Returns
    -------
    ShieldCertificate
        The threshold, with the counts that it follows from. A refusal has `certified` False and the
        threshold -inf (always brake); `refusal` says why, and about how many rollouts it would
        take.

    Raises
    ------
    InvalidValueError, InvalidTypeError
        If scores or flags cannot be what they should be; the message names the value, its row and
        the remedy. If no look was planned at this number of rollouts.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> unsafe = rng.random(2000) < 0.05
    >>> scores = np.where(unsafe, rng.beta(8, 2, size=2000), rng.beta(1, 8, size=2000))
    >>> certificate = certify_shield(scores, unsafe, xi=0.02, delta=0.01)
    >>> print(f"brake at {certificate.threshold:.3f} and above")
    brake at 0.738 and above
    >>> print(f"{certificate.interventions} of {certificate.n} rollouts stopped")
    85 of 2000 rollouts stopped

    A look after 1,000 of at most 4,000 rollouts; the next would be at 2,000:

    >>> early = certify_shield(
    ...     scores[:1000], unsafe[:1000], xi=0.02, delta=0.01, looks=[1000, 2000, 4000]
    ... )
    >>> print(f"look {early.look}: brake at {early.threshold:.3f} and above")
    look 1: brake at 0.696 and above

    From a frame, which is counted inside its own engine:

    >>> import polars
    >>> frame = polars.DataFrame({"danger": scores, "crashed": unsafe})
    >>> named = {"scores": "danger", "unsafe": "crashed"}
    >>> certify_shield(frame, xi=0.02, delta=0.01, columns=named).threshold == certificate.threshold
    True
    """
    share, level = tolerated_rate(xi), claimed_delta(delta)
    if not isinstance(scores, Tally):
        require_mapping(columns)
        given = final_scores is not None or (columns or {}).get("final_scores") is not None
        _check_final_scores(bound, given=given)
    texts, name = about_texts(about), sample_name(sample)
    tally = tally_of(
        "shield",
        ("scores", scores),
        arrays={"unsafe": unsafe, "final_scores": final_scores},
        columns=columns,
        options={},
        reading={
            "engine": engine,
            "master": master,
            "memory_limit": memory_limit,
            "progress": progress,
        },
        draw=draw,
    )
    return ShieldCertificate.from_tally(
        tally,
        xi=share,
        delta=level,
        bound=bound,
        rate=rate,
        looks=looks,
        horizon=horizon,
        columns=recorded_columns(columns),
    ).with_about(texts, sample=name)


def _check_final_scores(bound: str, *, given: bool) -> None:
    if is_one_of(bound, ["product"]) and not given:
        raise InvalidTypeError(
            "bound='product' needs final_scores, the danger at the first un-recoverable state of "
            "each rollout."
        )
    if is_one_of(bound, ["exact"]) and given:
        raise InvalidTypeError(
            "final_scores goes with bound='product': the exact bound looks at the running maxima "
            "alone."
        )
