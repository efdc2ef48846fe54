"""The verbs of the command line: what each does, in which group of help, and in which module.

A command imports the module of its own verb only, which saves a third of its start. Help, Tab and
proposals for mistyped verbs read this table, and import none.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Verb:
    """A verb, the module of this package that has it, and its first line of help.

    One that is hidden is another name for a verb: it works, and help does not list it.
    """

    name: str
    module: str
    summary: str
    hidden: bool = False


GROUPS = {
    "Run": (
        Verb(
            "up", "up", "Run a cluster to its end: plan, build, start, watch, judge, save, remove."
        ),
        Verb("down", "stop", "End a cluster and remove its containers and network."),
        Verb(
            "stop", "stop", "Stop a cluster's tasks until `start`; their addresses and files stay."
        ),
        Verb(
            "start", "stop", "Start the tasks of a stopped cluster again, with the same addresses."
        ),
        Verb(
            "attach",
            "up",
            "Watch a cluster that runs unwatched: judge, save, remove, as `up` does.",
        ),
        Verb("wait", "up", "Wait for the end of a cluster, without the live view."),
    ),
    "Look": (
        Verb(
            "status",
            "look",
            "Show every task of the clusters that are up: IP, GPU, state, step, loss.",
        ),
        Verb("ps", "look", "The same as `status`.", hidden=True),
        Verb("logs", "look", "Print the logs of tasks, merged by time."),
        Verb("serve", "serve", "Show clusters and runs as live pages in a browser, until Ctrl-C."),
        Verb(
            "report",
            "results",
            "Write report.html: the tasks over time, curves, the cluster's picture.",
        ),
        Verb("runs", "runs", "Past runs: list them, compare two, prune old ones."),
        Verb(
            "tensorboard",
            "inside",
            "Show runs in TensorBoard, also while they train, until Ctrl-C.",
        ),
        Verb(
            "profile",
            "inside",
            "Trace all tasks of a running cluster at once: where the time goes.",
        ),
        Verb("metrics", "results", "Print runs as Prometheus metrics."),
        Verb(
            "summary",
            "results",
            "Print how a run went: a page for CI, a text, or values for scripts.",
        ),
        Verb("bug-report", "results", "Write one archive of a run for a bug report."),
    ),
    "Work inside": (
        Verb("exec", "inside", "Run a command inside a running task; its exit code is returned."),
        Verb("shell", "inside", "Open a shell inside a running task."),
        Verb("restart", "stop", "End a task and start it again; with the leader, all tasks."),
        Verb("stacks", "look", "Print the stacks of all threads of tasks: where each one waits."),
    ),
    "Break": (
        Verb(
            "drill", "drill", "Run a cluster and break tasks on purpose: does the training survive?"
        ),
        Verb("matrix", "drill", "Break each role of five systems in nine ways."),
    ),
    "Compare": (
        Verb(
            "compare", "compare", "Train one model in every way in turn: speed, accuracy, traffic."
        ),
        Verb("speedup", "compare", "Measure what further workers bring on emulated machines."),
    ),
    "Prepare": (
        Verb("new", "new", "Write a commented manifest and a starter program that trains at once."),
        Verb("init", "new", "The same as `new`.", hidden=True),
        Verb(
            "render",
            "render",
            "Write a cluster's file for Docker Compose, a swarm, Kubernetes or Slurm.",
        ),
        Verb(
            "doctor",
            "doctor",
            "Check this host, or what a manifest needs, with a fix for each problem.",
        ),
        Verb("gpus", "provision", "Show this host's GPUs, and which cluster has them."),
        Verb(
            "image", "provision", "The training image: build, tag, push, check, list its packages."
        ),
        Verb("data", "provision", "Convert data sets for the built-in programs."),
        Verb("engine", "provision", "Install and start a Docker engine if none answers."),
        Verb("schema", "new", "Print the manifest's JSON Schema, for editors."),
    ),
}
"""The verbs by what people do in a day, the most used first, as help shows them."""
VERBS = {verb.name: verb for verbs in GROUPS.values() for verb in verbs}
GROUP_OF = {verb.name: group for group, verbs in GROUPS.items() for verb in verbs}


def typed(words: Sequence[str]) -> Sequence[str]:
    """The words of the command line, also of one that a shell asks to complete."""
    if not os.environ.get("_CLUSTER_KIT_COMPLETE", "").startswith("complete"):
        return words
    line = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS", "")
    return line.split()[1:]


def load(words: Sequence[str]) -> None:
    """Import the module of the verb in these words; none if there is no verb, as for `--help`."""
    verb = VERBS.get(next((word for word in words if not word.startswith("-")), ""))
    if verb is not None:
        importlib.import_module(f"cluster_kit.cli.{verb.module}")


def load_all() -> None:
    """Import the modules of all verbs, for those who need the whole command line."""
    for module in dict.fromkeys(verb.module for verb in VERBS.values()):
        importlib.import_module(f"cluster_kit.cli.{module}")
