"""`pacbound together`: claims declared in a file, or made already, as one certificate."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pacbound import (
    calibrate,
    certify_abstention,
    certify_cascade,
    certify_false_alarms,
    certify_recall,
    certify_shield,
    load_certificate,
)
from pacbound.claims.bundle import CertificateBundle

Run = Callable[..., subprocess.CompletedProcess[str]]

CLAIMS = """
delta = 0.03

[brake]
claim = "shield"
data = "rows.npz"
score = "s"
unsafe = "u"
xi = 0.2
share = 2

[danger]
claim = "calibration"
data = ["rows.npz"]
confidence = "s"
correct = "u"
n_bins = 5
"""


@pytest.fixture
def rows(tmp_path: Path) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    unsafe = rng.random(800) < 0.3
    score = np.where(unsafe, rng.beta(6, 2, size=800), rng.beta(1, 6, size=800))
    np.savez(tmp_path / "rows.npz", s=score, u=unsafe)
    return score, unsafe


DRAWN = """
delta = 0.05

[patients]
claim = "recall"
data = "rows.npz"
score = "s"
positive = "u"
clusters = "p"
cluster_bound = 4
seed = 3
target = 0.8

[shifted]
claim = "false-alarms"
data = ["rows.npz"]
score = "s"
positive = "u"
weights = "w"
weight_bound = 2.0
seed = 0
xi = 0.3

[percent]
claim = "calibration"
data = "percent.csv"
confidence = "c"
correct = "ok"
delimiter = ";"
scale = 100
n_bins = 2

[alike]
claim = "differ"
data = "models.npz"
confidence = ["c"]
prediction = ["fast", "slow"]
xi = 0.3

[answers]
claim = "abstention"
data = "rows.npz"
confidence = "s"
correct = "u"
first_threshold = 0.9
xi = 0.3
"""


def test_declared_claims_draw_rows_and_read_tables_as_their_functions_do(
    pacbound: Run, tmp_path: Path, rows: tuple[np.ndarray, np.ndarray]
) -> None:
    score, unsafe = rows
    folder = tmp_path / "declared"
    folder.mkdir()
    patient, weight = np.arange(800) // 4, np.where(score > 0.5, 2.0, 0.5)
    np.savez(folder / "rows.npz", s=score, u=unsafe, p=patient, w=weight)
    models: dict[str, Any] = {
        "c": score,
        "fast": unsafe * (score < 0.2),
        "slow": np.zeros(800, dtype=int),
    }
    np.savez(folder / "models.npz", **models)
    (folder / "percent.csv").write_text("c;ok\n" + "40;0\n90;1\n" * 50)
    (folder / "claims.toml").write_text(DRAWN)
    pacbound("together", "declared/claims.toml", "-o", "all.json")
    bundle = load_certificate(tmp_path / "all.json")
    assert isinstance(bundle, CertificateBundle)
    by_patient = certify_recall(
        score, unsafe, target=0.8, delta=0.01, clusters=patient, cluster_bound=4, seed=3
    )
    assert bundle["patients"].claim_digest == by_patient.claim_digest
    shifted = certify_false_alarms(
        score, unsafe, xi=0.3, delta=0.01, weights=weight, weight_bound=2, seed=0
    )
    assert bundle["shifted"].claim_digest == shifted.claim_digest
    percent = calibrate([0.4, 0.9] * 50, [0, 1] * 50, n_bins=2, delta=0.01)
    assert bundle["percent"].claim_digest == percent.claim_digest
    alike = certify_cascade(
        score, np.column_stack([models["fast"], models["slow"]]), xi=0.3, delta=0.01, claim="differ"
    )
    assert bundle["alike"].claim_digest == alike.claim_digest
    answers = certify_abstention(score, unsafe, xi=0.3, delta=0.01, first_threshold=0.9)
    assert bundle["answers"].claim_digest == answers.claim_digest


def test_claims_that_are_declared_again_draw_the_same_rows(
    pacbound: Run, tmp_path: Path, rows: tuple[np.ndarray, np.ndarray]
) -> None:
    score, unsafe = rows
    np.savez(tmp_path / "rows.npz", s=score, u=unsafe, p=np.arange(800) // 4)
    claims = [
        f'[{name}]\nclaim = "recall"\ndata = "rows.npz"\nscore = "s"\npositive = "u"\n'
        f'clusters = "p"\ntarget = {target}\n'
        for name, target in (("high", 0.8), ("low", 0.5))
    ]
    (tmp_path / "claims.toml").write_text("\n".join(["delta = 0.02", *claims]))
    made = []
    for output in ("a.json", "a.json", "b.json"):
        pacbound("together", "claims.toml", "-o", output)
        bundle = load_certificate(tmp_path / output)
        made.append([member.draw.seed for member in bundle.members.values() if member.draw])
    assert made[0] == made[1]
    assert len({*made[0], *made[2]}) == 4


def test_declared_claims_are_certified_with_their_shares(
    pacbound: Run, tmp_path: Path, rows: tuple[np.ndarray, np.ndarray]
) -> None:
    (tmp_path / "claims.toml").write_text(CLAIMS)
    done = pacbound("together", "claims.toml", "-o", "all.json")
    assert "2 claims together, delta 3 %" in done.stdout
    bundle = load_certificate(tmp_path / "all.json")
    assert isinstance(bundle, CertificateBundle)
    score, unsafe = rows
    brake = certify_shield(score, unsafe, xi=0.2, delta=0.02)
    assert bundle["brake"].claim_digest == brake.claim_digest
    danger = calibrate(score, unsafe, delta=0.01, n_bins=5)
    assert bundle["danger"].claim_digest == danger.claim_digest
    pacbound("verify", "all.json")


def test_certificates_that_were_made_are_put_together_by_their_names(
    pacbound: Run, tmp_path: Path, rows: tuple[np.ndarray, np.ndarray]
) -> None:
    calibrate(*rows, delta=0.1).save(tmp_path / "a.json")
    certify_recall(*rows, target=0.8, delta=0.2).save(tmp_path / "b.json")
    pacbound("together", "a.json", "b.json", "-o", "all.json")
    bundle = load_certificate(tmp_path / "all.json")
    assert isinstance(bundle, CertificateBundle)
    assert (list(bundle), bundle.delta) == (["a", "b"], 0.3)
    done = pacbound("together", "a.json", "b.json", "--delta", 0.25, code=2)
    assert "spend 0.3 together" in done.stderr
    (tmp_path / "deep").mkdir()
    calibrate(*rows, delta=0.1, n_bins=3).save(tmp_path / "deep" / "a.json")
    done = pacbound("together", "a.json", "deep/a.json", code=2)
    assert "Two certificates are called 'a'" in done.stderr


@pytest.mark.usefixtures("rows")
@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ("delta = ", "is not TOML"),
        ("delta = 0.1", "There are no claims"),
        ("delta = 0.1\nbrake = 3", "brake is not a claim"),
        (CLAIMS.replace("delta = 0.03", ""), "says no delta"),
        (CLAIMS.replace('"shield"', '"sword"'), "claim = 'sword' is not one of differ"),
        (CLAIMS.replace("xi = 0.2\n", ""), "[brake]: xi is missing, which shield needs"),
        (CLAIMS.replace("xi = 0.2", "xi = 0.2\ntarget = 1"), "shield has no option 'target'"),
        (CLAIMS.replace("xi = 0.2", "xi = 0.2\ndelta = 0.1"), "shield has no option 'delta'"),
        (CLAIMS.replace("share = 2", "share = -1"), "are not shares"),
        (CLAIMS.replace('data = "rows.npz"\n', ""), "data names no file"),
        (CLAIMS.replace('data = "rows.npz"', "data = [3]"), "expected the name of a file"),
        (CLAIMS.replace('unsafe = "u"\n', ""), "[brake]: unsafe is missing"),
        (CLAIMS.replace("score =", "scores ="), "has no option 'scores': leave it out. Did you"),
        (CLAIMS.replace('data = ["rows.npz"]\n', ""), "[danger]: data names no file"),
        (CLAIMS.replace("data = [", "tallies = ["), "calibration has no option 'tallies'"),
        (CLAIMS.replace('["rows.npz"]', "[3]"), "expected the name of a file"),
        (CLAIMS.replace('"rows.npz"', '"gone.npz"'), "gone.npz"),
        (CLAIMS.replace('"s"', '"t"'), "[brake]"),
        (CLAIMS.replace("xi = 0.2", "xi = 2"), "xi=2 is not a rate"),
    ],
)
def test_a_declaration_that_cannot_be_ends_with_2_and_writes_nothing(
    pacbound: Run, tmp_path: Path, declared: str, message: str
) -> None:
    (tmp_path / "claims.toml").write_text(declared)
    done = pacbound("together", "claims.toml", "-o", "all.json", code=2)
    assert message in done.stderr
    assert not (tmp_path / "all.json").exists()
