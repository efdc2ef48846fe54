"""Trains a manifest's program for a short time on one and two workers, to measure a profile of it.

One worker tells what does not grow, two tell what does, and a slower link what overlaps. A last run
moves tensors between bare servers: the most that the transport allows here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster_kit.contract.endings import JOB_DEADLINE
from cluster_kit.errors import Interrupted, TrainingFailed
from cluster_kit.host import Host
from cluster_kit.predict.measure import Figures
from cluster_kit.predict.profile import PS_WAYS
from cluster_kit.roles import CHIEF, EVALUATOR, PS, WORKER
from cluster_kit.run.launch import launch
from cluster_kit.run.outcome import Outcome
from cluster_kit.run.request import Request
from cluster_kit.show.view import View
from cluster_kit.util.paths import TEMPLATES
from cluster_kit.util.terminal import counted
from cluster_kit.workspace import RunDirectory, Workspace

LEAST_MBIT, MOST_MBIT = 1, 10_000
WIRE_PART = 0.5
"""The part of a step that communication takes on the slower link."""
TRANSFER = TEMPLATES / "measure" / "transfer.toml"


@dataclass(frozen=True)
class Short:
    """A short run: so many workers and ps, on links of `mbit` (None: the manifest's)."""

    workers: int
    ps: int
    mbit: int | None = None

    @property
    def title(self) -> str:
        """`2 workers, 1 ps, 50 Mbit/s`."""
        words = [counted(self.workers, WORKER.name)]
        words += [f"{self.ps} ps"] if self.ps else []
        return ", ".join([*words, *([f"{self.mbit} Mbit/s"] if self.mbit else [])])


def first_runs(by_ps: bool, least: int = 1) -> tuple[Short, Short]:
    """The runs on the manifest's own links, of so many workers and of one more."""
    return Short(least, int(by_ps)), Short(least + 1, int(by_ps))


def slower(figures: Figures) -> Short:
    """The run on a link on which communication takes WIRE_PART of a step.

    Args:
        figures: of two workers for an all-reduce, of as few as use them for ps.
    """
    step = figures.workers * figures.seconds / figures.steps
    moved = (figures.per_step("received") or 0.0) + (figures.per_step("sent") or 0.0)
    mbit = 8e-6 * moved / (WIRE_PART * step)
    if figures.bandwidth:
        mbit = min(mbit, figures.bandwidth * 1e-6 / 2)
    workers = figures.workers if figures.way in PS_WAYS else 2
    return Short(workers, figures.ps, max(LEAST_MBIT, min(MOST_MBIT, round(mbit))))


def overrides(short: Short, seconds: float, has_chief: bool) -> dict[str, Any]:
    """The keys of a manifest that a short run overrides."""
    keys: dict[str, Any] = {
        WORKER.name: short.workers,
        PS.name: short.ps,
        EVALUATOR.name: 0,
        "deadline": {"job": f"{seconds:g}s"},
    }
    if short.mbit:
        shaped = {"bandwidth": f"{short.mbit}mbit"}
        keys["role"] = {WORKER.name: shaped, **({PS.name: shaped} if short.ps else {})}
        if has_chief and not short.ps:
            keys["role"][CHIEF.name] = shaped
    return keys


def run(
    host: Host,
    manifest: str,
    keys: Mapping[str, Any],
    workspace: Workspace,
    new_view: Callable[[], View],
) -> Outcome:
    """Run it to its end, or to its deadline, which is no failure here.

    Raises:
        Interrupted: Ctrl-C was pressed; the cluster was removed.
        TrainingFailed: it failed for another reason than its deadline.
    """
    view = new_view()
    host.interrupts.interrupt_once()  # the end of the previous run ignored these signals
    try:
        outcome = launch(host, Request(manifest, dict(keys)), workspace, view, keep=False,
                         resume=False)  # fmt: skip
    finally:
        view.close()
    if outcome.exit_code == Interrupted.exit_code:
        raise Interrupted("the measurement was interrupted", "start it again")
    if not outcome.success and outcome.reason != JOB_DEADLINE:
        raise TrainingFailed(
            f"a run of the measurement failed: {outcome.message.partition(chr(10))[0]}",
            f"`cluster-kit summary {outcome.run}` shows why; `cluster-kit up {manifest}` must work",
        )
    return outcome


def transfer(host: Host, workspace: Workspace, new_view: Callable[[], View]) -> Outcome:
    """Move tensors between servers without limits."""
    return run(host, str(TRANSFER), {}, workspace, new_view)


def directory(outcome: Outcome) -> RunDirectory:
    """The directory of a run that has ended."""
    return RunDirectory(Path(outcome.run))
