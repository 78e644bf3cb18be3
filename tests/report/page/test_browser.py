"""The page in a browser: it runs without errors, asks nobody for anything, and everyone can use it.

These tests need Chromium and its driver, and are skipped where there is none.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.products import standing_for
from tests.report.page.conftest import (
    HOSTILE,
    abstention,
    alarmed,
    calibration,
    cascade,
    recall,
    shield,
)

from pacbound import calibrate
from pacbound.report import write_report

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

pytestmark = [pytest.mark.browser, pytest.mark.slow]

WIDTHS = (320, 360, 481, 560, 640, 800, 900, 1400)
THEMES = ("light", "dark")
FROZEN = Path(__file__).parents[2] / "certificate" / "frozen"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with certificates of every fate, a monitor that rang, and names that are hostile."""
    folder = tmp_path_factory.mktemp("page")
    scores = np.linspace(0.01, 0.99, 400)
    hostile = calibrate(scores, scores > 0.3, delta=0.05, n_bins=3, groups=[HOSTILE, "plain"] * 200)
    brake = shield()
    brake.save(folder / "tampered.json")
    document = json.loads((folder / "tampered.json").read_text(encoding="utf-8"))
    document["claim"]["xi"] = 0.001
    (folder / "tampered.json").write_text(json.dumps(document), encoding="utf-8")
    certificates = {
        "cascade": cascade(600),
        "calibration": calibration(),
        "abstention": abstention(),
        "recall": recall(),
        "brake": brake,
        "refused": shield(count=20),
        HOSTILE: hostile,
        "tampered": folder / "tampered.json",
    }
    write_report(certificates, folder / "report.html", monitors=alarmed(brake), title=HOSTILE)
    return folder / "report.html"


def _open(browser: Chrome, page: Path, *, width: int = 1200, theme: str = "light") -> None:
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    preferred = {"features": [{"name": "prefers-color-scheme", "value": theme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", preferred)
    for log in ("browser", "performance"):
        _log(browser, log)
    browser.get(page.as_uri())


def _log(browser: Any, name: str) -> list[dict[str, Any]]:
    """What was logged since it was last asked for; of a method that has no types."""
    entries: list[dict[str, Any]] = browser.get_log(name)
    return entries


def _requests(browser: Chrome) -> Iterator[str]:
    for entry in _log(browser, "performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            yield message["params"]["request"]["url"]


def test_the_page_runs_without_an_error_and_sends_no_request(browser: Chrome, page: Path) -> None:
    _open(browser, page)
    assert _log(browser, "browser") == []
    away = [url for url in _requests(browser) if url != page.as_uri() and url[:5] != "data:"]
    assert away == []


@pytest.fixture(scope="module")
def small_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with five kinds and everything that a page can have."""
    path = tmp_path_factory.mktemp("small") / "report.html"
    few = shield(count=120, xi=0.2)
    certificates = {
        "few": few,
        "refused": shield(count=20),
        "cascade": cascade(300),
        "calibration": calibration(n_bins=3),
        "abstention": abstention(),
        "recall": recall(),
        "gone": path.with_name("gone.json"),
    }
    write_report(certificates, path, monitors=alarmed(few))
    return path


@pytest.mark.parametrize(("width", "theme"), [(560, "light"), (1400, "dark")])
def test_axe_finds_nothing(browser: Chrome, small_page: Path, width: int, theme: str) -> None:
    _open(browser, small_page, width=width, theme=theme)
    browser.set_script_timeout(120)
    # It looks at each element, and the rows of a table are alike.
    browser.execute_script(
        """
        document.querySelectorAll('details').forEach((d) => d.open = true);
        for (const body of document.querySelectorAll('tbody')) {
            [...body.rows].slice(7).forEach((row) => row.remove());
        }
        """
    )
    browser.execute_script(files("axe_core_python").joinpath("axe.min.js").read_text("utf-8"))
    found = browser.execute_async_script(
        "const done = arguments[arguments.length - 1]; axe.run(document).then(done);"
    )
    violations = [
        (rule["id"], rule["impact"], rule["nodes"][0]["html"]) for rule in found["violations"]
    ]
    assert violations == []
    assert "color-contrast" in {rule["id"] for rule in found["passes"]}


@pytest.fixture(scope="module")
def many_figures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with figures of every kind, of large counts and costs too."""
    path = tmp_path_factory.mktemp("figures") / "report.html"
    names = (
        "abstention-groups-1 false-alarms-rollouts-1 batch-1 calibration-weights-1 "
        "cascade-groups-common-paths-exact-1 cascade-front-refused-1 cascade-partial-refused-1"
    )
    frozen = [FROZEN / f"{name}.json" for name in names.split()]
    brake, costly = shield(), cascade(costs=(115_456, 3_733_888))
    write_report([*frozen, costly, brake], path, monitors=alarmed(brake))
    return path


@pytest.mark.parametrize("width", WIDTHS)
def test_no_words_of_a_figure_are_cut_off_or_overlap(
    browser: Chrome, many_figures: Path, width: int
) -> None:
    _open(browser, many_figures, width=width)
    count, found = browser.execute_script(
        """
        const charts = [...document.querySelectorAll('figure > svg')];
        const found = [];
        for (const chart of charts) {
            const all = chart.getBoundingClientRect();
            const texts = [...chart.querySelectorAll('text')];
            const boxes = texts.map((text) => text.getBoundingClientRect());
            boxes.forEach((box, at) => {
                const out = Math.max(all.left - box.left, box.right - all.right,
                                     all.top - box.top, box.bottom - all.bottom);
                if (out > 1) found.push([texts[at].textContent, 'is cut off', out]);
                boxes.slice(at + 1).forEach((other, next) => {
                    const least = Math.max(box.left, other.left);
                    const across = Math.min(box.right, other.right) - least;
                    const up = Math.min(box.bottom, other.bottom) - Math.max(box.top, other.top);
                    // The box of a line of text is higher than its letters.
                    if (across > 1 && up > 3) {
                        found.push([texts[at].textContent, texts[at + 1 + next].textContent]);
                    }
                });
            });
        }
        return [charts.length, found];
        """
    )
    assert found == []
    assert count >= 11


@pytest.mark.parametrize("theme", standing_for(THEMES, ["light"], rest="long"))
@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_is_wider_than_the_screen(
    browser: Chrome, page: Path, small_page: Path, width: int, theme: str
) -> None:
    for opened in (page, small_page):
        _open(browser, opened, width=width, theme=theme)
        whole, *summaries = browser.execute_script(
            """
            const summaries = document.querySelectorAll('.summary .scroll');
            return [document.documentElement.scrollWidth,
                    ...[...summaries].map((box) => box.scrollWidth - box.clientWidth)];
            """
        )
        assert whole <= width
        assert summaries == [0]


def test_the_switch_changes_the_theme_whatever_the_system_prefers(
    browser: Chrome, page: Path
) -> None:
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.select import Select

    ground = "return getComputedStyle(document.body).backgroundColor"
    _open(browser, page, theme="dark")
    dark = browser.execute_script(ground)
    choice = Select(browser.find_element(By.ID, "theme"))
    choice.select_by_value("light")
    light = browser.execute_script(ground)
    assert light != dark
    choice.select_by_value("dark")
    assert browser.execute_script(ground) == dark
    _open(browser, page, theme="light")
    assert browser.execute_script(ground) == light


def test_hostile_names_do_not_run(browser: Chrome, page: Path) -> None:
    from selenium.webdriver.common.by import By

    _open(browser, page)
    assert browser.title == HOSTILE
    assert browser.find_element(By.TAG_NAME, "h1").text == HOSTILE
    # Whatever were injected would be a script too many.
    assert browser.execute_script("return document.scripts.length") == 1
    browser.execute_script(
        "const s = document.createElement('script'); s.textContent = 'window.ran = true';"
        "document.body.append(s);"
    )
    assert browser.execute_script("return window.ran") is None


def test_a_refusal_and_a_failure_are_seen_at_once(browser: Chrome, page: Path) -> None:
    from selenium.webdriver.common.by import By

    _open(browser, page)
    for section, word in [("certificate-6", "REFUSED"), ("certificate-8", "NOT VERIFIED")]:
        verdict = browser.find_element(By.CSS_SELECTOR, f"#{section} > .banner > .verdict")
        assert word in verdict.text
        assert float(verdict.value_of_css_property("font-size").rstrip("px")) >= 24
    assert not browser.find_elements(By.CSS_SELECTOR, "#certificate-8 figure")


def test_folds_are_open_on_paper(browser: Chrome, page: Path) -> None:
    _open(browser, page)
    browser.execute_script("window.dispatchEvent(new Event('beforeprint'))")
    closed = "return document.querySelectorAll('details:not([open])').length"
    assert browser.execute_script(closed) == 0
    browser.execute_script("window.dispatchEvent(new Event('afterprint'))")
    assert browser.execute_script(closed) > 0


def test_everything_can_be_reached_by_the_keyboard(browser: Chrome, page: Path) -> None:
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    _open(browser, page)
    reached = set()
    for _ in range(60):
        browser.find_element(By.TAG_NAME, "body")
        browser.switch_to.active_element.send_keys(Keys.TAB)
        active = browser.switch_to.active_element
        reached.add((active.tag_name, active.get_attribute("type")))
    assert {("select", "select-one"), ("input", "checkbox")} <= reached
    assert ("summary", "") in reached or ("summary", None) in reached
