"""A token that stays the same from one start of the server to the next: in a file."""

from __future__ import annotations

import re
import secrets
from pathlib import Path

from cluster_kit.errors import HostError, UsageError
from cluster_kit.workspace import write_atomically

VALID = re.compile(r"[A-Za-z0-9_-]{16,200}")


def new_token() -> str:
    """One that nobody can guess, and that a URL takes as it is."""
    return secrets.token_urlsafe(24)


def token_in(file: Path) -> str:
    """The token in a file, which is written with a new one, for its owner only, if it is not there.

    Raises:
        UsageError: what it has is not a token.
        HostError: it cannot be read or written.
    """
    try:
        try:
            token = file.read_text(encoding="utf-8", errors="replace").strip()
        except FileNotFoundError:
            token = new_token()
            write_atomically(file, f"{token}\n", mode=0o600)
    except OSError as error:
        raise HostError(
            f"the token file {file} cannot be used: {error.strerror}",
            "name a file that you may read, or one that can be written: --token-file token",
        ) from error
    if not VALID.fullmatch(token):
        raise UsageError(
            f"{file} does not hold a token: 16 to 200 characters of A-Z, a-z, 0-9, - and _",
            "remove it, and a new one is written",
        )
    return token
