"""Displays of certificates with thresholds: what was seen at each threshold, and what is certified.

The figures are those of the claims themselves, as they stand on the page.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Self

from pacbound.claims.abstention import AbstentionCertificate
from pacbound.claims.false_alarms import FalseAlarmCertificate
from pacbound.claims.recall import RecallCertificate
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.figure import Figure
from pacbound.report.with_matplotlib import Display

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_NAMED = 10


class RecallDisplay(Display):
    """The share of the positives that is flagged against the threshold, and below it the share of
    all rows that is flagged; the certified threshold, and the target.

    The curves are descriptive: they are what was seen in the rows that certified, and no point of
    them is certified. At the certified threshold, the upright line, what is certified is the
    target, the dashed line, not the height of the curve. A refusal has no upright line.

    `plot` sets `axes_`, `ax_` and `figure_`; save the figure with `display.figure_.savefig(path)`.
    In a notebook the display shows itself.

    Parameters
    ----------
    figure
        What is shown; `from_certificate` makes it.

    Examples
    --------
    >>> from pacbound import certify_recall
    >>> scores, positive = [0.9] * 300 + [0.1] * 700, [True] * 300 + [False] * 700
    >>> certificate = certify_recall(scores, positive, target=0.95, delta=0.01)
    >>> display = RecallDisplay.from_certificate(certificate)
    >>> display.figure_.savefig("recall.png")
    """

    @classmethod
    def from_certificate(
        cls, certificate: RecallCertificate, *, group: Any = None, ax: Axes | None = None
    ) -> Self:
        """Draw the curves of the rows that certified, and the threshold.

        Parameters
        ----------
        certificate
            A recall certificate, as `certify_recall` gives.
        group
            The group to draw, if the certificate is for groups.
        ax
            The axes to draw on; by default those of a new figure.

        Returns
        -------
        RecallDisplay
            The display, drawn.

        Raises
        ------
        InvalidTypeError
            If `certificate` is not a recall certificate.
        InvalidValueError
            If there is no such group.

        Examples
        --------
        >>> from pacbound import certify_recall
        >>> refused = certify_recall([0.5, 0.75], [False, True], target=0.9, delta=0.1)
        >>> RecallDisplay.from_certificate(refused).figure.table().rows
        [['0.5', '1.0000', '1.0000'], ['0.75', '1.0000', '0.5000']]
        """
        expected = "a RecallCertificate, as certify_recall gives"
        return cls(figure_of(certificate, RecallCertificate, expected, group)).plot(ax)


class AlarmDisplay(Display):
    """The share of the negatives that raises an alarm against the threshold, and the share that is
    allowed; and the certified threshold.

    The curves are descriptive: they are what was seen in the rows that certified, and no point of
    them is certified. At the certified thresholds what is certified are the dashed lines, not the
    heights of the curves. A refusal has no certified threshold.

    `plot` sets `axes_`, `ax_` and `figure_`; save the figure with `display.figure_.savefig(path)`.
    In a notebook the display shows itself.

    Parameters
    ----------
    figure
        What is shown; `from_certificate` makes it.

    Examples
    --------
    >>> from pacbound import certify_false_alarms
    >>> scores, positive = [0.9] * 300 + [0.1] * 700, [True] * 300 + [False] * 700
    >>> certificate = certify_false_alarms(scores, positive, xi=0.05, delta=0.01)
    >>> display = AlarmDisplay.from_certificate(certificate)
    >>> display.figure_.savefig("alarms.png")
    """

    @classmethod
    def from_certificate(
        cls,
        certificate: FalseAlarmCertificate,
        *,
        group: Any = None,
        ax: Axes | None = None,
    ) -> Self:
        """Draw the curves of the rows that certified, and the certified thresholds.

        Parameters
        ----------
        certificate
            As `certify_false_alarms` gives it.
        group
            The group to draw, if the certificate is for groups.
        ax
            The axes to draw on; by default those of a new figure.

        Returns
        -------
        AlarmDisplay
            The display, drawn.

        Raises
        ------
        InvalidTypeError
            If `certificate` is another one.
        InvalidValueError
            If there is no such group.

        Examples
        --------
        >>> from pacbound import certify_false_alarms
        >>> scores, positive = [0.9] * 300 + [0.1] * 700, [True] * 300 + [False] * 700
        >>> alarms = certify_false_alarms(scores, positive, xi=0.05, delta=0.02)
        >>> len(AlarmDisplay.from_certificate(alarms).figure.panels) > 0
        True
        """
        expected = "what certify_false_alarms gives"
        return cls(figure_of(certificate, FalseAlarmCertificate, expected, group)).plot(ax)


class RiskCoverageDisplay(Display):
    """The share of wrong answers against the share of rows that are answered, as the threshold
    falls from left to right; the certified threshold, and xi.

    The curve is descriptive: it is what was seen in the rows that certified, and no point of it is
    certified. The dot is where the certified threshold lies on it; what is certified there is the
    dashed line, xi, not the height of the dot. The curve begins where 30 rows are answered, or 1 %
    of the rows if these are fewer. A refusal has no dot.

    `plot` sets `axes_`, `ax_` and `figure_`; save the figure with `display.figure_.savefig(path)`.
    In a notebook the display shows itself.

    Parameters
    ----------
    figure
        What is shown; `from_certificate` makes it.

    Examples
    --------
    >>> from pacbound import certify_abstention
    >>> from pacbound.data import fashion_mnist
    >>> table = fashion_mnist()
    >>> correct = table.prediction_slow == table.label
    >>> certificate = certify_abstention(table.confidence_slow, correct, xi=0.01, delta=0.01)
    >>> display = RiskCoverageDisplay.from_certificate(certificate)
    >>> display.figure_.savefig("risk-coverage.png")
    """

    @classmethod
    def from_certificate(
        cls, certificate: AbstentionCertificate, *, group: Any = None, ax: Axes | None = None
    ) -> Self:
        """Draw the curve of the rows that certified, and the threshold.

        Parameters
        ----------
        certificate
            An abstention certificate, as `certify_abstention` gives.
        group
            The name of the group to draw, if the certificate is for groups.
        ax
            The axes to draw on; by default those of a new figure.

        Returns
        -------
        RiskCoverageDisplay
            The display, drawn.

        Raises
        ------
        InvalidTypeError
            If `certificate` is not an abstention certificate.
        InvalidValueError
            If there is no such group.

        Examples
        --------
        >>> from pacbound import certify_abstention
        >>> refused = certify_abstention([0.5, 0.75], [False, True], xi=0.1, delta=0.1)
        >>> RiskCoverageDisplay.from_certificate(refused).figure.table().rows
        [['0.75', '0.5000', '0.0000'], ['0.5', '1.0000', '0.5000']]
        """
        expected = "an AbstentionCertificate, as certify_abstention gives"
        return cls(figure_of(certificate, AbstentionCertificate, expected, group)).plot(ax)


def figure_of(certificate: Any, kinds: Any, expected: str, group: Any) -> Figure:
    """The figure of a certificate of these `kinds`, or of one group of it, with n and delta."""
    if not isinstance(certificate, kinds):
        raise InvalidTypeError.of("certificate", certificate, expected)
    certificate.require_intact()
    names = [
        None if table["group"] is None else str(table["group"])
        for table in certificate.values.get("tables", [{"group": None}])
    ]
    name = None if group is None else str(group)
    if name not in names:
        raise InvalidValueError(f"group={name!r}{_why(names)}")
    figure: Figure
    (figure,) = islice(certificate.figures(), names.index(name), names.index(name) + 1)
    title = f"{figure.title} (n = {certificate.n:,}, delta = {certificate.delta:g})"
    return replace(figure, title=title)


def _why(names: list[str | None]) -> str:
    if None in names:
        return ", but this certificate has no groups: leave it out."
    shown = ", ".join(map(repr, names[:_MOST_NAMED])) + (", …" if len(names) > _MOST_NAMED else "")
    return f" is not a group of this certificate: it has {shown}. Pass one of them."
