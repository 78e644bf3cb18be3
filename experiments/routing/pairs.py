"""A cheap model before an expensive one: what both say on the same rows, and what a call costs.

The APIs are those of FrugalML (Chen, Zaharia and Zou, 2020; Apache-2.0) with their prices of 2020.
The language models answered the test questions of MMLU: Qwen3-32B with its confidences
(liao-wb/conformal-labeling), GPT-4-1106 (lm-sys/RouteLLM, Apache-2.0), of which only whether each
answer is right is public.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.baselines import softmax
from experiments.imagenet.generated import logits

Array = NDArray[Any]

APIS, LANGUAGE_MODELS = "frugalml_apis.npz", "llm_mmlu_test_qwen3_gpt4_mixtral.npz"
SHA256 = {
    APIS: "70254be9ee6f1ee378afe0e356d6e886b6043338c2aae420db6299c9b9f0718a",
    LANGUAGE_MODELS: "c919ff50f1b1b89cf7ab48ca27d3de57257fbcfb337d0b8cabe2bd33740130c2",
}

PRICES = {
    "deepspeech": 0.02,
    "microsoft": 41.0,
    "amazon": 0.75,
    "baidu": 3.5,
    "google": 2.5,
}
"""Dollars for 10,000 calls."""

QUESTION, ANSWER = 150, 1
"""Tokens of a question and of its answer, a letter: a round figure, the same for both models."""
PER_MILLION = {"Qwen3-32B": (0.29, 0.59), "GPT-4-1106": (10.0, 30.0)}
"""Dollars for a million tokens, of questions and of answers: list prices of hosted models."""

# Names of the set, of the cheap API and of the expensive one, and how many rows are drawn.
_PAIRS = (
    ("COMMAND", "deepspeech", "microsoft", 1_887),
    ("SHOP", "amazon", "baidu", 10_000),
    ("IMDB", "amazon", "google", 10_000),
    ("YELP", "amazon", "google", 10_000),
    ("WAIMAI", "amazon", "baidu", 10_000),
)
_TITLES = {
    "COMMAND": "speech commands",
    "SHOP": "shop reviews",
    "IMDB": "film reviews",
    "YELP": "Yelp reviews",
    "WAIMAI": "food delivery",
}
_SPELT = {"deepspeech": "DeepSpeech"}


@dataclass(frozen=True)
class Pair:
    """Two models on one data set, which is the population that samples are drawn from.

    Attributes
    ----------
    n
        How many rows a sample has.
    weights
        The chance of each row. With speakers, a random row of a random speaker: what is drawn then
        is one row of each of `n` random speakers, so that rows are independent.
    """

    name: str
    fast: str
    slow: str
    n: int
    confidences: Array
    predictions: Array
    labels: Array
    weights: Array
    prices: tuple[float, float]

    @property
    def right(self) -> Array:
        """(rows, 2): whether each model is right."""
        return np.equal(self.predictions, self.labels[:, None])

    @property
    def accuracies(self) -> tuple[float, float]:
        fast, slow = (self.weights @ self.right).tolist()
        return fast, slow


def pairs(folder: Path) -> list[Pair]:
    """All pairs, from the two files in `folder`."""
    arrays = _arrays(folder / APIS)
    return [*(_api(arrays, *pair) for pair in _PAIRS), _mmlu(_arrays(folder / LANGUAGE_MODELS))]


def generated() -> list[Pair]:
    """Two small pairs that are drawn at random, for quick runs: one of them has speakers."""
    labels, tables = logits({"cheap": 4.8, "dear": 5.6}, 6_000)
    said = softmax(tables["cheap"])
    predictions = np.column_stack([table.argmax(axis=1) for table in tables.values()])
    return [
        Pair(
            name,
            "cheap",
            "dear",
            n,
            said.max(axis=1),
            predictions,
            labels,
            _weights(speakers, len(labels)),
            (1.0, 10.0),
        )
        for name, n, speakers in (
            ("generated rows", 2_000, None),
            ("generated speakers", 1_500, np.arange(len(labels)) % 1_500),
        )
    ]


def price(model: str) -> float:
    """Dollars for 10,000 questions to a language model."""
    question, answer = PER_MILLION[model]
    return 10_000 * (QUESTION * question + ANSWER * answer) / 1e6


def _api(arrays: dict[str, Array], name: str, fast: str, slow: str, n: int) -> Pair:
    predictions = [arrays[f"{name}_{api}_prediction"] for api in (fast, slow)]
    labels = arrays[f"{name}_label"]
    return Pair(
        f"{name}, {_TITLES[name]}",
        _SPELT.get(fast, fast.title()),
        _SPELT.get(slow, slow.title()),
        n,
        arrays[f"{name}_{fast}_confidence"].astype(np.float64),
        np.column_stack(predictions),
        labels,
        _weights(arrays.get(f"{name}_speaker"), len(labels)),
        (PRICES[fast], PRICES[slow]),
    )


def _mmlu(arrays: dict[str, Array]) -> Pair:
    """Classes are 1 for right and, since different wrong answers make no difference to the loss, 0
    and 2 for wrong."""
    fast, slow = arrays["qwen3_32b_correct"], arrays["gpt4_1106_correct"]
    return Pair(
        "MMLU, exam questions",
        "Qwen3-32B",
        "GPT-4-1106",
        10_000,
        arrays["qwen3_32b_confidence"].astype(np.float64),
        np.column_stack([np.where(fast, 1, 0), np.where(slow, 1, 2)]),
        np.ones(len(fast), dtype=np.int64),
        _weights(None, len(fast)),
        (price("Qwen3-32B"), price("GPT-4-1106")),
    )


def _weights(speakers: Array | None, rows: int) -> Array:
    if speakers is None:
        return np.full(rows, 1 / rows)
    found, places, counts = np.unique(speakers, return_inverse=True, return_counts=True)
    return np.asarray(1 / (len(found) * counts[places]))


def _arrays(path: Path) -> dict[str, Array]:
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    if digest != SHA256[path.name]:
        raise SystemExit(f"{path} has the SHA-256 {digest}: expected {SHA256[path.name]}.")
    with np.load(path, allow_pickle=False) as file:
        return dict(file)
