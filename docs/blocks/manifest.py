"""The table of a manifest's keys, from the model's own descriptions, and examples of manifests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic.fields import FieldInfo

from cluster_kit.manifest.kubernetes import KubernetesTable
from cluster_kit.manifest.schema import (
    ContainerTable,
    DataTable,
    DeadlineTable,
    Limits,
    Manifest,
    MountTable,
    NetworkTable,
    SecretTable,
    SidecarTable,
    TaskLimits,
)
from cluster_kit.manifest.slurm import SlurmTable
from cluster_kit.util.kit_files import FILES
from cluster_kit.util.toml_text import to_toml
from docs.blocks.table import table

TABLES = {
    "data": "data.",
    "deadline": "deadline.",
    "secret": "secret.<name>.",
    "mount": "mount[].",
    "sidecar": "sidecar.<name>.",
    "container": "container.",
    "network": "network.",
    "kubernetes": "kubernetes.",
    "slurm": "slurm.",
    "role": "role.<role>.",
    "task": "task.<task>.",
}
"""Keys that hold tables, and what stands before the keys in these."""
MODELS: dict[str, Any] = {
    "data": DataTable,
    "deadline": DeadlineTable,
    "secret": SecretTable,
    "mount": MountTable,
    "sidecar": SidecarTable,
    "container": ContainerTable,
    "network": NetworkTable,
    "kubernetes": KubernetesTable,
    "slurm": SlurmTable,
    "role": Limits,
    "task": TaskLimits,
}


def keys() -> str:
    """Every key: its default and its meaning."""
    return table(("key", "default", "meaning"), rows())


def rows() -> Iterator[tuple[str, str, str]]:
    for name, field in Manifest.model_fields.items():
        if name not in TABLES:
            yield row(name, field, default(field))
            continue
        if name == "data":  # a name or a path, too
            yield row(name, field, default(field))
        for key, inner in MODELS[name].model_fields.items():
            inherited = name == "task" and key in Limits.model_fields
            place = f"{TABLES[name]}{key}"
            yield row(place, inner, "the role's" if inherited else default(inner, name))


def row(place: str, field: FieldInfo, shown: str) -> tuple[str, str, str]:
    return f"`{place}`", shown, field.description or ""


def default(field: FieldInfo, home: str = "") -> str:
    """As one would write it; `home` is the key of the table that the field is in."""
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if value is None or value == {}:
        return "none"
    if home == "deadline" and value != "auto":
        value = duration(value)
    if home == "container":
        value = size(value)
    return f"`{to_toml(value)}`"


def size(count: int) -> int | str:
    """`4g`, `256m`: in the largest unit that needs no fraction; another number as it is."""
    for unit, power in (("g", 30), ("m", 20)):
        if count % 2**power == 0:
            return f"{count >> power}{unit}"
    return count


def duration(seconds: float) -> str:
    """`2m`, `1h`: in the largest unit that needs no fraction."""
    for unit, length in (("h", 3600), ("m", 60)):
        if seconds % length == 0:
            return f"{seconds / length:g}{unit}"
    return f"{seconds:g}s"


def smoke() -> str:
    """The smallest manifest, whole."""
    text = (FILES / "compose" / "smoke.toml").read_text(encoding="utf-8")
    return f"```toml\n{text}```"
