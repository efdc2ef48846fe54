"""The roles of a cluster's tasks: one table with everything that any module knows about a role.

A new role is a new row here, a program for its tasks in the image, and a word in the docs: the
manifest's keys, addresses, TF_CONFIG, names in templates, limits, GPUs, restarts, the order of
tables and the verdict are made from its row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

Style = Literal["coordinator", "all-tasks"]
"""Who runs the program: the chief alone, or the chief and every worker."""


@dataclass(frozen=True)
class Block:
    """Where a role's tasks have their addresses, as offsets from the subnet's base.

    `wide` holds in a /24 or larger, `narrow` in a smaller subnet of so many addresses. Beyond
    `wide` a role that `grows` takes whole further /24s: "odd" or "even" ones, None for none.
    """

    wide: range
    narrow: Callable[[int], range]
    grows: Literal["odd", "even"] | None = None


@dataclass(frozen=True)
class Role:
    """What is the same for all tasks of one role. Where a task differs, the manifest says so.

    `jobs` are TensorFlow's names for the role, the first being its usual one; `sidecar` tasks have
    a cluster spec of their own, no part in a failed training, and `deadline.evaluator_grace` to
    end after a good one. The first task of the first role in the table that `leads` decides the
    run's end, and every task of such a role counts as a replica of the model.
    """

    name: str
    description: str
    limits_description: str
    block: Block
    plural: str = ""
    """The word in the template name `num_…`; "" for a role that has none."""
    jobs: tuple[str, ...] = ()
    default: int = 0
    least: int = 0
    most: int | None = None
    leads: bool = False
    sidecar: bool = False
    runs_program_in: tuple[Style, ...] = ()
    """Styles in which its tasks run the program; in the others they are servers."""
    runs_program_if: str = ""
    """The manifest's key that decides this instead, by the value "program"."""
    restarts: bool = True
    """Whether Docker starts a crashed task again, unless it leads."""
    gpus: Literal["pool", "own", "none"] = "none"
    """From the manifest's `gpus`, each task the same number; its own `gpus` alone; or never."""
    no_gpus: str = "never gets a GPU"
    """Why it never gets one."""
    cpu_shares: int | None = None
    """Weight when CPUs are short; None for the engine's default (Docker: 1024)."""

    @property
    def job(self) -> str:
        """TensorFlow's usual job name."""
        return self.jobs[0] if self.jobs else self.name

    def allows(self, count: int) -> bool:
        """Whether a cluster may have so many of it."""
        return self.least <= count and (self.most is None or count <= self.most)


CHIEF = Role(
    name="chief",
    description="Number of chiefs (coordinators): 0 or 1",
    limits_description="The chief's limits and environment",
    block=Block(range(10, 11), lambda _size: range(2, 3)),
    jobs=("chief", "master"),
    default=1,
    most=1,
    leads=True,
    runs_program_in=("coordinator", "all-tasks"),
    gpus="own",
)
WORKER = Role(
    name="worker",
    description="Number of workers: 1 or more",
    limits_description="Those of every worker",
    block=Block(range(100, 255), lambda size: range(_middle(size), size - 1), grows="odd"),
    plural="workers",
    default=2,
    least=1,
    leads=True,
    runs_program_in=("all-tasks",),
    gpus="pool",
)
PS = Role(
    name="ps",
    description="Number of parameter servers: 0 or more",
    limits_description="Those of every parameter server",
    block=Block(range(20, 100), lambda size: range(4, _middle(size)), grows="even"),
    plural="ps",
    default=2,
    runs_program_if="ps_runs",
    no_gpus="keeps its parameters in main memory and never gets a GPU",
)
EVALUATOR = Role(
    name="evaluator",
    description="Number of side-car evaluators: 0 or 1, in a cluster spec of their own",
    limits_description="The evaluator's",
    block=Block(range(11, 12), lambda _size: range(3, 4)),
    most=1,
    sidecar=True,
    runs_program_in=("coordinator", "all-tasks"),
    gpus="own",
    cpu_shares=128,  # an eighth of a task's weight: the evaluator waits, not the training
)


def _middle(size: int) -> int:
    """Where the workers' block of a small subnet begins; a /29 has place for two of them."""
    return max(size // 2, 5)


ROLES: Mapping[str, Role] = MappingProxyType(
    {role.name: role for role in (CHIEF, WORKER, PS, EVALUATOR)}
)
"""By name, in the order in which tasks are listed."""
