"""Measures inside a task's container the cost of sampling it, with a second sampler.

sampling_probe.py SECONDS ; prints the CPU seconds that it took per second.
"""

from __future__ import annotations

import dataclasses
import sys
import tempfile
import time
from pathlib import Path

from trainer.agent.task import read_task
from trainer.agent.usage_recorder import Recorder

WARM_UP_S = 2.5


def main() -> None:
    seconds = float(sys.argv[1])
    output = Path(tempfile.mkdtemp())
    (output / "progress").mkdir()
    Recorder(dataclasses.replace(read_task(), output=output))
    time.sleep(WARM_UP_S)
    before = time.process_time()
    time.sleep(seconds)
    print(f"{(time.process_time() - before) / seconds:.6f}")


if __name__ == "__main__":
    main()
