"""The part of a Makefile by which a project runs its clusters: `make cluster`."""

from __future__ import annotations

from cluster_kit.errors import UsageError
from cluster_kit.project.addition import Addition
from cluster_kit.util import own_files, templating
from cluster_kit.workspace import Workspace

FILE = "cluster-kit.mk"


def make_part(name: str, workspace: Workspace) -> Addition:
    """cluster-kit.mk, which an existing Makefile takes in by one line; it is never changed itself.

    Raises:
        UsageError: this is the kit's own clone, or another cluster-kit.mk is there.
    """
    if workspace.root == own_files.CLONE:
        raise UsageError(
            "--make in a clone of the kit: its Makefile has `make cluster` already",
            f"leave it out: `make cluster CLUSTER={name}`",
        )
    path = workspace.root / FILE
    text = templating.kit_template("new/cluster-kit.mk.j2").render(name=name)
    first = text.partition("\n")[0]
    run = f"`make cluster CLUSTER={name}` runs it"
    if path.is_file() and path.read_text(encoding="utf-8", errors="replace").startswith(first):
        return Addition({}, {}, (f"{FILE} is there already: {run}",))
    makefile = "your Makefile" if (workspace.root / "Makefile").exists() else "a Makefile"
    line = f"write `include {FILE}` into {makefile}; then {run}"
    return Addition({path: text}, {path: "targets for make: cluster, cluster-logs …"}, (line,))
