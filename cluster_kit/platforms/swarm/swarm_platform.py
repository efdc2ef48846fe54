"""The platform Docker Swarm: one stack file per cluster, `docker stack deploy`, its start."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from cluster_kit.errors import EngineError, UsageError
from cluster_kit.host import Host
from cluster_kit.platforms.engine import Engine
from cluster_kit.platforms.platform import Check, Platform, SubnetTaken, Tool
from cluster_kit.platforms.swarm.swarm_engine import SwarmEngine
from cluster_kit.platforms.variables import new_secret
from cluster_kit.resolved import Cluster, project_of
from cluster_kit.workspace import Workspace, write_atomically

if TYPE_CHECKING:
    from cluster_kit.errors import Problem
    from cluster_kit.manifest.schema import Manifest

MINIMUM = (23, 0)


def version(host: Host) -> tuple[int, ...] | None:
    """Returns the version of Docker's command line, None if there is none."""
    done = host.processes.run(["docker", "version", "--format", "{{.Client.Version}}"])
    match = re.match(r"(\d+)\.(\d+)(?:\.(\d+))?", done.output.strip())
    return tuple(int(part) for part in match.groups() if part) if match else None


def deploy(host: Host, file: Path, stack: str, output: Path, run_id: str) -> None:
    """Create the services of a stack, and return without waiting for their tasks.

    Raises:
        SubnetTaken: another network has taken the subnet.
        EngineError: the swarm refuses the stack.
    """
    variables = {"CLUSTER_KIT_OUTPUT": str(output), "CLUSTER_KIT_RUN": run_id, **new_secret()}
    command = ["docker", "stack", "deploy", "--detach=true", "--resolve-image", "never"]
    done = host.processes.run([*command, "-c", str(file), stack], env=variables)
    if done.ok:
        return
    errors = "\n".join(done.errors.strip().splitlines()[-15:])
    if "Pool overlaps" in errors:
        raise SubnetTaken(f"the subnet is taken: {errors}", "run it again")
    raise EngineError(
        f"docker stack deploy failed (exit {done.code}):\n{errors}",
        "fix what the swarm says and run it again",
    )


POLL_S = 0.3
PATIENCE_S = 10.0
"""Seconds for which a problem must last before it is an error: a swarm retries by itself."""
BETWEEN_S = 4.0
"""While the swarm tries again, on this node or another, it reports nothing; after this time a node
is working on it."""
WITHOUT_SUBNET_S = 2.0
"""A network usually gets its subnet within moments, otherwise when an overlapping network is
removed."""
LONGEST_S = 180.0


class Starting(Protocol):
    """The methods of a swarm's engine that are used here."""

    def not_started(self, cluster: str, run: str) -> tuple[list[str], dict[str, str]]:
        """Names of the tasks that have never run, with the reasons that the swarm reports."""

    def lacks_subnet(self, cluster: str, run: str) -> bool:
        """Whether the swarm has not given a run's network its subnet."""


@dataclass
class Said:
    """The swarm's message about tasks that do not run, and since when it lasts."""

    why: dict[str, str] = field(default_factory=dict)
    since: float = 0.0
    last: float = 0.0

    def now(self, why: Mapping[str, str], now: float) -> None:
        """Record the problem at `now`, in seconds; it is dropped after a while without a
        problem."""
        if why:
            self.why |= why
            self.since, self.last = self.since or now, now
        elif now - self.last > BETWEEN_S:
            self.why, self.since = {}, 0.0

    def lasts(self, now: float) -> bool:
        """Whether the problem has lasted too long for another attempt to help."""
        return bool(self.since) and now - self.since > PATIENCE_S


def wait_for_start(swarm: Starting, name: str, run: str) -> None:
    """Wait until all tasks of a run have started.

    Raises:
        SubnetTaken: another network of the swarm has the subnet, which no task reports.
        EngineError: some tasks have not started: a node rejected them, or no node suits them.
    """
    began, lacks_since, notices = time.monotonic(), 0.0, Said()
    while True:
        waiting, why = swarm.not_started(name, run)
        if not waiting:
            return
        now = time.monotonic()
        notices.now(why, now)
        lacks_since = (lacks_since or now) if swarm.lacks_subnet(name, run) else 0.0
        if lacks_since and now - lacks_since > WITHOUT_SUBNET_S:
            raise SubnetTaken(
                f"the subnet of {name} is taken: another network of the swarm overlaps with it",
                "choose another `subnet`, or `docker network rm` the one that has it",
            )
        if notices.lasts(now) or now - began > LONGEST_S:
            raise not_started(
                waiting, {task: notices.why[task] for task in waiting if task in notices.why}
            )
        time.sleep(POLL_S)


def not_started(waiting: Sequence[str], why: Mapping[str, str]) -> EngineError:
    """The error for tasks that no node has started; each reason appears once."""
    reasons: dict[str, list[str]] = {}
    for task, reason in why.items():
        reasons.setdefault(reason, []).append(task)
    lines = [f"{', '.join(tasks)}: {reason}" for reason, tasks in reasons.items()]
    if not lines:
        lines = [f"{', '.join(waiting)}: no node gave a reason"]
    return EngineError(
        f"a swarm's nodes have not started every task after {PATIENCE_S:.0f} s and more:\n"
        + "\n".join(f"  {line}" for line in lines),
        _cure(" ".join(lines)),
    )


def _cure(said: str) -> str:
    if "No such image" in said:
        return "bring the image to that node: `cluster-kit image push NAME --to ssh://USER@NODE`"
    if "bind source path does not exist" in said:
        return "every node needs that folder at the same path: mount it there (NFS)"
    if "error mounting" in said:
        return "every node needs the same file or folder at that path: mount it there (NFS)"
    if "Range of CPUs" in said:
        return "that node has fewer: lower `cpus`, or choose larger nodes with `nodes`"
    if "scheduling constraints" in said:
        return "`docker node ls` and `docker node inspect NODE` show the nodes' labels; fix `nodes`"
    if "insufficient resources" in said:
        return (
            "lower `cpus`, `memory` or the number of GPUs, or add a node; "
            "`cluster-kit doctor NAME` says which GPUs the nodes announce"
        )
    return "fix what the swarm says and run it again: `docker node ls` shows its nodes"


NOT_PORTABLE = UsageError(
    "--portable is for Docker Compose: a stack file runs on the nodes of one swarm",
    "leave --portable out, or render it with `--engine compose`",
)


class Swarm(Platform):
    """See `Platform`, whose methods these are."""

    name = "swarm"
    title = "a swarm"
    meaning = 'Docker `"swarm"`'
    not_portable = NOT_PORTABLE

    def refusals(self, manifest: Manifest) -> Iterator[Problem]:
        from cluster_kit.platforms.swarm.swarm_rules import check_swarm_manifest

        return check_swarm_manifest(manifest)

    def engine(self, settings: Mapping[str, Any] | None = None) -> Engine:
        return SwarmEngine()

    def is_beside(self, engine: Engine) -> bool:
        """Whether this host's engine is a manager of a swarm."""
        return bool((engine.info().get("Swarm") or {}).get("ControlAvailable"))

    def checks(self, host: Host, cluster: Cluster | None) -> list[Check]:
        from cluster_kit.platforms.swarm.swarm_checks import check_swarm

        return check_swarm(host, cluster)

    def trials(self, cluster: Cluster | None, runs: Path | None) -> list[Check]:
        from cluster_kit.platforms.swarm.swarm_checks import probe_nodes

        if cluster is None or runs is None:
            how = "not tried: `cluster-kit doctor NAME --engine swarm` tries them on every node"
            return [Check("image, storage", "ok", how)]
        return probe_nodes(SwarmEngine(), cluster, runs)

    def tool(self, host: Host) -> Tool:
        return Tool(
            name="docker",
            title="Docker's command line",
            version=version(host),
            minimum=MINIMUM,
            absent="Docker's command line was not found",
            install="install it",
        )

    def render(self, cluster: Cluster) -> str:
        from cluster_kit.platforms.swarm.stack_file import render
        from cluster_kit.platforms.variables import refuse_in_text

        return refuse_in_text(render(cluster), self.file_name, cluster)

    def stale_beside(self, file: Path, cluster: Cluster) -> str:
        from cluster_kit.platforms.rendered_file import FILE, spec_text, why_stale

        return why_stale(file.parent / FILE, spec_text(cluster))

    def write(self, workspace: Workspace, cluster: Cluster, text: str) -> Path:
        """Write the stack file, the file that all tasks get, and the output directory of a plain
        deploy."""
        from cluster_kit.platforms.rendered_file import FILE, spec_text
        from cluster_kit.platforms.variables import mode_of

        file = self.file(workspace, cluster.name)
        write_atomically(file.parent / FILE, spec_text(cluster))
        write_atomically(file, text, mode_of(cluster))
        (file.parent / "output").mkdir(exist_ok=True)
        return file

    def up(self, host: Host, cluster: Cluster, file: Path, output: Path, run: str) -> Sequence[str]:
        """Deploy the stack, and wait until a node has started each of its tasks."""
        name = file.parent.name
        deploy(host, file, project_of(name), output, run)
        wait_for_start(SwarmEngine(), name, run)
        return ()
