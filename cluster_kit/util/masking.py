"""Which variables look like secrets, and texts without their values."""

from __future__ import annotations

import re
from collections.abc import Iterable

MASK = "***"
SHORTEST = 4
"""Characters of a value that is masked in texts: a shorter one is part of too many words."""
_SECRET = re.compile(
    r"(^|_)(PASS|PASSWD|PASSWORD|PASSPHRASE|PWD|SECRETS?|TOKEN|CREDENTIALS?|AUTH|APIKEY|KEY|PAT)"
    r"(_|[0-9]*$)|PASSWORD|SECRET|APIKEY",
    re.IGNORECASE,
)
_PATH = re.compile(r"^(OLD)?PWD$|_(FILE|PATH|DIR)$", re.IGNORECASE)
"""Names of files are not secrets: AWS_SHARED_CREDENTIALS_FILE."""


def looks_secret(name: str) -> bool:
    """Whether a variable of this name holds a secret, by common names: *_TOKEN, *_API_KEY, …"""
    return bool(_SECRET.search(name)) and not _PATH.search(name)


def masked(text: str, values: Iterable[str]) -> str:
    """The text with MASK in place of each of these values, longer ones first."""
    for value in sorted({value for value in values if len(value) >= SHORTEST}, key=len)[::-1]:
        text = text.replace(value, MASK)
    return text
