"""Shortens an exception's text: its most useful line comes first, frames are left out. Pure.

TensorFlow writes the stack of the graph's nodes into the exception's text, before the actual error;
AutoGraph does the same with the stack of the traced functions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from trainer.agent.outcome import tidy

_HEAD = re.compile(
    r"^(?P<kind>[\w.]+): ((in user code|Graph execution error):"
    r"|Input has an error, the original exception is .*, error message is "
    r"(Graph execution error:|(?P<original>.+))"
    r"|(?P<context>Exception encountered when calling .*))$"
)
_OWN = 'File "/program/'
_FRAME = re.compile(r'^\s*File "[^"]*", line \d+')
_TRACE = re.compile(
    r"^(Detected at node .* defined at|Stack trace for op definition)|most recent call (last|first)"
)
_REPEATED = re.compile(r"^(Original stack trace for |Additional GRPC error information)")
_OF_WORKER = re.compile(
    r"^Additional GRPC error information from remote target /job:(worker)/replica:\d+/task:(\d+) "
    r"while calling /tensorflow\.eager\.",
    re.MULTILINE,
)
"""What TensorFlow adds in a coordinator to the error of a function that a worker ran."""
_UNSAID = re.compile(
    r"^(Node: |From /job:|\d+ root error|\s*\[\[|<stack traces unavailable>|:"
    r"|\s*in user code:$|Exception encountered when calling )"
)
_NUMBERED = re.compile(r"^\(\d+\) (?:[A-Z_]+: +)?")
_WRAPPED = re.compile(r"\{\{function_node [^}]*\}\} ")
_UNDEFINED = re.compile(r"^(?P<kind>[\w.]+): '.*' must be defined before the loop$")
_BY_TRYING = re.compile(r"^\s*Note: AutoGraph tried to define it automatically, but ran into an? ")
"""AutoGraph's words for an error in a loop's body, such as `fit`'s with `steps_per_execution`."""
_MOST_WRAPPERS = 20
"""AutoGraph wraps the error of a layer, which Keras has wrapped; so do the layers around it."""
LONGEST = 64_000
"""Maximum characters; a longer text loses its middle."""


def telling(text: str) -> str:
    """The text of an exception, with its type and its most useful line in the first line."""
    lines = _WRAPPED.sub("", tidy(text)).splitlines()
    if lines and _FRAME.match(lines[0]):  # a syntax error: first its place, then its message
        lines = [lines[-1], *lines[:-1]]
    else:
        for _ in range(_MOST_WRAPPERS):
            lines = _unwrapped(_from_a_loop(lines))
        lines = [line for line in lines if line.strip() != "in user code:"]
        if ran := _OF_WORKER.search(text):
            lines = [*lines, f"in a function that {ran[1]}-{ran[2]} ran"]
    return _bounded("\n".join(lines))


def _from_a_loop(lines: list[str]) -> list[str]:
    """The lines with the error first with which a loop's body failed, if AutoGraph names it only in
    a note."""
    undefined = _UNDEFINED.match(lines[0]) if lines else None
    notes = (i for i, line in enumerate(lines) if _BY_TRYING.match(line))
    if not undefined or (note := next(notes, None)) is None:
        return lines
    error = _BY_TRYING.sub("", lines[note])
    return _begun_with(undefined["kind"], lines[1:note], [error, *lines[note + 1 :]])


def _unwrapped(lines: list[str]) -> list[str]:
    """The lines with the error first that TensorFlow or Keras has wrapped in another."""
    head = _HEAD.match(lines[0]) if lines else None
    if not head:
        return lines
    own_frames: list[str] = []
    original = [head["original"]] if head["original"] else []
    rest = _dedented(list(_without_frames([*original, *lines[1:]], own_frames)))
    context = [head["context"]] if head["context"] else []
    return _begun_with(head["kind"], [*context, *own_frames], rest) or lines


def _without_frames(lines: Sequence[str], own: list[str]) -> Iterator[str]:
    """Yields the lines that are neither a frame, nor its source line, nor graph mode's repetition.

    Frames of the program itself are added to `own`, each once.
    """
    frame_indent, echo, is_new = -1, False, False
    for line in lines:
        indent = len(line) - len(line.lstrip())
        if _FRAME.match(line):
            frame_indent = indent
            frame = f"  {line.strip().rstrip('* ')}"
            is_new = _OWN in frame and frame not in own
            own += [frame] * is_new
            continue
        if 0 <= frame_indent < indent:
            own += [f"    {line.strip()}"] * is_new
            continue
        frame_indent = -1
        if _REPEATED.match(line):
            echo = True
        elif (echo and line.startswith((":", "\t", " [["))) or _TRACE.search(line):
            continue
        elif not line.startswith("<stack traces unavailable>"):
            echo = False
            yield line


def _dedented(lines: Sequence[str]) -> list[str]:
    least = min((len(line) - len(line.lstrip()) for line in lines), default=0)
    return [line[least:] for line in lines]


def _begun_with(kind: str, where: Sequence[str], lines: Sequence[str]) -> list[str]:
    """The lines with the most useful one first, after the exception's type; then its place."""
    begin = next((i for i, line in enumerate(lines) if not _UNSAID.match(line)), None)
    if begin is None:
        return []
    first_line = _NUMBERED.sub("", lines[begin].strip())
    name = kind.rpartition(".")[2]
    first = (
        first_line if first_line.startswith((f"{name}: ", f"{kind}: ")) else f"{kind}: {first_line}"
    )
    return [first, *where, *lines[:begin], *lines[begin + 1 :]]


def _bounded(text: str) -> str:
    if len(text) <= LONGEST:
        return text
    half = LONGEST // 2
    return f"{text[:half]}\n… {len(text) - 2 * half:,} characters left out here …\n{text[-half:]}"
