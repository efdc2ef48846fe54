"""Waits, before a program starts, for the services that it needs in addition to the tasks."""

from __future__ import annotations

import json
import re
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from queue import SimpleQueue

from trainer.agent import outcome
from trainer.agent.errors import ContractError
from trainer.agent.event_queue import next_event
from trainer.agent.outcome import Outcome
from trainer.agent.task import DATA_DISPATCHER, Address, Task
from trainer.contract import endings

VARIABLE = "CLUSTER_KIT_WAITS_FOR"
ANSWER_S = 2.0
LOOK_S = 0.25
GOOD = range(200, 400)
"""Status codes of a page that is ready."""
LONGEST = 1024
"""Bytes of the first line of an answer, which has the status."""
_STATUS = re.compile(rb"HTTP/\d\.\d (\d{3})\b")


@dataclass(frozen=True)
class Service:
    """`path` is requested by HTTP; without a path the port must accept a connection."""

    name: str
    host: str
    port: int
    path: str

    def problem(self) -> str:
        """The reason why it is not ready; "" if it is ready."""
        where = f"{self.host}:{self.port}"
        try:
            if not self.path:
                socket.create_connection((self.host, self.port), ANSWER_S).close()
                return ""
            first_line = self._first_line()
        except OSError as error:
            return f"{where}: {error or type(error).__name__}"
        if (status := _STATUS.match(first_line)) is None:
            return f"{where} does not answer with HTTP"
        if int(status[1]) in GOOD:
            return ""
        return f"http://{where}{self.path} answers with status {int(status[1])}"

    def _first_line(self) -> bytes:
        """The first line of the page's answer, as far as it comes within ANSWER_S.

        Nothing else is read: a service can answer without end, and must not keep a task from its
        start deadline or from SIGTERM.
        """
        until = time.monotonic() + ANSWER_S
        lines = (f"GET {self.path} HTTP/1.1", f"Host: {self.host}:{self.port}", "Connection: close")
        line = b""
        with socket.create_connection((self.host, self.port), ANSWER_S) as connection:
            connection.sendall("".join(f"{one}\r\n" for one in (*lines, "")).encode())
            while b"\n" not in line:
                if (left := until - time.monotonic()) <= 0:
                    raise TimeoutError("timed out")
                connection.settimeout(left)
                piece = connection.recv(LONGEST - len(line))
                if not piece:
                    break
                line += piece
        return line


def parse(text: str) -> list[Service]:
    """The services of the variable's text, [] for ""; raises ContractError if it is invalid."""
    try:
        return [
            Service(str(one["name"]), str(one["host"]), int(one["port"]), str(one["path"]))
            for one in (json.loads(text) if text else [])
        ]
    except (ValueError, TypeError, KeyError) as problem:
        raise ContractError(f"{VARIABLE} = {text[:200]!r}: {problem!r}") from problem


def watch_data_service(task: Task, then: Callable[[Outcome], None], over: threading.Event) -> None:
    """Call `then` with an outcome if tf.data service's dispatcher does not answer in time.

    Programs need not wait for it, since TensorFlow itself does; but it would do so for ever.
    """
    address = Address.parse(task.data_service.rpartition("/")[2], "CLUSTER_KIT_DATA_SERVICE")
    dispatcher = Service(f"{DATA_DISPATCHER}-0", address.host, address.port, "")
    until = time.monotonic() + task.start_deadline_s
    while problem := dispatcher.problem():
        if time.monotonic() > until:
            late = f"did not answer within {task.start_deadline_s:g} s ({problem})"
            message = f"{dispatcher.name} {late}"
            then(outcome.because(endings.START_DEADLINE, message, (dispatcher.name,)))
            return
        if over.wait(LOOK_S):
            return


def wait(task: Task, services: list[Service], events: SimpleQueue[object]) -> Outcome | None:
    """Wait until all are ready and return None; returns an outcome if the start deadline passes
    before, or if the task must end."""
    until = time.monotonic() + task.start_deadline_s
    for service in services:
        while problem := service.problem():
            event = next_event(events, time.monotonic() + LOOK_S)
            if isinstance(event, Outcome):
                return event
            if time.monotonic() > until:
                late = f"not ready after {task.start_deadline_s:g} s ({problem})"
                message = f"the sidecar {service.name} is {late}"
                return outcome.because(endings.START_DEADLINE, message, (service.name,))
    return None
