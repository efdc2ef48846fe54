"""With TensorFlow: a program goes on although the end of an iterator takes long."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

if not find_spec("tensorflow"):
    pytest.skip("TensorFlow is in the image, not here", allow_module_level=True)

PROGRAM = """
import threading
import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
begun, may_end = threading.Event(), threading.Event()

def second_waits(number):
    if number > 0:
        begun.set()
        may_end.wait()
    return number

def waits(number):
    return tf.py_function(second_waits, [number], tf.int64)

numbers = tf.data.Dataset.range(9).map(waits, num_parallel_calls=2)
for kind in numbers, strategy.experimental_distribute_dataset(numbers.repeat()):
    begun.clear()
    may_end.clear()
    iterator = iter(kind)
    next(iterator)
    begun.wait()
    timer = threading.Timer(40, may_end.set)
    timer.start()
    del iterator
    print("waited" if may_end.is_set() else "went on", flush=True)
    timer.cancel()
    may_end.set()
"""


def test_a_program_does_not_wait_for_the_end_of_its_iterators(run_task, free_port, tmp_path: Path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    cluster = {"worker": [f"127.0.0.1:{free_port()}"]}
    task = run_task("worker-0", cluster, "run", str(path))
    found = task.communicate(timeout=300)[0]
    assert task.returncode == 0, found
    ends = [line for line in found.splitlines() if line in ("waited", "went on")]
    assert ends == ["went on", "went on"], found
