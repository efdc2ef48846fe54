"""Becoming the owner of the output directory: a portable compose file knows no user of its own.

A container that starts as root with SETUID, SETGID, SETPCAP and KILL gives up all of that before
anything else, and what it writes belongs to whoever made the directory.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import NoReturn

from trainer.agent.errors import ContractError
from trainer.agent.network import privileges
from trainer.agent.start_anew import start_anew
from trainer.agent.task import read_task

USER = "CLUSTER_KIT_USER"


def wanted(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether this process is root and has to become the owner of the output directory."""
    return environment.get(USER) == privileges.OWNER and os.getuid() == 0


def start_anew_as_owner(arguments: Sequence[str]) -> NoReturn:
    """Give up root, and start `python3 -m trainer ARGUMENTS…` again.

    Raises:
        ContractError: this container may not give up root.
    """
    try:
        privileges.drop(privileges.parse_user(privileges.OWNER, USER, read_task().output))
    except OSError as problem:
        raise ContractError(
            f"{USER} = {privileges.OWNER!r}: cannot become the owner of the output directory "
            f"({problem.strerror}): this container lacks SETUID, SETGID or SETPCAP; render its "
            "compose file anew"
        ) from problem
    environment = {key: value for key, value in os.environ.items() if key != USER}
    # Anew, because the kernel hides /proc/self of a process that has changed its user.
    start_anew(arguments, environment)
