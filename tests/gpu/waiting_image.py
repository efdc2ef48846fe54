"""A tiny image whose tasks wait until a file says that the job is done, whatever their role.

It has a shell and three programs from the trainer image, so it is built in a second and needs
nothing else. It shows what the engine gives a container. Its `python3` is a shell script: asked for
the contents of the image, it prints what the kit expects; started as a task, it waits.
"""

from __future__ import annotations

import json
import subprocess

from tests.gpu.second_engine import SecondEngine

NAME = "waiting:1"
DONE = "done"
"""The file's name, in the run's output directory."""
HAS = {"python": [3, 11], "tensorflow": "2.21.0", "native": True, "lacks": [], "output": ""}
PYTHON = f"""#!/bin/sh
case "$*" in
  *own_image/look.py*) echo '{json.dumps(HAS)}' ;;
  *) while [ ! -e /output/{DONE} ]; do sleep 0.1; done ;;
esac
"""

PACK = """
import io, subprocess, sys, tarfile
programs = ["/bin/sh", "/bin/cat", "/bin/ls", "/bin/sleep"]
trace = {"LD_TRACE_LOADED_OBJECTS": "1"}  # the loader lists what a program needs
lists = [subprocess.check_output([p], env=trace, text=True) for p in programs]
libraries = {word for words in lists for word in words.split() if word.startswith("/")}
with tarfile.open(fileobj=sys.stdout.buffer, mode="w|", dereference=True) as packed:
    for path in [*programs, *sorted(libraries)]:
        packed.add(path)
    script = tarfile.TarInfo("usr/bin/python3")
    script.mode, script.size = 0o755, len(sys.argv[1].encode())
    packed.addfile(script, io.BytesIO(sys.argv[1].encode()))
"""


def bring(engine: SecondEngine, trainer_image: str) -> None:
    """Build the image on this engine."""
    unpacked = ["docker", "run", "--rm", "--network=none", "--entrypoint=python3", trainer_image]
    packed = subprocess.run(
        [*unpacked, "-c", PACK, PYTHON], capture_output=True, timeout=60, check=True
    )
    imported = subprocess.run(
        ["docker", "-H", engine.host, "import", "-", NAME],
        input=packed.stdout,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert imported.returncode == 0, imported.stderr
