"""The results in Markdown."""

from __future__ import annotations

from typing import Any

from experiments.cascade.splits import DELTA, LEVEL

CERTIFIED = {
    "exact": "certified, exact",
    "pair": "certified, pair of bounds",
    "product": "certified, the paper's product, mended",
}
SAID = {
    **CERTIFIED,
    "histogram": "histogram binning: means, not bounds",
    "softmax": "(1 - xi')-softmax",
    "temperature": "(1 - xi')-temperature scaling",
    "greedy_exact": "the paper's greedy search, exact",
    "greedy": "the paper's greedy search, product",
    "slow": "slow model alone",
}
HEAD = (
    "xi",
    "method",
    "guarantee",
    "exit rate",
    "cost",
    "error increase",
    "splits above xi",
    "shown above xi",
)
GUARANTEE = {**dict.fromkeys(CERTIFIED, "yes"), "slow": "nothing is lost"}

NOTES = {
    "means": (
        "Means ± standard deviation over random splits of the same rows, half to certify "
        f"(delta = {DELTA}) and half to test. The splits share rows: the spread is that of the "
        "split, not that of fresh samples."
    ),
    "above": (
        "Splits above xi: how often the test rows lost more than xi, their own bad luck included. "
        f"Shown above xi: how often an exact test of the test rows rejects, at level {LEVEL}, "
        "that the true loss is at most xi."
    ),
    "cost": (
        "Cost: multiply-accumulate operations as a share of the slow model's when it runs alone. A "
        "row that stays has paid for the models before as well."
    ),
    "temperature": "The temperature is fitted to the rows that all methods choose from.",
    "greedy": (
        "Greedy choice of one threshold after the other on the same rows carries no proof, and is "
        "never certified."
    ),
    "selected": (
        "The CIFAR-10 networks' checkpoints were probably selected on these very images. Their "
        "errors are then too low and the rows no fresh sample: those certificates illustrate the "
        "method and claim nothing for new images."
    ),
}


def markdown(parts: list[dict[str, Any]], command: str) -> str:
    """All parts, one table each, and what to know when reading them."""
    with_logits = len(parts) > 1
    notes = [
        note
        for key, note in NOTES.items()
        if with_logits or key not in ("temperature", "greedy", "selected")
    ]
    listed = "".join(f"- {note}\n" for note in notes)
    return f"# Cascades\n\n{''.join(map(_section, parts))}{listed}\nMade by `{command}`.\n"


def _section(part: dict[str, Any]) -> str:
    errors = ", ".join(f"{error:.2%}" for error in part["errors"])
    lines = [HEAD, ("---",) * len(HEAD)]
    lines += [
        _line(xi, name, result)
        for xi, methods in part["results"].items()
        for name, result in methods.items()
    ]
    table = "".join(f"| {' | '.join(line)} |\n" for line in lines)
    return (
        f"## {part['name']}\n\nErrors of the models on all {part['rows']:,} rows: "
        f"{errors}.\n\n{table}\n"
    )


def _line(xi: float | str, name: str, result: dict[str, Any]) -> tuple[str, ...]:
    rates = " + ".join(f"{rate:.1%}" for rate in result["exit_rates"])
    increase = f"{result['error_increase']:+.4f} ± {result['error_increase_sd']:.4f}"
    splits = len(result["splits"]["losses"])
    above = [f"{result[key]} of {splits}" for key in ("splits_above", "splits_shown_above")]
    return (
        f"{float(xi):g}",
        SAID[name],
        GUARANTEE.get(name, "none"),
        rates,
        f"{result['cost']:.3f}",
        increase,
        *above,
    )
