"""What a failed task said itself, found in the noise that TensorFlow makes. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import dropwhile, takewhile

from cluster_kit.cluster import Mount
from cluster_kit.observe import noise

_STAMP = re.compile(r"^\d{4}-\d\d-\d\dT[\d:.]+Z ", re.MULTILINE)
_IGNORED = "Exception ignored in"
"""Python says this of what goes wrong while it shuts down, after the error that matters."""
_RECENT = 40
"""Lines after which a traceback is history: the program went on, and ended of something else."""
_NODE_TRACE = re.compile(r"Detected at node .* defined at \(most recent call last\):")
_REPEATED = re.compile(r"Original stack trace for |Additional GRPC error information")
_FRAME = re.compile(r' *File "(/program/)?')
_SPEAKER = re.compile(r"^((error|[a-z]+-\d+): )+")
_CURES = (
    (
        re.compile(r"_temp\S*; No such file or directory"),
        "every ps writes its own part of a checkpoint: save below /output, which all tasks share",
    ),
    (
        re.compile(r"Read-only file system"),
        "write below /output, which is kept, or /tmp: all else in a container is read-only",
    ),
    (
        re.compile(r"ModuleNotFoundError: No module named"),
        "name its package in a file and run with --requirements FILE (make: REQUIREMENTS=FILE); "
        "a module of your own belongs beside the program, whose directory is mounted",
    ),
)


def last_words(log: str, limit: int = 12) -> str:
    """What a task said at its end: its last traceback where it has one, without TensorFlow's noise.

    The last line of a traceback is the error itself and is always kept.
    """
    lines = [_STAMP.sub("", line).rstrip() for line in log.splitlines()]
    telling = [line for line in lines if line.strip() and not noise.ANY.match(line)]
    telling = list(_told_once(telling))
    starts = [
        i
        for i, line in enumerate(telling)
        if line.startswith("Traceback (most recent")
        and not (i > 0 and telling[i - 1].startswith(_IGNORED))
    ]
    traceback = telling[starts[-1] :] if starts else []
    end = _end_of_traceback(traceback)
    if traceback[end:] and len(traceback) - end <= _RECENT:
        error = list(takewhile(lambda line: not line.startswith(_IGNORED), traceback[end:]))
        room = max(2, limit - min(len(error), 6))
        return "\n".join([*_nearest(traceback[:end], room), *error[:6]])
    return "\n".join(telling[-limit:])


def _nearest(frames: Sequence[str], room: int) -> list[str]:
    """The last frames, and before them the last of the program's own where it is none of these."""
    own = [i for i, line in enumerate(frames) if (found := _FRAME.match(line)) and found[1]]
    if not own or own[-1] >= len(frames) - room or room < 5:
        return list(frames[-room:])
    last = dropwhile(lambda line: not _FRAME.match(line), frames[-(room - 3) :])
    return [*frames[own[-1] : own[-1] + 2], "  …", *last]


def _end_of_traceback(lines: Sequence[str]) -> int:
    """Index of the first line after the frames: the error."""
    ends = (i for i, line in enumerate(lines) if i > 0 and not line.startswith(" "))
    return next(ends, len(lines))


def _told_once(lines: Sequence[str]) -> Iterator[str]:
    """Graph mode tells each error again for every level and appends where each node was made: left
    is the error, the frame of the program in which the node was made, and the node."""
    said: set[str] = set()
    made_here = ""
    skipping = tracing = False
    for line in lines:
        frame = _FRAME.match(line)
        if _NODE_TRACE.match(line):
            tracing, made_here = True, ""
            continue
        if _REPEATED.match(line):
            skipping = True
            continue
        if skipping and (frame or line.startswith((":", "\t", " [["))):
            continue
        skipping = False
        if tracing and frame:
            made_here = line if frame[1] else made_here
            continue
        if tracing:
            tracing = False
            for found in (made_here, line):
                if found and found not in said:
                    yield found
                said.add(found)
            continue
        yield line


def beyond(message: str, words: str) -> str:
    """What a task said beside the message of its end: programs print theirs, and supervisors its
    first line, with `error: ` or a task's name in front."""
    said = {_SPEAKER.sub("", line).rstrip() for line in message.splitlines()}
    return "\n".join(line for line in words.splitlines() if _SPEAKER.sub("", line) not in said)


def on_host(text: str, mounts: Sequence[Mount]) -> str:
    """The text with paths of this host for those below a container's mounts.

    In quotes stands what a person wrote in a file, and stays as it is.
    """
    sources = {mount.target: mount.source for mount in mounts}
    if not sources:
        return text
    targets = "|".join(map(re.escape, sources))
    path = re.compile(rf"(?<![\w./\"'-])({targets})(?=[/:;,)\s]|$)")
    return path.sub(lambda found: sources[found[1]], text)


def cure(words: str) -> str:
    """What to do about an error that people meet often, "" where nobody knows."""
    return next((advice for pattern, advice in _CURES if pattern.search(words)), "")
