"""Options of `docker run` that the kit's own containers have in common. Pure."""

from __future__ import annotations

from pathlib import Path

RIGHTLESS = ("--cap-drop=ALL", "--security-opt=no-new-privileges:true", "--pids-limit=4096")
"""Of every container beside the tasks': it gets no right, and not all processes of the host."""
CONFINED = (
    "--rm",
    "--pull=never",
    "--network=none",
    "--read-only",
    *RIGHTLESS,
    "--workdir=/",
)
"""Of a container that only reads, computes and says something: it has no right and no network."""
TMP = "--tmpfs=/tmp:mode=1777,size=4g"
"""Its directory for temporary files, in memory."""


def bind(source: Path | str, target: Path | str) -> str:
    """A directory or file of this host in a container.

    As fields of CSV, which is how Docker reads it: a path may have a comma or a colon.
    """
    fields = (f"source={source}", f"target={target}")
    quoted = ",".join('"' + field.replace('"', '""') + '"' for field in fields)
    return f"--mount=type=bind,{quoted}"
