"""Files that others read while they are written: never half of one."""

from __future__ import annotations

from pathlib import Path


def replace(file: Path, text: str) -> None:
    """Write `text` beside `file`, then put it in its place."""
    new = file.with_name(f".{file.name}.new")
    new.write_text(text)
    new.rename(file)
