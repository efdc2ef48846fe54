"""Planning for no host in particular: the same cluster wherever it is planned. Pure."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from cluster_kit.errors import UsageError
from cluster_kit.facts import Gpu, HostFacts
from cluster_kit.manifest.load import Loaded
from cluster_kit.manifest.schema import DataTable, Manifest
from cluster_kit.parts import Dockerfile, Mount
from cluster_kit.plan.gpus.request import CDI_KIND
from cluster_kit.plan.nodes import PLENTY
from cluster_kit.problem import Problem, Setting
from cluster_kit.resolved import OWNER, Cluster, Task
from cluster_kit.roles import WORKER
from cluster_kit.util.masking import looks_secret
from cluster_kit.util.paths import seen_from
from cluster_kit.util.toml_text import to_toml


def neutral(manifest: Manifest) -> HostFacts:
    """Returns the facts of a host on which everything is free, and the GPUs are those named."""
    return HostFacts(
        cpus=PLENTY,
        memory=PLENTY,
        user=OWNER,
        gpus=tuple(Gpu(index, "", "GPU", PLENTY) for index in sorted(set(_indexes(manifest)))),
        no_gpu="a portable file knows none",
    )


def check_portable(manifest: Manifest) -> Iterator[Problem]:
    """Yields GPUs that are named as only one host knows them, and secrets in clear."""
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
            if not _index(name).isdecimal():
                rule = "only one host has it: a portable file can name GPUs by their index"
                yield Problem(key_path, to_toml(name), rule, 'write its index, e.g. `"0"`')
    asks = manifest.gpus == "require" or any(names for _, names in _named(manifest))
    if asks and manifest.share_gpus and manifest.gpu_memory is None:
        rule = "how much memory a shared GPU has is not known in a portable file"
        hint = ("say how much each task may take: ", Setting("gpu_memory", "8g"))
        yield Problem("gpu_memory", "", rule, hint, ("gpus", "share_gpus"))


def _named(manifest: Manifest) -> Iterator[tuple[str, list[str]]]:
    """Yields the manifest's lists of GPUs, by place."""
    if not isinstance(manifest.gpus, str):
        yield "gpus", manifest.gpus
    for table, limits in manifest.limits_by_table():
        yield f"{table}.gpus", limits.gpus or []


def _indexes(manifest: Manifest) -> Iterator[int]:
    """Yields the indexes of all GPUs that the file names; `require` takes the first ones."""
    for _, names in _named(manifest):
        yield from (int(_index(name)) for name in names if _index(name).isdecimal())
    if manifest.gpus == "require":
        each = manifest.gpus_per_worker or 1
        workers = 1 if manifest.share_gpus else min(manifest.count(WORKER.name), 2**10)
        yield from range(workers * each)


def _index(name: str) -> str:
    return name.removeprefix(f"{CDI_KIND}=")


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
    """Returns the cluster with its mounts relative to `folder`, in which its file is to lie.

    Args:
        root: the folder that is copied as a whole, or cloned.
        shared: what has the same path on every host.
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
    beside = (replace(one, mounts=tuple(map(mount, one.mounts))) for one in cluster.sidecars)
    return replace(
        cluster,
        mounts=tuple(map(mount, cluster.mounts)),
        tasks=tuple(map(moved_task, cluster.tasks)),
        dockerfile=built and moved_dockerfile(built),
        sidecars=tuple(beside),
    )
