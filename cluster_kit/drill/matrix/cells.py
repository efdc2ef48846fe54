"""The cells of the matrix: each system's roles, and the faults that each of them meets. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cluster_kit.drill.kinds import KINDS
from cluster_kit.drill.load import Written
from cluster_kit.drill.matrix.systems import System
from cluster_kit.drill.scenario import At, Fault, Scenario
from cluster_kit.manifest.schema import Manifest
from cluster_kit.resolved import Cluster
from cluster_kit.roles import ROLES

LEADER = "leader"
PLACES = (LEADER, *(name for name, role in ROLES.items() if not (role.leads and role.most == 1)))
"""The roles of the matrix: the leader stands for itself, whichever role it has."""
CALM_S = 3.0
"""Between the end of a fault and the next one: what is told late is told by then."""


@dataclass(frozen=True)
class Break:
    """A way to break a task: a kind of fault, and how many seconds it lasts (None: for good)."""

    kind: str
    lasts: float | None = None

    def __str__(self) -> str:
        return f"{self.kind} {self.lasts:g} s" if self.lasts else self.kind


BREAKS = (
    Break("crash"), Break("stop"), Break("freeze", 60), Break("freeze", 10), Break("cut", 60),
    Break("cut", 10), Break("cut", 1), Break("slow", 10), Break("memory"),
)  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """One fault of one role of one system."""

    system: System
    role: str
    fault: Break

    @property
    def ends_job(self) -> bool:
        """Whether the job has to end by it: a leader that is told to stop ends its job."""
        return self.role == LEADER and KINDS[self.fault.kind].spares_leader

    def __str__(self) -> str:
        return f"{self.system.name} {self.role} {self.fault}"

    @property
    def key(self) -> str:
        """Its name as a file."""
        return f"{self.system.name}.{self.role}.{str(self.fault).replace(' ', '-')}"


def roles_of(manifest: Manifest) -> list[str]:
    """Those that a system has; a worker is one that does not lead."""
    leads = next(name for name, role in ROLES.items() if role.leads and manifest.count(name))
    return [LEADER, *(name for name in ROLES if manifest.count(name) > (name == leads))]


def task_of(role: str, cluster: Cluster) -> str:
    """The task that stands for a role: the last one, so that it is not the leader."""
    return cluster.leader.name if role == LEADER else cluster.of(role)[-1].name


def groups(cells: Sequence[Cell]) -> list[list[Cell]]:
    """The cells that share a run: all of a role that the run survives, or one that ends it."""
    made: dict[object, list[Cell]] = {}
    for cell in cells:
        made.setdefault((cell.system, cell.role, cell.ends_job and cell), []).append(cell)
    return list(made.values())


def scenario(cells: Sequence[Cell], cluster: Cluster) -> Written:
    """The faults of these cells, each after the cluster has got over the one before it."""
    faults = tuple(
        Fault.model_validate(
            {"kind": cell.fault.kind, "task": task_of(cell.role, cluster), "at": At(calm=CALM_S)}
            | ({"for": cell.fault.lasts} if cell.fault.lasts else {})
        )
        for cell in cells
    )
    numbers = tuple(range(1, len(faults) + 1))
    return Written(Scenario(fault=faults), f"matrix: {cells[0].role}", numbers=numbers)
