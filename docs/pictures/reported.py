"""docs/report.png: the report of quickstart's newest run, in a browser."""

from __future__ import annotations

import tempfile
from pathlib import Path

from cluster_kit.errors import HostError
from cluster_kit.run.history import run_named
from cluster_kit.run.known_secrets import known_of
from cluster_kit.run.run_report import write_together
from cluster_kit.workspace import here
from tests.browser.chromium import opened, started, why_none

SHOWN = {"x": 0, "y": 0, "width": 1200, "height": 1130}
"""Pixels: verdict, lanes, and the first curves."""


def draw(picture: Path) -> None:
    """Write the picture; raises HostError without a browser, UsageError without a run."""
    if reason := why_none():
        raise HostError(reason, "`make browser`")
    run = run_named("quickstart", here())
    with tempfile.TemporaryDirectory() as folder, started() as browser:
        page = Path(folder) / "report.html"
        write_together({run: known_of(run)}, page)
        with opened(browser, page) as one:
            picture.write_bytes(one.page.screenshot(clip=SHOWN, full_page=True))
