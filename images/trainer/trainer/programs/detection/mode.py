"""Decides who trains: all tasks in graph mode, or the chief through the workers' servers. Pure.

In graph mode it also decides how replicas update, from the configuration and the command line.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from trainer.agent.errors import ContractError
from trainer.agent.task import Task
from trainer.programs.detection.config.pipeline import TrainConfig
from trainer.programs.training.graph_mode.options import ASYNC, SYNC, GraphOptions

AUTO, GRAPH, COORDINATOR = "auto", "graph", "coordinator"
MODES = (AUTO, GRAPH, COORDINATOR)
AS_IT_ARRIVES = "a coordinator applies each worker's gradient as it arrives"


def decide(
    mode: str, task: Task, options: GraphOptions, train: TrainConfig, given: Collection[str]
) -> str:
    """Returns GRAPH or COORDINATOR; for graph mode, its requirements are checked.

    Args:
        given: the names of the arguments on the command line, such as `num_clones`.
    Raises:
        ContractError: the tasks do not allow the mode, or an option would have no effect in it.
    """
    served = [name for name in task.servers if name.startswith("worker-")]
    if mode == AUTO:
        mode = COORDINATOR if served else GRAPH
    if mode == COORDINATOR and (not served or not task.cluster.get("ps")):
        raise ContractError(
            "--mode coordinator: the chief sends steps to workers' servers, and there are none;"
            ' write `style = "coordinator"` with a chief and a ps in the manifest, or use'
            " --mode graph"
        )
    wrong = not_in_graph(given) if mode == GRAPH else not_in_coordinator(options, train, given)
    if problems := "\n  ".join(wrong):
        raise ContractError(problems)
    return mode


def not_in_graph(given: Collection[str]) -> Iterator[str]:
    """Yields options that only a coordinator has, each with a fix."""
    if "round_steps" in given:
        yield (
            "--round-steps: only a coordinator sends steps in rounds; in graph mode --log-steps"
            " says how often the loss is printed, and --save-secs how often is saved; or take"
            ' --mode coordinator (`style = "coordinator"`)'
        )


def not_in_coordinator(
    options: GraphOptions, train: TrainConfig, given: Collection[str]
) -> Iterator[str]:
    """Yields options that only graph mode has, each with a fix."""
    settings = (
        (f"--update {options.update}", options.update == SYNC, AS_IT_ARRIVES),
        (f"--num-clones {options.num_clones}", options.num_clones > 1,
         "each worker has one copy of the model"),
        (f"--backup-workers {options.backup_workers}", options.backup_workers > 0, AS_IT_ARRIVES),
        ("--clone-on-cpu", "clone_on_cpu" in given, "there are no clones"),
        (f"--pause-ms {options.pause_ms:g}", options.pause_ms > 0,
         "workers begin the next step at once"),
        ("train_config.sync_replicas = true", train.sync_replicas is True, AS_IT_ARRIVES),
        (f"train_config.replicas_to_aggregate = {train.replicas_to_aggregate}",
         train.replicas_to_aggregate > 0, AS_IT_ARRIVES),
        (f"train_config.startup_delay_steps = {train.startup_delay_steps:g}",
         train.startup_delay_steps > 0, "a coordinator sends steps to any free worker"),
        ("train_config.optimizer.use_moving_average = true", train.optimizer.use_moving_average,
         "a coordinator keeps no averages"),
    )  # fmt: skip
    for setting, is_asked, why in settings:
        if is_asked:
            option = setting.startswith("--")
            out = "remove it" if option else f"add `--set {off(setting)}`"
            yield f'{setting}: {why}; {out}, or use --mode graph (`style = "all-tasks"`)'


def off(setting: str) -> str:
    """Return the setting with the value that turns it off."""
    key = setting.partition(" = ")[0]
    return f"{key}={'false' if setting.endswith('true') else 0}"


SYNC_KEY, ROUND_KEY = "train_config.sync_replicas", "train_config.replicas_to_aggregate"
DELAY_KEY = "train_config.startup_delay_steps"


def decided(
    options: GraphOptions, train: TrainConfig, given: Collection[str], replicas: int
) -> GraphOptions:
    """Returns `options`, completed with the configuration's settings for updates.

    Args:
        given: the names of the arguments on the command line, such as `backup_workers`.
        replicas: the number of tasks that train.
    Raises:
        ContractError: options and configuration contradict each other, or do not fit the number of
            replicas.
    """
    options = replace(options, update=update(options, train, given))
    if options.update == SYNC and train.startup_delay_steps:
        raise ContractError(
            f"{DELAY_KEY} = {train.startup_delay_steps:g} with synchronous updates: a round waits"
            f" for all replicas, so none can begin later; add `--set {DELAY_KEY}=0`"
        )
    if not train.replicas_to_aggregate:
        return options
    return replace(options, backup_workers=backup_workers(options, train, given, replicas))


def update(options: GraphOptions, train: TrainConfig, given: Collection[str]) -> str:
    """Returns ASYNC or SYNC; raises ContractError if configuration and command line differ."""
    if train.sync_replicas is None:
        return options.update
    wanted = SYNC if train.sync_replicas else ASYNC
    if "update" in given and options.update != wanted:
        sync, other = str(train.sync_replicas).lower(), str(not train.sync_replicas).lower()
        raise ContractError(
            f"--update {options.update}, but {SYNC_KEY} = {sync}: use --update {wanted} (as the"
            f" manifest detection-{wanted} does), or add `--set {SYNC_KEY}={other}`"
        )
    return wanted


def backup_workers(
    options: GraphOptions, train: TrainConfig, given: Collection[str], replicas: int
) -> int:
    """Returns the number of gradients that a round does not wait for; ContractError if it is
    invalid."""
    wanted = train.replicas_to_aggregate
    setting = f"{ROUND_KEY} = {wanted}"
    if options.update != SYNC:
        raise ContractError(
            f"{setting} with asynchronous updates: only a synchronous round has gradients to wait"
            f" for; use --update sync, or add `--set {ROUND_KEY}=0`"
        )
    if wanted > replicas:
        raise ContractError(
            f"{setting}, but {replicas} replicas train: a round has one gradient per replica; run "
            "more"
            f" workers (`--workers`), or add `--set {ROUND_KEY}={replicas}`"
        )
    if "backup_workers" in given and options.backup_workers != replicas - wanted:
        raise ContractError(
            f"--backup-workers {options.backup_workers}, but {setting} of {replicas} replicas"
            f" leaves {replicas - wanted}: remove one of the two (`--set {ROUND_KEY}=0`)"
        )
    return replicas - wanted
