"""What this container has used."""

from __future__ import annotations

import time

from trainer.usage import used


def test_a_process_that_computes_is_counted():
    before, began = used(), time.process_time()
    while time.process_time() - began < 0.3:
        pass
    after = used()
    assert after.cpu_s - before.cpu_s > 0.2
    assert after.bytes >= before.bytes
