"""Verbs that print what tasks write: logs, stacks."""

from __future__ import annotations

import json
import queue
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated

import typer

from cluster_kit.cli import manifest_options
from cluster_kit.cli.app import (
    app,
    chosen,
    current_host,
    named,
    out,
    print_json,
    say,
    without_cluster,
)
from cluster_kit.cli.status import print_newest_run
from cluster_kit.errors import HostError
from cluster_kit.observe.logs import follow_logs
from cluster_kit.observe.task_view import State
from cluster_kit.platforms.container import START
from cluster_kit.platforms.engine import SIDECAR, Container, Engine, reaching
from cluster_kit.run.find import cluster_name, reach
from cluster_kit.run.history import Line, merged, run_named, saved_logs
from cluster_kit.show.view import last_state
from cluster_kit.util.masking import masked
from cluster_kit.util.paths import command, is_file
from cluster_kit.util.terminal import harmless, in_json
from cluster_kit.workspace import RunDirectory, here

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
                if json_:
                    time, _, text = text.partition(" ")
                    _print_json_line(Line(time, task, text))
                else:
                    _print_line(task, text)
                out.file.flush()
            engine.info()  # raises if the streams ended because the engine was lost
            return
        texts = {source.name: engine.lines(source.id) for source in containers}
    else:
        texts = _saved_logs(cluster, tasks)
    if tail is not None:
        texts = {task: iter(deque(text, tail)) for task, text in texts.items()}
    lines = merged(texts)
    try:
        if json_ and follow:
            for line in lines:
                _print_json_line(line)
        elif json_:
            _print_json(lines)
        else:
            for line in lines:
                _print_line(line.task, line.text)
    finally:
        out.file.flush()  # before an error is printed; raises if the disk is full


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
    newest = print_newest_run(cluster)
    if newest is None:
        return {}
    logs = saved_logs(newest.run)
    wanted = _of_tasks(logs, tasks)
    say("these are its logs" if logs else "no logs of it were saved")
    return wanted


def _print_line(task: str, text: str) -> None:
    text = text.removeprefix(f"{task}: ")  # so that Compose's logs name it, too
    shown = last_state(harmless(text))
    head = f"{task:>12} "
    if out.color_system is not None and not out.no_color:
        head = typer.style(head, fg="cyan")
    out.file.write(f"{head}{shown}\n")  # 20 times as fast as rich's `print`


def _print_json(lines: Iterable[Line]) -> None:
    """Print a list with an object for each line, in bounded memory."""
    mark = "["
    for line in lines:
        out.file.write(f"{mark}\n  {_object(line)}")
        mark = ","
    out.file.write("[]\n" if mark == "[" else "\n]\n")


def _print_json_line(line: Line) -> None:
    """Print a line of a log as a JSON object on one line."""
    out.file.write(f"{_object(line)}\n")


def _object(line: Line) -> str:
    return in_json(json.dumps(line.__dict__))


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
