"""Signal handlers as in a user's program, whatever other tests have left."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from cluster_kit.util import process


@pytest.fixture
def usual_handlers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Python's own handler for Ctrl-C, none for SIGTERM; the process is not the kit's command."""
    monkeypatch.setattr(process, "_is_command", False)
    usual = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
    before = {number: signal.signal(number, handler) for number, handler in usual.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
