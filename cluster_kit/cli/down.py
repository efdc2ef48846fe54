"""The verb that removes a cluster: down."""

from __future__ import annotations

import os
import pwd

from cluster_kit.cli import options
from cluster_kit.cli.app import app, current_host, named, print_json, say
from cluster_kit.platforms.engine import Engine
from cluster_kit.run.reach import cluster_name, reach
from cluster_kit.run.run_directory import run_of
from cluster_kit.run.take_down import take_down
from cluster_kit.workspace import here


@app.command()
def down(
    name: options.ClusterName = None,
    engine: options.OnEngine = None,
    json_: options.Json = False,
) -> None:
    """Remove a cluster's containers and network, found by their labels."""
    _down(name, reach(current_host(), name, here(), engine), json_=json_)


def _down(name: str | None, engine: Engine, *, json_: bool) -> None:
    up = engine.clusters()
    cluster = cluster_name(named(name, engine, up, changes=True), here(), up)
    if cluster not in up:
        others = ", ".join(up) or "none"
        if json_:
            print_json({"cluster": cluster, "removed": 0})
        else:
            say(f"nothing to remove: no cluster {cluster} is up (up: {others})")
        return
    whose = _whose(engine, cluster)
    count = take_down(current_host(), engine, cluster)
    if json_:
        print_json({"cluster": cluster, "removed": count})
    else:
        say(f"{cluster}{whose}: {count} containers and their network removed")


def _whose(engine: Engine, cluster: str) -> str:
    """` (of alice, in /home/alice/project)` if another user has started it, else ""."""
    containers = engine.containers(cluster)
    if not containers or not containers[0].output:
        return ""
    run = run_of(containers)
    try:
        owner = run.owner
    except OSError:  # of a node of a swarm, or removed by now
        return ""
    if owner == os.getuid():
        return ""
    try:
        name = pwd.getpwuid(owner).pw_name
    except KeyError:
        name = f"user {owner}"
    return f" (of {name}, in {run.path.parents[2]})"
