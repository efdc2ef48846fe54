"""The output of a command of the kit, and how tests call one: see the fixture `cli`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

MANIFEST = 'format = 1\nname = "demo"\nevaluator = 1\n'


@dataclass(frozen=True)
class CommandResult:
    code: int
    out: str
    err: str


Cli = Callable[..., CommandResult]
