"""A console of a given size that writes into memory."""

from __future__ import annotations

import io

from rich.console import Console


def console(width: int = 120, height: int = 40, *, terminal: bool = False) -> Console:
    return Console(
        file=io.StringIO(), width=width, height=height, force_terminal=terminal, emoji=False
    )


def shown(on: Console) -> str:
    """Returns everything that was written so far."""
    assert isinstance(on.file, io.StringIO)
    return on.file.getvalue()
