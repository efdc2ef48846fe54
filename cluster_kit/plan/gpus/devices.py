"""GPUs and MIG slices that can be handed out, with all names that identify them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cluster_kit.facts import Driver, Gpu, HostFacts

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
