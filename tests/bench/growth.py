"""Measures what more workers and a larger model cost, in both ways, with every kind of training.

Each cell runs alone: seconds from `docker compose up` to the leader's first step and to that of the
last worker, then wall time and CPU time of a step, and the memory of all containers. From the
smallest to the largest cell of a row, the kit's cost must not grow by more than the plain way's.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import docker as docker_sdk

from cluster_kit.machine import arp_table
from cluster_kit.plan import addresses
from cluster_kit.resolved import Cluster
from tests.bench.bench import HERE, Bench, BenchError, compose, load, removed
from tests.bench.clusters import kit_file, plain_file
from tests.bench.measured import Bar, Measured, Result, Skipped

JOB = HERE / "growth_job.py"
KINDS = ("async", "sync", "all-reduce")
WORKERS = (1, 2, 4, 8, 16, 32)
MEGABYTES = (1, 10, 100)
FEW_WORKERS, SMALL_MB = 2, 1
"""The workers of the larger models, and the size of the model of many workers."""
PS = 2
SETTLES_S, WINDOW_S = 4.0, 10.0
"""Seconds before the measured steps begin, once all workers train, and of these. In the plain way,
a worker that finds no initialized model looks again after 30 s."""
STEPS, LONGEST_S = 4, 180.0
"""The least number of measured steps, and the seconds after which a job is too slow for them."""
FIRST_STEP_S = 600.0
BAR = Bar(1.1)
"""The growth of the kit divided by that of the plain way; single runs differ by a tenth."""
COLORS = {"async": "#2f7d6d", "sync": "#c2452d", "all-reduce": "#3b6ea8"}
_SAID = re.compile(r"^(first|at) (\d+) ([\d.]+)$", re.MULTILINE)
FIGURES = {
    "first_step_s": ("to the first step", "s"),
    "all_train_s": ("until all workers train", "s"),
    "step_ms": ("a step", "ms"),
    "step_cpu_ms": ("CPU of a step", "ms"),
    "memory_mb": ("memory", "MB"),
}


@dataclass(frozen=True)
class Cell:
    kind: str
    workers: int
    megabytes: int

    @property
    def ps(self) -> int:
        return 0 if self.kind == "all-reduce" else PS

    @property
    def title(self) -> str:
        plural = "" if self.workers == 1 else "s"
        return f"{self.kind}, {self.workers} worker{plural}, {self.megabytes} MB"

    @property
    def key(self) -> str:
        return f"growth_{self.kind}_{self.workers}_{self.megabytes}".replace("-", "_")


@dataclass(frozen=True)
class Cost:
    """Of all containers together; a step is the time between two updates."""

    first_step_s: float
    all_train_s: float
    step_ms: float
    step_cpu_ms: float
    memory_mb: float


def rows(kind: str, *, quick: bool) -> tuple[list[Cell], list[Cell]]:
    """Returns the cells of a kind by number of workers, and by size of the model; both grow."""
    workers = (2, 4) if quick else WORKERS
    sizes = (1, 10) if quick else MEGABYTES
    return (
        [Cell(kind, count, SMALL_MB) for count in workers],
        [Cell(kind, FEW_WORKERS, size) for size in sizes],
    )


def measure(bench: Bench) -> list[Result]:
    """Returns the figures of every cell, and how much each grew from a row's first to its last."""
    results: list[Result] = []
    costs: dict[Cell, tuple[list[Cost], list[Cost]]] = {}
    for kind in bench.sizes(KINDS):
        for row in rows(kind, quick=bench.quick):
            for cell in row:
                if cell in costs:
                    continue
                load_before = load()
                try:
                    costs[cell] = _both(bench, cell)
                except BenchError as error:  # the other cells are not lost
                    results.append(Skipped(cell.key, cell.title, str(error).partition("\n")[0]))
                else:
                    results += _figures(cell, *costs[cell], (load_before, load()))
            if {row[0], row[-1]} <= costs.keys():
                results += [more(row, costs, name) for name in FIGURES]
    return results


def _both(bench: Bench, cell: Cell) -> tuple[list[Cost], list[Cost]]:
    """Returns the costs of both ways, measured in turns."""
    kit, plain = [], []
    for _ in bench.times(1):
        for write, found in ((plain_file, plain), (kit_file, kit)):
            said = (cell.kind, str(cell.megabytes))
            cluster, file = write(bench, cell.workers, cell.ps, *said, program=JOB, chief=0)
            _make_room_in_arp_table(cluster)
            found.append(_cost(cluster.name, cell.workers, file))
        was, now = plain[-1], kit[-1]
        bench.say(
            f"{cell.title}: first step {was.first_step_s:.1f} s, kit {now.first_step_s:.1f};"
            f" all workers train {was.all_train_s:.1f} s, kit {now.all_train_s:.1f};"
            f" step {was.step_ms:.1f} ms, kit {now.step_ms:.1f}; its CPU {was.step_cpu_ms:.1f} ms,"
            f" kit {now.step_cpu_ms:.1f}; memory {was.memory_mb:.0f} MB, kit {now.memory_mb:.0f}"
        )
    return kit, plain


def _make_room_in_arp_table(cluster: Cluster) -> None:
    """Let the kernel's ARP table hold the addresses of all tasks, as `up` does: here `docker
    compose` starts them. If it is full, TensorFlow's sessions do not begin."""
    if (table := arp_table.read()) and (limit := addresses.arp_limit(cluster, table)):
        arp_table.widen(limit)


def _cost(cluster: str, workers: int, file: Path) -> Cost:
    """Run the job until it is measured.

    Raises:
        BenchError: a worker's first step did not come in time, or the job made no step after that.
    """
    client = docker_sdk.from_env()
    with removed(file):
        began = time.time()
        compose(file, "up", "--detach")
        training = [client.containers.get(f"{cluster}-worker-{at}") for at in range(workers)]
        firsts = [_first_step(worker, began + FIRST_STEP_S) for worker in training]
        leader = training[0]
        time.sleep(SETTLES_S)
        names = [one.name for one in client.containers.list(filters={"name": f"{cluster}-"})]
        before, begin = _used(client, names), time.time()
        time.sleep(WINDOW_S)
        while (
            len(inside := _steps_since(leader, begin)) < STEPS and time.time() < begin + LONGEST_S
        ):
            time.sleep(1)
        after, end = _used(client, names), time.time()
    client.close()
    if len(inside) < STEPS:
        raise BenchError(f"{cluster} made {len(inside)} steps in {LONGEST_S:g} s")
    steps, took = inside[-1][0] - inside[0][0], inside[-1][1] - inside[0][1]
    cpu_per_s = (after[0] - before[0]) / (end - begin)
    step_ms = 1000 * took / steps
    return Cost(firsts[0] - began, max(firsts) - began, step_ms, step_ms * cpu_per_s, after[1])


def _steps_since(
    leader: docker_sdk.models.containers.Container, begin: float
) -> list[tuple[int, float]]:
    """Returns the numbers of steps that the leader has told since then, with their times."""
    said = ((int(step), float(at)) for _, step, at in _SAID.findall(_log(leader)))
    return [(step, at) for step, at in said if at >= begin]


def _first_step(worker: docker_sdk.models.containers.Container, until: float) -> float:
    """Returns the time of this worker's first step."""
    while True:
        worker.reload()
        over = worker.status == "exited" or time.time() >= until
        for kind, _, at in _SAID.findall(_log(worker)):
            if kind == "first":
                return float(at)
        if over:
            break
        time.sleep(0.5)
    raise BenchError(
        f"{worker.name} made no first step:\n" + "\n".join(_log(worker).splitlines()[-20:])
    )


def _log(worker: docker_sdk.models.containers.Container) -> str:
    return str(worker.logs(stderr=False).decode(errors="replace"))


def _used(client: docker_sdk.DockerClient, names: Sequence[str]) -> tuple[float, float]:
    """Returns the CPU seconds that these containers have used together, and their memory in MB.

    Files that the kernel keeps in its cache do not count as memory.
    """

    def of(name: str) -> tuple[float, float]:
        stats = client.api.stats(name, stream=False, one_shot=True)
        memory = stats["memory_stats"]
        cached = memory.get("stats", {}).get("inactive_file", 0)
        used = memory.get("usage", 0) - cached
        return stats["cpu_stats"]["cpu_usage"]["total_usage"] / 1e9, used / 1e6

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(of, names))
    return sum(cpu for cpu, _ in found), sum(memory for _, memory in found)


def _figures(
    cell: Cell, kit: Sequence[Cost], plain: Sequence[Cost], loads: tuple[float, float]
) -> list[Measured]:
    return [
        Measured(
            *(f"{cell.key}_{name}", f"{cell.title}: {words}", unit, None),
            tuple(getattr(one, name) for one in kit),
            tuple(getattr(one, name) for one in plain),
            load=loads,
        )
        for name, (words, unit) in FIGURES.items()
    ]


def more(
    row: Sequence[Cell], costs: dict[Cell, tuple[list[Cost], list[Cost]]], name: str
) -> Result:
    """Returns how much more the last cell of a row costs than the first; skipped if no more."""
    first, last = row[0], row[-1]
    words, unit = FIGURES[name]
    key, title = f"{last.key}_more_{name}", f"{last.title}, more than {first.title}: {words}"
    kit, plain = (
        tuple(
            getattr(large, name) - getattr(small, name)
            for small, large in zip(costs[first][way], costs[last][way], strict=True)
        )
        for way in (0, 1)
    )
    if min(plain) <= 0:
        return Skipped(key, title, f"the plain way's did not grow: {min(plain):+.1f} {unit}")
    return Measured(key, title, unit, BAR, kit, plain)


def draw(results: Sequence[Result], file: Path, *, quick: bool) -> None:
    """Draw each figure over the number of workers and over the model's size."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import LogLocator, NullLocator

    found = {one.key: one for one in results if isinstance(one, Measured)}
    figure, grid = plt.subplots(
        len(FIGURES), 2, figsize=(11, 3.25 * len(FIGURES)), layout="constrained"
    )
    for axes, (name, (words, unit)) in zip(grid, FIGURES.items(), strict=True):
        for kind, color in COLORS.items():
            for at, row in enumerate(rows(kind, quick=quick)):
                measured = [(cell, found.get(f"{cell.key}_{name}")) for cell in row]
                grows = [
                    cell.workers if at == 0 else cell.megabytes for cell, one in measured if one
                ]
                for way, style in (("kit", "-"), ("other", "--")):
                    costs = [median(getattr(one, way)) for _, one in measured if one]
                    label = f"{kind}, {'kit' if way == 'kit' else 'plain way'}"
                    axes[at].plot(grows, costs, style, color=color, marker="o", label=label)
        for at, words_below in enumerate((f"workers, {SMALL_MB} MB", f"MB, {FEW_WORKERS} workers")):
            axes[at].set(xscale="log", yscale="log", xlabel=words_below, ylabel=f"{words}, {unit}")
            ticks = (WORKERS, MEGABYTES)[at]
            axes[at].set_xticks(ticks, map(str, ticks))
            axes[at].xaxis.set_minor_locator(NullLocator())
            axes[at].yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axes[at].yaxis.set_major_formatter("{x:g}")
            axes[at].yaxis.set_minor_locator(NullLocator())
            axes[at].grid(color="#e6eaed")
    grid[0][0].legend(fontsize=8, frameon=False)
    figure.savefig(file, dpi=80, facecolor="white")
    plt.close(figure)
