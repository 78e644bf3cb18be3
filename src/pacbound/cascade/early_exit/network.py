"""A network in stages with a classifier after each.

For training it gives the answers of all classifiers, for use the first that is confident enough. It
knows nothing of what the stages compute; `batches` says what a batch may be. Of a residual network
that is there already, `early_exit_resnet` makes one.

What an answer costs is counted while the network runs once: the multiply-accumulate operations of
convolutions and matrix products, whichever module or function makes them: linear layers, attention.
Not counted are biases, normalisation, activations, pooling, and look-ups, as is usual when networks
are compared. Products with the zeros of a padding count as all others.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count, pairwise
from typing import Any, SupportsFloat

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from pacbound.cascade.early_exit.batches import (
    Batch,
    batches,
    inputs_and_labels,
    moved,
    packed,
    require_a_label_each,
    row_count,
)
from pacbound.cascade.early_exit.inference import (
    Certified,
    EarlyExitResult,
    answer,
    limits_of_rows,
    top_label,
)
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.stats.arguments import whole_number


@dataclass(frozen=True, eq=False)
class ExitTable:
    """What every exit says on every row: the arrays that `certify_cascade` takes.

    Attributes
    ----------
    confidence
        (n, M-1) confidences of the early exits.
    prediction
        (n, M) predicted classes, the slow network's last.
    label
        (n,) true classes; None if there were none.

    Examples
    --------
    >>> from torch import nn
    >>> from pacbound.cascade.early_exit import EarlyExitNetwork
    >>> parts = nn.Identity(), nn.Identity()
    >>> network = EarlyExitNetwork(parts, parts).eval()
    >>> batch = torch.tensor([[4.0, 0.0], [0.0, 2.0]]), torch.tensor([0, 1])
    >>> table = network.exit_table([batch])
    >>> table.confidence.round(3).tolist(), table.prediction.tolist(), table.label.tolist()
    ([[0.982], [0.881]], [[0, 0], [1, 1]], [0, 1])
    """

    confidence: NDArray[np.float64]
    prediction: NDArray[np.int64]
    label: NDArray[np.int64] | None


class EarlyExitNetwork(nn.Module):
    """M stages that run one after the other, and M heads, each of which classifies.

    Head m classifies what stage m gives. The last head is the slow network's.

    `network(x)` gives the logits of all exits, for training and export. `infer` gives one answer
    per row and skips the stages that a row does not need. What is certified from `exit_table` holds
    for `infer` at the certified thresholds, for rows from the distribution that the table was drawn
    from.

    A stage is any module from a batch to a batch that treats the rows separately, as every usual
    layer does in evaluation mode. A batch is a tensor whose first dimension counts the rows, or a
    dictionary, a list or a tuple of such tensors: a stage that needs a mask passes it on beside
    what it computed. A head takes what its stage gives, and gives logits of shape (rows, classes).

    Parameters
    ----------
    stages
        The modules that run one after the other, at least two.
    heads
        A module for each stage.

    Raises
    ------
    InvalidValueError
        If there are fewer than two stages, or not as many heads as stages.

    Examples
    --------
    A network of two stages, each of which merely passes two logits on. The first row is sure at
    once, the second never:

    >>> import torch
    >>> from torch import nn
    >>> stages, heads = [nn.Identity(), nn.Identity()], [nn.Identity(), nn.Identity()]
    >>> network = EarlyExitNetwork(stages, heads).eval()
    >>> answers = network.infer(torch.tensor([[4.0, 0.0], [0.0, 0.1]]), [0.9])
    >>> answers.labels, answers.exits
    (tensor([0, 1]), tensor([0, 1]))
    """

    def __init__(self, stages: Iterable[nn.Module], heads: Iterable[nn.Module]) -> None:
        super().__init__()
        self.stages = nn.ModuleList(stages)
        self.heads = nn.ModuleList(heads)
        if len(self.stages) != len(self.heads) or len(self.stages) < 2:
            raise InvalidValueError(
                f"{len(self.stages)} stages and {len(self.heads)} heads: expected a head for each "
                "of at least two stages."
            )

    def forward(self, x: Batch) -> tuple[Tensor, ...]:
        """The logits of all exits, the slow network's last.

        Parameters
        ----------
        x
            A batch.

        Returns
        -------
        tuple of Tensor
            (rows, classes) logits for each exit.
        """
        logits: list[Tensor] = []
        for stage, head in zip(self.stages, self.heads, strict=True):
            x = stage(x)
            logits.append(head(x))
        return tuple(logits)

    def exit_logits(self, x: Batch, m: int) -> Tensor:
        """The logits of exit `m`, without running other heads or later stages.

        Parameters
        ----------
        x
            A batch.
        m
            The exit, counted from 0.

        Returns
        -------
        Tensor
            (rows, classes) logits.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If `m` is not the number of an exit.
        """
        logits: Tensor = self.heads[self._checked_exit(m)](self.features(x, m))
        return logits

    def features(self, x: Batch, m: int) -> Batch:
        """What stage `m` gives to its head and to the next stage.

        Parameters
        ----------
        x
            A batch.
        m
            The stage, counted from 0.

        Returns
        -------
        Tensor, or dictionary, list or tuple of them
            The features of each row.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If `m` is not the number of an exit.
        """
        for stage in self.stages[: self._checked_exit(m) + 1]:
            x = stage(x)
        return x

    def part(self, m: int) -> nn.Module:
        """Stage `m` with its head, as a module of its own that shares the weights.

        It is meant for runtimes that only run exported programs: `torch.export` each part, and
        decide between them.

        Parameters
        ----------
        m
            The stage, counted from 0.

        Returns
        -------
        Module
            A module from the features before the stage to (features, logits).

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If `m` is not the number of an exit.
        """
        return _Part(self.stages[self._checked_exit(m)], self.heads[m])

    def infer(
        self,
        x: Batch,
        thresholds: Certified | str | os.PathLike[str] | Iterable[SupportsFloat],
        *,
        groups: Any = None,
    ) -> EarlyExitResult:
        """Answer each row at the first exit whose confidence reaches its threshold.

        Rows that reach none are answered at the last exit. The confidence is the top probability of
        the softmax, computed in float64 from the logits, and compared in float64, exactly as
        `exit_table` computes it. A row with NaN never exits early.
        A certificate that was read from a file is verified at the first call, which can take
        seconds; one that does not follow from its own counts raises.

        Rows are packed together as others leave. Kernels round the last bits differently for
        batches of different sizes, so the logits of a late exit can differ in those bits from the
        ones of `exit_table`, which keeps its batches whole; an exit changes only if the confidence
        is within that rounding of its threshold. What is computed here decides. Where the two must
        agree bit for bit, use batches of one row for both.

        Parameters
        ----------
        x
            A batch.
        thresholds
            A cascade certificate or its path, or M - 1 numbers in [0, 1] or +inf. At +inf nothing
            exits, and that head is not even run.
        groups
            The group of each row, needed if and only if the certificate has own thresholds for each
            group. A row of a group that is not known never exits early.

        Returns
        -------
        EarlyExitResult
            The label, the confidence and the exit of each row, in the order of the batch.

        Raises
        ------
        InvalidTypeError
            If `thresholds` are not numbers or a cascade certificate; if `x` holds something other
            than tensors.
        InvalidValueError
            If there is not a threshold for each early exit, or one is not in [0, 1] or +inf; if the
            network is in training mode; if the tensors of `x`, or of what a stage gives, do not all
            have something for each row.

        Examples
        --------
        >>> import torch
        >>> from torch import nn
        >>> stages, heads = [nn.Identity(), nn.Identity()], [nn.Identity(), nn.Identity()]
        >>> network = EarlyExitNetwork(stages, heads).eval()
        >>> network.infer(torch.zeros(3, 4), [0.25]).exits
        tensor([0, 0, 0])
        """
        self._require_evaluation("infer")
        rows = row_count(x)
        stages, heads = list(self.stages), list(self.heads)
        limits = limits_of_rows(thresholds, len(stages) - 1, x, rows, groups)
        return answer(stages, heads, x, rows, limits)

    def exit_table(self, loader: Iterable[Any]) -> ExitTable:
        """What every exit says on every row, as NumPy arrays to certify a cascade from.

        Parameters
        ----------
        loader
            Batches: inputs, or pairs of inputs and labels as a DataLoader gives them. A dictionary
            with an entry `labels` has its labels there, as the collators of Hugging Face put them;
            the network gets the other entries. They are moved to where the network is.

        Returns
        -------
        ExitTable
            Confidences, predictions and, if there were any, labels.

        Raises
        ------
        InvalidTypeError
            If `loader` is one batch, or a batch is neither inputs nor a pair of inputs and
            labels.
        InvalidValueError
            If there are no batches, only some have labels, there are not as many labels as rows, or
            the network is in training mode.

        Examples
        --------
        >>> import torch
        >>> from torch import nn
        >>> stages, heads = [nn.Identity(), nn.Identity()], [nn.Identity(), nn.Identity()]
        >>> network = EarlyExitNetwork(stages, heads).eval()
        >>> table = network.exit_table([(torch.zeros(3, 4), torch.tensor([0, 1, 2]))])
        >>> table.confidence.shape, table.prediction.shape, table.label
        ((3, 1), (3, 2), array([0, 1, 2]))
        """
        self._require_evaluation("exit_table")
        parts = [self._said(*inputs_and_labels(batch)) for batch in batches(loader)]
        if not parts:
            raise InvalidValueError(
                "The loader gave no batch: pass batches, or something that can be iterated over "
                "anew."
            )
        confidence, prediction, label = zip(*parts, strict=True)
        known = [part for part in label if part is not None]
        if known and len(known) < len(label):
            raise InvalidValueError(
                "Some batches of the loader have labels and some have none: pass one or the other."
            )
        return ExitTable(
            np.concatenate(confidence),
            np.concatenate(prediction),
            np.concatenate(known) if known else None,
        )

    def _said(
        self, inputs: Batch, label: Tensor | None
    ) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64] | None]:
        """What every exit says on every row of a batch, and the labels of its rows."""
        rows, tops = row_count(inputs), list[tuple[Tensor, Tensor]]()
        if label is not None:
            require_a_label_each(label, rows)
        classes = None
        with torch.inference_mode():
            for logits in self(moved(inputs, self.device)):
                tops.append(top_label(logits, rows, classes))
                classes = logits.shape[1]
        confidence = torch.stack([confidence for confidence, _ in tops[:-1]], dim=1)
        prediction = torch.stack([prediction for _, prediction in tops], dim=1)
        return (
            confidence.cpu().numpy(),
            prediction.cpu().numpy(),
            None if label is None else label.cpu().numpy(),
        )

    @property
    def device(self) -> torch.device:
        """The device of the network's first parameter or buffer; the CPU if it has none."""
        return _device(self)

    def _checked_exit(self, m: int) -> int:
        if isinstance(m, bool) or not isinstance(m, int) or not 0 <= m < len(self.stages):
            wrong = InvalidValueError if type(m) is int else InvalidTypeError
            raise wrong(
                f"m={m!r} is not an exit of this network: expected a whole number, 0 to "
                f"{len(self.stages) - 1}."
            )
        return m

    def _require_evaluation(self, verb: str) -> None:
        if self.training:
            raise InvalidValueError(
                "The network is in training mode, where an answer depends on the batch: call "
                f"network.eval() before {verb}."
            )


class _Part(nn.Module):
    def __init__(self, stage: nn.Module, head: nn.Module) -> None:
        super().__init__()
        self.stage = stage
        self.head = head
        self.training = stage.training

    def forward(self, x: Batch) -> tuple[Batch, Tensor]:
        features = self.stage(x)
        return features, self.head(features)


def _device(network: nn.Module) -> torch.device:
    first = next(network.parameters(), next(network.buffers(), None))
    return torch.device("cpu") if first is None else first.device


def count_macs(network: nn.Module, example: Batch) -> NDArray[np.int64]:
    """Multiply-accumulate operations to answer one row at each exit.

    The count of an exit includes all that runs before it, the heads of earlier exits included.
    Biases, normalisation, activations and pooling are not counted. The network runs once, on the
    first row of `example`, on the device where it is.

    Parameters
    ----------
    network
        An `EarlyExitNetwork`, or any other module.
    example
        A batch to take the first row of: what the network takes, of any numbers.

    Returns
    -------
    ndarray of int64
        One number for each exit; a single number for a module without exits.

    Raises
    ------
    InvalidTypeError
        If the network has recurrent layers, whose products cannot be watched.
    InvalidValueError
        If `example` has no rows, or its tensors not the same number of them.

    Examples
    --------
    >>> from torch import nn
    >>> layers = nn.Conv2d(3, 16, 3, padding=1), nn.ReLU()
    >>> count_macs(nn.Sequential(*layers), torch.zeros(1, 3, 32, 32))
    array([442368])
    """
    if not isinstance(network, nn.Module):
        raise InvalidTypeError(f"network is a {type(network).__name__}: expected a torch module.")
    for module in network.modules():
        if isinstance(module, (nn.RNNBase, nn.RNNCellBase)):
            raise InvalidTypeError(
                f"{type(module).__name__} hides its products: count networks with recurrent layers "
                "by hand."
            )
    rows = row_count(example)
    if not rows:
        raise InvalidValueError("example has no rows: expected at least one.")
    x = moved(packed(example, torch.zeros(1, dtype=torch.int64), rows), _device(network))
    with _unfused(), _evaluation(network), torch.no_grad():
        if not isinstance(network, EarlyExitNetwork):
            return np.array([_run(network, x)[1]], dtype=np.int64)
        costs = []
        for stage, head in zip(network.stages, network.heads, strict=True):
            x, cost = _run(stage, x)
            costs.append(cost + _run(head, x)[1])
    return np.cumsum(np.array(costs, dtype=np.int64))


def _run(module: nn.Module, x: Batch) -> tuple[Batch, int]:
    counter = FlopCounterMode(display=False)
    with counter:
        result = module(x)
    return result, counter.get_total_flops() // 2


@contextmanager
def _unfused() -> Iterator[None]:
    """Attention in products that can be watched: fused kernels hide theirs."""
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(value=False)
    try:
        with sdpa_kernel(SDPBackend.MATH):
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(value=fast)


@contextmanager
def _evaluation(network: nn.Module) -> Iterator[None]:
    """Evaluation mode for a while: a batch of one cannot be normalised by its own statistics."""
    modes = {module: module.training for module in network.modules()}
    network.eval()
    try:
        yield
    finally:
        for module, mode in modes.items():
            module.training = mode


def early_exit_resnet(
    network: nn.Module, *, after: Sequence[int], pool: int = 1
) -> EarlyExitNetwork:
    """A residual network with early exits after chosen blocks.

    An early head averages its features down to `pool` x `pool` pixels and has one linear layer with
    random weights: train it with `train_heads`. The result shares the weights of `network`, so
    weights that are loaded into `network`, before or after, are those of the result too. The last
    exit answers as `network` does.

    Parameters
    ----------
    network
        One of torchvision's ResNets, or a module with its names: `conv1`, `bn1`, `relu` and
        `maxpool` where there are some, blocks in `layer1`, `layer2`, …, and `fc` or `linear`.
    after
        The numbers of the blocks, increasing, counted from 1 through all layers.
    pool
        The side of the pooled features of early heads.

    Returns
    -------
    EarlyExitNetwork
        A stage for each part between two cuts, in the mode that `network` is in.

    Raises
    ------
    InvalidTypeError
        If `network` is not a residual network with the expected names.
    InvalidValueError
        If `after` is empty, not increasing, or names a block that is not before the last.

    Examples
    --------
    >>> import torch
    >>> def block(channels):
    ...     return nn.Sequential(nn.LazyConv2d(channels, 3, stride=2), nn.BatchNorm2d(channels))
    >>> slow = nn.Module()
    >>> slow.layer1, slow.layer2 = (nn.Sequential(block(8), block(8)) for _ in range(2))
    >>> slow.fc = nn.Linear(8, 10)
    >>> network = early_exit_resnet(slow, after=[2, 3])
    >>> [tuple(logits.shape) for logits in network(torch.zeros(2, 3, 64, 64))]
    [(2, 10), (2, 10), (2, 10)]
    """
    blocks, classifier = _blocks(network), _classifier(network)
    cuts = [0, *after, len(blocks)]
    if len(cuts) == 2 or any(first >= second for first, second in pairwise(cuts)):
        raise InvalidValueError(
            f"after={tuple(after)}: expected increasing block numbers, 1 to {len(blocks) - 1}."
        )
    stages = [nn.Sequential(*blocks[first:second]) for first, second in pairwise(cuts)]
    stages[0] = nn.Sequential(*_stem(network), *stages[0])
    side = whole_number(pool, "pool", least=1)
    heads = [_pooled(_head(stage, classifier, side), side) for stage in stages[:-1]]
    return EarlyExitNetwork(stages, [*heads, _pooled(classifier, 1)]).train(network.training)


def _stem(network: nn.Module) -> list[nn.Module]:
    parts = (getattr(network, name, None) for name in ("conv1", "bn1", "relu", "maxpool"))
    return [part for part in parts if isinstance(part, nn.Module)]


def _blocks(network: nn.Module) -> list[nn.Module]:
    blocks: list[nn.Module] = []
    for number in count(1):
        layer = getattr(network, f"layer{number}", None)
        if not isinstance(layer, nn.Sequential):
            break
        blocks.extend(layer)
    return blocks


def _classifier(network: nn.Module) -> nn.Linear:
    for name in ("fc", "linear"):
        if isinstance(module := getattr(network, name, None), nn.Linear):
            return module
    raise InvalidTypeError(
        f"{type(network).__name__} is not a residual network that can be cut here: expected "
        "one of torchvision's ResNets. For any other network build "
        "EarlyExitNetwork(stages, heads) yourself."
    )


def _pooled(classifier: nn.Linear, side: int) -> nn.Sequential:
    return nn.Sequential(nn.AdaptiveAvgPool2d(side), nn.Flatten(), classifier)


def _head(stage: nn.Sequential, classifier: nn.Linear, side: int) -> nn.Linear:
    """A linear layer like `classifier`, for the number of channels of the stage's last
    normalisation.
    """
    norm = [module for module in stage.modules() if isinstance(module, nn.BatchNorm2d)][-1]
    weight = classifier.weight
    return nn.Linear(
        norm.num_features * side**2,
        classifier.out_features,
        device=weight.device,
        dtype=weight.dtype,
    )
