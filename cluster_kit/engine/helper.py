"""A short-lived container beside a task's, that does to it what the task itself may not."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from docker.errors import APIError

from cluster_kit import labels

ANSWER_S = 20.0
MEMORY = "256m"


@dataclass(frozen=True)
class Helper:
    """What is run, in which image, and in whose namespaces: container ids, "" for its own.

    It is root without any right but `capabilities`, unless `privileged`. It prints one line as soon
    as it is at work, and ends by itself.
    """

    image: str
    command: tuple[str, ...]
    network_of: str = ""
    processes_of: str = ""
    capabilities: tuple[str, ...] = ()
    privileged: bool = False


def start(client: Any, cluster: str, helper: Helper) -> str:
    """The first line that it prints, "" if it ends without any, or says nothing for too long."""
    joins = {"pid_mode": f"container:{helper.processes_of}"} if helper.processes_of else {}
    container = client.containers.create(
        helper.image,
        list(helper.command[1:]),
        entrypoint=list(helper.command[:1]),
        labels={labels.HELPER: cluster},
        user="0:0",
        network_mode=f"container:{helper.network_of}" if helper.network_of else "none",
        privileged=helper.privileged,
        cap_drop=[] if helper.privileged else ["ALL"],
        cap_add=list(helper.capabilities),
        security_opt=[] if helper.privileged else ["no-new-privileges:true"],
        working_dir="/",
        read_only=True,
        tmpfs={"/tmp": ""},
        mem_limit=MEMORY,
        auto_remove=True,
        **joins,
    )
    try:
        lines = _lines(container.attach(stream=True, stdout=True, stderr=True))
        container.start()
    except APIError:
        with contextlib.suppress(APIError):
            container.remove(force=True)
        raise
    said: list[str] = []
    reader = threading.Thread(target=lambda: said.append(next(lines, "")), daemon=True)
    reader.start()
    reader.join(ANSWER_S)
    return said[0] if said else ""


def beside(helpers: Iterable[Any], containers: Iterable[Any]) -> list[Any]:
    """Those of the SDK's containers `helpers` that work on one of `containers`."""
    joined = {f"container:{container.id}" for container in containers}
    return [
        helper
        for helper in helpers
        if joined & {helper.attrs["HostConfig"][key] for key in ("NetworkMode", "PidMode")}
    ]


def _lines(stream: Any) -> Iterator[str]:
    rest = b""
    for chunk in stream:
        *lines, rest = (rest + chunk).split(b"\n")
        yield from (line.decode("utf-8", errors="replace") for line in lines)
    if rest:
        yield rest.decode("utf-8", errors="replace")
