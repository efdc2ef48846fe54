"""The files by which a supervisor and its program communicate, in a private directory.

Supervisor to program: `servers-ready`, `peers-ready`, `job-ended`. Program to supervisor:
`last-words` (the end message), `gpu-missing` (a line about missing GPUs), `saving` (it got SIGTERM,
and needs time to save), `threads` (those that keep it from ending), `final` (another attempt would
end the same way), and `closures` (those that a coordinator has scheduled and each worker has
finished). Outside a cluster there is no mailbox, and nothing waits. Also loaded by its path
(on_path/): imports nothing of this package.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

VARIABLE = "CLUSTER_KIT_MAILBOX"
SERVERS_READY = "servers-ready"
PEERS_READY = "peers-ready"
JOB_ENDED = "job-ended"
LAST_WORDS = "last-words"
GPU_MISSING = "gpu-missing"
SAVING = "saving"
THREADS = "threads"
FINAL = "final"
CLOSURES = "closures"
IMPORTED, BUILT = ".imported", ".built"
"""The suffixes of files for the leader's supervisor, which are in the progress directory, not in
the mailbox."""
INITIALIZED = "model.initialized"
"""A file for all tasks, also in the progress directory."""


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
    _leave(_progress().stem + IMPORTED)


def has_built() -> bool:
    """Let the leader know that this task's program is ready to train: it has built its graph.

    Returns whether the leader can know it.
    """
    return _leave(_progress().stem + BUILT)


def has_initialized() -> None:
    """Let the other tasks know that this one has initialised the model's variables on the ps."""
    _leave(INITIALIZED)


def initialized_at() -> int:
    """When a task last initialised the model's variables, in nanoseconds; 0 if that is unknown."""
    try:
        return _progress().with_name(INITIALIZED).lstat().st_mtime_ns
    except (OSError, ValueError):
        return 0


def _progress() -> Path:
    """This task's progress file; the empty path outside a cluster."""
    return Path(os.environ.get("CLUSTER_KIT_PROGRESS", ""))


def _leave(name: str) -> bool:
    """Leave an empty file in the progress directory; returns whether that succeeded."""
    try:
        _progress().with_name(name).touch()
    except (OSError, ValueError):  # a full disk; outside a cluster
        return False
    return True


def wait_for_peers() -> None:
    """Block until the other tasks' programs are ready to train, too; the supervisor limits that."""
    directory = _directory() if has_built() else None
    while directory and not (directory / PEERS_READY).exists():
        time.sleep(0.02)


def leave_last_words(text: str, name: str = LAST_WORDS) -> None:
    """Put `text` into the mailbox as the file `name`; nothing happens outside a cluster."""
    directory = _directory()
    if directory:
        new = directory / f".{name}.new"
        new.write_text(text)
        new.replace(directory / name)
