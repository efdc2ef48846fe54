"""From a manifest and the host's facts to a cluster, or to everything that is wrong. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network

from cluster_kit.cluster import Cluster, Deadlines, Task
from cluster_kit.errors import ManifestError, Problem
from cluster_kit.facts import HostFacts
from cluster_kit.manifest.limits import limits_of
from cluster_kit.manifest.load import Loaded
from cluster_kit.manifest.names import OWN_IMAGE
from cluster_kit.manifest.schema import Manifest
from cluster_kit.plan import addresses
from cluster_kit.plan.arguments import check_arguments, fill
from cluster_kit.plan.gpus.assign import Given, assign
from cluster_kit.plan.gpus.request import wish_of
from cluster_kit.plan.rules.counts import check_counts, check_tasks_exist, too_many
from cluster_kit.plan.rules.limits import check_limits
from cluster_kit.plan.rules.names import check_names
from cluster_kit.plan.rules.network import check_port, find_subnet
from cluster_kit.plan.rules.pins import find_pins
from cluster_kit.programs.requirements import EXTRA, digest
from cluster_kit.programs.resolve import Inputs
from cluster_kit.programs.style import runs_program, style_of
from cluster_kit.roles import CHIEF, PS, ROLES, WORKER

_POOLED = tuple(role.name for role in ROLES.values() if role.gpus == "pool")
_DEPENDS: dict[str, tuple[str, ...]] = {
    CHIEF.name: ("style",),
    PS.name: (CHIEF.name, WORKER.name, "style", "program"),
    "style": (CHIEF.name, PS.name, "program"),
    "ps_runs": ("style", CHIEF.name, PS.name),
    "gpus": (*_POOLED, "gpus_per_worker", "share_gpus", "role", "task"),
    "gpu_memory": (*_POOLED, "gpus", "gpus_per_worker", "share_gpus", "role", "task"),
    "subnet": (*ROLES, "name"),
    "task": (*ROLES, "subnet", "gpus", "gpus_per_worker"),
    "memory": (*ROLES, "role", "task"),
    "data": ("program",),
}
"""Which other keys a rule may look at that does not say: a broken one's default is not judged."""


@dataclass(frozen=True)
class OwnImages:
    """Tags of the kit's own image, by variant."""

    cpu: str
    gpu: str


def plan(loaded: Loaded, inputs: Inputs, facts: HostFacts, own: OwnImages) -> Cluster:
    """Decide everything. Same arguments, same cluster.

    Args:
        own: tags of the kit's own image, used where the manifest says `image = "trainer"`.
    Raises:
        ManifestError: with every problem of the manifest, in the manifest's order.
    """
    manifest = loaded.manifest
    problems = list(loaded.problems)
    found = [*check_names(manifest), *check_counts(manifest), *check_port(manifest)]
    found += [*check_tasks_exist(manifest), *check_limits(manifest, facts), *inputs.problems]
    found += check_arguments(manifest.args)
    subnet, subnet_problems = find_subnet(manifest, facts)
    wish, wish_problems = wish_of(manifest, without_pool=too_many(manifest))
    given, gpu_problems = assign(manifest.name, wish, facts)
    found += subnet_problems + wish_problems + gpu_problems
    pins, pin_problems = find_pins(manifest, subnet)
    found += pin_problems
    problems += [problem for problem in found if _certain(problem, loaded.broken)]
    _refuse(loaded, problems)
    assert subnet is not None
    cluster, unfilled = fill(
        _cluster(loaded, inputs, facts, own, subnet, _tasks(manifest, inputs, subnet, given, pins))
    )
    _refuse(loaded, unfilled)
    return cluster


def _refuse(loaded: Loaded, problems: list[Problem]) -> None:
    """Raises ManifestError where there are problems, each once, in the manifest's order."""
    if problems:
        once = dict.fromkeys(problems)
        raise ManifestError(str(loaded.path), sorted(once, key=_position))


def _cluster(
    loaded: Loaded,
    inputs: Inputs,
    facts: HostFacts,
    own: OwnImages,
    subnet: IPv4Network,
    tasks: tuple[Task, ...],
) -> Cluster:
    manifest, gpu = loaded.manifest, any(task.gpus for task in tasks)
    return Cluster(
        name=manifest.name,
        source=f"{loaded.path.parent.name}/{loaded.path.name}",
        image=_image(manifest, inputs, own, gpu=gpu),
        variant=("gpu" if gpu else "cpu") if manifest.image == OWN_IMAGE else None,
        requirements=inputs.requirements,
        user=facts.user,
        subnet=subnet,
        gateway=addresses.gateway(subnet),
        port=manifest.port,
        addressing=manifest.addressing,
        style=style_of(manifest),
        chief_job=manifest.chief_job,
        data=inputs.data,
        mounts=inputs.mounts,
        server=manifest.server,
        deadlines=Deadlines(
            manifest.deadline.start, manifest.deadline.job, manifest.deadline.evaluator_grace
        ),
        retries=manifest.retries,
        gpu_driver=facts.gpu_driver,
        gpu_check=manifest.gpu_check,
        simulate_gpus=manifest.simulate_gpus,
        tasks=tasks,
    )


def _image(manifest: Manifest, inputs: Inputs, own: OwnImages, *, gpu: bool) -> str:
    if manifest.image != OWN_IMAGE:
        return manifest.image
    image = own.gpu if gpu else own.cpu
    return f"{image}{EXTRA}{digest(inputs.requirements)}" if inputs.requirements else image


def _certain(problem: Problem, broken: frozenset[str]) -> bool:
    """Whether the problem is the file's own, not one of the defaults in its broken places."""
    depends = problem.looks_at
    if depends is None:
        depends = _DEPENDS.get(_key(problem.place), ())
    return problem.place not in broken and not any(_key(place) in depends for place in broken)


def _position(problem: Problem) -> int:
    keys = list(Manifest.model_fields)
    key = _key(problem.place)
    return keys.index(key) if key in keys else len(keys)


def _key(place: str) -> str:
    return place.partition(".")[0]


def _tasks(
    manifest: Manifest,
    inputs: Inputs,
    subnet: IPv4Network,
    given: Mapping[str, Given],
    pins: dict[str, IPv4Address],
) -> tuple[Task, ...]:
    tasks = []
    for role in ROLES:
        for index in range(manifest.count(role)):
            name = f"{role}-{index}"
            limits = limits_of(manifest, role, index)
            gpus = given.get(name, Given())
            task = Task(
                role=role,
                index=index,
                ip=pins.get(name) or addresses.of(subnet, role, index),
                command=_command(manifest, inputs, role),
                gpus=gpus.ids,
                gpu_names=gpus.described,
                gpu_memory_mib=gpus.memory_mib,
                cpus=limits.cpus,
                memory=limits.memory,
                bandwidth=limits.bandwidth,
                environment=tuple(sorted(limits.environment.items())),
            )
            tasks.append(task)
    return tuple(tasks)


def _command(manifest: Manifest, inputs: Inputs, role: str) -> tuple[str, ...]:
    if not runs_program(manifest, role):
        return ("serve",)
    return ("run", inputs.program, *manifest.args)
