"""Calls Docker's command line for stacks; no other module does."""

from __future__ import annotations

import re
from pathlib import Path

from cluster_kit.backends.interface import SubnetTaken
from cluster_kit.backends.variables import new_secret
from cluster_kit.errors import EngineError
from cluster_kit.util.process import run

MINIMUM = (23, 0)


def version() -> tuple[int, ...] | None:
    """Returns the version of Docker's command line, None if there is none."""
    done = run(["docker", "version", "--format", "{{.Client.Version}}"])
    match = re.match(r"(\d+)\.(\d+)(?:\.(\d+))?", done.output.strip())
    return tuple(int(part) for part in match.groups() if part) if match else None


def deploy(file: Path, stack: str, output: Path, run_id: str) -> None:
    """Make the services of a stack, and return without waiting for their tasks.

    Raises:
        SubnetTaken: the subnet is in use by now.
        EngineError: the swarm refuses the stack.
    """
    variables = {"CLUSTER_KIT_OUTPUT": str(output), "CLUSTER_KIT_RUN": run_id, **new_secret()}
    command = ["docker", "stack", "deploy", "--detach=true", "--resolve-image", "never"]
    done = run([*command, "-c", str(file), stack], env=variables)
    if done.ok:
        return
    errors = "\n".join(done.errors.strip().splitlines()[-15:])
    if "Pool overlaps" in errors:
        raise SubnetTaken(f"the subnet is taken: {errors}", "run it again")
    raise EngineError(
        f"docker stack deploy failed (exit {done.code}):\n{errors}",
        "mend what the swarm says and run it again",
    )
