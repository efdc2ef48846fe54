"""The tasks of a cluster, from a manifest's counts and limits. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv4Address, IPv4Network

from cluster_kit.cluster import Task
from cluster_kit.manifest.schema import Manifest
from cluster_kit.parts import Mount, Port, Ulimit
from cluster_kit.plan import addresses
from cluster_kit.plan.gpus.assign import GpuGrant
from cluster_kit.plan.nodes import constraints
from cluster_kit.programs.resolve import Inputs
from cluster_kit.programs.style import runs_program
from cluster_kit.roles import ROLES


def tasks_of(
    manifest: Manifest,
    inputs: Inputs,
    subnet: IPv4Network,
    grants: Mapping[str, GpuGrant],
    pins: Mapping[str, IPv4Address],
) -> tuple[Task, ...]:
    """All tasks, by role and index; `grants` and `pins` are by task name."""
    tasks = []
    for role in ROLES:
        for index in range(manifest.count(role)):
            name = f"{role}-{index}"
            limits = manifest.limits_of(role, index)
            grant = grants.get(name, GpuGrant())
            task = Task(
                role=role,
                index=index,
                ip=pins.get(name) or addresses.of(subnet, role, index),
                command=_command(manifest, inputs, role),
                gpus=grant.ids,
                gpus_promised=grant.promised,
                gpu_memory_mib=grant.memory_mib,
                cpus=limits.cpus,
                memory=limits.memory,
                bandwidth=limits.bandwidth,
                environment=tuple(sorted(limits.environment.items())),
                secrets=tuple(sorted(set(limits.secrets or ()))),
                mounts=mounts_of(manifest, inputs, role),
                env_file=inputs.env_files.get(limits.env_file or "", ""),
                secret_files=_secret_files(manifest, role),
                shm=limits.shm_size,
                ulimits=tuple(Ulimit(key, *pair) for key, pair in sorted(limits.ulimits.items())),
                nodes=constraints(limits.nodes or ""),
                ports=tuple(Port(*pair) for pair in sorted(set(limits.ports or ()))),
            )
            tasks.append(task)
    return tuple(tasks)


def mounts_of(manifest: Manifest, inputs: Inputs, role: str) -> tuple[Mount, ...]:
    """The mounts of this role, or those of all roles for ""; secrets in files among them."""
    own = [
        (mount, set(table.roles))
        for table, mount in zip(manifest.mount, inputs.own_mounts, strict=True)
    ]
    own += [(file, set(manifest.secret[key].roles)) for key, file in inputs.secret_files.items()]
    every: tuple[set[str], ...] = (set(), set(ROLES))
    return tuple(
        mount
        for mount, roles in own
        if (role in roles if role else roles in every) and not (role and roles in every)
    )


def _secret_files(manifest: Manifest, role: str) -> tuple[tuple[str, str], ...]:
    """(name, variable) of the secrets of a role that come from the caller's environment."""
    secrets = sorted(manifest.secret.items())
    return tuple(
        (name, secret.environment)
        for name, secret in secrets
        if secret.environment and (not secret.roles or role in secret.roles)
    )


def _command(manifest: Manifest, inputs: Inputs, role: str) -> tuple[str, ...]:
    """The container's command, with templates that are not filled yet."""
    if not runs_program(manifest, role):
        return ("serve",)
    return ("run", inputs.program, *manifest.args)
