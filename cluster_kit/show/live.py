"""The view on a terminal: a table that is redrawn in place."""

from __future__ import annotations

import time

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from cluster_kit.observe.state import RunState
from cluster_kit.show.groups import rows_of, tasks_in
from cluster_kit.show.lines import visible
from cluster_kit.show.progress_line import progress_of, waited_for
from cluster_kit.show.task_table import remarks, status_table
from cluster_kit.util.elapsed import duration

MAX_ROWS = 24
AROUND = 4
"""Lines other than task rows: the phase, the headings, the number of hidden tasks, the cursor."""
MOST_REMARKS = 4
REFRESHES_PER_S = 4
BAR = 20
LEAST_HEIGHT = 10
"""Lines of a terminal on which there is room for the bar."""


class LiveView:
    """One table that is redrawn in place, log lines scrolling above it."""

    draws = True

    def __init__(self, console: Console) -> None:
        self._console = console
        self._began = time.monotonic()
        self._phase = ""
        self._spinner = Spinner("dots")
        self._seen: RunState | None = None
        self._live: Live | None = None
        self._width = 0
        """Of the terminal when it was last looked at."""

    def count_from(self, began: float) -> None:
        self._began = began

    def phase(self, text: str) -> None:
        self._phase = text
        self._open()

    def warn(self, text: str) -> None:
        self._console.print(Text.assemble(("warning: ", "bold yellow"), text), soft_wrap=True)

    def update(self, seen: RunState) -> None:
        self._seen = seen
        self._begin_anew_if_narrower()
        self._open()

    def log(self, task: str, line: str) -> None:
        if text := visible(line):
            shown = Text.assemble((f"{task:>12} ", "bold cyan"), text)
            self._console.print(shown, no_wrap=True, overflow="ellipsis")

    def close(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _begin_anew_if_narrower(self) -> None:
        """A narrower terminal has wrapped the table's lines, so that it cannot be drawn over."""
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
        """What to draw now; `Live` calls it at every refresh."""
        elapsed = duration(time.monotonic() - self._began, digits=0)
        head = Text.assemble((self._phase, "bold"), f"  {elapsed}")
        head.truncate(max(1, self._console.width - 2), overflow="ellipsis")
        self._spinner.update(text=head)
        if self._seen is None:
            return self._spinner
        tasks = list(self._seen.tasks.values())
        most = max(0, min(MOST_REMARKS, self._console.height // 4))
        waits = list(filter(None, [waited_for(self._seen)]))
        said = [
            Text(text, "yellow", no_wrap=True, overflow="ellipsis")
            for text in [*waits, *remarks(tasks)]
        ][:most]
        progress = self._progress()
        room = max(1, min(MAX_ROWS, self._console.height - AROUND - len(said) - len(progress)))
        rows = rows_of(tasks, room, self._seen.leader)
        hidden = len(tasks) - tasks_in(rows[:room])
        shown = status_table(rows[:room], width=self._console.width)
        parts: list[RenderableType] = [self._spinner, *progress, shown, *said]
        if hidden > 0:
            parts.append(Text(f"… and {hidden} more tasks (cluster-kit status)", style="dim"))
        return Group(*parts)

    def _progress(self) -> list[RenderableType]:
        """A bar and figures, if the job trains and there is room."""
        progress = progress_of(self._seen) if self._seen else None
        if progress is None or self._console.height < LEAST_HEIGHT:
            return []
        line = Table.grid(padding=(0, 1))
        line.add_column(width=BAR)
        line.add_column(no_wrap=True, overflow="ellipsis")
        bar = ProgressBar(total=1.0, completed=progress.share or 0.0, width=BAR)
        line.add_row(bar if progress.share is not None else "", Text(progress.words, "green"))
        return [line]
