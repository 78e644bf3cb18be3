"""What a certificate must pass before anything acts on it, and what verifying it may cost."""

import copy
import json
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.kinds.cascade import cascade_tally
from tests.kinds.cascade_paths import three_models
from tests.kinds.shield import shield_tally

from pacbound import calibrate, certify_shield, documents
from pacbound.cascade import AsyncCascade, Cascade
from pacbound.claims.cascade import CascadeCertificate, certify_cascade
from pacbound.claims.certificate import MOST_WORK, Certificate, certificate_from_dict
from pacbound.errors import CertificateError
from pacbound.stats.paired import paired_test_work

FROZEN = Path(__file__).parent / "frozen"


def mended(certificate: Certificate, change: Callable[[dict[str, Any]], Any]) -> Any:
    """The certificate after a change to its claim, with digests that fit."""
    document: dict[str, Any] = json.loads(json.dumps(certificate.to_dict()))
    change(document["claim"])
    document["claim_digest"] = documents.digest(document["claim"])
    document["counts_digest"] = certificate_from_dict(document).counts_digest
    return certificate_from_dict(document)


def cascade() -> CascadeCertificate:
    return certify_cascade(data=cascade_tally(600), xi=0.05, delta=0.05)


def lowered(claim: dict[str, Any]) -> None:
    limits = claim["tables"][0]["thresholds"]
    claim["tables"][0]["thresholds"] = [0.0] * len(limits)


# Whole numbers.


def test_trials_that_add_up_to_the_rows_only_in_64_bits_are_refused() -> None:
    certificate = calibrate(np.linspace(0, 1, 100), np.ones(100), delta=0.1, n_bins=2**12)
    tables = certificate.to_dict()["claim"]["tables"][0]

    def wrap(claim: dict[str, Any]) -> None:
        claim["n"] = 100
        cells = list(range(2**11 + 1))
        # 2^53 rows in each of 2^11 bins are 2^64, which 64 bits do not tell from none.
        trials = [2**53] * 2**11 + [100]
        claim["tables"] = [
            tables
            | {"counts": {"cells": cells, "wrong": [0] * len(cells), "right": trials}}
            | {"lower": [0.0] * len(cells), "upper": [1.0] * len(cells)}
        ]

    with pytest.raises(CertificateError, match="do not fit the counts"):
        mended(certificate, wrap)


def test_steps_of_a_walk_that_add_up_only_in_64_bits_are_refused() -> None:
    def wrap(claim: dict[str, Any]) -> None:
        (walk,) = claim["tables"][0]["walks"]
        steps = 2**11 + 1
        walk["cells"] = [list(range(2**16, 2**16 - steps, -1))]
        for key in ("exits_added", "only_slow_added", "only_fast_added"):
            walk[key] = [[2**53] * (steps - 1) + [0]]

    with pytest.raises(CertificateError, match="counts are not 0 to 600"):
        mended(cascade(), wrap)


# Thresholds.


def test_a_certified_cascade_of_two_models_that_never_exits_is_not_verified() -> None:
    never = mended(cascade(), lambda claim: claim["tables"][0].update(thresholds=["+inf"]))
    assert "claim.tables[0].thresholds" in str(never.verify())


def test_a_certified_cascade_of_three_models_that_never_exits_is_refused() -> None:
    certificate = certify_cascade(data=three_models(600), xi=0.1, delta=0.05)
    forged = mended(certificate, lambda claim: claim["tables"][0].update(thresholds=["+inf", 0.5]))
    assert not forged.verify()


def test_nothing_runs_on_a_cascade_certificate_that_does_not_follow_from_its_counts(
    tmp_path: Path,
) -> None:
    forged = mended(cascade(), lowered)
    rows = tmp_path / "rows.csv"
    rows.write_text("c\n0.5\n")

    async def remote(item: Any) -> Any:
        return item

    def local(items: Any) -> Any:
        return items

    for use in (
        lambda: Cascade([local, local], forged),
        lambda: AsyncCascade([remote, remote], forged),
        lambda: forged.apply_to_file(rows, tmp_path / "out.csv", confidence="c"),
    ):
        with pytest.raises(CertificateError, match="does not follow from its own counts"):
            use()
    assert not (tmp_path / "out.csv").exists()


def test_no_early_exit_network_runs_on_a_forged_certificate() -> None:
    torch = pytest.importorskip("torch")
    from pacbound.cascade.early_exit import EarlyExitNetwork

    parts = [torch.nn.Identity(), torch.nn.Identity()]
    network = EarlyExitNetwork(parts, heads=parts).eval()
    with pytest.raises(CertificateError, match="does not follow from its own counts"):
        network.infer(torch.zeros(3, 4), mended(cascade(), lowered))


def test_no_interval_is_given_by_a_forged_calibration(tmp_path: Path) -> None:
    certificate = calibrate([0.9] * 50, [True] * 50, delta=0.1, n_bins=2)
    forged = mended(certificate, lambda claim: claim["tables"][0].update(lower=[0.999]))
    rows = tmp_path / "rows.csv"
    rows.write_text("c\n0.5\n")
    uses: list[Callable[[], Any]] = [
        lambda: forged.interval([0.9]),
        lambda: forged.estimate([0.9]),
        lambda: forged.apply_to_file(rows, tmp_path / "out.csv", confidence="c"),
    ]
    for use in uses:
        with pytest.raises(CertificateError, match="does not follow from its own counts"):
            use()


def test_a_certificate_is_recomputed_once_and_one_made_here_not_at_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    certificate = cascade()
    loaded: Any = certificate_from_dict(certificate.to_dict())
    recomputed = []
    original = CascadeCertificate.recomputed

    def counting(self: CascadeCertificate) -> CascadeCertificate:
        recomputed.append(self)
        return original(self)

    monkeypatch.setattr(CascadeCertificate, "recomputed", counting)
    models = [lambda rows: rows] * 2
    Cascade(models, certificate)
    assert not recomputed
    Cascade(models, loaded)
    Cascade(models, loaded)
    assert loaded.verify()
    assert recomputed == [loaded]


def test_a_document_changed_after_it_was_verified_changes_nothing() -> None:
    document = cascade().to_dict()
    loaded: Any = certificate_from_dict(document)
    before = loaded.thresholds.tolist()
    assert loaded.verify()
    document["claim"]["tables"][0]["thresholds"] = [0.0]
    loaded.to_dict()["claim"]["tables"][0]["thresholds"] = [0.0]
    assert loaded.to_dict()["claim"]["tables"][0]["thresholds"] == before
    assert loaded.thresholds.tolist() == before


# Arrays and words.


def test_nobody_writes_into_the_arrays_of_a_certificate() -> None:
    calibration = calibrate([0.9, 0.2], [True, False], delta=0.1, n_bins=4)
    shield = certify_shield(np.linspace(0, 1, 500), np.arange(500) > 480, xi=0.05, delta=0.05)
    bins = vars(calibration.bins)
    walks = [vars(walk) for walk in cascade().tables[0].walks]
    arrays = [*bins.values(), *(array for walk in walks for array in walk.values())]
    arrays = [array for array in arrays if array is not None]
    for array in (*arrays, *shield.histograms[0].values(), calibration.lower):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


def test_nobody_changes_the_values_of_a_certificate(certificate: Certificate) -> None:
    before = certificate.to_dict()
    for values in (certificate.values, *_mappings(certificate.values)):
        held: Any = values
        with pytest.raises(TypeError, match="cannot be changed"):
            held["delta"] = 1e-9
        with pytest.raises(TypeError, match="cannot be changed"):
            held.update(delta=1e-9)
        with pytest.raises(TypeError, match="cannot be changed"):
            held.clear()
    assert certificate.to_dict() == before
    certificate.summary()
    copied: Any
    for copied in (pickle.loads(pickle.dumps(certificate)), copy.deepcopy(certificate)):
        assert copied.to_dict() == before
        with pytest.raises(TypeError, match="cannot be changed"):
            copied.values["delta"] = 1e-9


def _mappings(value: Any) -> Iterator[Any]:
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for part in parts:
        if isinstance(part, dict):
            yield part
        yield from _mappings(part)


def test_a_changed_certificate_says_so_wherever_it_is_shown(certificate: Certificate) -> None:
    document = json.loads(json.dumps(certificate.to_dict()))
    # By little: with another delta, other small groups would be left out.
    document["claim"]["delta"] *= 1.001
    changed = certificate_from_dict(document)
    for shown in (repr(changed), changed.summary(), changed._repr_html_()):
        assert "CHANGED AFTER IT WAS WRITTEN" in shown
    assert "CHANGED" not in certificate.summary() + certificate._repr_html_()


# Digests.


def test_the_digest_of_the_counts_holds_no_computed_number(certificate: Certificate) -> None:
    counted = certificate.counted()
    # Of a rate under a shield, the threshold was driven, and not computed.
    asked = {ask.name for ask in certificate.by.asks}
    computed = {"thresholds", "threshold", "descriptive", "refusal", "certified"} - asked
    assert not computed & set(counted)
    assert all("lower" not in table for table in counted.get("tables", []))
    assert certificate.to_dict()["counts_digest"] == certificate.counts_digest
    assert certificate_from_dict(certificate.to_dict()).counts_digest == certificate.counts_digest


@pytest.mark.parametrize(
    ("name", "digest"),
    [
        ("calibration-1", "23cd3310687226d13a47ec50696b311b91f455698ef6dc5ed180a17c582d8c2c"),
        ("shield-1", "0f7be2ca1d9521cbba40ada4b7e303da4d5cf9ec1836f615186b6b96d38378a3"),
    ],
)
def test_the_digest_of_frozen_counts_is_the_same_everywhere(name: str, digest: str) -> None:
    loaded = certificate_from_dict(json.loads((FROZEN / f"{name}.json").read_text()))
    assert loaded.counts_digest == f"sha256:{digest}"


def test_other_counts_or_another_question_have_another_digest() -> None:
    tally = shield_tally(500)
    made = [
        certify_shield(data=tally, xi=0.05, delta=0.05),
        certify_shield(data=tally, xi=0.05, delta=0.04),
        certify_shield(data=tally, xi=0.06, delta=0.05),
        certify_shield(data=shield_tally(501), xi=0.05, delta=0.05),
    ]
    assert len({certificate.counts_digest for certificate in made}) == len(made)


# Denial of service.


def test_many_keys_are_read_in_one_pass_and_a_repeated_one_is_named() -> None:
    keys = ",".join(f'"{i}":0' for i in range(200_000))
    text = f'{{{keys},"199999":0}}'.encode()
    with pytest.raises(CertificateError, match="'199999' stands there twice"):
        documents.parse(text, what="a certificate", name="it")


def test_empty_tables_cannot_ask_for_more_memory_than_a_file_may() -> None:
    certificate = calibrate([0.9], [True], delta=0.1, groups=["a"])
    counts: dict[str, Any] = {"cells": [], "wrong": [], "right": []}
    empty: dict[str, Any] = {"counts": counts, "lower": [], "upper": []}

    def swell(claim: dict[str, Any]) -> None:
        claim["bins"]["n_bins"] = 2**20
        claim["tables"] += [{"group": f"b{i:02}", **empty} for i in range(50)]

    with pytest.raises(CertificateError, match="have too many bins"):
        mended(certificate, swell)


def test_more_exits_than_are_ever_counted_are_refused() -> None:
    certificate = certify_cascade(data=three_models(600), xi=0.1, delta=0.05)

    def widen(claim: dict[str, Any]) -> None:
        table = claim["tables"][0]
        table["walks"] = [{key: [[0]] * 5000 for key in walk} for walk in table["walks"]]

    with pytest.raises(CertificateError, match="no tables of a walk"):
        mended(certificate, widen)


def test_an_exact_region_that_takes_minutes_is_computed_only_on_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    certificate = certify_cascade(data=cascade_tally(600), xi=0.05, delta=0.05)

    def slow(claim: dict[str, Any]) -> None:
        claim.update(n=199_999, xi=0.1, delta=1e-100)
        claim["tables"][0].update(n=199_999)

    loaded = mended(certificate, slow)
    asked: list[Certificate] = []

    def recomputed(self: CascadeCertificate) -> CascadeCertificate:
        asked.append(self)
        return certificate

    monkeypatch.setattr(CascadeCertificate, "recomputed", recomputed)
    found = loaded.verify()
    assert not found
    assert "times longer than the longest usual certificate" in str(found)
    with pytest.raises(CertificateError, match=r"not tried.*verify\(patient=True\)"):
        loaded.thresholds_for_use()
    assert not asked
    loaded.verify(patient=True)
    assert asked


@pytest.mark.parametrize("xi", [1e-4, 0.01, 0.06, 0.1, 0.3, 0.9])
def test_no_usual_certificate_is_too_much_work(xi: float) -> None:
    for n in (100, 20_000, 199_999, 10**9):
        for delta in (0.05, 1e-3, 1e-3 / 7, 1e-9 / 7):
            assert paired_test_work(n, xi=xi, delta=delta) < MOST_WORK * 0.75
    assert paired_test_work(199_999, xi=xi, delta=1e-3) < 1.05
