"""A simulated container."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from cluster_kit import labels
from cluster_kit.platforms.docker.docker_containers import secrets_of
from cluster_kit.platforms.engine import SIDECAR, Container


@dataclass
class Box:
    """A container: its part of the compose file, and its state."""

    id: str
    task: str
    cluster: str
    service: Mapping[str, Any]
    output: str
    created: float
    state: str = "created"
    exit_code: int | None = None
    started: float = -6e10
    finished: float = -6e10
    lives: int = 0
    restarts: int = 0
    oom: bool = False
    memory: int | None = None
    """Its memory limit in bytes, after changes."""
    used: int = 500 << 20
    by_hand: bool = False
    attached: bool = True
    log: list[tuple[float, str]] = field(default_factory=list)
    stderr: list[tuple[float, str]] = field(default_factory=list)
    """The part of the log that was printed to stderr."""
    _shown: tuple[tuple[Any, ...], Container] | None = field(default=None, repr=False)

    @property
    def mark(self) -> Mapping[str, str]:
        found: Mapping[str, str] = self.service["labels"]
        return found

    @property
    def leads(self) -> bool:
        return self.mark.get(labels.LEADER) == "true"

    @property
    def sidecar(self) -> bool:
        return labels.SIDECAR in self.mark

    def shown(self) -> Container:
        """Returns the container as the engine shows it now; made again only after a change."""
        now = (self.state, self.exit_code, self.restarts, self.oom, self.created, self.started,
               self.finished, self.attached, self.output, self.service)  # fmt: skip
        if self._shown is None or self._shown[0] != now:
            self._shown = (now, self._made())
        return self._shown[1]

    def _made(self) -> Container:
        alive = self.state in ("running", "paused", "created")
        return Container(
            id=self.id,
            cluster=self.cluster,
            name=self.task,
            role=self.mark.get(labels.ROLE, SIDECAR),
            index=int(self.mark.get(labels.INDEX, 0)),
            leader=self.leads,
            ip=str(self.service["networks"]["cluster"]["ipv4_address"]),
            gpus=tuple(filter(None, self.mark.get(labels.GPUS, "").split(","))),
            state=self.state,
            exit_code=None if alive else self.exit_code,
            restarts=self.restarts,
            oom=self.oom,
            created=self.created,
            started=self.started,
            finished=self.finished,
            output="" if self.sidecar else self.output,
            attached=self.attached,
            secrets=self._secrets,
        )

    @cached_property
    def _secrets(self) -> tuple[str, ...]:
        """Returns its secrets, read once: tests look at a container thousands of times, and change
        no secret."""
        return secrets_of(self._inspected)

    @property
    def _inspected(self) -> Mapping[str, Any]:
        """Returns its labels and variables as the engine shows them."""
        given = self.service.get("environment", {})
        variables = [f"{name}={value}" for name, value in given.items() if value is not None]
        mounts = [
            {"Source": volume["source"], "Destination": volume["target"]}
            for volume in self.service.get("volumes", [])
        ]
        return {"Config": {"Labels": dict(self.mark), "Env": variables}, "Mounts": mounts}
