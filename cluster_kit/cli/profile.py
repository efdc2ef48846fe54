"""The verb `profile`: one trace of all tasks of a cluster that is up."""

from __future__ import annotations

from typing import Annotated

import typer

from cluster_kit.cli import options
from cluster_kit.cli.app import app, current_host, named, out, print_json, say, short
from cluster_kit.run.profiling import profile, refuse_seconds
from cluster_kit.run.reach import cluster_name
from cluster_kit.show.profile_lines import HOW, ops_table, remarks, size, tasks_table
from cluster_kit.workspace import here


@app.command("profile")
def profile_(
    name: options.ClusterName = None,
    tasks: Annotated[
        list[str] | None, typer.Argument(help="Only these tasks: chief-0 … Default: all.")
    ] = None,
    seconds: Annotated[
        float, typer.Option("--seconds", help="How long to trace: more than 0, at most 60.")
    ] = 2.0,
    json_: options.Json = False,
) -> None:
    """Trace all tasks of a running cluster at once: one Perfetto trace, and where time goes."""
    refuse_seconds(seconds)
    engine = current_host().connect()
    up = engine.clusters()
    cluster = cluster_name(named(name, engine, up), here(), up)
    if not json_:
        say(f"tracing {cluster} for {seconds:g} s")
    taken = profile(engine, cluster, seconds, tasks or [])
    if json_:
        print_json({**taken.facts, "path": str(taken.trace)})
        return
    out.print(tasks_table(taken.facts))
    out.print()
    out.print(ops_table(taken.facts))
    for line in remarks(taken.facts):
        say(line)
    say(f"trace: {short(taken.trace)}, {size(int(taken.facts['trace_bytes']))}")
    say(f"  {HOW}")
