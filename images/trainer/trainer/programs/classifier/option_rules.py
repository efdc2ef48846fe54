"""Rejects options that the chosen way of training does not support, before anything starts."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from trainer.agent.errors import ContractError
from trainer.agent.task import Task, read_task
from trainer.programs.classifier import mode
from trainer.programs.classifier.options import Options, parse

PS_ASYNC, PS_SYNC = (f"{mode.PARAMETER_SERVER} {update}" for update in mode.UPDATES)
GRAPH_ASYNC, GRAPH_SYNC = (f"{mode.GRAPH} {update}" for update in mode.UPDATES)
MODES = (PS_ASYNC, PS_SYNC, GRAPH_ASYNC, GRAPH_SYNC, mode.ALL_REDUCE, mode.MIRRORED)
"""All ways of training: the strategy, and with parameter servers also the update."""


@dataclass(frozen=True)
class Rule:
    """An option, the modes that support it, the reason why others do not, and what to do
    instead."""

    option: str
    known_in: tuple[str, ...]
    why: str
    hint: str
    value: str | None = None
    """The rule applies only to this value of the option."""

    @property
    def flag(self) -> str:
        """The option as it is written on the command line."""
        flag = f"--{self.option.replace('_', '-')}"
        return flag if self.value is None else f"{flag} {self.value}"


GRAPH_ALONE = GRAPH_ASYNC, GRAPH_SYNC
IN_GRAPH_MODE = f"or use --strategy graph ({mode.ALL_TASKS})"
RULES = (
    Rule("update", (PS_ASYNC, PS_SYNC, *GRAPH_ALONE, mode.MIRRORED),
         "all-reduce is always synchronous", "or add ps tasks", value=mode.ASYNC),
    Rule("backup_workers", (GRAPH_SYNC,),
         "only synchronous rounds of graph mode can leave the slowest gradients out",
         f"or use --strategy graph --update sync ({mode.ALL_TASKS})"),
    Rule("save_secs", GRAPH_ALONE,
         "only graph mode saves by the clock; elsewhere each epoch is saved, and the step at which"
         " a run is stopped", IN_GRAPH_MODE),
    Rule("summary_steps", GRAPH_ALONE,
         "only graph mode writes summaries of steps; elsewhere TensorBoard gets each epoch",
         IN_GRAPH_MODE),
    Rule("log_steps", GRAPH_ALONE,
         "only graph mode prints steps; elsewhere each epoch is a line", IN_GRAPH_MODE),
    Rule("pause_ms", GRAPH_ALONE, "only graph mode pauses after a step", IN_GRAPH_MODE),
    Rule("steps_per_call", (PS_ASYNC, mode.ALL_REDUCE, mode.MIRRORED),
         "each step is a call of its own in synchronous rounds and in graph mode",
         "or use --update async under a coordinator"),
    Rule("communication", (mode.ALL_REDUCE,), "only all-reduce sends gradients between workers",
         "or use --strategy all-reduce (ps = 0)"),
    Rule("peer_timeout", (mode.ALL_REDUCE,), "only in an all-reduce do workers wait for each other",
         "or use --strategy all-reduce (ps = 0)"),
)  # fmt: skip


def mode_of(strategy: str, update: str) -> str:
    """Returns the entry of MODES for a strategy (see mode.decide) and an update."""
    held = strategy in (mode.PARAMETER_SERVER, mode.GRAPH)
    return f"{strategy} {update}" if held else strategy


def check(options: Options, task: Task) -> None:
    """Raise ContractError, with their names, if options on the command line have no effect."""
    how = mode_of(mode.decide(options.strategy, task.cluster, task.servers), options.update)
    wrong = refused(how, options.given, vars(options))
    if options.model == "cnn" and "bn_momentum" in options.given:
        wrong.append(
            "--bn-momentum does nothing with --model cnn, which has no BatchNorm; leave it out, or"
            " use --model mobilenet_v2"
        )
    if options.clones and options.batch_size % options.clones:
        wrong.append(
            f"--batch-size {options.batch_size} does not divide by --num-clones {options.clones}:"
            " each clone takes an even part; take"
            f" {options.batch_size // options.clones * options.clones or options.clones}"
        )
    if wrong:
        raise ContractError("; ".join(wrong))


def check_here(arguments: Sequence[str]) -> None:
    """Like `check`, for the task that the environment describes."""
    check(parse(arguments, Path("/data"), Path("/output")), read_task())


def refused(how: str, given: Collection[str], values: Mapping[str, object]) -> list[str]:
    """Returns one sentence for each option in `given` that has no effect in mode `how`."""
    return [
        f"{rule.flag} does nothing with {told(how)}: {rule.why}; leave it out, {rule.hint}"
        for rule in RULES
        if rule.option in given
        and how not in rule.known_in
        and rule.value in (None, values.get(rule.option))
    ]


def told(how: str) -> str:
    """Returns the options on the command line that select a mode."""
    strategy, _, update = how.partition(" ")
    return f"--strategy {strategy}{' --update ' * bool(update)}{update}"
