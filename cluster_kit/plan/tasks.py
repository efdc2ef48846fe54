"""The tasks of a cluster (arguments, TF_CONFIG, mounts, node constraints), its services. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from ipaddress import IPv4Address, IPv4Network
from typing import TYPE_CHECKING

from cluster_kit.errors import Problem
from cluster_kit.facts import HostFacts
from cluster_kit.plan import addresses
from cluster_kit.plan.gpus import GpuGrant
from cluster_kit.programs.style import runs_program
from cluster_kit.resolved import (
    OUTPUT,
    OWN_IMAGE,
    OWNER,
    Cluster,
    Mount,
    Port,
    Sidecar,
    Task,
    Ulimit,
)
from cluster_kit.roles import ROLES, Role
from cluster_kit.util.nearest import proposal
from cluster_kit.util.templating import Text, TextError

if TYPE_CHECKING:  # building the manifest's models takes long; many commands read none
    from cluster_kit.manifest.schema import Manifest, SidecarTable
    from cluster_kit.programs.resolve import Inputs

PLENTY = 2**60
"""Unlimited cores and bytes, since the plan does not know the hosts of the cluster."""
CONSTRAINT = re.compile(r"([\w./-]+)\s*(==|!=)\s*([\w.:/-]+)", re.ASCII)


def of_other_nodes(facts: HostFacts) -> HostFacts:
    """Returns the facts to plan with if the containers may run on any node, not on this host.

    Networks stay: the cluster cannot use a subnet that is used on this host.
    """
    return replace(facts, cpus=PLENTY, memory=PLENTY, gpus=())


def constraints(nodes: str) -> tuple[str, ...]:
    """Returns the constraints for the text of the key `nodes`: a bare name is a node's label.

    Invalid constraints are left out (each platform refuses them).
    """
    matches = (CONSTRAINT.fullmatch(part.strip()) for part in nodes.split(","))
    return tuple(f"{_full(m[1])} {m[2]} {m[3]}" for m in matches if m)


def _full(name: str) -> str:
    return name if name.startswith(("node.", "engine.")) else f"node.labels.{name}"


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
                shm_size=limits.shm_size,
                ulimits=tuple(Ulimit(key, *pair) for key, pair in sorted(limits.ulimits.items())),
                nodes=constraints(limits.nodes or ""),
                ports=tuple(Port(*pair) for pair in sorted(set(limits.ports or ()))),
            )
            tasks.append(task)
    return tuple(tasks)


def mounts_of(manifest: Manifest, inputs: Inputs, role: str) -> tuple[Mount, ...]:
    """The mounts of a role, or those of all roles for ""; includes secrets in files."""
    user_mounts = [
        (mount, set(table.roles))
        for table, mount in zip(manifest.mount, inputs.own_mounts, strict=True)
    ]
    user_mounts += [
        (file, set(manifest.secret[key].roles)) for key, file in inputs.secret_files.items()
    ]
    present = {name for name, row in ROLES.items() if manifest.count(name) or not row.feeds}
    every: tuple[set[str], ...] = (set(), present, set(ROLES))
    return tuple(
        mount
        for mount, roles in user_mounts
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
    if ROLES[role].feeds:
        return ("data-service",)
    if not runs_program(manifest, role):
        return ("serve",)
    return ("run", inputs.program, *manifest.args)


def cluster_spec(cluster: Cluster) -> dict[str, list[str]]:
    """TensorFlow's map from job name to addresses; evaluator and tf.data service are left out."""
    return _spec(cluster, (role for role, row in ROLES.items() if row.trains))


def _spec(cluster: Cluster, roles: Iterable[str]) -> dict[str, list[str]]:
    jobs = {
        cluster.job(role): [cluster.address(task) for task in cluster.of(role)] for role in roles
    }
    return {job: addresses for job, addresses in jobs.items() if addresses}


def tf_configs(cluster: Cluster) -> dict[str, str]:
    """TF_CONFIG of every task, by task name, as JSON text.

    The training cluster's spec is the same in all of them and is rendered once: a thousand tasks
    would otherwise render a thousand addresses each.
    """
    training = json.dumps(cluster_spec(cluster))
    feeding = json.dumps(_spec(cluster, (role for role, row in ROLES.items() if row.feeds)))

    def spec_of(task: Task) -> str:
        if ROLES[task.role].evaluates:
            return json.dumps({cluster.job(task.role): [cluster.address(task)]})
        return feeding if task.feeds else training

    return {
        task.name: _document(spec_of(task), cluster.job(task.role), task.index)
        for task in cluster.tasks
    }


def _document(spec: str, job: str, index: int) -> str:
    identity = json.dumps({"type": job, "index": index})
    return f'{{"cluster": {spec}, "task": {identity}}}'


OWNERS = "0:0"
"""The user in a portable file if UID and GID are not set."""


def shares_image(table: SidecarTable) -> bool:
    """Whether a sidecar runs the image of the tasks."""
    return table.image in ("", OWN_IMAGE)


def sidecars_of(
    manifest: Manifest, inputs: Inputs, subnet: IPv4Network, image: str, user: str
) -> tuple[Sidecar, ...]:
    """All sidecars, in the manifest's order.

    One on the tasks' image is not a task: it runs its command alone, as their user. Any other image
    runs by its own entry point and user.

    Args:
        image: the image of the tasks.
        user: the user of the tasks.
    """
    whom = OWNERS if user == OWNER else user
    runs = [_run(table) for table in manifest.sidecar.values()]
    return tuple(
        Sidecar(
            name=name,
            ip=addresses.of_sidecar(subnet, number),
            image=image if shares_image(table) else table.image,
            entrypoint=runs[number][0],
            command=runs[number][1],
            user=whom if shares_image(table) else "",
            environment=tuple(sorted(table.environment.items())),
            secrets=tuple(sorted(set(table.secrets))),
            mounts=inputs.sidecar_mounts[name],
            ports=tuple(Port(*pair) for pair in sorted(set(table.ports))),
            required=table.required,
            ready=table.ready,
        )
        for number, (name, table) in enumerate(manifest.sidecar.items())
    )


def _run(table: SidecarTable) -> tuple[tuple[str, ...] | None, tuple[str, ...]]:
    """(entry point or None for the image's own, its arguments): the command itself without one."""
    command = tuple(table.command)
    if table.entrypoint:
        return tuple(table.entrypoint), command
    alone = table.entrypoint == [] or shares_image(table)
    return (command, ()) if alone else (None, command)


def _jobs() -> str:
    """`chief (or master), worker, …`."""
    aliases = {role: "".join(f" (or {job})" for job in role.jobs[1:]) for role in ROLES.values()}
    return ", ".join(role.job + other for role, other in aliases.items())


def _replicas() -> str:
    return " and ".join(role.name for role in ROLES.values() if role.leads)


def _hosts(role: Role) -> str:
    if role.most == 1:
        return f"host:port of the {role.name}; empty if there is none"
    return f"host:port of every {role.name}, separated by commas"


MASTER = "master"
DATA_SERVICE = "data_service"
TRAINING = tuple(role for role in ROLES.values() if role.trains)
NAMES = {
    "role": f"the task's job name in TF_CONFIG: {_jobs()}",
    "index": "its number within the job, from 0",
    "name": "the task's name: worker-1",
    "ip": "its address",
    "port": "TensorFlow's port",
    MASTER: "`grpc://host:port` of its own server, which the kit then starts with the program",
    **{f"{role.name}_hosts": _hosts(role) for role in TRAINING},
    **{f"num_{role.plural}": f"number of {role.plural}" for role in TRAINING if role.plural},
    "cluster_spec": "TensorFlow's cluster spec as JSON: a list of host:port for each job",
    DATA_SERVICE: "`grpc://host:port` of tf.data service's dispatcher; empty without data workers",
    "num_replicas": f"number of replicas: {_replicas()} tasks together",
    "data": "the data set's directory",
    "output": "the directory that all tasks share and write to",
}
"""The names that a template may use, with their descriptions for the docs."""
LITERAL = "a literal {{ is written {{ '{{' }}"


def is_template(argument: str) -> bool:
    """Whether an argument is filled for each task."""
    return "{{" in argument or "{%" in argument


def names_in(arguments: Iterable[str]) -> frozenset[str]:
    """The names that the valid templates among these arguments use."""
    names: set[str] = set()
    for argument in filter(is_template, arguments):
        try:
            names |= Text.parse(argument).names
        except TextError:
            continue
    return frozenset(names)


def templates_of(manifest: Manifest) -> Iterator[tuple[str, str]]:
    """Yields (key path, text) of each argument and environment variable that is filled for each
    task."""
    texts = [(f"args.{number}", argument) for number, argument in enumerate(manifest.args)]
    for table, limits in manifest.limits_by_table():
        of_table = limits.environment.items()
        texts += [(f"{table}.environment.{name}", value) for name, value in of_table]
    yield from ((key_path, text) for key_path, text in texts if is_template(text))


def check_templates(manifest: Manifest) -> Iterator[Problem]:
    """Yields arguments and variables that are invalid templates or use an unknown name."""
    for key_path, text in templates_of(manifest):
        value = f'"{text}"'
        try:
            unknown = sorted(Text.parse(text).names - NAMES.keys())
        except TextError as error:
            yield Problem(key_path, value, f"invalid template: {error}", f"fix it; {LITERAL}")
            continue
        for name in unknown:
            yield Problem(key_path, value, f"no such name: `{name}`", proposal(name, NAMES))


def fill(cluster: Cluster) -> tuple[Cluster, list[Problem]]:
    """Returns the cluster with every task's arguments and variables filled, and a problem for each
    template that cannot be filled for a task."""
    texts = {
        text
        for task in cluster.tasks
        for text in (*task.arguments, *(value for _, value in task.environment))
    }
    templates = {text: Text.parse(text) for text in filter(is_template, texts)}
    if not templates:
        return cluster, []
    shared = _shared_values(cluster)
    problems: dict[str, Problem] = {}
    tasks = tuple(_filled(cluster, task, templates, shared, problems) for task in cluster.tasks)
    return replace(cluster, tasks=tasks), list(problems.values())


def _filled(
    cluster: Cluster,
    task: Task,
    templates: Mapping[str, Text],
    shared: dict[str, object],
    problems: dict[str, Problem],
) -> Task:
    """The task with its texts filled; adds to `problems`, by their keys, those that cannot be.

    An argument that is empty then is left out.
    """
    values = shared | _task_values(cluster, task)

    def filled(key_path: str, text: str) -> str:
        if text not in templates:
            return text
        try:
            return templates[text].fill(values)
        except TextError as error:
            rule = f"cannot be filled for {task.name}: {error}"
            found = Problem(key_path, f'"{text}"', rule, f"fix it; {LITERAL}")
            problems.setdefault(key_path, found)
            return ""

    arguments = [
        full
        for number, text in enumerate(task.arguments)
        if (full := filled(f"args.{number}", text)) or text not in templates
    ]
    key_path = f"role.{task.role}.environment"
    environment = tuple(
        (name, filled(f"{key_path}.{name}", value)) for name, value in task.environment
    )
    return replace(task, command=(*task.command[:2], *arguments), environment=environment)


def _shared_values(cluster: Cluster) -> dict[str, object]:
    tasks = {role: cluster.of(role.name) for role in TRAINING}
    return {
        "port": cluster.port,
        **{f"{role.name}_hosts": ",".join(map(cluster.address, tasks[role])) for role in TRAINING},
        **{f"num_{role.plural}": len(tasks[role]) for role in TRAINING if role.plural},
        "cluster_spec": json.dumps(cluster_spec(cluster)),
        DATA_SERVICE: cluster.data_service,
        "num_replicas": sum(len(tasks[role]) for role in TRAINING if role.leads),
        "data": cluster.data,
        "output": OUTPUT,
    }


def _task_values(cluster: Cluster, task: Task) -> dict[str, object]:
    return {
        "role": cluster.job(task.role),
        "index": task.index,
        "name": task.name,
        "ip": str(task.ip),
        MASTER: f"grpc://{cluster.address(task)}",
    }
