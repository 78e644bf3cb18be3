"""The verifier that shares nothing with the package agrees with it, and finds what was changed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.certificate.conftest import FROZEN, ONE_OF_EACH_LAYOUT
from tests.kinds import KINDS as TRIED
from tests.products import standing_for

from pacbound import calibrate, exact_verifier, load_certificate
from pacbound.claims import KINDS, claim_of
from pacbound.claims.certificate import certificate_from_dict
from pacbound.errors import CertificateError
from pacbound.exact_verifier import check_document, check_file

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "tests" / "certificate" / "frozen"
DETERMINED = {
    "batch": "tolerated allowed stop exits asked asked_share certified n",
    "bundle": "certified",
    "false-alarms": "threshold allowed_false_alarms n certified observed_false_alarm_rate",
    "calibration": "lower upper wrong right n certified delta side",
    "recall": "threshold allowed_misses n certified observed_recall flag_rate look",
    "shield": "threshold allowed_misses certified observed_miss_rate look",
    "cascade": "thresholds chosen certified exit_rates observed_error_increase expected_cost",
    "cascade-groups": (
        "thresholds chosen certified n exit_rates observed_error_increase expected_cost"
    ),
}
"""Values that follow from the counts in the same file, by the page on procedures."""
DETERMINED_BY_CLAIMS = "claimed threshold allowed certified n"
"""The same for documents that a claim declares."""


def _document(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def _mended(document: dict[str, Any]) -> dict[str, Any]:
    """The document with digests that fit it."""
    claim = exact_verifier.Part(document["claim"], "claim")
    document["claim_digest"] = exact_verifier.digest(document["claim"])
    document["counts_digest"] = exact_verifier.counts_digest(claim)
    return document


def _found(document: dict[str, Any]) -> list[str]:
    """What is wrong with a document, or why it cannot be read."""
    try:
        return check_document(document).wrong
    except exact_verifier.UnreadableError as error:
        return [str(error)]


@pytest.mark.parametrize("path", ONE_OF_EACH_LAYOUT, ids=lambda path: path.stem)
def test_a_frozen_certificate_is_valid(path: Path) -> None:
    code, found = check_file(str(path))
    assert (code, found.get("wrong")) == (0, [])
    assert found["checked"]
    assert found["trusted"]


def test_it_says_what_is_claimed_and_assumed_of_what_is_valid_alone(tmp_path: Path) -> None:
    path = FOLDER / "recall-clusters-1.json"
    code, found = exact_verifier.check_file(str(path))
    stored = json.loads(path.read_text(encoding="utf-8"))["claim"]
    assert code == 0
    expected = {key: stored[key] for key in ("kind", "target", "delta", "n", "certified")}
    expected |= {"threshold": stored["tables"][0]["threshold"]}
    assert expected.items() <= found["claimed"].items()
    assert found["claimed"]["draw"]["seed"] == stored["drawn"]["seed"]
    certificate = load_certificate(path)
    assert found["assumed"] == certificate.assumed()
    assert found["means"] == certificate.meanings()
    said = "\n".join(exact_verifier.described(found))
    for part in ("kind recall", "target 0.9", "delta 0.05", "n 1141", "draw seed 0"):
        assert part in said
    forged = _document(path)
    forged["claim"]["target"] = 0.95
    (tmp_path / "forged.json").write_text(json.dumps(forged), encoding="utf-8")
    code, found = exact_verifier.check_file(str(tmp_path / "forged.json"))
    assert code == 1
    assert not {"claimed", "assumed", "means"} & found.keys()


def test_every_claim_of_a_bundle_and_every_group_has_its_line() -> None:
    for name, lines in (
        ("bundle-1", ["claim, brake: kind shield", "claim, confidence: kind calibration"]),
        ("abstention-groups-1", ["claim, group dusk: threshold +inf"]),
    ):
        _, found = exact_verifier.check_file(str(FOLDER / f"{name}.json"))
        said = "\n".join(exact_verifier.described(found))
        assert [line for line in lines if line not in said] == []


def test_every_procedure_of_the_package_is_known() -> None:
    known = {name: kind for kind in KINDS for name in claim_of(kind).procedures}
    assert known == exact_verifier.PROCEDURES


@pytest.mark.skipif(os.name != "posix", reason="git checks no link out there")
def test_it_is_one_file_that_runs_anywhere_on_the_standard_library_alone(tmp_path: Path) -> None:
    tool = shutil.copy(ROOT / "tools" / "verify_certificate.py", tmp_path)
    names = [str(path) for path in FROZEN if path.stem in ("shield-1", "batch-1")]
    done = subprocess.run(
        [sys.executable, "-I", "-S", tool, "--json", *names],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert [json.loads(line)["ok"] for line in done.stdout.splitlines()] == [True, True]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:No row is unsafe, and values of clusters repeat")
@pytest.mark.parametrize("kind", [name for name, kind in TRIED.items() if kind.random])
@pytest.mark.parametrize("one_in", standing_for([1, 20], [20], rest="long"))
def test_it_agrees_with_the_package_on_random_certificates(kind: str, one_in: int) -> None:
    make = TRIED[kind].random
    assert make is not None
    rng = np.random.default_rng(2025 + one_in)
    for _ in range(TRIED[kind].trials // one_in):
        certificate = make(rng)
        document = json.loads(json.dumps(certificate.to_dict()))
        assert _found(document) == [], document["claim"]


def test_ten_thousand_certificates_are_compared() -> None:
    assert sum(kind.trials for kind in TRIED.values() if kind.random) >= 10_000


def _leaves(value: Any, *place: Any) -> Iterator[tuple[Any, ...]]:
    """The places of all values that hold no others."""
    parts = value.items() if isinstance(value, dict) else enumerate(value)
    for key, part in parts:
        if isinstance(part, (dict, list)):
            yield from _leaves(part, *place, key)
        else:
            yield (*place, key)


def _changed(value: Any, place: tuple[Any, ...], rng: np.random.Generator) -> Any:
    """Another value of the same type, sometimes larger and sometimes smaller."""
    if isinstance(value, bool):
        return not value
    sign = int(rng.choice([-1, 1]))
    if isinstance(value, int):
        return value + sign
    if isinstance(value, float):
        # A bound may be wider by 2e-3 of its level, and the level larger by as much; narrower and
        # smaller by nothing. Where just that ends is tested with the verdicts of both verifiers.
        wider = {"lower": -1, "upper": 1, "delta": 1}
        is_wider = any(wider.get(key) == sign for key in place)
        return value * (1 + sign * (0.01 if is_wider else 1e-6)) if value else 1e-6
    return {"+inf": 0.5, "-inf": 0.5, "both": "lower", "lower": "upper", "upper": "both"}[value]


def _value(document: dict[str, Any], place: tuple[Any, ...]) -> tuple[Any, Any]:
    """What holds the value at a place of the claim, and the value."""
    part: Any = document["claim"]
    for key in place[:-1]:
        part = part[key]
    return part, part[place[-1]]


def _is_told(place: tuple[Any, ...]) -> bool:
    """Whether no other value follows from it: a forecast, or at what threshold was driven."""
    return "best_possible" in place or place == ("threshold",)


def _forgeries() -> list[tuple[Path, tuple[Any, ...]]]:
    """All places in the frozen certificates whose values follow from the rest."""
    found = []
    for path in FROZEN:
        document = _document(path)
        claim = document["claim"]
        members = {name: ("claims", name) for name in claim.get("claims", {})}
        for start in [(), *members.values()]:
            part = _value(document, start)[1] if start else claim
            names = DETERMINED.get(part["kind"], DETERMINED_BY_CLAIMS).split()
            for place in _leaves({key: part[key] for key in part if key != "claims"}):
                determined = any(word in place for word in names) and not _is_told(place)
                if determined and _value(document, start + place)[1] is not None:
                    found.append((path, start + place))
    return found


@pytest.mark.slow
def test_every_single_forgery_with_mended_digests_is_found() -> None:
    rng = np.random.default_rng(500)
    places = _forgeries()
    missed = []
    for i in sorted(rng.choice(len(places), size=500, replace=False)):
        path, place = places[i]
        document = _document(path)
        part, value = _value(document, place)
        part[place[-1]] = _changed(value, place, rng)
        if not _found(_mended(document)):
            missed.append((path.stem, place, value, part[place[-1]]))
    assert missed == []


@pytest.mark.long
@pytest.mark.parametrize(("key", "factor"), [("xi", 0.5), ("delta", 0.001), ("delta", 5.0)])
def test_it_agrees_with_the_package_on_certificates_that_ask_for_something_else(
    key: str, factor: float
) -> None:
    """What was asked is not determined by the counts, but what follows from it is."""
    verdicts = []
    for path in FROZEN:
        document = _document(path)
        claim = document["claim"]
        if not 0 < claim.get(key, 0) * factor < 1:
            continue
        claim[key] *= factor
        try:
            package = certificate_from_dict(_mended(document)).verify().ok
        except CertificateError:
            package = False
        # Refusals say in words what was asked, and only the package reads words.
        if claim["certified"]:
            verdicts.append((path.stem, package, not _found(document)))
    assert [line for line in verdicts if line[1] != line[2]] == []
    assert sum(not package for _, package, _ in verdicts) > 30


STEP = 2.0**-16


def _move_threshold(claim: dict[str, Any], steps: int) -> None:
    """To the next place of the grid."""
    holder = claim["tables"][0] if claim["kind"] == "abstention" else claim
    if claim["kind"] == "cascade":
        holder, key = claim["tables"][-1]["thresholds"], 0
        holder[key] += steps * STEP
    else:
        holder["threshold"] += steps * STEP


def _swap_bins(claim: dict[str, Any]) -> None:
    """The counts of two bins change places, and their intervals stay."""
    counts = claim["tables"][0]["counts"]
    for column in (counts["wrong"], counts["right"]):
        column[0], column[1] = column[1], column[0]


def _move_a_success(claim: dict[str, Any]) -> None:
    counts = claim["tables"][0]["counts"]
    for column, added in ((counts["right"], 1), (counts["wrong"], -1)):
        column[-2] -= added
        column[-1] += added


def _chosen_walk(claim: dict[str, Any]) -> dict[str, Any]:
    """Of all rows: what a group with common thresholds keeps depends on the others."""
    assert claim["scope"] == "top"
    table = claim["tables"][0]
    walk: dict[str, Any] = table["walks"][table["chosen"]]
    return walk


def _swap_losses_and_gains(claim: dict[str, Any]) -> None:
    # Where every step passes, fewer losses make no other claim.
    assert any(claim["tables"][0]["thresholds"])
    walk = _chosen_walk(claim)
    fast, slow = "only_fast_added", "only_slow_added"
    walk[fast], walk[slow] = walk[slow], walk[fast]


def _drop_the_failure(claim: dict[str, Any]) -> None:
    """The step that fails is missing, and everything before it is there."""
    assert claim["certified"]
    assert claim["xi"] > 0
    walk = _chosen_walk(claim)
    columns = [row for part in walk.values() for row in (part if _is_rows(part) else [part])]
    assert all(row[-1] for row in (walk["cells"] if _is_rows(walk["cells"]) else [walk["cells"]]))
    for row in columns:
        del row[-1]


def _is_rows(part: list[Any]) -> bool:
    return isinstance(part[0], list)


def _split_otherwise(claim: dict[str, Any]) -> None:
    """The shares of delta add up to the same, and are not those that the claims were made with."""
    first, second, *_ = claim["claims"].values()
    moved = first["delta"] / 2
    first["delta"], second["delta"] = first["delta"] - moved, second["delta"] + moved


def _ask_one_fewer(claim: dict[str, Any]) -> None:
    claim["exits"] += 1
    claim["asked"] -= 1


def _allow_one_more(claim: dict[str, Any]) -> None:
    """At a second look that was not taken, so that nothing else changes."""
    later = claim["looks"][1]
    assert later["disagreements"] is None
    later["allowed"] += 1


def _drop_the_looks(claim: dict[str, Any]) -> None:
    assert claim["looks"]
    claim["looks"] = None


def _drop_a_group(claim: dict[str, Any]) -> None:
    assert claim["scope"] != "top"
    del claim["tables"][0]


def _claim_that_few_differ(claim: dict[str, Any]) -> None:
    """Of rows that have labels."""
    parts = [table["labels"] for table in claim["tables"]]
    assert any(labels is None or labels["labelled"] for labels in parts)
    claim["claim"] = "differ"


def _hide_the_events(claim: dict[str, Any]) -> None:
    """An answer that differs becomes one that loses nothing, by a label."""
    assert claim["claim"] == "differ"
    walk = _chosen_walk(claim)
    assert walk["unlabelled_added"]
    walk["only_fast_added"], walk["unlabelled_added"] = (
        walk["unlabelled_added"],
        walk["only_fast_added"],
    )


def _say_that_labels_could_gain(claim: dict[str, Any]) -> None:
    assert claim["claim"] == "differ"
    best = claim["tables"][0]["best_possible"]
    assert best["exits"][0] < claim["n"]
    best["exits"][0] += 1


STRUCTURAL: dict[str, tuple[str, Callable[[dict[str, Any]], None], int]] = {
    "a threshold one step up": (
        "shield recall false-alarms abstention cascade",
        lambda claim: _move_threshold(claim, 1),
        30,
    ),
    "a threshold one step down": (
        "shield recall false-alarms abstention cascade",
        lambda claim: _move_threshold(claim, -1),
        30,
    ),
    "counts of two bins swapped": ("calibration", _swap_bins, 4),
    "a success in the next bin": ("calibration", _move_a_success, 4),
    "losses and gains swapped": ("cascade", _swap_losses_and_gains, 10),
    "the failing step left out": ("cascade", _drop_the_failure, 10),
    "delta split differently": ("bundle", _split_otherwise, 2),
    "one answer fewer asked for": ("batch", _ask_one_fewer, 4),
    "one more allowed at a look that was not taken": ("batch", _allow_one_more, 1),
    "looks left out": ("recall shield", _drop_the_looks, 3),
    "a group left out": ("cascade", _drop_a_group, 10),
    "differ claimed of labelled rows": ("cascade", _claim_that_few_differ, 30),
    "answers that differ as gains": ("cascade", _hide_the_events, 3),
    "labels that could gain": ("cascade", _say_that_labels_could_gain, 2),
}
"""Forgeries of more than one value, or aimed at the finest step: the kinds that they are for, what
they do to a claim, and to how many frozen certificates at least they can be done."""


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(STRUCTURAL))
def test_both_find_what_was_moved_swapped_or_left_out(name: str) -> None:
    kinds, forge, least = STRUCTURAL[name]
    tried, missed = 0, []
    for path in FROZEN:
        document = _document(path)
        if document["claim"]["kind"] not in kinds.split():
            continue
        try:
            forge(document["claim"])
        except (AssertionError, IndexError, KeyError, TypeError, ValueError):
            continue  # It has no such thing: a refusal has no finite threshold.
        if document["claim"] == _document(path)["claim"]:
            continue
        tried += 1
        _mended(document)
        try:
            package = certificate_from_dict(document).verify().ok
        except CertificateError:
            package = False
        if package or not _found(document):
            missed.append((path.stem, package))
    assert missed == []
    assert tried >= least


def _shield(**changes: Any) -> dict[str, Any]:
    document = _document(ROOT / "tests" / "certificate" / "frozen" / "shield-1.json")
    document["claim"]["tables"][0].update(changes)
    return _mended(document)


def test_a_weaker_claim_than_the_counts_show_is_another_claim() -> None:
    document = json.loads(json.dumps(calibrate([0.9] * 60, [True] * 60, delta=0.1).to_dict()))
    document["claim"]["tables"][0]["lower"][0] -= 0.01
    assert "claims less than the counts show" in _found(_mended(document))[0]
    document["claim"]["tables"][0]["lower"][0] += 0.02
    assert "claims more than the counts show" in _found(_mended(document))[0]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("{", "[" * 40 + "{"),
        ('"n": 500', '"n": NaN'),
        ('"n": 500', '"n": Infinity'),
        ('"n": 500', '"n": 500, "n": 500'),
        ('"n": 500', '"n": 1' + "0" * 4000),
        ('"n": 500', '"n": 9007199254740993'),
        ('"n": 500', '"n": 500.0'),
        ('"n": 500', '"n": true'),
        ('"n": 500', '"n": "500"'),
        ('"n": 500', '"n": null'),
        ('"n": 500', '"n": {}'),
        ('"n": 500', '"m": 500'),
        ('"n": 500', '"n": 500, "more": 1'),
        ('"n": 500', '"n": -500'),
        ('"xi": 0.05', '"xi": 1e999'),
        ('"xi": 0.05', '"xi": 5'),
        ('"cells": [', '"cells": [[1],'),
        ('"cells": [', '"cells": {},"c": ['),
        ('"kind": "shield"', '"kind": "recall"'),
        ('"kind": "shield"', '"kind": ["shield"]'),
        ("shield/binomial/1", "shield/binomial/2"),
        ('"schema": 1', '"schema": 2'),
        ('"schema": 1', '"schema": true'),
    ],
)
def test_what_is_no_certificate_is_refused_in_words(tmp_path: Path, old: str, new: str) -> None:
    text = (ROOT / "tests" / "certificate" / "frozen" / "shield-1.json").read_text()
    assert old in text
    path = tmp_path / "odd.json"
    path.write_text(text.replace(old, new, 1))
    code, found = check_file(str(path))
    assert code == 2
    assert found["error"]


@pytest.mark.parametrize("path", FROZEN[::7], ids=[path.stem for path in FROZEN[::7]])
def test_a_truncated_file_is_refused(tmp_path: Path, path: Path) -> None:
    data = path.read_bytes()
    short = tmp_path / "short.json"
    for end in range(0, len(data) - 2, max(1, len(data) // 50)):
        short.write_bytes(data[:end])
        assert check_file(str(short))[0] == 2


@pytest.mark.slow
def test_any_value_of_a_wrong_type_is_refused_or_found() -> None:
    """None of them ends in an exception of Python's own."""
    rng = np.random.default_rng(9)
    odd: list[Any] = [None, True, -1, 0, 2**53, 0.5, -0.5, 1e300, "", "+inf", [], {}, [[]], [None]]
    for path in FROZEN[::4]:
        leaves = list(_leaves(_document(path)["claim"]))
        for i in rng.choice(len(leaves), size=min(25, len(leaves)), replace=False):
            document = _document(path)
            part, value = _value(document, leaves[i])
            part[leaves[i][-1]] = odd[int(rng.integers(len(odd)))]
            _found(document)
            _found({**document, "claim": value})


@pytest.mark.parametrize("data", [b"", b"\xff\xfe", b"[]", b"3", b"{}", b'{"a": 1}', b"\x00" * 99])
def test_bytes_that_are_no_document_are_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "bytes.json"
    path.write_bytes(data)
    assert check_file(str(path))[0] == 2


def test_a_changed_digest_is_found() -> None:
    for part in ("claim", "counts", "provenance"):
        document = _document(ROOT / "tests" / "certificate" / "frozen" / "bundle-1.json")
        document[f"{part}_digest"] = "sha256:" + "0" * 64
        assert _found(document) == [f"{part}_digest: the digest does not fit the {part}"]


def test_a_bundle_that_spends_more_than_its_delta_is_found() -> None:
    document = _document(ROOT / "tests" / "certificate" / "frozen" / "bundle-1.json")
    document["claim"]["delta"] = 0.0499999
    assert "the claims spend 0.05" in _found(_mended(document))[0]


def test_exit_codes_are_those_of_the_worst(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good, forged, odd = (str(tmp_path / name) for name in ("good", "forged", "odd"))
    Path(good).write_text(json.dumps(_shield()))
    Path(forged).write_text(json.dumps(_shield(threshold=0.9)))
    Path(odd).write_text("{")
    main: Callable[[list[str]], int] = exact_verifier.main
    assert [main([good]), main([good, forged, odd]), main([good, odd])] == [0, 1, 2]
    assert main([str(tmp_path / "missing")]) == 2
    assert main([]) == 2
    said = capsys.readouterr().out
    assert "wrong: certificate.claim.tables[0].threshold: stored 0.9" in said
    assert "taken on trust: " in said


def test_the_package_and_the_verifier_find_the_same_forgery(tmp_path: Path) -> None:
    path = tmp_path / "forged.json"
    path.write_text(json.dumps(_shield(allowed=20)))
    assert not load_certificate(path).verify()
    assert check_file(str(path))[0] == 1


@pytest.mark.parametrize("delta", [1e-16, 1e-30, 1e-199, 1e-250, 1e-300])
def test_a_tiny_delta_keeps_its_digits(delta: float) -> None:
    certificate = calibrate([0.3] * 90 + [0.9] * 60, [True] * 150, delta=delta, n_bins=2)
    assert _found(json.loads(json.dumps(certificate.to_dict()))) == []


def test_counts_in_the_millions_are_decided_exactly() -> None:
    """Where the tail is a sum of thousands of terms, against the package's own bound."""
    from decimal import Decimal, localcontext

    from pacbound.stats.binomial import binomial_upper

    with localcontext(exact_verifier.CONTEXT):
        for k, n in [(500_000, 10**6), (20_000, 5 * 10**6), (10**6 - 3, 10**6), (0, 10**9)]:
            bound = Decimal(binomial_upper(k, n, delta=0.01))
            level = Decimal("0.01")
            assert exact_verifier.few(k, n, bound, level) <= level
            assert exact_verifier.few(k, n, bound * (1 - Decimal("1e-9"))) > level * (
                1 - Decimal("1e-6")
            )


def test_a_file_that_asks_for_hours_is_refused_unless_one_is_patient(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(exact_verifier, "MOST_WORK", 1)
    document = _document(ROOT / "tests" / "certificate" / "frozen" / "cascade-exact-1.json")
    exact_verifier.exact_test.cache_clear()
    assert "more computing than is tried" in _found(document)[0]
    assert check_document(document, patient=True).wrong == []
