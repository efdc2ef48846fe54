"""An unchanged program for TensorFlow 1 that reads MNIST, in containers.

The other five: tests/e2e/test_supervisor.py, and test_with_tf_period.py in tests/trainer/agent/.
"""

from __future__ import annotations

import gzip
import random
import re
import struct
from pathlib import Path

from tests.e2e.evidence import codes, log
from tests.kit import Kit
from tests.make import ROOT

PROGRAM = ROOT / "tests" / "trainer" / "period" / "sync_softmax.py"
FLAGS = (
    "--job_name={{ role }} --task_index={{ index }} --ps_hosts={{ ps_hosts }}"
    " --worker_hosts={{ worker_hosts }} --data_dir={{ data }} --train_steps=500"
)
PACE = ("--set", 'role.ps.bandwidth="50mbit"')
"""An update transfers two gradients of 31 kB and the variables for them, so there are at most 100
updates a second on any machine. Worker 1 checks once a second whether worker 0 has begun."""
SIZE = 28


def write_digits(folder: Path, name: str, count: int) -> None:
    """Write two of MNIST's files: an image is bright in the two rows that belong to its label."""
    drawn = random.Random(count)
    labels = bytes(number % 10 for number in range(count))
    rows = (range(SIZE * (2 * label + 4), SIZE * (2 * label + 6)) for label in labels)
    images = b"".join(
        bytes(drawn.randrange(150, 256) if at in bright else drawn.randrange(100)
              for at in range(SIZE * SIZE))
        for bright in rows
    )  # fmt: skip
    pictures = struct.pack(">4I", 2051, count, SIZE, SIZE) + images
    (folder / f"{name}-images-idx3-ubyte.gz").write_bytes(gzip.compress(pictures))
    numbers = struct.pack(">2I", 2049, count) + labels
    (folder / f"{name}-labels-idx1-ubyte").write_bytes(numbers)


def test_a_softmax_with_synchronous_replicas_learns_mnist(kit: Kit, tmp_path: Path) -> None:
    mnist = tmp_path / "mnist"
    mnist.mkdir()
    write_digits(mnist, "train", 500)
    write_digits(mnist, "t10k", 100)
    done = kit.run(
        *("up", "smoke", "--name", kit.name, "--program", str(PROGRAM), "--tf1"),
        *("--chief", "0", "--workers", "2", "--set", "ps_runs=program"),
        *("--data", str(mnist), "--args", FLAGS, *PACE),
    )
    output = done.stdout + done.stderr
    assert done.returncode == 0, output
    last = re.search(r"After (\d+) training step\(s\), test accuracy = (\S+)", output)
    assert last and int(last[1]) >= 500 and float(last[2]) > 0.9, output
    assert re.search(r"Worker 1: [1-9]\d* steps of its own", log(kit, "worker-1")), output
    assert "job name = ps" in log(kit, "ps-0")
    assert codes(kit) == {"worker-0": 0, "worker-1": 0, "ps-0": 0}
