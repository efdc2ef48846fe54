"""Engines whose containers are on other machines: what cannot be done there, and logs by asking."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NoReturn

from cluster_kit.engine.containers import seconds_of
from cluster_kit.errors import EngineError

FOLLOW_S = 1.0


class Elsewhere:
    """Methods of an engine that reach into a container: each raises EngineError."""

    _refusal: tuple[str, str]
    """What cannot be done, and what to do instead."""

    def _elsewhere(self, *_given: Any, **_named: Any) -> NoReturn:
        raise EngineError(*self._refusal)

    ask = execute = freeze = thaw = attach = detach = _elsewhere
    limit_cpus = limit_memory = memory_used = start_helper = _elsewhere


def follow(
    read: Callable[[float | None], Iterable[str]],
    is_over: Callable[[], bool],
    since: float | None,
    *,
    times: bool,
) -> Iterator[str]:
    """Lines as they are said, until the one who says them is over and all was read.

    Args:
        read: the lines after a time, each with its time in front.
        times: whether those stay there.
    """
    last = since
    while True:
        over = is_over()
        for line in read(last):
            stamp, _, text = line.partition(" ")
            last = max(last or 0.0, seconds_of(stamp))
            yield line if times else text
        if over:
            return
        time.sleep(FOLLOW_S)


def said_after(lines: Iterable[str], since: float | None) -> list[str]:
    """The lines, each with its time in front, that are later; all without a time."""
    return [line for line in lines if since is None or seconds_of(line.split(" ")[0]) > since]
