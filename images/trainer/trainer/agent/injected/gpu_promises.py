"""Compares the GPUs that were assigned to a task with those that the CUDA driver shows.

CUDA Driver API, "Device Management": cuDeviceGetUuid_v2 (CUDA 11.4 and later) returns a MIG slice's
own UUID. No context is created, so no GPU memory is used.

Also loaded by its path into users' programs (on_path/): imports nothing of this package, since a
user's package may have the same name.
"""

from __future__ import annotations

import ctypes
import json
import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

PCI = re.compile(r"(?:([0-9a-f]+):)?([0-9a-f]{2}):([0-9a-f]{2})\.([0-9a-f])$", re.IGNORECASE)
UUID = re.compile(r"(?:GPU-|MIG-)?([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$", re.IGNORECASE)
ABBREVIATED = re.compile(r"(?:GPU|MIG)-([0-9a-f][0-9a-f-]{,34})$", re.IGNORECASE)
"""The prefix of a UUID by which nodes of a swarm may announce their GPUs."""
GIVEN = "DOCKER_RESOURCE_GPU"
"""Docker's variable with the GPUs that a swarm's node assigned: "GPU-5c1d…,GPU-77ab…", or a
number."""
RULE = 'must be a JSON list of {"name": …, "pci": …, "uuid": …}'


class Gpu(NamedTuple):
    """A GPU, or a MIG slice of one: `name` for messages.

    `pci` is the bus id of the whole GPU; `uuid` of a slice is the slice's own. Both are "" if
    unknown.
    """

    name: str
    pci: str = ""
    uuid: str = ""

    @property
    def sliced(self) -> bool:
        return self.uuid.startswith("MIG-")


def broken_promise(task: str, promised: Sequence[Gpu], sees: Sequence[Gpu]) -> str:
    """'worker-1 was promised GPU 1 (GPU-5c1d…), sees none'; '' if the promise was kept."""
    if len(promised) == len(sees) and not _others(promised, sees):
        return ""
    by_uuid = any(gpu.uuid and not gpu.pci for gpu in promised)
    seen = ", ".join(shown(gpu, by_uuid=by_uuid) for gpu in sees) or "none"
    counted = f"{len(sees)} ({seen})" if len(sees) != len(promised) and sees else seen
    return f"{task} was promised {_named(promised)}, sees {counted}"


def _with_uuids(promised: Sequence[Gpu], value: str) -> tuple[Gpu, ...]:
    """The assigned GPUs. If only their number was promised, they get the UUIDs in `value` (of the
    variable GIVEN); they are unchanged if it has none, since nodes may announce only a number of
    GPUs."""
    uuids = [text.strip() for text in value.split(",")]
    known = any(gpu.uuid or gpu.pci for gpu in promised)
    if known or len(uuids) != len(promised) or not all(_uuid(Gpu("", "", u)) for u in uuids):
        return tuple(promised)
    return tuple(
        gpu._replace(name=f"{gpu.name} ({uuid})", uuid=uuid) for gpu, uuid in zip(promised, uuids)
    )


def _others(promised: Sequence[Gpu], sees: Sequence[Gpu]) -> bool:
    """Whether the visible GPUs are certainly different ones: compared by UUID, else by bus id."""
    for identity in (_uuid, _pci):
        ours, theirs = [list(map(identity, gpus)) for gpus in (promised, sees)]
        if all(ours) and all(theirs):
            return not _pairs(ours, theirs)
    return False


def _pairs(ours: Sequence[str], theirs: Sequence[str]) -> bool:
    """Whether each of `ours` is a prefix of a different one of `theirs`. The longest prefixes
    choose first, since a shorter prefix matches everything that a longer one matches."""
    left = list(theirs)
    for one in sorted(ours, key=len, reverse=True):
        match = next((other for other in left if other.startswith(one)), None)
        if match is None:
            return False
        left.remove(match)
    return True


def _uuid(gpu: Gpu) -> str:
    """The UUID without its prefix, which CUDA does not have; "" for the old form
    `MIG-GPU-…/1/0`."""
    match = UUID.match(gpu.uuid) or ABBREVIATED.match(gpu.uuid)
    return match[1].lower() if match else ""


def _pci(gpu: Gpu) -> str:
    """The bus id as TensorFlow writes it, `0000:3b:00.0`; NVML writes `00000000:3B:00.0`."""
    match = PCI.match(gpu.pci)
    if not match:
        return ""
    domain, *rest = match.groups(default="0")
    return f"{int(domain, 16):04x}:{rest[0]}:{rest[1]}.{rest[2]}".lower()


def shown(gpu: Gpu, *, by_uuid: bool = False) -> str:
    """A text with name and bus id, and with the UUID if that matters: 'NVIDIA H200 (pci
    0000:3b:00.0)'."""
    ids = [gpu.uuid] if gpu.sliced else [f"uuid {_uuid(gpu)}"] if by_uuid and _uuid(gpu) else []
    ids += [f"pci {_pci(gpu) or gpu.pci}"] if gpu.pci else []
    return f"{gpu.name} ({', '.join(ids)})" if ids else gpu.name


def read(text: str) -> tuple[Gpu, ...]:
    """The GPUs of a JSON list of `{"name": …, "pci": …, "uuid": …}`, or of names alone; () if there
    is no text.

    Raises:
        ValueError, TypeError: it is not such a list.
    """
    return _gpus(json.loads(text or "[]"))


def reader(env: Mapping[str, str]) -> Callable[[str], tuple[Gpu, ...]]:
    """A function that reads the list of a task's own GPUs, and adds the UUIDs that a swarm gave."""
    return lambda text: _with_uuids(read(text), env.get(GIVEN, ""))


def read_promises(text: str) -> dict[str, tuple[Gpu, ...]]:
    """The promises of each server by name; {} if there is no text."""
    written = json.loads(text or "{}")
    if not isinstance(written, dict):
        raise TypeError(f"for each server: {RULE}")
    return {name: _gpus(gpus) for name, gpus in written.items()}


def _gpus(written: object) -> tuple[Gpu, ...]:
    if not isinstance(written, list):
        raise TypeError(RULE)
    return tuple(map(_gpu, written))


def _gpu(written: object) -> Gpu:
    if isinstance(written, str):
        return Gpu(written)
    if not isinstance(written, dict) or not isinstance(written.get("name"), str):
        raise TypeError(RULE)
    return Gpu(written["name"], str(written.get("pci", "")), str(written.get("uuid", "")))


def _named(gpus: Sequence[Gpu]) -> str:
    if not gpus:
        return "no GPU"
    names = ", ".join(f"{gpu.name}{f', pci {_pci(gpu)}' if _pci(gpu) else ''}" for gpu in gpus)
    return names if len(gpus) == 1 else f"{len(gpus)} GPUs ({names})"


CUDA_LIBRARY = "libcuda.so.1"
PCI_TEXT_BYTES = 32


class CudaDevice(NamedTuple):
    """`pci` as `0000:3b:00.0`, `uuid` without a prefix; "" if the driver does not report it."""

    pci: str
    uuid: str


def cuda_devices(library: Any = None) -> list[CudaDevice]:
    """The devices by ordinal, [] if there is no driver or it does not answer."""
    try:
        cuda = library or ctypes.CDLL(CUDA_LIBRARY)
    except OSError:
        return []
    count = ctypes.c_int()
    if cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(count)):
        return []
    return [CudaDevice(_cuda_pci(cuda, at), _cuda_uuid(cuda, at)) for at in range(count.value)]


def _cuda_pci(cuda: Any, ordinal: int) -> str:
    text = ctypes.create_string_buffer(PCI_TEXT_BYTES)
    if cuda.cuDeviceGetPCIBusId(text, PCI_TEXT_BYTES, ordinal):
        return ""
    return text.value.decode(errors="replace").lower()


def _cuda_uuid(cuda: Any, ordinal: int) -> str:
    octets = (ctypes.c_ubyte * 16)()
    try:
        failed = cuda.cuDeviceGetUuid_v2(ctypes.byref(octets), ordinal)
    except AttributeError:  # an older driver
        return ""
    return "" if failed else str(uuid.UUID(bytes=bytes(octets)))
