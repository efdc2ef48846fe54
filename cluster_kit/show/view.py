"""The interface by which a run shows itself, and the choice of a view for a console."""

from __future__ import annotations

import re
import sys
import time
from typing import Protocol

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from cluster_kit.observe.log_patterns import NATIVE
from cluster_kit.observe.state import RunState
from cluster_kit.observe.task_view import State
from cluster_kit.show.progress_line import progress_of, waited_for
from cluster_kit.show.task_table import remarks, rows_of, status_table, tasks_in
from cluster_kit.util.terminal import counted, duration, harmless


def visible(line: str) -> str:
    """The line as a terminal would finally show it: a progress bar in its last state.

    "" if nothing would be visible, and for TensorFlow's own start-up lines; the saved log has all.
    """
    text = harmless(line)
    if NATIVE.match(text):
        return ""
    text = last_state(text).expandtabs()
    return "".join(c for c in text if c.isprintable()).rstrip()


def said_by(task: str, line: str) -> str:
    """A task's line without the task's name that supervisors write before their messages, since the
    view shows the name."""
    return visible(line).removeprefix(f"{task}: ")


def bounded(text: str, most: int) -> str:
    """The text, cut to `most` characters with `…` at the end."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


_SPLIT = re.compile("\ufffd{2,}")
"""What is left of a character that Docker split between two pieces of a line."""


def last_state(text: str) -> str:
    """The text of a line after carriage returns and backspaces have overwritten parts of it."""
    if "\r" not in text and "\b" not in text:
        return text
    shown: list[str] = []
    cursor = 0
    for character in _SPLIT.sub("\ufffd", text):
        if character == "\r":
            cursor = 0
        elif character == "\b":
            cursor = max(0, cursor - 1)
        else:
            shown[cursor : cursor + 1] = character
            cursor += 1
    return "".join(shown)


LONGEST = 500
"""Maximum characters of a task's line; the log has the rest."""


_WORKS = (State.READY, State.TRAINING, State.SCORING, State.WAITING)


class PlainView:
    """Prints lines as they arrive, and never redraws them."""

    draws = True

    def __init__(self, console: Console) -> None:
        self._console = console
        self._states: dict[str, tuple[State, int | None, int]] = {}

    def count_from(self, began: float) -> None:
        pass

    def phase(self, text: str) -> None:
        self._line(text)

    def note(self, text: str) -> None:
        self._line(text)

    def warn(self, text: str) -> None:
        self._line(f"warning: {text}")

    def update(self, seen: RunState) -> None:
        for task in seen.tasks.values():
            now = (task.state, task.exit_code, task.restarts)
            before = self._states.get(task.name, (State.CREATED, None, 0))
            if before == (State.SCORING, *now[1:]) and task.state is State.WAITING:
                continue  # it alternates with each checkpoint: its scores are printed
            has_failed = before[0] in _WORKS and now == (State.RUNNING, *before[1:])
            if before != now and not has_failed:  # its next attempt, or its end, is printed
                restarts = f", restart {task.restarts}" if task.restarts else ""
                self._line(f"{task.name:>12}  {task.state_text}{restarts}  {task.ip}")
            self._states[task.name] = now

    def log(self, task: str, line: str) -> None:
        if text := said_by(task, line):
            self._line(f"{task:>12} | {bounded(text, LONGEST)}")

    def close(self) -> None:
        sys.stderr.flush()

    def _line(self, text: str) -> None:
        self._console.print(text, markup=False, emoji=False, highlight=False, soft_wrap=True)


MAX_ROWS = 24
AROUND = 4
"""Lines other than task rows: the phase, the headings, the number of hidden tasks, the cursor."""
MOST_REMARKS = 4
REFRESHES_PER_S = 4
BAR = 20
LEAST_HEIGHT = 10
"""Minimum number of a terminal's lines for the bar."""


class LiveView:
    """A table that is redrawn in place, with log lines scrolling above it."""

    draws = True

    def __init__(self, console: Console) -> None:
        self._console = console
        self._began = time.monotonic()
        self._phase = ""
        self._spinner = Spinner("dots")
        self._seen: RunState | None = None
        self._live: Live | None = None
        self._width = 0
        """The terminal's width when it was last read."""

    def count_from(self, began: float) -> None:
        self._began = began

    def phase(self, text: str) -> None:
        self._phase = text
        self._open()

    def note(self, text: str) -> None:
        self._console.print(Text(text, "yellow"), soft_wrap=True)

    def warn(self, text: str) -> None:
        self._console.print(Text.assemble(("warning: ", "bold yellow"), text), soft_wrap=True)

    def update(self, seen: RunState) -> None:
        self._seen = seen
        self._begin_anew_if_narrower()
        self._open()

    def log(self, task: str, line: str) -> None:
        if text := said_by(task, line):
            shown = Text.assemble((f"{task:>12} ", "bold cyan"), bounded(text, LONGEST))
            self._console.print(shown, no_wrap=True, overflow="ellipsis")

    def close(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _begin_anew_if_narrower(self) -> None:
        """Start a new table if the terminal got narrower: it has wrapped the old table's lines,
        which cannot be redrawn."""
        width = self._console.width
        if self._live is not None and width < self._width:
            self.close()
            self._console.clear()
        self._width = width

    def _open(self) -> None:
        if self._live is None:
            self._live = Live(
                get_renderable=self.shown,
                console=self._console,
                refresh_per_second=REFRESHES_PER_S,
                transient=True,
            )
            self._live.start()

    def shown(self) -> RenderableType:
        """The lines and table to draw now; `Live` calls it at every refresh."""
        elapsed = duration(time.monotonic() - self._began, digits=0)
        head = Text.assemble((self._phase, "bold"), f"  {elapsed}")
        head.truncate(max(1, self._console.width - 2), overflow="ellipsis")
        self._spinner.update(text=head)
        if self._seen is None:
            return self._spinner
        tasks = list(self._seen.tasks.values())
        most = max(0, min(MOST_REMARKS, self._console.height // 4))
        waits = list(filter(None, [waited_for(self._seen)]))
        notices = [
            Text(text, "yellow", no_wrap=True, overflow="ellipsis")
            for text in [*waits, *remarks(tasks)]
        ][:most]
        progress = self._progress()
        most_rows = max(
            1, min(MAX_ROWS, self._console.height - AROUND - len(notices) - len(progress))
        )
        rows = rows_of(tasks, most_rows, self._seen.leader)
        hidden = len(tasks) - tasks_in(rows[:most_rows])
        shown = status_table(rows[:most_rows], width=self._console.width)
        parts: list[RenderableType] = [self._spinner, *progress, shown, *notices]
        if hidden > 0:
            more = f"… and {counted(hidden, 'more task')} (cluster-kit status)"
            parts.append(Text(more, style="dim"))
        return Group(*parts)

    def _progress(self) -> list[RenderableType]:
        """A bar and figures, if the job trains and the terminal is high enough."""
        progress = progress_of(self._seen) if self._seen else None
        if progress is None or self._console.height < LEAST_HEIGHT:
            return []
        line = Table.grid(padding=(0, 1))
        line.add_column(width=BAR)
        line.add_column(no_wrap=True, overflow="ellipsis")
        bar = ProgressBar(total=1.0, completed=progress.share or 0.0, width=BAR)
        line.add_row(bar if progress.share is not None else "", Text(progress.words, "green"))
        return [line]


class View(Protocol):
    """Shows a run to the user."""

    draws: bool
    """Whether the view is on a terminal, on which a build may draw its progress, too."""

    def count_from(self, began: float) -> None:
        """Count the time that is shown from this value of `time.monotonic()`: the run's start."""
        ...

    def phase(self, text: str) -> None:
        """Show the run's current step, in a few words."""
        ...

    def note(self, text: str) -> None:
        """Show something that has happened, which is not the run's step."""
        ...

    def warn(self, text: str) -> None:
        """Show a warning."""
        ...

    def update(self, seen: RunState) -> None:
        """Show the state of all tasks."""
        ...

    def log(self, task: str, line: str) -> None:
        """Show a line of a task's log, as the task wrote it. Called from several threads."""
        ...

    def close(self) -> None:
        """Release the terminal; any later call opens the view again."""
        ...


def make_view(console: Console) -> View:
    """A live view on a terminal, plain lines elsewhere."""
    return LiveView(console) if console.is_terminal else PlainView(console)


class QuietView:
    """Shows warnings only."""

    draws = False

    def __init__(self, console: Console) -> None:
        self._console = console

    def count_from(self, began: float) -> None:
        pass

    def phase(self, text: str) -> None:
        pass

    def note(self, text: str) -> None:
        pass

    def warn(self, text: str) -> None:
        self._console.print(f"warning: {text}", markup=False, soft_wrap=True)

    def update(self, seen: RunState) -> None:
        pass

    def log(self, task: str, line: str) -> None:
        pass

    def close(self) -> None:
        pass
