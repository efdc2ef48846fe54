"""Describes the machine on which the figures were measured."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cluster_kit.version import __version__
from tests.bench.bench import Bench, docker, load

TENSORFLOW = (
    "from importlib.metadata import distributions as found;"
    "print(*(d.version for d in found() if d.name in ('tensorflow', 'tensorflow_cpu')))"
)


def machine(bench: Bench) -> dict[str, Any]:
    """Returns CPUs, memory, load and versions."""
    in_image = ("run", "--rm", "--pull=never", "--network=none", "--entrypoint=python3")
    return {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "cpus": os.cpu_count(),
        "cpu": _cpu(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "load": load(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "docker": docker("version", "--format={{.Server.Version}}").strip(),
        "compose": docker("compose", "version", "--short").strip(),
        "tensorflow": docker(*in_image, bench.image, "-c", TENSORFLOW).strip(),
        "cluster_kit": __version__,
        "image": bench.image,
    }


def _cpu() -> str:
    file = Path("/proc/cpuinfo")
    lines = file.read_text().splitlines() if file.exists() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())
