"""Ports and ulimits as they are written, and their types for the schema.

Pydantic turns the ValueErrors of this module into problems of the key.
"""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BeforeValidator, WithJsonSchema

_PORT = re.compile(r"(?:127\.0\.0\.1:)?(?:([0-9]{1,5}):)?([0-9]{1,5})")
_ULIMIT = re.compile(r"(-1|[0-9]{1,18}|unlimited)(?::(-1|[0-9]{1,18}|unlimited))?")


def port(value: object) -> tuple[int, int]:
    """(the host's port, the container's) of `6006` or `"8080:80"`; raises ValueError."""
    found = None
    if isinstance(value, int | str) and not isinstance(value, bool):
        found = _PORT.fullmatch(str(value))
    if found is None:
        raise ValueError(
            'a port is a number, or "8080:80": the port of 127.0.0.1, the container\'s'
        )
    inside = int(found[2])
    ports = (int(found[1] or inside), inside)
    if not all(1 <= number <= 65535 for number in ports):
        raise ValueError("a port is 1 to 65535")
    return ports


def ulimit(value: object) -> tuple[int, int]:
    """(soft limit, hard limit) of `65536`, `"1024:65536"` or `-1`: no limit; raises ValueError."""
    found = None
    if isinstance(value, int | str) and not isinstance(value, bool):
        found = _ULIMIT.fullmatch(str(value))
    if found is None:
        raise ValueError('a ulimit is a number, "soft:hard", or -1 for no limit')
    soft, hard = (
        -1 if word == "unlimited" else int(word) for word in (found[1], found[2] or found[1])
    )
    if hard != -1 and not 0 <= soft <= hard:
        raise ValueError("the soft limit is at most the hard one")
    return soft, hard


_NUMBER_OR_TEXT = WithJsonSchema({"type": ["integer", "string"]})
PortPair = Annotated[tuple[int, int], BeforeValidator(port), _NUMBER_OR_TEXT]
SoftHard = Annotated[tuple[int, int], BeforeValidator(ulimit), _NUMBER_OR_TEXT]
