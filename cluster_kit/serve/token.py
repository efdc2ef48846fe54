"""A token that stays the same from one start of the server to the next: in a file."""

from __future__ import annotations

import os
import re
import secrets
import stat
from pathlib import Path

from cluster_kit.errors import HostError, UsageError
from cluster_kit.workspace import write_atomically

LONGEST = 4096
ANOTHER = "name a file of your own: --token-file token"
VALID = re.compile(r"[A-Za-z0-9_-]{16,200}")


def new_token() -> str:
    """One that nobody can guess, and that a URL takes as it is."""
    return secrets.token_urlsafe(24)


def token_in(file: Path) -> str:
    """The token in a file. A file that is missing is written with a new token, mode 0600.

    Raises:
        UsageError: the file holds no token.
        HostError: it cannot be read or written, or others can use it.
    """
    try:
        try:
            token = _read(file)
        except FileNotFoundError:
            token = new_token()
            write_atomically(file, f"{token}\n", mode=0o600)
    except OSError as error:
        cure = "name a file that you may read, or one that can be written: --token-file token"
        raise _unusable(file, str(error.strerror), cure) from error
    if not VALID.fullmatch(token):
        raise UsageError(
            f"{file} does not hold a token: 16 to 200 characters of A-Z, a-z, 0-9, - and _",
            "remove it, and a new one is written",
        )
    return token


def _read(file: Path) -> str:
    """The text of a regular file that only this user can use; a FIFO or device never blocks.

    Raises:
        HostError: it is something else, or another user owns it or can use it.
        OSError: it cannot be opened.
    """
    descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        about = os.fstat(descriptor)
        mode = stat.S_IMODE(about.st_mode)
        if not stat.S_ISREG(about.st_mode):
            raise _unusable(file, "it is not a regular file", ANOTHER)
        if about.st_uid != os.geteuid():
            raise _unusable(file, f"it belongs to another user (uid {about.st_uid})", ANOTHER)
        if mode & 0o077:
            raise _unusable(
                file,
                f"other users can use it: its mode is {mode:04o}, and must be 0600",
                f"`chmod 600 {file}`; remove it if somebody may have read it, and a new one is "
                "written",
            )
        return os.read(descriptor, LONGEST).decode(errors="replace").strip()
    finally:
        os.close(descriptor)


def _unusable(file: Path, why: str, cure: str) -> HostError:
    return HostError(f"the token file {file} cannot be used: {why}", cure)
