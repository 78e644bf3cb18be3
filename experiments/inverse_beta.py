"""How often SciPy's inverse incomplete beta function is wrong, beside the verified bound: `python
-m experiments.inverse_beta`.

Prints the figures of docs/proofs.md: upper bounds for 998, 999 and 1,000 successes at random
numbers of trials, five levels.
"""

from __future__ import annotations

import numpy as np
import scipy
from scipy.special import betainccinv

from pacbound import binomial_upper

LEVELS = (0.05, 1e-2, 1e-3, 1e-6, 1e-9)


def main() -> None:
    """Print a line for each count and level."""
    rng = np.random.default_rng(0)
    trials = np.unique(rng.integers(1_100, 1_000_000, size=20_000))
    print(f"SciPy {scipy.__version__}, {trials.size:,} numbers of trials below 10^6")
    print("successes  level    off by > 1e-4   too high   too low (a false bound)")
    for successes in (998, 999, 1_000):
        for level in LEVELS:
            textbook = betainccinv(successes + 1, trials - successes, level)
            error = textbook / binomial_upper(successes, trials, delta=level) - 1
            off = np.abs(error) > 1e-4
            print(
                f"{successes:9}  {level:6g}  {off.sum():14}  {(error > 1e-4).sum():9}  "
                f"{(error < -1e-4).sum():8}"
            )


if __name__ == "__main__":
    main()
