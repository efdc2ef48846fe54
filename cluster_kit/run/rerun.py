"""What `up --watch` looks at, and a run that ends because its files have changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from cluster_kit.errors import ManifestError
from cluster_kit.manifest.load import find
from cluster_kit.observe.state import RunState
from cluster_kit.platforms.engine import Engine
from cluster_kit.platforms.planning import load
from cluster_kit.programs.catalog import PROGRAMS
from cluster_kit.programs.resolve import find_dockerfile
from cluster_kit.resolved import Cluster
from cluster_kit.run.request import Request
from cluster_kit.run.run import Nobody, Superseded
from cluster_kit.util.changes import Watched
from cluster_kit.util.paths import seen_from
from cluster_kit.workspace import Workspace


def files_of(request: Request, workspace: Workspace) -> Watched:
    """The manifest, the program's whole folder (which containers see) and its requirements.

    What runs write is left out. A file that is wrong or absent is waited for.

    Raises:
        UsageError: the manifest was not found.
    """
    path = find(request.manifest, workspace.manifests).resolve()
    files, folders = [path], []
    ignored = [workspace.root / "runs", workspace.root / "portable"]
    try:
        manifest = load(path, request.overrides).manifest
    except ManifestError:
        return Watched((), tuple(files))
    ignored.append(workspace.generated(manifest.name).parent)
    if manifest.program not in PROGRAMS:
        program = seen_from(path.parent, manifest.program).resolve()
        folders += [program.parent] if program.parent.is_dir() else []
    dockerfile, _ = find_dockerfile(manifest.build, path.parent)
    if dockerfile is not None:
        folders.append(Path(dockerfile.context))
    if manifest.requirements:
        files.append(seen_from(path.parent, manifest.requirements).resolve())
    return Watched(tuple(folders), tuple(files), tuple(one.resolve() for one in ignored))


class UntilChanged(Nobody):
    """Ends a run as soon as its files change.

    Args:
        changed: returns what has changed since it was last called.
    """

    def __init__(self, changed: Callable[[], Sequence[Path]]) -> None:
        self._changed = changed
        self.seen: tuple[Path, ...] = ()
        """What has ended the run."""

    def observe(self, engine: Engine, cluster: Cluster, seen: RunState) -> None:
        self.seen = tuple(self._changed())
        if self.seen:
            raise Superseded
