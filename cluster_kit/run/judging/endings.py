"""How watching a run ends."""

from __future__ import annotations

from typing import Literal

Ending = Literal["ended", "overdue", "interrupted", "superseded", "sidecar", "memory"]
"""The leader ended for good; the kit's own limit on the run passed; Ctrl-C or SIGTERM; another run
of changed files takes its place; a sidecar that the job needs has crashed; a server ran out of
memory before the job could begin."""
