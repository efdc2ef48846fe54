"""Writes plain data as YAML that Compose reads back exactly: Compose interpolates `$`. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from cluster_kit.parts import Bounds, Mount, Port
from cluster_kit.platforms.container import ContainerSpec
from cluster_kit.resolved import LOOPBACK

_SHORT = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
_WORDS = frozenset(("null", "true", "false", "yes", "no", "on", "off", "y", "n"))
"""Unquoted words, in any case, that YAML does not read as text."""
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")
"""What is no number, date or mark of YAML's; label keys have dots and slashes."""


@dataclass(frozen=True)
class Pair:
    """A key and its value as YAML text."""

    name: str
    value: str


@dataclass(frozen=True)
class Volume:
    """A bind mount's values as YAML text."""

    source: str
    target: str
    read_only: str


def quote(text: str) -> str:
    """Returns a quoted scalar on one line that Compose reads back as exactly this text."""
    return scalar(text.replace("$", "$$"))


def scalar(text: str) -> str:
    """Returns a quoted scalar on one line that YAML reads as exactly this text."""
    if text.isprintable():
        return "'" + text.replace("'", "''") + "'"
    return '"' + "".join(map(_escape, text)) + '"'


def flow(texts: Iterable[str]) -> str:
    """Returns a list of texts on one line."""
    return "[" + ", ".join(map(quote, texts)) + "]"


def pairs(texts: Mapping[str, str]) -> tuple[Pair, ...]:
    """Returns variables, labels or limits as keys and quoted scalars."""
    return tuple(Pair(key(name), quote(text)) for name, text in texts.items())


def key(name: str) -> str:
    """Returns a key, or another short text: as it is if YAML reads it as text, else quoted."""
    return name if _PLAIN.fullmatch(name) and name.lower() not in _WORDS else quote(name)


def volumes(mounts: Iterable[Mount]) -> tuple[Volume, ...]:
    """Returns bind mounts' values."""
    return tuple(
        Volume(quote(mount.source), quote(mount.target), boolean(mount.read_only))
        for mount in mounts
    )


def published(ports: Iterable[Port]) -> str:
    """Returns a list of ports, published on LOOPBACK only; "" if there are none."""
    texts = [f"{LOOPBACK}:{port.host}:{port.container}" for port in ports]
    return flow(texts) if texts else ""


def boolean(value: bool) -> str:
    """Returns YAML's word for it."""
    return "true" if value else "false"


def comment(text: str) -> str:
    """Returns the text without line breaks, which a file's name may have."""
    return "".join(c if c.isprintable() else "?" for c in text)


def _escape(character: str) -> str:
    """A character inside YAML's double quotes; JSON's escapes would split `😀` in two."""
    if character in _SHORT:
        return _SHORT[character]
    return character if character.isprintable() else f"\\U{ord(character):08x}"


LOG_FILES = 2
"""In how many files an engine keeps what a container prints; it drops the oldest one."""


def logging(bounds: Bounds) -> str:
    """Returns how the engine keeps logs, "" for as it is configured."""
    if bounds.logs is None:
        return ""
    options = f"{{max-size: '{-(-bounds.logs // LOG_FILES)}', max-file: '{LOG_FILES}'}}"
    return f"{{driver: json-file, options: {options}}}"


def in_memory(tmpfs: Mapping[str, int], bounds: Bounds) -> str:
    """Returns the directories in memory, each with its mode and, if it is bounded, its size."""
    size = "" if bounds.tmp is None else f",size={bounds.tmp}"
    return "[" + ", ".join(f'"{path}:mode={mode:o}{size}"' for path, mode in tmpfs.items()) + "]"


def limits(spec: ContainerSpec) -> tuple[Pair, ...]:
    """Returns the limits of CPU and memory; () without any."""
    found = {}
    if spec.cpus is not None:
        found["cpus"] = f"{spec.cpus:.15g}"
    if spec.memory is not None:
        found["memory"] = f"{spec.memory}b"
    return pairs(found)


def bounded(spec: ContainerSpec) -> tuple[Pair, ...]:
    """Returns the bound on processes; () without one."""
    pids = spec.shared.bounds.pids
    return () if pids is None else (Pair("pids", str(pids)),)


def ulimits(spec: ContainerSpec) -> tuple[Pair, ...]:
    """Returns the limits of the kernel, each with its soft and its hard one."""
    return tuple(
        Pair(limit.name, f"{{soft: {limit.soft}, hard: {limit.hard}}}") for limit in spec.ulimits
    )


def from_caller(names: Iterable[str]) -> tuple[str, ...]:
    """Returns the keys of variables that whoever calls the tool has."""
    return tuple(pair.name for pair in pairs(dict.fromkeys(names, "")))
