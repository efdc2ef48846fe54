"""Retries, CPUs, memory, bandwidth, deadlines and GPUs."""

from __future__ import annotations

MISTAKES = {
    "no gpu per worker": (
        "gpus_per_worker = 0", "gpus_per_worker", "0", "greater than 0", "of each worker"
    ),
    "negative retries": ("retries = -1", "retries", "-1", "greater than or equal to 0", "Restarts"),
    "endless retries": ("retries = 1000", "retries", "1000", "less than or equal to 100", "Rest"),
    "more CPUs than there are": (
        "[role.worker]\ncpus = 9", "role.worker.cpus", "9", "8 CPUs", "at most `cpus = 8`"
    ),
    "more CPUs for one task": (
        "[task.ps-1]\ncpus = 8.5", "task.ps-1.cpus", "8.5", "8 CPUs", "at most `cpus = 8`"
    ),
    "no CPU": ("[role.ps]\ncpus = 0", "role.ps.cpus", "0", "or equal to 0.01", "CPU limit"),
    "endless CPUs": ("[role.ps]\ncpus = inf", "role.ps.cpus", "inf", "finite", "CPU limit"),
    "CPUs that are no number": ("[role.ps]\ncpus = nan", "role.ps.cpus", "nan", "must be", "CPU"),
    "more memory than there is": (
        '[role.worker]\nmemory = "17g"',
        "role.worker.memory", "17.0 GiB", "this host has 16.0 GiB", "16384m",
    ),
    "more memory in sum": (
        'worker = 5\n[role.worker]\nmemory = "3g"\n[task.worker-0]\nmemory = "5g"',
        "memory", "", "is 17.0 GiB, but this host has 16.0 GiB", "lower the limits",
    ),
    "memory without a meaning": (
        '[role.ps]\nmemory = "much"', "role.ps.memory", '"much"', "a size is a number", "Memory"
    ),
    "memory as a fraction": ("[role.ps]\nmemory = 1.5", "role.ps.memory", "1.5", "a size", "Mem"),
    "no memory": ('[role.ps]\nmemory = "0g"', "role.ps.memory", '"0g"', "at least 6 MiB", "Memory"),
    "memory in bytes by mistake": (
        "[role.ps]\nmemory = 512", "role.ps.memory", "512", "at least 6 MiB", "Memory limit"
    ),
    "bandwidth without a unit": (
        '[role.ps]\nbandwidth = "100"', "role.ps.bandwidth", '"100"', "number with a unit", "speed"
    ),
    "bandwidth as a number": (
        "[role.ps]\nbandwidth = 100", "role.ps.bandwidth", "100", "number with a unit",
        "network speed",
    ),
    "bandwidth in bytes": (
        '[role.ps]\nbandwidth = "9mbps"', "role.ps.bandwidth", '"9mbps"', '"100mbit"', "100mbit"
    ),
    "bandwidth of a string and a can": (
        '[task.ps-0]\nbandwidth = "9kbit"', "task.ps-0.bandwidth", '"9kbit"', "at least 64kbit", "1"
    ),
    "bandwidth of nobody's": (
        '[task.ps-0]\nbandwidth = "1000gbit"', "task.ps-0.bandwidth", '"1000gbit"', "100gbit", "10"
    ),
    "no bandwidth": (
        '[task.ps-0]\nbandwidth = "0mbit"', "task.ps-0.bandwidth", '"0mbit"', "at least 64", "100"
    ),
    "modules of tasks for a container that starts as root": (
        '[role.ps]\nbandwidth = "9mbit"\nenvironment = { PYTHONPATH = "/a:/opt/../output/b" }',
        "role.ps.environment.PYTHONPATH", '"/a:/opt/../output/b"', "starts as root", "name",
    ),
    "libraries of tasks for one task that starts as root": (
        '[role.ps]\nbandwidth = "9mbit"\n'
        '[task.ps-1]\nenvironment = { LD_PRELOAD = "/output/a.so" }',
        "task.ps-1.environment.LD_PRELOAD", '"/output/a.so"', "starts as root", "name a directory",
    ),
    "compiled modules of tasks for a role of which one task starts as root": (
        '[task.ps-1]\nbandwidth = "9mbit"\n[role.ps]\n'
        'environment = { PYTHONPYCACHEPREFIX = "/output/c" }',
        "role.ps.environment.PYTHONPYCACHEPREFIX", '"/output/c"', "starts as root", "name",
    ),
    "a home of tasks for an image that starts as root": (
        'image = "mine:1"\n[role.ps]\nbandwidth = "9mbit"\nenvironment = { HOME = "/output" }',
        "role.ps.environment.HOME", '"/output"', "starts as root", "name a directory",
    ),
    "negative deadline": ("deadline.job = -1", "deadline.job", "-1", "more than 0", "program"),
    "deadline in days": ('deadline.job = "3d"', "deadline.job", '"3d"', "a duration is", "program"),
    "endless deadline": ("deadline.job = inf", "deadline.job", "inf", "at most a year", "program"),
    "deadline that is no number": ("deadline.job = nan", "deadline.job", "nan", "a duration", "p"),
    "a GPU that is listed twice": (
        'gpus = ["0", "0"]', "gpus", '["0", "0"]', "is listed 2 times", "each GPU once"
    ),
    "a GPU that is not there": ("gpus = [0, 5]", "gpus", '"5"', "no such GPU", "auto"),
    "uneven GPUs": (
        "worker = 1\ngpus = [0, 1]\ngpus_per_worker = 1",
        "gpus", '["0", "1"]', "do not divide evenly", "list 1 GPUs",
    ),
}  # fmt: skip
