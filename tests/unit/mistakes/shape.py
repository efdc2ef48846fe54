"""Names and types of keys."""

from __future__ import annotations

MISTAKES = {
    "unknown key": ("wrker = 3", "wrker", "3", "no such key", "did you mean `worker`?"),
    "unknown key, another begins so": ("retry = 2", "retry", "2", "no such key", "mean `retries`?"),
    "unknown key, nothing near": ("zzz = 1", "zzz", "1", "no such key", "known keys: addressing"),
    "unknown key of a table": (
        "[deadline]\nstrat = 1", "deadline.strat", "1", "no such key", "did you mean `start`?"
    ),
    "unknown key of a task": (
        "[task.worker-1]\ncpu = 1", "task.worker-1.cpu", "1", "no such key", "`cpus`"
    ),
    "limit beside its table": (
        'bandwidth = "1mbit"', "bandwidth", '"1mbit"', "no such key",
        "write it under [role.worker] or [task.worker-0]",
    ),
    "limit beside its table, misspelt": (
        "cpu = 2", "cpu", "2", "no such key", "did you mean `cpus`? write it under [role.worker]"
    ),
    "variables beside their table": (
        "environment = {A = 'b'}", "environment", '{A = "b"}', "no such key", "write it under [role"
    ),
    "address beside its table": (
        'ip = "10.1.2.3"', "ip", '"10.1.2.3"', "no such key", "write it under [task.worker-0]"
    ),
    "address of a role": (
        'role.ps.ip = "10.1.2.3"', "role.ps.ip", '"10.1.2.3"', "no such key", "under [task.worker"
    ),
    "deadline beside its table": (
        'job = "1h"', "job", '"1h"', "no such key", "write it under [deadline]"
    ),
    "top-level key below a table": (
        "[role.ps]\ncpus = 1\nretries = 0", "role.ps.retries", "0", "no such key",
        "write it at the top, above the first [table]",
    ),
    "unknown role": ("[role.boss]\ncpus = 1", "role.boss", "{cpus = 1}", "no such key", "chief"),
    "limits of a task beside its table": (
        "[worker-1]\ncpus = 1", "worker-1", "{cpus = 1}", "no such key", "`worker`"
    ),
    "text for a count": ('worker = "3"', "worker", '"3"', "must be a whole number", "1 or more"),
    "half a worker": ("worker = 2.0", "worker", "2.0", "must be a whole number", "1 or more"),
    "truth for a count": ("worker = true", "worker", "true", "must be a whole number", "workers"),
    "truth for a port": ("port = true", "port", "true", "must be a whole number", "beacon"),
    "number for a name": ("image = 5", "image", "5", "must be a text in quotes", "trainer"),
    "version without quotes": (
        "tensorflow = 2.15", "tensorflow", "2.15", "must be a text in quotes",
        'write `tensorflow = "2.15"`',
    ),
    "date for a data set": (
        "data = 2024-01-01", "data", "2024-01-01", "must be a text in quotes", "data set"
    ),
    "one table for a list of tables": (
        '[mount]\nsource = "."', "mount", '{source = "."}', "must be a list",
        "write it as [[mount]]",
    ),
    "text for arguments": (
        'args = "-v 1"', "args", '"-v 1"', "must be a list", 'write `args = ["-v", "1"]`'
    ),
    "one port": (
        "[role.chief]\nports = 6006", "role.chief.ports", "6006", "must be a list",
        "write `ports = [6006]`",
    ),
    "a variable as a text": (
        '[role.chief]\nenvironment = "A=1"', "role.chief.environment", '"A=1"', "must be a table",
        '`A = "1"`',
    ),
    "number among arguments": ("args = [1]", "args.0", "1", "must be a text in quotes", "Argum"),
    "number for a table": ("role = 5", "role", "5", "must be a table", "by role"),
    "list for a table": ("task = []", "task", "[]", "must be a table", "[task.worker-1]"),
    "number for a task": ("task.worker-1 = 5", "task.worker-1", "5", "must be a table", "one task"),
    "unknown addressing": ('addressing = "dns"', "addressing", '"dns"', "'ip' or 'name'", "TF_C"),
    "unknown server": ('server = "go"', "server", '"go"', "'native' or 'python'", "C API"),
    "unknown gpus": ('gpus = "all"', "gpus", '"all"', '"auto", "require" or a list', "UUIDs"),
    "table for gpus": ("gpus = {a = 1}", "gpus", "{a = 1}", '"auto", "require" or a', "UUIDs"),
    "truth among gpus": ("gpus = [true]", "gpus", "[true]", "list of indexes or UUIDs", "UUIDs"),
    "number for a variable": (
        "[role.ps.environment]\nA = 1",
        "role.ps.environment.A", "1", "must be a text in quotes", "Environment variables",
    ),
    "NUL in an argument": ('args = ["a\\u0000b"]', "args.0", '"a\\u0000b"', "NUL", "Arguments"),
    "NUL in a path": ('data = "a\\u0000b"', "data", '"a\\u0000b"', "NUL", "data set"),
}  # fmt: skip
