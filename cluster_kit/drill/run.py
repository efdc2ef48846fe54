"""Runs a drill: a cluster as `up` does, with faults, to its verdict."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path

from cluster_kit.drill.fault_plan import Planned, plan, refuse
from cluster_kit.drill.injector import Director
from cluster_kit.drill.measure import results
from cluster_kit.drill.result import Drill, lanes_of, misses
from cluster_kit.drill.scenario_file import Written
from cluster_kit.errors import Interrupted, UsageError
from cluster_kit.host import Host
from cluster_kit.platforms.registry import DEFAULT, platform_of
from cluster_kit.resolved import Cluster
from cluster_kit.run.known_secrets import Known, values_of
from cluster_kit.run.launch import launch
from cluster_kit.run.request import Request
from cluster_kit.run.run_report import DRILL, write_report
from cluster_kit.show.view import View
from cluster_kit.workspace import RunDirectory, Workspace, write_atomically

Scenarios = Callable[[Cluster], Written]
"""The scenario for a cluster: one that was written, or one made by chance."""


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
        ManifestError: the scenario, or the manifest, is wrong; nothing was started.
        Interrupted: by Ctrl-C; the cluster was removed.
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
        return plan(written.scenario, cluster, seed)

    director = Director(host.clock, planned, view.phase)
    outcome = launch(host, request, workspace, view, keep=False, resume=False, observer=director)
    if outcome.exit_code == Interrupted.exit_code:
        raise Interrupted("the drill was interrupted", f"its run is in {outcome.run}")
    (written,) = chosen
    found = results(director.faults, director.done, director.refusals, director.seen)
    lanes = lanes_of(director.seen, found)
    missed = misses(written.scenario.expect, found, outcome)
    done = Drill(written.source, seed, tuple(found), tuple(missed), outcome, lanes)
    text = json.dumps(done.facts(), indent=2, ensure_ascii=False) + "\n"
    run = RunDirectory(Path(outcome.run))
    write_atomically(run.path / DRILL, text)
    _report_again(run, director)
    return done


def _report_again(run: RunDirectory, director: Director) -> None:
    """The run's report once more, with the faults in it; it has one without them."""
    with contextlib.suppress(UsageError, OSError):
        values = values_of(director.cluster, ()) if director.cluster else ()
        write_report(run, Known(frozenset(values), are_all=True))
