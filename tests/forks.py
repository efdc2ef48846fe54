"""Tests in several processes that are forked when all tests are collected: `--forks=N`.

xdist imports and collects all tests in each of its processes, which takes seconds of CPU each: as
much as thousands of short tests. These have them already. Each takes the next few when it has done
its own, and passes its reports on to the process that prints. As tests may wait more than they
compute, N may be larger than the number of cores.
"""

from __future__ import annotations

import multiprocessing
import os
import warnings
from collections.abc import Iterator
from multiprocessing.connection import Connection, wait
from typing import Any

import pytest

from tests.reports import is_told

AT_ONCE = 4
"""Tests that a process takes in one go: neighbours share what their module has made."""
FORK = multiprocessing.get_context("fork")


class Forks:
    """Runs the tests of a session in processes of their own, and reports for them."""

    def __init__(self, session: pytest.Session, count: int) -> None:
        self._session, self._count = session, count
        self._config: Any = session.config
        self._taken = FORK.Value("q", 0)
        self._running: dict[Connection, str] = {}

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
                share = Share(self._session, number, theirs, self._taken)
                process = FORK.Process(target=share.run, args=([*processes, ours],))
                process.start()
                theirs.close()
                processes[ours] = process
                self._running[ours] = "nothing"
            while self._running:
                for connection in wait(list(self._running)):
                    self._listen(connection, processes[connection])  # type: ignore[index, arg-type]
        finally:
            for process in processes.values():
                process.kill()
                process.join()

    def _listen(self, connection: Connection, process: Any) -> None:
        try:
            kind, said = connection.recv()
        except EOFError:
            process.join()
            running = self._running.pop(connection)
            if process.exitcode:
                told = f"a process of tests ended with code {process.exitcode} while it ran"
                self._session.shouldfail = f"{told} {running}"
        else:
            self._pass_on(connection, kind, said)
        if self._session.shouldfail:
            raise self._session.Failed(self._session.shouldfail)

    def _pass_on(self, connection: Connection, kind: str, said: Any) -> None:
        hook = self._config.hook
        if kind == "begun":
            self._running[connection] = said
        elif kind == "report":
            report = hook.pytest_report_from_serializable(config=self._config, data=said)
            hook.pytest_runtest_logreport(report=report)
        elif kind == "warning":
            hook.pytest_warning_recorded.call_historic(kwargs=said)
        else:
            hook.pytest_runtest_logfinish(**said)


class Share:
    """The tests that one of the processes runs; a plugin there."""

    def __init__(self, session: pytest.Session, number: int, said: Connection, taken: Any) -> None:
        self._session, self._number, self._said, self._taken = session, number, said, taken
        self._config: Any = session.config

    def run(self, others: list[Connection]) -> None:
        """Run tests as long as there are some, and end this process."""
        for connection in others:
            connection.close()
        plugins = self._config.pluginmanager
        plugins.unregister(name="terminalreporter")
        plugins.register(self)
        capture = plugins.getplugin("capturemanager")
        capture.stop_global_capturing()  # its files are those of the other processes, too
        capture.start_global_capturing()
        paths = self._config._tmp_path_factory
        paths._basetemp = paths.getbasetemp() / f"fork{self._number}"
        paths._basetemp.mkdir(mode=0o700)
        tests = self._tests()
        item = next(tests, None)
        while item is not None:
            following = next(tests, None)
            self._said.send(("begun", item.nodeid))
            self._config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            item = following
        os._exit(0)

    def _tests(self) -> Iterator[pytest.Item]:
        """Those that no other process has taken, a few each time."""
        while True:
            with self._taken.get_lock():
                begin = self._taken.value
                self._taken.value += AT_ONCE
            if begin >= len(self._session.items):
                return
            yield from self._session.items[begin : begin + AT_ONCE]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if is_told(report):
            hook = self._config.hook
            data = hook.pytest_report_to_serializable(config=self._config, report=report)
            self._said.send(("report", data))

    def pytest_runtest_logfinish(self, nodeid: str, location: tuple[str, int | None, str]) -> None:
        self._said.send(("finished", {"nodeid": nodeid, "location": location}))

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
        self._said.send(("warning", given))


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
