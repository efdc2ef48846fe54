"""Plans for no host in particular (`render --portable`), and a plan with a debugger. Pure."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from cluster_kit.contract.times import DEBUGGER_PORT
from cluster_kit.errors import Problem, Setting, UsageError
from cluster_kit.facts import Gpu, HostFacts, without_kind
from cluster_kit.manifest.load import Loaded
from cluster_kit.manifest.schema import DataTable, Manifest
from cluster_kit.plan.gpus import pool_sizes
from cluster_kit.plan.tasks import PLENTY
from cluster_kit.resolved import OWNER, Cluster, Dockerfile, Mount, Port, Task
from cluster_kit.util.masking import looks_secret
from cluster_kit.util.nearest import proposal
from cluster_kit.util.paths import seen_from
from cluster_kit.util.toml_text import to_toml


def neutral(manifest: Manifest) -> HostFacts:
    """Returns the facts of a host on which everything is free, and which has the named GPUs."""
    return HostFacts(
        cpus=PLENTY,
        memory=PLENTY,
        user=OWNER,
        gpus=tuple(Gpu(index, "", "GPU", PLENTY) for index in sorted(set(_indexes(manifest)))),
        no_gpu="a portable file knows none",
    )


def check_portable(manifest: Manifest) -> Iterator[Problem]:
    """Yields problems: GPUs with names that only one host knows, and secrets in clear."""
    if isinstance(manifest.data, DataTable):
        rule = "a copy of the folder would not have what it fetches"
        instead = 'fetch it into the folder, and name that directory: `data = "PATH"`'
        yield Problem("data.fetch", to_toml(manifest.data.fetch), rule, instead)
    for table, limits in manifest.limits_by_table():
        for key in filter(looks_secret, limits.environment):
            rule = "it looks like a secret, and a file that is committed would have it in clear"
            instead = f'write `secrets = ["{key}"]` there instead, and export the variable'
            yield Problem(f"{table}.environment.{key}", "", rule, instead)
    for name, sidecar in manifest.sidecar.items():
        for key in filter(looks_secret, sidecar.environment):
            rule = "it looks like a secret, and a file that is committed would have it in clear"
            instead = f'write `secrets = ["{key}"]` there instead, and export the variable'
            yield Problem(f"sidecar.{name}.environment.{key}", "", rule, instead)
    for key_path, names in _named(manifest):
        for name in names:
            if not without_kind(name).isdecimal():
                rule = "only one host has it: a portable file can name GPUs by their index"
                yield Problem(key_path, to_toml(name), rule, 'write its index, e.g. `"0"`')
    asks = manifest.gpus == "require" or any(names for _, names in _named(manifest))
    if asks and manifest.share_gpus and manifest.gpu_memory is None:
        rule = "how much memory a shared GPU has is not known in a portable file"
        hint = ("say how much each task may take: ", Setting("gpu_memory", "8g"))
        yield Problem("gpu_memory", "", rule, hint, ("gpus", "share_gpus"))


def _named(manifest: Manifest) -> Iterator[tuple[str, list[str]]]:
    """Yields the manifest's lists of GPUs, by key path."""
    if not isinstance(manifest.gpus, str):
        yield "gpus", manifest.gpus
    for table, limits in manifest.limits_by_table():
        yield f"{table}.gpus", limits.gpus or []


def _indexes(manifest: Manifest) -> Iterator[int]:
    """Yields the indexes of all GPUs that the file names; `require` takes the first ones."""
    for _, names in _named(manifest):
        yield from (int(without_kind(name)) for name in names if without_kind(name).isdecimal())
    if manifest.gpus == "require":
        each = manifest.gpus_per_worker or 1
        tasks = 1 if manifest.share_gpus else min(sum(pool_sizes(manifest).values()), 2**10)
        yield from range(tasks * each)


def everywhere(loaded: Loaded) -> frozenset[str]:
    """The sources that the manifest's file names by absolute paths: every host has them there."""
    manifest = loaded.manifest
    named = [mount.source for mount in manifest.mount]
    named += [mount.source for one in manifest.sidecar.values() for mount in one.mount]
    named += [secret.file for secret in manifest.secret.values()]
    named += [limits.env_file or "" for _, limits in manifest.limits_by_table()]
    named += [] if "data" in loaded.command_line.keys else [str(manifest.data)]
    folder = loaded.path.parent
    return frozenset(str(seen_from(folder, name)) for name in named if Path(name).is_absolute())


def moved(cluster: Cluster, folder: Path, root: Path, shared: frozenset[str]) -> Cluster:
    """Returns the cluster with its mounts relative to `folder`, which will contain its file.

    Args:
        root: the folder that is copied as a whole, or cloned.
        shared: the paths that are the same on every host.
    Raises:
        UsageError: a directory outside of `root` is mounted.
    """

    def mount(of: Mount) -> Mount:
        source = Path(of.source)
        if source.is_relative_to(root):
            return replace(of, source=os.path.relpath(source, folder))
        if of.source in shared:
            return of
        raise UsageError(
            f"{source} is outside of {root}: a copy of that folder would not have it",
            "move it into the folder, or name it by an absolute path that each host has",
        )

    def moved_task(task: Task) -> Task:
        env_file = task.env_file and mount(Mount(task.env_file, "")).source
        return replace(task, mounts=tuple(map(mount, task.mounts)), env_file=env_file)

    def moved_dockerfile(of: Dockerfile) -> Dockerfile:
        context = mount(Mount(of.context, "")).source
        return replace(of, context=context, file=Path(of.file).name)

    built = cluster.dockerfile
    sidecars = (replace(one, mounts=tuple(map(mount, one.mounts))) for one in cluster.sidecars)
    return replace(
        cluster,
        mounts=tuple(map(mount, cluster.mounts)),
        tasks=tuple(map(moved_task, cluster.tasks)),
        dockerfile=built and moved_dockerfile(built),
        sidecars=tuple(sidecars),
    )


TARGET = "/debugger"
PATIENCE_S = 7 * 24 * 3600.0
"""A time limit that a person who inspects a program at a breakpoint does not reach."""
HIGHEST = 65535


def debugged(cluster: Cluster, request: str, debugger: str) -> Cluster:
    """The cluster with a debugger in the named task: `chief-0`, or `chief-0:5680`.

    A pause at a breakpoint must not end the job, so the deadlines for job, silence, progress and
    evaluator are off.

    Args:
        debugger: the directory of this host that holds debugpy.
    Raises:
        UsageError: the task does not exist or runs no program, or the port cannot be published.
    """
    name, colon, digits = request.partition(":")
    task = _task(cluster, name)
    port = DEBUGGER_PORT
    if colon:
        port = int(digits) if digits.isascii() and digits.isdecimal() else 0
    if not 1 <= port <= HIGHEST:
        raise UsageError(f"--debug {request}: the port must be 1 to {HIGHEST}", f"--debug {name}")
    _refuse_port(cluster, task, port)
    with_debugger = replace(
        task,
        debug=port,
        ports=(*task.ports, Port(port, DEBUGGER_PORT)),
        mounts=(*task.mounts, Mount(debugger, TARGET)),
    )
    deadlines = replace(
        cluster.deadlines, job=PATIENCE_S, evaluator_grace=PATIENCE_S, silent=0.0, stall=0.0
    )
    tasks = tuple(with_debugger if one is task else one for one in cluster.tasks)
    return replace(cluster, tasks=tasks, deadlines=deadlines)


def _task(cluster: Cluster, name: str) -> Task:
    match = next((task for task in cluster.tasks if task.name == name), None)
    programs = [task.name for task in cluster.tasks if task.runs_program]
    if match is None:
        raise UsageError(f"--debug: task {name} was not found", proposal(name, programs))
    if not match.runs_program:
        raise UsageError(
            f"--debug: {name} runs a TensorFlow server, no program",
            f"these run one: {', '.join(programs)}. What a coordinator sends to a worker is run by "
            "TensorFlow, where no Python debugger can stop",
        )
    return match


def _refuse_port(cluster: Cluster, task: Task, port: int) -> None:
    if cluster.internal:
        raise UsageError(
            "--debug needs a published port, and an internal network publishes none",
            "run it with `--set network.internal=false`",
        )
    for name, published in cluster.ports:
        if published.host == port:
            raise UsageError(
                f"--debug: the port {port} of this host is published for {name} already",
                f"choose another: --debug {task.name}:{port + 1}",
            )
        if (name, published.container) == (task.name, DEBUGGER_PORT):
            raise UsageError(
                f"--debug: {name} publishes its port {DEBUGGER_PORT} already, "
                "at which the debugger listens",
                "remove it from `ports`",
            )
