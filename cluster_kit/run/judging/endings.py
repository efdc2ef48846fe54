"""How watching a run ends, and exit codes of tasks that say nothing of their end."""

from __future__ import annotations

from typing import Literal

OUTPUT_CODE = 4
"""The exit code of a task that cannot write its output: nor can it say why it ends."""
STOPPED_CODE = 143
"""That of a task which was stopped before it listened for that: it says nothing, either."""

Ending = Literal["ended", "overdue", "interrupted", "superseded", "sidecar", "memory"]
"""The leader ended for good; the kit's own limit on the run passed; Ctrl-C or SIGTERM; another run
of changed files takes its place; a sidecar that the job needs has crashed; a server ran out of
memory before the job could begin."""
