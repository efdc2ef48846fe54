"""Tests in several processes that are forked when all tests are collected: `--forks=N`.

xdist imports and collects all tests in each of its processes, which takes seconds of CPU each: as
much as thousands of short tests. These have them already. Each takes the next few when it has done
its own, and passes its reports on to the process that prints. As tests may wait more than they
compute, N may be larger than the number of cores.
"""

from __future__ import annotations

import functools
import multiprocessing
import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from multiprocessing.connection import Connection, wait
from typing import Any

import pytest

from tests.alone import turn
from tests.reports import is_told

AT_ONCE = 64
"""Tests that a process takes in one go, all of one file or group: they share what their module
has made, what it caches and what it imports."""
SENT_AT_ONCE = 32
"""Reports that are passed on together: one by one they cost as much as a short test."""
TOOK = "forks/took"
"""In pytest's cache: seconds of each file's tests."""
FORK = multiprocessing.get_context("fork")


class Forks:
    """Runs the tests of a session in processes of their own, and reports for them."""

    def __init__(self, session: pytest.Session, count: int) -> None:
        self._session, self._count = session, count
        self._config: Any = session.config
        self._cache = getattr(session.config, "cache", None)
        self._took: dict[str, float] = {}
        self._shares = shares(session.items, self._cache.get(TOOK, {}) if self._cache else {})
        self._taken = FORK.Value("q", 0)
        self._at = FORK.Array("q", [-1] * count, lock=False)
        self._running: dict[Connection, int] = {}

    def run(self) -> None:
        """Run all tests.

        Raises:
            session.Failed: as many have failed as were asked for, or one has ended its process.
        """
        self._config._tmp_path_factory.getbasetemp()
        processes: dict[Connection, Any] = {}
        try:
            for number in range(self._count):
                ours, theirs = FORK.Pipe(duplex=False)
                share = Share(self._session, number, theirs, self._at)
                given = (self._taken_by_one(), [*processes, ours])
                process = FORK.Process(target=share.run, args=given)
                process.start()
                theirs.close()
                processes[ours] = process
                self._running[ours] = number
            while self._running:
                for connection in wait(list(self._running)):
                    self._listen(connection, processes[connection])  # type: ignore[index, arg-type]
            if self._cache:
                self._cache.set(TOOK, {**self._cache.get(TOOK, {}), **self._took})
        finally:
            for process in processes.values():
                process.kill()
                process.join()

    def _listen(self, connection: Connection, process: Any) -> None:
        try:
            all_said = connection.recv()
        except EOFError:
            process.join()
            at = self._at[self._running.pop(connection)]
            if process.exitcode:
                running = self._session.items[at].nodeid if at >= 0 else "nothing"
                told = f"a process of tests ended with code {process.exitcode} while it ran"
                self._session.shouldfail = f"{told} {running}"
        else:
            for kind, said in all_said:
                self._pass_on(kind, said)
        if self._session.shouldfail:
            raise self._session.Failed(self._session.shouldfail)

    def _pass_on(self, kind: str, said: Any) -> None:
        hook = self._config.hook
        if kind == "report":
            report = hook.pytest_report_from_serializable(config=self._config, data=said)
            file = report.nodeid.partition("::")[0]
            self._took[file] = self._took.get(file, 0.0) + report.duration
            hook.pytest_runtest_logreport(report=report)
        elif kind == "warning":
            hook.pytest_warning_recorded.call_historic(kwargs=said)
        else:
            hook.pytest_runtest_logfinish(**said)

    def _taken_by_one(self) -> Iterator[list[int]]:
        """Shares that no other process has taken."""
        while True:
            with self._taken.get_lock():
                number = self._taken.value
                self._taken.value += 1
            if number >= len(self._shares):
                return
            yield self._shares[number]


def shares(items: list[pytest.Item], took: Mapping[str, float]) -> list[list[int]]:
    """Places of the tests that a process takes in one go, by the seconds that each file `took` the
    last time: the longest first, since the last one would be waited for."""
    files: dict[str, list[int]] = {}
    for place, item in enumerate(items):
        group = item.get_closest_marker("xdist_group")
        files.setdefault(group.args[0] if group else str(item.path), []).append(place)
    parts = [f[n : n + AT_ONCE] for f in files.values() for n in range(0, len(f), AT_ONCE)]

    def seconds(part: list[int]) -> float:
        return max(took.get(items[place].nodeid.partition("::")[0], 0.0) for place in part)

    return sorted(parts, key=lambda part: (-seconds(part), part[0]))


class Share:
    """The tests that one of the processes runs; a plugin there."""

    def __init__(self, session: pytest.Session, number: int, said: Connection, at: Any) -> None:
        self._session, self._number, self._said, self._at = session, number, said, at
        self._config: Any = session.config
        self._waiting: list[tuple[str, Any]] = []

    def run(self, shares: Iterator[list[int]], others: list[Connection]) -> None:
        """Run tests as long as there are some, and end this process."""
        for connection in others:
            connection.close()
        plugins = self._config.pluginmanager
        plugins.unregister(name="terminalreporter")
        plugins.register(self)
        capture = plugins.getplugin("capturemanager")
        capture.stop_global_capturing()  # its files are those of the other processes, too
        capture.start_global_capturing()
        for one in (capture._global_capturing.out, capture._global_capturing.err):
            one.snap = _if_any(one.snap, one.tmpfile.fileno())
        self._session.gethookproxy = functools.cache(self._session.gethookproxy)  # type: ignore[method-assign]
        paths = self._config._tmp_path_factory
        paths._basetemp = paths.getbasetemp() / f"fork{self._number}"
        paths._basetemp.mkdir(mode=0o700)
        for share in shares:
            self._run(share)
        self._session._setupstate.teardown_exact(None)
        self._send()
        os._exit(0)

    def _run(self, share: list[int]) -> None:
        """What a session has made for all tests stays; what comes next is not taken yet."""
        items = [self._session.items[place] for place in share]
        with turn(alone=any(item.get_closest_marker("alone") for item in items)):
            for place, item, after in zip(share, items, [*items[1:], self._session], strict=True):
                self._at[self._number] = place
                self._config.hook.pytest_runtest_protocol(item=item, nextitem=after)

    def _tell(self, kind: str, said: Any) -> None:
        self._waiting.append((kind, said))
        if len(self._waiting) >= SENT_AT_ONCE:
            self._send()

    def _send(self) -> None:
        self._said.send(self._waiting)
        self._waiting = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if is_told(report):
            hook = self._config.hook
            data = hook.pytest_report_to_serializable(config=self._config, report=report)
            self._tell("report", data)
            if report.failed:
                self._send()

    def pytest_runtest_logfinish(self, nodeid: str, location: tuple[str, int | None, str]) -> None:
        self._tell("finished", {"nodeid": nodeid, "location": location})

    def pytest_warning_recorded(
        self,
        warning_message: warnings.WarningMessage,
        when: str,
        nodeid: str,
        location: tuple[str, int, str] | None,
    ) -> None:
        text = f"{warning_message.category.__name__}: {warning_message.message}"
        plain = warnings.WarningMessage(
            UserWarning(text), UserWarning, warning_message.filename, warning_message.lineno
        )
        given = {"warning_message": plain, "when": when, "nodeid": nodeid, "location": location}
        self._tell("warning", given)


def _if_any(snap: Callable[[], str], descriptor: int) -> Callable[[], str]:
    """Reads what is captured, which takes much longer than to see that there is nothing."""
    return lambda: snap() if os.fstat(descriptor).st_size else ""


def add_option(parser: pytest.Parser) -> None:
    told = "run the tests in N processes, which are forked when all tests are collected"
    parser.addoption("--forks", type=int, default=0, metavar="N", help=told)


def run_forked(session: pytest.Session) -> bool | None:
    """Run the tests in as many processes as were asked for; None where none were."""
    option = session.config.option
    if not option.forks or option.collectonly or session.testsfailed:
        return None
    Forks(session, option.forks).run()
    return True
