"""The outcome of a run and of its tasks, as in outcome.json."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from cluster_kit.contract.endings import NOT_FAILED
from cluster_kit.contract.events import End, Epoch, Evaluation
from cluster_kit.errors import DataFailed, EngineError, HostError, Interrupted, ManifestError
from cluster_kit.observe.state import RunState
from cluster_kit.observe.task_view import GOOD_CODES, State, TaskView, code_of
from cluster_kit.observe.usage import Use
from cluster_kit.platforms.engine import Container
from cluster_kit.resolved import Cluster
from cluster_kit.run.verdict import Reason, Verdict, notes_of, out_of_memory
from cluster_kit.workspace import RunDirectory, write_atomically

if TYPE_CHECKING:  # few commands read an outcome
    from pydantic import TypeAdapter


@dataclass(frozen=True)
class TaskUsage:
    """The usage of one task while it ran: busy CPUs, bytes, bytes per second (received and sent),
    and the share of time in which its GPUs computed (0 to 1); None: unknown."""

    cpus_mean: float | None
    cpus_peak: float | None
    memory_mean: int
    memory_peak: int
    network_peak_bps: int | None
    gpu_busy_mean: float | None
    gpu_memory_peak: int | None


@dataclass(frozen=True)
class TaskOutcome:
    """The outcome of one task.

    `gpu` has the ids that the engine reserved, `gpu_seen` those that TensorFlow found (None if it
    was not checked); `rx_bytes` and `tx_bytes` are the bytes that its container received and sent,
    None if unknown; `usage` is None if the task wrote none.
    """

    name: str
    role: str
    index: int
    ip: str
    gpu: list[str]
    gpu_seen: list[str] | None
    exit_code: int | None
    restarts: int
    oom: bool
    rx_bytes: int | None
    tx_bytes: int | None
    usage: TaskUsage | None = None


def task_outcome(name: str, seen: RunState, container: Container | None) -> TaskOutcome:
    view, end, use = seen.tasks[name], seen.end_of(name) or End(), seen.uses.get(name)
    return TaskOutcome(
        name=name,
        role=view.role,
        index=int(name.rpartition("-")[2]),
        ip=container.ip if container else view.ip,
        gpu=list(container.gpus if container else view.gpus),
        gpu_seen=seen.devices(name),
        exit_code=_exit_code(view, seen.final_failures(name), container, end),
        restarts=view.restarts,
        oom=out_of_memory(seen, name) or bool(container and container.oom),
        rx_bytes=_count(end.rx_bytes, use.rx_before if use else 0.0),
        tx_bytes=_count(end.tx_bytes, use.tx_before if use else 0.0),
        usage=_usage(use),
    )


def _count(value: float | None, before: float) -> int | None:
    """Returns the value, and what was counted before, as a count; None if it is not one, whatever a
    task has written."""
    return int(value + before) if value is not None and value >= 0 else None


def _usage(use: Use | None) -> TaskUsage | None:
    if use is None:
        return None
    return TaskUsage(
        cpus_mean=_rounded(use.cpus_mean, 3),
        cpus_peak=_rounded(use.cpus_peak, 3),
        memory_mean=round(use.memory_mean),
        memory_peak=round(use.memory_peak),
        network_peak_bps=None if use.bps_peak is None else round(use.bps_peak),
        gpu_busy_mean=_rounded(use.gpu_busy_mean, 3),
        gpu_memory_peak=None if use.gpu_memory_peak is None else round(use.gpu_memory_peak),
    )


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)


def _exit_code(
    view: TaskView, failures: Sequence[End], container: Container | None, end: End
) -> int | None:
    """The exit code that the engine reports, else that of the task's last failure.

    The engine reports no exit code for a failed task that it has just restarted, and 0 for a task
    that stayed after its program had failed for good.
    """
    code = container.exit_code if container else view.exit_code
    if code in GOOD_CODES and (of_program := code_of(end)) is not None:
        return of_program
    if code is None and failures and isinstance(failures[-1].exit_code, int):
        return failures[-1].exit_code
    return code


FORMAT = 1
"""The version of outcome.json; increased if the meaning of a key changes or a key is removed."""
REASON_BY_CODE = {
    ManifestError.exit_code: Reason.MANIFEST,
    HostError.exit_code: Reason.HOST,
    EngineError.exit_code: Reason.ENGINE,
    DataFailed.exit_code: Reason.DATA,
    Interrupted.exit_code: Reason.INTERRUPTED,
}
"""The reason of a run that an error of the kit ended before its verdict, by the error's exit
code."""


@dataclass(frozen=True)
class Outcome:
    """The verdict on a run, with its tasks, timings (seconds) and metrics.

    `blame` is the task that is to blame, or None; `last_words` is the end of its log, without the
    message; `cure` is the hint, or ""; `run` is the path of the run's directory, `id` the label of
    its containers, which still exist if `kept`. `program_exit_code` is the exit code of the program
    that decided the run, or None. `decided` is a sentence about who decided, "" if the leader did.
    `resumed` is whether the run continued an earlier one in its directory; all else is about the
    time since then. `format` is the version of outcome.json.
    """

    cluster: str
    success: bool
    exit_code: int
    reason: str
    blame: str | None
    message: str
    last_words: str
    notes: list[str]
    tasks: list[TaskOutcome]
    timings_s: dict[str, float]
    metrics: dict[str, Any]
    cure: str
    run: str
    id: str = ""
    kept: bool = False
    program_exit_code: int | None = None
    decided: str = ""
    resumed: bool = False
    format: int = FORMAT

    def as_json(self) -> dict[str, Any]:
        """The values of outcome.json."""
        return asdict(self)

    def write(self, run: RunDirectory) -> None:
        """Write outcome.json into the run's directory; raises OSError."""
        write_atomically(run.outcome, json.dumps(self.as_json(), indent=2) + "\n")


def without_run(facts: Mapping[str, Any]) -> Outcome:
    """The outcome of a run that never started, from the error that `up --json` printed."""
    error = facts["error"]
    code = int(error["exit_code"])
    reason = REASON_BY_CODE.get(code, Reason.INTERNAL)
    message, hint = str(error["message"]), str(error.get("cure", ""))
    return replace(NOTHING, exit_code=code, reason=reason, message=message, cure=hint)


NOTHING = Outcome("", False, 1, "", None, "", "", [], [], {}, {}, "", "")
"""The outcome of a run about which nothing is known."""


def outcome_of(
    cluster: Cluster,
    verdict: Verdict,
    seen: RunState,
    containers: Sequence[Container],
    run: RunDirectory,
    *,
    last_words: str = "",
    hint: str = "",
    run_id: str = "",
    kept: bool = False,
    resumed: bool = False,
) -> Outcome:
    """The outcome of a run, with `timings_s` still empty.

    Args:
        containers: the cluster's containers before they were stopped.
    """
    by_name = {container.name: container for container in containers}
    tasks = [task_outcome(task.name, seen, by_name.get(task.name)) for task in cluster.tasks]
    return Outcome(
        cluster=cluster.name,
        success=verdict.success,
        exit_code=verdict.exit_code,
        reason=verdict.reason,
        blame=verdict.blame or None,
        message=verdict.message,
        last_words=last_words,
        notes=notes_of(cluster, seen),
        tasks=tasks,
        timings_s={},
        metrics=metrics(seen, is_over=True),
        cure=hint,
        run=str(run.path),
        id=run_id,
        kept=kept,
        program_exit_code=_program_exit_code(verdict, seen, tasks),
        decided=verdict.decided,
        resumed=resumed,
    )


def _program_exit_code(
    verdict: Verdict, seen: RunState, tasks: Sequence[TaskOutcome]
) -> int | None:
    """The exit code of the program that decided the run, None if none did.

    It is 0 after a success. After a failure it is the exit code of the last failure of the task to
    blame: 128 + the number of the signal if a signal ended it. It is None if the kit or a user
        ended the program, or if it never started.
    """
    if verdict.success:
        return 0
    if verdict.reason != Reason.FAILED:
        return None
    # Its container may have been restarted since, and stopped at the end of the job.
    exit_codes = [life.exit_code for life in seen.lives_of(verdict.blame)]
    exit_codes += [task.exit_code for task in tasks if task.name == verdict.blame]
    return next((code for code in reversed(exit_codes) if code not in (None, *NOT_FAILED)), None)


def metrics(seen: RunState, *, is_over: bool = False) -> dict[str, Any]:
    """The final metrics by name: the reported ones, else the last loss and accuracy of a leader
    that has ended, and of its validation; and the evaluator's accuracy.

    Args:
        is_over: the run has ended, even if the leader was only told to: after Ctrl-C.
    """
    newest, last = seen.metrics(), seen.tasks[seen.leader]
    figures: dict[str, float | None] = {}
    if not newest and (is_over or last.state is State.ENDED):
        figures = {"accuracy": last.accuracy, "loss": last.loss, **_of_epochs(seen)}
    for name in seen.evaluators:
        _, evaluation = seen.last(name, Evaluation) or (0.0, Evaluation())
        if evaluation.accuracy is not None:
            figures["validation_accuracy"] = evaluation.accuracy
    newest = {**{name: value for name, value in figures.items() if value is not None}, **newest}
    return {name: _as_json(value) for name, value in newest.items()}


VALIDATION = "val_"
"""Begins the name of a figure of `fit`'s validation in Keras's logs."""


def _of_epochs(seen: RunState) -> dict[str, float | None]:
    """The scores of the leader's last `fit` and of its validations, each the last one."""
    newest: dict[str, float | None] = {}
    number, ended = 0.0, 0.0
    for entry in seen.entries:
        if entry.task != seen.leader or not isinstance(entry.event, Epoch):
            continue
        epoch = entry.event
        if epoch.epoch is not None and epoch.epoch <= number and entry.time != ended:
            newest.clear()  # another `fit`, or another model's: one epoch can have two lines
        number, ended = epoch.epoch or number, entry.time
        of_validation = {"val_loss": epoch.val_loss, "val_accuracy": epoch.val_accuracy}
        scores = {**of_validation, **(epoch.scores or {})}
        newest |= {name: value for name, value in scores.items() if value is not None}
    return {re.sub(f"^{VALIDATION}", "validation_", name): one for name, one in newest.items()}


def _as_json(value: object) -> object:
    """The value; None for NaN, which a diverging training reports and JSON does not have."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


@cache
def _outcomes() -> TypeAdapter[Outcome]:
    from pydantic import TypeAdapter

    return TypeAdapter(Outcome)


def read_outcome(run: RunDirectory, of: str = "") -> Outcome | None:
    """The saved outcome of a run; None if it is missing, invalid or another run's.

    Until a resumed run ends, its directory has the outcome of the previous run.

    Args:
        of: the id of the run; "" accepts any.
    """
    try:
        outcome = _outcomes().validate_json(run.outcome.read_bytes())
    except (OSError, ValueError):
        return None
    return outcome if of in ("", outcome.id) else None


def outcome_from(facts: Mapping[str, Any]) -> Outcome:
    """The outcome from values written by `as_json`; keys that an older kit did not write keep their
    defaults.

    Raises:
        ValueError: the values are invalid, or have a format that this kit does not know.
    """
    if facts.get("format", FORMAT) != FORMAT:
        raise ValueError(f"format {facts['format']!r} is not {FORMAT}, which this kit reads")
    return _outcomes().validate_python({**NOTHING.as_json(), **facts})
