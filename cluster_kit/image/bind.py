"""A directory or file of this host in a container, as an option of `docker run`. Pure."""

from __future__ import annotations

from pathlib import Path


def bind(source: Path | str, target: Path | str) -> str:
    """As fields of CSV, which is how Docker reads it: a path may have a comma or a colon."""
    fields = (f"source={source}", f"target={target}")
    quoted = ",".join('"' + field.replace('"', '""') + '"' for field in fields)
    return f"--mount=type=bind,{quoted}"
