"""A container's log as it comes from the engine, in lines and in bounded memory. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cluster_kit.util.masking import LEFT_OUT

LONGEST_LINE = 1 << 20
"""Bytes; what a longer line has beyond that is left out, which LEFT_OUT at its end says."""
_HEADER = 8
"""Bytes before each message: one for the stream, three that mean nothing, four for its length."""


def payloads(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yields what was printed, without the headers that the engine puts before each message.

    See "Stream format" of `POST /containers/{id}/attach` in Docker's API.
    """
    rest = b""
    for block in blocks:
        data, at, found = rest + block, 0, []
        while at + _HEADER <= len(data):
            end = at + _HEADER + int.from_bytes(data[at + 4 : at + _HEADER], "big")
            if end > len(data):
                break
            found.append(data[at + _HEADER : end])
            at = end
        rest = data[at:]
        if found:
            yield b"".join(found)


def lines_of(blocks: Iterable[bytes]) -> Iterator[list[str]]:
    """Yields the lines of each block that end in it, without their ends; at last what has none."""
    rest, is_cut = b"", False
    for block in blocks:
        *lines, rest = (rest + block).split(b"\n")
        if lines and is_cut:
            is_cut = False
            del lines[0]
        if is_cut:
            rest = b""
        elif len(rest) > LONGEST_LINE:
            lines.append(rest)
            rest, is_cut = b"", True
        if lines:
            yield [_text(line) for line in lines]
    if rest and not is_cut:
        yield [_text(rest)]


def _text(line: bytes) -> str:
    shown = line[:LONGEST_LINE].decode("utf-8", errors="replace")
    # The cut may be within a character.
    return shown if len(line) <= LONGEST_LINE else shown.rstrip("\ufffd") + LEFT_OUT
