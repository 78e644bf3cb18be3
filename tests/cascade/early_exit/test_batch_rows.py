"""Batches of several tensors: dictionaries and tuples go through a network as one tensor does."""

from __future__ import annotations

from collections import OrderedDict, UserDict, defaultdict
from typing import Any, NamedTuple

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed: pip install 'pacbound[torch]'")

import torch
from torch import Tensor, nn

from pacbound.cascade.early_exit import EarlyExitNetwork
from pacbound.cascade.early_exit.batches import device_of, moved, packed, row_count
from pacbound.errors import InvalidTypeError, InvalidValueError

CLASSES, WIDTH, TOKENS = 3, 8, 6


class Embed(nn.Module):
    """Token ids and a mask in, features and the mask out."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(11, WIDTH)
        self.layer = Attend()

    def forward(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        x = self.embedding(batch["ids"])
        result: dict[str, Tensor] = self.layer({"x": x, "mask": batch["mask"]})
        return result


class Attend(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(WIDTH, 2, 16, batch_first=True, dropout=0.0)

    def forward(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        x = self.layer(batch["x"], src_key_padding_mask=batch["mask"])
        return {"x": x, "mask": batch["mask"]}


class MeanOfTokens(nn.Module):
    """The mean over the tokens that are not padding."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(WIDTH, CLASSES)

    def forward(self, batch: dict[str, Tensor]) -> Tensor:
        keeps = (~batch["mask"]).unsqueeze(2)
        result: Tensor = self.linear((batch["x"] * keeps).sum(1) / keeps.sum(1))
        return result


class InTuples(nn.Module):
    """A module of dictionaries as one of tuples."""

    def __init__(self, module: nn.Module, *names: str) -> None:
        super().__init__()
        self.module, self.names = module, names

    def forward(self, batch: tuple[Tensor, Tensor]) -> Any:
        result = self.module(dict(zip(self.names, batch, strict=True)))
        return result if isinstance(result, Tensor) else (result["x"], result["mask"])


def masked_transformer() -> EarlyExitNetwork:
    torch.manual_seed(0)
    network = EarlyExitNetwork([Embed(), Attend()], [MeanOfTokens(), MeanOfTokens()]).eval()
    with torch.no_grad():
        for head in network.heads:
            for parameter in head.parameters():
                parameter.mul_(3)
    return network


def in_tuples(network: EarlyExitNetwork) -> EarlyExitNetwork:
    first, second = network.stages
    stages = [InTuples(first, "ids", "mask"), InTuples(second, "x", "mask")]
    return EarlyExitNetwork(stages, [InTuples(head, "x", "mask") for head in network.heads]).eval()


def sentences(rows: int, seed: int = 1) -> dict[str, Tensor]:
    """Sentences of one to six tokens, padded."""
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(1, TOKENS + 1, (rows, 1), generator=generator)
    ids = torch.randint(11, (rows, TOKENS), generator=generator)
    mask = torch.arange(TOKENS) >= lengths
    return {"ids": ids.masked_fill(mask, 0), "mask": mask}


@pytest.mark.parametrize("rows", [0, 1, 2, 7, 64])
@pytest.mark.parametrize("threshold", [0.0, 0.5, 1.0, np.inf])
@pytest.mark.parametrize("kind", ["dictionaries", "tuples"])
def test_inference_on_several_tensors_equals_computing_every_exit_and_then_selecting(
    rows: int, threshold: float, kind: str
) -> None:
    network, batch = masked_transformer(), sentences(rows)
    table = network.exit_table([batch])
    exits = (table.confidence[:, 0] < threshold).astype(int)
    if kind == "tuples":
        answers = in_tuples(network).infer((batch["ids"], batch["mask"]), [threshold])
    else:
        answers = network.infer(batch, [threshold])
    assert answers.exits.tolist() == exits.tolist()
    assert answers.labels.tolist() == table.prediction[np.arange(rows), exits].tolist()


def test_a_mask_stays_with_its_row_when_others_leave() -> None:
    """Padding that is not masked changes answers, so that a mask of another row would be seen."""
    network, batch = masked_transformer(), sentences(64)
    unmasked = batch | {"mask": torch.zeros_like(batch["mask"])}
    assert not torch.equal(
        network.exit_logits(batch, 1).argmax(1), network.exit_logits(unmasked, 1).argmax(1)
    )
    alone = [network.infer({k: v[[i]] for k, v in batch.items()}, [0.5]) for i in range(64)]
    together = network.infer(batch, [0.5])
    assert together.labels.tolist() == [int(answer.labels) for answer in alone]
    assert together.exits.tolist() == [int(answer.exits) for answer in alone]


def test_a_dictionary_has_its_labels_under_labels_and_the_network_does_not_see_them() -> None:
    network, batch = masked_transformer(), sentences(5)
    seen: list[set[str]] = []
    network.stages[0].register_forward_pre_hook(lambda _, args: seen.append(set(args[0])))
    labels = torch.arange(5) % CLASSES
    inside = network.exit_table([batch | {"labels": labels}])
    beside = network.exit_table([(batch, labels)])
    assert inside.label is not None
    assert beside.label is not None
    assert inside.label.tolist() == beside.label.tolist() == labels.tolist()
    assert seen == [{"ids", "mask"}] * 2
    assert network.exit_table([batch]).label is None


class Pair(NamedTuple):
    x: Tensor
    rest: Any


class Tokenized(UserDict[str, Tensor]):
    """A dictionary with more to it than its items, as tokenizers give them."""

    def __init__(self, data: dict[str, Tensor], source: str = "") -> None:
        super().__init__(data)
        self.source = source


NUMBERS = torch.arange(6).reshape(3, 2)
KINDS = [
    {"x": NUMBERS},
    OrderedDict(x=NUMBERS),
    defaultdict(None, x=NUMBERS),
    Tokenized({"x": NUMBERS}),
    [NUMBERS, NUMBERS],
    (NUMBERS,),
    Pair(NUMBERS, {"y": NUMBERS, "z": None}),
]


@pytest.mark.parametrize("batch", KINDS, ids=lambda batch: type(batch).__name__)
def test_packing_and_moving_keep_the_kind_of_a_batch(batch: Any) -> None:
    kept = packed(batch, torch.tensor([2, 0]), 3)
    assert type(kept) is type(moved(batch, torch.device("meta"))) is type(batch)
    assert (row_count(batch), row_count(kept)) == (3, 2)
    assert (device_of(batch).type, device_of(moved(batch, torch.device("meta"))).type) == (
        "cpu",
        "meta",
    )
    first = kept["x"] if hasattr(kept, "keys") else kept[0]
    assert first.tolist() == [[4, 5], [0, 1]]


@pytest.mark.parametrize(
    ("batch", "error", "message"),
    [
        ({"x": NUMBERS, "y": NUMBERS[:2]}, InvalidValueError, r"it\['x'\] has 3, it\['y'\] has 2"),
        ((NUMBERS, (NUMBERS[:1],)), InvalidValueError, r"it\[0\] has 3, it\[1\]\[0\] has 1"),
        ({}, InvalidValueError, "there are none"),
        (None, InvalidValueError, "there are none"),
        ({"x": torch.tensor(1.0)}, InvalidValueError, r"it\['x'\] of a batch is a single number"),
        (torch.tensor(1.0), InvalidValueError, "it of a batch is a single number"),
        ({"x": NUMBERS, "n": 3}, InvalidTypeError, r"it\['n'\] of a batch is of type int"),
        (["a", "b"], InvalidTypeError, r"it\[0\] of a batch is of type str"),
        (np.zeros((3, 2)), InvalidTypeError, "it of a batch is of type ndarray"),
    ],
)
def test_what_is_no_batch_is_refused(batch: Any, error: type[Exception], message: str) -> None:
    parts = nn.Identity(), nn.Identity()
    with pytest.raises(error, match=message):
        EarlyExitNetwork(parts, parts).eval().infer(batch, [0.5])
