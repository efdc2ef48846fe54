"""What can be handed out, under all the names that a person or an engine may use for it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cluster_kit.facts import Driver, Gpu

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

    @property
    def sliced(self) -> bool:
        return ":" in self.short

    def known_as(self, name: str) -> bool:
        """Whether `name` (an index, a UUID or a CDI name) means this device."""
        return name.removeprefix(f"{CDI_KIND}=") in (self.short, self.uuid)

    def engine_id(self, driver: Driver, written: str = "") -> str:
        """The id that the engine takes: as written, else by index; slices by their UUID.

        By CDI always the index: that is how nvidia-ctk names devices (`nvidia.com/gpu=0`, `…=0:1`),
        and only its newer releases know them by UUID as well.
        """
        if driver == "cdi":
            return f"{CDI_KIND}={self.short}"
        return self.uuid if self.sliced else (written.removeprefix(f"{CDI_KIND}=") or self.short)

    @property
    def described(self) -> str:
        return f"{self.short} ({self.uuid})"


def devices(inventory: Iterable[Gpu]) -> tuple[Device, ...]:
    """Everything that can be handed out: the slices of a GPU in MIG mode, else itself."""
    usable = []
    for gpu in inventory:
        if not gpu.mig:
            usable.append(Device(str(gpu.index), gpu.uuid, gpu.name, gpu.memory))
        for part in gpu.slices:
            name = f"{gpu.name} {part.name}"
            usable.append(Device(f"{gpu.index}:{part.index}", part.uuid, name, part.memory))
    return tuple(usable)


def find(name: str, devices: Sequence[Device]) -> Device | None:
    """The device that a name means, None if there is none."""
    return next((device for device in devices if device.known_as(name)), None)
