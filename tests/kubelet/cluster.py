"""A cluster of Kubernetes whose API server is in this process, and whose pods are containers."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.fakes.kubernetes import FakeKubernetes
from tests.fakes.pods import Object
from tests.kubelet.node import Node, docker
from tests.kubelet.pods import Pod, pods


class Containers(FakeKubernetes):
    """Creates a container for each pod; the pod's state and log are the container's."""

    def __init__(self, network: str, root: Path) -> None:
        super().__init__()
        self.network, self.root = network, root

    def post(self, kind: str, name: str, query: dict[str, str], body: Object) -> Any:
        status, made = super().post(kind, name, query, body)
        if kind == "pods" and status == 201:
            spec = body["spec"]
            hostname = body["metadata"]["name"]
            self._start(Pod("", 0, hostname, (), {}, (), {}, spec, 0), hostname)
        return status, made

    def _make_pods(self, job: Object) -> None:
        super()._make_pods(job)
        known = [one for (kind, _), one in self.objects.items() if kind != "jobsets"]
        for pod in pods(known, "mine"):
            if pod.job == job["metadata"]["name"]:
                self._start(pod, f"{pod.hostname}-abcde")

    def _start(self, pod: Pod, name: str) -> None:
        node = Node([*self.objects.values()], self.network, self.root)
        docker(*node.command(pod, name))

    def _live(self) -> None:
        for (kind, name), pod in self.objects.items():
            if kind == "pods":
                pod["status"] = _status(json.loads(docker("inspect", name))[0]["State"])

    def _log(self, pod: str) -> Any:
        done = subprocess.run(
            ["docker", "logs", "--timestamps", pod], capture_output=True, text=True, check=False
        )
        lines = sorted((done.stdout + done.stderr).splitlines())
        return 200, "".join(f"{line}\n" for line in lines)

    def delete(self, kind: str, name: str, query: dict[str, str], body: Object) -> Any:
        if kind == "jobsets":  # its Jobs are deleted one after the other, by this method
            return super().delete(kind, name, query, body)
        before = {name for kind, name in self.objects if kind == "pods"}
        answer = super().delete(kind, name, query, body)
        gone = before - {name for kind, name in self.objects if kind == "pods"}
        if gone:
            docker("rm", "-f", "-v", *gone)
        return answer


def _status(state: Object) -> Object:
    began = f"{state['StartedAt'][:19]}Z"
    if state["Running"]:
        found: Object = {"running": {"startedAt": began}}
        return {"phase": "Running", "containerStatuses": [{"name": "task", "state": found}]}
    code = state["ExitCode"]
    ended = {"exitCode": code, "startedAt": began, "finishedAt": f"{state['FinishedAt'][:19]}Z"}
    phase = "Failed" if code else "Succeeded"
    return {
        "phase": phase,
        "containerStatuses": [{"name": "task", "state": {"terminated": ended}}],
    }


@contextmanager
def containers(name: str, root: Path) -> Iterator[Containers]:
    """Yield such a cluster; nothing of it is left at the end."""
    docker("network", "create", "--label", name, name)
    try:
        yield Containers(name, root)
    finally:
        left = docker("ps", "-aq", "--filter", f"label={name}").split()
        if left:
            docker("rm", "-f", "-v", *left)
        docker("network", "rm", name)
