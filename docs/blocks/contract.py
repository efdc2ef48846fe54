"""Tables made from images/trainer/contract.toml: what host and image agree on."""

from __future__ import annotations

import functools
import tomllib
from pathlib import Path
from typing import Any

from docs.blocks.table import table

CONTRACT = Path(__file__).parents[2] / "images" / "trainer" / "contract.toml"


@functools.cache
def read() -> dict[str, Any]:
    """The contract's tables, as in the file."""
    return tomllib.loads(CONTRACT.read_text(encoding="utf-8"))


def commands() -> str:
    """What a container may be started with."""
    rows = [(f"`{words}`", text) for words, text in read()["commands"].items()]
    return table(("command", "task"), rows)
