"""Asks the CUDA driver which devices this process sees. TensorFlow tells their names only.

Also loaded by its path into the programs of users (on_path/): imports nothing of this package.

Source: CUDA Driver API, "Device Management": cuDeviceGetUuid_v2 (CUDA 11.4 and later) returns a MIG
slice's own UUID. No context is created, so nothing is taken of any GPU's memory.
"""

from __future__ import annotations

import ctypes
import uuid
from typing import Any, NamedTuple

LIBRARY = "libcuda.so.1"
PCI_TEXT_BYTES = 32


class CudaDevice(NamedTuple):
    """`pci` as `0000:3b:00.0`, `uuid` without a prefix; "" if the driver does not say."""

    pci: str
    uuid: str


def devices(library: Any = None) -> list[CudaDevice]:
    """The devices by ordinal, [] if there is no driver or it does not answer."""
    try:
        cuda = library or ctypes.CDLL(LIBRARY)
    except OSError:
        return []
    count = ctypes.c_int()
    if cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(count)):
        return []
    return [CudaDevice(_pci(cuda, at), _uuid(cuda, at)) for at in range(count.value)]


def _pci(cuda: Any, ordinal: int) -> str:
    text = ctypes.create_string_buffer(PCI_TEXT_BYTES)
    if cuda.cuDeviceGetPCIBusId(text, PCI_TEXT_BYTES, ordinal):
        return ""
    return text.value.decode(errors="replace").lower()


def _uuid(cuda: Any, ordinal: int) -> str:
    octets = (ctypes.c_ubyte * 16)()
    try:
        failed = cuda.cuDeviceGetUuid_v2(ctypes.byref(octets), ordinal)
    except AttributeError:  # an older driver
        return ""
    return "" if failed else str(uuid.UUID(bytes=bytes(octets)))
