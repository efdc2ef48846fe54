"""Runs a user's command inside a task, or profiles the training."""

from __future__ import annotations

import contextlib
import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster_kit.errors import EngineError, HostError, Interrupted, UsageError
from cluster_kit.host import Host
from cluster_kit.observe import user_requests
from cluster_kit.observe.task_view import State
from cluster_kit.platforms.container import START
from cluster_kit.platforms.engine import SIDECAR, Container, Engine, reaching
from cluster_kit.report.page import LARGEST, checked
from cluster_kit.resolved import OUTPUT
from cluster_kit.roles import PS, ROLES
from cluster_kit.util.nearest import proposal

SHELL = ("sh", "-c", "if command -v bash >/dev/null; then exec bash; else exec sh; fi")
KILL_ALL = "kill -9 -1"
"""-1 means every process except the first one, which ends with its child, and the shell."""
CRASH = ("sh", "-c", KILL_ALL)
MARK = "CLUSTER_KIT_EXEC"
INTERRUPT = (
    "import os, signal, sys\n"
    "for pid in filter(str.isdigit, os.listdir('/proc')):\n"
    "    try:\n"
    "        if sys.argv[1].encode() in open(f'/proc/{pid}/environ', 'rb').read():\n"
    "            os.kill(int(pid), signal.SIGINT)\n"
    "    except OSError:\n"
    "        pass\n"
)
"""Interrupts every process whose environment has the mark, since the engine does not do that."""
PATIENCE_S = 2
UNPRIVILEGED = (
    "import ctypes, os, signal, sys\n"
    "for number in (signal.SIGPIPE, signal.SIGXFSZ):\n"  # which Python ignores
    "    signal.signal(number, signal.SIG_DFL)\n"
    "kernel = ctypes.CDLL(None)\n"
    "for capability in range(64):\n"
    "    kernel.prctl(24, capability, 0, 0, 0)\n"  # PR_CAPBSET_DROP
    "kernel.prctl(47, 4, 0, 0, 0)\n"  # PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL
    "kernel.capset((ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)())\n"
    "try:\n"
    "    os.execvp(sys.argv[1], sys.argv[1:])\n"
    "except OSError as error:\n"
    "    print(f'{sys.argv[1]}: {error.strerror}', file=sys.stderr)\n"
    "    sys.exit(127 if isinstance(error, FileNotFoundError) else 126)\n"
)
"""Runs a command without capabilities. The container of a task with a `bandwidth` has capabilities.
The task drops them, but the engine gives them to every command that runs as root."""


def task_of(engine: Engine, cluster: str, task: str) -> Container:
    """The container of a task of a cluster that is up.

    Raises:
        HostError: the cluster is not up.
        UsageError: it has no such task.
    """
    containers = [*engine.containers(cluster), *engine.sidecars(cluster)]
    known = [container.name for container in containers]
    if task in known:
        return containers[known.index(task)]
    if task in engine.clusters():
        raise UsageError(
            f"{task} is a cluster, not a task", f"name a task, and the cluster by `--name {task}`"
        )
    if not containers:
        raise HostError(
            f"no task of {cluster} is running",
            f"start it with `cluster-kit up {cluster}`; `cluster-kit status` shows what is up",
        )
    raise UsageError(f"{cluster} has no task {task}", proposal(task, known))


def refuse_idle(container: Container) -> None:
    """Raise HostError if no command can be run in this container now."""
    where = f"{container.name} of {container.cluster}"
    state = State.of_engine(container.state)
    if state is State.ENDED:
        requests = user_requests.of_containers([container])
        asked = user_requests.last(requests, container.name, container.started)
        if asked and asked.what == user_requests.STOP:
            raise HostError(
                f"{container.cluster} is stopped: no command can be run in {container.name}",
                f"`cluster-kit start {container.cluster}` goes on",
            )
        raise HostError(
            f"{where} has ended (exit code {container.exit_code}): no command can be run in it",
            f"`cluster-kit logs {container.cluster} {container.name}` shows its log; while the job "
            f"runs, `cluster-kit restart {container.name} --name {container.cluster}` starts it "
            "again",
        )
    if state is State.PAUSED:
        raise HostError(
            f"{where} is paused: no command can be run in it",
            f"`docker unpause {container.cluster}-{container.name}` lets it continue",
        )
    if state is not State.RUNNING:
        raise HostError(
            f"{where} is {state}: no command can be run in it",
            f"run it again when `cluster-kit status {container.cluster}` shows that it runs",
        )


def as_the_task(container: Container, command: Sequence[str]) -> Sequence[str]:
    """The command with no more rights than its task has."""
    is_root = container.user.partition(":")[0] == "0" and container.role != SIDECAR
    return ("python3", "-ISc", UNPRIVILEGED, *command) if is_root else command


def run_inside(
    host: Host, engine: Engine, container: Container, command: Sequence[str], *, terminal: bool
) -> int:
    """Run a command inside a running container, with this process's stdin and stdout; returns its
    exit code.

    It runs with the task's variables and user, in the output directory.

    Args:
        terminal: give it a terminal, which is connected to this process's terminal.
    Raises:
        Interrupted: Ctrl-C; the command in the container is interrupted, too.
    """
    refuse_idle(container)
    mark = f"{MARK}={secrets.token_hex(8)}"
    # With a terminal, Ctrl-C is a character that goes to the command.
    options = ["--interactive", *(["--tty"] if terminal else []), "--env", mark]
    options += ["--workdir", OUTPUT] if container.role != SIDECAR else []
    options += [*(["--user", container.user] if container.user else [])]
    try:
        words = as_the_task(container, command)
        return host.processes.hand_over(["docker", "exec", *options, container.id, *words])
    except KeyboardInterrupt:
        with contextlib.suppress(EngineError):
            reaching(engine).ask(container.id, ("python3", "-ISc", INTERRUPT, mark), PATIENCE_S)
        raise Interrupted(f"interrupted: the command in {container.name}, too") from None


COMMAND = (*START, "profile")
MOST_S = 60.0
SAVES_S = 120
"""Seconds for saving and merging traces after the traced time; many tasks share one CPU."""
STARTING = ("created", "restarting")


@dataclass(frozen=True)
class Profile:
    """A recorded trace: the facts of its profile.json, and the directory that contains both."""

    facts: Mapping[str, Any]
    folder: Path

    @property
    def trace(self) -> Path:
        return self.folder / str(self.facts["trace"])


def refuse_seconds(seconds: float) -> None:
    """Raise UsageError if a profile cannot have this length."""
    if not 0 < seconds <= MOST_S:
        raise UsageError(
            f"--seconds {seconds:g}: a profile takes more than 0 and at most {MOST_S:g} seconds",
            "2 show some steps of most programs: --seconds 2",
        )


def profiled_tasks(
    containers: Sequence[Container], cluster: str, tasks: Sequence[str]
) -> list[str]:
    """The tasks to trace: the given ones, or all that can have a TensorFlow server; without a ps,
    in an all-reduce, only the leader: TensorFlow's profiler can crash the others.

    Raises:
        HostError: the cluster is not up.
        UsageError: it has no such task, or the task has no server.
    """
    if not containers:
        raise HostError(
            f"no task of {cluster} is running",
            f"start it with `cluster-kit up {cluster}`; profile it while it trains",
        )
    known = [one.name for one in containers if ROLES[one.role].trains]
    for task in tasks:
        if task in known:
            continue
        if task in (one.name for one in containers):
            raise UsageError(
                f"{task} has no TensorFlow server that could trace it", f"one of {', '.join(known)}"
            )
        raise UsageError(f"{cluster} has no task {task}", proposal(task, known))
    return list(dict.fromkeys(tasks)) or _safe(containers, known)


def _safe(containers: Sequence[Container], known: list[str]) -> list[str]:
    leaders = [one.name for one in containers if one.leader]
    return known if any(one.role == PS.name for one in containers) else leaders or known


LEFT_OUT = (
    ", only {}: TensorFlow's profiler can crash the others of an all-reduce; name them to trace "
    "them all the same"
)


def profile(
    engine: Engine, cluster: str, seconds: float, tasks: Sequence[str], say: Callable[[str], None]
) -> Profile:
    """Trace these tasks of a running cluster, or `profiled_tasks`; takes a little more than
    `seconds`.

    Args:
        say: called with a sentence when the trace begins.
    Raises:
        HostError: the cluster is not up, no task could be traced, or the asked one has ended.
        UsageError: the seconds or a task are invalid.
        EngineError: the container did not answer.
    """
    refuse_seconds(seconds)
    containers = engine.containers(cluster)
    wanted = profiled_tasks(containers, cluster, tasks)
    profiler = _who_is_asked(containers, cluster)
    command = (*COMMAND, f"{seconds:g}", *wanted)
    all_tasks = [one.name for one in containers if ROLES[one.role].trains]
    only = LEFT_OUT.format(*wanted) if not tasks and len(wanted) < len(all_tasks) else ""
    say(f"tracing {cluster} for {seconds:g} s{only}")
    output = reaching(engine).ask(profiler.id, command, round(seconds) + SAVES_S)
    facts = _facts(output)
    if facts is None:
        if not any(one.id == profiler.id and _runs(one) for one in engine.containers(cluster)):
            raise HostError(
                f"{profiler.name} ended before the trace was complete",
                "trace a run earlier, or for a shorter time: `--seconds`",
            )
        raise _refusal(profiler, output)
    return Profile(facts, Path(profiler.output) / str(facts["folder"]))


def _who_is_asked(containers: Sequence[Container], cluster: str) -> Container:
    """The task to send the request to: the leader if it runs, else another running task."""
    running = [one for one in containers if _runs(one) and ROLES[one.role].trains]
    if not running:
        raise HostError(
            f"no task of {cluster} is running: nothing can be traced",
            f"`cluster-kit status {cluster}` shows what its tasks do",
        )
    return next((one for one in running if one.leader), running[0])


def _runs(container: Container) -> bool:
    return State.of_engine(container.state) is State.RUNNING


def _facts(output: str) -> dict[str, Any] | None:
    """The line of JSON in an output; None if there is none."""
    for line in reversed(output.splitlines()):
        if line.startswith("{") and len(line) <= LARGEST:
            try:
                return checked(json.loads(line))
            except (ValueError, RecursionError):
                return None
    return None


def _refusal(container: Container, output: str) -> HostError | EngineError:
    """The error for a container's output that is not the expected JSON."""
    errors = [line for line in output.splitlines() if line.startswith("error: ")]
    if errors:
        return HostError(
            errors[-1].removeprefix("error: "),
            f"`cluster-kit status {container.cluster}` shows whether they train: a program has a "
            "server only under a strategy for several tasks, and not before it has made that",
        )
    tail = "\n".join(output.splitlines()[-5:])
    returned = f", but:\n{tail}" if tail else " in time"
    return EngineError(
        f"{container.name} did not return a profile{returned}",
        f"`cluster-kit logs {container.cluster} {container.name}` shows what it does",
    )
