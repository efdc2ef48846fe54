"""The live page of a real cluster, with clicks."""

from __future__ import annotations

import signal
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.error import HTTPError

import pytest

from tests.browser.chromium import Opened, opened, started, why_none
from tests.e2e.running import read_until, running
from tests.kit import Kit

PATIENCE_MS = 60_000


@contextmanager
def looked_at(kit: Kit) -> Iterator[Opened | None]:
    """Check the page of a cluster that is up, with buttons; None if there is no browser.

    A worker is killed by its button, and the page shows that it was restarted.
    """
    with running(kit, "serve", kit.name, "--allow-control") as server:
        url = url_in(read_until(server, "live page: "))
        asked(url)
        if why_none():  # The browser tests themselves report why there is none.
            press(url, kit, "worker-0/kill")
            yield None
        else:
            with started() as browser, opened(browser, url) as one:
                clicked(one)
                yield one
        server.send_signal(signal.SIGINT)
        assert server.wait(timeout=30) == 0


def url_in(line: str) -> str:
    return line.partition("live page: ")[2].split()[0]


def asked(url: str) -> None:
    """Assert that the server answers only requests with the token."""
    with urllib.request.urlopen(url, timeout=10) as response:
        assert response.status == 200
    with pytest.raises(HTTPError) as refused:
        urllib.request.urlopen(url.replace("token=", "token=x"), timeout=10)
    assert refused.value.code == 403 and b"another one" in refused.value.read()


def press(url: str, kit: Kit, what: str) -> None:
    """Check what a button does, without a browser."""
    base, _, token = url.partition(f"/cluster/{kit.name}?token=")
    headers = {"Authorization": f"Bearer {token}"}
    request = urllib.request.Request(f"{base}/control/{kit.name}/{what}", b"", headers)
    with urllib.request.urlopen(request, timeout=30) as response:
        assert b"killed" in response.read()


def clicked(one: Opened) -> None:
    page = one.page
    sees(one, 'tr[data-now="worker-0"]', "ready")
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_label("kill worker-0").click()
    sees(one, "#said", "worker-0: killed")
    marks = page.locator('.lane[data-task="worker-0"] .mark.asked')  # its end, and its next start
    marks.nth(1).wait_for(timeout=PATIENCE_MS)
    page.reload()
    marks.nth(1).wait_for(timeout=PATIENCE_MS)
    sees(one, 'tr[data-now="worker-0"]', "ready")
    page.locator("#logs").scroll_into_view_if_needed()
    page.get_by_label("Task", exact=True).select_option("worker-0")
    page.locator(".log div").first.wait_for(timeout=PATIENCE_MS)
    assert one.complaints == []


def sees(one: Opened, selector: str, text: str) -> Any:
    """Wait until an element has this text."""
    found = one.page.locator(selector).filter(has_text=text).first
    found.wait_for(timeout=PATIENCE_MS)
    return found
