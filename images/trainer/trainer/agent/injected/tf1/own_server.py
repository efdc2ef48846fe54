"""A TensorFlow server in the program's own process, at this task's address.

For programs that start none and only connect to one, as with `--master=grpc://host:port`.
"""

from __future__ import annotations

import json
import os

_kept = []
"""Keeps the server alive: it ends with its object."""


def start() -> bool:
    """Start this task's server; returns False without a cluster, or in a child process of the
    program, since the first process has the address."""
    config = json.loads(os.environ.get("TF_CONFIG") or "{}")
    if not config.get("cluster") or not _first():
        return False
    from tensorflow.python.training import server_lib

    job, index = config["task"]["type"], int(config["task"]["index"])
    _kept.append(server_lib.Server(config["cluster"], job_name=job, task_index=index))
    return True


def _first() -> bool:
    """Whether this is the first process of the program that calls this."""
    mailbox = os.environ.get("CLUSTER_KIT_MAILBOX")
    if not mailbox:
        return True
    try:
        open(os.path.join(mailbox, "own-server"), "x").close()  # noqa: PTH118, PTH123
    except FileExistsError:
        return False
    return True
