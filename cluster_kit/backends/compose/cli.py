"""Docker Compose by its command line, and nothing else of Docker's."""

from __future__ import annotations

import re
from pathlib import Path

from cluster_kit.backends.interface import SubnetTaken
from cluster_kit.errors import EngineError
from cluster_kit.util.process import run

MINIMUM = (2, 20)


def version() -> tuple[int, ...] | None:
    """Returns Compose's version, None if this client has no Compose v2."""
    done = run(["docker", "compose", "version", "--short"])
    match = re.match(r"v?(\d+)\.(\d+)(?:\.(\d+))?", done.output.strip())
    return tuple(int(part) for part in match.groups() if part) if done.ok and match else None


def config(file: Path) -> None:
    """Let Compose check a file.

    Raises:
        EngineError: Compose refuses it.
    """
    done = run(["docker", "compose", "-f", str(file), "config", "--quiet"])
    if not done.ok:
        raise EngineError(
            f"Compose refuses {file}:\n{done.tail()}", "this is a bug in the kit: report it"
        )


def up(file: Path, output: Path) -> None:
    """Create and start every container, and return without waiting for them to end.

    Raises:
        SubnetTaken: the subnet is in use after all.
        EngineError: anything else that Compose or the engine refused.
    """
    done = run(
        ["docker", "compose", "-f", str(file), "up", "--detach"],
        env={"CLUSTER_KIT_OUTPUT": str(output), "COMPOSE_ANSI": "never"},
    )
    if done.ok:
        return
    said = _errors(done.errors)
    if "Pool overlaps" in said:
        raise SubnetTaken(f"the subnet is taken: {said}", "run it again")
    raise EngineError(f"docker compose up failed (exit {done.code}):\n{said}", _cure(said))


def _errors(said: str) -> str:
    """Compose's lines without its progress (`Container x  Started`)."""
    lines = [line.strip() for line in said.splitlines()]
    telling = [
        line for line in lines if line and not re.match(r"(Container|Network) \S+  \w", line)
    ]
    return "\n".join(telling[-15:])


def _cure(said: str) -> str:
    if "could not select device driver" in said:
        return 'install the NVIDIA Container Toolkit (cluster-kit doctor), or set `gpus = "none"`'
    if "No such image" in said:
        return "build or pull the image that the manifest names (`image`)"
    if "is already in use by container" in said:
        return "another container has this name: `cluster-kit status`, then `cluster-kit down NAME`"
    if "Address already in use" in said:
        return "something else has this address: choose another `subnet`"
    return "mend what the engine says and run it again"
