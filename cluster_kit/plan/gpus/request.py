"""The GPUs that a manifest asks for, and those that can be handed out. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from cluster_kit.facts import Driver, Gpu, HostFacts
from cluster_kit.manifest.schema import Limits, Manifest
from cluster_kit.problem import Problem, Setting
from cluster_kit.roles import ROLES, Role
from cluster_kit.util.toml_text import to_toml

AUTO, NONE = Setting("gpus", "auto"), Setting("gpus", "none")
SHARED = Setting("share_gpus", True)
READS = (*ROLES, "gpus", "gpus_per_worker", "share_gpus", "role", "task")
"""The keys that decide which tasks need how many GPUs."""


@dataclass(frozen=True)
class GpuRequest:
    """GPUs for the workers (`pool`: "none", "auto", "require" or names) and for single tasks
    (`named`).

    `key_paths` has the manifest's key of each task in `named`. `each` is the number of GPUs per
    worker, None if the list decides. `memory` (bytes) is TensorFlow's limit per task and GPU.
    """

    pool: str | tuple[str, ...]
    each: int | None
    workers: tuple[str, ...]
    named: Mapping[str, tuple[str, ...]]
    key_paths: Mapping[str, str]
    share: bool
    memory: int | None

    @property
    def pooled(self) -> list[str]:
        """The workers that get GPUs from the pool, in order."""
        return [name for name in self.workers if name not in self.named]

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
        without_pool: leave the workers out; there are too many of them to list.
    """
    named: dict[str, tuple[str, ...]] = {}
    key_paths: dict[str, str] = {}
    for task, key_path, limits in _own_tables(manifest):
        if limits.gpus is not None:
            named[task], key_paths[task] = tuple(limits.gpus), f"{key_path}.gpus"
    request = GpuRequest(
        pool=manifest.gpus if isinstance(manifest.gpus, str) else tuple(manifest.gpus),
        each=manifest.gpus_per_worker,
        workers=() if without_pool else tuple(_pool(manifest)),
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


def _pool(manifest: Manifest) -> Iterator[str]:
    """Yields the names of all tasks that get GPUs from the pool."""
    for role in ROLES.values():
        if role.gpus == "pool":
            yield from (f"{role.name}-{index}" for index in range(manifest.count(role.name)))


def _misplaced(manifest: Manifest) -> Iterator[Problem]:
    """Yields `gpus` in tables of roles and tasks that cannot have GPUs of their own."""
    for role in ROLES.values():
        key_path, gpus = f"role.{role.name}.gpus", manifest.limits(role.name).gpus
        if role.gpus == "none" and gpus:
            yield Problem(key_path, to_toml(gpus), _never_rule(role), "take it out")
        if role.gpus == "pool" and gpus is not None:
            rule = f"the {role.plural}' GPUs belong in `gpus`, at the top"
            hint = f"write `gpus = [...]` there, or `gpus` under [task.{role.name}-0], …"
            yield Problem(key_path, to_toml(gpus), rule, hint)
    for name, limits in manifest.task.items():
        role_without = _role_without_gpus(name)
        if role_without is not None and limits.gpus:
            rule = _never_rule(role_without)
            yield Problem(f"task.{name}.gpus", to_toml(limits.gpus), rule, "take it out")


def _role_without_gpus(task: str) -> Role | None:
    """The role of a task that never gets a GPU; None for any other task."""
    role = ROLES.get(task.rpartition("-")[0])
    return role if role is not None and role.gpus == "none" else None


def _never_rule(role: Role) -> str:
    return f"a {role.name} {role.no_gpus}"


def shown(names: str | Sequence[str]) -> str:
    """A value of `gpus` as TOML."""
    return to_toml(names if isinstance(names, str) else list(names))


CDI_KIND = "nvidia.com/gpu"
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
        return name.removeprefix(f"{CDI_KIND}=") in (self.short, self.uuid)

    def engine_id(self, driver: Driver, written: str = "") -> str:
        """The id for the engine: as written in the manifest, else the index; a slice's is its UUID.

        With CDI it is always the index: nvidia-ctk names devices like that (`nvidia.com/gpu=0`,
        `…=0:1`), and only its newer releases know UUIDs as well.
        """
        if driver == "cdi":
            return f"{CDI_KIND}={self.short}"
        return self.uuid if self.sliced else (written.removeprefix(f"{CDI_KIND}=") or self.short)

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
    """What uses each device that somebody else than a cluster of the kit uses, for messages.

    A container that reserved all GPUs is no user by that alone: monitoring does so, and computes
    on none.
    """
    all_devices = devices(facts.gpus)
    held = {find(id_, all_devices) for id_, _cluster in facts.gpus_taken}
    found = {}
    for device in all_devices:
        by = [f"container {name}" for id_, name in facts.gpus_reserved if device.known_as(id_)]
        if device not in held and (by or device.users):
            found[device] = "; ".join([*by, *device.users])
    return found


def find(name: str, devices: Sequence[Device]) -> Device | None:
    """The device that a name identifies, None if it was not found."""
    return next((device for device in devices if device.known_as(name)), None)
