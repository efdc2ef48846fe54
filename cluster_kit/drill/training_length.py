"""How long a built-in program trains, by its arguments: to tell what comes after its end. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from cluster_kit.resolved import Cluster


@dataclass(frozen=True)
class Length:
    """Steps and epochs of a training; None if that is not known."""

    steps: int | None = None
    epochs: int | None = None


OPTIONS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "classifier": ("--epochs", "--steps-per-epoch"),
        "linear-regression": ("--steps",),
        "detection": ("--steps",),
    }
)
"""By program, the options whose values, multiplied, are its steps."""


def length_of(cluster: Cluster) -> Length:
    """The length of the leader's program; an argument that is not given leaves it unknown."""
    command = cluster.leader.command
    program = command[1] if len(command) > 1 else ""
    values = {option: _last(option, command[2:]) for option in OPTIONS.get(program, ())}
    epochs = values.get("--epochs")
    steps = 1
    for value in values.values():
        if value is None:
            return Length(None, epochs)
        steps *= value
    return Length(steps if values else None, epochs)


def _last(option: str, arguments: Sequence[str]) -> int | None:
    """The option's last value, as in `--steps 5` or `--steps=5`; None if there is none."""
    found = None
    for name, following in zip(arguments, (*arguments[1:], ""), strict=False):
        given, equals, value = name.partition("=")
        text = value if equals else following
        if given == option and text.isdecimal():
            found = int(text)
    return found
