"""A network in stages with a classifier after each: all answers for training, the first good one
for use.

It knows nothing of what the stages compute; a batch is a tensor whose first dimension counts the
rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, SupportsFloat

import torch
from torch import Tensor, nn

from pacbound.cascade.early_exit.inference import EarlyExitResult, answer, checked_thresholds
from pacbound.cascade.early_exit.table import ExitTable, tabulate
from pacbound.certificate.cascade import CascadeCertificate
from pacbound.errors import InvalidTypeError, InvalidValueError


class EarlyExitNetwork(nn.Module):
    """M stages that run one after the other, and M heads: head m classifies what stage m gives, the
    last is the slow network's.

    `network(x)` gives the logits of all exits, for training and export. `infer` gives one answer
    per row and skips the stages that a row does not need. What is certified from `exit_table` holds
    for `infer` at the certified thresholds, for rows from the distribution that the table was drawn
    from.

    A stage or a head is any module from one tensor to one tensor that treats the rows of a batch
    separately, as every usual layer does in evaluation mode; a head gives logits of shape (rows,
    classes).

    Examples
    --------
    A network of two stages, each of which merely passes two logits on. The first row is sure at
    once, the second never:

    >>> import torch
    >>> from torch import nn
    >>> blocks, heads = [nn.Identity(), nn.Identity()], [nn.Identity(), nn.Identity()]
    >>> network = EarlyExitNetwork(blocks, heads=heads).eval()
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

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        """The logits of all exits, the slow network's last."""
        logits: list[Tensor] = []
        for stage, head in zip(self.stages, self.heads, strict=True):
            x = stage(x)
            logits.append(head(x))
        return tuple(logits)

    def exit_logits(self, x: Tensor, m: int) -> Tensor:
        """The logits of exit `m`, counted from 0, without the heads before it and the stages after
        it.
        """
        logits: Tensor = self.heads[self._checked_exit(m)](self.features(x, m))
        return logits

    def features(self, x: Tensor, m: int) -> Tensor:
        """What stage `m`, counted from 0, gives to its head and to the next stage."""
        for stage in self.stages[: self._checked_exit(m) + 1]:
            x = stage(x)
        return x

    def part(self, m: int) -> nn.Module:
        """Stage `m` with its head, as a module from the features before it to (features, logits);
        it shares the weights.

        For runtimes that only run exported programs: `torch.export` each part, and decide between
        them.
        """
        return _Part(self.stages[self._checked_exit(m)], self.heads[m])

    def infer(
        self, x: Tensor, thresholds: CascadeCertificate | Iterable[SupportsFloat]
    ) -> EarlyExitResult:
        """One answer for each row, from the first exit whose confidence reaches its threshold, or
        else from the last.

        The confidence is the top probability of the softmax, computed in float64 from the logits,
        and compared in float64, exactly as `exit_table` computes it. `thresholds` holds M - 1
        numbers, or is a cascade certificate; at +inf nothing exits, and that head is not even run.
        A row with NaN never exits early. The network must be in evaluation mode.

        Rows are packed together as others leave. Kernels round the last bits differently for
        batches of different sizes, so the logits of a late exit can differ in those bits from the
        ones of `exit_table`, which keeps its batches whole; an exit changes only if the confidence
        is within that rounding of its threshold. What is computed here decides. Where the two must
        agree bit for bit, use batches of one row for both.

        Examples
        --------
        >>> import torch
        >>> from torch import nn
        >>> blocks, heads = [nn.Identity(), nn.Identity()], [nn.Identity(), nn.Identity()]
        >>> network = EarlyExitNetwork(blocks, heads=heads).eval()
        >>> network.infer(torch.zeros(3, 4), [0.25]).exits
        tensor([0, 0, 0])
        """
        self._require_evaluation("infer")
        return answer(
            list(self.stages),
            list(self.heads),
            x,
            checked_thresholds(thresholds, len(self.stages) - 1),
        )

    def exit_table(self, loader: Iterable[Any]) -> ExitTable:
        """Confidences and predictions of every exit on every row of `loader`, as NumPy arrays to
        certify a cascade from.

        Batches are tensors, or pairs of inputs and labels as a DataLoader gives them; they are
        moved to where the network is.

        Examples
        --------
        >>> import torch
        >>> from torch import nn
        >>> blocks, heads = [nn.Identity(), nn.Identity()], [nn.Identity(), nn.Identity()]
        >>> network = EarlyExitNetwork(blocks, heads=heads).eval()
        >>> table = network.exit_table([(torch.zeros(3, 4), torch.tensor([0, 1, 2]))])
        >>> table.confidences.shape, table.predictions.shape, table.labels
        ((3, 1), (3, 2), array([0, 1, 2]))
        """
        self._require_evaluation("exit_table")
        return tabulate(lambda inputs: self(inputs.to(self.device)), loader)

    @property
    def device(self) -> torch.device:
        """Where the network is, judged by its first parameter or buffer."""
        first = next(self.parameters(), next(self.buffers(), None))
        return torch.device("cpu") if first is None else first.device

    def _checked_exit(self, m: int) -> int:
        if not isinstance(m, int) or isinstance(m, bool):
            raise InvalidTypeError(
                f"m={m!r} is no exit: expected a whole number, 0 to {len(self.stages) - 1}."
            )
        if not 0 <= m < len(self.stages):
            raise InvalidValueError(
                f"m={m} is no exit of this network: expected 0 to {len(self.stages) - 1}."
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

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        features = self.stage(x)
        return features, self.head(features)
