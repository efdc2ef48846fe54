"""What a user's program says about itself, found in its text before any container starts.

Most of it becomes warnings, not errors: a text can be misread, and the image itself refuses the
same mistakes once they happen. A rule that is not certain gives no warning. Only what is certain to
fail is a problem of the manifest, and only what is certain about a program changes its cluster.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from cluster_kit.advice.keras3 import check_keras3
from cluster_kit.advice.sources import Hint, Source, read
from cluster_kit.advice.strategies import (
    check_generators,
    check_servers,
    check_sharding,
    check_strategies,
    check_tf_config,
    shape,
)
from cluster_kit.advice.tf1 import check_arguments, check_flags, check_python2, check_tf1, refuse
from cluster_kit.errors import TOML_STYLE, Problem
from cluster_kit.facts import HostFacts
from cluster_kit.manifest.load import Loaded
from cluster_kit.manifest.schema import Manifest
from cluster_kit.plan.gpus import devices, in_use
from cluster_kit.programs.data import IN_CONTAINER
from cluster_kit.resolved import Cluster
from cluster_kit.util.masking import looks_secret
from cluster_kit.util.paths import seen_from

GPU_HINT = (
    "install the NVIDIA Container Toolkit, run `nvidia-ctk runtime configure --runtime=docker`, "
    "and restart the engine"
)


def gpus_in_use(manifest: Manifest, cluster: Cluster, facts: HostFacts) -> list[Hint]:
    """Notes on GPUs in use elsewhere: skipped, or used because the manifest names them."""
    if manifest.gpus == "none" and not any(task.gpus for task in cluster.tasks):
        return []
    hints = []
    for device, user in in_use(facts).items():
        by = [t.name for t in cluster.tasks if any(device.known_as(id_) for id_ in t.gpus)]
        if by:
            did = f"GPU {device.short} goes to {', '.join(by)}, though it is in use"
            hint = 'end it, name another GPU, or write `gpus = "auto"`, which leaves it out'
        elif isinstance(manifest.gpus, str) and manifest.gpus != "none":
            did, hint = f"GPU {device.short} is left out", "end it, or name the GPUs to be used"
        else:
            continue
        hints.append(Hint("gpus", did, f"used by {user}", hint))
    return hints


def refused_gpus(manifest: Manifest, facts: HostFacts) -> list[Hint]:
    """The warning about `gpus = "auto"` if the engine cannot use the host's GPUs."""
    if manifest.gpus != "auto" or not facts.gpu_refusal:
        return []
    names = ", ".join(device.short for device in devices(facts.gpus))
    return [
        Hint(
            "gpus",
            f'"auto" on a host with GPUs ({names}), but the workers train on the CPU',
            f"the engine refuses to hand them out: {facts.gpu_refusal}",
            f"`cluster-kit doctor` says what is missing; usually: {GPU_HINT}. "
            '`gpus = "require"` never trains on the CPU, `gpus = "none"` is quiet about it',
        )
    ]


def portable_hints(manifest: Manifest, cluster: Cluster) -> list[Hint]:
    """Warnings of a portable file: `gpus = "auto"`, and a directory that each host must have."""
    hints = []
    if manifest.gpus == "auto":
        hints.append(
            Hint(
                "gpus",
                '"auto" in a portable file: the workers train on the CPU',
                "which GPUs a host has is only known there",
                'list indexes, e.g. `gpus = ["0", "1"]`, or render on that host without --portable',
            )
        )
    sidecar_mounts = (mount for sidecar in cluster.sidecars for mount in sidecar.mounts)
    hints += [
        Hint(
            "data" if mount.target == IN_CONTAINER else "mount",
            f"{mount.source} is an absolute path",
            "every host that runs the file must have it",
            "move the data into the folder of the project",
        )
        for mount in (*cluster.all_mounts, *sidecar_mounts)
        if mount.source.startswith("/")
    ]
    return hints


def check_secrets(manifest: Manifest) -> list[Hint]:
    """Warnings about values in `environment` whose names look like secrets."""
    return [
        Hint(
            f"{table}.environment.{key}",
            "it looks like a secret",
            "its value is in clear in the manifest",
            f'write `secrets = ["{key}"]` there instead, and export the variable',
        )
        for table, limits in manifest.limits_by_table()
        for key in filter(looks_secret, limits.environment)
    ]


def check_secret_roles(program: Path | None, manifest: Manifest, folder: Path) -> list[Hint]:
    """Warnings about secrets of some roles that every task can read in the program's directory.

    Args:
        folder: the manifest's, to which paths are relative.
    """
    return [
        Hint(
            f"secret.{name}.roles",
            f"{secret.file} is in the program's directory, which every task sees as /program",
            f"the file is no secret of {', '.join(secret.roles)} alone",
            "move it to another directory",
        )
        for name, secret in manifest.secret.items()
        if program and secret.roles and secret.file
        if seen_from(folder, secret.file).is_relative_to(program.resolve().parent)
    ]


__all__ = ["Fitted", "Hint", "advise", "fit"]


@dataclass(frozen=True)
class Fitted:
    """A manifest whose cluster fits its program, the hints on both, and what cannot be run."""

    loaded: Loaded
    hints: tuple[Hint, ...]
    problems: tuple[Problem, ...]


def fit(program: Path | None, loaded: Loaded) -> Fitted:
    """Returns the manifest, fitted to the program (None for a built-in one)."""
    sources, unread = read(program) if program is not None else ([], [])
    fitting = shape(sources, loaded)
    fitted = loaded.manifest.model_copy(update=fitting.changes)
    loaded = replace(loaded, manifest=fitted, values={**loaded.values, **fitting.changes})
    roles = check_secret_roles(program, loaded.manifest, loaded.path.parent)
    hints = (*fitting.hints, *_hints(sources, unread, loaded.manifest), *roles)
    refused = refuse(sources, loaded.manifest)
    worded = tuple(hint.told_by(loaded.command_line) for hint in hints)
    return Fitted(loaded, worded, (*fitting.problems, *refused))


def advise(program: Path | None, manifest: Manifest) -> tuple[Hint, ...]:
    """Returns hints on the program (None for a built-in one) and on its arguments."""
    sources, unread = read(program) if program is not None else ([], [])
    return tuple(hint.told_by(TOML_STYLE) for hint in _hints(sources, unread, manifest))


def _hints(sources: list[Source], unread: list[Hint], manifest: Manifest) -> tuple[Hint, ...]:
    hints = [*check_arguments(manifest), *check_secrets(manifest), *unread]
    for rule in (check_strategies, check_servers, check_tf1, check_flags):
        hints += rule(sources, manifest)
    for rule_of_text in (
        check_keras3,
        check_generators,
        check_tf_config,
        check_sharding,
        check_python2,
    ):
        hints += rule_of_text(sources)
    return tuple(hints)
