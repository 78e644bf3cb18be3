"""The calibrator: class probabilities in, intervals out, for the top label, each predicted class,
or every label.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, Literal, Self

import numpy as np

from pacbound.claims.calibration import CLAIM
from pacbound.claims.calibration_certificate import CalibrationCertificate
from pacbound.errors import InvalidTypeError, InvalidValueError, NotFittedError
from pacbound.procedures.calibration import Correction, Side, check_options
from pacbound.stats.arguments import claimed_delta
from pacbound.tally.columns import Floats
from pacbound.tally.grids import bins_for
from pacbound.tally.probabilities import as_probabilities, count_probabilities, top_label
from pacbound.tally.tally import Tally

CalibratorScope = Literal["top", "per-class", "all-labels"]

# What to do with grades, where there is a classifier.
TO_GRADE: Final = (
    "let the trained model answer other rows, grade these answers, and pass its confidence and the "
    "grades to calibrate(confidence, quality=...) or certify_abstention(confidence, quality=...)"
)


def refuse_others(given: Mapping[str, Any]) -> None:
    """Raise for what `fit` does not take, with the remedy."""
    for name in given:
        if name in ("quality", "preferred"):
            raise InvalidTypeError(
                f"{name} grades answers, and what a classifier says is right or wrong by y: leave "
                f"it out. To certify graded answers, {TO_GRADE}."
            )
        weights = " Rows with weights are for calibrate(..., weights=)." * (name == "sample_weight")
        raise InvalidTypeError(f"fit takes no {name}: leave it out.{weights}")


class PACCalibrator:
    """Certified intervals for the probabilities of any classifier.

    All intervals are right together with probability at least 1 - `delta` over the draw of the rows
    passed to `fit`, which must be independent draws from the data the model will meet in use,
    untouched by training. What an interval is for depends on `scope`:

    | scope | the interval holds | `predict_interval` gives |
    |---|---|---|
    | "top" | how often the predicted label is right, in its bin of confidence | (n, 2) |
    | "per-class" | the same among rows with the same predicted class | (n, 2) |
    | "all-labels" | how often a label is true, in its bin of probability | (n, classes, 2) |

    `partial_fit` adds rows in any number of parts; certify once, when the number of rows fixed
    beforehand has come in.

    Parameters
    ----------
    n_bins
        The number of bins.
    delta
        The chance that any interval is wrong.
    scope
        "top", "per-class" or "all-labels", as in the table above.
    edges
        None for bins of equal width, or edges as in `calibrate`. "equal-mass" works with the scope
        "top" and with `fit` alone.
    correction, side
        As in `calibrate`.

    Attributes
    ----------
    tally_ : Tally
        What was counted so far.
    certificate_ : CalibrationCertificate
        The certificate for it. There is no refusal: intervals from few rows are wide.

    Examples
    --------
    >>> probabilities = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]] * 100)
    >>> labels = np.array([0, 1, 1] * 100)
    >>> calibrator = PACCalibrator(n_bins=5, delta=0.05).fit(probabilities, labels)
    >>> calibrator.predict_interval([[0.95, 0.05]]).round(3)
    array([[0.953, 1.   ]])
    """

    def __init__(
        self,
        n_bins: int = 20,
        delta: float = 0.01,
        scope: CalibratorScope = "top",
        *,
        edges: Any = None,
        correction: Correction = "sidak",
        side: Side = "both",
    ) -> None:
        self.n_bins = n_bins
        self.delta = delta
        self.scope = scope
        self.edges = edges
        self.correction = correction
        self.side = side

    def fit(
        self, probabilities: Any, y: Any, *, unseen: bool = False, groups: Any = None, **others: Any
    ) -> Self:
        """Count rows, forgetting all that were counted before.

        Parameters
        ----------
        probabilities
            (n, classes) class probabilities.
        y
            (n,) the column of each row's true class, from 0.
        unseen
            Whether -1 in `y` is a class that has no column: whatever is predicted for such a row is
            wrong.
        groups
            The patient, video or speaker of each row, as `GroupKFold` takes it: one row of each is
            drawn for each bin, and the intervals are about a random row of a random group there
            (`clusters` in `calibrate`). Not with the scope "all-labels".
        **others
            Nothing. Weights and the quality of answers raise an error that says where they go.

        Returns
        -------
        PACCalibrator
            This object.

        Raises
        ------
        InvalidValueError, InvalidTypeError
            If a probability or a label cannot be what it should be, or an option of this object is
            not valid.
        """
        refuse_others(others)
        self.tally_ = self._count(probabilities, y, unseen=unseen, groups=groups)
        self._certificate: CalibrationCertificate | None = None
        return self

    def partial_fit(
        self, probabilities: Any, y: Any, *, unseen: bool = False, groups: Any = None
    ) -> Self:
        """Count more rows.

        Parameters
        ----------
        probabilities, y, unseen, groups
            As in `fit`, with the same classes each time. All rows of a group come in one call.

        Returns
        -------
        PACCalibrator
            This object.

        Raises
        ------
        RepeatedSourceError
            If the same rows come twice, where they can be recognised.
        InvalidValueError, InvalidTypeError
            As from `fit`; if the classes are others than before, or `edges` needs all rows at once.
        """
        self._refuse_parts()
        # All parts are one draw.
        drawn = self.tally_.drawn if hasattr(self, "tally_") and groups is not None else None
        seed = None if drawn is None else drawn.seed
        return self._add(self._count(probabilities, y, unseen=unseen, groups=groups, seed=seed))

    def merge(self, other: PACCalibrator) -> Self:
        """Add what another calibrator has counted, perhaps on another machine.

        Parameters
        ----------
        other
            A calibrator with the same bins, scope and classes, which has counted other rows.

        Returns
        -------
        PACCalibrator
            This object, with the rows of both.

        Raises
        ------
        NotFittedError
            If the other one has counted nothing.
        RepeatedSourceError
            If both counted the same rows, where they can be recognised.
        InvalidValueError
            If bins, scope or classes differ, or if the `edges` of either need all rows at once.
        InvalidTypeError
            If `other` is not a calibrator.

        Examples
        --------
        >>> rows, labels = np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([0, 1])
        >>> here, there = PACCalibrator(n_bins=5), PACCalibrator(n_bins=5)
        >>> here.fit(rows, labels).merge(there.fit(rows[:, ::-1], labels)).tally_
        Tally(calibration, 4 rows in 2 cells: 2 wrong, 2 right)
        """
        if not isinstance(other, PACCalibrator):
            raise InvalidTypeError(
                f"A {type(other).__name__} cannot be merged into a PACCalibrator: expected another "
                "PACCalibrator. Rows are added by partial_fit, tallies with +."
            )
        self._refuse_parts()
        other._refuse_parts()
        tally = other._fitted_tally()
        if not hasattr(self, "tally_"):
            # Nothing was counted here, but this object has said which bins and scope it is for.
            grid = bins_for(n_bins=self.n_bins, edges=self.edges, scores=None)
            tally = replace(tally.zero(), grid=grid, scope=self.scope) + tally
        return self._add(tally)

    def predict_interval(self, probabilities: Any) -> Floats:
        """The certified interval of each row's predicted label, or of every label.

        Parameters
        ----------
        probabilities
            (n, classes) class probabilities, the classes as in `fit`.

        Returns
        -------
        ndarray of shape (n, 2), or (n, classes, 2) for the scope "all-labels"
            Lower and upper end.

        Raises
        ------
        NotFittedError
            If nothing was counted yet.
        InvalidValueError
            If a probability is not in [0, 1], or the classes are others than those calibrated.
        """
        return self._look_up("interval", probabilities)

    def predict_confidence(self, probabilities: Any) -> Floats:
        """The observed share of right predictions in the same bin: an estimate, without guarantee.

        Parameters
        ----------
        probabilities
            (n, classes) class probabilities, the classes as in `fit`.

        Returns
        -------
        ndarray of shape (n,), or (n, classes) for the scope "all-labels"
            The share; NaN where no row was seen.

        Raises
        ------
        NotFittedError, InvalidValueError
            As from `predict_interval`.
        """
        return self._look_up("estimate", probabilities)

    @property
    def certificate_(self) -> CalibrationCertificate:
        """The certificate for the rows counted so far, at the present `delta`.

        Raises
        ------
        NotFittedError
            If nothing was counted yet.
        """
        tally, made = self._fitted_tally(), self._certificate
        asked = {name: getattr(self, name) for name in ("delta", "correction", "side")}
        if made is None or any(getattr(made, name) != value for name, value in asked.items()):
            self._certificate = made = CLAIM.certify(tally, asked)
        return made

    def __repr__(self) -> str:
        return f"PACCalibrator(n_bins={self.n_bins}, delta={self.delta}, scope={self.scope!r})"

    def _count(
        self, probabilities: Any, y: Any, *, unseen: bool, groups: Any, seed: int | None = None
    ) -> Tally:
        claimed_delta(self.delta)
        check_options(self.correction, self.side)
        scores = None
        if isinstance(self.edges, str):
            if self.scope != "top":
                raise InvalidValueError(
                    f"edges={self.edges!r} is for scope='top', not {self.scope!r}: pass edges from "
                    "other data (equal_mass_edges)."
                )
            scores, _ = top_label(probabilities)
        grid = bins_for(n_bins=self.n_bins, edges=self.edges, scores=scores)
        return count_probabilities(
            probabilities, y, grid=grid, scope=self.scope, unseen=unseen, clusters=groups, seed=seed
        )

    def _refuse_parts(self) -> None:
        if isinstance(self.edges, str):
            raise InvalidValueError(
                f"edges={self.edges!r} needs all rows at once: use fit, or edges from other data "
                "(equal_mass_edges)."
            )

    def _add(self, tally: Tally) -> Self:
        before: Tally | None = getattr(self, "tally_", None)
        if before is not None and before.groups and tally.groups and before.groups != tally.groups:
            raise InvalidValueError(
                f"{len(tally.groups)} classes do not add to {len(before.groups)}: pass the same "
                "columns each time."
            )
        self.tally_ = tally if before is None else before + tally
        self._certificate = None
        return self

    def _fitted_tally(self) -> Tally:
        if not hasattr(self, "tally_"):
            raise NotFittedError(
                "This PACCalibrator has counted nothing yet: call fit(probabilities, y) first."
            )
        return self.tally_

    def _look_up(self, what: Literal["interval", "estimate"], probabilities: Any) -> Floats:
        certificate = self.certificate_
        answer = certificate.interval if what == "interval" else certificate.estimate
        table = as_probabilities(probabilities, "probabilities")
        # The scope that was counted, in case the attribute was changed after fitting.
        if certificate.scope == "all-labels":
            self._check_classes(table.shape[1])
            labels = np.tile(np.arange(table.shape[1]), len(table))
            flat = answer(table.ravel(), groups=labels)
            return flat.reshape(*table.shape, *flat.shape[1:])
        confidence, prediction = top_label(table)
        if certificate.scope == "top":
            return answer(confidence)
        self._check_classes(table.shape[1])
        return answer(confidence, groups=prediction)

    def _check_classes(self, classes: int) -> None:
        known = len(self._fitted_tally().groups)
        if classes != known:
            raise InvalidValueError(
                f"probabilities has {classes} classes, but {known} were calibrated: pass the same "
                "columns."
            )
