"""How fast bounds, certificates and look-ups are, once the data is counted."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks import inputs
from benchmarks.peers import adapter, named
from benchmarks.row import Bar, Row
from benchmarks.sizes import Sizes
from benchmarks.timing import best_of, race
from pacbound import Tally, binomial_interval
from pacbound.claims.calibration import CLAIM

_DELTA = 0.01


def rows(sizes: Sizes) -> Iterator[Row]:
    yield _clopper_pearson(20, min(300, sizes.rounds), Bar(0.5e-3, "ours", "under 0.5 ms"))
    yield _clopper_pearson(sizes.rows, min(5, sizes.rounds), Bar(2.0, "ratio", "at most 2"))
    confidence, correct = inputs.confidences(sizes.rows)
    tally = Tally.count("calibration", confidence=confidence, correct=correct)
    certify = best_of(
        lambda: CLAIM.certify(tally, {"delta": _DELTA}),
        repeats=min(200, sizes.rounds),
    )
    yield Row(
        "certify 20 bins from their counts", certify, "s", bar=Bar(1e-3, "ours", "under 1 ms")
    )
    certificate = CLAIM.certify(tally, {"delta": _DELTA})
    look_up = best_of(
        lambda: certificate.interval(confidence), repeats=min(15, sizes.rounds)
    ) / len(confidence)
    yield Row(
        f"look up {sizes.rows:,} intervals",
        look_up,
        "s/row",
        bar=Bar(50e-9, "ours", "under 50 ns a row"),
    )


def _clopper_pearson(count: int, repeats: int, bar: Bar) -> Row:
    scipy, peer = adapter("scipy"), f"{named('scipy')} betaincinv, betainccinv (unchecked)"
    successes, trials = inputs.pairs(count)
    ours, theirs = race(
        lambda: binomial_interval(successes, trials, delta=_DELTA),
        lambda: scipy.clopper_pearson(successes, trials, _DELTA),
        repeats=repeats,
    )
    return Row(f"Clopper-Pearson intervals for {count:,} pairs", ours, "s", peer, theirs, bar)
