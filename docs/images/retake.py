"""Takes the four pictures of the documents from the page of a run: `python docs/images/retake.py RUN`.

Needs Chromium, its driver and selenium. Look at the pictures before you commit them.
"""

from __future__ import annotations

import base64
import shutil
import sys
import time
from pathlib import Path

from selenium import webdriver

FOLDER = Path(__file__).parent
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--hide-scrollbars")
TO_FIGURES = "document.getElementById('figure-1-1').scrollIntoView(); scrollBy(0, -20)"


def main(run: str) -> None:
    """Write report-*.png (the first screen) and figures-*.png (the first figures), wide and on a phone."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or shutil.which("google-chrome") or ""
    for flag in FLAGS:
        options.add_argument(flag)
    service = webdriver.ChromeService(executable_path=shutil.which("chromedriver"))
    browser = webdriver.Chrome(options=options, service=service)
    try:
        for width, height in ((1400, 900), (390, 1100)):
            size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
            browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
            browser.get((Path(run).resolve() / "report.html").as_uri())
            _take(browser, f"report-{width}.png")
            browser.execute_script("document.getElementById('reveal').click()")
            deadline = time.monotonic() + 120
            while browser.execute_script("return document.documentElement.dataset.charts") != "drawn":
                if time.monotonic() > deadline:
                    raise SystemExit("the charts were not drawn")
                time.sleep(0.2)
            browser.execute_script(TO_FIGURES)
            time.sleep(1)
            _take(browser, f"figures-{width}.png")
    finally:
        browser.quit()


def _take(browser: webdriver.Chrome, name: str) -> None:
    taken = browser.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})
    (FOLDER / name).write_bytes(base64.b64decode(taken["data"]))
    print(FOLDER / name)


if __name__ == "__main__":
    main(*sys.argv[1:])
