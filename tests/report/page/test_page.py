"""The page says what the certificates say, and nothing of one that is not verified."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.certificate.conftest import LAYOUTS, MAKERS, made
from tests.products import standing_for
from tests.report.page.conftest import (
    HOSTILE,
    alarmed,
    calibration,
    cascade,
    recall,
    shield,
)

from pacbound import (
    Monitor,
    calibrate,
    certify_abstention,
    certify_cascade,
    certify_together,
    errors,
    load_certificate,
)
from pacbound.report import WrittenReport, write_report
from pacbound.report.page import writing

FROZEN = Path(__file__).parents[2] / "certificate" / "frozen"


class _Page(HTMLParser):
    """The elements of a page, what it links to, and its text."""

    VOID = frozenset({"input", "link", "meta"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("script", "style"):
            self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(self.texts).replace("\N{NO-BREAK SPACE}%", " %")

    def ids(self) -> list[str]:
        return [attributes["id"] or "" for _, attributes in self.elements if "id" in attributes]


def _written(path: Path, certificates: Any, **options: Any) -> tuple[WrittenReport, _Page]:
    written = write_report(certificates, path / "report.html", **options)
    page = (path / "report.html").read_text(encoding="utf-8")
    assert len(page.encode()) == written.size < writing.LARGEST_PAGE
    return written, _Page(page)


@pytest.mark.slow
@pytest.mark.parametrize("name", standing_for(sorted(MAKERS), LAYOUTS))
def test_every_kind_has_a_page(tmp_path: Path, name: str) -> None:
    certificate = made(name)
    written, page = _written(tmp_path, certificate)
    assert written.certificates[0].verified
    assert written.certificates[0].certified == certificate.certified
    assert ("CERTIFIED" if certificate.certified else "REFUSED") in page.text
    for assumption in certificate.assumed() + certificate.meanings():
        assert assumption[1:].rstrip(".") in page.text
    # What a reader needs comes first, and checksums last.
    told = [str(certificate.says.plain), "The claim in full", certificate.counts_digest]
    assert page.text.index(certificate.called) < page.text.index(told[0])
    assert [page.text.index(part) for part in told] == sorted(map(page.text.index, told))
    assert "This page is no evidence" in page.text
    assert certificate.claim_digest in page.text
    ids = page.ids()
    assert len(ids) == len(set(ids))
    links = [attributes["href"] for tag, attributes in page.elements if tag == "a"]
    assert {str(link).removeprefix("#") for link in links} <= set(ids)


@pytest.mark.slow
@pytest.mark.parametrize("half", [0, 1])
def test_dozens_of_frozen_certificates_fit_on_one_page(tmp_path: Path, half: int) -> None:
    paths = sorted(FROZEN.glob("*.json"))[half::2]
    written, page = _written(tmp_path, paths)
    assert [entry.name for entry in written.certificates] == [path.name for path in paths]
    assert all(entry.verified for entry in written.certificates)
    assert f"{len(paths)} certificates" in page.text


@pytest.mark.parametrize(
    "name", ["cascade-groups-own-exact-1", "cascade-groups-common-exact-1", "abstention-groups-1"]
)
def test_the_words_stand_in_the_order_of_the_certificate(tmp_path: Path, name: str) -> None:
    """What is said about groups follows the sentence that announces it."""
    certificate = load_certificate(FROZEN / f"{name}.json")
    _, page = _written(tmp_path, certificate)
    lines = [str(certificate.says.plain), *certificate.says.in_full()]
    places = [page.text.index(line.strip()) for line in lines]
    assert places == sorted(places)


def test_the_intervals_of_a_calibration_stand_before_its_figure(tmp_path: Path) -> None:
    certificate = calibration()
    _written(tmp_path, certificate)
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    intervals = [row[-1] for row in certificate.says.table[1:]]
    assert len(intervals) > 5
    assert all(text.index(f"<td>{interval}</td>") < text.index("<figure") for interval in intervals)


def test_the_seed_of_a_draw_is_on_the_page(tmp_path: Path) -> None:
    certificate = recall(clusters=np.arange(1500) // 4, seed=20_031)
    _, page = _written(tmp_path, certificate)
    assert "Seed of the draw 20031" in page.text


def test_large_costs_are_written_in_digits(tmp_path: Path) -> None:
    certificate = cascade(costs=(115_456, 3_733_888.0))
    _, page = _written(tmp_path, certificate)
    assert "115,456; 3,733,888" in page.text
    assert "instead of 3,733,888, the error" in page.text
    assert "e+0" not in page.text


def test_the_page_of_a_cascade_says_what_xi_bounds(tmp_path: Path) -> None:
    _, page = _written(tmp_path, FROZEN / "cascade-no-labels-1.json")
    for words in ("the accuracy lost against the slow model", "Accuracy lost", "Lost less gained"):
        assert words in page.text
    for name in ("cascade-differ-1", "cascade-groups-differ-1"):
        _, page = _written(tmp_path, FROZEN / f"{name}.json")
        assert "the share of answers that differ from the slow model's" in page.text
        assert "Answers that differ" in page.text
        for words in ("Accuracy lost", "Gained", "error increase", "label was seen"):
            assert words not in page.text


@pytest.mark.parametrize("name", ["shield-refused-1", "cascade-groups-own-exact-1"])
def test_where_nothing_was_walked_there_is_no_empty_figure(tmp_path: Path, name: str) -> None:
    _, page = _written(tmp_path, FROZEN / f"{name}.json")
    assert "The walk: dawn" not in page.text
    assert "Unsafe rollouts missed against" not in page.text


def test_the_page_fetches_nothing(tmp_path: Path) -> None:
    _written(tmp_path, [calibration(), recall()])
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert not re.findall(r"(?:src|href)=\"(?!#|data:)", text)
    assert "http" not in re.sub(r"http-equiv", "", text)
    assert "default-src &#x27;none&#x27;" in text


def test_the_claim_is_in_the_certificates_own_words(tmp_path: Path) -> None:
    certificate = shield()
    _, page = _written(tmp_path, certificate)
    for line in [str(certificate.says.costs), *certificate.says.in_full()]:
        assert line in page.text


def test_a_refusal_is_named_as_one(tmp_path: Path) -> None:
    refused = shield(count=20)
    written, page = _written(tmp_path, {"brake": refused})
    assert not written.certificates[0].certified
    assert "must not be relied on" in page.text
    assert "CERTIFIED" not in page.text.replace("REFUSED", "")


def test_nothing_is_shown_of_a_certificate_that_is_not_verified(
    tmp_path: Path, tampered: Path
) -> None:
    written, page = _written(tmp_path, tampered)
    (entry,) = written.certificates
    assert (entry.verified, entry.certified, entry.kind) == (False, False, "shield")
    assert "claim.tables[0].threshold: stored" in page.text
    assert "NOT VERIFIED" in page.text
    assert "With probability" not in page.text
    assert not [tag for tag, _ in page.elements if tag in ("figure", "svg", "input")]


def test_a_file_that_cannot_be_read_is_named_and_the_others_are_shown(tmp_path: Path) -> None:
    (tmp_path / "broken.json").write_text("{", encoding="utf-8")
    recall().save(tmp_path / "recall.json")
    paths = [tmp_path / name for name in ("broken.json", "missing.json", "recall.json")]
    written, page = _written(tmp_path, paths)
    assert [entry.readable for entry in written.certificates] == [False, False, True]
    assert page.text.count("NOT READABLE") == 4
    assert "No such file" in page.text
    assert "1 certified, 0 refused, 2 not verified." in page.text


def test_files_of_one_name_are_told_apart_by_their_folders(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        shield().save(tmp_path / folder / "brake.json")
    paths = [tmp_path / folder / "brake.json" for folder in "ab"]
    written, page = _written(tmp_path, paths)
    names = [entry.name for entry in written.certificates]
    assert len(set(names)) == 2
    # Their headings would be the same.
    assert all(f"Shield with at most 5 % unsafe ({name})" in page.text for name in names)


def test_hostile_names_show_as_text(tmp_path: Path) -> None:
    scores = np.linspace(0.01, 0.99, 400)
    groups = [HOSTILE, "</title></style><img src=x onerror=alert(2)>"] * 200
    certificate = calibrate(scores, scores > 0.3, delta=0.05, n_bins=3, groups=groups)
    written, page = _written(tmp_path, {HOSTILE: certificate}, title=HOSTILE)
    assert written.certificates[0].name == HOSTILE
    # The page's own script, and nothing else.
    scripts = [attributes.get("type") for tag, attributes in page.elements if tag == "script"]
    assert scripts == [None]
    assert HOSTILE in page.text
    assert not [tag for tag, _ in page.elements if tag == "img"]


def test_a_hostile_provenance_shows_as_text(tmp_path: Path) -> None:
    import polars

    named: Any = {"confidence": HOSTILE, "correct": "ok"}
    frame = polars.DataFrame({HOSTILE: [0.9, 0.8], "ok": [True, False]})
    certificate = calibrate(**named, data=frame, delta=0.05)
    _, page = _written(tmp_path, certificate)
    assert f"confidence: {HOSTILE}" in page.text


def test_what_a_certificate_is_about_stands_at_its_top(tmp_path: Path) -> None:
    certificate = shield().with_about({"model": "resnet", "notes": HOSTILE})
    _, page = _written(tmp_path, certificate)
    assert "resnet: Shield with at most 5 % unsafe" in page.text
    assert page.text.index(HOSTILE) < page.text.index("CERTIFIED")


def test_the_evidence_of_a_monitor_stands_beside_its_certificate(tmp_path: Path) -> None:
    brake, other = shield(), recall()
    brake.save(tmp_path / "brake.json")
    monitor = alarmed(brake)
    monitor.save(tmp_path / "state.json")
    _, page = _written(
        tmp_path, [other, tmp_path / "brake.json"], monitors=[tmp_path / "state.json"]
    )
    assert page.text.count("The monitor rang: ALARM at label") == 1
    assert page.text.count("Evidence over time") >= 1
    again, _ = _written(tmp_path, brake, monitors=monitor)
    assert again.certificates[0].certified


def test_a_monitor_of_no_certificate_of_the_page_is_refused(tmp_path: Path) -> None:
    Monitor(shield(), delta=0.01).save(tmp_path / "state.json")
    with pytest.raises(errors.InvalidValueError, match="not on this page"):
        write_report(recall(), tmp_path / "report.html", monitors=tmp_path / "state.json")
    (tmp_path / "state.json").write_text('{"format": "other"}', encoding="utf-8")
    with pytest.raises(errors.CertificateError, match="not the state of a monitor"):
        write_report(recall(), tmp_path / "report.html", monitors=tmp_path / "state.json")
    assert not (tmp_path / "report.html").exists()


def test_a_monitor_without_labels_has_no_figure(tmp_path: Path) -> None:
    certificate = shield()
    _, page = _written(tmp_path, certificate, monitors=[Monitor(certificate, delta=0.01)])
    assert "Evidence over time" not in page.text
    assert "Monitor" in page.text


@pytest.mark.parametrize(
    ("certificates", "error"),
    [([], errors.InvalidValueError), (3, errors.InvalidTypeError), ([3], errors.InvalidTypeError)],
)
def test_what_is_no_certificate_is_refused(
    tmp_path: Path, certificates: Any, error: type[Exception]
) -> None:
    with pytest.raises(error, match="certificate"):
        write_report(certificates, tmp_path / "report.html")
    assert not list(tmp_path.iterdir())


def test_an_interruption_leaves_the_old_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "report.html"
    path.write_text("old", encoding="utf-8")

    def interrupt(*_: object, **__: object) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(writing, "_document", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_report(shield(), path)
    assert path.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_an_error_in_a_sentence() -> None:
    with pytest.raises(errors.UnwritableFileError, match="cannot be written"):
        write_report(shield(), "/dev/full")


def test_a_page_never_takes_the_place_of_a_certificate(tmp_path: Path) -> None:
    path = tmp_path / "brake.json"
    shield().save(path)
    before = path.read_bytes()
    with pytest.raises(errors.InvalidValueError, match="name another file"):
        write_report(path, path)
    assert path.read_bytes() == before


def test_groups_that_are_not_certified_are_named_in_the_verdict(tmp_path: Path) -> None:
    _, page = _written(tmp_path, MAKERS["abstention-groups"]())
    assert "Not certified for 1 of the groups: dusk." in page.text


def test_a_bundle_with_a_refusal_says_that_each_claim_stands_for_itself(tmp_path: Path) -> None:
    _, page = _written(tmp_path, MAKERS["bundle-refused"]())
    assert "Not all of its claims are certified" in page.text


def test_many_groups_make_a_page_that_is_small_and_says_what_it_leaves_out(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    confidence = rng.random(20_000)
    groups = [f"group {place % 1000}" for place in range(20_000)]
    certificate = calibrate(
        confidence, rng.random(20_000) < confidence, delta=0.05, groups=groups, n_bins=20
    )
    written, page = _written(tmp_path, certificate)
    assert written.size < 200_000
    assert "994 more groups have no figure here" in page.text


@pytest.mark.slow
def test_more_certificates_than_fit_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "LARGEST_PAGE", 20_000)
    with pytest.raises(errors.InvalidValueError, match="Write several pages"):
        write_report([shield()] * 5, tmp_path / "report.html")
    monkeypatch.setattr(writing, "LARGEST_PAGE", 30_000)
    written = write_report([shield(count=900)] * 2, tmp_path / "report.html")
    assert written.size < 30_000


def test_a_bundle_shows_its_claims_as_sections_of_their_own(tmp_path: Path) -> None:
    bundle = certify_together(
        {"flag": lambda delta: recall(delta=delta), "brake": lambda delta: shield(delta=delta)},
        delta=0.1,
    )
    _, page = _written(tmp_path, {"both": bundle})
    assert "both: brake" in page.text
    assert "both: flag" in page.text


@pytest.mark.long
def test_sixty_claims_have_a_page(tmp_path: Path) -> None:
    claims = {f"claim {n}": lambda delta: recall(delta=delta) for n in range(60)}
    bundle = certify_together(claims, delta=0.3)
    _, page = _written(tmp_path, bundle)
    assert "claim 59: Recall of at least 90 %" in page.text


def test_the_summary_adds_the_deltas_of_refusals_too(tmp_path: Path) -> None:
    written, page = _written(tmp_path, [recall(), shield(delta=0.02), shield(count=20)])
    assert [entry.certified for entry in written.certificates] == [True, True, False]
    assert written.delta == 0.12
    assert "add the deltas, those of refusals too: 0.12." in page.text


def test_the_summary_has_every_group(tmp_path: Path) -> None:
    certificate = MAKERS["abstention-groups"]()
    _, page = _written(tmp_path, [certificate, shield()])
    for line in map(str, certificate.says.groups):
        assert page.text.count(line) == 2


@pytest.mark.parametrize("name", ["recall", "false-alarms", "forks", "abstention"])
def test_thresholds_have_four_digits_where_that_is_safe(tmp_path: Path, name: str) -> None:
    certificate = made(name)
    decided = dict(certificate.by.numbers(certificate))
    assert not {"group_thresholds", "small_groups"} & decided.keys()
    names = {"Threshold"}
    shown = [float(text) for key, text in decided.items() if key in names]
    exactly = [certificate.values["tables"][0]["threshold"]]
    # Of a recall all lower thresholds are covered, of false alarms all higher ones.
    side = {"recall": shown[0] <= exactly[0], "false-alarms": shown[0] >= exactly[0]}
    assert side.get(name, True)
    if name in ("forks", "abstention"):
        assert shown == exactly
    else:
        assert all(abs(one - other) < 1e-4 for one, other in zip(shown, exactly, strict=True))
        assert all(len(f"{one:g}") <= 6 for one in shown)


@pytest.mark.parametrize("count", [1, 2, 30])
@pytest.mark.parametrize("saturated", [False, True])
def test_few_rows_and_saturated_scores_have_a_page(
    tmp_path: Path, count: int, saturated: bool
) -> None:
    scores = np.ones(count) if saturated else np.linspace(0, 1, count)
    ones = np.ones(count, dtype=int)
    answers = np.column_stack([ones, ones])
    certificates = [
        calibrate(scores, ones, delta=1e-12),
        certify_cascade(scores, answers, ones, xi=0.5, delta=0.4),
        certify_abstention(scores, ones, xi=0.3, delta=0.4),
    ]
    written, _ = _written(tmp_path, certificates)
    assert all(entry.verified for entry in written.certificates)


def test_the_summary_names_files_only_if_there_are_any(tmp_path: Path) -> None:
    recall().save(tmp_path / "recall.json")
    write_report([recall(), shield()], tmp_path / "unsaved.html")
    write_report([tmp_path / "recall.json", shield()], tmp_path / "saved.html")
    cell = '<td data-name="File">'
    assert cell not in (tmp_path / "unsaved.html").read_text(encoding="utf-8")
    assert cell in (tmp_path / "saved.html").read_text(encoding="utf-8")
