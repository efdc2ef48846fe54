"""A headless Chromium, and a page that is open in it with all that it complained of."""

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
    """The path of a Chromium of this machine."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


def why_none() -> str:
    """Why there is no browser here, "" if there is one."""
    if importlib.util.find_spec("playwright") is None:
        return "playwright is not installed: `make test` installs it"
    return "" if found() else "no Chromium here: `make browser` installs one as root on Debian"


@dataclass
class Opened:
    """A page, what it printed to its console, and what it asked the network for."""

    page: Any
    complaints: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)


@contextlib.contextmanager
def started() -> Iterator[Any]:
    """A browser; as root it cannot have the sandbox."""
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
    """A file, or a URL, in a page of its own; `asked` has what it loaded besides itself."""
    url = file if isinstance(file, str) else file.as_uri()
    context = browser.new_context(
        viewport=SIZE, color_scheme=scheme, offline=url.startswith("file")
    )
    page = context.new_page()
    one = Opened(page)
    page.on("console", lambda said: one.complaints.append(f"{said.type}: {said.text}"))
    page.on("pageerror", lambda error: one.complaints.append(f"error: {error}"))
    page.on("request", lambda request: one.asked.append(request.url))
    page.goto(url)
    one.asked = [asked for asked in one.asked if asked != url and not asked.startswith("data:")]
    try:
        yield one
    finally:
        context.close()
