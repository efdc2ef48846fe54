"""The one place that starts programs on the host."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

PATIENCE_S = 15.0
NOT_FOUND = 127


@dataclass(frozen=True)
class Completed:
    """How a command ended. `output` is stdout, `errors` stderr (empty where it was shown live)."""

    command: tuple[str, ...]
    code: int
    output: str
    errors: str

    @property
    def ok(self) -> bool:
        return self.code == 0

    def last_words(self, lines: int = 15) -> str:
        """The end of what the command said, stderr first choice, for an error message."""
        said = (self.errors.strip() or self.output.strip()).splitlines()
        return "\n".join(said[-lines:])


def run(
    command: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
    show: bool = False,
    timeout_s: float | None = None,
) -> Completed:
    """Run to the end and return how it ended; never raises for a non-zero exit.

    A program that is not installed ends with 127, as in a shell.

    The command has a session of its own: Ctrl-C reaches the kit alone, which then ends it.

    Args:
        env: added to the present environment.
        show: let the command write to this terminal instead of capturing it. Where there is none,
            its words go through our stderr: a reader who leaves (see `stdio`) ends no command.
    Raises:
        subprocess.TimeoutExpired: it ran past `timeout_s` seconds and was killed. A command that is
            shown without a terminal is bounded only from its last word on.
    """
    if shutil.which(command[0]) is None:
        return Completed(tuple(command), NOT_FOUND, "", f"{command[0]}: command not found")
    relayed = show and not sys.stderr.isatty()
    captured = None if show and not relayed else subprocess.PIPE
    child = subprocess.Popen(
        list(command),
        env={**os.environ, **(env or {})},
        cwd=cwd,
        stdout=captured,
        stderr=subprocess.STDOUT if relayed else captured,
        stdin=subprocess.DEVNULL,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        if relayed and child.stdout is not None:
            for line in child.stdout:
                sys.stderr.write(line)
                sys.stderr.flush()
        output, errors = child.communicate(timeout=timeout_s)
    except BaseException:
        _end(child)
        raise
    return Completed(tuple(command), child.returncode, output or "", errors or "")


def _end(child: subprocess.Popen[str]) -> None:
    """Ask the command to end and wait: Compose finishes what the engine is doing for it."""
    for ask in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, ask)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.communicate(timeout=PATIENCE_S)
            return


def start_daemon(command: Sequence[str], log_path: str) -> int:
    """Start a program that outlives us, in its own session, and return its pid."""
    with open(log_path, "ab") as log:  # noqa: PTH123 - handed to the child as a descriptor
        child = subprocess.Popen(
            list(command),
            stdout=log,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
    return child.pid
