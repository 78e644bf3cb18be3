r"""Put a certified threshold into the configuration of vLLM semantic-router.

    python examples/semantic_router.py router.json --small small-model --large large-model

prints `modelRefs` and `algorithm` of a decision, to be pasted below `routing.decisions`. Written
for vllm-sr 0.4.0; needs pacbound alone.

The router's confidence is c = (m + 3) / 3, cut to [0, 1], where m is the mean log-probability of
the tokens of an answer; it keeps the small model's answer where c is at least `threshold`. The
certificate must be of the score exp(m), which `score` computes.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path

from pacbound import load_certificate
from pacbound.claims.cascade import CascadeCertificate

RANGE = 3.0
"""The router takes mean log-probabilities from -3 to 0 for confidences from 0 to 1."""

MARGIN = 1e-9
"""Added to the mean log-probability: far above what sums and quotients of floats lose, on the side
of the large model."""


def score(logprobs: Sequence[float]) -> float:
    """The confidence of an answer whose tokens have these log-probabilities: exp of their mean."""
    return min(1.0, math.exp(math.fsum(logprobs) / len(logprobs))) if len(logprobs) else 0.0


def exported(threshold: float) -> float:
    """What to write as the router's threshold, so that it keeps an answer of the small model only
    where `score` is at or above the certified one.
    """
    if not 0 <= threshold <= 1:
        raise SystemExit("Nothing was certified: the small model may answer nothing.")
    # A threshold of 0 in the configuration would be taken for none, and keep every answer.
    least = max(math.log(threshold), -RANGE) if threshold else -RANGE
    confidence = (least + MARGIN + RANGE) / RANGE
    if confidence > 1:
        raise SystemExit(
            f"The threshold {threshold!r} is too close to 1 for the router to tell: certify with "
            "a larger xi, or route with AsyncCascade."
        )
    return confidence


def decision(certificate: Path, small: str, large: str) -> str:
    """The part of a decision that routes as the certificate allows, as YAML."""
    loaded = load_certificate(certificate)
    if not isinstance(loaded, CascadeCertificate) or loaded.groups or loaded.exits != 1:
        raise SystemExit(
            f"{certificate}: the router has one threshold for all requests: expected a cascade of "
            "two models without groups."
        )
    (threshold,) = loaded.thresholds_for_use().tolist()
    return f"""\
# {certificate.name}: xi = {loaded.xi}, delta = {loaded.delta}
modelRefs:
  - model: {json.dumps(small)}
    use_reasoning: false
  - model: {json.dumps(large)}
    use_reasoning: false
algorithm:
  type: confidence
  confidence:
    confidence_method: avg_logprob
    threshold: {exported(threshold)!r}
    escalation_order: declared
    token_filter: all
    on_error: fail
"""


def main() -> int:
    """Print what the arguments ask for."""
    parser = argparse.ArgumentParser(description="Write a certified threshold for vllm-sr.")
    parser.add_argument("certificate", type=Path)
    parser.add_argument("--small", required=True, help="Its name in the configuration.")
    parser.add_argument("--large", required=True, help="Its name in the configuration.")
    options = parser.parse_args()
    sys.stdout.write(decision(options.certificate, options.small, options.large))
    return 0


if __name__ == "__main__":
    sys.exit(main())
