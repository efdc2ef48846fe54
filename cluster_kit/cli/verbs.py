"""Which module has which verb, so that a command imports no other: a third of its start."""

from __future__ import annotations

import importlib
import os
from collections.abc import Sequence

VERBS = {
    "again": ("restart", "start", "stop"),
    "attach": ("attach", "wait"),
    "bug_report": ("bug-report",),
    "compare": ("compare",),
    "data": ("data",),
    "doctor": ("doctor",),
    "drill": ("drill",),
    "gpus": ("gpus",),
    "inside": ("exec", "shell"),
    "look": ("logs", "ps", "status"),
    "schema": ("schema",),
    "make": ("engine", "image"),
    "matrix": ("matrix",),
    "metrics": ("metrics",),
    "new": ("init", "new"),
    "profile": ("profile",),
    "render": ("render",),
    "report": ("report",),
    "run": ("up",),
    "down": ("down",),
    "runs": ("runs",),
    "serve": ("serve",),
    "speedup": ("speedup",),
    "stacks": ("stacks",),
    "summary": ("summary",),
    "tensorboard": ("tensorboard",),
}
"""The verbs of each module of this package that has some, in the order in which help shows them."""


def typed(words: Sequence[str]) -> Sequence[str]:
    """The words of the command line, also of one that a shell asks to complete."""
    if not os.environ.get("_CLUSTER_KIT_COMPLETE", "").startswith("complete"):
        return words
    line = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS", "")
    return line.split()[1:]


def load(words: Sequence[str]) -> None:
    """Make the verb known that begins a command line; all of them if none does, as for `--help`.

    `--version` ends the command before any verb is looked for.
    """
    verb = words[0] if words else ""
    if verb == "--version":
        return
    named = [module for module, verbs in VERBS.items() if verb in verbs]
    for module in named or VERBS:
        importlib.import_module(f"cluster_kit.cli.{module}")
