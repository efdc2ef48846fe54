"""Accepts the command line of the Object Detection API's training programs for `detection`.

    --train_dir DIR --pipeline_config_path FILE
    --train_dir DIR --model_config_path FILE --train_config_path FILE --input_config_path FILE

Underscores and hyphens are the same in every option's name. If such a command line
describes the cluster, it must agree with TF_CONFIG; otherwise the program does not start.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from trainer.agent.errors import ContractError
from trainer.agent.task import EVALUATOR, Task, addresses_by_task

OTHER_NAMES = {
    "pipeline-config-path": "pipeline-config",
    "num-train-steps": "steps",
    "model-dir": "train-dir",
    "checkpoint-dir": "train-dir",
}
SWITCHES = ("clone-on-cpu", "final-score")
LOGGING = ("logtostderr", "alsologtostderr")
"""Logging options, which have no effect: messages always go to the task's log."""
TRUE, FALSE = ("true", "t", "1", "yes"), ("false", "f", "0", "no")


def modern(arguments: Sequence[str]) -> list[str]:
    """Return the arguments with every option in the spelling of this program's parser."""
    return [new for argument in arguments for new in spelled(argument)]


def spelled(argument: str) -> Iterator[str]:
    """Yield the argument, or nothing for an option about logging, which has no effect here."""
    name, equals, value = argument.partition("=")
    if not name.startswith("--") or len(name) < 3:
        yield argument
        return
    plain = name[2:].replace("_", "-")
    plain = OTHER_NAMES.get(plain, plain)
    if plain.removeprefix("no") in LOGGING or plain in ("stderrthreshold", "verbosity"):
        return
    if plain.startswith("no") and plain[2:] in SWITCHES:
        yield f"--no-{plain[2:]}"
    elif plain in SWITCHES and value.lower() in (*TRUE, *FALSE):
        yield f"--{'' if value.lower() in TRUE else 'no-'}{plain}"
    else:
        yield f"--{plain}{equals}{value}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that only the classic programs have, except the configuration files."""
    group = parser.add_argument_group(
        "classic", "options of the Object Detection API; _ and - are the same in every name"
    )
    group.add_argument("--train-dir", metavar="DIR", default="",
                       help="the train directory: /output, or below it")  # fmt: skip
    for option, meaning in CLAIMS.items():
        group.add_argument(f"--{option}", default=None,
                           help=f"{meaning}; the manifest decides, this must agree")  # fmt: skip


CLAIMS = {
    "type": "this task's job: {{ role }}",
    "index": "this task's number: {{ index }}",
    "task": "the same",
    "master": "this task's own server: grpc://{{ ip }}:{{ port }}",
    "worker-replicas": "tasks that train, master and workers: {{ num_replicas }}",
    "ps-tasks": "parameter servers: {{ num_ps }}",
    "worker-job-name": "the workers' job: worker",
    "ps-job-name": "the parameter servers' job: ps",
}
"""The options that describe the cluster, each with its meaning and the template to use."""


def claims_of(given: argparse.Namespace) -> dict[str, str]:
    """Return the parsed values that describe the cluster, by option."""
    claims = {option: getattr(given, option.replace("-", "_")) for option in CLAIMS}
    return {option: value for option, value in claims.items() if value is not None}


def check(claims: Mapping[str, str], task: Task) -> None:
    """Raise ContractError if `claims` (see claims_of) do not match this task."""
    facts = facts_of(task)
    wrong = []
    for option, claim in claims.items():
        if option not in facts or claim in facts[option]:
            continue
        wrong.append(
            f"--{option.replace('-', '_')} {claim}: for {task.name} the value is"
            f" {facts[option][0] or '0'}; leave it out, or write"
            f" {CLAIMS[option].rpartition(': ')[2]}"
        )
    if wrong:
        raise ContractError("; ".join(wrong))


def facts_of(task: Task) -> dict[str, tuple[str, ...]]:
    """Return the values that each of CLAIMS may have in this task, the best value first."""
    facts = {"type": (task.job, task.role), "index": (str(task.index),)}
    facts["task"] = facts["index"]
    if task.role == EVALUATOR or not task.cluster:
        return facts
    names = addresses_by_task(task.cluster)
    ps = sum(name.startswith("ps-") for name in names)
    own_address = str(task.address)
    return facts | {
        "master": (f"grpc://{own_address}", own_address, ""),
        "worker-replicas": (str(len(names) - ps),),
        "ps-tasks": (str(ps),),
        "worker-job-name": ("worker",),
        "ps-job-name": ("ps",),
    }


def train_directory(text: str, output: Path) -> Path:
    """Returns the directory that `--train_dir` names; `output` if the option is empty.

    Raises:
        ContractError: the directory is outside the run's output directory, the only one that is
            kept.
    """
    kept = output.resolve()
    directory = (kept / text).resolve()
    if not directory.is_relative_to(kept):
        raise ContractError(
            f"--train_dir {text}: tasks share and keep only {output}; leave it out, or write"
            f" --train_dir {output}, or a relative path, which is seen from there"
        )
    return output if directory == kept else directory
