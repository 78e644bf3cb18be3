"""Takes the picture of a report that docs/report.md shows: on a desktop, and dark on a phone.

    python tools/report_picture.py

runs the first block of Python of that page, opens the report that it writes in Chromium, and writes
docs/figures/report.png. It needs Chromium with chromedriver, selenium and pillow.
"""

from __future__ import annotations

import base64
import os
import shutil
import sys
import tempfile
from contextlib import redirect_stdout
from io import BytesIO
from pathlib import Path
from runpy import run_path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "report.md"
PICTURE = ROOT / "docs" / "figures" / "report.png"
HEIGHT = 1_000
# Width and theme of each view.
VIEWS = ((900, "light"), (390, "dark"))
GAP = 30
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def written(folder: Path) -> Path:
    """The report that the first block of the page writes."""
    hooks = run_path(str(ROOT / "docs" / "site_hooks.py"))
    (code,) = hooks["PYTHON"].findall(PAGE.read_text(encoding="utf-8"))[:1]
    before = Path.cwd()
    os.chdir(folder)
    try:
        with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere):
            exec(code, {"__name__": "__main__"})  # noqa: S102
    finally:
        os.chdir(before)
    return folder / "report.html"


def views(page: Path) -> list[bytes]:
    """The top of the page in each view, as PNG."""
    from selenium.webdriver import Chrome, ChromeOptions, ChromeService  # noqa: PLC0415

    options = ChromeOptions()
    options.binary_location = next(filter(None, map(shutil.which, BROWSERS)), "")
    for switch in ("headless=new", "no-sandbox", "disable-gpu", "hide-scrollbars"):
        options.add_argument(f"--{switch}")
    browser = Chrome(options=options, service=ChromeService(shutil.which("chromedriver")))
    try:
        return [_view(browser, page, *view) for view in VIEWS]
    finally:
        browser.quit()


def _view(browser: Any, page: Path, width: int, theme: str) -> bytes:
    size = {"width": width, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    preferred = {"features": [{"name": "prefers-color-scheme", "value": theme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", preferred)
    browser.get(page.as_uri())
    shot = browser.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})
    return base64.b64decode(shot["data"])


def main() -> int:
    """Write the picture: the views side by side, in few colours so that it stays small."""
    from PIL import Image  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as folder:
        shots = [Image.open(BytesIO(shot)).convert("RGB") for shot in views(written(Path(folder)))]
    picture = Image.new("RGB", (sum(one.width for one in shots) + GAP, HEIGHT), "white")
    left = 0
    for shot in shots:
        picture.paste(shot, (left, 0))
        left += shot.width + GAP
    picture.quantize(256).save(PICTURE, optimize=True)
    sys.stdout.write(f"{PICTURE.relative_to(ROOT)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
