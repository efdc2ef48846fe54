"""Starts the trainer in a user's image: start.py serve | run PROGRAM …

What the kit's image has as variables is set here if the image does not set it, and the trainer is
found beside what the image's own PYTHONPATH has.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

TRAINER = "/opt/trainer"
USUAL = {
    "PYTHONUNBUFFERED": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "LANG": "C.UTF-8",
    "USER": "trainer",
    "LOGNAME": "trainer",
    "MALLOC_MMAP_THRESHOLD_": "33554432",
    "MALLOC_TRIM_THRESHOLD_": "268435456",
    "MALLOC_TOP_PAD_": "67108864",
    "TF_CPP_MIN_LOG_LEVEL": "2",
}
"""The values of the kit's image, whose Dockerfile explains each. The image decides which Keras
`tf.keras` is, and HOME is only changed if it is not writable."""


def environment(given: Mapping[str, str], trainer: str = TRAINER) -> dict[str, str]:
    """Returns the variables of a task whose container has the variables `given`."""
    path = given.get("PYTHONPATH", "").split(os.pathsep)
    if trainer not in path:
        path.insert(0, trainer)
    variables = {**USUAL, **given, "PYTHONPATH": os.pathsep.join(filter(None, path))}
    if not os.access(variables.get("HOME", ""), os.W_OK):
        variables["HOME"] = "/tmp"
    return variables


if __name__ == "__main__":
    sys.path.insert(0, TRAINER)
    from trainer.agent.start_anew import start_anew

    start_anew(sys.argv[1:], environment(os.environ))
