"""An engine on another machine must see this machine's folders: containers have them mounted."""

from __future__ import annotations

import tempfile
from pathlib import Path

from cluster_kit.errors import EngineError, HostError
from cluster_kit.facts import EngineKind
from cluster_kit.host import Host
from cluster_kit.image.base_image import bind
from cluster_kit.run import disk_space

_ABSENT = "bind source path does not exist"


def refuse_if_not_shared(host: Host, kind: EngineKind, image: str, runs: Path) -> None:
    """Try a mount of a new folder below `runs` if the engine is on another machine.

    A container is made for that, which is not started: the engine looks for what it is to mount.

    Raises:
        HostError: the engine does not see the folder, or it cannot be made.
        EngineError: the engine refused the container otherwise.
    """
    if not kind.remote:
        return
    with disk_space.writing(runs):
        runs.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".shared-", dir=runs) as folder:
        mount = bind(Path(folder).resolve(), "/mnt")
        done = host.processes.run(
            ["docker", "create", "--pull=never", "--network=none", mount, image]
        )
        if done.ok:
            host.processes.run(["docker", "rm", "--force", done.output.strip()])
            return
    if _ABSENT in done.errors:
        raise HostError(
            f"the engine is on another machine ({kind.remote}), which does not have {runs}: "
            "programs, data and results are mounted from there",
            "run the kit on that machine, or share this folder with it under the same path; for "
            "the engine of this machine: `unset DOCKER_HOST`, `docker context use default`",
        )
    raise EngineError(f"the engine at {kind.remote} refused a mount:\n{done.tail()}", "see there")
