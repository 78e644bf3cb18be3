"""Both verifiers say the same of every change of a certificate, and accept none of what it claims.

A change that both accept must leave a claim that is true of the counts it then has. Either what
was counted or asked is another, and with it the digest of the counts; or the value is one that the
counts only bound (`BOUNDED`), or a bound whose tail is within its criterion, or a text of the
provenance, which is taken on trust.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import betainccinv, betaincinv
from tests.exact_verifier.changes import (
    Document,
    Place,
    at,
    changed,
    changes,
    exchanged,
    glued,
    mended,
    said_by_package,
    said_by_verifier,
)
from tests.kinds import KINDS
from tests.kinds.cascade import cascade_tally
from tests.kinds.random_rows import many

from pacbound import (
    calibrate,
    certify_abstention,
    certify_cascade,
    certify_forks,
    certify_recall,
    documents,
)
from pacbound.claims.assumptions import assumed_of_drawn
from pacbound.claims.certificate import Certificate, certificate_from_dict
from pacbound.claims.tables import DRAWN
from pacbound.errors import CertificateError
from pacbound.exact_verifier import (
    Held,
    Part,
    UnreadableError,
    WrongError,
    check_document,
    counts_digest,
    described,
    main,
    parse,
)
from pacbound.procedures.calibration import Side
from pacbound.tally.draws import Drawn
from pacbound.tally.tally import Tally

FROZEN = Path(__file__).parents[1] / "certificate" / "frozen"
LAYOUTS = """
    abstention-groups-1 batch-1 batch-two-looks-1
    batch-whole-ties-1 bundle-about-1 calibration-1 calibration-equal-mass-1 calibration-groups-1
    calibration-weights-1 cascade-front-two-models-1 cascade-no-loss-1 cascade-partial-refused-1
    cascade-groups-refused-1 false-alarms-1 recall-1 recall-looks-refused-1 shield-1
    shield-horizon-1 shield-clusters-per-row-1 shield-looks-refused-1
    recall-clusters-1
"""
"""A small certificate of each layout."""

BOUNDED = {"interventions", "sampled_differing", "best_possible"}
"""Descriptive values that the counts in a certificate bound and do not imply."""
TRUSTED = {"version", "created", "columns", "sources", "about", "notes", "drawn_by"}
"""What the provenance says in words, and the digests of the names that a draw went by."""


def _frozen(name: str) -> Document:
    found: Document = json.loads((FROZEN / f"{name}.json").read_text())
    return found


def _written(certificate: Certificate) -> Document:
    found: Document = json.loads(json.dumps(certificate.to_dict()))
    return found


def _some(values: Iterable[Any], most: int) -> list[Any]:
    """So many of them, evenly spaced."""
    every = list(values)
    return every if len(every) <= most else [every[i * len(every) // most] for i in range(most)]


def _disagreements(documents_: Iterable[tuple[Any, Document]]) -> tuple[int, list[Any]]:
    """How many were judged, and where one verifier accepts what the other does not."""
    judged, found = 0, []
    for what, document in documents_:
        judged += 1
        one, two = said_by_verifier(document), said_by_package(document)
        if bool(one) != bool(two):
            found.append((what, one[:1], two[:1]))
    return judged, found


def _is_true(before: Document, after: Document, place: Place) -> bool:
    """Whether an accepted change leaves a true claim of the same form."""
    one, two = (counts_digest(Part(document["claim"], "claim")) for document in (before, after))
    if one != two:
        return True
    if place[0] == "provenance":
        return len(place) == 1 or place[1] in TRUSTED
    bound = len(place) > 2 and place[-2] in ("lower", "upper")
    return bound or bool(BOUNDED & set(place))


def _changed_certificates(
    named: Iterable[tuple[str, Document]], most: int, items: int
) -> Iterator[tuple[Any, Document, Document, Place]]:
    for name, document in named:
        for place, value in _some(changes(document, items=items), most):
            yield (name, place, value), document, changed(document, place, value), place


def _judge_changes(named: Iterable[tuple[str, Document]], most: int, items: int) -> int:
    judged, accepted, found = 0, [], []
    for what, before, after, place in _changed_certificates(named, most, items):
        judged += 1
        one, two = said_by_verifier(after), said_by_package(after)
        if bool(one) != bool(two):
            found.append((what, one[:1], two[:1]))
        elif not one and not _is_true(before, after, place):
            accepted.append(what)
    assert found == []
    assert accepted == []
    return judged


@pytest.mark.slow
def test_both_say_the_same_of_changes_in_every_layout() -> None:
    assert (
        _judge_changes(((name, _frozen(name)) for name in LAYOUTS.split()), most=40, items=2) > 800
    )


@pytest.mark.long
@pytest.mark.parametrize("part", range(4))
def test_both_say_the_same_of_fifteen_thousand_changes(part: int) -> None:
    names = [path.stem for path in sorted(FROZEN.glob("*.json"))[part::4]]
    judged = _judge_changes(((name, _frozen(name)) for name in names), most=170, items=3)
    rng = np.random.default_rng(15)
    makers = {name: kind.random for name, kind in KINDS.items() if kind.random}
    made = [(kind, _written(make(rng))) for kind, make in makers.items() for _ in range(3)]
    judged += _judge_changes(made[part::4], most=60, items=2)
    assert judged >= 15_000 / 4


def _glued(names: Iterable[str], most: int) -> Iterator[tuple[Any, Document]]:
    by_kind: dict[str, list[str]] = {}
    for name in names:
        by_kind.setdefault(_frozen(name)["claim"]["kind"], []).append(name)
    for same in by_kind.values():
        for one, two in pairwise([*same, same[0]]):
            pairs = (*glued(_frozen(one), _frozen(two)), *exchanged(_frozen(one)))
            for place, document in _some(pairs, most):
                yield (one, two, place), document


def test_both_say_the_same_of_certificates_glued_from_others() -> None:
    judged, found = _disagreements(_glued(LAYOUTS.split(), most=8))
    assert found == []
    assert judged > 100


@pytest.mark.long
def test_both_say_the_same_of_a_thousand_certificates_glued_from_others() -> None:
    judged, found = _disagreements(_glued((p.stem for p in sorted(FROZEN.glob("*.json"))), most=16))
    assert found == []
    assert judged >= 1000


@pytest.mark.parametrize("name", LAYOUTS.split())
def test_both_say_the_same_of_a_delta_that_nobody_may_ask_for(name: str) -> None:
    """More than one half is refused where claims are made; what a file says is judged all the
    same.
    """
    for delta in (0.6, 0.9):
        document = changed(_frozen(name), ("claim", "delta"), delta)
        assert bool(said_by_verifier(document)) == bool(said_by_package(document))


def test_a_threshold_one_float_up_is_found_by_both() -> None:
    """With a score of exactly the threshold in every row, none would be flagged there."""
    certificate = certify_recall([0.5] * 300, [True] * 300, target=0.9, delta=0.05)
    document = _written(certificate)
    moved = changed(document, ("claim", "tables", 0, "threshold"), float(np.nextafter(0.5, 1)))
    assert said_by_verifier(moved)
    assert said_by_package(moved)
    assert not said_by_verifier(document)


@pytest.mark.parametrize("start", [None, 0.5])
def test_errors_that_are_to_be_none_are_judged_by_both(start: float | None) -> None:
    made = certify_abstention([0.5] * 300, [True] * 300, xi=0, delta=0.05, first_threshold=start)
    assert not made.certified
    assert said_by_verifier(_written(made)) == said_by_package(_written(made)) == []


@pytest.mark.parametrize("name", ["abstention-1", "abstention-graded-1"])
@pytest.mark.parametrize("ends", [[], [7], [1, 2, 3]])
def test_what_is_claimed_is_ranges_to_both(name: str, ends: list[int]) -> None:
    document = changed(_frozen(name), ("claim", "tables", 0, "claimed"), [ends])
    assert said_by_verifier(document)
    assert said_by_package(document)


@pytest.mark.parametrize("name", ["abstention-graded-1", "cascade-graded-1"])
def test_the_least_double_of_graded_errors_is_judged_by_both(name: str) -> None:
    document = changed(_frozen(name), ("claim", "xi"), 5e-324)
    assert said_by_verifier(document)
    assert said_by_package(document)


def test_a_target_next_to_none_leaves_both_the_same_rate() -> None:
    """1 - 1e-300 has no double and no decimal of its own: both take the double below."""
    document = _written(certify_recall([0.5], [True], target=1e-300, delta=1e-300))
    assert said_by_verifier(document) == said_by_package(document) == []


def _calibration(delta: float) -> Certificate:
    return calibrate([0.9] * 60, [True] * 60, delta=delta, n_bins=2)


def test_a_bound_of_huge_counts_is_judged_by_its_tail_in_both() -> None:
    tally = Tally.count("calibration", confidence=[0.9], correct=[True], n_bins=1)
    for rows, share in ((10**7, 1e-5), (10**14, 1e-7)):
        many = Tally(tally.kind, tally.grid, tally.outcomes, rows, tally.cells, tally.counts * rows)
        many.counts[0] = [rows // 5, rows - rows // 5]
        document = _written(calibrate(data=many, delta=0.01))
        place = ("claim", "tables", 0, "lower", 0)
        low = at(document, place)
        assert not said_by_verifier(document)
        assert not said_by_package(document)
        for moved in (low * (1 + share), low * (1 - share)):
            forged = changed(document, place, moved)
            assert said_by_verifier(forged)
            assert said_by_package(forged)
        near = changed(document, place, float(np.nextafter(low, 0)))
        assert bool(said_by_verifier(near)) == bool(said_by_package(near)) is False


WIDE = 2e-3
WINDOW = {
    1 + 1e-6: False,
    1 - 1e-6: True,
    (1 - WIDE) * (1 + 1e-6): True,
    (1 - WIDE) * (1 - 1e-6): False,
}
"""Tails of a bound as shares of its level, and whether it is accepted."""


def _bound(end: str, successes: int, trials: int, tail: float) -> float:
    """Where so many successes or more ("lower"), or so few ("upper"), have this chance; beyond 1e12
    trials by the form of Chernoff.
    """
    if trials <= 10**12 and end == "upper":
        return float(betainccinv(successes + 1, trials - successes, tail))
    if trials <= 10**12:
        return float(betaincinv(successes, trials - successes + 1, tail))
    seen = Decimal(successes) / trials
    near, far = float(seen), 1.0 if end == "upper" else 0.0
    while (rate := (near + far) / 2) not in (near, far):
        exact = Decimal(rate)
        apart = seen * (seen / exact).ln() + (1 - seen) * ((1 - seen) / (1 - exact)).ln()
        near, far = (rate, far) if trials * apart < -Decimal(tail).ln() else (near, rate)
    return far


@pytest.mark.parametrize("delta", [0.5, 0.05, 1e-12])
@pytest.mark.parametrize(
    ("trials", "successes"),
    [(40, 37), (40, 0), (1000, 500), (10**6, 999_000), (10**6, 3), (10**13, 2 * 10**12)],
)
def test_a_bound_is_accepted_if_its_tail_is_within_its_window_and_only_then(
    trials: int, successes: int, delta: float
) -> None:
    tally = Tally.count("calibration", confidence=[0.9], correct=[True], n_bins=1)
    many = Tally(tally.kind, tally.grid, tally.outcomes, trials, tally.cells, tally.counts * trials)
    many.counts[0] = [trials - successes, successes]
    cases: list[tuple[Side, str, float]] = [
        ("both", "lower", delta / 2),
        ("both", "upper", delta / 2),
        ("lower", "lower", delta),
        ("upper", "upper", delta),
    ]
    for side, end, level in cases:
        if end == "lower" and not successes:
            continue  # It is 0 whatever the level is.
        document = _written(calibrate(data=many, delta=delta, side=side))
        for share, is_within in WINDOW.items():
            moved = _bound(end, successes, trials, share * level)
            forged = changed(document, ("claim", "tables", 0, end, 0), moved)
            assert bool(said_by_verifier(forged)) != is_within, (side, end, share)
            assert bool(said_by_package(forged)) != is_within, (side, end, share)


TEXT = (FROZEN / "shield-1.json").read_text()
ODD_TEXTS = {
    "a key twice": TEXT.replace('"n": 500', '"n": 500, "n": 500', 1),
    "NaN": TEXT.replace('"n": 500', '"n": NaN', 1),
    "Infinity": TEXT.replace('"xi": 0.05', '"xi": Infinity', 1),
    "400 digits": TEXT.replace('"n": 500', f'"n": {"5" * 400}', 1),
    "too large": TEXT.replace('"xi": 0.05', '"xi": 1e999', 1),
    "-0": TEXT.replace('"safe": [0,', '"safe": [-0,', 1),
    "a float for a count": TEXT.replace('"n": 500', '"n": 500.0', 1),
    "a count in another notation": TEXT.replace('"n": 500', '"n": 5e2', 1),
    "a text for an infinite number": TEXT.replace('"xi": 0.05', '"xi": "+inf"', 1),
    "half a character": TEXT.replace('"kind": "shield"', '"kind": "shield\\ud800"', 1),
    "half a character in a key": TEXT.replace('"n": 500', '"n": 500, "\\udfff": 1', 1),
    "deep nesting": TEXT.replace('"n": 500', f'"n": {"[" * 40}1{"]" * 40}', 1),
    "brackets without an end": "[" * 100_000,
    "something behind it": TEXT + "{}",
    "cut short": TEXT[:-3],
    "a byte-order mark": "\ufeff" + TEXT,
    "a letter that looks alike": TEXT.replace('"kind": "shield"', '"kind": "sh\u0456eld"', 1),
    "a comment": TEXT.replace('"n": 500', '"n": 500 /* rows */', 1),
    "nothing": "",
    "a list": f"[{TEXT}]",
    "single quotes": TEXT.replace('"', "'"),
}
SAME_TEXTS = {
    "400 digits behind the point": TEXT.replace('"xi": 0.05', f'"xi": 0.05{"0" * 400}1', 1),
    "white space": TEXT.replace('"n": 500', '"n"  :\n\t500 ', 1),
    "the keys in another order": json.dumps(dict(reversed(json.loads(TEXT).items()))),
    "escapes": TEXT.replace('"kind": "shield"', '"kind": "\\u0073hield"', 1),
    "a number in another notation": TEXT.replace('"xi": 0.05', '"xi": 5e-2', 1),
    "an empty line behind it": TEXT + "\n\n",
}


def _both_accept(data: bytes) -> tuple[bool, bool]:
    try:
        one = not check_document(parse(data)).wrong
    except UnreadableError:
        one = False
    try:
        read = documents.parse(data, what="a certificate", name="it")
        two = certificate_from_dict(read).verify().ok
    except CertificateError:
        two = False
    return one, two


@pytest.mark.parametrize("name", sorted(ODD_TEXTS))
def test_what_is_not_strict_json_is_refused_by_both(name: str) -> None:
    assert ODD_TEXTS[name] != TEXT
    assert _both_accept(ODD_TEXTS[name].encode("utf-8")) == (False, False)


@pytest.mark.parametrize("name", sorted(SAME_TEXTS))
def test_the_same_document_written_otherwise_is_accepted_by_both(name: str) -> None:
    assert SAME_TEXTS[name] != TEXT
    assert _both_accept(SAME_TEXTS[name].encode("utf-8")) == (True, True)


def test_a_name_of_a_file_cannot_spoof_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "a\n/good.json: valid, certified (shield)\x1b[2K\u202ebad"
    main([str(tmp_path / name)])
    said = capsys.readouterr().out
    assert said.count("\n") == 1
    assert "\\n/good.json" in said
    assert "\\x1b[2K\\u202ebad: cannot be checked" in said
    lines = described({"certificate": "bytes \udcff", "error": "two\nlines"})
    assert lines == ["bytes \\udcff: cannot be checked: two\\nlines"]


@pytest.mark.parametrize("target", [5e-324, 1e-300, 1e-17, 1 - 2**-53])
def test_a_target_that_leaves_no_digit_is_judged_by_both(target: float) -> None:
    for name in ("recall-looks-1", "recall-looks-refused-1", "recall-1"):
        document = changed(_frozen(name), ("claim", "target"), target)
        assert bool(said_by_verifier(document)) == bool(said_by_package(document))
    if target < 0.5:
        rows = np.linspace(0, 1, 200), np.ones(200, dtype=bool)
        made = _written(certify_recall(*rows, target=target, delta=0.05, looks=[100, 200]))
        assert (said_by_verifier(made), said_by_package(made)) == ([], [])


def test_a_delta_that_cannot_be_shared_is_read_and_found_by_both() -> None:
    document = _frozen("cascade-paths-refused-1")
    document["claim"]["delta"] = 5e-324
    assert said_by_package(mended(document))
    assert said_by_verifier(document)


def _said_of_forks(**changed_table: Any) -> bool:
    """Whether both verifiers accept 200 forked rollouts with something else in their table."""
    rollout = np.arange(600) // 3
    lowest, highest = np.tile([0, 16385, 32769], 200), np.tile([16384, 32768, 65537], 200)
    unsafe = rollout < np.tile([5, 2, 60], 200)
    made = certify_forks(rollout, lowest, highest, unsafe, xi=0.1, delta=0.01)
    document = _written(made)
    document["claim"]["tables"][0].update(changed_table)
    return _accepted_by_both(document)


def _accepted_by_both(document: Document) -> bool:
    forged = mended(document)
    verdicts = {not said_by_package(forged), not said_by_verifier(forged)}
    assert len(verdicts) == 1
    return verdicts.pop()


def test_forks_turn_only_above_cells_that_their_dangers_have_reached() -> None:
    ends = {"safe": [140], "unsafe": [60]}
    assert _said_of_forks(counts={"cells": [32768], **ends})
    assert _said_of_forks(counts={"cells": [65536], **ends})
    assert not _said_of_forks(counts={"cells": [32767], **ends})
    assert not _said_of_forks(counts={"cells": [-1], **ends})
    # 58 turn unsafe above the highest cell, and two are unsafe before: three cannot have ended.
    assert _said_of_forks(counts={"cells": [20000, 32768], "safe": [0, 140], "unsafe": [2, 58]})
    assert not _said_of_forks(counts={"cells": [20000, 32768], "safe": [0, 140], "unsafe": [3, 57]})
    assert _said_of_forks(counts={"cells": [20000, 32768], "safe": [140, 0], "unsafe": [0, 60]})


@pytest.mark.parametrize(("more", "refused"), [(0, False), (1, True)])
def test_a_table_of_more_than_2_to_the_53_rows_is_refused(more: int, refused: bool) -> None:
    turns: Any = {"cells": [-1, 9], "safe": [2**52, 0], "unsafe": [more, 2**52]}
    with pytest.raises(WrongError) if refused else nullcontext():
        Held.of(Part(turns, "turns"), "safe unsafe", -1, 65536)


@pytest.mark.parametrize(
    "drawn",
    [
        Drawn("clusters", rows=700, units=500, seed=1),
        Drawn("weights", rows=700, units=700, seed=1, bound=2.0),
    ],
)
def test_no_rows_of_forks_are_drawn(drawn: Drawn) -> None:
    document = _frozen("forks-1")
    assert _accepted_by_both(document)
    claim = document["claim"]
    claim["drawn"] = DRAWN.form.write(drawn)
    claim["assumes"] = list(assumed_of_drawn(claim["assumes"], drawn))
    assert not _accepted_by_both(document)


@pytest.mark.parametrize("small_groups", ["refuse", "leave-out"])
def test_a_group_without_a_forked_rollout_is_one_that_both_can_read(small_groups: Any) -> None:
    rollout, nobody = np.arange(100), np.zeros(100, dtype=bool)
    groups = {"some": rollout < 60, "none": nobody}
    asked: dict[str, Any] = {"xi": 0.1, "delta": 0.01, "small_groups": small_groups}
    made = certify_forks(rollout, rollout * 0, rollout * 0 + 65537, nobody, groups=groups, **asked)
    assert made.certified == (small_groups == "leave-out")
    assert _accepted_by_both(_written(made))


@pytest.mark.parametrize(
    "among", [5, True, "positive", [], ["positive"], {}, {"positive": "5"}, None]
)
def test_what_is_drawn_among_is_an_object_to_both(among: Any) -> None:
    for name in ("recall-clusters-1", "shield-clusters-per-row-1"):
        document = changed(_frozen(name), ("claim", "drawn", "among"), among)
        assert said_by_package(document)
        assert said_by_verifier(document)


@pytest.mark.parametrize(
    ("notes", "fits"),
    [
        ({"labels": "unrelated"}, True),
        ({"brake.labels": "too few to tell"}, True),
        ({"worst_answer": "31/80 effusion"}, True),
        ({"find.worst_answer": "1/9 "}, True),
        ({"worst_answer": "31/80 a\nb"}, True),
        ({}, False),
        ({"labels": "31/80 effusion"}, False),
        ({"worst_answer": "unrelated"}, False),
        ({"worst_answer": "31 effusion"}, False),
        ({"worst_answer": "31/08 effusion"}, False),
        ({"worst_answer": "\u0663/8 effusion"}, False),
        ({"worst_answer": f"31/80 {'a' * 201}"}, False),
        ({"my_worst_answer": "31/80 effusion"}, False),
        ({"other": "unrelated"}, False),
        ({"labels": ["unrelated"]}, False),
    ],
)
def test_notes_are_read_alike_by_both(notes: Any, fits: bool) -> None:
    document = _frozen("shield-1")
    document["provenance"]["notes"] = notes
    document = mended(document)
    assert bool(said_by_package(document)) is not fits
    assert bool(said_by_verifier(document)) is not fits


def test_the_exact_region_is_named_only_where_it_decides() -> None:
    few = certify_cascade(data=cascade_tally(600), xi=0.05, delta=0.05)
    large = certify_cascade(data=many(cascade_tally(600), 500), xi=0.01, delta=0.05)
    none = certify_cascade(data=cascade_tally(2000), xi=0.0, delta=0.05)
    for certificate, named in ((few, True), (large, False), (none, False)):
        assert certificate.verify()
        report = check_document(certificate.to_dict())
        assert any("the exact region" in line for line in report.checked) == named
        assert "exact" not in certificate.summary()
