"""A run whose containers could not write their output: the verdict in words of this host."""

from __future__ import annotations

from dataclasses import replace

from cluster_kit.run import disk_space
from cluster_kit.run.judging.verdict import CODES, Reason, Verdict
from cluster_kit.workspace import RunDirectory

_FULL = ("No space left on device", "Disk quota exceeded", "the disk of /output is full")
_RESUME = "`--resume` goes on from the last checkpoint"


def explained(verdict: Verdict, said: str, run: RunDirectory) -> Verdict:
    """The verdict with the directory and its room, if the output is why the run ended.

    Programs fail over a full disk in words of their own, and may free what they had begun to write
    as they fail. Without room nobody can leave an `end`.

    Args:
        said: the last words of the task to blame, or of the leader.
    """
    if verdict.reason == Reason.FAILED and _says_full(f"{verdict.message}\n{said}"):
        return _full(verdict, run)
    if verdict.reason not in (Reason.DISK_FULL, Reason.OUTPUT_LOST):
        return verdict
    output = run.output
    if verdict.reason == Reason.DISK_FULL or _says_full(said) or disk_space.is_full(output):
        return _full(verdict, run)
    gone = "was removed" if not output.is_dir() else "cannot be written any more"
    message = f"the output directory {output} {gone} while the run went on"
    return replace(verdict, message=message, hint=f"bring it back, or make it writable: {_RESUME}")


def _full(verdict: Verdict, run: RunDirectory) -> Verdict:
    """As a program fails, it may free what it had begun to write: then the disk was full."""
    free = disk_space.free(run.output)
    full = f"was full ({free} now)" if disk_space.has_room(run.output) else f"is full ({free})"
    return replace(
        verdict,
        exit_code=CODES[Reason.DISK_FULL],
        reason=Reason.DISK_FULL,
        blame="",
        message=f"the disk of {run.output} {full}; the checkpoints that were complete are kept",
        hint=f"make room there: {_RESUME}",
    )


def _says_full(words: str) -> bool:
    """Whether a line says that the disk is full, and does not mean the memory that is /tmp."""
    lines = (line for line in words.splitlines() if "/tmp/" not in line)
    return any(sign in line for line in lines for sign in _FULL)
