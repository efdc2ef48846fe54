"""Logs of containers on other machines, read by asking again and again."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

from cluster_kit.platforms.engine import seconds_of

FOLLOW_S = 1.0


class PolledLogs:
    """The part of such an engine that reads logs; `engine.Engine` describes its methods."""

    def _lines(self, container_id: str, since: float | None, *, stderr: bool = False) -> list[str]:
        """What was said after a time, each line with its time in front; all without a time."""
        raise NotImplementedError

    def _is_over(self, container_id: str) -> bool:
        raise NotImplementedError

    def lines(self, container_id: str, *, stderr: bool = False) -> Iterator[str]:
        yield from self._lines(container_id, None, stderr=stderr)

    def follow(
        self, container_id: str, since: float | None = None, *, times: bool = False
    ) -> Iterator[str]:
        last = since
        while True:
            over = self._is_over(container_id)
            for line in self._lines(container_id, last):
                stamp, _, text = line.partition(" ")
                last = max(last or 0.0, seconds_of(stamp))
                yield line if times else text
            if over:
                return
            time.sleep(FOLLOW_S)


def stamped(text: str) -> list[str]:
    """The lines of a log, each with its time in front. A progress bar has other ends of lines."""
    return [line for line in text.split("\n") if " " in line]


def said_after(lines: Iterable[str], since: float | None) -> list[str]:
    """The lines, each with its time in front, that are later; without a time, all of them.

    A line that has none is left out: it is of an engine that could not get at a log.
    """
    return [line for line in lines if (at := _time(line)) is not None and at > (since or -1.0)]


def _time(line: str) -> float | None:
    try:
        return seconds_of(line.partition(" ")[0])
    except ValueError:
        return None
