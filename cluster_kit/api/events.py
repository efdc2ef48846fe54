"""What a run tells a caller while it goes on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from cluster_kit.observe.state import RunState


@dataclass(frozen=True)
class RunEvent:
    """Something that a run has to say.

    `kind` and what comes with it:

    - `phase`: `text` says what the run does now, as `planning`;
    - `warning`: `text`;
    - `log`: `text` is a line of `task`'s log, as the task wrote it;
    - `state`: `seen` is the state of all tasks, `seen.tasks["worker-0"].step` for example.
    """

    kind: Literal["phase", "warning", "log", "state"]
    text: str = ""
    task: str = ""
    seen: RunState | None = None


OnEvent = Callable[[RunEvent], None]
"""It is called from several threads, one at a time for the lines of one task."""


def nothing(event: RunEvent) -> None:
    """For callers that want to hear nothing."""


class EventView:
    """A view (see `show.view`) that hands everything on."""

    draws = False

    def __init__(self, on_event: OnEvent) -> None:
        self._on_event = on_event

    def count_from(self, began: float) -> None:
        pass

    def phase(self, text: str) -> None:
        self._on_event(RunEvent("phase", text))

    def warn(self, text: str) -> None:
        self._on_event(RunEvent("warning", text))

    def update(self, seen: RunState) -> None:
        self._on_event(RunEvent("state", seen=seen))

    def log(self, task: str, line: str) -> None:
        self._on_event(RunEvent("log", line, task))

    def close(self) -> None:
        pass
