"""Divides the free GPUs among tasks as the manifest requires. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cluster_kit.errors import HintText, Problem, Setting
from cluster_kit.facts import CDI_KIND, Driver, Gpu, HostFacts, without_kind
from cluster_kit.programs.style import style_of
from cluster_kit.resolved import PromisedGpu
from cluster_kit.roles import PS, ROLES, WORKER, Role, gpu_pool
from cluster_kit.util.terminal import counted
from cluster_kit.util.toml_text import to_toml

if TYPE_CHECKING:  # building the manifest's models takes long; many commands read none
    from cluster_kit.manifest.schema import Limits, Manifest

AUTO, NONE = Setting("gpus", "auto"), Setting("gpus", "none")
SHARED = Setting("share_gpus", True)
READS = (*ROLES, "gpus", "gpus_per_worker", "share_gpus", "role", "task")
"""The keys that decide which tasks need how many GPUs."""


@dataclass(frozen=True)
class GpuRequest:
    """GPUs for the tasks of the pool (`pool`: "none", "auto", "require" or names) and for single
    tasks (`named`).

    The pool's tasks are the workers, in an all-reduce with the chief.

    `key_paths` has the manifest's key of each task in `named`. `each` is the number of GPUs per
    worker, None if the list decides. `memory` (bytes) is TensorFlow's limit per task and GPU.
    """

    pool: str | tuple[str, ...]
    each: int | None
    tasks: tuple[str, ...]
    named: Mapping[str, tuple[str, ...]]
    key_paths: Mapping[str, str]
    share: bool
    memory: int | None

    @property
    def pooled(self) -> list[str]:
        """The tasks that get GPUs from the pool, in order."""
        return [name for name in self.tasks if name not in self.named]

    @property
    def workers(self) -> int:
        """How many of `pooled` are workers."""
        return sum(name.startswith(f"{WORKER.name}-") for name in self.pooled)

    @property
    def any_free(self) -> bool:
        """Whether the workers get GPUs that are free, whichever these are."""
        return self.pool in ("auto", "require")

    @property
    def needs_gpus(self) -> bool:
        """Whether training on the CPU instead is not allowed."""
        return self.pool not in ("none", "auto") or any(self.named.values())


def request_of(manifest: Manifest, *, without_pool: bool) -> tuple[GpuRequest, list[Problem]]:
    """Returns the manifest's request, and the problems of `gpus` in a wrong table.

    Args:
        without_pool: leave the pool's tasks out; there are too many of them to list.
    """
    named: dict[str, tuple[str, ...]] = {}
    key_paths: dict[str, str] = {}
    for task, key_path, limits in _own_tables(manifest):
        if limits.gpus is not None:
            named[task], key_paths[task] = tuple(limits.gpus), f"{key_path}.gpus"
    request = GpuRequest(
        pool=manifest.gpus if isinstance(manifest.gpus, str) else tuple(manifest.gpus),
        each=manifest.gpus_per_worker,
        tasks=() if without_pool else tuple(_pool(manifest)),
        named=named,
        key_paths=key_paths,
        share=manifest.share_gpus,
        memory=manifest.gpu_memory,
    )
    return request, list(_misplaced(manifest))


def _own_tables(manifest: Manifest) -> Iterator[tuple[str, str, Limits]]:
    """Yields (task, key, limits) of each table that may give a task its own GPUs.

    If a task appears twice, the later table holds.
    """
    for role in ROLES.values():
        if role.gpus != "own":
            continue  # and do not list its tasks: the count may be a billion
        count = manifest.count(role.name)
        for index in range(count if role.most is None else min(count, role.most)):
            yield f"{role.name}-{index}", f"role.{role.name}", manifest.limits(role.name)
    for name, limits in manifest.task.items():
        if _role_without_gpus(name) is None:
            yield name, f"task.{name}", limits


def pool_sizes(manifest: Manifest) -> dict[str, int]:
    """The number of tasks that get GPUs from the manifest's `gpus`, by role."""
    roles = gpu_pool(style_of(manifest), has_ps=manifest.count(PS.name) > 0)
    return {role.name: manifest.count(role.name) for role in roles}


def _pool(manifest: Manifest) -> Iterator[str]:
    """Yields the names of all tasks that get GPUs from the pool."""
    for role, count in pool_sizes(manifest).items():
        yield from (f"{role}-{index}" for index in range(count))


def _misplaced(manifest: Manifest) -> Iterator[Problem]:
    """Yields `gpus` in tables of roles and tasks that cannot have GPUs of their own."""
    for role in ROLES.values():
        key_path, gpus = f"role.{role.name}.gpus", manifest.limits(role.name).gpus
        if role.gpus == "none" and gpus:
            yield Problem(key_path, to_toml(gpus), _never_rule(role), "remove it")
        if role.gpus == "pool" and gpus is not None:
            rule = f"the {role.plural}' GPUs belong in `gpus`, at the top"
            hint = f"write `gpus = [...]` there, or `gpus` under [task.{role.name}-0], …"
            yield Problem(key_path, to_toml(gpus), rule, hint)
    for name, limits in manifest.task.items():
        role_without = _role_without_gpus(name)
        if role_without is not None and limits.gpus:
            rule = _never_rule(role_without)
            yield Problem(f"task.{name}.gpus", to_toml(limits.gpus), rule, "remove it")


def _role_without_gpus(task: str) -> Role | None:
    """The role of a task that never gets a GPU; None for any other task."""
    role = ROLES.get(task.rpartition("-")[0])
    return role if role is not None and role.gpus == "none" else None


def _never_rule(role: Role) -> str:
    return f"a {role.name} {role.no_gpus}"


def shown(names: str | Sequence[str]) -> str:
    """A value of `gpus` as TOML."""
    return to_toml(names if isinstance(names, str) else list(names))


MIB = 2**20


@dataclass(frozen=True)
class Device:
    """One GPU, or one MIG slice of one. `memory` in bytes.

    `short` is the index as nvidia-smi writes it: "1", or "0:2" for slice 2 of GPU 0.
    """

    short: str
    uuid: str
    name: str
    memory: int
    pci: str = ""
    """The bus id of the GPU, also of a slice's."""
    users: tuple[str, ...] = ()
    """The processes that compute on it."""

    @property
    def sliced(self) -> bool:
        """Whether it is a MIG slice."""
        return ":" in self.short

    def known_as(self, name: str) -> bool:
        """Whether `name` (an index, a UUID or a CDI name) identifies this device."""
        return without_kind(name) in (self.short, self.uuid)

    def engine_id(self, driver: Driver, written: str = "") -> str:
        """The id for the engine: as written in the manifest, else the index; a slice's is its UUID.

        With CDI it is always the index: nvidia-ctk names devices like that (`nvidia.com/gpu=0`,
        `…=0:1`), and only its newer releases know UUIDs as well.
        """
        if driver == "cdi":
            return f"{CDI_KIND}={self.short}"
        return self.uuid if self.sliced else (without_kind(written) or self.short)

    @property
    def described(self) -> str:
        """`0 (GPU-1b2c…)`: index and UUID, for messages; the index if it is known by that alone."""
        return f"{self.short} ({self.uuid})" if self.uuid else self.short


def devices(inventory: Iterable[Gpu]) -> tuple[Device, ...]:
    """The devices of these GPUs: the slices of one in MIG mode, any other as a whole."""
    usable = []
    for gpu in inventory:
        if not gpu.mig:
            whole = Device(str(gpu.index), gpu.uuid, gpu.name, gpu.memory, gpu.pci, gpu.users)
            usable.append(whole)
        for part in gpu.slices:
            name = f"{gpu.name} {part.name}"
            short = f"{gpu.index}:{part.index}"
            usable.append(Device(short, part.uuid, name, part.memory, gpu.pci, part.users))
    return tuple(usable)


def in_use(facts: HostFacts) -> dict[Device, str]:
    """The users of devices other than the kit's clusters, by device, for messages.

    A container that reserved all GPUs does not count as a user: monitoring does so without
    computing.
    """
    all_devices = devices(facts.gpus)
    held = {find(id_, all_devices) for id_, _cluster in facts.gpus_taken}
    users = {}
    for device in all_devices:
        by = [f"container {name}" for id_, name in facts.gpus_reserved if device.known_as(id_)]
        if device not in held and (by or device.users):
            users[device] = "; ".join([*by, *device.users])
    return users


def find(name: str, devices: Sequence[Device]) -> Device | None:
    """The device that a name identifies, None if it was not found."""
    return next((device for device in devices if device.known_as(name)), None)


@dataclass(frozen=True)
class Choice:
    """A device, and its name in the manifest; "" if the manifest does not name it."""

    device: Device
    name: str = ""


@dataclass(frozen=True)
class Inventory:
    """All devices of the host, and the names of the other clusters that hold some of them.

    `used` are devices that other programs use, with their users: free GPUs are chosen among the
    rest.
    """

    devices: tuple[Device, ...]
    held: Mapping[Device, str]
    used: Mapping[Device, str] = field(default_factory=dict)

    @property
    def not_free(self) -> list[str]:
        """The reasons why devices are not free: `0 is other's`, `1 is used by process 7`."""
        held = [f"{device.short} is {cluster}'s" for device, cluster in self.held.items()]
        return held + [f"{device.short} is used by {user}" for device, user in self.used.items()]


def choose_named(
    request: GpuRequest, inventory: Inventory
) -> tuple[dict[str, list[Choice]], list[Problem]]:
    """Returns the devices of tasks with `gpus` of their own, by task, and the problems."""
    choices: dict[str, list[Choice]] = {}
    problems: list[Problem] = []
    for task, names in request.named.items():
        key_path = request.key_paths[task]
        choices[task], faults = _by_name(key_path, names, inventory, share=request.share)
        problems += faults or _listed_twice(key_path, names, choices[task])
    return choices, problems


def choose_pool(
    request: GpuRequest, inventory: Inventory, named: set[Device], *, refused: bool
) -> tuple[list[Choice], list[Problem]]:
    """Returns the devices of the pool, [] if its tasks get none, and the problems.

    Args:
        named: the devices that tasks request by name.
        refused: whether the engine refuses to hand out GPUs.
    """
    pool, devices = request.pool, inventory.devices
    if pool == "none" or (pool == "auto" and (refused or not devices)):
        return [], []
    if pool == "require" and not devices:
        hint: HintText = (
            "`cluster-kit doctor` says what is missing; or write ",
            AUTO,
            " or ",
            NONE,
        )
        return [], [Problem("gpus", shown(pool), "this host has no GPU that can be used", hint)]
    if isinstance(pool, str):
        taken = {*inventory.held, *inventory.used, *named}
        free = [d for d in devices if d not in taken]
        others = [d for d in devices if d not in free] if request.share else []
        choices = [Choice(device) for device in free + others]
        return choices, _too_few(request, len(choices), shown(pool), inventory.not_free)
    if not pool:
        hint = ("list one GPU per worker, or write ", NONE, " or ", AUTO)
        return [], [Problem("gpus", "[]", "an empty list", hint)]
    choices, problems = _by_name("gpus", pool, inventory, share=request.share)
    if len(choices) == len(pool):
        problems += _listed_twice("gpus", pool, choices)
        problems += _too_few(request, len(pool), shown(pool), [])
    return choices, problems or _indivisible(request, len(choices))


def share_out(request: GpuRequest, pool: Sequence[Choice]) -> dict[str, list[Choice]]:
    """Returns consecutive devices for each task; a shared pool is used from its start again."""
    if not pool:
        return {}
    each = 1 if request.any_free and request.each is None else _each(request, len(pool))
    return {
        task: [pool[(turn * each + step) % len(pool)] for step in range(each)]
        for turn, task in enumerate(request.pooled)
    }


def _each(request: GpuRequest, listed: int) -> int:
    """GPUs per worker: the manifest's value, else an even part of a list of `listed` GPUs."""
    return request.each or max(1, listed // max(1, len(request.pooled)))


def _by_name(
    key_path: str, names: Sequence[str], inventory: Inventory, *, share: bool
) -> tuple[list[Choice], list[Problem]]:
    """The devices of these names, and the names that are unknown or held by another cluster."""
    choices: list[Choice] = []
    problems = []
    for name in names:
        device = find(name, inventory.devices)
        if device is None:
            have = ", ".join(device.described for device in inventory.devices) or "none"
            rule = f"this host has no such GPU; it has: {have}"
            existing = ("list GPUs that exist, or write ", AUTO, " (CPU only if there is none)")
            problems.append(Problem(key_path, f'"{name}"', rule, existing))
            continue
        choices.append(Choice(device, name))
        if device in inventory.held and not share:
            holder = inventory.held[device]
            rule = f"the cluster {holder} has GPU {device.described}"
            hint = (f"choose another, `cluster-kit down {holder}`, or ", SHARED)
            problems.append(Problem(key_path, f'"{name}"', rule, hint, ("name", "share_gpus")))
    return choices, problems


def _listed_twice(key_path: str, names: Sequence[str], choices: Sequence[Choice]) -> list[Problem]:
    hint = "list each GPU once: by its index or its UUID"
    return [
        Problem(key_path, shown(names), f"GPU {device.described} is listed {count} times", hint)
        for device, count in Counter(choice.device for choice in choices).items()
        if count > 1
    ]


def _too_few(request: GpuRequest, have: int, value: str, not_free: Sequence[str]) -> list[Problem]:
    """The problem if `have` devices are too few for the pool's tasks."""
    tasks, each = len(request.pooled), request.each or 1
    needed = each if request.share else tasks * each
    if have >= needed:
        return []
    rule = f"{_counted(request)} with {each} GPU(s) each need {needed}, there are {have}"
    if not_free:
        rule += " free; " + ", ".join(not_free)
    hint: list[str | Setting] = ["write "]
    workers = have // each - (tasks - request.workers)
    if workers > 0:
        hint += [Setting(WORKER.name, workers), ", or "]
    if (have or not_free) and not request.share:
        hint += [SHARED, " to put several on one, or "]
    return [Problem("gpus", value, rule, (*hint, NONE, " to train on the CPU"), READS)]


def _counted(request: GpuRequest) -> str:
    """`2 workers`, or `chief-0 and 1 worker`."""
    others = request.pooled[: len(request.pooled) - request.workers]
    return " and ".join([*others, counted(request.workers, WORKER.name)])


def _indivisible(request: GpuRequest, listed: int) -> list[Problem]:
    """The problem if the listed GPUs cannot be divided evenly among the pool's tasks."""
    tasks, each = len(request.pooled), _each(request, listed)
    if not tasks or request.share or listed == tasks * each:
        return []
    rule = f"{listed} GPUs do not divide evenly among {_counted(request)} with {each} each"
    hint = f"list {tasks * each} GPUs, or change `worker` or `gpus_per_worker`"
    return [Problem("gpus", shown(request.pool), rule, hint, READS)]


_LISTED = 8
"""The most workers that a message lists."""


def check_even(request: GpuRequest, choices: Mapping[str, Sequence[Choice]]) -> list[Problem]:
    """The problem if workers have different numbers of GPUs: strategies expect equal ones."""
    counts = {task: len(choices.get(task, [])) for task in request.tasks}
    if len(set(counts.values())) <= 1:
        return []
    name = next((task for task in counts if task in request.named), request.tasks[0])
    listed = ", ".join(f"{task}: {count}" for task, count in list(counts.items())[:_LISTED])
    who = "workers" if request.tasks[0].startswith(WORKER.name) else "tasks of an all-reduce"
    rule = f"all {who} need the same number of GPUs, but have {listed}"
    key_path, value = request.key_paths.get(name, "gpus"), shown(request.named.get(name, ()))
    return [Problem(key_path, value, rule, "give every one as many", READS)]


def check_room(request: GpuRequest, choices: Mapping[str, Sequence[Choice]]) -> list[Problem]:
    """The problems of GPUs that several tasks have unshared, or with too little memory for all."""
    users: dict[Device, list[str]] = {}
    for task, chosen in choices.items():
        for choice in chosen:
            users.setdefault(choice.device, []).append(task)
    problems = []
    for device, tasks in users.items():
        if len(tasks) > 1 and not request.share:
            rule = f"one GPU for several tasks: {device.described} for {' and '.join(tasks)}"
            apart = ("give each its own, or write ", SHARED)
            key_path = next(
                (request.key_paths[task] for task in tasks if task in request.named), "gpus"
            )
            problems.append(Problem(key_path, f'"{device.short}"', rule, apart, READS))
        elif request.memory and request.memory * len(tasks) > device.memory:
            mib = device.memory // MIB
            rule = f"{len(tasks)} task(s) on GPU {device.short}, which has {mib} MiB"
            hint = f"at most {mib // len(tasks)} MiB each"
            value = f"{request.memory // MIB} MiB"
            problems.append(Problem("gpu_memory", value, rule, hint, READS))
    return problems


HEADROOM = 0.9
"""The part of a shared GPU's memory that TensorFlow's allocators may take; CUDA needs the rest."""


@dataclass(frozen=True)
class GpuGrant:
    """One task's GPUs: ids for the engine, what the task must see, TensorFlow's limit in MiB."""

    ids: tuple[str, ...] = ()
    promised: tuple[PromisedGpu, ...] = ()
    memory_mib: int | None = None


def assign(
    name: str, request: GpuRequest, facts: HostFacts
) -> tuple[dict[str, GpuGrant], list[Problem]]:
    """Returns the grant of each task that gets GPUs, and the problems; no grants if there are any.

    Every worker gets the same number. No task gets a GPU that another task or another cluster-kit
    cluster has, unless the manifest asks for sharing.

    Args:
        name: the cluster's name; GPUs that it holds itself count as free.
    """
    refused = bool(facts.gpu_refusal)
    if refused and request.needs_gpus:
        hint = ("`cluster-kit doctor` says what is missing; or write ", AUTO, " or ", NONE)
        rule = f"the engine refuses: {facts.gpu_refusal}"
        return {}, [Problem("gpus", shown(request.pool), rule, hint)]
    inventory = _inventory(name, facts)
    choices, problems = choose_named(request, inventory)
    named = {choice.device for chosen in choices.values() for choice in chosen}
    pool, pool_problems = choose_pool(request, inventory, named, refused=refused)
    problems += pool_problems
    if not problems:
        choices |= share_out(request, pool)
        problems = check_even(request, choices) + check_room(request, choices)
    return ({} if problems else _grants(request, choices, facts)), problems


def _inventory(name: str, facts: HostFacts) -> Inventory:
    """The host's devices, and which other cluster holds each; in the devices' order."""
    all_devices = devices(facts.gpus)
    taken = [(id_, cluster) for id_, cluster in facts.gpus_taken if cluster != name]
    holders = {find(id_, all_devices): cluster for id_, cluster in taken}
    held = {device: holders[device] for device in all_devices if device in holders}
    return Inventory(all_devices, held, in_use(facts))


def _grants(
    request: GpuRequest, choices: Mapping[str, Sequence[Choice]], facts: HostFacts
) -> dict[str, GpuGrant]:
    limits = _memory_limits(request, choices)
    return {
        task: GpuGrant(
            ids=tuple(choice.device.engine_id(facts.gpu_driver, choice.name) for choice in chosen),
            promised=tuple(_promised(choice.device) for choice in chosen),
            memory_mib=limits[task],
        )
        for task, chosen in choices.items()
        if chosen
    }


def _promised(device: Device) -> PromisedGpu:
    return PromisedGpu(f"GPU {device.described}", device.pci, device.uuid)


def _memory_limits(
    request: GpuRequest, choices: Mapping[str, Sequence[Choice]]
) -> dict[str, int | None]:
    """Each task's limit in MiB per GPU: the manifest's value, else an even part of a shared GPU,
    else None.
    """
    if request.memory is not None:
        return dict.fromkeys(choices, request.memory // MIB)
    if not request.share:
        return dict.fromkeys(choices, None)
    devices_of = {task: [choice.device for choice in chosen] for task, chosen in choices.items()}
    users = Counter(device for chosen in devices_of.values() for device in chosen)
    return {
        task: min((int(d.memory * HEADROOM) // users[d] // MIB for d in chosen), default=None)
        for task, chosen in devices_of.items()
    }


ANY = "any"
"""The id of a GPU that the engine chooses when it starts the task."""


def of_nodes(request: GpuRequest) -> tuple[dict[str, GpuGrant], list[Problem]]:
    """Returns the grant of each task of the pool, {} if no GPUs are requested, and no problems.

    A grant has a number of GPUs without identities: a worker must see this number.
    """
    if request.pool != "require":
        return {}, []
    each = request.each or 1
    memory = None if request.memory is None else request.memory // MIB
    promised = tuple(
        PromisedGpu(f"GPU {n} of {each} of its node", "", "") for n in range(1, each + 1)
    )
    grant = GpuGrant((ANY,) * each, promised, memory)
    return dict.fromkeys(request.pooled, grant), []
