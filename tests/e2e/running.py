"""A run that continues while a test observes and disturbs it."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import docker
import pytest

from tests.e2e.waiting import wait_for
from tests.kit import Kit, mine

STEPS = str(Path(__file__).parent / "programs" / "steps.py")
"""A program that makes five steps within three seconds, and then waits for a file if one is
named."""

needs_root = pytest.mark.skipif(
    os.geteuid() != 0, reason="killing a container's process takes root"
)


@contextmanager
def running(kit: Kit, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Start the kit's command; it is killed if it has not ended within the block."""
    process = kit.start(*arguments)
    try:
        yield process
    finally:
        process.kill()


def read_until(process: subprocess.Popen[str], words: str) -> str:
    """Read the output up to the first line with these words; returns that line."""
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        if words in line:
            return line
    raise AssertionError(f"{words!r} was never said: {''.join(lines)}")


def kill_task(client: docker.DockerClient, kit: Kit, task: str) -> None:
    """End the container's first process: `docker kill` would count as a stop by the user."""

    def pid() -> Any:
        for container in mine(client, kit.name)[0]:
            if container.attrs["Config"]["Hostname"] == task:
                return container.attrs["State"]["Pid"]
        return None

    os.kill(int(wait_for(f"the process of {task}", pid)), signal.SIGKILL)
