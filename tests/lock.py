"""Writes the hashes of what the image installs: `make lock`, after a pin was changed.

The hashes are of every file of a pinned version, so that the build takes it on any machine and from
any mirror, and refuses every other file. Markers choose what differs between processors.
"""

from __future__ import annotations

import os
import subprocess
import sys

from cluster_kit.image.build import SOURCE

RECIPE = SOURCE / "recipe"
LOCKED = ("cpu", "digits", "gpu")
HEADER = "# `make lock` wrote this from requirements-{}.txt. Do not edit.\n"


def main() -> int:
    """Write all files; the exit code."""
    asked = [sys.executable, "-m", "pip", "config", "get", "global.index-url"]
    index = subprocess.run(asked, capture_output=True, text=True).stdout.strip()
    environment = {**os.environ, **({"UV_DEFAULT_INDEX": index} if index else {})}
    for part in LOCKED:
        command = (
            *(sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--no-deps"),
            *("--generate-hashes", "--no-header", "--no-annotate", "--python-version=3.11"),
            "--universal",
            f"requirements-{part}.txt",
        )
        done = subprocess.run(command, cwd=RECIPE, env=environment, stdout=subprocess.PIPE)
        if done.returncode:
            return done.returncode
        (RECIPE / f"locked-{part}.txt").write_text(HEADER.format(part) + done.stdout.decode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
