"""Verbs that only read: status, logs."""

from __future__ import annotations

import json
import queue
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from cluster_kit.cli import manifest_options
from cluster_kit.cli.app import (
    app,
    chosen,
    current_host,
    named,
    out,
    print_json,
    print_json_list,
    say,
    short,
    without_cluster,
)
from cluster_kit.contract.endings import EXIT_TERMINATED
from cluster_kit.errors import HostError
from cluster_kit.observe import user_requests
from cluster_kit.observe.logs import follow_logs
from cluster_kit.observe.progress import entries_of, newest_usage_of
from cluster_kit.observe.reconcile import from_containers
from cluster_kit.observe.task_view import State, TaskView
from cluster_kit.platforms.container import START
from cluster_kit.platforms.engine import SIDECAR, Container, Engine, reaching
from cluster_kit.run import lifecycle
from cluster_kit.run.cluster_lock import is_claimed
from cluster_kit.run.find import cluster_name, reach
from cluster_kit.run.history import PastRun, merged, newest_run, run_named, saved_logs
from cluster_kit.run.run_directory import run_of, unjudged
from cluster_kit.run.verdict import KILLED, crashed
from cluster_kit.show.task_table import facts_of, line_of, remarks, status_table
from cluster_kit.show.view import last_state
from cluster_kit.util.masking import masked
from cluster_kit.util.paths import command, is_file
from cluster_kit.util.terminal import harmless, in_json
from cluster_kit.workspace import RunDirectory, here

ENDED, BESIDE = "newest_runs", "sidecars_of"
"""The JSON keys for clusters that are not up, and for sidecars; no cluster can have these names."""


@app.command()
def status(
    name: manifest_options.AnyCluster = "",
    on: manifest_options.OnEngine = None,
    json_: manifest_options.Json = False,
) -> None:
    """Show every task of the clusters that are up: IP, GPU, state, restarts, step, loss."""
    engine = reach(current_host(), name, here(), on)
    up = engine.clusters()
    names = [cluster_name(name, here(), up)] if name else up
    containers = {cluster: engine.containers(cluster) for cluster in names}
    clusters = {cluster: _tasks(containers[cluster]) for cluster in names}
    sidecars = {cluster: engine.sidecars(cluster) for cluster in names}
    if json_:
        facts = {cluster: [_facts(task) for task in tasks] for cluster, tasks in clusters.items()}
        ended = {cluster: _run_facts(cluster) for cluster, tasks in clusters.items() if not tasks}
        companions = {
            name: list(map(facts_of, services)) for name, services in sidecars.items() if services
        }
        more = {ENDED: ended, BESIDE: companions}
        print_json({**facts, **{key: values for key, values in more.items() if values}})
    for cluster, tasks in clusters.items():
        if not tasks:
            _print_newest_run(cluster)
        elif not json_:
            out.print(status_table(tasks, title=cluster, width=out.width))
            for service in sidecars[cluster]:
                out.print(
                    Text(line_of(service), "red" if crashed([service]) else ""), soft_wrap=True
                )
            if lifecycle.is_stopped(containers[cluster]):
                out.print(f"stopped: `cluster-kit start {cluster}` goes on", style="yellow")
            elif _awaits_verdict(engine, containers[cluster]):
                out.print(f"ended, not judged: `cluster-kit attach {cluster}`", style="yellow")
            else:
                for task in _ended_from_outside(containers[cluster]):
                    text = (
                        f"{task} was ended: `cluster-kit restart {task} --name {cluster}` starts it"
                    )
                    out.print(text, style="yellow", soft_wrap=True)
            if containers[cluster] and (run := run_of(containers[cluster])).is_closed:
                text = f"what its tasks report is not shown: {run.closed_by}"
                out.print(Text(text, "yellow"), soft_wrap=True)
            for remark in remarks(tasks):
                out.print(Text(harmless(remark), "yellow"), soft_wrap=True)
    if not clusters:
        say("no cluster is up")


def _ended_from_outside(containers: Sequence[Container]) -> list[str]:
    """The tasks that a signal has ended while the leader runs: no engine starts them again."""
    if lifecycle.has_ended(containers):
        return []
    return [
        one.name
        for one in containers
        if State.of_engine(one.state) is State.ENDED
        and one.exit_code in (KILLED, EXIT_TERMINATED)
        and not one.oom
    ]


def _awaits_verdict(engine: Engine, containers: Sequence[Container]) -> bool:
    """Whether the job has ended, and no process watches the run that would judge it."""
    return (
        lifecycle.has_ended(containers)
        and unjudged(containers)
        and not is_claimed(current_host(), engine, containers[0].cluster)
    )


@app.command()
def ps(
    name: manifest_options.AnyCluster = "",
    on: manifest_options.OnEngine = None,
    json_: manifest_options.Json = False,
) -> None:
    """The same as `status`."""
    status(name, on, json_=json_)


def _tasks(containers: list[Container]) -> list[TaskView]:
    """The tasks of a cluster's containers, in their order."""
    entries, usage = entries_of(containers), newest_usage_of(containers)
    return from_containers(containers, entries, usage, user_requests.of_containers(containers))


def _print_newest_run(cluster: str) -> PastRun | None:
    """Print that a cluster is not up and how its newest run ended; returns that run, if any."""
    runs = here().runs(cluster)
    newest = newest_run(runs)
    if newest is None:
        say(f"no task of {cluster} is running, and there is no run of it in {short(runs)}/")
    else:
        say(f"no task of {cluster} is running")
        say(f"its newest run, {short(newest.run.path)}, {newest.summary}")
    return newest


def _run_facts(cluster: str) -> dict[str, Any] | None:
    """The facts of the newest run of a cluster that is not up; None if it has no run."""
    newest = newest_run(here().runs(cluster))
    if newest is None:
        return None
    ended = newest.ended.isoformat(timespec="seconds") if newest.ended else None
    return {"run": str(newest.run.path), "ended": ended, "verdict": newest.verdict or None}


def _facts(task: TaskView) -> dict[str, Any]:
    seen = None if task.gpus_seen is None else list(task.gpus_seen)
    loss = None if task.diverged else task.loss  # JSON has no NaN
    facts = {**asdict(task), "gpus": list(task.gpus), "gpus_seen": seen, "loss": loss}
    for name in ("steps_before", "stepped_at", "every_s", "counted"):  # of no use by themselves
        del facts[name]
    return facts


ClusterOrRun = Annotated[
    str | None,
    typer.Argument(
        metavar="[NAME]",
        help="A cluster's name or its manifest's path, also as `--name`; or a run: its directory, "
        "or CLUSTER/RUN. Default: the only cluster of this directory that is up, else quickstart.",
        autocompletion=manifest_options.clusters,
    ),
]


@app.command()
def logs(
    name: ClusterOrRun = None,
    tasks: manifest_options.Tasks = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Continue until the tasks end.")
    ] = False,
    tail: Annotated[
        int | None,
        typer.Option("--tail", "-n", min=0, help="Begin with this many of each task's last lines."),
    ] = None,
    on: manifest_options.OnEngine = None,
    json_: manifest_options.Json = False,
) -> None:
    """Print the logs of tasks, merged by time, each line with its task's name."""
    name, tasks = without_cluster(name, tasks or [])
    past = _past_run(name)
    containers: list[Container] = []
    if past is None:
        engine = reach(current_host(), name, here(), on)
        up = engine.clusters()
        cluster = cluster_name(named(name, engine, up), here(), up)
        containers = [*engine.containers(cluster), *engine.sidecars(cluster)]
    if past is not None:
        texts = _of_tasks(saved_logs(past), tasks)
    elif containers:
        wanted = chosen([container.name for container in containers], tasks)
        containers = [container for container in containers if container.name in wanted]
        if follow:
            said: queue.Queue[tuple[str, str] | None] = queue.Queue(AHEAD)
            tasks_only = [source for source in containers if source.role != SIDECAR]
            services = [source for source in containers if source not in tasks_only]

            def tell(task: str, text: str) -> None:
                said.put((task, text))

            service_threads = follow_logs(engine, services, tell, times=json_, tail=tail)
            threads = (
                follow_logs(engine, tasks_only, tell, times=json_, tail=tail) or service_threads
            )
            threading.Thread(target=_end_after, args=(threads, said), daemon=True).start()
            # This thread prints, so that a reader who closes the pipe ends the command.
            for task, text in iter(said.get, None):
                (_print_json_line if json_ else _print_line)(task, text)
            engine.info()  # raises if the streams ended because the engine was lost
            return
        texts = {source.name: engine.lines(source.id) for source in containers}
    else:
        texts = _saved_logs(cluster, tasks)
    if tail is not None:
        texts = {task: iter(deque(text, tail)) for task, text in texts.items()}
    lines = merged(texts)
    if json_ and follow:
        for line in lines:
            _print_json_line(line.task, f"{line.time} {line.text}")
        return
    if json_:
        print_json_list(line.__dict__ for line in lines)
        return
    for line in lines:
        _print_line(line.task, line.text)


AHEAD = 1000
"""Maximum number of followed lines that wait to be printed."""


def _end_after(threads: list[threading.Thread], said: queue.Queue[tuple[str, str] | None]) -> None:
    """Put None into the queue when these threads have ended."""
    for thread in threads:
        thread.join()
    said.put(None)


def _past_run(name: str | None) -> RunDirectory | None:
    """The run that a command line names by its directory or as CLUSTER/RUN; None for a cluster."""
    if not name:
        return None
    places = [Path(name).expanduser()]
    if "/" in name:
        places.append(here().root / "runs" / name)
    files = (place / file for place in places for file in ("run.json", "outcome.json"))
    if any(map(is_file, files)):
        return run_named(name, here())
    return None


def _of_tasks(logs: dict[str, Iterator[str]], tasks: list[str]) -> dict[str, Iterator[str]]:
    return {task: logs[task] for task in chosen(list(logs), tasks)}


def _saved_logs(cluster: str, tasks: list[str]) -> dict[str, Iterator[str]]:
    """The logs of the newest run of a cluster that is not up, by task; {} if there is none."""
    newest = _print_newest_run(cluster)
    if newest is None:
        return {}
    logs = saved_logs(newest.run)
    wanted = _of_tasks(logs, tasks)
    say("these are its logs" if logs else "no logs of it were saved")
    return wanted


def _print_line(task: str, text: str) -> None:
    text = text.removeprefix(f"{task}: ")  # so that Compose's logs name it, too
    shown = last_state(harmless(text))
    out.print(Text.assemble((f"{task:>12} ", "cyan"), shown), soft_wrap=True)


def _print_json_line(task: str, stamped: str) -> None:
    """Print a line of a log, which begins with its time, as a JSON object on one line."""
    time, _, text = stamped.partition(" ")
    typer.echo(in_json(json.dumps({"time": time, "task": task, "text": text})))


COMMAND = (*START, "stacks")
PATIENCE_S = 20
"""Seconds to wait for an answer: a task with a small share of a CPU is slow."""
AT_ONCE = 4
LONGEST = 200_000
"""Maximum characters of a task's stacks to print, since its program can send anything."""


@app.command()
def stacks(
    name: manifest_options.ClusterName = None,
    tasks: manifest_options.Tasks = None,
    json_: manifest_options.Json = False,
) -> None:
    """Print the Python stack of each thread of the running tasks, without stopping them."""
    name, tasks = without_cluster(name, tasks or [])
    engine = current_host().connect()
    up = engine.clusters()
    cluster = cluster_name(named(name, engine, up), here(), up)
    containers = engine.containers(cluster)
    if not containers:
        raise HostError(
            f"no task of {cluster} is running",
            f"start it (`{command('cluster')}`), and ask while it runs",
        )
    wanted = chosen([container.name for container in containers], tasks)
    selected = [container for container in containers if container.name in wanted]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        texts = list(pool.map(lambda container: stacks_of(engine, container), selected))
    stack_texts = {container.name: text for container, text in zip(selected, texts, strict=True)}
    if json_:
        print_json(stack_texts)
        return
    for task, text in stack_texts.items():
        out.print(f"== {task}\n{text}", markup=False, highlight=False, soft_wrap=True)


def stacks_of(engine: Engine, container: Container) -> str:
    """The stacks of a task's threads, or the reason why there are none."""
    if container.state == State.PAUSED:
        return "paused: its threads stand where they were (`docker unpause` lets it continue)\n"
    if container.state != State.RUNNING:
        return f"{State.of_engine(container.state)}: nothing runs\n"
    text = reaching(engine).ask(container.id, COMMAND, PATIENCE_S)[:LONGEST]
    return harmless(masked(text, container.secrets)) or "no answer in time\n"
