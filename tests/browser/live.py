"""A live page in a browser, of a simulated run that continues."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster_kit.serve import pages, site
from cluster_kit.serve.start import serving
from tests.browser.chromium import Opened
from tests.unit.serve.made_up import MadeUp

PATIENCE_MS = 8000


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site, "FASTEST_S", 0.05)
    monkeypatch.setattr(site, "SLOWEST_S", 0.1)
    monkeypatch.setattr(site, "PULSE_S", 0.2)
    monkeypatch.setattr(pages, "FIND_S", 0.05)
    monkeypatch.setattr("cluster_kit.serve.site.GLANCE_S", 0.02)


@pytest.fixture
def made(tmp_path: Path) -> MadeUp:
    one = MadeUp(tmp_path)
    one.begin()
    trains(one, 3, 6)
    return one


def trains(made: MadeUp, begin: int, end: int) -> None:
    for second in range(begin, end):
        for task in ("chief-0", "worker-0"):
            made.say(task, second, "step", step=second * 10, steps_per_s=10.0, loss=1 / second)
            made.use(task, second, sent_to={"ps-0": second * 1e5})


@pytest.fixture
def url(made: MadeUp) -> Iterator[str]:
    with serving(made.site, made.cluster.name, token="secret") as url:
        yield url


def see(one: Opened, selector: str, text: str) -> None:
    """Wait until the element has this text."""
    one.page.locator(selector).filter(has_text=text).first.wait_for(timeout=PATIENCE_MS)


def now(one: Opened, task: str) -> list[str]:
    return one.page.locator(f'tr[data-now="{task}"] td').all_inner_texts()


def stays_here(one: Opened) -> None:
    """Assert that there was no error, and that only the server was asked for anything."""
    assert one.complaints == []
    assert all(asked.startswith("http://127.0.0.1:") for asked in one.asked)
