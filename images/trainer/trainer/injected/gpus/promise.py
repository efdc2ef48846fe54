"""Which GPUs a task was promised against what it sees: their number, and which ones they are.

Also loaded by its path into the programs of users (on_path/): imports nothing of this package,
whose name may be that of a package of theirs.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

PCI = re.compile(r"(?:([0-9a-f]+):)?([0-9a-f]{2}):([0-9a-f]{2})\.([0-9a-f])$", re.IGNORECASE)
UUID = re.compile(r"(?:GPU-|MIG-)?([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$", re.IGNORECASE)
RULE = 'must be a JSON list of {"name": …, "pci": …, "uuid": …}'


class Gpu(NamedTuple):
    """A GPU, or a MIG slice of one: `name` for messages.

    `pci` is the bus id of the whole GPU, `uuid` that of a slice is its own; "" where not known.
    """

    name: str
    pci: str = ""
    uuid: str = ""

    @property
    def sliced(self) -> bool:
        return self.uuid.startswith("MIG-")


def broken(task: str, promised: Sequence[Gpu], sees: Sequence[Gpu]) -> str:
    """'worker-1 was promised GPU 1 (GPU-5c1d…), sees none'; '' if the promise was kept."""
    if len(promised) == len(sees) and not _others(promised, sees):
        return ""
    seen = ", ".join(map(shown, sees)) or "none"
    counted = f"{len(sees)} ({seen})" if len(sees) != len(promised) and sees else seen
    return f"{task} was promised {_named(promised)}, sees {counted}"


def _others(promised: Sequence[Gpu], sees: Sequence[Gpu]) -> bool:
    """Whether those seen are known to be other GPUs: by UUID, else by bus id."""
    for identity in (_uuid, _pci):
        ours, theirs = [list(map(identity, gpus)) for gpus in (promised, sees)]
        if all(ours) and all(theirs):
            return Counter(ours) != Counter(theirs)
    return False


def _uuid(gpu: Gpu) -> str:
    """Without the prefix, which CUDA does not know; "" for the old form `MIG-GPU-…/1/0`."""
    match = UUID.match(gpu.uuid)
    return match[1].lower() if match else ""


def _pci(gpu: Gpu) -> str:
    """NVML writes `00000000:3B:00.0`, TensorFlow `0000:3b:00.0`."""
    match = PCI.match(gpu.pci)
    if not match:
        return ""
    domain, *rest = match.groups(default="0")
    return f"{int(domain, 16):04x}:{rest[0]}:{rest[1]}.{rest[2]}".lower()


def shown(gpu: Gpu) -> str:
    """Name and bus id, and a slice's UUID: 'NVIDIA H200 (pci 0000:3b:00.0)'."""
    ids = [gpu.uuid] if gpu.sliced else []
    ids += [f"pci {_pci(gpu) or gpu.pci}"] if gpu.pci else []
    return f"{gpu.name} ({', '.join(ids)})" if ids else gpu.name


def read(text: str) -> tuple[Gpu, ...]:
    """The GPUs of a JSON list of `{"name": …, "pci": …, "uuid": …}`, or of names alone; () if there
    is no text.

    Raises:
        ValueError, TypeError: it is not such a list.
    """
    return _gpus(json.loads(text or "[]"))


def read_promises(text: str) -> dict[str, tuple[Gpu, ...]]:
    """Such a list for each server, by its name; {} if there is no text."""
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
