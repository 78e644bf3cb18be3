"""What claims assume, by names that documents hold: the data cannot prove these.

Their sentences stand once, in the verifier of the standard library. Where rows were drawn, what is
assumed of all rows is replaced by what is assumed of what they were drawn from; the sentences that
say what the claim is then about are here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from pacbound.says import Sentence, Value, confidence, with_counts
from pacbound.tally.draws import Drawn
from pacbound.tally.grades import Graded
from pacbound.tally.questions.question import OVERLAPPING, Scope

if TYPE_CHECKING:
    from pacbound.claims.certificate import Certificate

# What is assumed beside all else where outcomes were graded.
ON_LEVELS: Final = "graded-on-levels"

# What every claim assumes of a sample of rows whose number was fixed beforehand.
SAMPLE: Final = (
    "independent-rows",
    "untouched-rows",
    "asked-beforehand",
    "rows-unseen",
    "every-row-counts",
)
_ABOUT_ROWS: Final = frozenset(["independent-rows", "independent-rollouts"])

# What a rule that fixes the number of rows may see of them: more where each is in one group, which
# says in which test it is tried; nothing of bins where a row is tried in several tables.
_WITH_GROUPS: Final = {
    "rows-unseen": "rows-by-group",
    "rows-by-bin": "rows-by-bin-and-group",
    "stopped-by-outcome": "stopped-by-outcome-and-group",
}
_OF_THE_SAME_ROWS: Final = {"rows-by-bin": "rows-unseen"}
_OF_CLUSTERS: Final = {
    **dict.fromkeys((*_WITH_GROUPS, *_WITH_GROUPS.values(), "rollouts-unseen"), "clusters-unseen"),
    # That rollouts are without a shield is assumed of those of clusters, too.
    "independent-rollouts": "rollouts-without-shield",
}
_AMONG_ONE: Final = dict.fromkeys(
    ("stopped-by-outcome", "stopped-by-outcome-and-group"), "stopped-by-clusters"
)


def assumed_of_groups(ids: Iterable[str], scope: Scope) -> tuple[str, ...]:
    """The names of what is assumed, where tables are of these groups."""
    instead = _OF_THE_SAME_ROWS if scope in OVERLAPPING else _WITH_GROUPS
    return (*(instead.get(name, name) for name in ids), "groups-beforehand")


def assumed_of_drawn(ids: Iterable[str], drawn: Drawn, act: str = "") -> tuple[str, ...]:
    """The names of what is assumed, where rows were drawn as `drawn` says; `act` is what the rows
    are called that a claim picks by their score.
    """
    if drawn.by == "weights":
        weighted = (f"{name}-weighted" if name in _ABOUT_ROWS else name for name in ids)
        return (*weighted, "exact-weights", "same-labels-given-inputs", "one-seed")
    per = [_claim_per(drawn)]
    per += ["claim-per-cluster-answered-or-not"] if act and drawn.bound is None else []
    # What a rule sees of one outcome says something about the other.
    instead = {**_OF_CLUSTERS, **(_AMONG_ONE if len(drawn.among) == 1 else {})}
    kept = (instead.get(name, name) for name in ids if name != "independent-rows")
    return ("independent-clusters", *kept, *per, "one-seed")


def _claim_per(drawn: Drawn) -> str:
    """The name of what a claim is about, where rows were drawn by clusters."""
    if not drawn.apart:
        return _CLAIM_PER[bool(drawn.among), drawn.bound is None]
    if drawn.among:
        return "claim-per-trial-of-cluster-and-group"
    return f"claim-per-cluster-and-{part_of_cluster(drawn)}"


def part_of_cluster(drawn: Drawn) -> str:
    """What of a cluster one row was drawn for each of: "group" or "bin"; empty for the whole."""
    return drawn.each.rpartition("-")[2] if drawn.apart else ""


def as_graded(graded: Graded | None) -> str:
    """By whom answers were graded, as a sentence has it."""
    return f"as graded by {graded.by}" if graded and graded.by else "as graded"


def in_plain_words(
    certificate: Certificate, clause: str, values: Mapping[str, Value], rows: str = "rows"
) -> Sentence:
    """What is certified, or not shown, in a plain sentence: a rate in the long run, on data of the
    kind that was counted. `clause` says it, and may count a share as {often xi} does.
    """
    filled = with_counts(values)
    if not certificate.certified:
        return Sentence(f"These {rows} do not show that {clause}.", filled)
    return Sentence(
        f"In the long run, {_like_these(certificate.draw, rows)}"
        f"{counted_once(certificate.draw, certificate.by.act)}, {clause} ({{confidence}} "
        "confidence).",
        {**filled, "confidence": confidence(certificate.delta)},
    )


def _like_these(drawn: Drawn | None, rows: str) -> str:
    """What a claim is about, as a plain sentence begins."""
    begin = "on data like these" if rows == "rows" else "in runs like these"
    if drawn is None:
        return begin
    if drawn.by == "weights":
        return "on data as the weights describe it"
    return begin


def counted_once(drawn: Drawn | None, act: str = "") -> str:
    """What weighs alike where one row of each cluster was drawn, as a sentence goes on; `act` is
    what the rows are called that a claim picks by their score.
    """
    if drawn is None or drawn.by != "clusters" or drawn.bound is not None:
        return ""
    every = f" in every {part_of_cluster(drawn)}" if drawn.apart else ""
    return f", if each cluster counts once{every}" + (f", {act} or not" if act else "")


def described_grading(graded: Graded | None) -> list[str]:
    """The lines of a summary that say how outcomes were graded."""
    if graded is None:
        return []
    worst, best = graded.scale[0], graded.scale[-1]
    by = f"by {graded.by}" if graded.by else "by a judge that nobody named (graded_by)"
    steps = f" in {len(graded.scale) - 1} steps" if graded.declared else ""
    return [f"Graded from {worst:g} to {best:g}{steps} {by}."]


_CLAIM_PER = {
    (False, True): "claim-per-cluster",
    (False, False): "claim-per-row-of-clusters",
    (True, True): "claim-per-cluster-with-trials",
    (True, False): "claim-per-trial-of-clusters",
}


def described_draw(drawn: Drawn, n: int, act: str = "") -> list[str]:
    """The lines of a summary of n rows that say what the claim is about; `act` is what the rows are
    called that it picks by their score.
    """
    words = _APART if drawn.apart else _WORDS
    said = words[drawn.by, bool(drawn.among), drawn.bound is None].format(**_numbers(drawn, n))
    return [said, *_spanning(drawn), *_picked(drawn, act), *_other_rows(drawn)]


def _spanning(drawn: Drawn) -> list[str]:
    """How many clusters have rows in several groups."""
    if drawn.spanning is None:
        return []
    shares = "Shares over all drawn rows are averages over clusters and groups. "
    ids = (
        " If these are ids that repeat, such as patient 7 of two hospitals, count again with site "
        "and number together."
    )
    return [
        f"{shares * drawn.apart}{drawn.spanning:,} of {drawn.units:,} clusters have rows in "
        f"several groups.{ids * bool(drawn.spanning)}"
    ]


def _picked(drawn: Drawn, act: str) -> list[str]:
    """What a row weighs where a claim picks rows by their score."""
    if not act or drawn.by != "clusters" or drawn.bound is not None:
        return []
    inside = " in its group" if drawn.apart else ""
    return [
        f"Each row weighs one over the number of rows of its cluster{inside}, {act} or not. For "
        f"the share among all rows that are {act} declare cluster_bound, the most rows that a "
        "cluster can have."
    ]


def described_seed(drawn: Drawn | None) -> list[str]:
    """The line of a summary that says how to draw the same rows again, and what not to do."""
    if drawn is not None and drawn.seed is not None:
        return [seed_line(drawn.seed, "draw the same rows", fresh=drawn.fresh)]
    return []


def seed_line(seed: int, again: str, *, fresh: bool) -> str:
    """What a seed is for, and that it is one."""
    if fresh:
        return (
            f"Seed {seed} was drawn for this call; pass seed={seed} to {again} again. Another "
            "call draws another seed: to try several voids the claim."
        )
    return (
        f"Seed {seed}: pass seed={seed} to {again} again. It must have been drawn at random, once, "
        "without sight of the rows: to try several voids the claim."
    )


def _other_rows(drawn: Drawn) -> list[str]:
    """What shares of rows are, where only those of some outcomes were drawn."""
    if not drawn.among:
        return []
    counted = f"All {drawn.others:,} other rows were counted as they are. " if drawn.others else ""
    return [
        f"{counted}A share of all rows weighs the drawn ones by how many rows they stand for; it "
        "is not certified."
    ]


def one_of_many(used: str, key: str, what: str) -> str:
    """The warning beside a claim that rows were drawn for."""
    return f"{used}: another {key} gives another {what}; trying several voids the claim."


def rows_to_take_in(drawn: Drawn | None, act: str = "") -> str | None:
    """What a monitor must be fed where the claim is about rows that were drawn; None if about all
    rows in use, as they come. `act` is what the rows are called that the claim picks by their
    score.
    """
    if drawn is None:
        return None
    numbers = _numbers(drawn, 0)
    every = f" Pass every row of a cluster, {act} or not: its row is drawn among all of them."
    every = every if act and drawn.by == "clusters" else ""
    if drawn.apart:
        return _APART_TO_TAKE_IN.format(**numbers) + every
    return _TO_TAKE_IN[drawn.by, bool(drawn.among), drawn.bound is None].format(**numbers) + every


def kind_of_rows(drawn: Drawn) -> str:
    """What was drawn, as a sentence has it: "positive row"; "row", where it was any."""
    return " ".join([*([" or ".join(dict(drawn.among))] if drawn.among else []), "row"])


def _numbers(drawn: Drawn, n: int) -> Mapping[str, str]:
    bound = drawn.bound or 1.0
    return {
        "rows": f"{drawn.rows:,}",
        "units": f"{drawn.units:,}",
        "kept": f"{n - drawn.others:,}",
        "expected": f"{drawn.candidates / bound:,.0f}",
        "kind": kind_of_rows(drawn),
        "ones": " and one ".join(dict(drawn.among)),
        "bound": "" if drawn.bound is None else f"{drawn.bound:g}",
        "part": part_of_cluster(drawn),
        "parts": _PARTS[drawn.each],
    }


# What of a cluster one row was drawn for each of.
_PARTS = {
    "cluster": "cluster",
    "cluster-and-group": "group",
    "cluster-and-bin": "bin",
    "cluster-group-and-bin": "bin of each group",
}


_WORDS = {
    ("clusters", False, True): (
        "Drawn: one row from each of {units} clusters, of {rows} rows. The claim is about a random "
        "row of a random cluster, not about the rate per row."
    ),
    ("clusters", False, False): (
        "Drawn: one row from each of {units} clusters, of {rows} rows, kept with probability size "
        "/ {bound}: {kept} were kept, and {expected} were expected. The claim is about a random "
        "row."
    ),
    ("clusters", True, True): (
        "Drawn: one {ones} row from each cluster that has any, {kept} in all, of {units} clusters "
        "with {rows} rows. The claim is about a random {kind} of a random cluster that has one, "
        "not about the rate per row."
    ),
    ("clusters", True, False): (
        "Drawn: one {ones} row from each cluster that has any, of {units} clusters with {rows} "
        "rows, kept with probability number of such rows / {bound}: {kept} were kept, and "
        "{expected} were expected. The claim is about a random {kind}."
    ),
    ("weights", False, False): (
        "Drawn: these rows from {rows}, each kept with probability weight / {bound}. The claim is "
        "about the distribution that the weights describe, and holds only if they are exact: "
        "estimated weights carry no guarantee."
    ),
}

# The same where one row was drawn for each group or bin.
_APART = {
    ("clusters", False, True): (
        "Drawn: one row from each of {units} clusters for each {parts} in which it has any, {kept} "
        "in all, of {rows} rows. In each {part} the claim is about a random row of it from a "
        "random cluster that has one there, not about the rate per row."
    ),
    ("clusters", True, True): (
        "Drawn: one {ones} row from each cluster for each {parts} in which it has any, {kept} in "
        "all, of {units} clusters with {rows} rows. In each {part} the claim is about a random "
        "{kind} of a random cluster that has one there, not about the rate per row."
    ),
}
_APART_TO_TAKE_IN = (
    "In each {part} the claim is about a random {kind} of it from a random cluster that has one "
    "there: pass clusters, all rows of one in one call. One {kind} of each cluster is then drawn "
    "for each {parts}, and no cluster twice."
)

_ONE_EACH = (
    "one {kind} of each cluster, drawn before {unseen}{kept}, and no cluster twice. To have it "
    "drawn, pass clusters, all rows of one in one call. Rows of one cluster depend on each other: "
    "all of them would ring falsely."
)
_BEFORE = {"kind": "row", "unseen": "its outcome is known"}
_AMONG = {"kind": "{kind}", "unseen": "its score is looked at"}
_RANDOM = " and kept with probability {} / {{bound}}"

_TO_TAKE_IN = {
    ("clusters", False, True): "The claim is about a random row of a random cluster: take in "
    + _ONE_EACH.format(**_BEFORE, kept=""),
    ("clusters", False, False): "The claim is about a random row, counted by clusters: take in "
    + _ONE_EACH.format(**_BEFORE, kept=_RANDOM.format("size")),
    ("clusters", True, True): "The claim is about a random {kind} of a random cluster that has "
    "one: take in " + _ONE_EACH.format(**_AMONG, kept=""),
    ("clusters", True, False): "The claim is about a random {kind}, counted by clusters: take in "
    + _ONE_EACH.format(**_AMONG, kept=_RANDOM.format("number of such rows")),
    ("weights", False, False): (
        "The claim is about the distribution that the weights describe: take in rows of that one."
    ),
}
