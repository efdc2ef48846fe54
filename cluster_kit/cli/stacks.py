"""The verb `stacks`: where each thread of each task stands."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from cluster_kit.cli import options
from cluster_kit.cli.app import app, chosen, current_host, named, out, print_json
from cluster_kit.errors import HostError
from cluster_kit.observe.task_view import State
from cluster_kit.platforms.container import START
from cluster_kit.platforms.engine import Container, Engine, reaching
from cluster_kit.run.reach import cluster_name
from cluster_kit.util.kit_files import command
from cluster_kit.util.terminal import harmless
from cluster_kit.workspace import here

COMMAND = (*START, "stacks")
PATIENCE_S = 20
"""A task that computes with a small share of a CPU takes its time."""
AT_ONCE = 8


@app.command()
def stacks(
    name: options.ClusterName = None,
    tasks: options.Tasks = None,
    json_: options.Json = False,
) -> None:
    """Print the Python stack of each thread of the running tasks, without stopping them."""
    engine = current_host().connect()
    up = engine.clusters()
    cluster = cluster_name(named(name, engine, up), here(), up)
    containers = engine.containers(cluster)
    if not containers:
        raise HostError(
            f"no task of {cluster} is running",
            f"start it (`{command('cluster')}`), and ask while it runs",
        )
    wanted = chosen([container.name for container in containers], tasks or [])
    asked = [container for container in containers if container.name in wanted]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        texts = list(pool.map(lambda container: stacks_of(engine, container), asked))
    found = {container.name: text for container, text in zip(asked, texts, strict=True)}
    if json_:
        print_json(found)
        return
    for task, text in found.items():
        out.print(f"== {task}\n{text}", markup=False, highlight=False, soft_wrap=True)


def stacks_of(engine: Engine, container: Container) -> str:
    """What a task says of its threads, or why it says nothing."""
    if container.state == State.PAUSED:
        return "paused: its threads stand where they were (`docker unpause` lets it continue)\n"
    if container.state != State.RUNNING:
        return f"{State.of_engine(container.state)}: nothing runs\n"
    return (
        harmless(reaching(engine).ask(container.id, COMMAND, PATIENCE_S)) or "no answer in time\n"
    )
