"""docs/live.png: the live page of a run of quickstart, which is made for it."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from cluster_kit.errors import EngineError, HostError
from tests.browser.chromium import opened, started, why_none

COMMAND = ("up", "quickstart", "--serve")
URL = "live page: "
SHOWN = {"width": 1200, "height": 1180}
"""Pixels: what each task does now, lanes, and the first curves."""
STEPS = 200
"""Of the training; by then there are two epochs and a checkpoint."""
PATIENCE_MS = 120_000


def draw(picture: Path) -> None:
    """Run the cluster, and write the picture of its page; raises KitError if that fails."""
    if reason := why_none():
        raise HostError(reason, "`make browser`")
    with running() as url, started() as browser, opened(browser, url) as one:
        one.page.set_viewport_size(SHOWN)
        one.page.wait_for_function(REACHED, arg=STEPS, timeout=PATIENCE_MS)
        one.page.screenshot(path=str(picture))


REACHED = """steps => {
    const cells = [...document.querySelectorAll('tr[data-now="chief-0"] td')];
    return cells.some(cell => Number(cell.innerText.replace(/,/g, "")) >= steps);
}"""


@contextlib.contextmanager
def running() -> Iterator[str]:
    """The URL of the page of a cluster that runs to its end; raises EngineError without one."""
    command = [sys.executable, "-m", "cluster_kit", *COMMAND]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    try:
        said = list(until(process.stdout, URL))
        if not said or URL not in said[-1]:
            raise EngineError("the run ended before its page was there", "".join(said[-3:]))
        yield said[-1].partition(URL)[2].split()[0]
        process.stdout.read()
        process.wait()
    finally:
        process.terminate()
        process.wait()


def until(lines: Iterator[str], words: str) -> Iterator[str]:
    """As far as the first one with these words."""
    for line in lines:
        yield line
        if words in line:
            return
