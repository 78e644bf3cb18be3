"""A cascade certificate in words, in numbers and in pictures.

The loss is not monotone in the thresholds, so these are written with all their digits: no other
number carries the guarantee.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from pacbound.claims.assumptions import as_graded, in_plain_words
from pacbound.claims.cascade.certificate import CascadeGroup
from pacbound.claims.tables import noted_labels
from pacbound.figure import Figure
from pacbound.figures import Named
from pacbound.figures.walk import ExitWalk, loss_along_walk
from pacbound.procedures.cascade import CascadeRefusal
from pacbound.procedures.joint_walk import top_of
from pacbound.says import Quantity, Says, Sentence, Value, confidence, count, share, with_counts
from pacbound.stats.binomial import binomial_sf
from pacbound.tally.grades import Graded

if TYPE_CHECKING:
    from pacbound.claims.cascade.certificate import CascadeCertificate

# Exits seem to beat the slow model if so many of the rows on which only one of the two is right
# would be theirs with at most this chance, were either equally likely to be right (sign test).
SEEM_TO_BEAT: Final = 1e-3

_SCORE: Final = (
    "Use a score that separates them (a temperature, logits in float64, another model's), or leave "
    "that exit out."
)
_SATURATED: Final = (
    "Of the rows with score 1.0, {losses} lose and {gains} gain by exiting early, of {n} rows in "
    "all"
)
_DIFFERING: Final = "{differ} of {n} rows have score 1.0 and another answer than the slow model's"
_UNLABELLED: Final = " ({unlabelled} of the losses only because they have no label)"
_BREAKS, _CLOSE = "which alone breaks xi = {xi}", "too close to xi = {xi} for this many rows"
# A sentence for each code of a refusal.
REFUSALS: Final[Mapping[str, str]] = {
    "too-few": "{n} rows cannot certify {xi} at a chance of {delta}, even if no row is lost.",
    "saturated": f"{_SATURATED}, {_BREAKS}. {_SCORE}",
    "nearly-saturated": f"{_SATURATED}, {_CLOSE}. {_SCORE}",
    "saturated-unlabelled": (
        f"{_SATURATED}{_UNLABELLED}, {_BREAKS}. Label these rows, which may help. {_SCORE}"
    ),
    "nearly-saturated-unlabelled": (
        f"{_SATURATED}{_UNLABELLED}, {_CLOSE}. Label these rows, which may help. {_SCORE}"
    ),
    "no-loss": (
        "At none of {tried} thresholds is the cascade shown to be no worse than the slow model "
        "(xi = 0, {n} rows). Allow a small loss, xi > 0."
    ),
    "no-loss-in-groups": (
        "None of {tried} thresholds shows that all groups lose nothing; {passed} of them show it "
        "for this group (xi = 0, {n} rows). Allow a small loss, xi > 0."
    ),
    "fold-even": (
        "At the first step that the fold declared {losses} rows lose and as many gain, which does "
        "not show that the cascade is no worse than the slow model (xi = 0). Allow a small loss, "
        "xi > 0."
    ),
    "fold-too-few": (
        "{n} rows beside the fold cannot certify {xi} at a chance of {delta}, even if no row is "
        "lost."
    ),
    "fold-loses": (
        "At the first step that the fold declared {losses} rows lose and {gains} gain, of {n} in "
        "all: no less than xi = {xi}. Choose on a larger fold, or among other models."
    ),
    "fold-near": (
        "At the first step that the fold declared {losses} rows lose and {gains} gain, of {n} in "
        "all: too close to xi = {xi} for this many rows. Choose on a larger fold, or among other "
        "models."
    ),
    "no-difference": "No number of rows can show that no answer differs (xi = 0). Allow some.",
    "too-few-to-differ": "{n} rows cannot certify {xi}, even if no answer differs.",
    "differing": f"{_DIFFERING}, {_BREAKS}. {_SCORE}",
    "nearly-differing": f"{_DIFFERING}, {_CLOSE}. {_SCORE}",
    "unexplained": "The counts do not support the claim.",
}

_SHARES: Final = ("xi", "delta")


def reason(refusal: CascadeRefusal) -> Sentence:
    """Why nothing is certified."""
    numbers: dict[str, Value] = {
        name: share(value, "up") if name in _SHARES else count(int(value))
        for name, value in refusal.numbers.items()
    }
    text = REFUSALS[refusal.code]
    if refusal.group is None:
        return Sentence(text, numbers)
    others = ", ".join(map(repr, refusal.others[:5])) + (", …" if len(refusal.others) > 5 else "")
    more = " Nor can {others} more be certified: {listed}." if refusal.others else ""
    named: dict[str, Value] = {
        "group": repr(refusal.group),
        "others": count(len(refusal.others)),
        "listed": others,
    }
    return Sentence(f"Group {{group}}, of {{rows}} rows: {text}{more}", {**numbers, **named})


def said(certificate: CascadeCertificate) -> Says:
    """What a certificate says."""
    values = _quantities(certificate)
    grouped = bool(certificate.groups)
    where = " in {groups} groups" if grouped else ""
    shared = f", {certificate.group_thresholds} thresholds" if grouped else ""
    title = Sentence(
        f"Cascade certificate: {{models}} models, {{n}} rows{where}, xi {{xi}}, delta {{delta}}"
        f"{shared}",
        values,
    )
    lines = (
        *(_line(certificate, group) for group in certificate.groups.values()),
        *(_small(*one) for one in (certificate.values.get("left_out") or {}).items()),
    )
    notes = (*_labels(certificate), *_noted(certificate))
    differ, graded = certificate.bounded == "differ", certificate.graded
    heading = Sentence(
        "Cascade of which at most {xi} of the answers differ"
        if differ
        else f"Cascade losing {'at most {xi}' if certificate.xi else 'no'} {_lost(graded)}",
        values,
    )
    every = " in each of the groups" if grouped else ""
    every += " that are not left out" * bool(certificate.left_out)
    plain = in_plain_words(certificate, f"{_plainly(certificate)}{every}", values)
    if not certificate.certified:
        refused = _refused(certificate)
        return Says(title, heading, plain, refused=refused, groups=lines, notes=notes)
    held = (
        f"at most {{xi}} of its answers differ from those of {{slow}}{every}"
        if differ
        else f"the cascade loses {'at most {xi}' if certificate.xi else 'no'} {_lost(graded)} "
        f"against {{slow}} alone{every}"
    )
    early = float(certificate.exit_rates.sum())
    answered = "all" if early == 1 else "{often early}"
    return Says(
        title,
        heading,
        plain,
        Sentence(
            f"On these rows, {answered} rows are answered without {{slow}}.",
            with_counts({**values, "early": share(early)}),
        ),
        _rule(certificate),
        Sentence(
            f"With probability at least {{confidence}} over the draw of these rows, {held}"
            f"{'' if graded is None else ', {as_graded}'}.",
            values,
        ),
        seen=(_seen(certificate),),
        groups=lines,
        notes=(*_fold(certificate), *_remarks(certificate), *notes),
    )


def _plainly(certificate: CascadeCertificate) -> str:
    """What is claimed, in plain words."""
    if certificate.bounded == "differ":
        return "at most {often xi} answers differ from those of {slow}"
    if certificate.graded is not None:
        return "the mean quality, {as_graded}, is at most {xi} of the scale below that of {slow}"
    if certificate.xi == 0:
        return "the cascade is wrong no more often than {slow} alone"
    return "the cascade is wrong on at most {often xi} rows more than {slow} alone"


def _quantities(certificate: CascadeCertificate) -> dict[str, Value]:
    own = certificate.group_thresholds == "own"
    return {
        "models": count(certificate.exits + 1),
        "n": count(certificate.n),
        "groups": count(len(certificate.groups) + len(certificate.left_out)),
        "xi": share(certificate.xi, "up"),
        "delta": share(certificate.delta, "up"),
        "confidence": confidence(certificate.delta),
        "limits": "" if own else _listed(certificate, certificate.tables[0].thresholds),
        "slow": models_of(certificate)[-1],
        "as_graded": as_graded(certificate.graded),
    }


def _lost(graded: Graded | None) -> str:
    """What a cascade may lose."""
    return "accuracy" if graded is None else "quality"


def models_of(certificate: CascadeCertificate) -> list[str]:
    """What the models are called: as the columns of their predictions, where these are known."""
    exits = certificate.exits
    columns = certificate.provenance.columns.get("prediction", "").split(",")
    # Joined tables may have one name for the answers of all models.
    if len(columns) == len(set(columns)) == exits + 1:
        return columns
    fast = ["the fast model"] if exits == 1 else [f"model {m + 1}" for m in range(exits)]
    return [*fast, "the slow model"]


def _rule(certificate: CascadeCertificate) -> Sentence:
    *fast, slow = models_of(certificate)
    if certificate.group_thresholds == "own":
        return Sentence(
            "Each group has its own thresholds; {slow} answers the rest, and all rows of other "
            "groups.",
            {"slow": slow},
        )
    limits = certificate.tables[0].thresholds.tolist()
    parts = [
        f"{{model {m}}} never answers"
        if limit == np.inf
        else f"{{model {m}}} answers from {{limit {m}}} on"
        for m, limit in enumerate(limits)
    ]
    filled: dict[str, Value] = {"slow": slow}
    for m, (name, limit) in enumerate(zip(fast, limits, strict=True)):
        filled[f"model {m}"] = _capital(name) if m == 0 else name
        filled[f"limit {m}"] = Quantity(limit, "threshold", "exact")
    rest = " and all rows of other groups" * bool(certificate.left_out)
    return Sentence(f"{', '.join(parts)}, {{slow}} the rest{rest}.", filled)


def _capital(name: str) -> str:
    """A name of ours begins a sentence with a capital; a column's name stays as it is."""
    return f"{name[0].upper()}{name[1:]}" if name.startswith(("the ", "model ")) else name


def _seen(certificate: CascadeCertificate) -> Sentence:
    text, filled = _exits(certificate, certificate.exit_rates.tolist(), certificate)
    return Sentence(f"Seen on these rows, not certified: {text}.", filled)


def _exits(
    certificate: CascadeCertificate, rates: Sequence[float], of: Any
) -> tuple[str, dict[str, Value]]:
    """How many exit early, at which cost, and what is lost, of all rows or of a group."""
    text, filled = _early(certificate, rates)
    paid, costs = of.expected_cost, certificate.costs
    if paid is not None and costs is not None:
        declared = certificate.declared
        alone = costs[-1] if declared is None else declared.costs[-1]
        filled |= {"paid": Quantity(paid, "amount"), "alone": Quantity(alone, "amount")}
        text += ", cost {paid} instead of {alone}"
    filled["lost"] = share(abs(of.observed_error_increase))
    if certificate.bounded == "differ":
        return f"{text}, {{lost}} of the answers differ", filled
    return f"{text}, {_change(certificate, of.observed_error_increase)}", filled


def _early(certificate: CascadeCertificate, rates: Sequence[float]) -> tuple[str, dict[str, Value]]:
    """How many rows exit early, at which model if there are several."""
    filled: dict[str, Value] = {f"exit {m}": share(rate) for m, rate in enumerate(rates)}
    if len(filled) == 1:
        return "{exit 0} exit early", filled
    models = models_of(certificate)
    filled |= {f"model {m}": models[m] for m in range(len(rates))}
    first, *others = (f"{{exit {m}}} exit early at {{model {m}}}" for m in range(len(rates)))
    return ", ".join([first, *(one.replace(" exit early", "") for one in others)]), filled


def _change(certificate: CascadeCertificate, lost: float) -> str:
    """How the error, or the quality, changes; a bound on it if labels are missing."""
    graded, open_ = certificate.graded is not None, bool(certificate.unlabelled.exiting)
    what, worse, better = (
        ("the quality", "falls", "rises") if graded else ("the error", "rises", "falls")
    )
    if lost > 0:
        said = f"{worse} by {'at most ' * open_}{{lost}}"
    elif lost < 0:
        said = f"{better} by {'at least ' * open_}{{lost}}"
    else:
        said = f"does not {worse[:-1]}" if open_ else "stays the same"
    return f"{what} {said}"


def _line(certificate: CascadeCertificate, group: CascadeGroup) -> Sentence:
    filled: dict[str, Value] = {"group": repr(group.name), "n": count(group.n)}
    if not group.certified:
        if group.refusal is None:
            return Sentence("{group}: {n} rows, never exit early", filled)
        why = reason(group.refusal)
        needed = group.refusal.needed
        takes = "" if needed is None else " About {needed} rows would do."
        return Sentence(
            f"{{group}}: {{n}} rows, never exit early: {why.template}{takes}",
            {**why.values, **filled, "needed": count(needed or 0)},
        )
    text, numbers = _exits(certificate, group.exit_rates.tolist(), group)
    own = ""
    if certificate.group_thresholds == "own":
        own, numbers["limits"] = ", from {limits} on", _listed(certificate, group.thresholds)
    return Sentence(f"{{group}}: {{n}} rows{own}: {text}", {**numbers, **filled})


def _small(name: str, rows: int) -> Sentence:
    return Sentence(
        "{group}: {n} rows, left out: too few, even if no row is lost. They never exit early",
        {"group": repr(name), "n": count(rows)},
    )


def _refused(certificate: CascadeCertificate) -> tuple[Sentence, ...]:
    refusal = certificate.refusal
    if refusal is None or refusal.code == "unexplained":
        return Sentence(REFUSALS["unexplained"]), Sentence("Never exit early.")
    unit = "rows of that group" if certificate.groups else "rows"
    takes = (
        f"More {unit} cannot help."
        if refusal.needed is None
        else f"About {{needed}} {unit} would do if the rates stay the same; plan for more."
    )
    return (
        reason(refusal),
        Sentence(f"{takes} Never exit early.", {"needed": count(refusal.needed or 0)}),
        Sentence("A refusal does not show that the model is bad."),
    )


def _fold(certificate: CascadeCertificate) -> list[Sentence]:
    """Which models these are, where a fold chose them."""
    declared = certificate.declared
    if declared is None:
        return []
    *fast, slow = declared.models
    return [
        Sentence(
            "A fold of {rows} other rows chose the models {fast}, asked in this order before model "
            "{slow} (counted from 0), and the order in which thresholds were tried.",
            {
                "rows": count(declared.rows),
                "fast": ", ".join(map(str, fast)),
                "slow": str(slow),
            },
        )
    ]


def _remarks(certificate: CascadeCertificate) -> list[Sentence]:
    """What the thresholds mean where they are at an end of their range."""
    if not certificate.exit_counts.any():
        return [Sentence("Nothing exits early there: certified, but of no use.")]
    thresholds = certificate.tables[0].thresholds
    if certificate.scope == "top" and (thresholds == 0).any():
        # Every score is at least 0, so that no row gets past that model.
        reached = zip(models_of(certificate), thresholds[: np.argmin(thresholds) + 1], strict=False)
        asked = [name for name, threshold in reached if threshold < np.inf]
        *others, last = asked
        fast = f"{', '.join(others)} and {last} replace" if others else f"{last} replaces"
        values: dict[str, Value] = {"slow": _capital(models_of(certificate)[-1]), "fast": fast}
        return [Sentence("{slow} is never asked: {fast} it.", values)]
    return []


UNLABELLED_ROWS = (
    "Rows without a label where predictions differ: {in_all}. Those that exit early count as "
    "losses: {exiting}."
)
UNGRADED_ROWS = (
    "A grade that is missing counts as the worst that it can be: {in_all} rows lack one that could "
    "change what they count as, and {exiting} of those that exit early count as losses for it."
)


def _labels(certificate: CascadeCertificate) -> list[Sentence]:
    """How many rows without a label counted as losses, and what labelling them could gain."""
    missing, what = certificate.unlabelled, "labels" if certificate.graded is None else "grades"
    if not missing.in_all or certificate.bounded == "differ":
        return []
    said = Sentence(
        UNLABELLED_ROWS if certificate.graded is None else UNGRADED_ROWS,
        {"exiting": count(missing.exiting), "in_all": count(missing.in_all)},
    )
    if certificate.settled:
        return [said, Sentence(f"More {what} cannot change the thresholds.")]
    if certificate.groups:
        return [said, Sentence(f"More {what} could lower the thresholds.")]
    best = certificate.best_possible
    rates, filled = _early(certificate, best.exit_rates.tolist())
    cost = "" if best.expected_cost is None else ", cost {cost}"
    filled |= {
        "limits": _listed(certificate, best.thresholds),
        "cost": Quantity(best.expected_cost or 0.0, "amount"),
    }
    return [
        said,
        Sentence(
            f"With {what} for them the thresholds could become {{limits}} at best, not certified: "
            f"{rates}{cost}.",
            filled,
        ),
    ]


def _noted(certificate: CascadeCertificate) -> list[Sentence]:
    """What speaks for labels of other rows, or for models in the wrong order."""
    gains, losses = certificate.gains_and_losses()
    return noted(certificate.provenance.notes, gains=gains, losses=losses)


def noted(notes: Mapping[str, str], *, gains: int, losses: int) -> list[Sentence]:
    """What is said about labels that may be those of other rows, and about models that may be in
    the wrong order. `gains` and `losses` are the rows that exit early on which only the exit is
    right, and only the slow model.
    """
    lines = noted_labels(notes, "the slow model", "make any threshold seem to lose nothing")
    if binomial_sf(gains, gains + losses, 0.5) <= SEEM_TO_BEAT:
        lines.append(
            Sentence(
                "Note: the exits seem to beat the slow model: only the exit is right in {gains} "
                "rows that exit early, and only the slow model in {losses}. If that surprises you, "
                "the models may be named in the wrong order (the slow one comes last), or the "
                "labels be those of other rows. Else the exit may do without the slow model: "
                "certify on fresh rows that it may replace it (certify_replacement), which saves "
                "all of its calls.",
                {"gains": count(gains), "losses": count(losses)},
            )
        )
    return lines


def _listed(certificate: Any, thresholds: NDArray[np.float64]) -> str:
    limits = _in_unit(certificate, thresholds).tolist()
    return ", ".join(Quantity(limit, "threshold", "exact").text for limit in limits)


def _in_unit(certificate: Any, thresholds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Thresholds as the columns hold scores."""
    return thresholds * (certificate.provenance.scale or 1.0)


_BOUNDED: Final = {
    "loss": "the {lost} lost against the slow model",
    "differ": "the share of answers that differ from the slow model's",
}


def numbers(certificate: CascadeCertificate) -> list[tuple[str, str]]:
    """What was asked for and decided, in names and numbers, and what was seen."""
    found = [
        ("Rows counted", f"{certificate.n:,}"),
        ("xi: what may be lost, or differ", share(certificate.xi, "up").text),
        ("What xi bounds", _BOUNDED[certificate.bounded].format(lost=_lost(certificate.graded))),
        ("delta: the chance that the claim is wrong", share(certificate.delta, "up").text),
    ]
    if certificate.group_thresholds != "own":
        limits = _in_unit(certificate, certificate.tables[0].thresholds).tolist()
        written = (
            "+inf: above every score" if np.isinf(limit) else repr(limit) for limit in limits
        )
        found.append(("Thresholds, one for each exit", "; ".join(written)))
    if certificate.costs is not None:
        costs = "; ".join(Quantity(cost, "amount").text for cost in certificate.costs)
        found.append(("Cost of a row, by the model that answers", costs))
    rates = "; ".join(f"{rate:.2%}" for rate in certificate.exit_rates.tolist())
    lost = f"{_lost(certificate.graded).capitalize()} lost"
    lost = "Answers that differ" if certificate.bounded == "differ" else lost
    found += [
        ("Rows that exit early, by exit, as seen", rates),
        (f"{lost}, as seen", f"{certificate.observed_error_increase:.2%}"),
    ]
    if certificate.expected_cost is not None:
        paid = Quantity(certificate.expected_cost, "amount").text
        found.append(("Cost of a row, as seen", paid))
    return found


def figure(certificate: CascadeCertificate, group: CascadeGroup) -> Figure | None:
    """The walk of the thresholds that were chosen; None where no row exits at any step."""
    walk = group.walks[group.chosen]
    if not group.n or not walk.exits.any():
        return None
    top = top_of(group.exits)
    thresholds = np.where(walk.cells > top, np.inf, walk.cells / top)
    named = certificate.provenance.columns.get("prediction", "").split(",")
    models = named[:-1] if len(named) == group.exits + 1 else None
    steps = ExitWalk(thresholds, walk.exits, walk.losses, walk.gains, group.n, models)
    at = None
    if group.cells is not None:
        same = np.flatnonzero((walk.cells == np.array(group.cells)[:, None]).all(axis=0))
        at = int(same[-1]) if same.size else None
    return loss_along_walk(
        steps,
        asked=Named(certificate.xi, f"allowed: {share(certificate.xi, 'up').text}"),
        certified_at=at if certificate.certified else None,
        title="The walk" if group.name is None else f"The walk: {group.name}",
        differ=certificate.bounded == "differ",
        lost=_lost(certificate.graded).capitalize(),
    )
