"""What a manifest asks for in GPUs, taken out of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from cluster_kit.manifest.limits import Limits
from cluster_kit.manifest.schema import Manifest
from cluster_kit.problem import Problem, Setting
from cluster_kit.roles import ROLES, Role
from cluster_kit.util.toml_text import written

AUTO, NONE = Setting("gpus", "auto"), Setting("gpus", "none")
SHARED = Setting("share_gpus", True)
READS = (*ROLES, "gpus", "gpus_per_worker", "share_gpus", "role", "task")
"""What decides how many GPUs are needed, and by whom."""


@dataclass(frozen=True)
class GpuRequest:
    """`pool` is for the workers: "none", "auto" or names; `named` what single tasks ask for.

    `places` says where each of these stands in the manifest. `each` is how many every worker
    gets, None if the list decides. `memory` (bytes) is TensorFlow's limit per task and GPU.
    """

    pool: str | tuple[str, ...]
    each: int | None
    workers: tuple[str, ...]
    named: Mapping[str, tuple[str, ...]]
    places: Mapping[str, str]
    share: bool
    memory: int | None

    @property
    def pooled(self) -> list[str]:
        """The workers that are served from the pool, in order."""
        return [name for name in self.workers if name not in self.named]

    @property
    def insists(self) -> bool:
        """Whether it names a GPU, so that the CPU will not do."""
        return isinstance(self.pool, tuple) or any(self.named.values())


def request_of(manifest: Manifest, *, without_pool: bool) -> tuple[GpuRequest, list[Problem]]:
    """Returns what the manifest asks for, and what no cluster could mean by it.

    Args:
        without_pool: leave the workers out, because there are too many to count through.
    """
    named: dict[str, tuple[str, ...]] = {}
    places: dict[str, str] = {}
    for task, place, limits in _alone(manifest):
        if limits.gpus is not None:
            named[task], places[task] = tuple(limits.gpus), f"{place}.gpus"
    request = GpuRequest(
        pool=manifest.gpus if isinstance(manifest.gpus, str) else tuple(manifest.gpus),
        each=manifest.gpus_per_worker,
        workers=() if without_pool else tuple(_pool(manifest)),
        named=named,
        places=places,
        share=manifest.share_gpus,
        memory=manifest.gpu_memory,
    )
    return request, list(_misplaced(manifest))


def _alone(manifest: Manifest) -> Iterator[tuple[str, str, Limits]]:
    """Task, place and limits for each table in which a task may ask; the later one holds."""
    for role in ROLES.values():
        if role.gpus != "own":
            continue  # and is not counted through: the count may be a billion
        count = manifest.count(role.name)
        for index in range(count if role.most is None else min(count, role.most)):
            yield f"{role.name}-{index}", f"role.{role.name}", manifest.limits(role.name)
    for name, limits in manifest.task.items():
        if _barred(name) is None:
            yield name, f"task.{name}", limits


def _pool(manifest: Manifest) -> Iterator[str]:
    for role in ROLES.values():
        if role.gpus == "pool":
            yield from (f"{role.name}-{index}" for index in range(manifest.count(role.name)))


def _misplaced(manifest: Manifest) -> Iterator[Problem]:
    for role in ROLES.values():
        place, gpus = f"role.{role.name}.gpus", manifest.limits(role.name).gpus
        if role.gpus == "none" and gpus:
            yield Problem(place, written(gpus), _never(role), "take it out")
        if role.gpus == "pool" and gpus is not None:
            rule = f"the {role.plural}' GPUs stand in `gpus`, at the top"
            cure = f"write `gpus = [...]` there, or `gpus` under [task.{role.name}-0], …"
            yield Problem(place, written(gpus), rule, cure)
    for name, limits in manifest.task.items():
        barred = _barred(name)
        if barred is not None and limits.gpus:
            rule = _never(barred)
            yield Problem(f"task.{name}.gpus", written(limits.gpus), rule, "take it out")


def _barred(task: str) -> Role | None:
    """The role of a task that never gets a GPU; None for any other task."""
    role = ROLES.get(task.rpartition("-")[0])
    return role if role is not None and role.gpus == "none" else None


def _never(role: Role) -> str:
    return f"a {role.name} {role.no_gpus}"


def shown(names: str | Sequence[str]) -> str:
    """A value of `gpus` as TOML."""
    return written(names if isinstance(names, str) else list(names))
