"""What the page on serving says of threads, half precision, `torch.compile` and files."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed: pip install 'pacbound[torch]'")

import torch
from torch import Tensor, nn

from pacbound.cascade.early_exit import EarlyExitNetwork
from pacbound.claims.cascade import CascadeCertificate, certify_cascade

ROWS = 600


def served() -> EarlyExitNetwork:
    """Two exits on eight numbers, sure of themselves."""
    torch.manual_seed(0)
    stages = [nn.Sequential(nn.Linear(8, 32), nn.ReLU()), nn.Sequential(nn.Linear(32, 32))]
    network = EarlyExitNetwork(stages, [nn.Linear(32, 4), nn.Linear(32, 4)]).eval()
    with torch.no_grad():
        for head in network.heads:
            for parameter in head.parameters():
                parameter.mul_(8.0)
    return network


def inputs() -> Tensor:
    return torch.randn(ROWS, 8, generator=torch.Generator().manual_seed(1))


def half() -> Any:
    return torch.autocast("cpu", dtype=torch.bfloat16)


def certified(network: EarlyExitNetwork, x: Tensor) -> CascadeCertificate:
    """By the slow network's own answers, so that only a difference is a loss."""
    table = network.exit_table(torch.split(x, 1))
    found = certify_cascade(
        table.confidence, table.prediction, table.prediction[:, -1], xi=0.4, delta=0.1
    )
    assert found.certified
    return found


def test_a_certificate_made_in_float32_is_not_one_for_half_precision() -> None:
    network, x = served(), inputs()
    certificate = certified(network, x)
    exact = network.infer(x, certificate)
    with half():
        coarse = network.infer(x, certificate)
    assert 0 < (exact.exits != coarse.exits).sum() < ROWS / 10
    assert (exact.confidences != coarse.confidences).double().mean() > 0.9


@pytest.mark.parametrize("how", ["autocast", "bfloat16"])
def test_a_table_made_in_half_precision_is_what_serves_in_it_to_the_bit(how: str) -> None:
    network, x = served(), inputs()
    if how == "bfloat16":
        network, x = network.bfloat16(), x.bfloat16()
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=how == "autocast"):
        table = network.exit_table(torch.split(x, 1))
        threshold = float(np.median(table.confidence))
        replies = [network.infer(row, [threshold]) for row in torch.split(x, 1)]
    leaves = table.confidence[:, 0] >= threshold
    assert [reply.exits.item() == 0 for reply in replies] == leaves.tolist()
    assert [
        reply.confidences.item() for reply, early in zip(replies, leaves, strict=True) if early
    ] == table.confidence[leaves, 0].tolist()
    assert table.confidence.dtype == np.float64


def test_threads_share_a_network_and_a_certificate() -> None:
    network, x = served(), inputs()
    certificate = certified(network, x)
    parts = torch.split(x, 7)
    one_by_one = [network.infer(part, certificate) for part in parts]
    with ThreadPoolExecutor(4) as pool:
        side_by_side = list(pool.map(lambda part: network.infer(part, certificate), parts))
    for alone, beside in zip(one_by_one, side_by_side, strict=True):
        assert torch.equal(alone.exits, beside.exits)
        assert torch.equal(alone.confidences, beside.confidences)


def counted(graphs: list[object]) -> Any:
    """A compiler that changes nothing, and notes what it is given."""

    def compiler(graph: Any, _: Any) -> Any:
        graphs.append(graph)
        return graph.forward

    return compiler


@pytest.mark.slow  # dynamo takes seconds to load, and nothing else shows what it compiles
def test_compiled_stages_answer_alike_and_are_not_compiled_for_every_number_of_rows() -> None:
    network, x, graphs = served(), inputs(), list[object]()
    plain = network.infer(x, [0.9])
    for parts in (network.stages, network.heads):
        for m, part in enumerate(parts):
            parts[m] = torch.compile(part, dynamic=True, backend=counted(graphs))  # type: ignore[assignment]
    seen = []
    for rows in (ROWS, 300, 200, 123, 64, 31):
        compiled = network.infer(x[:rows], [0.9])
        assert torch.equal(compiled.exits, plain.exits[:rows])
        assert torch.equal(compiled.labels, plain.labels[:rows])
        seen.append(len(graphs))
    assert seen[0] >= 4
    assert len(set(seen[1:])) == 1
