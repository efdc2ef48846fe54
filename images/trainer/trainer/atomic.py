"""Small files, read and written whole: never half of one."""

from __future__ import annotations

import os
from pathlib import Path

AT_ONCE = 1 << 16


def replace(file: Path, text: str) -> None:
    """Write `text` beside `file`, then put it in its place."""
    new = file.with_name(f".{file.name}.new")
    new.write_text(text)
    new.rename(file)


def read(file: str | Path) -> bytes:
    """What a file of the kernel's has, which is small; raises OSError.

    Each task reads several of them every second: a file object takes three times as long.
    """
    opened = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    try:
        text = b""
        while part := os.read(opened, AT_ONCE):  # the kernel may give a page of it at a time
            text += part
        return text
    finally:
        os.close(opened)
