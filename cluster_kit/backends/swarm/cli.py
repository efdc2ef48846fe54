"""Calls Docker's command line for stacks; no other module does."""

from __future__ import annotations

import re
from pathlib import Path

from cluster_kit.errors import UsageError
from cluster_kit.util.process import run

MINIMUM = (23, 0)


def version() -> tuple[int, ...] | None:
    """Returns the version of Docker's command line, None if there is none."""
    done = run(["docker", "version", "--format", "{{.Client.Version}}"])
    match = re.match(r"(\d+)\.(\d+)(?:\.(\d+))?", done.output.strip())
    return tuple(int(part) for part in match.groups() if part) if match else None


def up(file: Path, output: Path, run_id: str) -> None:
    """Raises UsageError: the kit does not start stacks yet."""
    raise UsageError(
        f"the kit does not start stacks: {file} is for Docker's command line",
        f"its first lines say how: `docker stack deploy -c {file} …`",
    )
