"""The tables of a manifest's keys, from the model's own descriptions, and examples of manifests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from cluster_kit.platforms.platform import all_platforms, manifest_model
from cluster_kit.util.paths import FILES
from cluster_kit.util.toml_text import to_toml
from docs.blocks.table import table

PREFIXES = {
    "secret": "secret.<name>.",
    "mount": "mount[].",
    "sidecar": "sidecar.<name>.",
    "role": "role.<role>.",
    "task": "task.<task>.",
}
"""What stands before the keys of a table, for tables of which there can be several."""
EVERYDAY = (
    "format", "name", "chief", "worker", "ps", "evaluator", "program", "args", "data",
    "requirements", "style", "gpus", "retries", "deadline.job", "role.<role>.memory",
)  # fmt: skip
"""The keys that most manifests need; the page begins with them."""
SUBJECTS = {
    "program": ("ps_runs", "chief_job", "tf1", "tensorflow", "image", "build", "server"),
    "data": ("data.", "data_worker", "mount[]."),
    "secrets": ("secret.<name>.",),
    "gpus": ("gpus_per_worker", "share_gpus", "gpu_memory", "gpu_check", "simulate_gpus"),
    "deadlines": ("deadline.",),
    "failures": ("success", "restart."),
    "roles": ("role.<role>.", "task.<task>."),
    "network": ("addressing", "port", "subnet", "network.", "container."),
    "watching": ("tensorboard", "profile."),
    "sidecars": ("sidecar.<name>.",),
    "engines": ("engine",),
    **{one.name: (f"{one.name}.",) for one in all_platforms() if one.table() is not None},
}
"""The other keys by subject, a table for each; `data.` is every key of that table."""


def blocks() -> Mapping[str, Any]:
    """The makers of the page's tables, by the names of their markers."""
    subjects = {f"manifest-{name}": partial(_of_subject, keys) for name, keys in SUBJECTS.items()}
    return {"manifest-everyday": everyday, **subjects}


def everyday() -> str:
    """The keys that most manifests need: default and meaning of each."""
    found = dict(rows())
    return _table([(key, *found[key]) for key in EVERYDAY])


def _of_subject(keys: tuple[str, ...]) -> str:
    """A subject's further keys: default and meaning of each, in the order of `keys`."""
    found = [(key, *row) for key, row in rows() if key not in EVERYDAY]
    return _table([row for wanted in keys for row in found if _is_in(row[0], wanted)])


def _is_in(key: str, wanted: str) -> bool:
    return key.startswith(wanted) if wanted.endswith(".") else key == wanted


def _table(found: list[tuple[str, str, str]]) -> str:
    return table(("key", "default", "meaning"), [(f"`{key}`", *rest) for key, *rest in found])


def rows() -> Iterator[tuple[str, tuple[str, str]]]:
    """Yields each key with its default and its meaning.

    A task has every key of its role; only those of its own are listed under `task`.
    """
    of_role: set[str] = set()
    for name, field in manifest_model().model_fields.items():
        model = table_of(field.annotation)
        if model is None or name == "data":  # data is a name or a path, too
            yield name, (default(field), field.description or "")
        if model is None:
            continue
        if name == "role":
            model = table_of(model.model_fields["worker"].annotation)
            assert model is not None
            of_role = set(model.model_fields)
        for key, inner in model.model_fields.items():
            if name != "task" or key not in of_role:
                shown = default(inner, name), inner.description or ""
                yield f"{PREFIXES.get(name, f'{name}.')}{key}", shown


def table_of(annotation: Any) -> type[BaseModel] | None:
    """The model of the table that a key with this type can hold; None if it holds none."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(filter(None, map(table_of, get_args(annotation))), None)


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
