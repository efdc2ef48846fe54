"""What compose and stack files say of a service in the same words, as YAML text. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cluster_kit.backends.container_spec import ContainerSpec
from cluster_kit.backends.yaml import Pair, pairs
from cluster_kit.parts import Bounds

LOG_FILES = 2
"""In how many files an engine keeps what a container prints; it drops the oldest one."""


def logging(bounds: Bounds) -> str:
    """Returns how the engine keeps logs, "" for as it is configured."""
    if bounds.logs is None:
        return ""
    options = f"{{max-size: '{-(-bounds.logs // LOG_FILES)}', max-file: '{LOG_FILES}'}}"
    return f"{{driver: json-file, options: {options}}}"


def in_memory(tmpfs: Mapping[str, int], bounds: Bounds) -> str:
    """Returns the directories in memory, each with its mode and, if it is bounded, its size."""
    size = "" if bounds.tmp is None else f",size={bounds.tmp}"
    return "[" + ", ".join(f'"{path}:mode={mode:o}{size}"' for path, mode in tmpfs.items()) + "]"


def limits(spec: ContainerSpec) -> tuple[Pair, ...]:
    """Returns the limits of CPU and memory; () without any."""
    found = {}
    if spec.cpus is not None:
        found["cpus"] = f"{spec.cpus:.15g}"
    if spec.memory is not None:
        found["memory"] = f"{spec.memory}b"
    return pairs(found)


def bounded(spec: ContainerSpec) -> tuple[Pair, ...]:
    """Returns the bound on processes; () without one."""
    pids = spec.shared.bounds.pids
    return () if pids is None else (Pair("pids", str(pids)),)


def ulimits(spec: ContainerSpec) -> tuple[Pair, ...]:
    """Returns the limits of the kernel, each with its soft and its hard one."""
    return tuple(
        Pair(limit.name, f"{{soft: {limit.soft}, hard: {limit.hard}}}") for limit in spec.ulimits
    )


def from_caller(names: Iterable[str]) -> tuple[str, ...]:
    """Returns the keys of variables that whoever calls the tool has."""
    return tuple(pair.name for pair in pairs(dict.fromkeys(names, "")))
