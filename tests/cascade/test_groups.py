"""Cascades in groups: what is certified, what is refused, and what runs on it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pacbound import AsyncCascade, Cascade, Tally, certify_cascade, load_certificate
from pacbound.cascade import Answer
from pacbound.claims.cascade import CascadeCertificate
from pacbound.claims.certificate import certificate_from_dict
from pacbound.documents import digest
from pacbound.errors import CertificateError, InvalidTypeError, InvalidValueError

N = 1200
RNG = np.random.default_rng(3)
LABELS = RNG.integers(0, 3, size=N)
SCORES = RNG.beta(4, 1, size=N)
NIGHT = RNG.random(N) < 0.4
TIMES = np.where(NIGHT, "night", "day")
FAST = np.where(RNG.random(N) < SCORES ** np.where(NIGHT, 1.0, 0.3), LABELS, (LABELS + 1) % 3)
SLOW = np.where(RNG.random(N) < 0.95, LABELS, (LABELS + 2) % 3)
ANSWERS = np.column_stack([FAST, SLOW])
ASKED: dict[str, Any] = {"xi": 0.08, "delta": 0.05}


def certified(groups: Any = TIMES, **options: Any) -> CascadeCertificate:
    found = certify_cascade(SCORES, ANSWERS, LABELS, groups=groups, **{**ASKED, **options})
    assert isinstance(found, CascadeCertificate)
    return found


def test_the_worst_group_decides_for_all() -> None:
    common = certified().thresholds
    alone = {
        time: certify_cascade(
            SCORES[time == TIMES], ANSWERS[time == TIMES], LABELS[time == TIMES], **ASKED
        ).thresholds[0]
        for time in ("day", "night")
    }
    assert isinstance(common, np.ndarray)
    assert alone["night"] > alone["day"]
    assert common[0] == alone["night"]


def test_groups_that_overlap_have_all_rows_among_them() -> None:
    certificate = certified({"night": NIGHT, "odd": np.arange(N) % 2 == 1})
    assert list(certificate.groups) == ["all rows", "night", "odd"]
    assert certificate.groups["all rows"].n == certificate.n == N
    assert certificate.exit_rates.tolist() == certificate.groups["all rows"].exit_rates.tolist()
    plain = certify_cascade(SCORES, ANSWERS, LABELS, **ASKED)
    assert certificate.thresholds >= plain.thresholds
    assert certified({"everyone": np.ones(N, bool)}).thresholds == plain.thresholds


def test_a_disagreement_without_a_label_is_a_loss_in_its_group() -> None:
    missing = np.where(NIGHT, np.nan, LABELS)
    options: dict[str, Any] = {**ASKED, "groups": TIMES, "group_thresholds": "own"}
    some = certify_cascade(SCORES, ANSWERS, missing, **options)
    full = certified(group_thresholds="own")
    # As if every label that is missing were what the slow model says.
    lost = certify_cascade(SCORES, ANSWERS, np.where(NIGHT, SLOW, LABELS), **options)
    for certificate in (full, lost):
        assert some.groups["day"].thresholds == certificate.groups["day"].thresholds
    assert some.groups["night"].thresholds == lost.groups["night"].thresholds
    assert some.groups["night"].thresholds >= full.groups["night"].thresholds
    assert some.unlabelled.in_all == int((NIGHT & (FAST != SLOW)).sum())
    assert some.groups["day"].unlabelled.in_all == 0
    best = some.groups["night"].best_possible.thresholds
    assert best <= full.groups["night"].thresholds
    assert not some.settled
    assert "More labels could lower" in some.summary()


def test_a_small_group_is_named_and_refuses_common_thresholds_but_not_own_ones() -> None:
    times = TIMES.astype("<U5")
    times[:10] = "dawn"
    common, own = certified(times), certified(times, group_thresholds="own")
    assert not common.certified
    assert common.thresholds == np.inf
    assert common.refusal is not None
    assert "'dawn', of 10 rows" in common.summary()
    assert common.refusal.needed == 36
    assert own.certified
    assert own.refused_groups == ("dawn",)
    assert "'dawn': 10 rows, never exit early" in own.summary()
    for certificate in (common, own):
        assert all(repr(name) in certificate.summary() for name in ("dawn", "day", "night"))


def test_a_grouped_tally_certifies_like_its_rows_and_adds_up() -> None:
    parts = [
        Tally.count(
            "cascade",
            confidence=SCORES[rows],
            prediction=ANSWERS[rows],
            label=LABELS[rows],
            groups=TIMES[rows],
        )
        for rows in (slice(0, 500), slice(500, N))
    ]
    total = parts[0] + parts[1]
    assert certify_cascade(data=total, **ASKED).claim_digest == certified().claim_digest


def forged(certificate: CascadeCertificate, *path: Any, value: Any) -> Any:
    document = certificate.to_dict()
    place = document["claim"]
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    # With digests that fit: only recomputing is left.
    document["claim_digest"] = digest(document["claim"])
    document["counts_digest"] = certificate_from_dict(document).counts_digest
    return document


@pytest.mark.parametrize("shared", ["common", "own"])
def test_forged_counts_of_a_group_are_found(shared: str) -> None:
    certificate = certified(group_thresholds=shared)
    for path, value in [
        (("tables", 0, "n"), certificate.groups["day"].n + 100),
        (("n",), N + 1),
        (("tables", 1, "thresholds"), [0.25]),
        (("tables", 1, "walks", 0, "only_slow_added"), [[0]]),
    ]:
        try:
            found = certificate_from_dict(forged(certificate, *path, value=value)).verify()
        except CertificateError:
            continue
        assert not found, path


def test_a_group_that_overlaps_cannot_have_more_rows_than_all() -> None:
    certificate = certified({"night": NIGHT})
    with pytest.raises(CertificateError, match="more than all"):
        certificate_from_dict(forged(certificate, "tables", 1, "n", value=N + 1))


def test_a_certificate_of_many_groups_stays_small_and_its_work_is_estimated(
    tmp_path: Path,
) -> None:
    certificate = certified(np.arange(N) % 30, xi=0.3)
    certificate.save(tmp_path / "groups.json")
    assert (tmp_path / "groups.json").stat().st_size < 100_000
    loaded = load_certificate(tmp_path / "groups.json")
    assert loaded.verify()
    assert 0 < loaded.work() < 0.1


def test_a_tally_whose_groups_are_not_among_all_rows_is_not_read() -> None:
    tally = Tally.count(
        "cascade",
        confidence=SCORES,
        prediction=ANSWERS,
        label=LABELS,
        groups={"night": NIGHT},
    )
    assert Tally.from_dict(tally.to_dict()) == tally
    night, first = tally.groups.index("night"), tally.cells[:, 0].tolist()
    for change in ("more", "elsewhere", "renamed"):
        document = {key: value for key, value in tally.to_dict().items() if key != "digest"}
        if change == "more":
            document["counts"][first.index(night)][0] += 2
        elif change == "elsewhere":
            document["cells"][-1][1] = 2**16
        else:
            document["groups"] = ["everyone", "night"]
        with pytest.raises(CertificateError, match="not each is a part of 'all rows'"):
            Tally.from_dict({**document, "digest": digest(document)})


def probabilities(column: Any) -> Any:
    """A model whose rows hold its score and its answer."""

    def model(X: Any) -> Any:
        score, answer = X[:, column], X[:, column + 1].astype(int)
        table = np.repeat((1 - score)[:, None] / 2, 3, axis=1)
        table[np.arange(len(X)), answer] = score
        return table

    return model


ROWS = np.column_stack([np.maximum(SCORES, 0.34), FAST, np.ones(N), SLOW])
MODELS = [probabilities(0), probabilities(2)]


def test_a_cascade_runs_each_row_at_the_thresholds_of_its_group() -> None:
    own = certified(group_thresholds="own")
    limits = own.thresholds
    assert isinstance(limits, dict)
    cascade = Cascade(MODELS, own, batch_size=100)
    exits = cascade.run(ROWS, groups=TIMES).exits
    limit = np.array([limits[time][0] for time in TIMES])
    assert (exits == (ROWS[:, 0] < limit)).all()
    assert (cascade.predict(ROWS, groups=TIMES) == np.where(exits, SLOW, FAST)).all()
    assert "own of 2 groups" in repr(cascade)


def test_an_async_cascade_takes_groups_as_names_or_by_a_function() -> None:
    async def fast(item: int) -> Answer:
        return Answer(int(FAST[item]), confidence=float(SCORES[item]))

    async def slow(item: int) -> Answer:
        return Answer(int(SLOW[item]))

    async def main() -> None:
        router = AsyncCascade([fast, slow], certified(group_thresholds="own"))
        items = list(range(60))
        limits = router.thresholds
        assert isinstance(limits, dict)
        expected = [int(SCORES[i] < limits[TIMES[i]][0]) for i in items]
        assert (await router.run(items, groups=TIMES[:60])).exits.tolist() == expected
        by_item = (await router.run(iter(items), groups=lambda item: str(TIMES[item]))).exits
        assert by_item.tolist() == expected
        assert (await router.route(3, group=str(TIMES[3]))).exit == expected[3]
        assert (await router.route(int(SCORES.argmax()), group="dusk")).exit == 1
        with pytest.raises(InvalidTypeError, match="groups is missing"):
            await router.run(items)
        with pytest.raises(InvalidTypeError, match="groups is missing"):
            await router.route(3)
        with pytest.raises(InvalidValueError, match="59 names for 60 items"):
            await router.run(items, groups=TIMES[:59])
        with pytest.raises(InvalidValueError, match="Item 2 has no group"):
            await router.run(iter(items), groups=TIMES[:2])

    asyncio.run(main())


def test_an_early_exit_network_takes_the_groups_of_its_rows() -> None:
    torch = pytest.importorskip("torch")
    from pacbound.cascade.early_exit import EarlyExitNetwork

    parts = [torch.nn.Identity(), torch.nn.Identity()]
    network = EarlyExitNetwork(parts, parts).eval()
    x = torch.tensor([[2.0, 0.0], [2.0, 0.0], [2.0, 0.0], [9.0, 0.0]])
    own: Any = {"day": [0.5], "night": [0.95]}
    groups = ["day", "night", "dusk", "night"]
    assert network.infer(x, own, groups=groups).exits.tolist() == [0, 1, 1, 0]
    for row, expected in enumerate([0, 1, 1, 0]):
        one = network.infer(x[row : row + 1], own, groups=groups[row : row + 1])
        assert one.exits.tolist() == [expected]
    with pytest.raises(InvalidTypeError, match="groups is missing"):
        network.infer(x, own)
