"""How replicas update, from the configuration and the command line together: graph mode only."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from trainer.agent.errors import ContractError
from trainer.programs.detection.config.train_fields import TrainConfig
from trainer.programs.training.graph_mode.options import ASYNC, SYNC, GraphOptions

SYNC_KEY, ROUND_KEY = "train_config.sync_replicas", "train_config.replicas_to_aggregate"
DELAY_KEY = "train_config.startup_delay_steps"


def decided(
    options: GraphOptions, train: TrainConfig, given: Collection[str], replicas: int
) -> GraphOptions:
    """`options` with what the configuration says of the updates.

    Args:
        given: the arguments that the command line has, as `backup_workers`.
        replicas: how many tasks train.
    Raises:
        ContractError: the two contradict each other, or cannot be done by so many replicas.
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
    """ASYNC or SYNC; ContractError if the two say different things."""
    if train.sync_replicas is None:
        return options.update
    wanted = SYNC if train.sync_replicas else ASYNC
    if "update" in given and options.update != wanted:
        said, other = str(train.sync_replicas).lower(), str(not train.sync_replicas).lower()
        raise ContractError(
            f"--update {options.update}, but {SYNC_KEY} = {said}: take --update {wanted} (in the"
            f" manifest detection-{wanted} it is), or add `--set {SYNC_KEY}={other}`"
        )
    return wanted


def backup_workers(
    options: GraphOptions, train: TrainConfig, given: Collection[str], replicas: int
) -> int:
    """How many gradients of a round are not waited for; ContractError if it cannot be done."""
    wanted = train.replicas_to_aggregate
    place = f"{ROUND_KEY} = {wanted}"
    if options.update != SYNC:
        raise ContractError(
            f"{place} with asynchronous updates: only a synchronous round has gradients to wait"
            f" for; take --update sync, or add `--set {ROUND_KEY}=0`"
        )
    if wanted > replicas:
        raise ContractError(
            f"{place}, but {replicas} replicas train: a round has one gradient of each; run more"
            f" workers (`--workers`), or add `--set {ROUND_KEY}={replicas}`"
        )
    if "backup_workers" in given and options.backup_workers != replicas - wanted:
        raise ContractError(
            f"--backup-workers {options.backup_workers}, but {place} of {replicas} replicas leaves"
            f" {replicas - wanted}: leave out one of them (`--set {ROUND_KEY}=0`)"
        )
    return replicas - wanted
