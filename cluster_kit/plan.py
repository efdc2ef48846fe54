"""From a manifest and the host's facts to a cluster, or to everything that is wrong. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network

from cluster_kit import addresses, gpus
from cluster_kit.checks import check_limits, check_shape, check_subnet
from cluster_kit.cluster import ROLES, Cluster, Deadlines, Role, Task
from cluster_kit.errors import ManifestError, Problem
from cluster_kit.facts import HostFacts
from cluster_kit.inputs import Inputs
from cluster_kit.load import Loaded
from cluster_kit.manifest import Limits, Manifest

Counted = tuple[tuple[Role, int], ...]

OWN_IMAGE = "trainer"


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
    found = [*check_shape(manifest), *check_limits(manifest, facts), *inputs.problems]
    subnet, subnet_problems = _subnet(manifest, facts)
    workers = max(manifest.worker, 0)
    devices, gpu_problems = gpus.assign(
        manifest.gpus, manifest.gpus_per_worker, workers, facts.gpus, facts.gpu_refusal
    )
    found += subnet_problems + gpu_problems
    pins, pin_problems = _pins(manifest, subnet)
    found += pin_problems
    problems += [problem for problem in found if problem.place not in loaded.broken]
    if problems:
        raise ManifestError(str(loaded.path), problems)
    assert subnet is not None
    return Cluster(
        name=manifest.name,
        source=f"{loaded.path.parent.name}/{loaded.path.name}",
        image=_image(manifest, own, gpu=any(devices)),
        variant=("gpu" if any(devices) else "cpu") if manifest.image == OWN_IMAGE else None,
        user=facts.user,
        subnet=subnet,
        gateway=addresses.gateway(subnet),
        port=manifest.port,
        addressing=manifest.addressing,
        data=inputs.data,
        mounts=inputs.mounts,
        server=manifest.server,
        deadlines=Deadlines(
            manifest.deadline.start, manifest.deadline.job, manifest.deadline.evaluator_grace
        ),
        retries=manifest.retries,
        tasks=_tasks(manifest, inputs, subnet, devices, pins),
    )


def _image(manifest: Manifest, own: OwnImages, *, gpu: bool) -> str:
    if manifest.image != OWN_IMAGE:
        return manifest.image
    return own.gpu if gpu else own.cpu


def _counts(manifest: Manifest) -> Counted:
    return tuple((role, getattr(manifest, role)) for role in ROLES)


def _last(manifest: Manifest) -> Counted:
    return tuple((role, count - 1) for role, count in _counts(manifest) if count > 0)


def _subnet(manifest: Manifest, facts: HostFacts) -> tuple[IPv4Network | None, list[Problem]]:
    last = _last(manifest)
    if manifest.subnet != "auto":
        return check_subnet(manifest, facts, last)
    prefix = addresses.prefix_needed(last)
    if prefix is None:
        rule = "so many tasks fit in no subnet up to a /16"
        return None, [Problem("worker", str(manifest.worker), rule, "ask for fewer tasks")]
    subnet = addresses.pick_subnet(manifest.name, prefix, facts.networks)
    if subnet is None:
        pools = ", ".join(str(pool) for pool in addresses.POOLS)
        rule = f"every slot of {pools} is taken by a Docker network or a route of this host"
        cure = "remove unused networks (docker network prune), or state a `subnet` of your own"
        return None, [Problem("subnet", '"auto"', rule, cure)]
    return subnet, []


def _pins(
    manifest: Manifest, subnet: IPv4Network | None
) -> tuple[dict[str, IPv4Address], list[Problem]]:
    """Addresses that tasks pin for themselves, each inside the subnet and nobody else's."""
    wishes = {name: limits.ip for name, limits in manifest.task.items() if limits.ip is not None}
    pins: dict[str, IPv4Address] = {}
    problems: list[Problem] = []
    if wishes and manifest.subnet == "auto":
        rule = "a pinned address needs a fixed subnet"
        cure = 'write `subnet = "172.28.0.0/24"`, say'
        return {}, [Problem(f"task.{name}.ip", wishes[name], rule, cure) for name in wishes]
    if subnet is None:
        return {}, []
    taken = {
        addresses.gateway(subnet): "the gateway",
        subnet.network_address: "the network's own address",
        subnet.broadcast_address: "the broadcast address",
    }
    for role, count in _counts(manifest):
        for index in range(count):
            if f"{role}-{index}" not in wishes:
                taken[_address(subnet, role, index)] = f"{role}-{index}"
    for name, wish in wishes.items():
        place, cure = f"task.{name}.ip", f"choose a free address of {subnet}"
        try:
            address = IPv4Address(wish)
        except ValueError:
            problems.append(Problem(place, f'"{wish}"', "no IPv4 address", cure))
            continue
        if address not in subnet:
            problems.append(Problem(place, wish, f"outside the subnet {subnet}", cure))
        elif address in taken:
            problems.append(Problem(place, wish, f"taken: {taken[address]}", cure))
        taken[address] = name
        pins[name] = address
    return pins, problems


def _address(subnet: IPv4Network, role: Role, index: int) -> IPv4Address:
    offset = addresses.layout(subnet.prefixlen).offset(role, index)
    return subnet.network_address + (offset or 0)


def _tasks(
    manifest: Manifest,
    inputs: Inputs,
    subnet: IPv4Network,
    devices: gpus.Assignment,
    pins: dict[str, IPv4Address],
) -> tuple[Task, ...]:
    tasks = []
    for role in ROLES:
        for index in range(getattr(manifest, role)):
            name = f"{role}-{index}"
            cpus, memory, environment = _limits(manifest, role, name)
            task = Task(
                role=role,
                index=index,
                ip=pins.get(name) or _address(subnet, role, index),
                command=_command(manifest, inputs, role),
                gpus=devices[index] if role == "worker" else (),
                cpus=cpus,
                memory=memory,
                environment=environment,
            )
            tasks.append(task)
    return tuple(tasks)


def _command(manifest: Manifest, inputs: Inputs, role: Role) -> tuple[str, ...]:
    """Ps serve, and so do workers under a coordinator; everybody else runs the program."""
    if role == "ps" or (role == "worker" and manifest.chief):
        return ("serve",)
    return ("run", inputs.program, *manifest.args)


def _limits(
    manifest: Manifest, role: Role, name: str
) -> tuple[float | None, int | None, tuple[tuple[str, str], ...]]:
    """The role's limits with the task's own laid over them."""
    of_role: Limits = getattr(manifest.role, role)
    own = manifest.task.get(name)
    if own is None:
        return of_role.cpus, of_role.memory, tuple(sorted(of_role.environment.items()))
    cpus = of_role.cpus if own.cpus is None else own.cpus
    memory = of_role.memory if own.memory is None else own.memory
    return cpus, memory, tuple(sorted({**of_role.environment, **own.environment}.items()))
