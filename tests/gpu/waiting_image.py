"""A tiny image whose tasks wait until a file says that the job is done, whatever their role.

It has a shell and three programs, taken out of the trainer image, so that it is made in a second
and needs nothing that is not there. What the engine gives a container can be seen in it.
"""

from __future__ import annotations

import json
import subprocess

from tests.gpu.second_engine import SecondEngine

NAME = "waiting:1"
DONE = "done"
"""The file's name, in the run's output directory."""
ENTRYPOINT = ["/bin/sh", "-c", f"while [ ! -e /output/{DONE} ]; do sleep 0.1; done"]

PACK = """
import subprocess, sys, tarfile
programs = ["/bin/sh", "/bin/cat", "/bin/ls", "/bin/sleep"]
trace = {"LD_TRACE_LOADED_OBJECTS": "1"}  # the loader lists what a program needs
lists = [subprocess.check_output([p], env=trace, text=True) for p in programs]
libraries = {word for words in lists for word in words.split() if word.startswith("/")}
with tarfile.open(fileobj=sys.stdout.buffer, mode="w|", dereference=True) as packed:
    for path in [*programs, *sorted(libraries)]:
        packed.add(path)
"""


def bring(engine: SecondEngine, trainer_image: str) -> None:
    """Make the image in this engine."""
    unpacked = ["docker", "run", "--rm", "--network=none", "--entrypoint=python3", trainer_image]
    packed = subprocess.run([*unpacked, "-c", PACK], capture_output=True, timeout=60, check=True)
    entrypoint = f"ENTRYPOINT {json.dumps(ENTRYPOINT)}"
    imported = subprocess.run(
        ["docker", "-H", engine.host, "import", "--change", entrypoint, "-", NAME],
        input=packed.stdout,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert imported.returncode == 0, imported.stderr
