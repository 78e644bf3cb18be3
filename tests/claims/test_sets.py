"""Prediction sets: what counts as missed, types, groups, tables, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas
import polars
import pytest
from typer.testing import CliRunner

from pacbound import Monitor, certify_sets, load_certificate
from pacbound.claims.bundle import certify_together
from pacbound.cli.app import app
from pacbound.documents import Reader
from pacbound.errors import CertificateError, InvalidTypeError, InvalidValueError, PacboundError

LABELS = ["cat", "dog", "eel"]


@pytest.fixture(scope="module")
def rows() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    probability = rng.dirichlet([0.4] * 3, size=600)
    return probability, (probability.cumsum(axis=1) > rng.random((600, 1))).argmax(axis=1)


@pytest.fixture
def table(tmp_path: Path, rows: tuple[np.ndarray, np.ndarray]) -> Path:
    probability, label = rows
    columns = dict(zip(LABELS, probability.T, strict=True))
    named = [LABELS[place] for place in label]
    path = tmp_path / "animals.parquet"
    polars.DataFrame({**columns, "animal": named, "site": ["a", "b"] * 300}).write_parquet(path)
    return path


def test_a_set_holds_every_label_from_the_threshold_on(
    rows: tuple[np.ndarray, np.ndarray],
) -> None:
    certificate = certify_sets(*rows, xi=0.1, delta=0.05)
    limit = certificate.threshold
    found = certificate.sets([[limit, np.nextafter(limit, 0), 1.0]])
    assert found.tolist() == [[True, False, True]]
    inside = certificate.sets(rows[0])[np.arange(600), rows[1]]
    assert (~inside).sum() == certificate.values["tables"][0]["allowed"]


def test_its_class_reads_the_claim_that_it_wrote(rows: tuple[np.ndarray, np.ndarray]) -> None:
    certificate = certify_sets(*rows, xi=0.1, delta=0.05)
    document = certificate.to_dict()
    claim = Reader(document["claim"], "claim")
    read = certificate.by.read(claim, certificate.provenance, document)
    assert read.claim() == certificate.claim()
    assert read.threshold == certificate.threshold


def test_arrays_frames_and_files_give_the_same_certificate(
    rows: tuple[np.ndarray, np.ndarray], table: Path
) -> None:
    asked: dict[str, Any] = {"xi": 0.1, "delta": 0.05}
    columns: dict[str, Any] = {"probability": LABELS, "label": "animal"}
    found = [
        certify_sets(*rows, **asked),
        certify_sets(**columns, data=polars.read_parquet(table), **asked),
        certify_sets(**columns, data=table, **asked),
        certify_sets(**columns, data=table, engine="polars", **asked),
    ]
    assert len({certificate.counts_digest for certificate in found}) == 1


@pytest.mark.parametrize("gap", [-1, np.nan])
def test_a_label_without_a_probability_is_missed_at_every_threshold(
    rows: tuple[np.ndarray, np.ndarray], gap: float
) -> None:
    probability, label = rows
    gaps = label.astype(float)
    gaps[:80] = gap
    refused = certify_sets(probability, gaps, xi=0.1, delta=0.05)
    assert not refused.certified
    assert refused.threshold == -np.inf
    assert "80 of 600 rows have no probability for their label" in refused.summary()
    assert refused.sets(probability).all()


def test_numbers_are_names_of_columns_where_columns_have_numbers_for_names(tmp_path: Path) -> None:
    """Taken for places, they would be those of the next column: here the one that is sure."""
    label = np.tile([1, 2], 300)
    sure = {str(name): np.where(label + 1 == name, 0.9, 0.05) for name in (1, 2, 3)}
    polars.DataFrame({**sure, "y": label}).write_csv(tmp_path / "rows.csv")
    frame = pandas.DataFrame(sure)
    found = [
        certify_sets(["1", "2", "3"], "y", data=tmp_path / "rows.csv", xi=0.1, delta=0.05),
        certify_sets(frame, label, xi=0.1, delta=0.05),
        certify_sets(frame.set_axis([1, 2, 3], axis=1), label, xi=0.1, delta=0.05),
        certify_sets(frame[["3", "1", "2"]], label, xi=0.1, delta=0.05),
    ]
    assert [certificate.threshold for certificate in found] == [found[0].threshold] * 4
    assert found[0].threshold <= 0.05
    places = certify_sets(frame.set_axis(range(3), axis=1), label - 1, xi=0.1, delta=0.05)
    assert places.threshold == found[0].threshold


def test_labels_that_count_from_1_are_not_taken_for_places(
    rows: tuple[np.ndarray, np.ndarray],
) -> None:
    probability, label = rows
    with pytest.raises(InvalidValueError, match=r"label holds 3, .*subtract 1 if labels count fr"):
        certify_sets(probability, label + 1, xi=0.1, delta=0.05)
    missing = certify_sets(probability, label + 1, xi=0.1, delta=0.05, missing=3)
    assert missing.values["tables"][0]["counts"]["cells"][0] == -1


def test_a_part_of_the_rows_may_have_labels_without_a_column_if_others_have_one(
    rows: tuple[np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    """Files are read in parts: what one part has is no reason to refuse all of them."""
    probability, label = rows
    names = np.array(LABELS, dtype=object)[label]
    names[:300] = "unicorn"
    columns = {name: probability[:, place] for place, name in enumerate(LABELS)}
    frame = pandas.DataFrame({**columns, "animal": names})
    for place, part in enumerate((frame[:300], frame[300:])):
        part.to_csv(tmp_path / f"{place}.csv", index=False)
    both: Any = [tmp_path / "0.csv", tmp_path / "1.csv"]
    asked: dict[str, Any] = {"xi": 0.6, "delta": 0.05}
    found = certify_sets(LABELS, "animal", data=both, **asked)
    arrays = certify_sets(frame[LABELS], names, **asked)
    assert found.to_dict()["claim"]["tables"] == arrays.to_dict()["claim"]["tables"]
    with pytest.raises(InvalidValueError, match="'unicorn', and no column is for these"):
        certify_sets(LABELS, "animal", data=both[0], **asked)


@pytest.mark.parametrize(
    ("probability", "said"),
    [
        (["cat", "cat"], "names 'cat' twice"),
        (["cat", "animal"], "both name the column 'animal'"),
        (["1", "1.0"], "names '1' and '1.0', which are both the label 1"),
    ],
)
def test_columns_of_one_label_are_refused(
    tmp_path: Path, probability: list[str], said: str
) -> None:
    columns = {"cat": [0.5], "1": [0.5], "1.0": [0.5], "animal": [1]}
    polars.DataFrame(columns).write_parquet(tmp_path / "t.parquet")
    with pytest.raises(InvalidValueError, match=said):
        certify_sets(probability, "animal", data=tmp_path / "t.parquet", xi=0.1, delta=0.05)


def test_sets_of_one_column_are_refused(rows: tuple[np.ndarray, np.ndarray]) -> None:
    certificate = certify_sets(*rows, xi=0.1, delta=0.05)
    for few in (rows[0][:, :1], rows[0][:, 0]):
        with pytest.raises(
            InvalidValueError, match=r"at least two\. For a sigmoid pass \[1 - p, p\]"
        ):
            certificate.sets(few)


def test_a_probability_that_is_nan_counts_as_missed_and_stays_in_the_set(
    rows: tuple[np.ndarray, np.ndarray],
) -> None:
    probability = rows[0].copy()
    probability[np.arange(5), rows[1][:5]] = np.nan
    certificate = certify_sets(probability, rows[1], xi=0.1, delta=0.05)
    assert certificate.values["tables"][0]["counts"]["cells"][0] == -1
    assert certificate.sets(probability)[np.arange(5), rows[1][:5]].all()


def test_probabilities_of_another_type_than_was_counted_are_refused(
    rows: tuple[np.ndarray, np.ndarray],
) -> None:
    certificate = certify_sets(rows[0].astype(np.float32), rows[1], xi=0.1, delta=0.05)
    assert certificate.values["dtype"] == "float32"
    with pytest.raises(InvalidTypeError, match="compute the probabilities in float32"):
        certificate.sets(rows[0])


def test_groups_share_a_threshold_or_have_their_own(
    rows: tuple[np.ndarray, np.ndarray], table: Path
) -> None:
    columns: dict[str, Any] = {
        "probability": LABELS,
        "label": "animal",
        "groups": "site",
        "data": table,
    }
    common = certify_sets(**columns, xi=0.2, delta=0.05)
    own = certify_sets(**columns, xi=0.2, delta=0.05, group_thresholds="own")
    assert common.threshold == min(
        certify_sets(rows[0][start::2], rows[1][start::2], xi=0.2, delta=0.05).threshold
        for start in (0, 1)
    )
    assert set(own.thresholds) == {"a", "b"}
    with pytest.raises(InvalidTypeError, match="own threshold"):
        _ = own.threshold
    assert (own.sets(rows[0], ["a", "b"] * 300) == own.sets(rows[0], ["b", "a"] * 300)).mean() < 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"probability": np.ones((4, 1))}, r"pass \[1 - p, p\]"),
        ({"probability": np.ones(4)}, r"expected \(rows, labels\)"),
        ({"probability": np.full((4, 3), 1.5)}, "expected scores from 0 to 1"),
        ({"label": ["x"] * 4}, "no column is for these"),
        ({"label": [0, 1]}, "label"),
        ({"xi": 1.0}, "To allow 2 %"),
        ({"delta": 0.9}, "for 95 % confidence pass delta=0.05"),
        ({"group_thresholds": "each"}, "expected 'common' or 'own'"),
        ({"probability": LABELS}, "names a column, and there is no table"),
        ({"data": "rows.csv"}, "name its column"),
        ({"cluster": [1] * 4}, "Did you mean clusters"),
    ],
)
def test_what_cannot_be_is_refused_with_the_remedy(change: dict[str, object], message: str) -> None:
    given = {"probability": np.full((4, 3), 1 / 3), "label": [0, 1, 2, 0], "xi": 0.1, "delta": 0.1}
    with pytest.raises(PacboundError, match=message):
        certify_sets(**{**given, **change})  # type: ignore[arg-type]


def test_a_certificate_is_saved_verified_and_found_out_if_it_is_changed(
    rows: tuple[np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    certificate = certify_sets(*rows, xi=0.1, delta=0.05)
    certificate.save(tmp_path / "sets.json")
    loaded = load_certificate(tmp_path / "sets.json")
    assert loaded.verify().ok
    assert loaded.summary() == certificate.summary()
    document = certificate.to_dict()
    document["claim"]["tables"][0]["threshold"] = 0.5
    from pacbound.claims.certificate import certificate_from_dict

    forged = certificate_from_dict(document)
    assert not forged.verify().ok
    with pytest.raises(CertificateError, match="changed after it was written"):
        _ = forged.threshold  # type: ignore[attr-defined]


def test_a_monitor_takes_in_rows_and_rings_when_sets_miss_their_labels(
    rows: tuple[np.ndarray, np.ndarray],
) -> None:
    certificate = certify_sets(*rows, xi=0.1, delta=0.05)
    monitor = Monitor(certificate, delta=0.01)
    assert monitor.update({"probability": rows[0], "label": rows[1]}) is None
    wrong = (rows[1] + 1) % 3
    assert monitor.update({"probability": rows[0], "label": wrong}) is not None
    assert "the true label is missing from at most 10 % of all sets" in monitor.summary()


def test_a_claim_of_sets_goes_into_a_bundle(rows: tuple[np.ndarray, np.ndarray]) -> None:
    bundle = certify_together(
        {"sets": lambda delta: certify_sets(*rows, xi=0.1, delta=delta)}, delta=0.05
    )
    assert bundle.verify().ok


def test_the_command_line_certifies_shows_verifies_and_draws(table: Path, tmp_path: Path) -> None:
    run = CliRunner().invoke
    output = str(tmp_path / "sets.json")
    columns = ["--probability", ",".join(LABELS), "--label", "animal", "--groups", "site"]
    made = run(app, ["sets", str(table), *columns, "--xi", "0.2", "--delta", "0.05", "-o", output])
    assert made.exit_code == 0, made.output
    assert "the true label is missing from at most 20 % of all sets in every group" in made.output
    assert run(app, ["verify", output, "--data", str(table)]).exit_code == 0
    named = ["--column", f"probability={','.join(LABELS)}", "--column", "groups=site"]
    again = run(app, ["verify", output, "--data", str(table), *named])
    assert "the data have the same counts, in the same files\n" in again.output
    watched = run(app, ["monitor", output, str(table), *named, "--delta", "0.01"])
    assert watched.exit_code == 0, watched.output
    strange = run(app, ["monitor", output, str(table), "--column", "score=a", "--delta", "0.01"])
    assert (
        "this sets certificate has no role 'score'. Its roles are probability, label, groups."
        in (strange.output)
    )
    shown = run(app, ["show", output])
    assert "Prediction sets of which at most 20 % miss the label" in shown.output
    assert "No row was used for training" in shown.output
    page = tmp_path / "page.html"
    assert run(app, ["report", output, "-o", str(page)]).exit_code == 0
    assert "sets that hold the true label" in page.read_text()


def test_an_option_that_cannot_be_names_itself(table: Path) -> None:
    columns = ["--probability", ",".join(LABELS), "--label", "animal"]
    found = CliRunner().invoke(app, ["sets", str(table), *columns, "--xi", "2", "--delta", "0.05"])
    assert found.exit_code == 2
    assert "--xi=2.0 is not a rate to be kept" in found.output


def test_a_refusal_says_how_many_rows_it_takes() -> None:
    refused = certify_sets(np.full((9, 2), 0.5), [0] * 9, xi=0.1, delta=0.05)
    assert "29 rows would do if none goes wrong" in refused.summary()
    with pytest.raises(InvalidValueError, match="refusal"):
        Monitor(refused, delta=0.01)


def test_a_claim_of_sets_is_not_applied_to_one_column_of_scores(
    rows: tuple[np.ndarray, np.ndarray],
) -> None:
    certificate = certify_sets(*rows, xi=0.1, delta=0.05)
    with pytest.raises(InvalidValueError, match="is not applied to the rows of a table"):
        certificate.apply(polars.DataFrame({"score": [0.5]}), score="score")


def test_many_equal_rows_with_missing_labels_are_counted() -> None:
    label = np.where(np.arange(100) % 9, np.arange(100) % 2, np.nan)
    certificate = certify_sets(np.full((100, 2), 0.5), label, xi=0.3, delta=0.05)
    assert certificate.n == 100


def test_a_draw_by_clusters_is_said_and_changes_what_is_assumed(
    rows: tuple[np.ndarray, np.ndarray],
) -> None:
    certificate = certify_sets(*rows, xi=0.2, delta=0.05, clusters=np.arange(600) // 3, seed=4)
    assert certificate.n == 200
    assert "Seed 4: pass seed=4 to draw the same rows again" in certificate.summary()
    assert "independent-rows" not in certificate.values["assumes"]
    assert "claim-per-cluster" in certificate.values["assumes"]
