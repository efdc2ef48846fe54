"""Types of a manifest's values: texts, names, sizes, durations, ports, ulimits. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    PlainSerializer,
    WithJsonSchema,
)

from cluster_kit.resolved import Ready
from cluster_kit.roles import ROLES


class Strict(BaseModel):
    """A frozen table that accepts no unknown key and converts no value to another type."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


def _text(value: str) -> str:
    """The text; raises ValueError if a command line, environment or UTF-8 file cannot hold it."""
    if "\0" in value or any("\ud800" <= character <= "\udfff" for character in value):
        raise ValueError("a text cannot hold a NUL character or bytes that are not UTF-8")
    return value


Text = Annotated[str, AfterValidator(_text)]
GpuId = Annotated[
    str,
    BeforeValidator(lambda value: str(value) if type(value) is int else value),
    WithJsonSchema({"type": ["string", "integer"]}),
]


def whole(value: object) -> object:
    """The value if it is a whole number; raises ValueError otherwise.

    Pydantic's literals would accept `true` and `1.0` for 1.
    """
    if type(value) is not int:
        raise ValueError("a format is a whole number")
    return value


_MEASURE = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,18})?)\s*([a-z]*)")
_POWERS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_SIZES = {f"{unit}{end}": size for unit, size in _POWERS.items() for end in ("", "b", "i", "ib")}
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}
_LEAST_MEMORY, _MOST_MEMORY = 6 * 2**20, 2**60
"""Bytes: the engine refuses less memory, and larger sizes are certainly a mistake."""
_LONGEST_S = 366 * 86400.0
_BITS = {"bit": 1, "kbit": 10**3, "mbit": 10**6, "gbit": 10**9}
_LEAST_BANDWIDTH, _MOST_BANDWIDTH = 64 * 10**3, 100 * 10**9
"""Bits per second; with less, tasks do not answer each other in time."""
_RATES, _MOST_RATE = {**_BITS, "tbit": 10**12}, 10**15
_SHORT = {**_SECONDS, "us": 1e-6, "ms": 1e-3}


def _measure(value: object, units: Mapping[str, float]) -> float | None:
    """The number in a text such as `"2g"`, times its unit; None for any other value."""
    match = _MEASURE.fullmatch(value.strip().lower()) if isinstance(value, str) else None
    return float(match[1]) * units[match[2]] if match and match[2] in units else None


def _bytes(value: object) -> float | None:
    """The bytes of a whole number or of a text such as `"2g"`; None for any other value."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    return _measure(value, _SIZES)


def size(value: object) -> int:
    """Bytes of `"2g"`, `"512m"` (powers of 1024) or of a whole number; raises ValueError."""
    number = _bytes(value)
    if number is None:
        raise ValueError('a size is a number with a unit: "512m", "2g"')
    if not _LEAST_MEMORY <= number <= _MOST_MEMORY:
        raise ValueError("a size is at least 6 MiB and at most 1 EiB")
    return int(number)


def size_or_none(value: object) -> int | None:
    """Like `size`, but 0 means no limit and returns None; raises ValueError."""
    return None if value is None or (value == 0 and not isinstance(value, bool)) else size(value)


def duration(value: object) -> float:
    """The seconds in a number, or in `"90s"`, `"10m"`, `"2h"`; raises ValueError."""
    seconds = _measure(value, _SECONDS)
    if isinstance(value, int | float) and not isinstance(value, bool):
        seconds = value
    if seconds is None or seconds != seconds:  # NaN; math.isnan fails for a huge int
        raise ValueError('a duration is a number of seconds, or "90s", "10m", "2h"')
    if not 0 < seconds <= _LONGEST_S:
        raise ValueError("a duration is more than 0 seconds and at most a year")
    return float(seconds)


def duration_or_never(value: object) -> float:
    """Like `duration`, but 0 is valid and means never; raises ValueError."""
    return 0.0 if value == 0 and not isinstance(value, bool) else duration(value)


def duration_or_auto(value: object) -> float | None:
    """Like `duration_or_never`, but `"auto"` returns None; raises ValueError."""
    return None if value == "auto" else duration_or_never(value)


def bandwidth(value: object) -> int:
    """Bits per second of `"500kbit"`, `"100mbit"`, `"1gbit"`: powers of 1000, as tc counts.

    Raises ValueError.
    """
    bits = _measure(value, _BITS)
    if bits is None:
        raise ValueError('a bandwidth is a number with a unit: "500kbit", "100mbit", "1gbit"')
    if not _LEAST_BANDWIDTH <= bits <= _MOST_BANDWIDTH:
        raise ValueError("a bandwidth is at least 64kbit and at most 100gbit")
    return int(bits)


def rate(value: object) -> float:
    """Bits per second of `"25gbit"`, `"2.4tbit"`: like `bandwidth`, of links that no engine limits.

    Raises ValueError.
    """
    bits = _measure(value, _RATES)
    if bits is None:
        raise ValueError('a rate is a number with a unit: "100mbit", "25gbit", "2.4tbit"')
    if not 1 <= bits <= _MOST_RATE:
        raise ValueError("a rate is at least 1bit and at most 1000tbit per second")
    return bits


def rate_text(bits: float) -> str:
    """The bandwidth as a text that `rate` can read, such as `25gbit`."""
    units = sorted(_RATES, key=lambda unit: -_RATES[unit])
    texts = (f"{bits / _RATES[unit]:g}{unit}" for unit in units if bits >= _RATES[unit])
    return next((text for text in texts if _reads_as(text, bits)), f"{bits:.9f}bit")


def _reads_as(text: str, bits: float) -> bool:
    try:
        return rate(text) == bits
    except ValueError:  # an exponent
        return False


def amount(value: object) -> int:
    """Bytes of a whole number, or of `"256k"` (powers of 1024); 0 is valid; raises ValueError."""
    number = _bytes(value)
    if number is None:
        raise ValueError('an amount is a number of bytes, or "256k", "411m" (powers of 1024)')
    if not 0 <= number <= _MOST_MEMORY:
        raise ValueError("an amount is at least 0 bytes and at most 1 EiB")
    return int(number)


def short_duration(value: object) -> float:
    """Like `duration`, but `"100us"` and `"5ms"` are valid, too; raises ValueError."""
    seconds = _measure(value, _SHORT)
    if seconds is None and isinstance(value, str):
        raise ValueError('a time is a number of seconds, or "100us", "5ms", "90s", "10m"')
    return duration(value if seconds is None else seconds)


_PAGE = re.compile(r"http://:([0-9]{1,5})(/[!-~]*)?")


def ready(value: object) -> Ready:
    """Returns the check of `6379`, `"http://:8080/health"` or `["redis-cli", "ping"]`.

    Raises ValueError.
    """
    if isinstance(value, list) and value and all(isinstance(word, str) for word in value):
        return Ready(command=tuple(_text(word) for word in value))
    page = _PAGE.fullmatch(value) if isinstance(value, str) else None
    port = int(page[1]) if page else value
    if isinstance(port, bool) or not isinstance(port, int) or not 0 < port < 65536:
        raise ValueError(
            'a check is a port, "http://:PORT/PATH", or a command as a list of its words'
        )
    return Ready(port, (page[2] or "/") if page else "")


ReadyCheck = Annotated[
    Ready,
    BeforeValidator(ready),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 1, "maximum": 65535},
                {"type": "string", "pattern": f"^{_PAGE.pattern}$"},
                {"type": "array", "items": {"type": "string"}, "minItems": 1},
            ]
        }
    ),
]
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
Amount = Annotated[
    int,
    BeforeValidator(amount),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string"}]}),
]
ShortSeconds = Annotated[
    float,
    BeforeValidator(short_duration),
    WithJsonSchema({"anyOf": [{"type": "number", "exclusiveMinimum": 0}, {"type": "string"}]}),
]
Rate = Annotated[
    float,
    BeforeValidator(rate),
    PlainSerializer(rate_text, when_used="json"),
    WithJsonSchema({"type": "string"}),
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


_PORT = re.compile(r"(?:127\.0\.0\.1:)?(?:([0-9]{1,5}):)?([0-9]{1,5})")
_ULIMIT = re.compile(r"(-1|[0-9]{1,18}|unlimited)(?::(-1|[0-9]{1,18}|unlimited))?")


def port(value: object) -> tuple[int, int]:
    """(the host's port, the container's) of `6006` or `"8080:80"`; raises ValueError."""
    match = None
    if isinstance(value, int | str) and not isinstance(value, bool):
        match = _PORT.fullmatch(str(value))
    if match is None:
        raise ValueError(
            'a port is a number, or "8080:80": the port of 127.0.0.1, the container\'s'
        )
    inside = int(match[2])
    ports = (int(match[1] or inside), inside)
    if not all(1 <= number <= 65535 for number in ports):
        raise ValueError("a port is 1 to 65535")
    return ports


def ulimit(value: object) -> tuple[int, int]:
    """(soft limit, hard limit) of `65536`, `"1024:65536"` or `-1`: no limit; raises ValueError."""
    match = None
    if isinstance(value, int | str) and not isinstance(value, bool):
        match = _ULIMIT.fullmatch(str(value))
    if match is None:
        raise ValueError('a ulimit is a number, "soft:hard", or -1 for no limit')
    soft, hard = (
        -1 if word == "unlimited" else int(word) for word in (match[1], match[2] or match[1])
    )
    if hard != -1 and not 0 <= soft <= hard:
        raise ValueError("the soft limit is at most the hard one")
    return soft, hard


_CODES = re.compile(r"([0-9]{1,3})(?:-([0-9]{1,3}))?")


def exit_codes(value: object) -> tuple[int, int]:
    """(first, last) of an exit code, `3`, or of a range of them, `"64-78"`; raises ValueError."""
    match = None
    if isinstance(value, int | str) and not isinstance(value, bool):
        match = _CODES.fullmatch(str(value))
    if match is None:
        raise ValueError('an exit code is 1 to 255, or a range of them in quotes: "64-78"')
    first, last = int(match[1]), int(match[2] or match[1])
    if not first or first > last or last > 255:
        raise ValueError("an exit code is 1 to 255 (0 is a success), the smaller one first")
    return first, last


SUCCESS = ("leader", "all")


def success(value: object) -> object:
    """The value if it is one of SUCCESS, or shares by role: `{worker = 0.5}`; raises ValueError."""
    if isinstance(value, dict) and value:
        numbers = value.values()
        if all(isinstance(one, int | float) and not isinstance(one, bool) for one in numbers):
            return value
    elif isinstance(value, str) and value in SUCCESS:
        return value
    raise ValueError('must be "leader", "all", or a share of a role\'s tasks: {worker = 0.5}')


Success = Annotated[
    Literal["leader", "all"] | dict[str, int | float],
    BeforeValidator(success),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "enum": list(SUCCESS)},
                {
                    "type": "object",
                    "additionalProperties": {"type": "number", "minimum": 0, "maximum": 1},
                    "minProperties": 1,
                },
            ]
        }
    ),
]


_NUMBER_OR_TEXT = WithJsonSchema({"type": ["integer", "string"]})
PortPair = Annotated[tuple[int, int], BeforeValidator(port), _NUMBER_OR_TEXT]
ExitCodes = Annotated[tuple[int, int], BeforeValidator(exit_codes), _NUMBER_OR_TEXT]
SoftHard = Annotated[tuple[int, int], BeforeValidator(ulimit), _NUMBER_OR_TEXT]


NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?")
"""A cluster's name: a DNS label, short enough for the parts that Docker adds to it."""
TASK = re.compile(rf"({'|'.join(ROLES)})-(0|[1-9][0-9]{{0,8}})")
"""A task's name: its role and its index."""
_COMPONENT = r"[a-z0-9]+(?:(?:\.|__?|-+)[a-z0-9]+)*"
IMAGE = re.compile(
    rf"(?:[A-Za-z0-9.-]+(?::[0-9]+)?/)?{_COMPONENT}(?:/{_COMPONENT})*"
    r"(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@[a-z0-9]+:[0-9a-f]{32,})?"
)
"""Docker's reference grammar: host, path, tag, digest."""


def near_name(name: str) -> str:
    """A valid cluster name that is as similar as possible to an invalid one."""
    plain = unicodedata.normalize("NFKD", name.lower()).encode("ascii", "ignore").decode()
    near = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:40].strip("-")
    return near or "my-cluster"
