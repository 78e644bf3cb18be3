"""EarlyExitNetwork: answers that equal the full computation, work that is really skipped, programs
that really export."""

from __future__ import annotations

import dataclasses
import io
import itertools
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed: pip install 'pacbound[torch]'")

import torch
from torch import Tensor, nn

from pacbound.cascade import early_exit
from pacbound.cascade.early_exit import (
    EarlyExitNetwork,
    EarlyExitResult,
    ExitTable,
    early_exit_resnet,
    resnet_cifar,
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


class Tokens(nn.Module):
    """The first token stands for the sequence."""

    def forward(self, x: Tensor) -> Tensor:
        return x[:, 0]


def transformer() -> EarlyExitNetwork:
    """Two exits on sequences of tokens."""
    torch.manual_seed(0)
    stages = [
        nn.Sequential(nn.Embedding(11, 8), nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)),
        nn.TransformerEncoderLayer(8, 2, 16, batch_first=True),
    ]
    heads = [nn.Sequential(Tokens(), nn.Linear(8, CLASSES)) for _ in stages]
    return sharpened(EarlyExitNetwork(stages, heads).eval())


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


def test_answers_are_frozen_and_their_tensors_are_ordinary() -> None:
    answers = convolutional().infer(images(5), MIDDLE)
    answers.labels[0] = 3  # tensors of inference mode refuse this
    with pytest.raises(dataclasses.FrozenInstanceError):
        answers.labels = answers.exits  # type: ignore[misc]


def test_inference_runs_under_inference_mode_and_without_it_and_builds_no_graph() -> None:
    network, x = convolutional(), images(9)
    outside = network.infer(x, MIDDLE)
    with torch.inference_mode():
        inside = network.infer(x, MIDDLE)
    assert inside.confidences.tolist() == outside.confidences.tolist()
    assert not outside.confidences.requires_grad


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_packing_keeps_values_and_layout(layout: torch.memory_format) -> None:
    x, rows = images(9).contiguous(memory_format=layout), torch.tensor([0, 3, 8])
    kept = packed(x, rows, len(x))
    assert torch.equal(kept, x[rows])
    assert kept.is_contiguous(memory_format=layout)


def test_packing_keeps_values_of_any_number_of_dimensions() -> None:
    rows = torch.tensor([1, 0])
    for shape in [(3,), (3, 2), (3, 2, 4), (3, 2, 4, 1, 5)]:
        x = torch.randn(shape, generator=torch.Generator().manual_seed(0))
        for axes in itertools.permutations(range(1, x.ndim)):
            turned = x.permute(0, *axes)
            assert torch.equal(packed(turned, rows, len(x)), turned[rows])


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


def test_training_gives_the_logits_of_all_exits() -> None:
    network, x = convolutional(), images(4)
    all_logits = network.train()(x)
    assert [tuple(logits.shape) for logits in all_logits] == [(4, CLASSES)] * 3
    assert all(logits.requires_grad for logits in all_logits)


def test_logits_of_one_exit_are_those_of_the_full_pass() -> None:
    network, x = convolutional(), images(4)
    for m, logits in enumerate(network(x)):
        assert torch.equal(network.exit_logits(x, m), logits)


def test_stages_of_a_transformer_on_tokens_work() -> None:
    network = transformer()
    tokens = torch.randint(11, (50, 6), generator=torch.Generator().manual_seed(0))
    table = network.exit_table([tokens])
    middle = float(np.median(table.confidence))
    answers = network.infer(tokens, [middle])
    assert set(answers.exits.tolist()) == {0, 1}
    assert (answers.labels.tolist(), answers.exits.tolist()) == selected(table, [middle])


def test_a_state_dict_makes_the_round_trip_through_a_file() -> None:
    network, x, file = convolutional(0), images(6), io.BytesIO()
    torch.save(network.state_dict(), file)
    file.seek(0)
    other = convolutional(1)
    other.load_state_dict(torch.load(file, weights_only=True))
    assert all(torch.equal(a, b) for a, b in zip(network(x), other(x), strict=True))


def test_moves_reach_every_stage_and_head() -> None:
    network = convolutional().to(torch.float64)
    assert {parameter.dtype for parameter in network.parameters()} == {torch.float64}
    assert network.infer(images(3).double(), MIDDLE).labels.shape == (3,)
    moved = convolutional().to("meta")
    assert moved.device.type == "meta"
    assert all(logits.device.type == "meta" for logits in moved(images(3).to("meta")))


@pytest.mark.slow
def test_the_full_network_exports_and_the_program_gives_the_same_logits() -> None:
    network, x = convolutional(), images(6)
    program = exported(network, x)
    for rows in (2, 6, 11):
        inputs = images(rows, seed=rows)
        for logits, expected in zip(program(inputs), network(inputs), strict=True):
            torch.testing.assert_close(logits, expected)


def test_parts_export_one_by_one_and_cascade_like_the_network() -> None:
    network, x = convolutional(), images(6)
    features = x
    for m, expected in enumerate(network(x)):
        program = exported(network.part(m), features.detach())
        features, logits = program(features)
        torch.testing.assert_close(logits, expected)


@pytest.mark.slow
def test_an_early_exit_resnet_exports() -> None:
    torch.manual_seed(0)
    network, x = early_exit_resnet(resnet_cifar(20), after=(3,)).eval(), torch.randn(2, 3, 32, 32)
    for logits, expected in zip(exported(network, x)(x), network(x), strict=True):
        torch.testing.assert_close(logits, expected)


def exported(module: nn.Module, x: Tensor) -> nn.Module:
    batch = {0: torch.export.Dim("batch", min=2)}
    return torch.export.export(module.eval(), (x,), dynamic_shapes=(batch,)).module()


@pytest.mark.parametrize(("stages", "heads"), [(0, 0), (1, 1), (2, 1), (2, 3)])
def test_a_network_needs_a_head_for_each_of_at_least_two_stages(stages: int, heads: int) -> None:
    with pytest.raises(InvalidValueError, match="expected a head for each of at least two stages"):
        EarlyExitNetwork([nn.Identity()] * stages, [nn.Identity()] * heads)


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


def test_a_stage_that_mixes_up_rows_is_refused() -> None:
    network = EarlyExitNetwork(
        [nn.Flatten(0), nn.Identity()], [nn.Identity(), nn.Identity()]
    ).eval()
    with pytest.raises(InvalidValueError, match=r"a head gave logits of shape \(8,\) for 2 rows"):
        network.infer(torch.zeros(2, 4), [0.5])


@pytest.mark.parametrize(
    ("m", "error"), [(3, InvalidValueError), (-1, InvalidValueError), (1.0, InvalidTypeError)]
)
def test_an_exit_that_is_none_is_refused(m: int, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"expected.* 0 to 2"):
        convolutional().exit_logits(images(1), m)


def test_loaders_that_are_none_are_refused() -> None:
    network = convolutional()
    with pytest.raises(InvalidTypeError, match=r"pass \[tensor\]"):
        network.exit_table(images(3))
    with pytest.raises(InvalidTypeError, match=r"loader is a dictionary: .* pass \[dictionary\]"):
        network.exit_table({"x": images(3)})
    with pytest.raises(InvalidValueError, match="gave no batch"):
        network.exit_table([])
    with pytest.raises(InvalidTypeError, match="a batch of the loader is of type str"):
        network.exit_table(["images"])
    with pytest.raises(InvalidTypeError, match=r"is of 3 parts: .* \(\(ids, mask\), labels\)"):
        network.exit_table([(images(3), images(3), torch.zeros(3))])
    with pytest.raises(InvalidTypeError, match="labels of a batch are of type list"):
        network.exit_table([(images(3), [0, 1, 2])])
    with pytest.raises(InvalidValueError, match=r"labels of shape \(3, 2\): expected \(3,\)"):
        network.exit_table([(images(3), torch.zeros(3, 2))])
    with pytest.raises(InvalidValueError, match="Some batches of the loader have labels"):
        network.exit_table([images(2), (images(2), torch.zeros(2))])


def test_public_names_are_sorted_and_documented() -> None:
    assert early_exit.__all__ == sorted(set(early_exit.__all__))
    assert all(getattr(early_exit, name).__doc__ for name in early_exit.__all__)
    assert [field.name for field in dataclasses.fields(EarlyExitResult)] == [
        "labels",
        "confidences",
        "exits",
    ]


@pytest.mark.parametrize("rows", [1, 3])
def test_heads_of_one_logit_or_of_other_classes_are_refused(rows: int) -> None:
    x = torch.zeros(rows, 4)
    for widths, message in (
        ((1, 1), r"one score per row: for a sigmoid pass \[1 - p, p\], or the logits \[0, z\]"),
        ((3, 2), "a head knows 2 classes, and another 3: expected the same"),
    ):
        stages, heads = [nn.Identity(), nn.Identity()], [nn.Linear(4, width) for width in widths]
        network = EarlyExitNetwork(stages, heads).eval()
        with pytest.raises(InvalidValueError, match=message):
            network.exit_table([x])
        with pytest.raises(InvalidValueError, match=message):
            network.infer(x, [1.0])


def test_a_certificate_may_be_the_path_of_its_file(tmp_path: Path) -> None:
    parts = nn.Identity(), nn.Identity()
    network = EarlyExitNetwork(parts, parts).eval()
    scores = np.tile([0.6, 0.9], 500)
    answers = np.column_stack([scores < 0.8, np.zeros(1000)])
    certificate = certify_cascade(scores, answers, np.zeros(1000), xi=0.02, delta=0.01)
    certificate.save(tmp_path / "cascade.json")
    x = torch.tensor([[9.0, 0.0], [0.1, 0.0]])
    assert network.infer(x, certificate).exits.tolist() == [0, 1]
    assert network.infer(x, tmp_path / "cascade.json").exits.tolist() == [0, 1]


@pytest.mark.parametrize("kind", [tuple, list])
def test_one_batch_in_place_of_a_loader_is_refused(kind: type) -> None:
    parts = nn.Identity(), nn.Identity()
    network = EarlyExitNetwork(parts, parts).eval()
    x, y = torch.zeros(2, 2), torch.zeros(2, dtype=torch.int64)
    with pytest.raises(InvalidTypeError, match=r"single batch pass \[\(inputs, labels\)\]"):
        network.exit_table(kind([x, y]))
    assert len(network.exit_table(kind([x, x])).prediction) == 4
    assert len(network.exit_table(kind([(x, y), (x, y)])).prediction) == 4
    with pytest.raises(InvalidTypeError, match="loader is of type int: expected batches"):
        network.exit_table(3)  # type: ignore[arg-type]


def test_what_is_remembered_of_thresholds_hides_nothing() -> None:
    network, x = convolutional(), images(20)
    two = EarlyExitNetwork(list(network.stages)[:2], list(network.heads)[:2]).eval()
    scores = np.tile([0.6, 0.9], 500)
    answers = np.column_stack([scores < 0.8, np.zeros(1000)])
    certificate = certify_cascade(scores, answers, np.zeros(1000), xi=0.02, delta=0.01)
    limits = [certificate.thresholds[0].item()]
    for _ in range(2):
        assert torch.equal(two.infer(x, certificate).exits, two.infer(x, limits).exits)
        with pytest.raises(InvalidValueError, match="1 thresholds for 3 models"):
            network.infer(x, certificate)
        with pytest.raises(InvalidTypeError, match="the same for all rows: leave groups out"):
            two.infer(x, certificate, groups=["a"] * 20)
        with pytest.raises(InvalidValueError, match="is nan: expected 0 to 1"):
            two.infer(x, [float("nan")])
        with pytest.raises(InvalidTypeError, match="expected floats from 0 to 1"):
            two.infer(x, [True])
    limits[0] = 0.0
    assert two.infer(x, limits).exits.tolist() == [0] * 20
    limits[0] = float("inf")
    assert two.infer(x, limits).exits.tolist() == [1] * 20


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
