"""Routing items through remote models, fast to slow, several at a time: language models behind an
API, model servers.

The rule is that of `Cascade`: an item exits where its float64 score is at or above the threshold. A
model here takes one item and is awaited. Retrying is left to the model; waiting, order, limits and
failures are handled here.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence, Sized
from contextlib import aclosing
from copy import deepcopy
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pacbound.cascade.asking import BoundedStream, Calls, Items
from pacbound.cascade.routing import CascadeResult, CascadeStatistics, Routed
from pacbound.cascade.stages import (
    ExitThresholds,
    SaidByModel,
    Stage,
    Thresholds,
    read_item,
    require_same_classes,
    shown,
    stages_of,
)
from pacbound.errors import InvalidValueError, ModelError
from pacbound.stats.arguments import one_of
from pacbound.tally.columns import as_column, as_names

Array = NDArray[Any]
Floats = NDArray[np.float64]
Groups = Sequence[Any] | NDArray[Any] | Callable[[Any], Any] | None


class AsyncCascade:
    """Remote models in a row, fast to slow, each answering the items it is sure enough of and
    passing on the others.

    The guarantee is that of `Cascade`: with the thresholds of a certified `CascadeCertificate`, at
    most `xi` accuracy is lost against the last model, with probability at least 1 - `delta` over
    the draw of the rows that certified it, for the very models and the distribution they came from.
    A hosted model that its owner replaces is another model: certify it again.

    A model is an async function of one item that gives an `Answer`, or one probability per class. A
    model whose threshold is +inf is not called at all.

    Parameters
    ----------
    models : sequence of async callables
        Two or more, the fast one first and the slow one last.
    certificate_or_thresholds : cascade certificate, its path, or numbers
        One threshold for every model but the last, or a mapping from groups to these. A
        certificate that was read from a file is
        verified first, once, which can take seconds; one that does not follow from its own counts
        raises `CertificateError`.
    concurrency : int or sequence of int, default=8
        The most calls under way at each model, over all uses of this object in one event loop. One
        `run` or `stream` holds at most that many items at a time; with one number per model, at
        most their sum.
    timeout : float, or sequence of float or None, optional
        Seconds after which a call has failed, for all models or for each.
    on_error : {"raise", "slow"}, default="raise"
        "raise": the first failure cancels the rest and raises a `ModelError`; what was finished by
        then is its `partial`. "slow": an item on which a model fails goes straight to the last
        model, whose own failure raises. Such an item loses nothing against the slow model. But `xi`
        is net: the failed answers may have been gains that offset losses, so what is lost is at
        most `xi` plus the share of items that failed. `statistics.failed` counts them.
    classes : sequence, optional
        The names of the classes, for models that give probabilities.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If there are fewer than two models, one cannot be called, or an option is not one.
    CertificateError
        If the certificate was changed after it was written.
    ModelError
        From every prediction, if a model fails or gives what is not an answer; see `on_error`.

    Examples
    --------
    >>> import asyncio
    >>> from pacbound.cascade import Answer
    >>> async def small(text):
    ...     label = "refund" if "money" in text else "other"
    ...     return Answer(label, confidence=min(1.0, len(text) / 20))
    >>> async def large(text):
    ...     return Answer("refund" if "pay" in text or "money" in text else "other")
    >>> router = AsyncCascade([small, large], [0.9])
    >>> result = asyncio.run(router.run(["I want my money back", "You owe me pay"]))
    >>> result.predictions.tolist(), result.exits.tolist()
    (['refund', 'refund'], [0, 1])
    """

    def __init__(
        self,
        models: Sequence[Callable[[Any], Awaitable[Any]]],
        certificate_or_thresholds: Thresholds,
        *,
        concurrency: int | Sequence[int] = 8,
        timeout: float | Sequence[float | None] | None = None,
        on_error: Literal["raise", "slow"] = "raise",
        classes: Any = None,
    ) -> None:
        self._stages = stages_of(models, unit="item")
        self._exits = ExitThresholds.of(certificate_or_thresholds, len(self._stages))
        self._on_error = one_of(on_error, ("raise", "slow"), "on_error")
        self._classes = None if classes is None else as_column(classes, "classes")
        self._calls = Calls(len(self._stages), concurrency, timeout)
        self.statistics = CascadeStatistics(len(self._stages))

    @property
    def thresholds(self) -> Any:
        """The scores from which each model but the last answers, as an array; where each group has
        its own, a dictionary of such arrays by the names of the groups.
        """
        return deepcopy(self._exits.values)

    async def predict(self, items: Items, *, groups: Groups = None) -> Array:
        """The answer for each item.

        Parameters
        ----------
        items : iterable or async iterable
            What the models are asked about, one by one.
        groups : sequence or callable, optional
            As in `run`.

        Returns
        -------
        ndarray of shape (n,)
            Class indices or names, in the order of the items.

        Raises
        ------
        ModelError
            As from `run`.
        """
        return (await self.run(items, groups=groups)).predictions

    async def predict_exits(self, items: Items, *, groups: Groups = None) -> NDArray[np.intp]:
        """Which model answers each item.

        Parameters
        ----------
        items : iterable or async iterable
            As in `predict`.
        groups : sequence or callable, optional
            As in `run`.

        Returns
        -------
        ndarray of shape (n,)
            The place of the model: 0 for the fastest.

        Raises
        ------
        ModelError
            As from `run`.
        """
        return (await self.run(items, groups=groups)).exits

    async def run(self, items: Items, *, groups: Groups = None) -> CascadeResult:
        """Answers, exits, confidences and times, in the order of the items.

        Parameters
        ----------
        items : iterable or async iterable
            What the models are asked about, one by one.
        groups : sequence or callable, optional
            The group of each item, or a function that gives the group of an item; needed if and
            only if each group has its own thresholds. An item of a group that is not known never
            exits early.

        Returns
        -------
        CascadeResult
            All of it.

        Raises
        ------
        ModelError
            At the first failure, unless it goes to the slow model; what was finished by then is its
            `partial`.
        """
        done: list[Routed] = []
        try:
            async with aclosing(self._streamed(items, groups).results(ordered=False)) as results:
                async for routed in results:
                    # What was finished is needed where the stream fails.
                    done.append(routed)  # noqa: PERF401, RUF100
        except ModelError as error:
            error.partial = tuple(sorted([*done, *error.partial], key=lambda routed: routed.index))
            raise
        self._count(done)
        return _joined(sorted(done, key=lambda routed: routed.index), len(self._stages))

    async def stream(
        self, items: Items, *, ordered: bool = True, groups: Groups = None
    ) -> AsyncGenerator[Routed, None]:
        """The answers one by one while the items come in.

        A loop that may stop early should close the stream, with `contextlib.aclosing`: that cancels
        what is under way.

        Parameters
        ----------
        items : iterable or async iterable
            What the models are asked about. It may be endless: it is asked for another item only
            when there is room.
        ordered : bool, default=True
            Whether answers come in the order of the items, or as they are finished.
        groups : sequence or callable, optional
            As in `run`.

        Yields
        ------
        Routed
            The answer for each item.
        """
        async with aclosing(self._streamed(items, groups).results(ordered=ordered)) as results:
            async for routed in results:
                self._count([routed])
                yield routed

    async def route(self, item: Any, *, group: Any = None) -> Routed:
        """The answer for one item, for servers that have one at a time; `concurrency` holds over
        all of them together.

        Parameters
        ----------
        item : any
            What the models are asked about.
        group : int or str, optional
            The group of the item, needed if and only if each group has its own thresholds.

        Returns
        -------
        Routed
            The answer.
        """
        routed = await self._route(0, item, self._exits.of_item(group))
        self._count([routed])
        return routed

    def _streamed(self, items: Items, groups: Groups) -> BoundedStream[Routed]:
        self._exits.require_groups(groups, "the group of each item, or a function that gives it")
        names = None if groups is None or callable(groups) else as_names(groups, "groups").tolist()
        if names is not None and isinstance(items, Sized) and len(items) != len(names):
            raise InvalidValueError(
                f"groups has {len(names)} names for {len(items)} items: pass one for each."
            )

        async def route(index: int, item: Any) -> Routed:
            group = groups(item) if callable(groups) else None
            if names is not None:
                if index >= len(names):
                    raise InvalidValueError(f"Item {index} has no group: groups has {len(names)}.")
                group = names[index]
            return await self._route(index, item, self._exits.of_item(group))

        return BoundedStream(route, items, limit=self._calls.window)

    async def _route(self, index: int, item: Any, limits: Floats) -> Routed:
        seconds, failed = [0.0] * len(self._stages), list[int]()
        earlier: list[tuple[Stage, SaidByModel]] = []
        for stage in self._stages:
            limit = -np.inf if stage.last else limits[stage.place]
            if limit == np.inf or (failed and not stage.last):
                continue
            try:
                output = await self._calls.output(stage, index, item, seconds)
                reading = read_item(stage, output, index, self._classes)
                require_same_classes(earlier, stage, reading)
            except ModelError:
                if stage.last or self._on_error == "raise":
                    raise
                failed.append(stage.place)
                continue
            earlier.append((stage, reading))
            if stage.last or reading.confidence[0] >= limit:
                break
        label, confidence = reading.labels[0], float(reading.confidence[0])
        plain = label.item() if isinstance(label, np.generic) else label
        return Routed(index, item, plain, stage.place, confidence, tuple(seconds), tuple(failed))

    def _count(self, done: Sequence[Routed]) -> None:
        self.statistics.add(*_totals(done, len(self._stages)))

    def __repr__(self) -> str:
        return f"AsyncCascade({shown(self._stages, self._exits)})"


def _joined(done: Sequence[Routed], n_models: int) -> CascadeResult:
    exits = np.array([routed.exit for routed in done], dtype=np.intp)
    confidences = np.array([routed.confidence for routed in done], dtype=np.float64)
    _, seconds, failed = _totals(done, n_models)
    return CascadeResult(
        _column([routed.prediction for routed in done]), exits, confidences, seconds, failed
    )


def _totals(
    done: Sequence[Routed], n_models: int
) -> tuple[NDArray[np.int64], Floats, NDArray[np.int64]]:
    answered, failed, seconds = (
        np.zeros(n_models, dtype=np.int64),
        np.zeros(n_models, dtype=np.int64),
        np.zeros(n_models),
    )
    for routed in done:
        answered[routed.exit] += 1
        seconds += routed.seconds
        failed[list(routed.failed)] += 1
    return answered, seconds, failed


def _column(labels: list[Any]) -> Array:
    """Labels of one plain type as an array of it; others, such as parsed JSON, as objects."""
    if not labels:
        return np.empty(0, dtype=np.intp)
    if len({type(label) for label in labels}) == 1 and isinstance(
        labels[0], (str, bool, int, float)
    ):
        return np.array(labels)
    column = np.empty(len(labels), dtype=object)
    for place, label in enumerate(labels):
        column[place] = label
    return column
