"""Small clusters of the waiting image, which show what the engine gave each task."""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

from tests.e2e.waiting import wait_for
from tests.gpu.second_engine import SecondEngine
from tests.gpu.waiting_image import DONE, NAME
from tests.kit import Kit


def write(kit: Kit, **keys: Any) -> str:
    """Write a manifest with these keys, for the waiting image by default; returns its path.

    That image has no GPU check, so the tasks' own check is turned off.
    """
    usual: dict[str, Any] = {"format": 1, "name": kit.name, "image": NAME, "gpus": "auto"}
    if keys.get("image", NAME) == NAME:
        usual["gpu_check"] = False
    written = {**usual, **keys}
    path = kit.root / "compose" / f"{kit.name}.toml"
    path.write_text("".join(f"{key} = {_toml(value)}\n" for key, value in written.items()))
    return str(path)


def _toml(value: Any) -> str:
    """JSON is TOML for texts, numbers, booleans and lists; a table is written inline."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {_toml(inner)}" for key, inner in value.items()) + "}"
    return json.dumps(value)


@contextlib.contextmanager
def standing(kit: Kit, engine: SecondEngine, **keys: Any) -> Iterator[list[str]]:
    """Yield a cluster that is up; at the end its job finishes, and the run must have succeeded.

    Yields the names of its containers.
    """
    with standing_soon(kit, engine, **keys) as names:
        yield names()


@contextlib.contextmanager
def standing_soon(kit: Kit, engine: SecondEngine, **keys: Any) -> Iterator[Callable[[], list[str]]]:
    """Like `standing` for a cluster that is being started: yields a function that waits for its
    containers' names."""
    process = kit.start("up", write(kit, **keys))
    try:
        yield lambda: wait_for("a running cluster", lambda: _all_running(kit, engine, process))
        (kit.root / "runs" / kit.name / "latest" / "output" / DONE).touch()
        output, _ = process.communicate(timeout=60)
        assert process.returncode == 0, output
    finally:
        process.terminate()
        process.communicate(timeout=60)


def _all_running(kit: Kit, engine: SecondEngine, process: subprocess.Popen[str]) -> list[str]:
    """Returns the containers' names; [] until every task has a running one."""
    if process.poll() is not None:
        raise AssertionError(process.communicate()[0])
    marked = ("--filter", f"label=cluster-kit.cluster={kit.name}", "--format", "{{.Names}}")
    all_of_them = engine.docker("ps", "--all", *marked).stdout.split()
    running = engine.docker("ps", *marked).stdout.split()
    file = kit.root / "compose" / kit.name / "compose.yaml"
    planned = file.read_text().count("container_name:") if file.exists() else -1
    return running if len(running) == len(all_of_them) == planned else []


def environment(engine: SecondEngine, container: str) -> dict[str, str]:
    """Returns the environment of a container's first process, where a hook's additions are
    visible."""
    read = engine.docker("exec", container, "cat", "/proc/1/environ")
    assert read.returncode == 0, read.stderr
    pairs = (entry.partition("=") for entry in read.stdout.split("\0") if entry)
    return {name: value for name, _, value in pairs}


def device_nodes(engine: SecondEngine, container: str) -> list[str]:
    """Returns NVIDIA's device nodes in a container."""
    listed = engine.docker("exec", container, "ls", "/dev")
    assert listed.returncode == 0, listed.stderr
    return [name for name in listed.stdout.split() if name.startswith("nvidia")]


def requests(engine: SecondEngine, container: str) -> list[tuple[str, list[str]]]:
    """Returns (driver, device ids) of everything that was reserved for a container."""
    shown = engine.docker("inspect", "--format", "{{json .HostConfig.DeviceRequests}}", container)
    assert shown.returncode == 0, shown.stderr
    return [(one["Driver"], one["DeviceIDs"]) for one in json.loads(shown.stdout) or []]


def left(kit: Kit, engine: SecondEngine) -> list[str]:
    """Returns the containers and networks of the kit's cluster."""
    marked = ("--filter", f"label=cluster-kit.cluster={kit.name}", "--quiet")
    found = (
        engine.docker("ps", "--all", *marked).stdout
        + engine.docker("network", "ls", *marked).stdout
    )
    return found.split()
