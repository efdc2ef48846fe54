"""A node, and the controller of Jobs: pods as containers on a network with their names."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.kubelet.expand import Objects
from tests.kubelet.pods import Pod, pods
from tests.kubelet.volumes import mounted

POLL_S = 0.3


def docker(*words: str) -> str:
    done = subprocess.run(
        ["docker", *words], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, (words, done.stderr)
    return done.stdout.strip()


class Node:
    """Runs all pods of a file; a failed pod is restarted as its Job says."""

    def __init__(self, objects: list[dict[str, Any]], network: str, root: Path) -> None:
        self.objects, self.network, self.root = objects, network, root
        self.known, self.pods = Objects(objects), pods(objects)
        self.starts = {pod.hostname: 0 for pod in self.pods}

    def start(self, pod: Pod) -> None:
        self.starts[pod.hostname] += 1
        docker(*self.command(pod, f"{pod.hostname}-{self.starts[pod.hostname]}"))

    def command(self, pod: Pod, name: str) -> list[str]:
        binds, memory = mounted(pod, self.known, self.root)
        of_pod, of_container = pod.spec["securityContext"], pod.container["securityContext"]
        assert of_pod["runAsNonRoot"] and of_pod["runAsUser"] != 0
        words = ["run", "-d", "--name", name, "--hostname", pod.hostname, "--label", self.network]
        words += ["--network", self.network]
        words += [word for alias in pod.names for word in ("--network-alias", alias)]
        words += ["--user", f"{of_pod['runAsUser']}:{of_pod['runAsGroup']}"]
        words += ["--group-add", str(of_pod["fsGroup"])]
        words += ["--init"] if pod.spec.get("shareProcessNamespace") else []
        words += ["--read-only"] if of_container["readOnlyRootFilesystem"] else []
        words += [f"--cap-drop={name}" for name in of_container["capabilities"]["drop"]]
        if not of_container["allowPrivilegeEscalation"]:
            words += ["--security-opt", "no-new-privileges"]
        words += [word for bind in binds for word in ("-v", bind)]
        words += [word for path, how in memory.items() for word in ("--tmpfs", f"{path}:{how}")]
        for variable, value in pod.environment.items():
            words += ["-e", f"{variable}={value}"]
        limits = pod.container.get("resources", {}).get("limits", {})
        words += [f"--memory={limits['memory'].removesuffix('i')}"] if "memory" in limits else []
        words += [f"--cpus={int(limits['cpu'][:-1]) / 1000}"] if "cpu" in limits else []
        command = list(pod.container.get("command", ()))
        words += ["--entrypoint", command[0]] if command else []
        return [*words, pod.container["image"], *command[1:], *pod.args]

    def state(self, pod: Pod) -> tuple[bool, int]:
        """Returns (whether it runs, its exit code)."""
        name = f"{pod.hostname}-{self.starts[pod.hostname]}"
        running, code = docker(
            "inspect", "-f", "{{.State.Running}} {{.State.ExitCode}}", name
        ).split()
        return running == "true", int(code)

    def kill(self, hostname: str) -> None:
        """Kill a pod's container, as a crash does."""
        docker("kill", f"{hostname}-{self.starts[hostname]}")

    def run(self, within_s: float, meanwhile: Callable[[], None] = lambda: None) -> dict[str, int]:
        """Returns the exit codes of all pods, by host name, when all have ended.

        Args:
            meanwhile: called again and again until then.
        """
        deadline, ended = time.monotonic() + within_s, dict[str, int]()
        while len(ended) < len(self.pods):
            assert time.monotonic() < deadline, f"still there: {self.starts.keys() - ended.keys()}"
            meanwhile()
            for pod in self.pods:
                running, code = (True, 0) if pod.hostname in ended else self.state(pod)
                if running:
                    continue
                if code != 0 and self.starts[pod.hostname] <= pod.retries:
                    self.start(pod)
                else:
                    ended[pod.hostname] = code
            time.sleep(POLL_S)
        return ended

    def logs(self, hostname: str) -> str:
        return docker("logs", f"{hostname}-{self.starts[hostname]}")


@contextmanager
def running(objects: list[dict[str, Any]], name: str, root: Path) -> Iterator[Node]:
    """Yield a node on which all pods have been started; nothing of them is left at the end."""
    docker("network", "create", "--label", name, name)
    node = Node(objects, name, root)
    try:
        for pod in node.pods:
            node.start(pod)
        yield node
    finally:
        left = docker("ps", "-aq", "--filter", f"label={name}").split()
        if left:
            docker("rm", "-f", "-v", *left)
        docker("network", "rm", name)
