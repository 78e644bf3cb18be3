"""Every number on the pages that a reader meets first was measured, or says how.

`held` has, for each page, the phrases whose numbers come from a record: they are made from its JSON
here, and the page must have them to the letter. Blocks of code are run by `test_snippets`, and
tables that a script includes are its own. Any other number on these pages must be one of `PLAIN`:
a setting, a year, a version. So a number that nobody measured fails, and so does one that a new
measurement has changed.
"""

from __future__ import annotations

import json
import re
import runpy
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from benchmarks.duels import small_samples

from pacbound import calibrate
from pacbound.data import fashion_mnist

ROOT = Path(__file__).parents[2]


@cache
def record(name: str) -> Any:
    """The JSON of an exhibit, of a duel, or of the benchmarks."""
    return json.loads((ROOT / f"{name}.json").read_text(encoding="utf-8"))


def exhibit(name: str) -> Any:
    return record(f"experiments/results/{name}")


def duel(name: str) -> Any:
    return record(f"benchmarks/duels/{name}")["rows"]


def percent(share: float, digits: int = 0) -> str:
    return f"{100 * share:.{digits}f} %"


# ---- the pages


def readme() -> Iterator[str]:
    yield from _front()
    yield from headline()
    yield from _duels()


def index() -> Iterator[str]:
    found = exhibit("headline")
    saved = {name: percent(method["saved"]["mean"]) for name, method in found["methods"].items()}
    networks = len(exhibit("imagenet_fast_inference")["giga_macs"])
    yield (
        f"saves {saved['exact']} of the multiplications, with a certified loss of at most "
        f"{100 * found['settings']['xi']:g} points of accuracy; a cascade designed among "
        f"{networks} networks saves {saved['designed_4']}"
    )
    table = fashion_mnist()
    sample = table.split == 0
    yield f"on {len(sample):,} images of Fashion-MNIST"
    yield f"Here {sample.sum():,} of"
    right = table.prediction_fast[sample] == table.label[sample]
    found = calibrate(table.confidence_fast[sample], right, delta=0.01, n_bins=10)
    lowest = found.interval([0.75])[0, 0]
    yield f"it is right at least {percent(lowest)} of the time, on average over that bin"


def _front() -> Iterator[str]:
    found = runpy.run_path(str(ROOT / "tools" / "front_pictures.py"))["measured"]()
    early, lost = percent(found["early"]), 100 * found["lost"]
    yield f"{found['held_out']:,} held-out rows"
    yield f"On {found['new']:,} new images it answers {early} and loses {lost:.1f} points"


def headline() -> Iterator[str]:
    """The sentences about ImageNet."""
    found, paper = exhibit("headline"), exhibit("headline")["reported_by_the_paper"]
    saved = {name: method["saved"] for name, method in found["methods"].items()}
    spared, splits = found["cpu_time_saved"], len(found["seeds"])
    yield (
        f"saves {percent(saved['exact']['mean'])} of the multiplications and "
        f"{percent(spared['exact'])} of the CPU time"
    )
    yield f"a certified loss of at most {100 * found['settings']['xi']:g} points of accuracy"
    yield f"reports {percent(paper['saved'])} and {percent(paper['cpu_time_saved'])}"
    networks = len(exhibit("imagenet_fast_inference")["giga_macs"])
    design = saved["designed_4"]
    yield (
        f"among {networks} networks saves {percent(design['mean'])} ({100 * design['low']:.0f} to "
        f"{percent(design['high'])} over {splits} splits of the same images)"
    )
    never, instead = found["splits_that_never_ask_the_slow_network"], found["instead"]
    yield (
        f"In {never} of them it never asks ResNet-101: the others replace it, and "
        f"{instead['network']} alone would save {percent(instead['saved_alone'])}"
    )
    timed = percent(spared["designed_timed"])
    yield f"A cascade designed among the timed networks saves {timed} of the CPU time."


def _duels() -> Iterator[str]:
    tables = duel("pac_labels")
    ours = [row["ours"]["saved"] for row in tables]
    best = [
        max(one["saved"] for one in row["theirs"] if one["bound"] == "betting") for row in tables
    ]
    shares = [", ".join(f"{100 * share:.0f}" for share in each) for each in (ours, best)]
    yield f"expert labels saved, {len(tables)} tables | {shares[0]} % | {shares[1]} % |"
    fewer = [row["fewer"] for row in duel("bargain")]
    yield (
        f"calls of the slow model, {len(fewer)} settings | {100 * min(fewer):.0f} to "
        f"{percent(max(fewer))} fewer |"
    )
    single = [row for row in duel("trust_or_escalate") if row["judges"] == 1]
    won = [row["ours"]["coverage"] > row["paper"]["coverage"] for row in single]
    yield (
        f"verdicts that stand, {len(won)} settings | more in {sum(won)} | more in "
        f"{len(won) - sum(won)} |"
    )
    methods = exhibit("headline")["methods"]
    exact, mended = (methods[name]["saved"]["mean"] for name in ("exact", "product"))
    yield f"multiplications saved | {percent(exact)} | {percent(mended)} |"


def results_safe_planning() -> Iterator[str]:
    found = exhibit("safe_planning")
    drives, tasks = found["drives"], found["tasks"]
    alone = [1 - tasks[name]["unsafe"] / tasks[name]["rollouts"] for name in tasks]
    yield f"| about 30 % | {' | '.join(map(percent, alone))} |"
    driven = {
        (name, row["xi"], row["method"]): row for name in drives for row in drives[name]["results"]
    }
    unsafe = driven["depth", 0.1, "exact"]
    yield f"was unsafe in {percent(unsafe['unsafe'] / unsafe['rollouts'], 1)} of these rooms"
    yield from _ablations(tasks)


def _ablations(tasks: Any) -> Iterator[str]:
    def cell(name: str, xi: float, method: str) -> Any:
        return next(
            row
            for row in tasks[name]["ablation"]
            if (row["panel"], row["xi"], row["method"]) == ("xi", xi, method)
        )

    half = percent(1 - cell("depth", 0.1, "naive")["safety"][0], 1)
    yield f"in every draw where less than {half} was asked for"


def results_fast_inference() -> Iterator[str]:
    macs = exhibit("imagenet_fast_inference")["giga_macs"]
    share = macs["resnet18_pytorch"] / macs["resnet101_pytorch"]
    yield f"ResNet-18 costs {percent(share)} of ResNet-101"
    yield f"{len(macs)} networks on the 50,000 validation images"
    binning = exhibit("imagenet_fast_inference")["methods"]["histogram"]["splits_above_xi"]
    assert 40 <= binning <= 60, "about half of the splits"


def results_early_exit() -> Iterator[str]:
    found, timing = exhibit("early_exit"), exhibit("early_exit_timing")["results"]
    yield f"The first {found['chosen_on']:,} test images then choose"
    yield f"Only the other {2 * found['test_images']:,} certify and test"
    sizes = [row["batch"] for row in timing]
    yield f"batches of {min(sizes)} and of {max(sizes)} images"
    published, told = (
        exhibit("imagenet_fast_inference")["paper"],
        page("experiments/results/early_exit.md"),
    )
    ours, slow = published["product"][1], published["slow"][1]
    assert f"{ours:.2f} of {slow:.2f} billion: {ours / slow:.0%}" in told
    saved = exhibit("headline")["reported_by_the_paper"]["cpu_time_saved"]
    assert f"85.58 of 214.31 µs: {1 - saved:.0%}" in told


def results_calibration() -> Iterator[str]:
    found = exhibit("imagenet_calibration")
    settings, odd = found["settings"], found["networks"]["inception_v3_pytorch"]
    large, small = settings["sizes"]
    yield f"{settings['n_bins']} bins of equal width, `delta` = {settings['delta']}"
    yield f"calibration on {large:,} images ({small:,} in the appendix)"
    yield f"tests on {settings['test_rows']:,}"
    yield f"is {100 * (odd['confidence'] - odd['accuracy']):.0f} points over-confident"


def results_validity() -> Iterator[str]:
    found = exhibit("validity")
    yield f"{found['settings']['sets']:,} calibration sets show"
    tight = found["laws"]["A law that is made to hurt"]["searched_exact"]
    assert round(tight["violations"] / tight["sets"] / found["settings"]["delta"]) == 7
    assert "seven times as often" in page("docs/results/validity.md")


def results_routing() -> Iterator[str]:
    pairs = {pair["name"].split(",")[0]: pair for pair in exhibit("routing")["pairs"]}
    at = {name: 100 * pair["magic"]["0.9"]["loss"] for name, pair in pairs.items()}
    yield f"0.9 loses {at['IMDB']:.1f} points on IMDB and {at['YELP']:.1f} on YELP"
    tuned = [
        cell["tuned on the sample"]["violations"] / cell["tuned on the sample"]["draws"]
        for pair in pairs.values()
        for cell in pair["chosen"].values()
    ]
    broken = [share for share in tuned if share > 0]
    yield (
        f"in {100 * min(broken):.0f} to {percent(max(broken))} of the samples, in {len(broken)} of "
        f"the {len(tuned)} settings"
    )


def results_data() -> Iterator[str]:
    runs = {claim["runs"] for claim in exhibit("data_as_it_is")["wrong_claims"]}
    yield f"With {runs.pop()} runs"
    assert not runs


def results_clusters() -> Iterator[str]:
    claims = {(one["way"], one["target"]): one for one in exhibit("clusters")["claims"]}
    among, first = (claims[way, 0.99]["median_trials"] for way in ("among", "first"))
    yield f"{among:.0f} instead of {first:.0f}"
    assert claims["first", 0.99]["refused"] == claims["first", 0.99]["runs"]
    yield "certifies a target of 99 %"


def comparison() -> Iterator[str]:
    yield from _mapie()
    yield from _netcal()
    yield from _bargain()
    (judged,) = {row["rows"] for row in duel("trust_or_escalate")}
    yield f"On the {judged} public judgements"
    yield small_samples.short(duel("small_samples"))
    yield from small_samples.lost(duel("small_samples"))
    broken = [
        case["methods"]["observed risk"]["violations"] for case in exhibit("abstention")["cases"]
    ]
    yield f"({min(broken)} to {max(broken)} of 300,"


MEMORY = ": rise of the peak resident memory, in a process of its own"


def benchmark(work: str, peer: str) -> Any:
    """The row of the benchmarks about `work`, against a peer with `peer` in its name."""
    found, before = [], ""
    for row in record("benchmarks/results")["rows"]:
        before = before if row["work"].startswith("the same") else row["work"]
        name = row["work"].replace("the same", before, 1)
        if name == work and peer in (row["peer"] or ""):
            found.append(row)
    (only,) = found
    return only


def _mapie() -> Iterator[str]:
    holm, fixed = "(bonferroni_holm)", "(fixed_sequence)"
    threshold = "control a threshold, 1,000,000 rows, xi = 0.05, delta = 0.01"
    time, memory = benchmark(threshold, holm), benchmark(threshold + MEMORY, holm)
    yield (
        f"| a threshold from 1,000,000 rows | {1e3 * time['ours']:.0f} ms, "
        f"{memory['ours'] / 1e6:.0f} MB more memory | {time['theirs']:.1f} s, "
        f"{memory['theirs'] / 1e6:.0f} MB more |"
    )
    stopped = "share of rollouts stopped, threshold from {} rows"
    few, few_fixed = (benchmark(stopped.format("1,000"), which) for which in (holm, fixed))
    yield (
        f"threshold from 1,000 rows (less is better) | {few['ours']:.3f} | {few['theirs']:.3f} "
        f"(Bonferroni-Holm), {few_fixed['theirs']:.3f} (fixed sequence) |"
    )
    many, many_fixed = (benchmark(stopped.format("10,000"), which) for which in (holm, fixed))
    yield (
        f"| the same from 10,000 rows | {many['ours']:.3f} | {many['theirs']:.3f}, "
        f"{many_fixed['theirs']:.3f} |"
    )


def _netcal() -> Iterator[str]:
    probabilities = "1,000,000 × 10 float32 probabilities"
    fit = benchmark(f"count {probabilities} (PACCalibrator.fit)", "netcal")
    ece = benchmark(f"ECE of {probabilities}, 20 bins", "netcal")
    size = benchmark("installed size of pacbound and all that it needs", "netcal")
    counted = "count 1,000,000 × 10 probabilities into 20 bins"
    for text, row in ((counted, fit), ("ECE of the same", ece)):
        yield f"| {text} | {1e3 * row['ours']:.0f} ms | {1e3 * row['theirs']:.0f} ms |"
    yield (
        f"| installed size, with all that it needs | {size['ours'] / 1e6:.0f} MB | "
        f"{size['theirs'] / 1e6:,.0f} MB |"
    )


def _bargain() -> Iterator[str]:
    rows = duel("bargain")
    assert {row["draws"] for row in rows} == {100}
    fewer = [row["fewer"] for row in rows]
    yield (
        f"{100 * min(fewer):.0f} to {percent(max(fewer))} fewer slow calls in the {len(fewer)} "
        "settings"
    )


def benchmarks_page() -> Iterator[str]:
    yield from _pac_labels()
    yield from _trust_or_escalate()
    yield from _fewer_calls()
    shares = [row["share"] for row in duel("graded") if row["name"].startswith("5 levels")]
    yield f"{100 * min(shares):.0f} to {percent(max(shares))} of the exits by betting"
    yield from _parquet()


def _pac_labels() -> Iterator[str]:
    rows = duel("pac_labels")
    (imagenet,) = (row for row in rows if row["name"] == "imagenet")
    betting = [one for one in imagenet["theirs"] if one["bound"] == "betting"]
    authors = min(betting, key=lambda one: abs(one["K"] - 0.1 * imagenet["records"]))
    yield f"saves {percent(authors['saved'], 1)} with the authors' K, as in their paper (59.64 %)"
    broken = [row["ours"]["violations"] / row["draws"] for row in rows]
    yield f"{100 * min(broken):.1f} to {percent(max(broken), 1)} of its draws exceed"
    normal = [[one for one in row["theirs"] if one["bound"] == "normal"] for row in rows]
    smallest = [min(one, key=lambda each: each["K"]) for one in normal]
    most = max(one["violations"] / row["draws"] for one, row in zip(smallest, rows, strict=True))
    yield f"with the smallest K it breaks `xi` in up to {percent(most)} of the draws"


def _trust_or_escalate() -> Iterator[str]:
    rows = duel("trust_or_escalate")
    yield f"the {rows[0]['rows']} public judgements of three judges"

    def of(name: str, xi: float) -> Any:
        (row,) = (row for row in rows if row["name"] == name and row["xi"] == xi)
        return row

    for xi in (0.1, 0.15):
        row = of("Mistral-7B", xi)
        assert row["released"]["violations"] > 0.95 * row["draws"]


def _fewer_calls() -> Iterator[str]:
    rows = duel("bargain")
    large = [row for row in rows if row["records"] >= 4_000]
    many = sum(row["fewer"] >= 0.15 for row in large)
    yield (
        f"In {many} of the {len(large)} settings with at least 4,000 records the calls are fewer "
        "by 15 % or more"
    )
    (loose,), (strict,) = (
        [row for row in large if row["fewer"] < 0.15 and row["delta"] == delta]
        for delta in (0.1, 0.01)
    )
    assert loose["name"].startswith("FERPLUS")
    assert strict["name"].startswith("FERPLUS")
    yield f"on FERPLUS by {100 * loose['fewer']:.1f} and {percent(strict['fewer'], 1)}."
    assert {row["draws"] for row in rows} == {100}


def _parquet() -> Iterator[str]:
    command = "pacbound calibrate, Parquet of {:,} rows, whole process"
    more, most = (benchmark(command.format(rows), "duckdb") for rows in (10**7, 10**8))
    slope = benchmark(
        "pacbound calibrate, Parquet: each further row, from 10,000,000 to 100,000,000", "from"
    )
    assert not slope["met"]
    bare = (most["theirs"] - more["theirs"]) / 9e7
    yield (
        f"from 10 to 100 million rows the command takes {1e9 * slope['ours']:.1f} ns a row, a bare "
        f"query {1e9 * bare:.1f}."
    )


HELD: dict[str, Callable[[], Iterator[str]]] = {
    "README.md": readme,
    "docs/index.md": index,
    "docs/benchmarks.md": benchmarks_page,
    "docs/comparison.md": comparison,
    "docs/results/calibration.md": results_calibration,
    "docs/results/clusters.md": results_clusters,
    "docs/results/data.md": results_data,
    "docs/results/early-exit.md": results_early_exit,
    "docs/results/fast-inference.md": results_fast_inference,
    "docs/results/routing.md": results_routing,
    "docs/results/safe-planning.md": results_safe_planning,
    "docs/results/validity.md": results_validity,
}

PLAIN: dict[str, set[str]] = {
    "README.md": {"1", "2.0", "2021"},
    "docs/index.md": {"0.7", "0.8", "0.9", "90", "2021", "3.11"},
    "docs/benchmarks.md": {
        "0.005",
        "0.01",
        "0.1",
        "0.5",
        "1",
        "100",
        "2024",
        "2025",
        "5",
        "500",
        "65,537",
        "90",
        "95",
    },
    "docs/comparison.md": {"0", "0.005", "0.7", "1", "90", "2026"},
    "docs/results/calibration.md": {"0", "1", "20,000", "2,000"},
    "docs/results/clusters.md": set(),
    "docs/results/data.md": set(),
    "docs/results/early-exit.md": {"0.02", "2", "4"},
    "docs/results/fast-inference.md": {"1", "50,000"},
    "docs/results/routing.md": {"0.02"},
    "docs/results/safe-planning.md": {
        "0.01",
        "0.03",
        "0.05",
        "0.1",
        "0.2",
        "0.5",
        "0.75",
        "1,000",
        "10",
        "100",
        "12",
        "150",
        "2,000",
        "2.1.0",
        "20,000",
        "200",
        "30",
        "5,000",
        "500",
        "60",
        "64",
        "80",
        "96",
    },
    "docs/results/validity.md": {"1.001", "3"},
}
"""Settings, years, versions: what no measurement changes."""


def page(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def free_numbers(text: str) -> list[str]:
    """The numbers in a text, without those of code, addresses, names and what scripts include."""
    for hidden in (
        r"(?ms)^```.*?^```[ ]*$",
        r"(?m)^--8<--.*$",
        r"(?s)<!--.*?-->",
        r"`[^`]*`",
        r"arXiv:[\d.]+",
        r"\]\([^)]*\)",
        r"https?://\S+",
        r"\b(?:[A-Z]\w*|scikit-learn) \d+(?:\.\d+)+",  # MAPIE 1.6
        r"(?:MAPIE|netcal|BARGAIN|scikit-learn|judgekeeper|semantic-router) \d+(?:\.\d+)+",
        r"\b[A-Za-z][A-Za-z+-]*-?\d[\w.-]*",  # ResNet-101, Qwen3-32B
    ):
        text = re.sub(hidden, "", text)
    return re.findall(r"\d[\d,.]*\d|\d", text)


@pytest.mark.parametrize("name", HELD)
def test_a_page_has_the_numbers_of_the_records_and_no_others(name: str) -> None:
    text = page(name)
    phrases = list(HELD[name]())
    assert [phrase for phrase in phrases if phrase not in text] == []
    for phrase in phrases:
        text = text.replace(phrase, "")
    assert sorted(set(free_numbers(text)) - PLAIN[name]) == []


def test_a_number_is_found_in_prose_and_not_in_code_or_names() -> None:
    text = "saves 84 % of ResNet-101, `n=5`, [x](a1.md), 1,000 rows, 0.5\n```\n7\n```\n"
    assert free_numbers(text) == ["84", "1,000", "0.5"]
