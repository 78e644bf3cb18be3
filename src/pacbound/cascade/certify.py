"""Cascades: the thresholds at which fast models may answer for a slow one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Unpack, overload

from pacbound.certificate.about import about_texts
from pacbound.certificate.cascade import CascadeCertificate
from pacbound.certificate.cascade_groups import GroupedCascadeCertificate
from pacbound.certificate.samples import sample_name
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.procedures.cascade import Bound
from pacbound.procedures.cascade_differ import Claim, checked_claim
from pacbound.procedures.cascade_groups import Shared
from pacbound.sources import Engine, Progress
from pacbound.stats.arguments import claimed_delta, is_one_of, tolerated_rate
from pacbound.tally.draws import DrawOptions
from pacbound.tally.intake import recorded_columns, tally_of


@overload
def certify_cascade(
    confidences: Any,
    predictions: Any = None,
    labels: Any = None,
    *,
    xi: float,
    delta: float,
    claim: Claim = "loss",
    costs: Any = None,
    bound: Bound = "exact",
    method: Literal["paths", "greedy"] = "paths",
    groups: None = None,
    classes: Any = None,
    missing: Any = None,
    unseen_labels: float | None = None,
    columns: Mapping[str, str | Sequence[str] | None] | None = None,
    engine: Engine | None = None,
    master: str | None = None,
    memory_limit: str | None = None,
    progress: Progress | None = None,
    about: Mapping[str, Any] | None = None,
    sample: str | None = None,
    **draw: Unpack[DrawOptions],
) -> CascadeCertificate: ...
@overload
def certify_cascade(
    confidences: Any,
    predictions: Any = None,
    labels: Any = None,
    *,
    xi: float,
    delta: float,
    claim: Claim = "loss",
    costs: Any = None,
    bound: Bound = "exact",
    method: Literal["paths"] = "paths",
    groups: Any = None,
    group_thresholds: Shared,
    classes: Any = None,
    missing: Any = None,
    unseen_labels: float | None = None,
    columns: Mapping[str, str | Sequence[str] | None] | None = None,
    engine: Engine | None = None,
    master: str | None = None,
    memory_limit: str | None = None,
    progress: Progress | None = None,
    about: Mapping[str, Any] | None = None,
    sample: str | None = None,
    **draw: Unpack[DrawOptions],
) -> GroupedCascadeCertificate: ...
@overload
def certify_cascade(
    confidences: Any,
    predictions: Any = None,
    labels: Any = None,
    *,
    xi: float,
    delta: float,
    claim: Claim = "loss",
    costs: Any = None,
    bound: Bound = "exact",
    method: Literal["paths"] = "paths",
    groups: Any,
    group_thresholds: Shared = "common",
    classes: Any = None,
    missing: Any = None,
    unseen_labels: float | None = None,
    columns: None = None,
    about: Mapping[str, Any] | None = None,
    sample: str | None = None,
    **draw: Unpack[DrawOptions],
) -> GroupedCascadeCertificate: ...
def certify_cascade(  # noqa: PLR0913
    confidences: Any,
    predictions: Any = None,
    labels: Any = None,
    *,
    xi: float,
    delta: float,
    claim: Claim = "loss",
    costs: Any = None,
    bound: Bound = "exact",
    method: Literal["paths", "greedy"] = "paths",
    groups: Any = None,
    group_thresholds: Shared | None = None,
    classes: Any = None,
    missing: Any = None,
    unseen_labels: float | None = None,
    columns: Mapping[str, str | Sequence[str] | None] | None = None,
    engine: Engine | None = None,
    master: str | None = None,
    memory_limit: str | None = None,
    progress: Progress | None = None,
    about: Mapping[str, Any] | None = None,
    sample: str | None = None,
    **draw: Unpack[DrawOptions],
) -> CascadeCertificate | GroupedCascadeCertificate:
    """Thresholds at which the cascade loses at most `xi` accuracy against its slow model, with
    probability at least 1 - `delta`; or, with `claim="differ"`, at which at most `xi` of its
    answers differ from the slow model's.

    The rows must be independent draws from the distribution of use, untouched by training, model
    choice or temperature fitting, and `xi`, `delta` and their number fixed before any label was
    seen. What is certified is `xi`, over the whole population, gains offsetting losses; exit rates,
    costs and the observed error increase are descriptive.

    Labels matter only where predictions differ, and may be missing (None, NaN) in any row, for any
    reason. A row without one in which the answer differs from the slow model's counts as a loss,
    so labels may be asked for in any order, and the claim be made again after each, beginning with
    none at all. Rows may not be dropped, nor labels changed once they were seen.

    That at most `xi` of the answers differ from the slow model's is another claim. It takes no
    labels, and is declared before the answers of the models are compared. Whoever publishes it if
    it is good, and labels on and claims the loss otherwise, has two chances to be wrong, and their
    deltas add up.

    With `groups`, fixed beforehand too, at most `xi` is lost in *every* group, with probability at
    least 1 - `delta` for all of them together. Common thresholds cost no share of `delta`, and the
    worst group decides for all; own ones share `delta` among the groups.

    Parameters
    ----------
    confidences
        (n, M-1) scores in [0, 1] of the fast models, in the order in which they are asked; or a
        `Tally` in place of all arrays; or, with `columns`, a frame (pandas, Polars, PyArrow,
        DuckDB, PySpark) or the paths of files.
    predictions
        (n, M) predicted classes, the slow model's last.
    labels
        (n,) true classes, missing (None, NaN) wherever you like, or None for none at all; a code
        such as -1 is a class like others. More labels never raise a threshold of two models.
    xi
        The accuracy that may be lost. 0 asks that nothing is, which is tested on a coarse grid.
        With `claim="differ"`, the share of the answers that may differ.
    delta
        The chance that the cascade loses more than that, or that more differ.
    claim
        "loss": at most `xi` of the accuracy is lost, whether or not there are labels. "differ": at
        most `xi` of the answers differ from the slow model's, which takes no labels and implies
        the former.
    costs
        M rising numbers: what a row costs in all that is answered by each model, the models before
        it included. With more than two models they choose the cheapest of the thresholds that hold;
        otherwise they are for the summary.
    bound
        "exact" (from 200,000 rows on the same as "pair"); "pair", two one-sided binomial bounds;
        "product", the paper's, mended.
    method
        For more than two models: "paths", or the paper's "greedy", which carries no proof and is
        never certified.
    groups
        One group per row, as integers or text; or a mapping from names to truth values for each
        row, for groups that overlap, of which "all rows" is always one. Nothing is said about a
        group that is not among the rows.
    group_thresholds
        "common" (if left out): the same thresholds for all groups, at which each loses at most
        `xi`. "own": thresholds for each group, if none overlap; a group that is too small never
        exits early.
    classes
        All classes that there are. A prediction or label that is not listed raises; one that looks
        like a missing value, such as "NA", is then a class.
    missing
        What stands for a missing label, such as "NA" or -1. Usual codes raise unless they are named
        here or in `classes`.
    unseen_labels
        The share of the rows whose label may be a class that no model ever predicts, or that an
        exit gets right and the slow model never predicts in any row; 0 if left out. More of them
        raise: they are mostly misspelt, and would count as mistakes of all models, or of the slow.
    unrelated_labels
        True counts labels that match the slow model no more often than by chance. Otherwise they
        raise: they are probably those of other rows, and any threshold would seem to lose nothing.
        That is looked at where labels are there also for rows on which all models agree.
    clusters, cluster_bound, weights, weight_bound, row_ids, seed
        For rows that are not independent draws from the distribution of use, see the documentation
        of data. `clusters`, the patient or the video of each row: one row of each is drawn, and the
        claim is about a random row of a random cluster; with `cluster_bound`, the most rows that
        any cluster can have, about a random row. `weights`, proportional to the density of the
        distribution of use over that of the rows, at most `weight_bound` wherever rows can be: a
        row is kept with that chance. `row_ids`, a name for each row, where rows have no order.
        `seed`, the key of the draw, 0 if left out: to try several voids the guarantee.
    columns
        The names of the table's columns, by the names of the arrays: `confidences` and
        `predictions`, a list of each in the order of the models, and `labels` and `groups`, if
        there are any.
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
    CascadeCertificate
        The thresholds, with the counts that they follow from. A refusal has `certified` False and
        the thresholds +inf (never exit); `refusal` says why, and about how many rows it would take.
        `unlabelled` says how many missing labels counted as losses, `best_possible` what labels for
        them could gain, and `settled` whether they could change the thresholds at all.
    GroupedCascadeCertificate
        With groups, also those of a tally: the same, with a part for each group. Common thresholds
        are refused if a group cannot be certified, and the refusal names it. Own thresholds are
        refused only if no group can be; otherwise `refused_groups` names those that never exit.

    Raises
    ------
    InvalidValueError, InvalidTypeError
        If scores or classes cannot be what they should be; the message names the value, its row
        and the remedy. If labels are missing where predictions differ and `method` is "greedy".
        If there are labels and `claim` is "differ".
        If labels look like those of other rows, see `unrelated_labels`.
        If a group is missing in a row, named twice, or there are more than 1,000 of them; if groups
        overlap and have own thresholds.

    Examples
    --------
    >>> from pacbound.data import fashion_mnist
    >>> import numpy as np
    >>> table = fashion_mnist()
    >>> predictions = np.column_stack([table.prediction_fast, table.prediction_slow])
    >>> certificate = certify_cascade(
    ...     table.confidence_fast, predictions, table.label, xi=0.01, delta=0.01, bound="pair"
    ... )
    >>> threshold, share = certificate.thresholds[0], certificate.exit_rates[0]
    >>> print(f"at {threshold:.4f} and above the fast model answers: {share:.1%} of the rows")
    at 0.7415 and above the fast model answers: 62.7% of the rows

    Without a label fewer rows exit early, and labels could gain more:

    >>> early = certify_cascade(
    ...     table.confidence_fast, predictions, xi=0.01, delta=0.01, bound="pair"
    ... )
    >>> early.exit_rates.round(3), early.best_possible.exit_rates.round(3), early.bounded
    (array([0.552]), array([1.]), 'loss')

    That few answers differ, had it been declared in place of the loss, holds at the same threshold:

    >>> same = certify_cascade(
    ...     table.confidence_fast, predictions, xi=0.01, delta=0.01, bound="pair", claim="differ"
    ... )
    >>> same.exit_rates.round(3), same.settled, same.bounded
    (array([0.552]), True, 'differ')

    From a frame, which is counted inside its own engine:

    >>> import polars
    >>> columns = {"c": table.confidence_fast, "y": table.label}
    >>> columns |= {"fast": table.prediction_fast, "slow": table.prediction_slow}
    >>> named = {"confidences": ["c"], "predictions": ["fast", "slow"], "labels": "y"}
    >>> frame = polars.DataFrame(columns)
    >>> same = certify_cascade(frame, xi=0.01, delta=0.01, bound="pair", columns=named)
    >>> bool((same.thresholds == certificate.thresholds).all())
    True
    """
    rate, level = tolerated_rate(xi), claimed_delta(delta)
    checked_claim(claim)
    _refuse_named_labels(claim, labels, columns, draw)
    if not is_one_of(group_thresholds, (None, "common", "own")):
        raise InvalidValueError(
            f"group_thresholds={group_thresholds!r} is not known: expected 'common' or 'own'."
        )
    texts, name = about_texts(about), sample_name(sample)
    tally = tally_of(
        "cascade",
        ("confidences", confidences),
        arrays={"predictions": predictions, "labels": labels, "groups": groups},
        columns=columns,
        options={"classes": classes, "missing": missing, "unseen_labels": unseen_labels},
        reading={
            "engine": engine,
            "master": master,
            "memory_limit": memory_limit,
            "progress": progress,
        },
        draw=draw,
    )
    recorded = recorded_columns(columns)
    if tally.scope == "top":
        if group_thresholds is not None:
            raise InvalidTypeError(
                f"group_thresholds={group_thresholds!r} is about groups, and there are none: pass "
                "groups, or leave it out."
            )
        return CascadeCertificate.from_tally(
            tally,
            xi=rate,
            delta=level,
            claim=claim,
            bound=bound,
            method=method,
            costs=costs,
            columns=recorded,
        ).with_about(texts, sample=name)
    if method != "paths":
        raise InvalidValueError(
            f"method={method!r} takes no groups: expected 'paths', which has a proof for them."
        )
    return GroupedCascadeCertificate.from_tally(
        tally,
        xi=rate,
        delta=level,
        claim=claim,
        bound=bound,
        group_thresholds=group_thresholds or "common",
        costs=costs,
        columns=recorded,
    ).with_about(texts, sample=name)


def _refuse_named_labels(
    claim: Claim,
    labels: Any,
    columns: Mapping[str, str | Sequence[str] | None] | None,
    draw: DrawOptions,
) -> None:
    """Raise if labels are passed, or named, for the claim that answers differ, before any row is
    read.
    """
    named = {
        "labels": labels,
        "columns['labels']": columns.get("labels") if isinstance(columns, Mapping) else None,
        "answers": draw.get("answers"),
    }
    found = next((name for name, value in named.items() if value is not None), None)
    if claim == "differ" and found is not None:
        raise InvalidValueError(
            f"claim='differ' takes no labels, and {found} was passed: with labels claim the loss "
            "(claim='loss'), which they say more about. Leave them out to claim that few answers "
            "differ, if that was decided before the answers were compared."
        )
