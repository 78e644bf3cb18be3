"""Training as in the paper's appendix: the slow network first, then the early head on what the slow
network has learnt.

Both minimise the cross-entropy for a fixed number of epochs. Nothing here sees a held-out image: no
early stopping, no choice between runs, so whatever was not passed in stays an honest sample.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn

from experiments.fashion_mnist.network import EarlyExitNetwork

BATCH = 128
LEARNING_RATE = 0.05
MOMENTUM = 0.9
WEIGHT_DECAY = 5e-4


def fit_network(images: Tensor, labels: Tensor, *, epochs: int, seed: int) -> EarlyExitNetwork:
    """A network trained on `images`, in evaluation mode; one processor thread makes it the same for
    the same `seed`."""
    torch.manual_seed(seed)
    network = EarlyExitNetwork()
    slow_parts = (network.first_stage, network.remaining_stages, network.slow_head)
    minimise(
        network.slow,
        [p for part in slow_parts for p in part.parameters()],
        images,
        labels,
        epochs=epochs,
        name="slow",
    )

    # In evaluation mode the batch normalisation of the shared stage is frozen too, not its weights
    # alone.
    network.eval()
    network.first_stage.requires_grad_(requires_grad=False)
    minimise(
        network.fast, network.fast_head.parameters(), images, labels, epochs=epochs, name="fast"
    )
    return network


def minimise(
    logits: Callable[[Tensor], Tensor],
    parameters: Iterable[nn.Parameter],
    images: Tensor,
    labels: Tensor,
    *,
    epochs: int,
    name: str,
) -> None:
    """Minimise the cross-entropy of `logits` over `parameters`, the step length falling to zero
    along a cosine."""
    batches_per_epoch = -(-len(images) // BATCH)
    optimiser = torch.optim.SGD(
        parameters, lr=LEARNING_RATE, momentum=MOMENTUM, weight_decay=WEIGHT_DECAY, nesterov=True
    )
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, epochs * batches_per_epoch)
    for epoch in range(epochs):
        total = 0.0
        for batch in torch.split(torch.randperm(len(images)), BATCH):
            loss = nn.functional.cross_entropy(logits(images[batch]), labels[batch])
            optimiser.zero_grad()
            torch.autograd.backward(loss)
            optimiser.step()
            schedule.step()
            total += loss.item() * len(batch)
        print(
            f"{name} network, epoch {epoch + 1} of {epochs}: training loss "
            f"{total / len(images):.4f}",
            flush=True,
        )
