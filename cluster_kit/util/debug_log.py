"""The log of the kit's requests to engines and programs, for `--verbose` and each run's debug.log.

It uses the loggers below `cluster_kit`. They are silent until a handler is added, here or by a
program that uses the kit from Python.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

FILE, OLDER = "debug.log", "debug-1.log"
"""The files in a run's directory; the second gets the content of the first when that is full."""
LARGEST = 1 << 20
"""Bytes of one file."""
MOST_HELD = 1000
"""Maximum number of lines kept in memory until the run has a directory."""
LONGEST, END = 500, 80
"""A longer line is shortened to its first LONGEST and its last END characters, which include the
result."""
KIT = logging.getLogger("cluster_kit")
KIT.propagate = False
KIT.addHandler(logging.NullHandler())


@contextlib.contextmanager
def timed(logger: logging.Logger, what: str) -> Iterator[Callable[[object], None]]:
    """Log the request that the `with` block sends, its result, and its time.

    The block may report its result by calling the function that `with` yields. If the block raises,
    the result is the exception's type.
    """
    if not logger.isEnabledFor(logging.DEBUG):
        yield _ignored
        return
    results: list[object] = []
    began = time.monotonic()
    try:
        yield results.append
    except BaseException as error:
        results.append(type(error).__name__)
        raise
    finally:
        took = (time.monotonic() - began) * 1000
        result = f" -> {results[-1]}" if results else ""
        logger.debug("%s%s (%.0f ms)", what, result, took)


def _ignored(_result: object) -> None:
    pass


def show(write: Callable[[str], None]) -> None:
    """Pass each line to `write` from now on."""
    _add(_Lines(write))


class Recording(logging.Handler):
    """Keeps the lines of one run: in memory at first, then in its directory; a context manager."""

    def __init__(self) -> None:
        super().__init__()
        self._held: deque[tuple[str, str]] = deque(maxlen=MOST_HELD)
        self._folder: Path | None = None
        self._mask: Callable[[str], str] = str

    def __enter__(self) -> Recording:
        _add(self)
        return self

    def __exit__(self, *_error: object) -> None:
        _remove(self)

    def keep_in(self, folder: Path, mask: Callable[[str], str]) -> None:
        """Write what was held, and all further lines, into a run's directory.

        Args:
            mask: hides the values of the run's secrets.
        """
        with self.lock or contextlib.nullcontext():
            self._folder, self._mask = folder, mask
            for begin, message in self._held:
                self._write(begin, message)
            self._held.clear()

    def emit(self, record: logging.LogRecord) -> None:
        begin, message = _begin(record), record.getMessage()
        if self._folder is None:
            self._held.append((begin, message))
        else:
            self._write(begin, message)

    def _write(self, begin: str, message: str) -> None:
        """Append a line; a directory that is gone or a full disk does not end the run.

        The whole message is masked, since half of a secret would not be found.
        """
        assert self._folder is not None
        file = self._folder / FILE
        with contextlib.suppress(OSError):
            with file.open("a", encoding="utf-8", errors="replace") as opened:
                opened.write(f"{begin}{_one_line(self._mask(message))}\n")
                full = opened.tell() > LARGEST
            if full:
                file.replace(self._folder / OLDER)


class _Lines(logging.Handler):
    """Passes lines on to a function."""

    def __init__(self, write: Callable[[str], None]) -> None:
        super().__init__()
        self._pass_on = write

    def emit(self, record: logging.LogRecord) -> None:
        self._pass_on(f"{_begin(record)}{_one_line(record.getMessage())}")


def _begin(record: logging.LogRecord) -> str:
    """`12:01:02.123 docker: `, of a line such as `… GET /containers/json -> 200 (3 ms)`."""
    moment = time.strftime("%H:%M:%S", time.localtime(record.created))
    return f"{moment}.{record.msecs:03.0f} {record.name.rpartition('.')[2]}: "


def _one_line(message: str) -> str:
    """The message on one line; a long one loses its middle."""
    line = " ".join(message.split())
    return line if len(line) <= LONGEST + END else f"{line[:LONGEST]} … {line[-END:]}"


class _AsBefore(logging.Filter):
    """Passes on the lines that other modules' handlers would get if the kit did not listen
    itself."""

    def __init__(self, level: int) -> None:
        super().__init__()
        self.level = level
        """The level of the kit's logger while no handler of this module listens."""

    def filter(self, record: logging.LogRecord) -> bool:
        ours = record.name == KIT.name or record.name.startswith(f"{KIT.name}.")
        return not ours or record.levelno >= (self.level or logging.INFO)


_before: list[_AsBefore] = []
"""The filter of other modules' handlers while a handler of this module listens."""


def _add(handler: logging.Handler) -> None:
    """Add a handler of this module; other modules' handlers get no more lines than before."""
    if not _before:
        _before.append(_AsBefore(KIT.level))
        for other in _others():
            other.addFilter(_before[0])
    KIT.addHandler(handler)
    KIT.setLevel(logging.DEBUG)


def _remove(handler: logging.Handler) -> None:
    """Remove a handler; after the last one the logger has its user's level again."""
    KIT.removeHandler(handler)
    other_handlers = _others()
    if len(other_handlers) == len(KIT.handlers) and _before:
        filtered = _before.pop()
        if KIT.level == logging.DEBUG:  # otherwise its user has changed it meanwhile
            KIT.setLevel(filtered.level)
        for other in other_handlers:
            other.removeFilter(filtered)


def _others() -> list[logging.Handler]:
    """The handlers of other modules; pytest, for example, adds some to record a test's log."""
    return [one for one in KIT.handlers if not isinstance(one, (Recording, _Lines))]
