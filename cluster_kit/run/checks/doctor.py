"""Checks whether this host can run a cluster: `doctor` shows the checks, `up` needs them all."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from cluster_kit.errors import HostError
from cluster_kit.facts import HostFacts
from cluster_kit.host import Host
from cluster_kit.image.kit_image import image_present
from cluster_kit.platforms.platform import Check, Tool
from cluster_kit.platforms.registry import DEFAULT, platform_of
from cluster_kit.resolved import Cluster
from cluster_kit.run.checks.gpu_checks import gpu_checks
from cluster_kit.run.checks.kind_checks import check_kind, podman, podman_builds
from cluster_kit.run.checks.network_checks import check_proxy, check_subnet
from cluster_kit.run.checks.port_checks import check_ports
from cluster_kit.run.checks.secret_checks import check_secrets

MINIMUM_ENGINE = (23, 0)
DISK_TO_BUILD = 8 * 2**30
DISK_TO_RUN = 1 * 2**30
SERVER_MEMORY = 200 * 2**20
PROGRAM_MEMORY = 900 * 2**20
"""In bytes: resident private memory of a server and of a program, measured and rounded up."""
SMALLEST = PROGRAM_MEMORY + 2 * SERVER_MEMORY
"""In bytes: what a chief, a worker and a ps need."""


def check_host(host: Host, facts: HostFacts, cluster: Cluster | None) -> list[Check]:
    """The checks of this host, and of what `cluster` needs if one is given."""
    platform = platform_of(cluster.engine if cluster else DEFAULT)
    tool = _tool(platform.tool(host))
    if cluster is not None and not platform.by_docker:
        asked = platform.checks(host, cluster) if tool.state == "ok" else []
        return [tool, *asked, *check_secrets(cluster, os.environ)]
    return [
        podman(facts.engine) if facts.kind.podman else _engine(facts.engine),
        *check_kind(facts.kind, cluster),
        tool,
        podman_builds(_lacks(host, cluster)) if facts.kind.podman else _buildx(host, cluster),
        _disk(host, facts.engine_root or "/", cluster),
        _memory(facts.memory, cluster if cluster and cluster.one_host else None),
        *platform.checks(host, cluster),
        *gpu_checks(facts),
        check_subnet(facts, cluster),
        check_proxy(cluster),
        *check_secrets(cluster, os.environ),
        *check_ports(cluster),
    ]


def refuse_if_unfit(host: Host, facts: HostFacts, cluster: Cluster) -> None:
    """Raises HostError with all failed checks; warnings are ignored."""
    failed = [check for check in check_host(host, facts, cluster) if check.state == "fail"]
    if failed:
        problems = "\n".join(f"  {check.name}: {check.found}" for check in failed)
        hints = "\n    ".join(check.hint for check in failed)
        raise HostError(f"this host is not fit to run {cluster.name}:\n{problems}", hints)


def _engine(version: str) -> Check:
    numbers = tuple(int(part) for part in version.split("+")[0].split(".")[:2] if part.isdigit())
    if numbers < MINIMUM_ENGINE:
        return Check("engine", "fail", f"Docker Engine {version}", "needs 23.0 or newer: upgrade")
    return Check("engine", "ok", f"Docker Engine {version}")


def _tool(tool: Tool) -> Check:
    """The check of the platform's program."""
    needed = ".".join(map(str, tool.minimum))
    if tool.version is None:
        return Check(tool.name, "fail", tool.absent, f"{tool.install}, {needed} or newer")
    text = f"{tool.title} {'.'.join(map(str, tool.version))}"
    if tool.version < tool.minimum:
        return Check(tool.name, "fail", text, f"needs {needed} or newer: upgrade it")
    return Check(tool.name, "ok", text)


def _buildx(host: Host, cluster: Cluster | None) -> Check:
    done = host.processes.run(["docker", "buildx", "version"])
    if done.ok:
        return Check("buildx", "ok", done.output.split()[1] if done.output.split() else "found")
    found, hint = "the Buildx plugin was not found", "install it: building images needs it"
    return Check("buildx", "fail" if _lacks(host, cluster) else "warn", found, hint)


def _lacks(host: Host, cluster: Cluster | None) -> str:
    """The tag of the image that has to be built first; "" if there is nothing to build."""
    return "" if cluster is None or _built(host, cluster) else cluster.image


def _disk(host: Host, root: str, cluster: Cluster | None) -> Check:
    path = Path(root)
    if not path.exists():
        return Check("disk", "ok", "the engine's disk is not visible from here")
    free = shutil.disk_usage(path).free
    needed = DISK_TO_RUN if cluster is None or _built(host, cluster) else DISK_TO_BUILD
    text = f"{free / 2**30:.0f} GiB free in {root}"
    if free < needed:
        hint = f"needs {needed / 2**30:.0f} GiB: free some (docker system prune)"
        return Check("disk", "fail", text, hint)
    return Check("disk", "ok", text)


def _built(host: Host, cluster: Cluster) -> bool:
    """Whether the kit has nothing to build for a cluster."""
    if cluster.variant is None or cluster.tensorflow:
        return not cluster.image_is_built or image_present(host, cluster.image)
    return image_present(host, host.image_tag(cluster.variant))


def _memory(total: int, cluster: Cluster | None) -> Check:
    text = f"{total / 2**30:.1f} GiB"
    if cluster is None:
        if total >= SMALLEST:
            return Check("memory", "ok", text)
        needs = f"the smallest cluster needs about {SMALLEST / 2**30:.1f} GiB"
        return Check("memory", "warn", f"{text}; {needs}", "give the engine more memory")
    needed = sum(SERVER_MEMORY if task.serves else PROGRAM_MEMORY for task in cluster.tasks)
    text += f", about {needed / 2**30:.1f} GiB needed before the program's own"
    if needed > total:
        return Check("memory", "fail", text, "ask for fewer tasks, or give the engine more memory")
    return Check("memory", "ok", text)
