"""How a helper is started, and what it answers."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from docker.errors import APIError

from cluster_kit.platforms.docker import docker_engine
from cluster_kit.platforms.engine import Helper

NETWORK = Helper("image", ("python3", "-c", "x"), network_of="id", capabilities=("NET_ADMIN",))


class Sdk:
    """Creates one container, which prints `chunks`, or does not start."""

    def __init__(self, chunks: Sequence[bytes] = (), error: Exception | None = None) -> None:
        self.made: dict[str, Any] = {}
        self.done: list[str] = []
        self._chunks, self._error = chunks, error
        self.containers = SimpleNamespace(create=self._create)

    def _create(self, image: str, command: list[str], **keys: Any) -> Any:
        self.made = {"image": image, "command": command, **keys}
        return SimpleNamespace(
            attach=lambda **_: iter(self._chunks), start=self._start, remove=self._remove
        )

    def _start(self) -> None:
        self.done.append("start")
        if self._error:
            raise self._error

    def _remove(self, **_: object) -> None:
        self.done.append("remove")


def test_a_helper_gets_only_the_rights_that_it_needs() -> None:
    sdk = Sdk([b"rea", b"dy\nmore\n"])
    assert docker_engine.start_helper(sdk, "demo", NETWORK) == "ready"
    made = sdk.made
    assert (made["entrypoint"], made["command"]) == (["python3"], ["-c", "x"])
    assert (made["cap_drop"], made["cap_add"], made["privileged"]) == (
        ["ALL"],
        ["NET_ADMIN"],
        False,
    )
    assert (made["network_mode"], made["labels"]) == (
        "container:id", {"cluster-kit.helper": "demo"},
    )  # fmt: skip
    assert made["auto_remove"] and "pid_mode" not in made


def test_a_helper_for_processes_has_no_network() -> None:
    sdk = Sdk([b"no"])
    chosen = Helper("image", ("true",), processes_of="id", privileged=True)
    assert docker_engine.start_helper(sdk, "demo", chosen) == "no"
    assert (sdk.made["pid_mode"], sdk.made["network_mode"]) == ("container:id", "none")


def test_a_helper_that_prints_nothing() -> None:
    assert docker_engine.start_helper(Sdk(), "demo", NETWORK) == ""


def test_a_helper_that_cannot_be_started_is_removed() -> None:
    sdk = Sdk(error=APIError("privileged mode is incompatible with user namespaces"))
    with pytest.raises(APIError):
        docker_engine.start_helper(sdk, "demo", NETWORK)
    assert sdk.done == ["start", "remove"]
