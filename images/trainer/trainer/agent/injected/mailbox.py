"""The files by which a supervisor and its program communicate, in a private directory.

Supervisor to program: `servers-ready`, `job-ended`. Program to supervisor: `last-words` (the end
message), `gpu-missing` (a line about missing GPUs), `saving` (it got SIGTERM, and needs time to
save), `threads` (those that keep it from ending), `final` (another attempt would end the same way),
and `closures` (those that a coordinator
has scheduled and each worker has finished). Outside a cluster there is no mailbox, and nothing
waits. Also loaded by its path (on_path/): imports nothing of this package.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

VARIABLE = "CLUSTER_KIT_MAILBOX"
SERVERS_READY = "servers-ready"
JOB_ENDED = "job-ended"
LAST_WORDS = "last-words"
GPU_MISSING = "gpu-missing"
SAVING = "saving"
THREADS = "threads"
FINAL = "final"
CLOSURES = "closures"
IMPORTED = ".imported"
"""The suffix of a file for the leader, which is in the progress directory, not in the mailbox."""


def _directory() -> Path | None:
    path = os.environ.get(VARIABLE)
    return Path(path) if path else None


def wait_for_servers() -> None:
    """Block until every server answers; the supervisor ends the program at the deadline."""
    directory = _directory()
    while directory and not (directory / SERVERS_READY).exists():
        time.sleep(0.02)


def job_has_ended() -> bool:
    """Whether the leader has ended; True outside a cluster."""
    directory = _directory()
    return directory is None or (directory / JOB_ENDED).exists()


def has_imported() -> None:
    """Let the leader know that this task's program has imported TensorFlow."""
    progress = Path(os.environ.get("CLUSTER_KIT_PROGRESS", ""))
    with contextlib.suppress(OSError):
        progress.with_name(progress.stem + IMPORTED).touch()


def leave_last_words(text: str, name: str = LAST_WORDS) -> None:
    """Put `text` into the mailbox as the file `name`; nothing happens outside a cluster."""
    directory = _directory()
    if directory:
        new = directory / f".{name}.new"
        new.write_text(text)
        new.replace(directory / name)
