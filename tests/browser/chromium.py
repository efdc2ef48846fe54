"""A headless Chromium, and an open page with everything that it reported."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SIZE = {"width": 1200, "height": 900}


def found() -> str | None:
    """Returns the path of a Chromium on this machine."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


def why_none() -> str:
    """Returns why there is no browser here; "" if there is one."""
    if importlib.util.find_spec("playwright") is None:
        return "playwright is not installed: `make test` installs it"
    return "" if found() else "no Chromium here: `make browser` installs one as root on Debian"


@dataclass
class Opened:
    """A page, the lines it printed to its console, and the addresses that it requested."""

    page: Any
    complaints: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)


@contextlib.contextmanager
def started() -> Iterator[Any]:
    """Start a browser; as root it cannot have its sandbox."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        sandbox = ["--no-sandbox"] if os.getuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=found(), args=sandbox)
        try:
            yield browser
        finally:
            browser.close()


@contextlib.contextmanager
def opened(browser: Any, file: Path | str, scheme: str = "light") -> Iterator[Opened]:
    """Open a file, or a URL, in a new page; `asked` has the further addresses that the page
    loaded."""
    url = file if isinstance(file, str) else file.as_uri()
    context = browser.new_context(
        viewport=SIZE, color_scheme=scheme, offline=url.startswith("file")
    )
    page = context.new_page()
    one = Opened(page)
    page.on(
        "console",
        lambda output: one.complaints.append(
            f"{output.type}: {output.text} ({output.location.get('url', '')})"
        ),
    )
    page.on("pageerror", lambda error: one.complaints.append(f"error: {error}"))
    page.on("request", lambda request: one.asked.append(request.url))
    page.goto(url)
    one.asked = [asked for asked in one.asked if asked != url and not asked.startswith("data:")]
    try:
        yield one
    finally:
        context.close()
