"""TensorBoard beside a run that asks for it: from the run's start to its end, or until `down`."""

from __future__ import annotations

from cluster_kit import labels
from cluster_kit.errors import KitError
from cluster_kit.host import Host
from cluster_kit.image.base_image import present
from cluster_kit.image.kit_image import ensure_image
from cluster_kit.resolved import Cluster
from cluster_kit.run.beside import tensorboard
from cluster_kit.run.context import Launch
from cluster_kit.workspace import RunDirectory


def ensure(host: Host, cluster: Cluster, say: tensorboard.Say) -> None:
    """Build the image that it runs from if it is absent; raises HostError."""
    if cluster.tensorboard and not present(host, image := _image(host, cluster)):
        say(f"building {image} for TensorBoard")
        ensure_image(host, "cpu", say)


def begin(run: Launch, cluster: Cluster) -> str:
    """Start it, if the cluster is to have one and has none yet; where it is, for a sentence.

    A training goes on without it: if it cannot be started that is a warning.
    """
    if not cluster.tensorboard:
        return ""
    try:
        found = _running(run.host, cluster.name, run.id)
        run.view.phase("starting TensorBoard")
        where = tensorboard.url_of(
            run.host, found or tensorboard.start(run.host, _command(run, cluster))
        )
    except KitError as error:
        run.view.warn(error.message)
        return ""
    run.view.log("tensorboard", f"shows this run at {where}")
    return f", TensorBoard at {where}"


def note_of(run: Launch, cluster: Cluster) -> list[str]:
    """What is to be said of one that stays after the end; [] if there is none."""
    if not cluster.tensorboard or not (found := _running(run.host, cluster.name, run.id)):
        return []
    until = f"until `cluster-kit down {cluster.name}`"
    try:
        return [f"TensorBoard stays at {tensorboard.url_of(run.host, found)} {until}"]
    except KitError:
        return []


def _command(run: Launch, cluster: Cluster) -> list[str]:
    shown = {name_of(run.directory): run.directory.output}
    own = {labels.BOARD_OF: cluster.name, labels.RUN: run.id}
    return tensorboard.command(shown, 0, cluster.user, _image(run.host, cluster), own)


def name_of(run: RunDirectory) -> str:
    """Under which a run is shown: `quickstart-20261122-101500`."""
    return f"{run.path.parent.name}-{run.path.name}"


def _image(host: Host, cluster: Cluster) -> str:
    """That of the tasks if it is the kit's: it has TensorBoard."""
    return cluster.image if cluster.variant else host.image_tag("cpu")


def _running(host: Host, cluster: str, run: str) -> str:
    """The id of its container, "" if there is none."""
    wanted = (f"{labels.BOARD_OF}={cluster}", f"{labels.RUN}={run}")
    filters = [f"--filter=label={label}" for label in wanted]
    return host.processes.run(["docker", "container", "ls", "--quiet", *filters]).output.strip()
