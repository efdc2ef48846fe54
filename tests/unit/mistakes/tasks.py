"""Numbers of tasks, what they run, and tables for tasks that do not exist."""

from __future__ import annotations

MISTAKES = {
    "no worker": ("worker = 0", "worker", "0", "at least one worker", "`worker = 1`"),
    "negative workers": ("worker = -2", "worker", "-2", "at least one worker", "`worker = 1`"),
    "negative ps": ("ps = -1", "ps", "-1", "cannot be negative", "`ps = 0` or more"),
    "two chiefs": ("chief = 2", "chief", "2", "at most one chief", "`chief = 1`"),
    "negative chief": ("chief = -1\nps = 0", "chief", "-1", "at most one chief", "`chief = 1`"),
    "two evaluators": ("evaluator = 2", "evaluator", "2", "at most one evaluator", "evaluator = 1"),
    "ps without chief": ("chief = 0", "ps", "2", "ps tasks need a chief", "`chief = 1`, or `ps"),
    "ps without chief, the other way out": (
        "chief = 0", "ps", "2", "or workers that run the program", '`style = "all-tasks"`'
    ),
    "chief without ps": ("ps = 0", "ps", "0", "at least 1 ps", "`ps = 1`, or `chief = 0`"),
    "chief without ps, the other way out": (
        "ps = 0", "ps", "0", "under a chief", '`style = "all-tasks"`'
    ),
    "coordinator without chief": (
        'style = "coordinator"\nchief = 0', "chief", "0", "needs a chief", "`chief = 1`, or `style"
    ),
    "coordinator without ps": (
        'style = "coordinator"\nps = 0', "ps", "0", "at least 1 ps", "`ps = 1`, or `style"
    ),
    "unknown style": ('style = "each"', "style", '"each"', "'coordinator' or 'all-", "all-tasks"),
    "a ps that runs the program under a coordinator": (
        'ps_runs = "program"', "ps_runs", '"program"', "every ps is a server", '"all-tasks"`'
    ),
    "unknown job of a ps": ('ps_runs = "x"', "ps_runs", '"x"', "'server' or 'program'", "ps runs"),
    "unknown job of the chief": ('chief_job = "boss"', "chief_job", '"boss"', "'master'", "job n"),
    "replicas without a ps": (
        'chief = 0\nps = 0\nprogram = "linear-regression"', "ps", "0",
        "At least 1 ps task is needed for distributed training", "write `ps = 1`",
    ),
    "chief and worker without a ps": (
        'style = "all-tasks"\nworker = 1\nps = 0\nprogram = "detection"\ndata = "digit-scenes"',
        "ps", "0", "At least 1 ps task is needed for distributed training", "`worker = 1`",
    ),
    "graph mode under a coordinator": (
        'program = "linear-regression"', "style", '"auto"', "every replica of", '"all-tasks"`'
    ),
    "override for a task that does not exist": (
        "[task.worker-5]\ncpus = 1", "task.worker-5", "", "no such task: worker = 2",
        "write `worker = 6`, or remove the table",
    ),
    "override for a second chief": (
        "[task.chief-1]\ncpus = 1", "task.chief-1", "", "chief = 1", "remove the table"
    ),
}  # fmt: skip
