"""Starts the containers of a plan: removes old ones, builds the image, writes the file, `up`."""

from __future__ import annotations

from cluster_kit.backends.interface import SubnetTaken
from cluster_kit.cluster import Cluster
from cluster_kit.engine.interface import Engine
from cluster_kit.errors import HostError
from cluster_kit.image import extra as extra_image
from cluster_kit.image.build import image_present
from cluster_kit.observe.task_view import State
from cluster_kit.run.context import Launch
from cluster_kit.run.prepare import prepare_again
from cluster_kit.show.view import View
from cluster_kit.workspace import write_atomically

PLANS = 3
"""The most plans that are tried if each one's subnet is taken before the start."""


def make_room(engine: Engine, name: str) -> None:
    """Remove containers and networks that an earlier run of this name has left.

    Raises:
        HostError: a cluster of this name is up.
        EngineError: the engine cannot remove it, or does not answer.
    """
    containers = engine.containers(name)
    up = [
        container.name
        for container in containers
        if State.of_engine(container.state) not in (State.ENDED, State.CREATED)
    ]
    if up:
        raise HostError(
            f"the cluster {name} is already up: {', '.join(up)}",
            f"`cluster-kit down {name}` first, or run this one beside it with `--name OTHER`",
        )
    if containers:
        engine.remove(name)


def ensure_image(cluster: Cluster, view: View) -> None:
    """Build the cluster's image if it is the kit's own and absent.

    Raises:
        HostError, ManifestError, EngineError: see `image.extra.ensure`.
    """
    if cluster.variant is None or image_present(cluster.image):
        return
    view.phase(f"building the shared image {cluster.image}")
    view.close()
    extra_image.ensure(cluster, view.phase, show=True)


def up(launch: Launch, text: str) -> Cluster:
    """Write the cluster's file, start its containers, and return the cluster that was started.

    If the subnet has been taken since the plan, a new plan finds another.

    Raises:
        SubnetTaken: the manifest's fixed subnet is taken, or the subnets of PLANS plans were.
        EngineError: Compose or the engine failed.
        ManifestError: no subnet is free any more.
    """
    prepared = launch.prepared
    for attempt in range(1, PLANS + 1):
        file = launch.backend.write(launch.workspace, prepared.cluster, text)
        write_atomically(launch.directory.path / file.name, text)
        try:
            launch.backend.up(file, launch.directory.output)
            return prepared.cluster
        except SubnetTaken:
            if attempt == PLANS or prepared.manifest.manifest.subnet != "auto":
                raise
            launch.engine.remove(launch.name)
            prepared = prepare_again(prepared, launch.engine)
            text = launch.backend.render(prepared.cluster)
    raise AssertionError("unreachable")
