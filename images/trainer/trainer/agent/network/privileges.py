"""Drops root and every capability, for good."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from trainer.agent.errors import ContractError
from trainer.agent.start_anew import start_anew
from trainer.agent.task import read_task

CAP_VERSION_3 = 0x20080522
PR_CAPBSET_READ, PR_CAPBSET_DROP = 23, 24
PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
LAST_CAPABILITY = Path("/proc/sys/kernel/cap_last_cap")
STATUS = Path("/proc/self/status")


OWNER = "owner"
"""The value that means the owner of the output directory, who differs between machines."""


def parse_user(text: str, variable: str, output: Path) -> tuple[int, int]:
    """(uid, gid) of `uid:gid`, or of the owner of the directory `output`."""
    if text == OWNER:
        owner = output.stat()
        return owner.st_uid, owner.st_gid
    uid, colon, gid = text.partition(":")
    if not (colon and uid.isascii() and uid.isdigit() and gid.isascii() and gid.isdigit()):
        raise ContractError(f"{variable} = {text!r}: must be uid:gid, as in 1000:1000, or {OWNER}")
    return int(uid), int(gid)


def drop(user: tuple[int, int]) -> None:
    """Become `user` (uid, gid) without groups, and empty all five sets of capabilities.

    This needs SETUID, SETGID and SETPCAP. Raises RuntimeError if a capability is left, which is a
    bug.
    """
    uid, gid = user
    libc = ctypes.CDLL(None, use_errno=True)
    for capability in range(int(LAST_CAPABILITY.read_text()) + 1):
        if libc.prctl(PR_CAPBSET_READ, capability, 0, 0, 0) == 1:
            checked(libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0), "drop from the bounding set")
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    checked(libc.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0), "clear the ambient set")
    header = (ctypes.c_uint32 * 2)(CAP_VERSION_3, 0)
    nothing = (ctypes.c_uint32 * 6)()
    checked(libc.capset(header, nothing), "clear the capabilities")
    if left := held():
        raise RuntimeError(f"capabilities left: {left}")


def held() -> dict[str, str]:
    """The sets of capabilities of this process that are not empty, as /proc shows them."""
    lines = (line.split() for line in STATUS.read_text().splitlines() if line.startswith("Cap"))
    return {name.rstrip(":"): value for name, value in lines if int(value, 16)}


def checked(result: int, what: str) -> None:
    """Raise OSError with the C library's errno if a call has failed."""
    if result:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")


USER = "CLUSTER_KIT_USER"


def wanted(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether this process is root and has to become the owner of the output directory."""
    return environment.get(USER) == OWNER and os.getuid() == 0


def start_anew_as_owner(arguments: Sequence[str]) -> NoReturn:
    """Drop root, and execute `python3 -m trainer ARGUMENTS…` again.

    Raises:
        ContractError: this container may not drop root.
    """
    try:
        drop(parse_user(OWNER, USER, read_task().output))
    except OSError as problem:
        raise ContractError(
            f"{USER} = {OWNER!r}: cannot become the owner of the output directory "
            f"({problem.strerror}): this container lacks SETUID, SETGID or SETPCAP; render its "
            "compose file anew"
        ) from problem
    environment = {key: value for key, value in os.environ.items() if key != USER}
    # Anew, because the kernel hides /proc/self of a process that has changed its user.
    start_anew(arguments, environment)
