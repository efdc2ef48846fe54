"""Notices that files of this host change; no other module uses watchfiles."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import watchfiles

DEBOUNCE_MS, STEP_MS = 800, 100
"""Milliseconds: changes within this time count as one, since an editor writes several files."""
POLL_S = 0.2
END_S = 5.0


@dataclass(frozen=True)
class Watched:
    """The paths to watch: whole `folders`, and single `files`, which may not exist yet.

    Paths below `ignored`, and the temporary files of editors, Git and Python, are not watched.
    """

    folders: tuple[Path, ...]
    files: tuple[Path, ...]
    ignored: tuple[Path, ...] = ()


class _Filter(watchfiles.DefaultFilter):
    def __init__(self, watched: Watched) -> None:
        super().__init__(ignore_paths=list(watched.ignored))
        self._watched = watched

    def __call__(self, change: watchfiles.Change, path: str) -> bool:
        changed = Path(path)
        if changed in self._watched.files:
            return True
        inside = any(changed.is_relative_to(folder) for folder in self._watched.folders)
        return inside and not changed.is_dir() and super().__call__(change, path)


class Changes:
    """Collects changed paths in threads, within its `with` block."""

    def __init__(self, watched: Watched) -> None:
        self._filter = _Filter(watched)
        self._over = threading.Event()
        self._arrived: queue.Queue[frozenset[Path] | Exception] = queue.Queue()
        parents = sorted({file.parent for file in watched.files if file.parent.is_dir()})
        self._threads = [
            threading.Thread(target=self._look, args=(paths, recursive), daemon=True)
            for paths, recursive in ((watched.folders, True), (parents, False))
            if paths
        ]

    def __enter__(self) -> Changes:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join(END_S)

    def taken(self) -> list[Path]:
        """The files that have changed since the last call, sorted; raises OSError if one is
        unreadable.
        """
        return sorted(set().union(*self._new()))

    def wait(self) -> list[Path]:
        """Wait for a change; see `taken`. Ctrl-C ends it."""
        while True:
            if changed := self.taken():
                return changed
            self._over.wait(POLL_S)

    def _new(self) -> Iterator[frozenset[Path]]:
        while not self._arrived.empty():
            arrived = self._arrived.get_nowait()
            if isinstance(arrived, Exception):
                raise OSError(str(arrived)) from arrived
            yield arrived

    def _look(self, paths: Sequence[Path], recursive: bool) -> None:
        try:
            for changes in watchfiles.watch(
                *paths,
                watch_filter=self._filter,
                debounce=DEBOUNCE_MS,
                step=STEP_MS,
                stop_event=self._over,
                recursive=recursive,
                raise_interrupt=False,
            ):
                self._arrived.put(frozenset(Path(path) for _, path in changes))
        except (OSError, RuntimeError) as error:  # too many files, or a folder was removed
            self._arrived.put(error)
