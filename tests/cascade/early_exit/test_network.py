"""EarlyExitNetwork: answers that equal the full computation, work that is really skipped, programs
that really export."""

from __future__ import annotations

import io
import itertools
from collections.abc import Sequence

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed: pip install 'pacbound[torch]'")

import torch
from torch import Tensor, nn

from pacbound.cascade.early_exit import (
    EarlyExitNetwork,
    ExitTable,
)
from pacbound.cascade.early_exit.batches import packed
from pacbound.cascade.early_exit.inference import top_label
from pacbound.claims.cascade import certify_cascade
from pacbound.errors import InvalidTypeError, InvalidValueError

CLASSES = 5
MIDDLE = [0.87, 0.955]
"""Thresholds near the median confidence of each early exit of `convolutional`."""


class Recorder(nn.Module):
    """Passes a batch on and remembers how many rows each one had."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: list[int] = []

    def forward(self, x: Tensor) -> Tensor:
        self.sizes.append(len(x))
        return x


def convolutional(seed: int = 0) -> EarlyExitNetwork:
    """Three exits on images of 3 x 8 x 8."""
    torch.manual_seed(seed)
    stages = [
        nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU()),
        nn.Sequential(nn.Sequential(nn.Conv2d(4, 6, 3, stride=2)), nn.ReLU()),
        nn.Sequential(nn.Flatten(), nn.Linear(6 * 9, 16), nn.ReLU()),
    ]
    heads = [pooled(4), pooled(6), nn.Linear(16, CLASSES)]
    return sharpened(EarlyExitNetwork(stages, heads).eval())


def pooled(channels: int) -> nn.Module:
    return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, CLASSES))


def sharpened(network: EarlyExitNetwork) -> EarlyExitNetwork:
    """Heads with larger weights, so that confidences spread over the whole range."""
    with torch.no_grad():
        for head in network.heads:
            for parameter in head.parameters():
                parameter.mul_(12)
    return network


def images(rows: int, seed: int = 1) -> Tensor:
    return torch.randn(rows, 3, 8, 8, generator=torch.Generator().manual_seed(seed))


def selected(table: ExitTable, thresholds: Sequence[float]) -> tuple[list[int], list[int]]:
    """Labels and exits by the definition of a cascade, from the answers of all exits."""
    exits = [
        next((m for m, gamma in enumerate(thresholds) if row[m] >= gamma), len(thresholds))
        for row in table.confidence.tolist()
    ]
    return [int(table.prediction[row, m]) for row, m in enumerate(exits)], exits


@pytest.mark.parametrize("rows", [0, 1, 2, 7, 64])
@pytest.mark.parametrize(
    "thresholds", list(itertools.product([0.0, *MIDDLE, 1.0, np.inf], repeat=2))
)
def test_inference_equals_computing_every_exit_and_then_selecting(
    rows: int, thresholds: tuple[float, float]
) -> None:
    network, x = convolutional(), images(rows)
    answers = network.infer(x, thresholds)
    labels, exits = selected(network.exit_table([x]), thresholds)
    assert answers.labels.tolist() == labels
    assert answers.exits.tolist() == exits


def test_the_middle_thresholds_of_these_tests_use_every_exit() -> None:
    assert set(convolutional().infer(images(64), MIDDLE).exits.tolist()) == {0, 1, 2}


def test_confidences_of_single_rows_are_those_of_the_table_to_the_bit() -> None:
    network, x = convolutional(), images(40)
    table = network.exit_table(torch.split(x, 1))
    for row in range(len(x)):
        answers = network.infer(x[row : row + 1], MIDDLE)
        m = int(answers.exits)
        if m < 2:
            assert answers.confidences.item() == table.confidence[row, m]


@pytest.mark.parametrize("classes", [2, 10, 1000, 1001])
def test_one_row_has_the_label_and_the_confidence_of_a_table_to_the_bit(classes: int) -> None:
    parts = nn.Identity(), nn.Identity()
    network = EarlyExitNetwork(parts, parts).eval()
    rows = torch.randn(8, classes, generator=torch.Generator().manual_seed(0))
    rows[1], rows[2, 1:] = 0.5, rows[2, 0]  # ties: the first wins
    rows[3, 1], rows[4, 1], rows[5, 1] = torch.nan, torch.inf, -torch.inf
    rows[6] = -torch.inf
    rows[7, 1] = 1000.0
    for row in torch.split(rows, 1):
        found = network.infer(row, [0.0])
        confidence, label = top_label(row, 1)
        assert found.labels.tolist() == label.tolist()
        np.testing.assert_array_equal(found.confidences.numpy(), confidence.numpy())
        assert found.exits.item() == int(bool(confidence.isnan()))


def test_a_threshold_equal_to_a_confidence_of_the_table_lets_that_row_exit() -> None:
    network, x = convolutional(), images(40)
    confidences = network.exit_table(torch.split(x, 1)).confidence[:, 0]
    for row, confidence in enumerate(confidences.tolist()):
        assert network.infer(x[row : row + 1], [confidence, np.inf]).exits.item() == 0
        assert network.infer(
            x[row : row + 1], [min(np.nextafter(confidence, 2), 1.0), np.inf]
        ).exits.item() == 2 * (confidence < 1)


def test_confidences_are_the_softmax_in_float64_of_float32_logits() -> None:
    logits = torch.tensor([[3.0, 1.0, 0.2], [-50.0, 90.0, 1.0], [0.0, 0.0, 0.0]])
    network = EarlyExitNetwork(
        [nn.Identity(), nn.Identity()], [nn.Identity(), nn.Identity()]
    ).eval()
    expected = logits.double().softmax(dim=1).amax(dim=1)
    answers = network.infer(logits, [0.0])
    assert answers.confidences.dtype == torch.float64
    torch.testing.assert_close(answers.confidences, expected, rtol=1e-15, atol=0)
    assert network.exit_table([logits]).confidence[:, 0].tolist() == answers.confidences.tolist()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_logits_of_other_precisions_are_compared_in_float64_too(dtype: torch.dtype) -> None:
    logits = torch.tensor([[2.0, 1.0], [0.25, 0.0]], dtype=dtype)
    network = EarlyExitNetwork(
        [nn.Identity(), nn.Identity()], [nn.Identity(), nn.Identity()]
    ).eval()
    answers = network.infer(logits, [0.7])
    torch.testing.assert_close(
        answers.confidences, logits.double().softmax(dim=1).amax(dim=1), rtol=1e-15, atol=0
    )
    assert answers.exits.tolist() == [0, 1]


def test_later_stages_run_on_the_rows_that_are_left_and_on_nothing_else() -> None:
    first, second, third = Recorder(), Recorder(), Recorder()
    network = EarlyExitNetwork([first, second, third], [nn.Identity() for _ in range(3)]).eval()
    x = torch.tensor([[9.0, 0.0], [0.1, 0.0], [3.0, 0.0], [0.2, 0.0]])
    answers = network.infer(x, [0.99, 0.9])
    assert (first.sizes, second.sizes, third.sizes) == ([4], [3], [2])
    assert answers.exits.tolist() == [0, 2, 1, 2]


@pytest.mark.parametrize("rows", [1, 6])
def test_no_stage_runs_once_all_rows_have_left(rows: int) -> None:
    first, second = Recorder(), Recorder()
    network = EarlyExitNetwork([first, second], [nn.Identity(), nn.Identity()]).eval()
    assert network.infer(torch.zeros(rows, 4), [0.25]).exits.tolist() == [0] * rows
    assert (first.sizes, second.sizes) == ([rows], [])


@pytest.mark.parametrize("rows", [1, 6])
def test_a_head_that_lets_nothing_exit_is_not_run(rows: int) -> None:
    head = Recorder()
    network = EarlyExitNetwork([nn.Identity(), nn.Identity()], [head, nn.Identity()]).eval()
    assert network.infer(torch.zeros(rows, 4), [np.inf]).exits.tolist() == [1] * rows
    assert head.sizes == []


def test_an_empty_batch_runs_nothing_and_gives_empty_answers() -> None:
    stage = Recorder()
    network = EarlyExitNetwork([stage, nn.Identity()], [nn.Identity(), nn.Identity()]).eval()
    answers = network.infer(torch.zeros(0, 4), [0.5])
    assert (len(answers.labels), len(answers.confidences), len(answers.exits)) == (0, 0, 0)
    assert stage.sizes == []


@pytest.mark.parametrize("rows", [1, 3])
def test_a_row_of_nan_never_exits_early(rows: int) -> None:
    network = EarlyExitNetwork(
        [nn.Identity(), nn.Identity()], [nn.Identity(), nn.Identity()]
    ).eval()
    x = torch.zeros(rows, 4)
    x[0] = torch.nan
    assert network.infer(x, [0.0]).exits.tolist() == [1] + [0] * (rows - 1)


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_packing_keeps_values_and_layout(layout: torch.memory_format) -> None:
    x, rows = images(9).contiguous(memory_format=layout), torch.tensor([0, 3, 8])
    kept = packed(x, rows, len(x))
    assert torch.equal(kept, x[rows])
    assert kept.is_contiguous(memory_format=layout)


def test_a_certificate_takes_the_place_of_thresholds() -> None:
    network, x = convolutional(), images(400)
    two = EarlyExitNetwork(list(network.stages)[:2], list(network.heads)[:2]).eval()
    table = two.exit_table([x])
    certificate = certify_cascade(
        table.confidence,
        table.prediction,
        table.prediction[:, 1],
        xi=0.4,
        delta=0.1,
    )
    assert certificate.certified
    assert (
        two.infer(x, certificate).exits.tolist()
        == two.infer(x, certificate.thresholds).exits.tolist()
    )


def test_the_table_has_a_row_for_each_row_and_keeps_labels_beside_them() -> None:
    network, x = convolutional(), images(10)
    labels = torch.arange(10)
    table = network.exit_table([(x[:4], labels[:4]), (x[4:], labels[4:])])
    assert (table.confidence.shape, table.prediction.shape) == ((10, 2), (10, 3))
    assert (table.confidence.dtype.name, table.prediction.dtype.name) == ("float64", "int64")
    assert table.label is not None
    assert table.label.tolist() == labels.tolist()
    assert network.exit_table([x]).label is None


def test_a_state_dict_makes_the_round_trip_through_a_file() -> None:
    network, x, file = convolutional(0), images(6), io.BytesIO()
    torch.save(network.state_dict(), file)
    file.seek(0)
    other = convolutional(1)
    other.load_state_dict(torch.load(file, weights_only=True))
    assert all(torch.equal(a, b) for a, b in zip(network(x), other(x), strict=True))


def test_parts_export_one_by_one_and_cascade_like_the_network() -> None:
    network, x = convolutional(), images(6)
    features = x
    for m, expected in enumerate(network(x)):
        program = exported(network.part(m), features.detach())
        features, logits = program(features)
        torch.testing.assert_close(logits, expected)


def exported(module: nn.Module, x: Tensor) -> nn.Module:
    batch = {0: torch.export.Dim("batch", min=2)}
    return torch.export.export(module.eval(), (x,), dynamic_shapes=(batch,)).module()


@pytest.mark.parametrize("verb", ["infer", "exit_table"])
def test_training_mode_is_refused(verb: str) -> None:
    network = convolutional().train()
    with pytest.raises(InvalidValueError, match=rf"call network.eval\(\) before {verb}"):
        (
            network.infer(images(2), [0.5, 0.5])
            if verb == "infer"
            else network.exit_table([images(2)])
        )


@pytest.mark.parametrize(
    ("thresholds", "error", "message"),
    [
        ([0.5], InvalidValueError, "1 thresholds for 3 models: expected 2"),
        (0.5, InvalidTypeError, "expected 2 numbers in a list"),
        (np.array([[0.5], [0.5]]), InvalidTypeError, "expected 2 numbers in a list"),
        ([0.5, float("nan")], InvalidValueError, "expected 0 to 1, or .inf"),
        ([0.5, 95.0], InvalidValueError, "expected 0 to 1, or .inf"),
        ([-0.1, 0.5], InvalidValueError, "expected 0 to 1, or .inf"),
        (
            ["high", "low"],
            InvalidTypeError,
            "expected floats from 0 to 1",
        ),
    ],
)
def test_thresholds_that_are_none_are_refused(
    thresholds: list[float], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        convolutional().infer(images(2), thresholds)


def test_a_batch_equals_its_rows_one_by_one_where_some_are_nan() -> None:
    network, x = convolutional(), images(30)
    x[::7] = float("nan")
    table = network.exit_table(torch.split(x, 1))
    limits = [float(np.nanquantile(column, 0.6)) for column in table.confidence.T]
    batch = network.infer(x, limits)
    rows = [network.infer(row, limits) for row in torch.split(x, 1)]
    assert batch.exits.tolist() == [row.exits.item() for row in rows]
    assert batch.labels.tolist() == [row.labels.item() for row in rows]
    assert set(batch.exits[::7].tolist()) == {2}
    assert set(batch.exits.tolist()) == {0, 1, 2}
