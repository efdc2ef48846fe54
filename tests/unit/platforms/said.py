"""What `docker run` and a compose file say of a container, in the same words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from cluster_kit import labels
from cluster_kit.platforms.variables import BEACON_SECRET
from tests.unit.platforms.docker_run import FLAGS


def options(words: list[str]) -> Iterator[tuple[str, str]]:
    """Each option of `docker run` with its value."""
    for word in words[3:]:
        if not word.startswith("--"):
            return
        name, _, value = word.partition("=")
        yield name, value


def said_by_docker_run(words: list[str]) -> dict[str, Any]:
    """What the words ask of the engine, in Compose's terms."""
    found: dict[str, list[str]] = {}
    for name, value in options(words):
        found.setdefault(name, []).append(value)
    one = {name: values[0] for name, values in found.items() if len(values) == 1}
    rest = words[3 + sum(len(values) for values in found.values()) :]
    assert {name for name, value in options(words) if not value} == FLAGS
    gpu = re.fullmatch(r'driver=(\w+),"device=(.+)","capabilities=(.+)"', one.get("--gpus", ""))
    return {
        "image": rest[0],
        "entrypoint": one.get("--entrypoint"),
        "command": rest[1:],
        "container_name": one["--name"],
        "hostname": one["--hostname"],
        "user": one["--user"],
        "pull_policy": one["--pull"],
        "restart": one["--restart"],
        "stop_grace_period": f"{one['--stop-timeout']}s",
        "ip": one["--ip"],
        "flags": [name in found for name in sorted(FLAGS)],
        "security_opt": found["--security-opt"],
        "cap_drop": found["--cap-drop"],
        "cap_add": found.get("--cap-add", []),
        "tmpfs": found["--tmpfs"],
        "pids_limit": int(one["--pids-limit"]),
        "logging": [one["--log-driver"], *found["--log-opt"]],
        "volumes": found["--volume"],
        "environment": dict(text.split("=", 1) for text in found["--env"] if "=" in text),
        "from outside": sorted(text for text in found["--env"] if "=" not in text),
        "env_file": found.get("--env-file", []),
        "labels": dict(text.split("=", 1) for text in found["--label"]),
        "cpus": one.get("--cpus"),
        "memory": one.get("--memory"),
        "cpu_shares": one.get("--cpu-shares"),
        "shm_size": one.get("--shm-size"),
        "ulimits": found.get("--ulimit", []),
        "ports": found.get("--publish", []),
        "devices": (gpu[1], gpu[2].split(","), gpu[3].split(",")) if gpu else None,
    }


def bytes_of(text: str) -> int:
    """Of a size as Compose writes it."""
    number, unit = re.fullmatch(r"(\d+)(gb|b)", text).groups()  # type: ignore[union-attr]
    return int(number) * (2**30 if unit == "gb" else 1)


def said_by_compose(service: dict[str, Any], hidden: list[str]) -> dict[str, Any]:
    """The same of one service of a compose file."""
    entrypoint, *fixed = service.get("entrypoint", [None])
    resources = service.get("deploy", {}).get("resources", {})
    (device,) = resources.get("reservations", {}).get("devices", [None])
    volumes = [
        f"{v['source']}:{v['target']}{':ro' if v.get('read_only') else ''}"
        for v in service["volumes"]
    ]
    shares, shm = service.get("cpu_shares"), service.get("shm_size")
    return {
        **{key: service[key] for key in ("image", "container_name", "hostname")},
        "entrypoint": entrypoint,
        "command": [*fixed, *service["command"]],
        **{key: service[key] for key in ("user", "pull_policy", "restart", "stop_grace_period")},
        "ip": service["networks"]["cluster"]["ipv4_address"],
        "flags": [service["init"], service["read_only"]],
        **{key: service[key] for key in ("security_opt", "cap_drop", "tmpfs")},
        "pids_limit": service["pids_limit"],
        "logging": [
            service["logging"]["driver"],
            *(f"{name}={text}" for name, text in service["logging"]["options"].items()),
        ],
        "cap_add": service.get("cap_add", []),
        "volumes": volumes,
        "environment": {
            k: v
            for k, v in service["environment"].items()
            if v is not None and k != BEACON_SECRET  # which each `up` makes anew
        },
        "from outside": sorted(
            [k for k, v in service["environment"].items() if v is None] + hidden
        ),
        "env_file": service.get("env_file", []),
        # Which run it is, `Backend.up` is told.
        "labels": {k: v for k, v in service["labels"].items() if k != labels.RUN},
        "cpus": resources.get("limits", {}).get("cpus"),
        "memory": resources.get("limits", {}).get("memory"),
        "cpu_shares": None if shares is None else str(shares),
        "shm_size": None if shm is None else str(bytes_of(shm)),
        "ulimits": [
            f"{name}={pair['soft']}:{pair['hard']}"
            for name, pair in service.get("ulimits", {}).items()
        ],
        "ports": service.get("ports", []),
        "devices": device and (device["driver"], device["device_ids"], device["capabilities"]),
    }


class Reading:
    """Stands for a value, and notes which of its fields are read."""

    def __init__(self, value: Any, **instead: Any) -> None:
        self.value, self.instead, self.read = value, instead, set[str]()

    def __getattr__(self, name: str) -> Any:
        self.read.add(name)
        return self.instead.get(name) or getattr(self.value, name)
