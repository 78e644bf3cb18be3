"""Prediction sets: the probability from which a label is in the set, so that few sets miss the true
one (Park et al., 2020).
"""

from __future__ import annotations

from typing import Any, Literal, Unpack

import numpy as np
from numpy.typing import NDArray

from pacbound.claims.assumptions import SAMPLE
from pacbound.claims.claim import certify
from pacbound.claims.rates import Rate
from pacbound.claims.threshold import ThresholdClaim, ThresholdProcedure
from pacbound.claims.threshold_certificate import (
    ThresholdCertificate,
    flag_rule,
    group_names,
)
from pacbound.claims.threshold_words import ClaimWords
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.forms import DELTA, SMALL_GROUPS, THRESHOLDS, Ask, Choice, xi_ask
from pacbound.tally.columns import as_array, numeric
from pacbound.tally.questions.label_scores import LABEL_SCORES
from pacbound.tally.row_options import RowOptions

DTYPES = ("float16", "float32", "float64")


class SetsCertificate(ThresholdCertificate):
    """With probability at least 1 - delta the true label is missing from at most xi of the sets.

    `certify_sets` makes such a certificate, and `load_certificate` reads one. A refusal has
    `certified` False and the threshold -inf: every label is in every set.

    Attributes
    ----------
    by : Claim
        What is claimed, and how it is decided and said.
    values : mapping
        Everything that the document holds of it, by name: what was asked for, the counts and the
        thresholds.
    provenance : Provenance
        Where the certificate comes from.
    draw : Drawn or None
        How the rows were drawn from others; None if all rows of the data were counted as they are.
    loaded : mapping or None
        The document that it was read from; None if it was made in this process.

    Examples
    --------
    >>> probability = np.array([[0.9, 0.1], [0.4, 0.6]] * 100)
    >>> certificate = certify_sets(probability, [0, 1] * 100, xi=0.05, delta=0.05)
    >>> certificate.certified, round(certificate.threshold, 2)
    (True, 0.6)
    >>> certificate.sets([[0.7, 0.3]])
    array([[ True, False]])
    """

    xi: float

    def sets(self, probability: Any, groups: Any = None) -> NDArray[np.bool_]:
        """Which labels are in the set of each row.

        Parameters
        ----------
        probability
            (n, L) probabilities, of the type that was counted: a model that computes in another one
            gives other numbers, and the guarantee is about those that were counted.
        groups
            The group of each row, where each group has a threshold of its own.

        Returns
        -------
        ndarray of bool
            (n, L): True where the label is in the set. A set may be empty. If the claim is refused,
            every label is in every set; so is a label whose probability is NaN.

        Raises
        ------
        InvalidValueError
            If there are not at least two columns.
        InvalidTypeError
            If the probabilities are of another type than those that were counted.
        CertificateError
            If the certificate does not follow from its own counts.
        """
        matrix = numeric(as_array(probability, "probability"), "probability")
        if matrix.ndim != 2 or matrix.shape[1] < 2:
            raise InvalidValueError(
                f"probability has shape {matrix.shape}: expected a line for each row, and a column "
                "for each label, at least two. For a sigmoid pass [1 - p, p]."
            )
        counted = self.values["dtype"]
        if matrix.dtype.kind == "f" and matrix.dtype.name != counted:
            raise InvalidTypeError(
                f"probability has dtype {matrix.dtype}, and {counted} was counted: compute the "
                f"probabilities in {counted}, as the model did then."
            )
        names = group_names(self, groups, len(matrix), probability=probability)
        self.require_verified()
        self.require_plain_scores()
        rule = flag_rule(self)
        # NaN is below no threshold, and must not drop out of a set.
        columns = [np.nan_to_num(column.astype(np.float64), nan=1.0) for column in matrix.T]
        inside = [next(iter(rule.of_arrays([column], names).values())) for column in columns]
        return np.column_stack(inside).astype(np.bool_)


CLAIM = ThresholdClaim(
    kind="sets",
    command="sets",
    help="Certify the probability from which a label is in the set, so that at most xi of the sets "
    "miss the true label.",
    question=LABEL_SCORES,
    asks=(
        xi_ask("The share of the sets that may miss the true label: 0.05"),
        DELTA,
        THRESHOLDS,
        SMALL_GROUPS,
        Ask(
            "dtype",
            Choice(DTYPES),
            "The type of the probabilities that were counted.",
            "float64",
            option=False,
            shown="Type of the probabilities",
        ),
    ),
    procedures={
        "sets/binomial/1": ThresholdProcedure(
            "sets/binomial/1",
            (*SAMPLE, "same-type-in-use"),
            rate=Rate("all", "labelled", top=LABEL_SCORES.grid.n_cells - 1),
            words=ClaimWords(
                about="{n} rows",
                unit="rows",
                heading="Prediction sets of which at most {xi} miss the label",
                plain="the true label is missing from at most {often xi} sets",
                rule="Put a label into the set where its probability is at least {threshold}.",
                promise="the true label is missing from at most {xi} of all sets",
                seen="{events} of {trials} sets miss the true label (limit: {allowed}).",
                instead="Put every label into every set.",
                group="{group}: from {threshold} on; {events} of {trials} sets miss the label.",
                refusals={
                    "zero": "No number of rows can certify xi = 0.",
                    "none": "There are no rows, so nothing is known about their sets.",
                    "too-few": "{trials} rows cannot certify {xi}, even if no set misses a label.",
                    "unavoidable": "{unavoidable} of {trials} rows have no probability for their "
                    "label, so every set misses it (limit: {allowed}).",
                },
                no_use={
                    0.0: "Every probability is at least 0: each set holds all labels, so the claim "
                    "is of no use.",
                    np.inf: "xi is so large that every set may be empty.",
                },
            ),
        )
    },
    curves=((0, "sets that hold the true label"),),
    certificate=SetsCertificate,
    applied=None,
)


def certify_sets(
    probability: Any = None,
    label: Any = None,
    *,
    xi: float,
    delta: float,
    groups: Any = None,
    group_thresholds: Literal["common", "own"] = "common",
    small_groups: Literal["refuse", "leave-out"] = "refuse",
    data: Any = None,
    **rows: Unpack[RowOptions],
) -> SetsCertificate:
    """The highest probability from which a label is in the set, so that at most `xi` of the sets
    miss the true label, with probability at least 1 - `delta`.

    The set of a row holds every label whose probability is at least the threshold. The rows must be
    independent draws from the data the model will meet in use, untouched by training or model
    choice; `xi`, `delta` and their number are fixed without a look at them. What is certified is an
    average over rows: sets of hard rows may miss more often. A row without a label counts as
    missed.

    Parameters
    ----------
    probability
        The probability of each label, one column per label. With `data`, the names of the columns.
    label
        The true label of each row: its column's name, or its place from 0.
    xi
        The share of the sets that may miss the true label: 0.05
    delta
        The chance that the claim is wrong: 0.01
    groups
        The group of each row, or a mapping from names to truth values where groups overlap.
    group_thresholds
        With groups: one common threshold that every group keeps, or their own ones.
    small_groups
        With groups: leave-out leaves those with too few trials to pass at all uncertified; refuse
        refuses the claim. Fixed beforehand. Only the number of rows of a group decides, never
        an outcome. Its sets hold every label.
    data
        A frame (pandas, Polars, PyArrow, DuckDB, PySpark), a path, several paths, or a Tally.
    **rows
        How rows are read and drawn, see `RowOptions`.

    Returns
    -------
    SetsCertificate
        The threshold, and `sets(probability)`. A refusal has `certified` False and the threshold
        -inf: every label is in every set.

    Raises
    ------
    InvalidValueError, InvalidTypeError
        If probabilities or labels cannot be what they should be; the message names the value, its
        row and the remedy.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> probability = rng.dirichlet([0.3] * 4, size=2000)
    >>> label = np.array([rng.choice(4, p=row) for row in probability])
    >>> certificate = certify_sets(probability, label, xi=0.1, delta=0.01)
    >>> round(certificate.threshold, 3)
    0.166
    >>> certificate.sets([[0.7, 0.2, 0.1, 0.0]])
    array([[ True,  True, False, False]])
    """
    of_groups = {"group_thresholds": group_thresholds, "small_groups": small_groups}
    dtype = "float64" if data is not None else _dtype(probability)
    columns = {"probability": probability, "label": label, "groups": groups}
    asked = {"xi": xi, "delta": delta, "dtype": dtype, **of_groups}
    return certify(CLAIM, columns, asked, data, rows)


def _dtype(probability: Any) -> str:
    """The type of an array of numbers; whole numbers and lists are counted as float64."""
    name = str(getattr(getattr(probability, "dtype", None), "name", "float64"))
    return name if name in DTYPES else "float64"
