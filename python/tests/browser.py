"""A headless Chromium for tests of pages: what it drew, what it said, what it asked of a network."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.support.wait import WebDriverWait

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
needs_browser = pytest.mark.skipif(
    not (CHROMIUM and DRIVER), reason="chromium or chromedriver is missing: make packages"
)
FLAGS = (
    *(
        "headless",
        "no-sandbox",
        "disable-gpu",
        "disable-quic",
        "no-first-run",
        "disable-background-networking",
    ),
    *("disable-component-update", "disable-sync"),
)


class Browser:
    """One browser with a new profile."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self.driver = driver

    def open(self, address: str) -> None:
        """Load a page."""
        self.driver.get(address)

    def js(self, script: str, *values: object) -> Any:
        """The result of a script."""
        return self.driver.execute_script(script, *values)

    def until(self, script: str, seconds: float = 20) -> Any:
        """Wait until an expression is true, and return its value."""
        return WebDriverWait(self.driver, seconds, 0.05).until(lambda _: self.js(f"return {script}"), script)

    def set(self, command: str, **values: object) -> None:
        """Send a command of the browser's developer protocol."""
        self.driver.execute_cdp_cmd(command, values)

    def said(self) -> list[str]:
        """The console's messages."""
        return [str(entry["message"]) for entry in self.driver.get_log("browser")]  # type: ignore[no-untyped-call]

    def asked(self) -> list[str]:
        """Addresses that pages asked for, since the last call."""
        log = self.driver.get_log("performance")  # type: ignore[no-untyped-call]
        events = [json.loads(entry["message"])["message"] for entry in log]
        return [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]


@contextmanager
def started(profile: Path, width: int = 1200, height: int = 900) -> Iterator[Browser]:
    """Start a browser with its profile in an empty folder."""
    options = webdriver.ChromeOptions()
    options.binary_location = str(CHROMIUM)
    for flag in (*FLAGS, f"user-data-dir={profile}", f"window-size={width},{height}"):
        options.add_argument(f"--{flag}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(str(DRIVER)))
    try:
        one = Browser(driver)
        one.open("about:blank")
        one.asked()  # what the browser's own first page asked for
        yield one
    finally:
        driver.quit()
