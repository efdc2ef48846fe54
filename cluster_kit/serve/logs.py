"""Logs of tasks: live for a cluster that is up, else the saved ones."""

from __future__ import annotations

import re
import threading
import time
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from cluster_kit.errors import EngineError, UsageError
from cluster_kit.observe.logs import follow_logs
from cluster_kit.platforms.engine import ContainerSummary, Engine
from cluster_kit.run.history import Line, merged, saved_logs
from cluster_kit.serve.site import Site
from cluster_kit.show.view import last_state
from cluster_kit.util.nearest import proposal
from cluster_kit.util.terminal import harmless

MOST_LINES, MOST_CHARACTERS = 20_000, 2_000_000
"""Maximum lines of a task to keep here, and their maximum characters, which also limit an answer;
the engine and the run's directory have all lines."""
MOST_SENT, LONGEST = 2_000, 20_000
"""Maximum lines of an answer; maximum characters of a line."""
IDLE_S = 30.0
"""Seconds without a request after which a log is no longer followed."""
_NUMBER = re.compile("[0-9]{1,18}")
FIRST_S = 0.3
"""Seconds for which the first request waits for the engine's lines."""


class Log:
    """One task's log, followed from the first request until requests stop."""

    def __init__(self, engine: Engine, task: ContainerSummary) -> None:
        self._lines: deque[tuple[int, Line]] = deque(maxlen=MOST_LINES)
        self._count = self._characters = 0
        self._asked = time.monotonic()
        self.over = False
        (self.thread,) = follow_logs(engine, [task], self._take, times=True)

    def _take(self, task: str, stamped: str) -> None:
        if time.monotonic() > self._asked + IDLE_S:
            self.over = True
            raise EngineError("this log is not read any more")  # this ends the thread
        at, _, text = stamped.partition(" ")
        self._count += 1
        line = Line(at, task, last_state(harmless(text))[:LONGEST])
        if len(self._lines) == MOST_LINES:
            self._forget()
        self._lines.append((self._count, line))
        self._characters += len(line.text)
        while self._characters > MOST_CHARACTERS:
            self._forget()

    def _forget(self) -> None:
        self._characters -= len(self._lines.popleft()[1].text)

    def after(self, number: int) -> list[tuple[int, Line]]:
        """The lines with higher numbers, which count from 1."""
        self._asked = time.monotonic()
        return [one for one in list(self._lines) if one[0] > number]


class Logs:
    """All logs that pages request."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._logs: dict[str, Log] = {}
        self._lock = threading.Lock()

    def read(self, cluster: str, run: str, task: str, after: str, words: str) -> dict[str, Any]:
        """The newest lines of a task's log, or of all logs with "", at most MOST_SENT.

        Args:
            run: "" for the newest one.
            after: the `next` of the last answer: only newer lines are returned.
            words: only lines that contain these words are returned; case is ignored.
        Raises:
            UsageError: there is no such run, or no such task in it.
            KitError: the engine does not answer.
        """
        up = self._up(cluster, run)
        running = [one.name for one in up]
        if up and task in ("", *running):
            return self._live(up, task, after, words)
        directory = self._site.run(cluster, run) if run else self._site.newest(cluster)
        # At the end containers are removed one by one, after their logs were saved.
        saved = saved_logs(directory) if directory else {}
        names = _chosen(list(saved) if task in saved else running or list(saved), task, cluster)
        lines = merged({name: saved[name] for name in names})
        sent = () if after == "saved" else lines
        return _answer(list(saved), sent, words, "saved", goes_on=False)

    def _up(self, cluster: str, run: str) -> list[ContainerSummary]:
        newest = self._site.newest(cluster)
        is_newest = newest is not None and run in ("", newest.path.name)
        return self._site.of(cluster) if is_newest else []

    def _live(
        self, up: Sequence[ContainerSummary], task: str, after: str, words: str
    ) -> dict[str, Any]:
        names = [one.name for one in up]
        chosen = [task] if task else names
        read = _numbers(after)
        lines = []
        for id_, log in self._followed([one for one in up if one.name in chosen]).items():
            if new := log.after(read.get(id_, 0)):
                lines += [line for _, line in new]
                read[id_] = new[-1][0]
        following = ",".join(f"{id_}:{number}" for id_, number in read.items())
        return _answer(names, sorted(lines), words, following, goes_on=True)

    def _followed(self, tasks: Sequence[ContainerSummary]) -> dict[str, Log]:
        """The log of each container, by its id; a new log has had time to read its first lines."""
        with self._lock:
            self._logs = {id_: one for id_, one in self._logs.items() if not one.over}
            new = [task for task in tasks if task.id not in self._logs]
            for task in new:
                self._logs[task.id] = Log(self._site.engine(), task)
            logs = {task.id: self._logs[task.id] for task in tasks}
        until = time.monotonic() + FIRST_S
        for task in new:
            logs[task.id].thread.join(max(0.0, until - time.monotonic()))
        return logs


def _numbers(after: str) -> dict[str, int]:
    """The last sent line of each container's log; {} for a text that is not from this server."""
    pairs = (part.partition(":") for part in after.split(","))
    return {id_: int(number) for id_, _, number in pairs if _NUMBER.fullmatch(number)}


def _chosen(names: Sequence[str], task: str, cluster: str) -> Sequence[str]:
    if task and task not in names:
        raise UsageError(f"no log of {task} in {cluster}", proposal(task, list(names)))
    return [task] if task else names


def _answer(
    tasks: Sequence[str], lines: Iterable[Line], words: str, following: str, *, goes_on: bool
) -> dict[str, Any]:
    wanted, count, characters = words.casefold(), 0, 0
    newest: deque[Line] = deque()
    for one in lines:
        if wanted in one.text.casefold():
            newest.append(replace(one, text=last_state(one.text)[:LONGEST]))
            characters += len(newest[-1].text)
            count += 1
        while len(newest) > MOST_SENT or characters > MOST_CHARACTERS:
            characters -= len(newest.popleft().text)
    return {
        "tasks": list(tasks),
        "lines": [[one.time, one.task, one.text] for one in newest],
        "left_out": count - len(newest),
        "next": following,
        "goes_on": goes_on,
    }
