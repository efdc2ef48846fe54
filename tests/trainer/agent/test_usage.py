"""The resource use of this container."""

from __future__ import annotations

import os
import time
from pathlib import Path

from trainer.agent import usage
from trainer.agent.usage import read_usage


def test_a_process_that_computes_is_counted(tmp_path: Path, monkeypatch):
    """This runs in a container, as a task does: processes and interfaces of this machine appear and
    disappear with other tests."""
    (tmp_path / str(os.getpid())).symlink_to(f"/proc/{os.getpid()}")
    (tmp_path / "self").touch()
    monkeypatch.setattr(usage, "PROCESSES", tmp_path)
    counts = iter([{"rx_bytes": 5, "tx_bytes": 2}, {"rx_bytes": 30, "tx_bytes": 4}])
    monkeypatch.setattr(usage, "traffic", lambda: next(counts))
    before, began = read_usage(), time.process_time()
    while time.process_time() - began < 0.3:
        pass
    after = read_usage()
    assert after.cpu_s - before.cpu_s > 0.2
    assert (before.bytes, after.bytes) == (7, 34)
    assert (after.received, after.sent) == (30, 4)
