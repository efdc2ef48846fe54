"""Mistakes on the command line.

Each entry is the words after `cluster-kit`, then parts of the place, the rule and the hint.
"""

from __future__ import annotations

RENDER = ("render", "demo")
CommandLine = tuple[tuple[str, ...], str, str, str]

MISTAKES: dict[str, CommandLine] = {
    "negative workers": (
        (*RENDER, "--workers", "-1"), "--workers = -1", "at least one worker",
        "`--workers 1`",
    ),
    "half a worker": (
        (*RENDER, "--workers", "1.5"), '--workers = "1.5"', "a whole number",
        "`--workers 2`",
    ),
    "more workers than addresses": (
        (*RENDER, "--workers", "100000"), "= 100000", "too many tasks", "fewer tasks",
    ),
    "a number in words": (
        (*RENDER, "--ps", "two"), '--ps = "two"', "a whole number", "`--ps 2`",
    ),
    "two chiefs": (
        (*RENDER, "--chief", "2"), "--chief = 2", "at most one chief", "--chief 1",
    ),
    "yes for a number": (
        (*RENDER, "--chief", "yes"), '--chief = "yes"', "a whole number", "0 or 1",
    ),
    "unknown style": (
        (*RENDER, "--style", "both"), '--style = "both"', "'all-tasks'",
        "`--style auto`",
    ),
    "name with umlauts": (
        (*RENDER, "--name", "Über"), '--name = "Über"', "a DNS label", "--name uber",
    ),
    "name with an underscore": (
        (*RENDER, "--name", "my_cluster"), '= "my_cluster"', "a DNS label", "--name my-cluster",
    ),
    "no name": ((*RENDER, "--name", ""), '--name = ""', "a DNS label", "my-cluster"),
    "a name as long as a novel": (
        (*RENDER, "--name", "a" * 300), "--name = ", "at most 40 characters", "--name",
    ),
    "set without a value": (
        (*RENDER, "--set", "worker"), "--set 'worker'", "not key=value", "deadline.start=30",
    ),
    "set without a key": ((*RENDER, "--set", "=3"), "--set '=3'", "not key=value", "for example"),
    "set to nothing": (
        (*RENDER, "--set", "worker="), '--set worker = ""', "whole number", "2",
    ),
    "set of an unknown key": (
        (*RENDER, "--set", "wrker=3"), "--set wrker = 3", "no such key", "`worker`",
    ),
    "set with two values": (
        (*RENDER, "--set", "worker=3=4"), '= "3=4"', "a whole number", "--workers 2",
    ),
    "a table set to a number": (
        (*RENDER, "--set", "deadline=5"), "--set deadline = 5", "must be a table",
        "How long things may take; its keys are deadline.engine",
    ),
    "a limit in a role's number": (
        (*RENDER, "--set", "worker.memory=1g"), "--set worker", "must be a whole number",
        "write their limits as [role.worker]",
    ),
    "a duration in words": (
        (*RENDER, "--set", "deadline.job=soon"), "--set deadline.job", "a duration is",
        "--set deadline.job=3600",
    ),
    "an unknown role": (
        (*RENDER, "--set", "role.boss.cpus=1"), "role.boss", "no such key", "evaluator, ps, worker",
    ),
    "a task that is not there": (
        (*RENDER, "--set", "task.worker-9.cpus=1"), "task.worker-9", "no such task", "worker = 10",
    ),
    "half a list": (
        (*RENDER, "--set", "gpus=[0"), '--set gpus = "[0"', 'must be "none"',
        "`--gpus none`",
    ),
    "a key below a key below a key": (
        (*RENDER, "--set", "a.b.c.d=1"), "a = {b", "no such key", "known keys: addressing",
    ),
    "true for a number": (
        (*RENDER, "--set", "worker=true"), "= true", "a whole number", "--workers 2",
    ),
    "negative retries": (
        (*RENDER, "--set", "retries=-1"), "--set retries = -1", "than or equal to 0",
        "--set retries=3",
    ),
    "a subnet of 33 bits": (
        (*RENDER, "--set", "subnet=10.0.0.0/33"), "--set subnet", "not a valid netmask", "a CIDR",
    ),
    "a port by its service": (
        (*RENDER, "--set", "port=http"), "--set port", "whole number", "1024 to 65534",
    ),
    "a GPU that is not there": (
        (*RENDER, "--gpus", "99"), '--gpus = "99"', "no such GPU", "--gpus auto",
    ),
    "a GPU that is no number": (
        (*RENDER, "--gpus", "zero"), '--gpus = "zero"', "no such GPU", "--gpus auto",
    ),
    "a list of no GPUs": ((*RENDER, "--gpus", ","), "--gpus", "an empty list", "--gpus none"),
    "a missing program": (
        (*RENDER, "--program", "nosuch.py"), "--program", "nor a file at", "fix",
    ),
    "a misspelt program": (
        (*RENDER, "--program", "clasifier"), "--program", "neither a built-in",
        "did you mean `classifier`?",
    ),
    "misspelt data": (
        (*RENDER, "--data", "digts"), "--data", "neither a data set",
        "did you mean `digits`?",
    ),
    "missing requirements": (
        (*RENDER, "--requirements", "nosuch.txt"), "--requirements",
        "No such file", "fix the path",
    ),
    "a folder as requirements": (
        (*RENDER, "--requirements", "compose"), "--requirements", "Is a directory", "fix the path",
    ),
    "missing data": (
        (*RENDER, "--data", "nosuch"), "--data", "nor a directory at", "`--data DIR`",
    ),
    "a file as data": (
        (*RENDER, "--data", "compose/demo.toml"), "--data", "nor a directory at",
        "this is a file: write its directory",
    ),
    "an open quote": ((*RENDER, "--args", "'open"), '--args "\'open"', "No closing", "close the"),
    "half a template": (
        (*RENDER, "--args", "{{ role"), "--args", "invalid template", "is written",
    ),
    "an unknown name in a template": (
        (*RENDER, "--args", "{{ rolle }}"), "--args", "no such name: `rolle`",
        "did you mean `role`?",
    ),
    "a misspelt manifest": (("render", "dmo"), "`dmo`", "no manifest", "did you mean `demo`?"),
    "a folder as a manifest": (("render", "compose"), "`compose`", "is a directory", "a file in"),
    "a manifest that is no TOML": (
        ("render", "notes.txt"), "notes.txt", "not valid TOML", "fix the line",
    ),
    "an option for what is a word": (
        ("logs", "--task", "chief-0"), "--task", "no such option",
        "→ `cluster-kit logs --help` lists all",
    ),
    "an option of another verb": (
        ("status", "--follow"), "--follow", "no such option", "`cluster-kit logs` has it",
    ),
    "an option of a verb's own verb": (
        ("runs", "--keep", "3"), "--keep", "no such option", "→ `cluster-kit runs prune`, ",
    ),
    "an unknown option": ((*RENDER, "--frobnicate"), "--frobnicate", "no such option", "--help"),
    "an argument of the program as an option": (
        (*RENDER, "--epochs", "3"), "--epochs", "no such option", "one word: `--args '--epochs …'`",
    ),
    "an argument of the program that a key and an option resemble": (
        (*RENDER, "--units", "8"), "--units", "no such option", "→ `cluster-kit render --help`",
    ),
    "an argument of the program that an option resembles": (
        (*RENDER, "--seed", "8"), "--seed", "no such option", "→ `cluster-kit render --help`",
    ),
    "two arguments of the program without quotes": (
        (*RENDER, "--args", "--epochs", "3"), "(3)", "unexpected extra argument",
        "in quotes: `--args '--epochs …'`",
    ),
    "arguments of the program after two dashes": (
        (*RENDER, "--", "--epochs", "3"), "(--epochs 3)", "unexpected extra argument",
        "one word: `--args '…'`",
    ),
    "two keys after one --set": (
        (*RENDER, "--set", "retries=5", "deadline.job=2h"), "(deadline.job=2h)",
        "unexpected extra argument", "write `--set` before each key",
    ),
    "a key in the plural": (
        (*RENDER, "--set", "deadline.jobs=5m"), "--set deadline.jobs", "no such key",
        "did you mean `job`?",
    ),
    "a short option that no key resembles": (
        (*RENDER, "-o", "x"), "-o", "no such option", "→ `cluster-kit render --help` lists all",
    ),
    "the option of a manifest's key": (
        (*RENDER, "--evaluator", "2"), "--evaluator", "no such option", "`--set evaluator=…`",
    ),
    "half an address as a subnet": (
        (*RENDER, "--set", "subnet=10.1/16"), "--set subnet", "CIDR", "172.28.0.0/24",
    ),
    "retries in words": (
        (*RENDER, "--set", "retries=often"), "--set retries", "a whole number", "retries=3",
    ),
    "a value for a switch": (
        ("up", "demo", "--resume=x"), "--resume", "does not take a value",
        "→ `cluster-kit up --help` shows",
    ),
    "an unknown verb": (("rendr", "demo"), "rendr", "no such verb", "did you mean `render`?"),
    "a verb below another": (
        ("diff", "a", "b"), "diff", "no such verb", "did you mean `runs diff`?"
    ),
    "help as a verb": (("help",), "help", "no such verb", "help → `cluster-kit --help`"),
    "two manifests": (("render", "demo", "b"), "(b)", "unexpected extra argument", "--help"),
    "a CI that the kit does not know": (
        ("new", "x", "--ci", "jenkins"), "--ci 'jenkins'", "is not a CI that", "there are: github",
    ),
    "a new cluster with umlauts": (
        ("new", "Über"), "'Über'", "a DNS label", "`cluster-kit new uber`",
    ),
    "a new cluster of a name that is there": (
        ("new", "demo"), "demo.toml", "exists already, and nothing is", "choose another name",
    ),
    "a new cluster of no style": (
        ("new", "x", "--style", "both"), "--style 'both'", "not a style",
        "coordinator, all-tasks",
    ),
    "an image for a TPU": (
        ("image", "build", "--variant", "tpu"), "'--variant'", "'tpu' is not one of", "--help",
    ),
    "a word too many": (
        ("gpus", "x"), "cluster-kit gpus: ", "unexpected", "`cluster-kit gpus --help`",
    ),
    "an option without its value": (
        ("runs", "prune", "--keep"), "'--keep'", "requires", "→ `cluster-kit runs prune --help`",
    ),
    "a program without its ending": (
        (*RENDER, "--program", "train"), "--program", "nor a file at", "did you mean `train.py`?",
    ),
    "a scenario that is not there": (
        ("drill", "demo", "quikstart"), "`quikstart`", "no scenario", "did you mean `quickstart`?",
    ),
    "no faults": (("drill", "demo", "--faults", "0"), "'--faults'", "range x>=1", "--help"),
    "a seed in words": (("drill", "demo", "--seed", "x"), "'--seed'", "'x' is not", "--help"),
    "an unknown role of the matrix": (
        ("matrix", "--role", "boss"), "--role", "boss", "leader",
    ),
    "an unknown fault of the matrix": (
        ("matrix", "--fault", "melt"), "--fault", "melt", "crash",
    ),
    "an unknown way to compare": (
        ("compare", "--only", "nosuch"), "--only nosuch", "not found", "ps-async",
    ),
}  # fmt: skip
