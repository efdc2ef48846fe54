"""A simulated `docker` command: Compose starts the containers of its file in a FakeEngine."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from ipaddress import IPv4Network
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml

from cluster_kit import labels
from cluster_kit.errors import EngineError
from cluster_kit.image.base_image import REGISTRY_BASE
from cluster_kit.util.process import Completed
from tests.fakes.engine import FakeEngine
from tests.fakes.hosts import NoProcesses
from tests.make import parse_compose

NO_DAEMON = "Cannot connect to the Docker daemon at unix:///var/run/docker.sock."
POOL_OVERLAPS = "Error response from daemon: Pool overlaps with other one on this address space"
NO_IMAGE = "Error response from daemon: No such image: cluster-kit/trainer:cpu-0"
UP_S = 0.5
ALL_THERE: Mapping[str, Any] = {
    "python": [3, 9, 18],
    "tensorflow": "2.16.2",
    "native": True,
    "lacks": [],
    "output": "",
}


class FakeDocker(NoProcesses):
    """A simulated `docker` command. `lacks_image` until one is built."""

    def __init__(self, engine: FakeEngine) -> None:
        self.engine = engine
        self.lacks_image = False
        self.takes_subnet = 0
        self.health = "healthy"
        """The state of the health checks of sidecars that run."""
        self.index_lacks: set[str] = set()
        """The packages that pip's index does not have."""
        self.loses_image = False
        """Whether the image is removed between the plan and the start."""
        self.image_has = {**ALL_THERE}
        """What a user's image reports about itself."""
        self.building: tuple[int, list[str]] = (0, ["#4 [1/1] RUN true"])
        """How the build of a Dockerfile ends, and its output."""
        self.builds: list[tuple[str, ...]] = []
        self.drawn: list[bool] = []
        """For each build of the kit's own image, whether it draws its progress."""
        self.on_call: Callable[[str], None] = lambda _name: None
        self.ups: list[Path] = []
        self.fetches: Callable[[Path, Sequence[str]], tuple[int, list[str]]]

    def run(
        self,
        command: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        show: bool = False,
        timeout_s: float | None = None,
        most: int | None = None,
    ) -> Completed:
        """Returns how a command ends, as `process.run` does."""
        words = tuple(command)
        self.on_call(" ".join(words[1:3]))
        if words[1:3] == ("compose", "version"):
            return Completed(words, 0, "2.26.1\n", "")
        if words[1:3] == ("buildx", "version"):
            return Completed(words, 0, "github.com/docker/buildx v0.13.1\n", "")
        if self.engine.lost:
            return Completed(words, 1, "", NO_DAEMON)
        if words[1:3] == ("image", "inspect"):
            return Completed(words, int(self.lacks_image and words[-1] != REGISTRY_BASE), "", "")
        if words[1:3] == ("buildx", "build"):
            self.drawn.append("--progress=auto" in words)
            return self.build(words, lambda _line: None)
        if words[1:3] == ("context", "show"):
            return Completed(words, 0, "default\n", "")
        if words[2:5] == ("-m", "pip", "config"):
            return Completed(words, 0, "", "")
        if words[2:3] and words[2].endswith("index_check.py"):
            unknown = [name for name in words[3:] if name in self.index_lacks]
            return Completed(words, 0, "\n".join(unknown), "")
        files = [Path(word) for before, word in pairwise(words) if before == "-f"]
        if words[1:2] == ("compose",) and "config" in words:
            return _config(words, files, env or {})
        if words[1:2] == ("compose",) and "ps" in words:
            return Completed(words, 0, "\n".join(words[words.index("--quiet") + 1 :]), "")
        if words[1:2] == ("inspect",):
            return Completed(words, 0, self._states(words[3:]), "")
        if words[1:2] == ("compose",) and "up" in words:
            return self._up(words, files, env or {})
        if words[1] == "run" and any(word.endswith("look.py") for word in words):
            return Completed(words, 0, json.dumps(self.image_has) + "\n", "")
        if words[3:6] == ("-m", "trainer", "arguments"):
            return Completed(words, 0, "", "")
        if words[1:2] == ("rm",):
            return Completed(words, 0, "", "")
        raise AssertionError(f"nobody has thought of {words}")

    def stream(self, command: Sequence[str], each: Callable[[str], None]) -> Completed:
        """Run the build of a Dockerfile, or the data step; a function in its place writes into the
        directory mounted as /data."""
        if tuple(command[1:3]) == ("buildx", "build"):
            return self.build(command, each)
        (mount,) = [word for word in command if word.endswith(",target=/data")]
        code, lines = self.fetches(Path(mount.split('"')[1].removeprefix("source=")), command)
        for line in lines:
            each(line)
        return Completed(tuple(command), code, "", "\n".join(lines))

    def build(self, command: Sequence[str], each: Callable[[str], None]) -> Completed:
        """Build an image, which exists afterwards, unless the build fails."""
        self.builds.append(tuple(command))
        code, lines = self.building
        for line in lines:
            each(line)
        self.lacks_image = code != 0
        return Completed(tuple(command), code, "", "\n".join(lines))

    def _states(self, tasks: Sequence[str]) -> str:
        """What `docker inspect` prints about sidecars."""
        boxes = [box for box in self.engine.boxes.values() if box.task in tasks]
        return "".join(
            f"/{box.cluster}-{box.task} {box.state} {box.exit_code or 0} {self.health}\n"
            for box in boxes
        )

    def _up(self, words: tuple[str, ...], files: list[Path], env: Mapping[str, str]) -> Completed:
        file = files[0]
        self.ups.append(file)
        if self.loses_image:
            self.loses_image, self.lacks_image = False, True
            return Completed(words, 1, "", f"{NO_IMAGE}\n")
        told = _merged_files(files)
        subnet = IPv4Network(told["networks"]["cluster"]["ipam"]["config"][0]["subnet"])
        if self.takes_subnet:
            self.takes_subnet -= 1
            self.engine.subnets[f"other-{self.takes_subnet}"] = ("", subnet)
        own, others = f"{told['name']}_cluster", self.engine.subnets.items()
        if any(subnet.overlaps(taken) for name, (_, taken) in others if name != own):
            return Completed(words, 1, "", f"{POOL_OVERLAPS}\n")
        services = told["services"]
        cluster = next(iter(services.values()))["labels"][labels.CLUSTER]
        self.engine.subnets.setdefault(own, (cluster, subnet))
        there = {box.task for box in self.engine.boxes.values() if box.cluster == cluster}
        output, run = env["CLUSTER_KIT_OUTPUT"], env["CLUSTER_KIT_RUN"]
        services = dict(sorted(services.items(), key=lambda item: "depends_on" in item[1]))
        only = words[words.index("--no-recreate") + 1 :]
        boxes = [
            self.engine.create(name, _labelled(_extended(service, file), run), output)
            for name, service in services.items()
            if name not in there and (name in only or not only)  # --no-recreate
        ]
        for box in boxes:
            self.on_call(f"start {box.task}")
            try:
                self.engine.start(box)
            except EngineError as error:
                return Completed(words, 1, "", f"Error response from daemon: {error.message}\n")
        self.engine.clock.pass_by(UP_S)
        return Completed(words, 0, "", "")


def _config(words: tuple[str, ...], files: list[Path], env: Mapping[str, str]) -> Completed:
    names = re.findall(r"\$\{(\w+)\}", "".join(file.read_text() for file in files))
    warnings = "".join(
        f'time="2026-11-26T12:00:00Z" level=warning msg="The \\"{name}\\" variable is not set. '
        'Defaulting to a blank string."\n'
        for name in names
        if name not in env
    )
    try:
        return Completed(words, 0, json.dumps(_merged_files(files)), warnings)
    except yaml.YAMLError as error:
        return Completed(words, 15, "", f"yaml: {error}\n")


def _merged_files(files: list[Path]) -> dict[str, Any]:
    """Merge files: tables and lists are joined, any other value is the last file's."""
    found: dict[str, Any] = {}
    for file in files:
        found = _joined(found, parse_compose(file.read_text()))
    return found


def _joined(below: Any, above: Any) -> Any:
    if isinstance(below, Mapping) and isinstance(above, Mapping):
        both = {key: _joined(below[key], above[key]) for key in below.keys() & above.keys()}
        return {**below, **above, **both}
    return [*below, *above] if isinstance(below, list) and isinstance(above, list) else above


def _extended(service: Mapping[str, Any], file: Path) -> Mapping[str, Any]:
    """Returns the service with the values of the service that it extends, in a file next to its
    own."""
    if "extends" not in service:
        return service
    beside = parse_compose((file.parent / service["extends"]["file"]).read_text())["services"]
    below = beside[service["extends"]["service"]]
    variables = below.get("environment", {}) | service.get("environment", {})
    return {**below, **service, "environment": variables}


def _labelled(service: Mapping[str, Any], run: str) -> Mapping[str, Any]:
    """Returns the service with the values that Compose takes from its environment."""
    assert service["labels"][labels.RUN] == "${CLUSTER_KIT_RUN:-}"
    given = {
        name: os.environ.get(name) if value is None else value
        for name, value in service.get("environment", {}).items()
    }
    tags = {**service["labels"], labels.RUN: run}
    return {**service, "labels": tags, "environment": given}
