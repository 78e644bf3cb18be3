"""A certified threshold in the configuration of vLLM semantic-router: what it keeps was certified,
and its own loader takes it."""

from __future__ import annotations

import importlib.metadata
import math
import runpy
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pacbound import certify_cascade

EXAMPLE = runpy.run_path(str(Path(__file__).parents[2] / "examples" / "semantic_router.py"))
exported, score, decision = EXAMPLE["exported"], EXAMPLE["score"], EXAMPLE["decision"]

# Of ConfidenceAlgorithmConfig in router-config-v0.3.schema.json of vllm-sr 0.4.0, which allows no
# other names.
KNOWN = {
    "confidence_method": str,
    "threshold": float,
    "escalation_order": str,
    "token_filter": str,
    "on_error": str,
}


def keeps(mean: float, threshold: float) -> bool:
    """Whether the router keeps an answer of this mean log-probability: `normalizeLogprob` and
    `evaluate` of its looper, in float64. A threshold of 0 stands for its default, -1."""
    confidence = min(1.0, max(0.0, (mean + 3.0) / 3.0))
    return confidence >= (threshold or -1.0)


def _means_near(mean: float) -> list[float]:
    """Mean log-probabilities around one: the floats beside it, and steps up to a tenth."""
    steps = [0.0, *(10.0**-power for power in range(1, 17))]
    near = [mean + sign * step for sign in (-1, 1) for step in steps]
    return [m for m in (*near, math.nextafter(mean, -9), math.nextafter(mean, 9)) if m <= 0]


@pytest.mark.parametrize("bits", [10, 16])
def test_whatever_the_router_keeps_is_at_or_above_the_threshold(bits: int) -> None:
    rng = np.random.default_rng(bits)
    grid = rng.choice(np.arange(1, 2**bits), size=min(2**bits - 1, 1500), replace=False) / 2**bits
    for threshold in [*grid.tolist(), *rng.random(500).tolist(), 0.049, 1e-300]:
        written, edge = exported(threshold), math.log(threshold)
        assert 0 < written <= 1
        for mean in _means_near(max(edge, -3.0)):
            kept = keeps(mean, written)
            assert not kept or math.exp(mean) >= threshold
            # What is passed on although it was certified is within a billionth or two.
            assert kept or mean < max(edge, -3.0) + 2e-9


def test_a_sum_in_another_order_stays_on_the_safe_side() -> None:
    rng = np.random.default_rng(0)
    for _ in range(300):
        tokens = -rng.exponential(0.05, size=int(rng.integers(1, 4000)))
        own = score(tokens.tolist())
        written = exported(own)
        one_by_one = sum(tokens.tolist(), 0.0) / len(tokens)
        assert not keeps(one_by_one - 1e-9, written)


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    means = -rng.exponential(0.2, size=2000)
    slow = rng.integers(0, 5, size=2000)
    fast = np.where(means > -0.4, slow, (slow + 1) % 5)
    certified = certify_cascade(
        np.exp(means), np.column_stack([fast, slow]), slow, xi=0.02, delta=0.01
    )
    assert certified.certified
    certified.save(tmp_path / "router.json")
    return tmp_path / "router.json"


def test_the_configuration_holds_what_the_router_knows(
    certificate: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    yaml = pytest.importorskip("yaml", reason="PyYAML is missing: pip install pyyaml")
    words = ["semantic_router.py", str(certificate), "--small", "s: 1", "--large", 'l "2"']
    monkeypatch.setattr(sys, "argv", words)
    assert EXAMPLE["main"]() == 0
    written = yaml.safe_load(capsys.readouterr().out)
    confidence = written["algorithm"]["confidence"]
    assert {name: type(value) for name, value in confidence.items()} == KNOWN
    (threshold,) = certify_thresholds(certificate)
    assert confidence["threshold"] == exported(threshold)
    assert [each["model"] for each in written["modelRefs"]] == ["s: 1", 'l "2"']


def certify_thresholds(path: Path) -> list[float]:
    from pacbound import load_certificate

    loaded: Any = load_certificate(path)
    return list(loaded.thresholds.tolist())


def test_the_loader_of_the_router_takes_the_configuration(
    certificate: Path, tmp_path: Path
) -> None:
    yaml = pytest.importorskip("yaml", reason="PyYAML is missing: pip install pyyaml")
    try:
        assert importlib.metadata.version("vllm-sr") >= "0.4"
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("vllm-sr is missing: pip install vllm-sr")
    parser = pytest.importorskip("cli.parser")
    validator = pytest.importorskip("cli.validator")
    models = ["small", "large"]
    backend = {"name": "b", "provider": "vllm", "endpoint": "host:8000", "protocol": "http"}
    config = {
        "version": "v0.3",
        "listeners": [{"name": "http", "address": "0.0.0.0", "port": 8899, "timeout": "300s"}],
        "providers": {
            "defaults": {"model": "large"},
            "models": [
                {"name": name, "backend_refs": [{**backend, "weight": 1}]} for name in models
            ],
        },
        "routing": {
            "modelCards": [{"name": name} for name in models],
            "decisions": [
                {
                    "name": "certified",
                    "priority": 100,
                    "rules": {"operator": "AND", "conditions": []},
                    **yaml.safe_load(decision(certificate, *models)),
                }
            ],
        },
    }
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    read = parser.parse_user_config(str(path))
    assert validator.validate_user_config(read) == []
    algorithm = read.decisions[0].algorithm
    assert algorithm.confidence.threshold == exported(*certify_thresholds(certificate))
    config["routing"]["decisions"][0]["algorithm"]["confidence"]["treshold"] = 0.5  # type: ignore[index]
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    with pytest.raises(parser.ConfigParseError, match="treshold"):
        parser.parse_user_config(str(path))
