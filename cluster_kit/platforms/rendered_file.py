"""Renders the common parts of platforms' files: YAML, the header, keys of services. Pure."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from cluster_kit.plan.tasks import cluster_spec
from cluster_kit.platforms.container import Container
from cluster_kit.platforms.variables import GROWING, TRAINING, shared_variables
from cluster_kit.resolved import SECRETS, Bounds, Cluster, Mount, Task
from cluster_kit.roles import ROLES
from cluster_kit.version import __version__

_SHORT = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
_WORDS = frozenset(("null", "true", "false", "yes", "no", "on", "off", "y", "n"))
"""Words, in upper or lower case, that YAML does not read as text without quotes."""
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")
"""A text that YAML reads as text without quotes; label keys have dots and slashes."""


class Verbatim(str):
    """Text that is YAML already: a word of the file's format, an alias, a Compose variable."""

    __slots__ = ()


@dataclass(frozen=True)
class OneLine:
    """A mapping that is written on one line."""

    data: Mapping[str, Any]


@dataclass(frozen=True)
class Anchored:
    """A mapping to which other places of the file refer by `*name`."""

    name: str
    data: Mapping[str, Any]


def quote(text: str) -> str:
    """Returns a quoted scalar on one line that Compose reads back as exactly this text."""
    return scalar(text.replace("$", "$$"))


def scalar(text: str) -> str:
    """Returns a quoted scalar on one line that YAML reads as exactly this text."""
    if text.isprintable():
        return "'" + text.replace("'", "''") + "'"
    return '"' + "".join(map(_escape, text)) + '"'


Quote = Callable[[str], str]


def block(data: Mapping[str, Any], indent: int = 0, quote: Quote = quote) -> str:
    """Returns a mapping's lines, each below the other, without a line break at the end.

    Values are texts, which are quoted, numbers, booleans, None for a key without a value,
    mappings, sequences, `Verbatim`, `OneLine` or `Anchored`. Templates use it as the filter `yaml`.

    Args:
        quote: `scalar` for a file that Compose does not read.
    """
    return "\n".join(_lines(data, " " * indent, quote))


def _lines(data: Mapping[str, Any], margin: str, quote: Quote) -> Iterator[str]:
    for name, value in data.items():
        head = f"{margin}{name if isinstance(name, Verbatim) else key(name, quote)}:"
        if isinstance(value, Anchored):
            head, value = f"{head} &{value.name}", value.data
        if isinstance(value, Mapping) and value:
            yield head
            yield from _lines(value, f"{margin}  ", quote)
        elif _is_block(value):
            yield head
            yield from _items(value, f"{margin}  ", quote)
        elif value is None:
            yield head
        else:
            yield f"{head} {inline(value, quote)}"


def _items(items: Sequence[Mapping[str, Any]], margin: str, quote: Quote) -> Iterator[str]:
    for item in items:
        first, *others = [*_lines(item, f"{margin}  ", quote)] or ["{}"]
        yield f"{margin}- {first.lstrip()}"
        yield from others


def _is_block(value: object) -> bool:
    """Whether it is a list of mappings."""
    return isinstance(value, list | tuple) and any(isinstance(item, Mapping) for item in value)


def inline(value: object, quote: Quote = quote) -> str:
    """Returns a value on one line."""
    match value:
        case Verbatim():
            return str(value)
        case str():
            return quote(value)
        case bool():
            return "true" if value else "false"
        case OneLine(data):
            pairs = (f"{key(k, quote)}: {inline(inner, quote)}" for k, inner in data.items())
            return "{" + ", ".join(pairs) + "}"
        case list() | tuple():
            return "[" + ", ".join(inline(item, quote) for item in value) + "]"
        case Mapping():
            return "{}"
        case _:
            return str(value)


def present(data: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the keys that have a value: neither None nor a text, list or mapping without any."""
    return {name: value for name, value in data.items() if value not in (None, "", (), [], {})}


def key(name: str, quote: Quote = quote) -> str:
    """Returns a key, or another short text: as it is if YAML reads it as text, else quoted."""
    return name if _PLAIN.fullmatch(name) and name.lower() not in _WORDS else quote(name)


def comment(text: str) -> str:
    """Returns the text without line breaks, which a file's name may have."""
    return "".join(c if c.isprintable() else "?" for c in text)


def _escape(character: str) -> str:
    """A character inside YAML's double quotes; JSON's escapes would split `😀` in two."""
    if character in _SHORT:
        return _SHORT[character]
    return character if character.isprintable() else f"\\U{ord(character):08x}"


@dataclass(frozen=True)
class Build:
    """How an image is built: its folder relative to the file, its Dockerfile in it, arguments."""

    context: str
    dockerfile: str
    arguments: Mapping[str, str]


def header(cluster: Cluster, plan: str, own: Sequence[str]) -> list[str]:
    """Returns the first lines of a file: the generator, the command to render it again, and
    sources.

    Args:
        own: the platform's lines.
    """
    origin = cluster.origin
    host = " ".join(f"{name}={value}" for name, value in origin.host)
    lines = [
        f"cluster-kit {__version__} wrote this from {cluster.source}. Do not edit:",
        f"change the manifest, then run `{origin.command}`.",
        f"plan {plan}",
        *own,
        f"made of: manifest {origin.manifest}, kit {origin.kit}, "
        + ("any host" if origin.portable else f"host {host}"),
    ]
    return [comment(line) for line in lines]


_LAST_OF_HEADER = "\n# made of: "
_CONTENT = re.compile(r"^# content (\w+)$", re.MULTILINE)


def with_content(text: str) -> str:
    """Returns a file's text with one more line in its header, by which an edit is found: a hash of
    the lines that are not comments."""
    head, last, rest = text.partition(_LAST_OF_HEADER)
    sources, _, rest = rest.partition("\n")
    return f"{head}{last}{sources}\n# content {_content(text)}\n{rest}"


def is_edited(text: str) -> bool | None:
    """Whether a file has other lines than `with_content` wrote, comments aside; None if it does not
    have that line."""
    written = _CONTENT.search(text)
    return written[1] != _content(text) if written else None


def _content(text: str) -> str:
    return hashlib.sha256("\n".join(body(text)).encode()).hexdigest()[:12]


def body(text: str) -> list[str]:
    """The lines of a file that are not comments."""
    return [line for line in text.splitlines() if not line.startswith("# ")]


def parts_of(texts: Sequence[str]) -> list[str] | None:
    """Returns the parts around the index in the texts of indexes 0, 1, …; None if the texts differ
    in more than the index."""
    first = texts[0]
    if all(text == first for text in texts):
        return [first]
    second = texts[1]  # an index has one digit in both, so that only digits differ
    if len(first) != len(second):
        return None
    parts = [""]
    for character, other in zip(first, second, strict=True):
        if character == other:
            parts[-1] += character
        elif (character, other) == ("0", "1"):
            parts.append("")
        else:
            return None
    if any(str(index).join(parts) != text for index, text in enumerate(texts)):
        return None
    return parts


@dataclass(frozen=True)
class FileSecret:
    """One secret: its name, its file, and its owner in a container."""

    name: str
    file: str
    uid: str
    gid: str


def is_secret(mount: Mount) -> bool:
    """Whether a mount is a secret."""
    return PurePosixPath(mount.target).parent == PurePosixPath(SECRETS)


def file_secrets(cluster: Cluster, task: Task | None = None) -> tuple[FileSecret, ...]:
    """Returns the secrets of a task, or of all tasks, by name."""
    mounts = cluster.all_mounts if task is None else (*cluster.mounts, *task.mounts)
    uid, _, gid = cluster.user.partition(":")
    sources = {PurePosixPath(m.target).name: m.source for m in mounts if is_secret(m)}
    return tuple(
        FileSecret(name, source, uid, gid or uid) for name, source in sorted(sources.items())
    )


FILE = "cluster.json"
"""Its name, in the directory of the stack file."""
TARGET = "/run/cluster-kit/cluster.json"
"""Its path in every container."""


def spec_text(cluster: Cluster) -> str:
    """Returns the file's text: TF_CONFIG's cluster, and the variables that grow with it."""
    environment = shared_variables(cluster)
    variables = {name: environment[name] for name in GROWING}
    return json.dumps({"cluster": cluster_spec(cluster), "variables": variables}) + "\n"


def config_name(cluster: Cluster, text: str) -> str:
    """The config's name in the swarm: different for each content, since configs never change."""
    return f"{cluster.project}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def without_shared(task: Task, own: Mapping[str, str]) -> dict[str, str]:
    """A task's own variables, without those in the file; one that does not train keeps its own
    TF_CONFIG."""
    in_file = "TF_CONFIG" if ROLES[task.role].trains else TRAINING
    return {name: value for name, value in own.items() if name != in_file}


def why_stale(file: Path, wanted: str) -> str:
    """A text about how a second file differs from the text `wanted`; "" if it does not."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return f"its second file {file.name} is missing"
    return "" if text == wanted else f"its second file {file.name} was edited"


LOG_FILES = 2
"""The number of files in which an engine keeps a container's log; it removes the oldest one."""


def logging(bounds: Bounds) -> OneLine | None:
    """Returns how the engine keeps logs; None means its own configuration."""
    if bounds.logs is None:
        return None
    options = {"max-size": str(-(-bounds.logs // LOG_FILES)), "max-file": str(LOG_FILES)}
    return OneLine({"driver": Verbatim("json-file"), "options": OneLine(options)})


def limits(container: Container) -> dict[str, Any]:
    """Returns the limits of CPU and memory; {} without any."""
    of_container = {}
    if container.cpus is not None:
        of_container["cpus"] = f"{container.cpus:.15g}"
    if container.memory is not None:
        of_container["memory"] = f"{container.memory}b"
    return of_container


def ulimits(container: Container) -> dict[str, OneLine]:
    """Returns the limits of the kernel, each with its soft and its hard one."""
    return {one.name: OneLine({"soft": one.soft, "hard": one.hard}) for one in container.ulimits}
