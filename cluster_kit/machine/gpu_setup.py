"""What has to be there for containers to get GPUs: hardware, driver, toolkit, the engine's part."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from cluster_kit.facts import GpuSetup

PCI_DEVICES = Path("/sys/bus/pci/devices")
NVIDIA = "0x10de"
DISPLAY = "0x03"
"""The PCI class of display controllers. Source: PCI ID list, classes 0300 and 0302."""
TOOLS = ("nvidia-ctk", "nvidia-container-runtime-hook", "nvidia-container-runtime")


def gpu_setup(info: Mapping[str, Any], driver: str = "") -> GpuSetup:
    """The setup of this host and of the engine that describes itself by `info`.

    Args:
        driver: why NVML cannot be used, "" if it can.
    """
    folders = info.get("CDISpecDirs") or ()
    return GpuSetup(
        hardware=_hardware(PCI_DEVICES),
        driver=driver,
        toolkit=any(shutil.which(tool) for tool in TOOLS),
        runtime="nvidia" in (info.get("Runtimes") or {}),
        cdi=bool(folders),
        cdi_spec=_has_spec(folders),
    )


def _hardware(devices: Path) -> int:
    """The number of NVIDIA's display controllers; 0 if there is no sysfs."""
    if not devices.is_dir():
        return 0
    return sum(
        _read(device / "vendor") == NVIDIA and _read(device / "class").startswith(DISPLAY)
        for device in devices.iterdir()
    )


def _read(file: Path) -> str:
    try:
        return file.read_text().strip()
    except OSError:
        return ""


def _has_spec(folders: Iterable[str]) -> bool:
    """Whether a CDI specification for NVIDIA's GPUs lies in one of the folders."""
    return any(
        "nvidia.com/gpu" in _read(file)
        for folder in folders
        for pattern in ("*.json", "*.yaml")
        for file in sorted(Path(folder).glob(pattern))
    )
