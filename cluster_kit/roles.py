"""The roles of a cluster's tasks: one table of everything that differs between roles.

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
"""The styles: the chief alone runs the program, or the chief and every worker run it."""


@dataclass(frozen=True)
class Block:
    """The addresses of a role's tasks, as offsets from the subnet's base.

    `wide` applies in a /24 or larger; `narrow` maps the number of addresses of a smaller subnet to
    the offsets there. When `wide` is full, a role that `grows` takes whole further /24s: their
    numbers are (first, step); None if it cannot grow.
    """

    wide: range
    narrow: Callable[[int], range]
    grows: tuple[int, int] | None = None


@dataclass(frozen=True)
class Role:
    """What all tasks of one role have in common; a manifest can change some of it for one task.

    `jobs` are TensorFlow's names of the role, the usual one first. Tasks of a role that `evaluates`
    have a separate cluster spec, are never to blame for a failed training, and have
    `deadline.evaluator_grace` seconds to end after a good one. Tasks of a role that `feeds` are
    those of tf.data service: together they have a cluster spec without the training's tasks, and
    they are never to blame either. The run ends with the first task of the first role in the table
    that `leads`; every task of such a role is a replica of the model.
    """

    name: str
    description: str
    limits_description: str
    block: Block
    plural: str = ""
    """The word in the template name `num_…`; "" if the role has no such name."""
    jobs: tuple[str, ...] = ()
    other_names: tuple[str, ...] = ()
    """Names of the role elsewhere, for hints."""
    default: int = 0
    least: int = 0
    most: int | None = None
    leads: bool = False
    evaluates: bool = False
    feeds: bool = False
    one_for: str = ""
    """The role whose tasks need one task of this role; its own count is then no key."""
    runs_program_in: tuple[Style, ...] = ()
    """Styles in which its tasks run the program; in the others they are servers."""
    runs_program_if: str = ""
    """The manifest's key that decides this instead of the style: with the value "program" the
    role's tasks run the program."""
    restarts: bool = True
    """Whether Docker starts a crashed task again, unless it leads."""
    gpus: Literal["pool", "own", "none"] = "none"
    """How its tasks get GPUs: evenly from the manifest's `gpus`, only from the task's own `gpus`
    (but see `gpu_pool`), or never."""
    no_gpus: str = "never gets a GPU"
    """The reason why it never gets a GPU, as the end of a sentence."""
    cpu_shares: int | None = None
    """CPU weight if CPUs are short; None for the engine's default (Docker: 1024)."""

    @property
    def job(self) -> str:
        """TensorFlow's usual job name."""
        return self.jobs[0] if self.jobs else self.name

    @property
    def trains(self) -> bool:
        """Whether its tasks are in the training's cluster spec."""
        return not (self.evaluates or self.feeds)

    def allows(self, count: int) -> bool:
        """Whether a cluster may have `count` tasks of this role."""
        return self.least <= count and (self.most is None or count <= self.most)


CHIEF = Role(
    name="chief",
    description="Number of chiefs (coordinators): 0 or 1",
    limits_description="The chief's limits and environment",
    block=Block(range(10, 11), lambda _size: range(2, 3)),
    jobs=("chief", "master"),
    other_names=("master", "coordinator"),
    default=1,
    most=1,
    leads=True,
    runs_program_in=("coordinator", "all-tasks"),
    gpus="own",
)
WORKER = Role(
    name="worker",
    description="Number of workers: 1 or more",
    limits_description="Limits and environment of every worker",
    block=Block(range(100, 255), lambda size: range(_middle(size), size - 1), grows=(1, 2)),
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
    limits_description="Limits and environment of every parameter server",
    block=Block(range(20, 100), lambda size: range(4, _middle(size)), grows=(2, 4)),
    plural="ps",
    other_names=("parameter_server", "parameter_servers"),
    default=2,
    runs_program_if="ps_runs",
    no_gpus="keeps its parameters in main memory and never gets a GPU",
)
EVALUATOR = Role(
    name="evaluator",
    description="Number of side-car evaluators: 0 or 1, with a separate cluster spec",
    limits_description="Limits and environment of the evaluator",
    block=Block(range(11, 12), lambda _size: range(3, 4)),
    most=1,
    evaluates=True,
    runs_program_in=("coordinator", "all-tasks"),
    gpus="own",
    cpu_shares=128,  # an eighth of a task's weight: the evaluator waits, not the training
)
DATA_WORKER_NAME = "data_worker"
DATA_DISPATCHER = Role(
    name="data_dispatcher",
    description="The dispatcher of tf.data service: one if there are data workers",
    limits_description="Limits and environment of the data service's dispatcher",
    block=Block(range(2, 3), lambda _size: range(0)),
    most=1,
    feeds=True,
    one_for=DATA_WORKER_NAME,
    no_gpus="tells data workers what to do and never gets a GPU",
)
DATA_WORKER = Role(
    name=DATA_WORKER_NAME,
    description="Number of tf.data service's workers, which prepare the input: 0 or more",
    limits_description="Limits and environment of every data worker",
    block=Block(range(3, 10), lambda _size: range(0), grows=(4, 4)),
    plural="data_workers",
    feeds=True,
    no_gpus="prepares the input on CPUs and never gets a GPU",
)


def gpu_pool(style: Style, *, has_ps: bool) -> tuple[Role, ...]:
    """The roles whose tasks get GPUs from the manifest's `gpus`.

    In an all-reduce these are also the chief's: TensorFlow refuses a group of CPUs and GPUs.
    """
    reduces = style == "all-tasks" and not has_ps
    return tuple(
        role
        for role in ROLES.values()
        if role.gpus == "pool" or (reduces and role.trains and role.gpus == "own")
    )


def trainers(style: Style) -> tuple[Role, ...]:
    """The roles whose tasks compute gradients. A coordinator only sends others their work."""
    return tuple(
        role
        for role in ROLES.values()
        if role.leads and (style == "all-tasks" or style not in role.runs_program_in)
    )


def _middle(size: int) -> int:
    """First offset of the workers' block in a subnet of `size` addresses; a /29 fits two."""
    return max(size // 2, 5)


ROLES: Mapping[str, Role] = MappingProxyType(
    {role.name: role for role in (CHIEF, WORKER, PS, EVALUATOR, DATA_DISPATCHER, DATA_WORKER)}
)
"""The roles by name, in the order in which tasks are listed."""
