"""Injects faults into containers, and undoes each fault when its time is over.

A process inside the container, running as its user, causes crash, stop and freeze, and ends them:
this needs no rights on the host. This module ends away, cut and slow. A restart or the removal of
the container ends them, too, since nothing outside the container was changed. For an out-of-memory
kill, the limit is lowered to little more than the memory in use, and a process inside the container
allocates the rest; the limit is restored before the task starts again.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import MappingProxyType

from cluster_kit.drill.fault_plan import (
    Injected,
    Planned,
    calm_since,
    ended_at,
    is_due,
    over_at,
    plan,
    refuse,
    saved_at,
)
from cluster_kit.drill.goodput import Goodput, goodput
from cluster_kit.drill.measure import Result, results
from cluster_kit.drill.result import Drill, lanes_of, misses
from cluster_kit.drill.scenario_file import AWAY, CHECKPOINT, DISK, KINDS, PACKETS, SHAPE, Written
from cluster_kit.drill.trace import Replayed
from cluster_kit.errors import EngineError, HostError, Interrupted, UsageError
from cluster_kit.host import Clock, Host
from cluster_kit.observe import user_requests
from cluster_kit.observe.state import RunState
from cluster_kit.observe.task_view import State
from cluster_kit.platform_table import DEFAULT
from cluster_kit.platforms.engine import Container, Engine, Helper, reaching
from cluster_kit.platforms.platform import platform_of
from cluster_kit.report.page import checkpoints_of
from cluster_kit.resolved import OUTPUT, Cluster, Task
from cluster_kit.run.known_secrets import Known, values_of
from cluster_kit.run.launch import launch
from cluster_kit.run.outcome import Outcome
from cluster_kit.run.request import Request
from cluster_kit.run.run_report import DRILL, write_report
from cluster_kit.run.task_exec import KILL_ALL
from cluster_kit.show.view import View
from cluster_kit.workspace import RunDirectory, Workspace, write_atomically

READY = "ready"
"""The line that a helper prints as soon as the fault is in force."""
NOBODY = "127.0.0.2"
PROGRAMS: Mapping[str, str] = MappingProxyType(
    {
        PACKETS: "load the kernel's modules as the host's root: `sudo modprobe -a nfnetlink_queue"
        " nft_queue`",
        SHAPE: "load the kernel's modules as the host's root: `sudo modprobe -a sch_tbf sch_ingress"
        " cls_u32 act_mirred ifb`",
        DISK: "it takes a privileged container: use an engine that allows one, and that the host's"
        " root has started",
    }
)
"""The helper programs, each with the hint for a host on which it fails."""


def program_of(fault: Planned) -> str:
    """The helper program for this fault; "" if it needs none."""
    return PACKETS if fault.sources else KINDS[fault.kind].beside


def helper_of(cluster: Cluster, container_id: str, fault: Planned) -> Helper:
    """The function that injects faults into this container."""
    addresses = {task.name: str(task.ip) for task in cluster.tasks}
    program = program_of(fault)
    if program == DISK:
        return _disk(cluster.image, container_id, OUTPUT, fault.lasts)
    if program == SHAPE:
        usual = next(task.bandwidth for task in cluster.tasks if task.name == fault.task)
        return _shape(
            cluster.image, container_id, addresses[fault.task], fault.rate, usual, fault.lasts
        )
    others = fault.sources or [name for name in addresses if name != fault.task]
    loss = {"cut": 1.0, "loss": fault.percent / 100}.get(fault.kind, 0.0)
    delay = fault.delay if fault.kind == "delay" else 0.0
    peers = [addresses[name] for name in others]
    return _packets(cluster.image, container_id, peers, loss, delay, fault.lasts)


def trial_of(program: str, image: str) -> Helper:
    """Tries the fault for a moment on a separate container."""
    if program == DISK:
        return _disk(image, "", "/dev/shm", 0.01)
    if program == SHAPE:
        return _shape(image, "", "127.0.0.1", 10**9, None, 0.01)
    return _packets(image, "", [NOBODY], 1.0, 0.0, 0.01)


def _packets(
    image: str, joined: str, peers: list[str], loss: float, delay: float, seconds: float | None
) -> Helper:
    options = {"peers": peers, "seconds": seconds, "loss": loss, "delay": delay}
    command = ("python3", "-ISc", _text("packets"), json.dumps(options))
    return Helper(image, command, network_of=joined, capabilities=("NET_ADMIN",))


def _shape(
    image: str, joined: str, address: str, rate: int, usual: int | None, seconds: float | None
) -> Helper:
    values = (rate, "-" if usual is None else usual, "-" if seconds is None else f"{seconds:g}")
    command = ("python3", "-P", "-m", "trainer.agent.network.reshape", address, *map(str, values))
    return Helper(image, command, network_of=joined, capabilities=("NET_ADMIN",))


def _disk(image: str, joined: str, directory: str, seconds: float | None) -> Helper:
    options = {"directory": directory, "seconds": seconds}
    command = ("python3", "-ISc", _text("fill_disk"), json.dumps(options))
    return Helper(image, command, processes_of=joined, privileged=True)


@cache
def _text(program: str) -> str:
    return (Path(__file__).parent / "inside" / f"{program}.py").read_text()


LIMITS = {"memory": "MemoryLimit", "slow": "CpuCfsQuota"}
"""The limits that an engine must support, by their names in `docker info`."""


def refuse_if_unable(engine: Engine, cluster: Cluster, faults: Sequence[Planned]) -> None:
    """Raise HostError with every kind of fault that is not possible, and what would allow it."""
    faults_refused = [*_without_limits(engine, faults), *_without_rights(engine, cluster, faults)]
    if faults_refused:
        message = "this host cannot do what the drill asks for\n" + "\n".join(
            m for m, _ in faults_refused
        )
        hints = list(dict.fromkeys(hint for _, hint in faults_refused))
        raise HostError(message, "\n".join([*hints, "or take these faults out of the scenario"]))


def _without_limits(engine: Engine, faults: Sequence[Planned]) -> Iterator[tuple[str, str]]:
    kinds = {fault.kind for fault in faults} & set(LIMITS)
    facts = engine.info() if kinds else {}
    for kind in sorted(kinds):
        if facts.get(LIMITS[kind]) is False:
            yield (
                f"  {kind}: the engine has no control group for it",
                "use an engine that the host's root has started: a rootless one may limit nothing",
            )


def _without_rights(
    engine: Engine, cluster: Cluster, faults: Sequence[Planned]
) -> Iterator[tuple[str, str]]:
    for program, hint in PROGRAMS.items():
        kinds = dict.fromkeys(fault.kind for fault in faults if program_of(fault) == program)
        if not kinds:
            continue
        try:
            output = reaching(engine).start_helper(cluster.name, trial_of(program, cluster.image))
        except EngineError as error:
            output = error.message
        if output != READY:
            yield f"  {', '.join(kinds)}: {output or 'its helper gave no answer'}", hint


STOP_ALL, GO_ON = "kill -STOP -1", "kill -CONT -1"
TELL = "kill -TERM 1 2>/dev/null || kill -TERM $(cat /proc/1/task/1/children)"
"""Tells the task to end: its init process, or that one's child if it has stayed root."""
EXHAUST = Path(__file__).parent / "inside" / "exhaust_memory.py"
SPARE_BYTES = 64 << 20
"""Bytes above the memory in use for the limit; the interpreter that allocates memory needs some."""
EXHAUST_S = 15


def script(fault: Planned) -> str:
    """The shell script that runs inside the container; "" if the engine injects the fault. Pure."""
    if fault.kind == "crash":
        return KILL_ALL
    if fault.kind == "stop":
        return f"{TELL}; sleep {fault.grace:g}; {KILL_ALL}"
    if fault.kind == "freeze":
        return f"{STOP_ALL}; sleep {fault.lasts:g}; {GO_ON}" if fault.lasts else STOP_ALL
    return ""


def inject(engine: Engine, cluster: Cluster, container: Container, fault: Planned) -> None:
    """Inject the fault into the container; raises EngineError."""
    if program_of(fault):
        output = reaching(engine).start_helper(
            cluster.name, helper_of(cluster, container.id, fault)
        )
        if output != READY:
            raise EngineError(
                f"{fault.kind} is not possible: {output or 'its helper gave no answer'}"
            )
    elif words := script(fault):
        reaching(engine).execute(container.id, ("sh", "-c", words))
    else:
        _BY_ENGINE[fault.kind](engine, cluster, container, fault)


def undo(engine: Engine, cluster: Cluster, container: Container, fault: Planned) -> None:
    """End a fault whose time is over, if it does not end by itself; raises EngineError."""
    if program_of(fault):
        return
    task = next(task for task in cluster.tasks if task.name == fault.task)
    if fault.kind == AWAY and State.of_engine(container.state) is State.ENDED:
        engine.start_again(container.id)
    if fault.kind == "cut" and not container.attached:
        reaching(engine).attach(container.id, cluster.name, task.name, str(task.ip))
    if fault.kind == "slow":
        reaching(engine).limit_cpus(container.id, _usual(engine, task))
    if fault.kind == "memory":
        memory = task.memory or int(engine.info()["MemTotal"])
        reaching(engine).limit_memory(container.id, memory, swap=True)


def _take_away(engine: Engine, _cluster: Cluster, container: Container, _fault: Planned) -> None:
    """The engine does not restart a container that it has killed on request."""
    engine.kill(container.id)


def _cut(engine: Engine, cluster: Cluster, container: Container, _fault: Planned) -> None:
    reaching(engine).detach(container.id, cluster.name)


def _slow(engine: Engine, _cluster: Cluster, container: Container, fault: Planned) -> None:
    reaching(engine).limit_cpus(container.id, fault.cpus)


def _memory(engine: Engine, cluster: Cluster, container: Container, fault: Planned) -> None:
    """Returns when the program has been killed; the limit is still low then."""
    limit = reaching(engine).memory_used(container.id) + SPARE_BYTES
    task = next(task for task in cluster.tasks if task.name == fault.task)
    reaching(engine).limit_memory(container.id, min(limit, task.memory or limit), swap=False)
    command = ("python3", "-ISc", EXHAUST.read_text(), str(limit))
    output = reaching(engine).ask(container.id, command, EXHAUST_S).strip()
    if output:
        undo(engine, cluster, container, fault)
        raise EngineError(f"nothing was killed for its memory: {output.splitlines()[-1]}")


def _usual(engine: Engine, task: Task) -> float:
    """The cores that the plan gives the task; all cores of the host if it has no limit."""
    return task.cpus or float(engine.info()["NCPU"])


_BY_ENGINE: Mapping[str, Callable[[Engine, Cluster, Container, Planned], None]]
_BY_ENGINE = MappingProxyType({AWAY: _take_away, "cut": _cut, "slow": _slow, "memory": _memory})


AGAIN_S = 1.0
"""Seconds between two attempts of a fault that the engine refuses."""
BACKUP = "backup"
"""The checkpoints from which a program continues; other checkpoints are for the evaluator then."""


class Director:
    """The observer of a drill's run. `done` are the faults injected so far, in that order.

    Args:
        planned: returns the faults when the cluster is known, or raises KitError.
        say: is called with a line for each fault.
    """

    def __init__(
        self,
        clock: Clock,
        planned: Callable[[Cluster], Sequence[Planned]],
        say: Callable[[str], None],
    ) -> None:
        self._clock = clock
        self.cluster: Cluster | None = None
        self.faults: tuple[Planned, ...] = ()
        self.seen = RunState({}, "")
        self.done: list[Injected] = []
        self.refusals: dict[Planned, str] = {}
        """Why a fault could not be injected yet."""
        self._not_before: dict[Planned, float] = {}
        self._planned = planned
        self._say = say
        self._pending: list[Planned] = []
        self._to_mend: list[Injected] = []

    def planned(self, cluster: Cluster) -> None:
        """Plan the faults; raises KitError if the scenario does not fit the cluster."""
        self.cluster = cluster
        self.faults = tuple(self._planned(cluster))
        self._pending = list(self.faults)

    def ready(self, engine: Engine, cluster: Cluster) -> None:
        """Raise KitError if this host cannot inject the planned faults."""
        refuse_if_unable(engine, cluster, self.faults)

    def observe(self, engine: Engine, cluster: Cluster, seen: RunState) -> None:
        """Inject the faults that are due, and undo those whose time is over. Raises nothing."""
        self.seen = seen
        if ended_at(seen) is not None and seen.tasks[seen.leader].state is State.ENDED:
            return
        now = self._clock.time()
        over = [one for one in self._to_mend if now >= over_at(one, seen)]
        pending = [f for f in self._pending if now >= self._not_before.get(f, 0.0)]
        by_file = any(fault.at.after == CHECKPOINT for fault in pending)
        timely = [f for f in pending if f.at.after != CHECKPOINT]
        due = [fault for fault in timely if self._is_due(fault, now)]
        if not (over or due or by_file):
            return
        try:
            containers = {c.name: c for c in engine.containers(cluster.name)}
        except EngineError:
            return  # the process that watches the run waits for the engine, or gives up
        if by_file and _saved_at(containers.get(seen.leader), seen) is not None:
            due += [fault for fault in pending if fault.at.after == CHECKPOINT]
        for injected in over:
            self._mend(engine, cluster, containers.get(injected.fault.task), injected)
        for fault in due:
            self._inject(engine, cluster, containers, fault)

    def _is_due(self, fault: Planned, now: float) -> bool:
        first = fault.number == min(one.number for one in self._pending)
        calm = fault.at.calm is not None and first
        since = calm_since(self.seen, self.done) if calm else None
        return is_due(fault.at, self.seen, now, saved=False, calm_since=since)

    def _inject(
        self,
        engine: Engine,
        cluster: Cluster,
        containers: Mapping[str, Container],
        fault: Planned,
    ) -> None:
        """Inject the fault if the container runs; otherwise the next observation tries again."""
        container = containers.get(fault.task)
        if container is None or container.state != State.RUNNING:
            state = container.state if container else "gone"
            self.refusals[fault] = f"{fault.task} was {state} from its moment on"
            return
        saved = _saved_at(containers.get(self.seen.leader), self.seen)
        moment = self._clock.time()
        try:
            if fault.kind == AWAY:  # first, so that its end does not count as a failure
                run = Path(container.output).parent
                user_requests.write(run, user_requests.AWAY, [fault.task], moment)
            inject(engine, cluster, container, fault)
        except (EngineError, OSError) as error:
            self.refusals[fault] = error.message if isinstance(error, EngineError) else str(error)
            self._not_before[fault] = moment + AGAIN_S
            return
        self._pending.remove(fault)
        self.refusals.pop(fault, None)
        self.done.append(Injected(fault, moment, saved))
        if fault.lasts or KINDS[fault.kind].at_once:
            self._to_mend.append(self.done[-1])
        self._say(f"drill: {fault}")

    def _mend(
        self, engine: Engine, cluster: Cluster, container: Container | None, injected: Injected
    ) -> None:
        if container is not None:
            try:
                undo(engine, cluster, container, injected.fault)
            except EngineError as error:
                if injected.fault.kind == AWAY:
                    return  # the next observation tries again
                self._say(f"drill: {injected.fault} could not be ended: {error.message}")
        self._to_mend.remove(injected)


def _saved_at(leader: Container | None, seen: RunState) -> float | None:
    """Unix seconds of the newest checkpoint of this run, None if there is none."""
    starts = seen.starts(seen.leader)
    if leader is None or not leader.output or not starts:
        return None
    output = Path(leader.output)
    backup = saved_at(output, min(starts), BACKUP)
    return saved_at(output, min(starts)) if backup is None else backup


Scenarios = Callable[[Cluster], Written]
"""Returns the scenario for a cluster: a written or a random one."""


def drill(
    host: Host,
    request: Request,
    scenario: Scenarios,
    seed: int,
    workspace: Workspace,
    view: View,
) -> Drill:
    """Run the cluster with the scenario's faults; the result is in its run's directory, too.

    Raises:
        ManifestError: the scenario or the manifest is invalid; nothing was started.
        Interrupted: Ctrl-C was pressed; the cluster was removed.
        KitError: as `launch`.
    """

    chosen: list[Written] = []

    def planned(cluster: Cluster) -> Sequence[Planned]:
        if not cluster.one_host:
            where = platform_of(cluster.engine).title
            raise UsageError(
                f"a drill breaks containers of this host, and {cluster.name} runs on {where}",
                f"run it with `--engine {DEFAULT}`",
            )
        written = scenario(cluster)
        refuse(written, cluster)
        chosen.append(written)
        for note in written.notes if isinstance(written, Replayed) else ():
            view.warn(note)
        return plan(written.scenario, cluster, seed)

    director = Director(host.clock, planned, view.phase)
    outcome = launch(host, request, workspace, view, keep=False, resume=False, observer=director)
    if outcome.exit_code == Interrupted.exit_code:
        raise Interrupted("the drill was interrupted", f"its run is in {outcome.run}")
    (written,) = chosen
    fault_results = results(director.faults, director.done, director.refusals, director.seen)
    lanes = lanes_of(director.seen, fault_results)
    judged, found = fault_results, None
    if isinstance(written, Replayed):  # a trace that goes on after the training is no mistake
        judged = [one for one in fault_results if one.time is not None]
        found = _goodput(written, director, fault_results, outcome)
    missed = misses(written.scenario.expect, judged, outcome)
    done = Drill(written.source, seed, tuple(fault_results), tuple(missed), outcome, lanes, found)
    text = json.dumps(done.facts(), indent=2, ensure_ascii=False) + "\n"
    run = RunDirectory(Path(outcome.run))
    write_atomically(run.path / DRILL, text)
    _report_again(run, director)
    return done


def _goodput(
    written: Replayed, director: Director, fault_results: Sequence[Result], outcome: Outcome
) -> Goodput | None:
    if director.cluster is None:
        return None
    saves = [time for time, _ in checkpoints_of(RunDirectory(Path(outcome.run)).output, 0.0)]
    return goodput(written, director.cluster, fault_results, director.seen, saves)


def _report_again(run: RunDirectory, director: Director) -> None:
    """Write the run's report again, now with the faults."""
    with contextlib.suppress(UsageError, OSError):
        values = values_of(director.cluster, ()) if director.cluster else ()
        write_report(run, Known(frozenset(values), are_all=True))
