"""Arguments that differ between tasks: `--task_index={{ index }}`. Pure.

Programs from before TF_CONFIG take their own role and all addresses as flags. An argument that has
`{{` or `{%` in it is a template (Jinja2) with the names below, filled for each task that runs the
program; one that becomes empty is left out. Every other argument is used as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from cluster_kit.errors import Problem
from cluster_kit.resolved import OUTPUT, Cluster, Task
from cluster_kit.roles import ROLES, Role
from cluster_kit.util.nearest import proposal
from cluster_kit.util.templating import Text, TextError


def _jobs() -> str:
    """`chief (or master), worker, …`."""
    others = {role: "".join(f" (or {job})" for job in role.jobs[1:]) for role in ROLES.values()}
    return ", ".join(role.job + other for role, other in others.items())


def _replicas() -> str:
    return " and ".join(role.name for role in ROLES.values() if role.leads)


def _hosts(role: Role) -> str:
    if role.most == 1:
        return f"host:port of the {role.name}; empty if there is none"
    return f"host:port of every {role.name}, separated by commas"


MASTER = "master"
TRAINING = tuple(role for role in ROLES.values() if not role.sidecar)
NAMES = {
    "role": f"the task's job name in TF_CONFIG: {_jobs()}",
    "index": "its number within the job, from 0",
    "name": "the task's name: worker-1",
    "ip": "its address",
    "port": "TensorFlow's port",
    MASTER: "`grpc://host:port` of its own server, which the kit then starts with the program",
    **{f"{role.name}_hosts": _hosts(role) for role in TRAINING},
    **{f"num_{role.plural}": f"number of {role.plural}" for role in TRAINING if role.plural},
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


def check_arguments(arguments: Iterable[str]) -> Iterator[Problem]:
    """Yields arguments that are invalid templates or use an unknown name."""
    for number, argument in enumerate(arguments):
        if not is_template(argument):
            continue
        key_path, value = f"args.{number}", f'"{argument}"'
        try:
            unknown = sorted(Text.parse(argument).names - NAMES.keys())
        except TextError as error:
            yield Problem(key_path, value, f"invalid template: {error}", f"fix it; {LITERAL}")
            continue
        for name in unknown:
            yield Problem(key_path, value, f"no such name: `{name}`", proposal(name, NAMES))


def fill(cluster: Cluster) -> tuple[Cluster, list[Problem]]:
    """Returns the cluster with every task's arguments filled, and a problem for each template that
    cannot be filled for a task."""
    arguments = {argument for task in cluster.tasks for argument in task.arguments}
    templates = {text: Text.parse(text) for text in filter(is_template, arguments)}
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
    """The task with its arguments filled; adds to `problems`, by argument, what cannot be."""
    values = shared | _task_values(cluster, task)
    arguments = []
    for number, argument in enumerate(task.arguments):
        if argument not in templates:
            arguments.append(argument)
            continue
        try:
            arguments += filter(None, [templates[argument].fill(values)])
        except TextError as error:
            key_path, rule = f"args.{number}", f"cannot be filled for {task.name}: {error}"
            problems.setdefault(
                key_path, Problem(key_path, f'"{argument}"', rule, f"fix it; {LITERAL}")
            )
    return replace(task, command=(*task.command[:2], *arguments))


def _shared_values(cluster: Cluster) -> dict[str, object]:
    tasks = {role: cluster.of(role.name) for role in TRAINING}
    return {
        "port": cluster.port,
        **{f"{role.name}_hosts": ",".join(map(cluster.address, tasks[role])) for role in TRAINING},
        **{f"num_{role.plural}": len(tasks[role]) for role in TRAINING if role.plural},
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
