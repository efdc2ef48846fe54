"""Records of a swarm, as its API gives them."""

from __future__ import annotations

from typing import Any

from cluster_kit import labels

AT = "2026-11-22T12:00:{:02d}.5Z"
NOON = 1795348800.0


def tags(role: str, index: int) -> dict[str, str]:
    return {
        labels.CLUSTER: "demo",
        labels.ROLE: role,
        labels.INDEX: str(index),
        labels.LEADER: str(role == "chief").lower(),
        labels.SECRETS: "KEY",
    }


def service(role: str = "worker", index: int = 0) -> dict[str, Any]:
    spec = {
        "Labels": tags(role, index),
        "Env": ["KEY=hidden", "A=1"],
        "Mounts": [{"Source": "/runs/1/output", "Target": "/output"}],
    }
    made = {"TaskTemplate": {"ContainerSpec": spec}, "Labels": tags(role, index)}
    return {"ID": f"s-{role}-{index}", "CreatedAt": AT.format(0), "Spec": made}


def task(
    number: int, state: str, at: int, *, role: str = "worker", code: int | None = None, **more: Any
) -> dict[str, Any]:
    """Returns the swarm's task with this number of worker 0: in this state since this many seconds
    after noon."""
    status: dict[str, Any] = {"State": state, "Timestamp": AT.format(at)}
    if code is not None:
        status["ContainerStatus"] = {"ExitCode": code}
    if "err" in more:
        status["Err"] = more["err"]
    if "message" in more:
        status["Message"] = more["message"]
    return {
        "ID": f"t{number}",
        "ServiceID": f"s-{role}-0",
        "CreatedAt": AT.format(number),
        "NodeID": "n1",
        "Status": status,
        "Spec": {
            "ContainerSpec": {"Labels": tags(role, 0)},
            "Placement": {"Constraints": more.get("constraints", [])},
        },
        "NetworksAttachments": [{"Addresses": [f"10.0.1.{number}/24"]}],
    }
