"""Verb: status."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.text import Text

from cluster_kit.cli import manifest_options
from cluster_kit.cli.app import app, current_host, out, print_json, say, short
from cluster_kit.contract.endings import EXIT_TERMINATED
from cluster_kit.observe import user_requests
from cluster_kit.observe.progress import entries_of, newest_usage_of
from cluster_kit.observe.reconcile import crashed, from_containers
from cluster_kit.observe.task_view import KILLED, State, TaskView
from cluster_kit.platforms.engine import Container, Engine
from cluster_kit.run import lifecycle
from cluster_kit.run.cluster_lock import is_claimed
from cluster_kit.run.find import cluster_name, reach
from cluster_kit.run.run_directory import run_of, unjudged
from cluster_kit.show.task_table import facts_of, line_of, remarks, status_table
from cluster_kit.util.terminal import harmless
from cluster_kit.workspace import here

if TYPE_CHECKING:
    from cluster_kit.run.history import PastRun

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
            print_newest_run(cluster)
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


def print_newest_run(cluster: str) -> PastRun | None:
    """Print that a cluster is not up and how its newest run ended; returns that run, if any."""
    newest = _newest(cluster)
    if newest is None:
        runs = short(here().runs(cluster))
        say(f"no task of {cluster} is running, and there is no run of it in {runs}/")
    else:
        say(f"no task of {cluster} is running")
        say(f"its newest run, {short(newest.run.path)}, {newest.summary}")
    return newest


def _newest(cluster: str) -> PastRun | None:
    from cluster_kit.run.history import newest_run  # this one imports the modules that judge a run

    return newest_run(here().runs(cluster))


def _run_facts(cluster: str) -> dict[str, Any] | None:
    """The facts of the newest run of a cluster that is not up; None if it has no run."""
    newest = _newest(cluster)
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
