"""Keys of a service that Compose and a stack write alike. Pure."""

from __future__ import annotations

from typing import Any

from cluster_kit.platforms.container import ContainerSpec
from cluster_kit.platforms.yaml import OneLine, Verbatim
from cluster_kit.resolved import Bounds

LOG_FILES = 2
"""In how many files an engine keeps what a container prints; it drops the oldest one."""


def logging(bounds: Bounds) -> OneLine | None:
    """Returns how the engine keeps logs, None for as it is configured."""
    if bounds.logs is None:
        return None
    options = {"max-size": str(-(-bounds.logs // LOG_FILES)), "max-file": str(LOG_FILES)}
    return OneLine({"driver": Verbatim("json-file"), "options": OneLine(options)})


def limits(spec: ContainerSpec) -> dict[str, Any]:
    """Returns the limits of CPU and memory; {} without any."""
    found = {}
    if spec.cpus is not None:
        found["cpus"] = f"{spec.cpus:.15g}"
    if spec.memory is not None:
        found["memory"] = f"{spec.memory}b"
    return found


def ulimits(spec: ContainerSpec) -> dict[str, OneLine]:
    """Returns the limits of the kernel, each with its soft and its hard one."""
    return {one.name: OneLine({"soft": one.soft, "hard": one.hard}) for one in spec.ulimits}
