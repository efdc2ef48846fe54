"""Ends TensorFlow's connections to a cut-off task when the task counts as lost.

TCP repeats data to a silent peer in ever longer intervals. So a connection to a restarted task can
be dead for half a minute without either side noticing. It can be dead forever if the side that
waits for an answer has nothing to send, as a coordinator that waits for a closure on a worker that
was cut off and restarted. The kernel ends a connection without an answer after TCP_USER_TIMEOUT,
and probes an idle one if SO_KEEPALIVE is set. gRPC sets the first only for channels with keepalive,
which TensorFlow does not use. The kernel of a frozen or starved peer still answers. Also loaded by
its path (on_path/): imports nothing of this package.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time

LOOK_S = 1.0
IDLE_S = 2
"""Seconds between keepalive probes of an idle connection."""
FOLDER = "/proc/self/fd"


def limit(seconds: float, config: str) -> None:
    """Limit the time that this process's connections to or from TensorFlow's port wait for an
    answer.

    Args:
        config: TF_CONFIG, which has the port.
    """
    port = port_in(config)
    if port and seconds:
        arguments = (port, round(1000 * seconds))
        threading.Thread(target=watch, args=arguments, name="dead connections", daemon=True).start()


def port_in(config: str) -> int:
    """The port in the cluster's addresses, 0 if there is none."""
    try:
        jobs = json.loads(config or "{}").get("cluster", {}).values()
        return int(str(next(iter(jobs))[0]).rpartition(":")[2])
    except (ValueError, StopIteration, LookupError, AttributeError):
        return 0


def watch(port: int, milliseconds: int) -> None:
    """Look for new connections; never returns."""
    known: set[str] = set()
    while True:
        known = look(port, milliseconds, known)
        time.sleep(LOOK_S)


def look(port: int, milliseconds: int, known: set[str]) -> set[str]:
    """Limit the new connections; return all that are known now."""
    sockets = set()
    for number in os.listdir(FOLDER):  # noqa: PTH208 - pathlib is not imported in programs
        try:
            link = os.readlink(f"{FOLDER}/{number}")  # noqa: PTH115
            if link.startswith("socket:"):
                if link not in known:
                    limit_one(int(number), port, milliseconds)
                sockets.add(link)
        except OSError:
            continue  # already closed, or not connected yet: the next call handles that
    return sockets


def limit_one(number: int, port: int, milliseconds: int) -> None:
    """Limit the socket with this descriptor if it is a connection to or from this port.

    Raises:
        OSError: it is not connected.
    """
    with socket.socket(fileno=os.dup(number)) as duplicate:
        if (
            duplicate.family not in (socket.AF_INET, socket.AF_INET6)
            or duplicate.type != socket.SOCK_STREAM
        ):
            return
        if port in (duplicate.getsockname()[1], duplicate.getpeername()[1]):
            duplicate.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, milliseconds)
            duplicate.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, IDLE_S)
            duplicate.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, IDLE_S)
            duplicate.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
