"""Which variables look like secrets, and texts without their values."""

from __future__ import annotations

import contextlib
import functools
import json
import re
from collections.abc import Iterable, Iterator

MASK = "***"
SHORTEST = 4
"""Characters of a value that is masked in texts: a shorter one is part of too many words."""
LEAST_DIGITS = 8
"""The same for numbers."""
LEAST_PART, LONG = 6, 20
"""Characters of a line of a secret's file, and of any text in one that is JSON."""
_PLAIN = frozenset(("true", "false", "none", "null", "auto", "basic", "default", "disabled"))
_SECRET = re.compile(
    r"(^|_)(PASS|PASSWD|PASSWORD|PASSPHRASE|PWD|SECRETS?|TOKEN|CREDENTIALS?|AUTH|APIKEY|KEY|PAT)"
    r"(_|[0-9]*$)|PASSWORD|SECRET|APIKEY",
    re.IGNORECASE,
)
_PATH = re.compile(r"^(OLD)?PWD$|_(FILE|PATH|DIR)$", re.IGNORECASE)
"""Names of files are not secrets: AWS_SHARED_CREDENTIALS_FILE."""


@functools.lru_cache(maxsize=1024)
def looks_secret(name: str) -> bool:
    """Whether a variable of this name holds a secret, by common names: *_TOKEN, *_API_KEY, …"""
    return bool(_SECRET.search(name)) and not _PATH.search(name)


def parts(text: str) -> set[str]:
    """What of a secret's file is to be masked: all of it, its lines, and texts in its JSON."""
    found = {text.strip(), *(line.strip() for line in text.splitlines())}
    with contextlib.suppress(ValueError, RecursionError):
        found |= set(_texts(json.loads(text)))
    return {part for part in found if len(part) >= LEAST_PART}


def _texts(value: object) -> Iterator[str]:
    """The texts in a JSON value that are long, or whose key looks like a secret's."""
    inner = value.items() if isinstance(value, dict) else enumerate(value)  # type: ignore[arg-type]
    for key, item in inner if isinstance(value, dict | list) else ():
        if isinstance(item, str) and (len(item) >= LONG or looks_secret(str(key))):
            yield item
        elif isinstance(item, dict | list):
            yield from _texts(item)


def _tells_nothing(value: str) -> bool:
    """Whether a value is part of too many texts to be masked there."""
    plain = value.lower() in _PLAIN or (value.isdecimal() and len(value) < LEAST_DIGITS)
    return plain or len(value) < SHORTEST


def masked(text: str, values: Iterable[str]) -> str:
    """The text with MASK in place of each of these values, longer ones first."""
    for value in sorted({v for v in values if not _tells_nothing(v)}, key=len, reverse=True):
        text = text.replace(value, MASK)
    return text
