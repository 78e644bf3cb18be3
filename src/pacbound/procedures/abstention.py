"""The lowest confidence at which to answer, so that at most xi of the answers are wrong: starts at
ranks of the same rows.

The risk is conditional, P(wrong | answered), and a walk that starts at the top fails there on a few
rows. So there are several starts, placed where certain *numbers* of rows are answered.

Thresholds t = 0, 1, … go down from the first declared one. N_t rows are answered, E_t of them
wrongly, and r_t is the true risk; a threshold is bad if r_t > xi. Start s has a count k_s that was
fixed in advance, and joins at t_s = max{t: N_t < k_s}, the lowest threshold that answers *fewer*
than k_s rows, or at t = 0 if that answers k_s already. The level a is 0 at first; at each t it
keeps its value if t - 1 passed, else it falls to 0, and grows by delta' / J for every start that
joins, delta' = delta / (1 + delta). t passes if N_t > 0 and Upper(E_t, N_t, a) <= xi.

**Theorem.** The probability that any bad threshold passes is at most delta, for every law of scores
and errors, atoms and risks that rise with the score included.

*Proof.* Let t be the first bad threshold that passes, and u the bad one before it, which failed. So
a <= delta' w, w the share of the starts with N_{u+1} < k_s <= N_{t+1} (of all with k_s <= N_{t+1}
if t is the first bad one). (i) If u = t - 1, or t is the first bad one, w is a function of
(N_t, N_{t+1}), given which E_t is binomial (N_t, r_t) with r_t > xi: the chance to pass is at most
delta' w. (ii) Else u + 1 is good. Given y = N_t and N_{t+1}, let x = N_{u+1}. An error lies at or
above u + 1 with a probability that is at most that of a correct row, since r_{u+1} <= xi < r_t. So
P(x < k | E_t) rises in E_t, and the law of E_t given x < k has a likelihood ratio to the binomial
(y, xi) that rises. The randomised p-value, uniform under that binomial and at most a whenever t
passes, then has a rising density, which is at most 1 / (1 - v) at v. Start s counts only if
x < k_s, so the chance to pass is at most the sum of P(x < k_s) (delta' / J) / (1 - delta') over s:
E[w] delta' / (1 - delta'). Every start belongs to one bad t, so in all it is at most
delta' / (1 - delta') = delta. QED

What is not valid: any other function of the same scores as a start. Given all scores, E_t is no
binomial with rate r_t (already 1.04 delta with three cells and twelve rows).

The starts have the counts ceil(2^s ln(1/delta) / -ln(1 - xi)), s = 1 … J, up to n. Between two
occupied cells nothing changes until the lowest threshold of the run, where starts join, so two
tests in a run are enough (`abstention_walk`). In a run of one threshold they are a little stricter
than the theorem asks: the first is made without the starts that join there.

With groups that were fixed in advance, the rows of each are independent draws given the groups of
all rows, and each walk has delta divided by the number of groups that have rows.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from pacbound.procedures.abstention_walk import (
    FIRST,
    AbstentionDecision,
    Joining,
    Runs,
    decided,
    levels_of,
    start_counts,
    walk,
)

Integers = NDArray[np.int64]


def decide(
    cells: Integers,
    wrong: Integers,
    right: Integers,
    *,
    xi: float,
    delta: float,
    first: int = FIRST,
) -> AbstentionDecision:
    """The lowest threshold that is claimed for rows in rising `cells`, of which so many are `wrong`
    and `right`.

    With probability at least 1 - `delta` at most a share `xi` of the rows answered at it is wrong,
    and at every other threshold that is claimed.
    """
    runs, joining_of = _search(cells, wrong, right, xi, delta, first)
    return decided(runs, joining_of, xi=xi, level=_budget(delta))


def claimed(
    cells: Integers,
    wrong: Integers,
    right: Integers,
    *,
    xi: float,
    delta: float,
    first: int = FIRST,
) -> tuple[tuple[int, int], ...]:
    """The thresholds that `decide` claims, without the reasons of a refusal, which take longer."""
    runs, joining_of = _search(cells, wrong, right, xi, delta, first)
    return walk(runs, joining_of(runs), xi)


def _budget(delta: float) -> Fraction:
    return Fraction(delta) / (1 + Fraction(delta))


def _search(
    cells: Integers, wrong: Integers, right: Integers, xi: float, delta: float, first: int
) -> tuple[Runs, Callable[[Runs], Joining]]:
    def joining_of(runs: Runs) -> Joining:
        counts = start_counts(runs.rows, xi=xi, delta=delta)
        # How many starts have joined when so many rows are answered; the last run has none after
        # it, and no count is above its rows.
        joined = np.searchsorted(counts, runs.answered, side="right")
        return Joining(
            [int(joined[0]), *[0] * (joined.size - 1)],
            [*np.diff(joined).tolist(), 0],
            levels_of(_budget(delta), len(counts)),
        )

    return Runs.of(cells, wrong, right, first), joining_of
