"""A person's own file beside a compose file, which Compose merges into it: found, and checked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cluster_kit import labels
from cluster_kit.cluster import OUTPUT
from cluster_kit.manifest.schema import RESERVED

NAMES = (
    "compose.override.yml",
    "compose.override.yaml",
    "docker-compose.override.yml",
    "docker-compose.override.yaml",
)
"""In Compose's own order: it takes the first."""
_OWN = frozenset(text for name, text in vars(labels).items() if name.isupper())


def find_override(file: Path) -> Path | None:
    """The file that `docker compose up` in this directory merges into `file`; None without one."""
    paths = (file.with_name(name) for name in NAMES)
    return next((path for path in paths if path.is_file()), None)


def broken(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """What the merged configuration changes that the kit, or its tasks, cannot do without.

    Both are as `docker compose config` prints them, without and with the override.
    """
    found = [] if before["name"] == after["name"] else ["the project's name"]
    for name, service in before["services"].items():
        other = after["services"].get(name)
        if other is None:
            found.append(f"{name}: it is not started")
            continue
        found += [f"{name}: its {what}" for what in _changed(_of_service(service, other))]
    for name in sorted(after["services"].keys() - before["services"].keys()):
        found.append(f"{name}: a service of its own, which the kit would leave behind")
    network, other = (made["networks"]["cluster"] for made in (before, after))
    compared = {
        "subnet": (network.get("ipam"), other.get("ipam")),
        "labels": (_labels(network), _labels(other)),
    }
    return [*found, *(f"the network: its {what}" for what in _changed(compared))]


def _changed(compared: Mapping[str, tuple[Any, Any]]) -> Iterator[str]:
    yield from (what for what, (old, new) in compared.items() if old != new)


def _of_service(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """What must stay of a service: its values before and after, by what they are called."""
    pairs = {
        "labels": (_labels(old), _labels(new)),
        "address": (_address(old), _address(new)),
        "variables": (_variables(old), _variables(new)),
        "output directory": (_output(old), _output(new)),
    }
    keys = ("container_name", "hostname", "command", "entrypoint", "network_mode", "restart")
    return pairs | {key: (old.get(key), new.get(key)) for key in keys}


def _labels(made: Mapping[str, Any]) -> dict[str, Any]:
    return {key: text for key, text in (made.get("labels") or {}).items() if key in _OWN}


def _address(service: Mapping[str, Any]) -> Any:
    networks = service.get("networks") or {}
    return (networks.get("cluster") or {}).get("ipv4_address")


def _variables(service: Mapping[str, Any]) -> dict[str, Any]:
    variables = service.get("environment") or {}
    return {key: text for key, text in variables.items() if RESERVED.fullmatch(key)}


def _output(service: Mapping[str, Any]) -> list[Any]:
    volumes = service.get("volumes") or ()
    return [volume.get("source") for volume in volumes if volume.get("target") == OUTPUT]
