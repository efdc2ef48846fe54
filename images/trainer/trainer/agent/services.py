"""Waits for the services beside the tasks that a program needs, before it starts."""

from __future__ import annotations

import json
import socket
import time
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from queue import SimpleQueue

from trainer.agent import outcome
from trainer.agent.errors import ContractError
from trainer.agent.event_queue import next_event
from trainer.agent.outcome import Outcome
from trainer.agent.task import Task
from trainer.contract import endings

VARIABLE = "CLUSTER_KIT_WAITS_FOR"
ANSWER_S = 2.0
LOOK_S = 0.25
GOOD = range(200, 400)
"""Status codes of a page that is ready."""


@dataclass(frozen=True)
class Service:
    """`path` is asked for by HTTP; without one the port has to accept a connection."""

    name: str
    host: str
    port: int
    path: str

    def problem(self) -> str:
        """Why it is not ready, "" if it is."""
        where = f"{self.host}:{self.port}"
        try:
            if not self.path:
                socket.create_connection((self.host, self.port), ANSWER_S).close()
                return ""
            connection = HTTPConnection(self.host, self.port, timeout=ANSWER_S)
            try:
                connection.request("GET", self.path)
                status = connection.getresponse().status
            finally:
                connection.close()
        except (OSError, HTTPException) as error:
            return f"{where}: {error or type(error).__name__}"
        return "" if status in GOOD else f"http://{where}{self.path} answers with status {status}"


def parse(text: str) -> list[Service]:
    """The services of the variable's text, [] for ""; raises ContractError if it is invalid."""
    try:
        return [
            Service(str(one["name"]), str(one["host"]), int(one["port"]), str(one["path"]))
            for one in (json.loads(text) if text else [])
        ]
    except (ValueError, TypeError, KeyError) as problem:
        raise ContractError(f"{VARIABLE} = {text[:200]!r}: {problem!r}") from problem


def wait(task: Task, services: list[Service], events: SimpleQueue[object]) -> Outcome | None:
    """Returns None when all are ready; the outcome if the start deadline comes before that, or if
    the task is to end."""
    until = time.monotonic() + task.start_deadline_s
    for service in services:
        while problem := service.problem():
            event = next_event(events, time.monotonic() + LOOK_S)
            if isinstance(event, Outcome):
                return event
            if time.monotonic() > until:
                late = f"not ready after {task.start_deadline_s:g} s ({problem})"
                message = f"the sidecar {service.name} is {late}"
                return outcome.because(endings.START_DEADLINE, message)
    return None
