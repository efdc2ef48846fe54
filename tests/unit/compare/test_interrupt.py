"""Ctrl-C ends a measurement in each of its runs, not only in the first."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from cluster_kit.compare import measure, speedup
from cluster_kit.compare.measure import EVEN, VARIANTS, Length, plan_runs
from cluster_kit.errors import Interrupted
from cluster_kit.util import process
from tests.fakes.hosts import fake_host


@pytest.fixture
def handlers(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """Records the handler of SIGTERM at the start of each run; a run ends as the kit's runs do."""
    seen: list[Any] = []

    def launch(*_: object, **__: object) -> SimpleNamespace:
        seen.append(signal.getsignal(signal.SIGTERM))
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_DFL
        process.ignore()
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN, "closed while it cleans up"
        code = Interrupted.exit_code if len(seen) == 3 else 5
        return SimpleNamespace(
            exit_code=code, success=False, blame="", message="x", run="/none", tasks=[]
        )

    for module in (measure, speedup):
        monkeypatch.setattr(module, "launch", launch)
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.getsignal(number) for number in numbers}
    monkeypatch.setattr(process, "_is_command", True)  # without its thread
    process.interrupt_once()
    yield seen
    for number, handler in before.items():
        signal.signal(number, handler)


NOWHERE: Any = SimpleNamespace()


def view() -> Any:
    return SimpleNamespace(close=lambda: None)


def test_a_comparison_can_be_interrupted_in_any_run(handlers: list[Any]) -> None:
    runs = plan_runs(VARIANTS, (EVEN,), Length(2, 2), 2.0)
    with pytest.raises(Interrupted):
        list(measure.run_all(replace(fake_host(), interrupts=process), runs, NOWHERE, view, 0.5))
    assert len(handlers) == 3
    assert set(handlers) == {process._interrupt}


def test_a_speed_up_can_be_interrupted_in_any_run(handlers: list[Any]) -> None:
    each = speedup.machines(4, 2, 24)
    found = speedup.measure_all(
        replace(fake_host(), interrupts=process), (1, 2, 3, 4), each, 5, "async", NOWHERE, view
    )
    with pytest.raises(Interrupted):
        list(found)
    assert len(handlers) == 3
    assert set(handlers) == {process._interrupt}
