"""What a manifest asks for in GPUs, taken out of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from cluster_kit.errors import Problem
from cluster_kit.manifest.schema import Limits, Manifest
from cluster_kit.manifest.toml_text import written


@dataclass(frozen=True)
class Wish:
    """`pool` is for the workers: "none", "auto" or names; `own` what single tasks ask for.

    `places` says where each of these stands in the manifest. `each` is how many every worker
    gets, None where the list decides. `memory` is in bytes.
    """

    pool: str | tuple[str, ...]
    each: int | None
    workers: int
    own: Mapping[str, tuple[str, ...]]
    places: Mapping[str, str]
    share: bool
    memory: int | None

    @property
    def pooled(self) -> list[str]:
        """The workers that are served from the pool, in order."""
        names = [f"worker-{index}" for index in range(self.workers)]
        return [name for name in names if name not in self.own]


def wish_of(manifest: Manifest, workers: int) -> tuple[Wish, list[Problem]]:
    """The wish, and what no cluster could mean by it."""
    problems = list(_misplaced(manifest))
    own: dict[str, tuple[str, ...]] = {}
    places: dict[str, str] = {}
    for task, place, limits in _alone(manifest):
        if limits.gpus is not None:
            own[task], places[task] = tuple(limits.gpus), f"{place}.gpus"
    wish = Wish(
        pool=manifest.gpus if isinstance(manifest.gpus, str) else tuple(manifest.gpus),
        each=manifest.gpus_per_worker,
        workers=workers,
        own=own,
        places=places,
        share=manifest.share_gpus,
        memory=manifest.gpu_memory,
    )
    return wish, problems


def _alone(manifest: Manifest) -> Iterator[tuple[str, str, Limits]]:
    """Task, place and limits wherever one task may ask for itself; the later one holds."""
    if manifest.chief:
        yield "chief-0", "role.chief", manifest.role.chief
    if manifest.evaluator:
        yield "evaluator-0", "role.evaluator", manifest.role.evaluator
    for name, limits in manifest.task.items():
        if not name.startswith("ps-"):
            yield name, f"task.{name}", limits


def _misplaced(manifest: Manifest) -> Iterator[Problem]:
    rule = "a ps keeps its parameters in main memory and never gets a GPU"
    if manifest.role.ps.gpus:
        yield Problem("role.ps.gpus", written(manifest.role.ps.gpus), rule, "take it out", ())
    for name, limits in manifest.task.items():
        if name.startswith("ps-") and limits.gpus:
            yield Problem(f"task.{name}.gpus", written(limits.gpus), rule, "take it out", ())
    if manifest.role.worker.gpus is not None:
        rule = "the workers' GPUs stand in `gpus`, at the top"
        cure = "write `gpus = [...]` there, or `gpus` under [task.worker-0], …"
        yield Problem("role.worker.gpus", written(manifest.role.worker.gpus), rule, cure)
