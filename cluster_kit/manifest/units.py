"""Sizes, durations and bandwidths as text, and their types for the schema.

Pydantic turns the ValueErrors of this module into problems of the key.
"""

from __future__ import annotations

import math
import re
from typing import Annotated

from pydantic import BeforeValidator, WithJsonSchema

_MEASURE = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,18})?)\s*([a-z]*)")
_POWERS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_SIZES = {f"{unit}{end}": size for unit, size in _POWERS.items() for end in ("", "b", "ib")}
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}
_LEAST_MEMORY, _MOST_MEMORY = 6 * 2**20, 2**60
"""In bytes: the engine refuses less, and more is surely a mistake."""
_LONGEST_S = 366 * 86400.0
_BITS = {"bit": 1, "kbit": 10**3, "mbit": 10**6, "gbit": 10**9}
_LEAST_BANDWIDTH, _MOST_BANDWIDTH = 64 * 10**3, 100 * 10**9
"""In bits per second; with less, tasks do not answer each other in time."""


def size(value: object) -> int:
    """Bytes of `"2g"`, `"512m"` (powers of 1024) or of a whole number; raises ValueError."""
    amount: float | None = None
    if isinstance(value, int) and not isinstance(value, bool):
        amount = value
    elif isinstance(value, str):
        match = _MEASURE.fullmatch(value.strip().lower())
        if match and match[2] in _SIZES:
            amount = float(match[1]) * _SIZES[match[2]]
    if amount is None:
        raise ValueError('a size is a number with a unit: "512m", "2g"')
    if not _LEAST_MEMORY <= amount <= _MOST_MEMORY:
        raise ValueError("a size is at least 6 MiB, the engine's own minimum, and at most 1 EiB")
    return int(amount)


def size_or_none(value: object) -> int | None:
    """As `size`, and None for 0, which is said to take a bound away; raises ValueError."""
    return None if value is None or (value == 0 and not isinstance(value, bool)) else size(value)


def duration(value: object) -> float:
    """Seconds of a number, or of `"90s"`, `"10m"`, `"2h"`; raises ValueError."""
    seconds: float | None = None
    if isinstance(value, int | float) and not isinstance(value, bool):
        seconds = value
    elif isinstance(value, str):
        match = _MEASURE.fullmatch(value.strip().lower())
        if match and match[2] in _SECONDS:
            seconds = float(match[1]) * _SECONDS[match[2]]
    if seconds is None or math.isnan(seconds):
        raise ValueError('a duration is a number of seconds, or "90s", "10m", "2h"')
    if not 0 < seconds <= _LONGEST_S:
        raise ValueError("a duration is more than 0 seconds and at most a year")
    return float(seconds)


def duration_or_never(value: object) -> float:
    """As `duration`, and 0, which is said to switch something off; raises ValueError."""
    return 0.0 if value == 0 and not isinstance(value, bool) else duration(value)


def duration_or_auto(value: object) -> float | None:
    """As `duration_or_never`, and None for `"auto"`; raises ValueError."""
    return None if value == "auto" else duration_or_never(value)


def bandwidth(value: object) -> int:
    """Bits per second of `"500kbit"`, `"100mbit"`, `"1gbit"`: powers of 1000, as tc counts.

    Raises ValueError.
    """
    match = _MEASURE.fullmatch(value.strip().lower()) if isinstance(value, str) else None
    if match is None or match[2] not in _BITS:
        raise ValueError('a bandwidth is a number with a unit: "500kbit", "100mbit", "1gbit"')
    bits = float(match[1]) * _BITS[match[2]]
    if not _LEAST_BANDWIDTH <= bits <= _MOST_BANDWIDTH:
        raise ValueError("a bandwidth is at least 64kbit and at most 100gbit")
    return int(bits)


Bytes = Annotated[
    int,
    BeforeValidator(size),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 1}, {"type": "string"}]}),
]
BytesOrNone = Annotated[
    int | None,
    BeforeValidator(size_or_none),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string"}]}),
]
Seconds = Annotated[
    float,
    BeforeValidator(duration),
    WithJsonSchema({"anyOf": [{"type": "number", "exclusiveMinimum": 0}, {"type": "string"}]}),
]
BitsPerSecond = Annotated[int, BeforeValidator(bandwidth), WithJsonSchema({"type": "string"})]
SecondsOrNever = Annotated[
    float,
    BeforeValidator(duration_or_never),
    WithJsonSchema({"anyOf": [{"type": "number", "minimum": 0}, {"type": "string"}]}),
]
SecondsOrAuto = Annotated[
    float | None,
    BeforeValidator(duration_or_auto),
    WithJsonSchema({"anyOf": [{"type": "number", "minimum": 0}, {"type": "string"}]}),
]
