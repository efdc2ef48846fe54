"""Who decides that the job succeeded, and which exit codes are final."""

from __future__ import annotations

SHARE = "more than 0 and at most 1"
EACH = "ps = 0\nchief = 0\n"
MISTAKES = {
    "unknown word for success": (
        'success = "most"', "success", '"most"', 'must be "leader", "all", or a share',
        'for example `success = "leader"`: Who decides',
    ),
    "a word that is nearly one": ('success = "al"', "success", '"al"', "{worker = 0.5}", '"all"`?'),
    "a number for success": ("success = 0.5", "success", "0.5", 'must be "leader"', "Who decides"),
    "success of nobody": ("success = {}", "success", "{}", 'must be "leader"', "Who decides"),
    "a text for a share": (
        f'{EACH}success = {{worker = "half"}}', "success", '{worker = "half"}', "a share of a role",
        "Who decides",
    ),
    "truth for a share": (
        f"{EACH}success = {{worker = true}}", "success", "{worker = true}", "a share of a role",
        "Who decides",
    ),
    "no share": (
        f"{EACH}success = {{worker = 0}}", "success.worker", "0", SHARE,
        "`success = {worker = 0.5}`",
    ),
    "a negative share": (
        f"{EACH}success = {{worker = -0.5}}", "success.worker", "-0.5", SHARE, "half of them"
    ),
    "a share above one": (
        f"{EACH}success = {{worker = 1.5}}", "success.worker", "1.5", SHARE, "half of them"
    ),
    "a share that is none": (
        f"{EACH}success = {{worker = nan}}", "success.worker", "nan", SHARE, "half of them"
    ),
    "a share of the ps": (
        "success = {chief = 1, ps = 0.5}", "success.ps", "0.5", "a ps never ends by itself",
        "remove it, and name `chief` or `worker`",
    ),
    "a share of an unknown role": (
        "success = {trainer = 1}", "success.trainer", "1", "no such role", "`chief` or `worker`"
    ),
    "a misspelt role": (
        "success = {wrker = 1}", "success.wrker", "1", "no such role", "did you mean `worker`?"
    ),
    "a share of a role without tasks": (
        f"{EACH}success = {{worker = 1, chief = 1}}", "success.chief", "1",
        "the cluster has no chief", "remove it, or write `chief = 1`",
    ),
    "a share of servers": (
        "success = {chief = 1, worker = 0.5}", "success.worker", "0.5",
        "under a coordinator every worker is a server", '`style = "all-tasks"`',
    ),
    "half an evaluator": (
        "evaluator = 1\nsuccess = {chief = 1, evaluator = 0.5}", "success.evaluator", "0.5",
        "with the others (1), or does not (0)", "`success = {chief = 1, evaluator = 1}`",
    ),
    "an evaluator alone": (
        "evaluator = 1\nsuccess = {evaluator = 1}", "success", "{evaluator = 1}",
        "names no task that trains", "`success = {evaluator = 1, chief = 1}`",
    ),
    "an exit code that is none": (
        "[restart]\npermanent = [256]", "restart.permanent.0", "256", "1 to 255", "Exit codes after"
    ),
    "a success as an exit code": (
        "[restart]\nretryable = [0]", "restart.retryable.0", "0", "0 is a success", "Exit codes"
    ),
    "a negative exit code": (
        "[restart]\npermanent = [3, -1]", "restart.permanent.1", "-1", "1 to 255, or a range",
        "Exit codes",
    ),
    "a range the wrong way round": (
        '[restart]\npermanent = ["78-64"]', "restart.permanent.0", '"78-64"', "smaller one first",
        "Exit codes",
    ),
    "a range that is none": (
        '[restart]\npermanent = ["64+"]', "restart.permanent.0", '"64+"', '"64-78"', "Exit codes"
    ),
    "half an exit code": (
        "[restart]\npermanent = [1.5]", "restart.permanent.0", "1.5", "1 to 255", "Exit codes"
    ),
    "a single exit code": (
        "[restart]\npermanent = 3", "restart.permanent", "3", "must be a list",
        "write `permanent = [3]`",
    ),
    "an exit code in both lists": (
        '[restart]\npermanent = [3, "64-78"]\nretryable = ["78-80"]', "restart.retryable",
        '["78-80"]', "exit code 78 cannot be both", "in one of the two lists",
    ),
    "retries of nothing": (
        "retries = 0\n[restart]\nretryable = [70]", "restart.retryable", "[70]",
        "no program is started again", "`retries = 3`",
    ),
    "a list beside its table": (
        "permanent = [3]", "permanent", "[3]", "no such key", "write it under [restart]"
    ),
}  # fmt: skip
