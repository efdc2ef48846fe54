"""The containers that accompany a job's tasks: TensorBoard and sidecars."""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from types import MappingProxyType

from cluster_kit import labels
from cluster_kit.errors import EngineError, HostError, KitError
from cluster_kit.host import Host
from cluster_kit.image.base_image import RIGHTLESS, TMP, bind, present
from cluster_kit.image.kit_image import ensure_image
from cluster_kit.observe import user_requests
from cluster_kit.observe.reconcile import crashed
from cluster_kit.observe.state import RunState
from cluster_kit.resolved import Cluster
from cluster_kit.run.run import Run
from cluster_kit.run.verdict import ended_unready, words
from cluster_kit.util.untrusted import files, is_directory
from cluster_kit.workspace import RunDirectory

INSIDE = 6006
RUNS, LOGS = "/runs", "/tmp/logs"
USUAL = "tensorboard"
LINKS = (
    f"mkdir {LOGS}; "
    f'while [ "$1" != -- ]; do ln -s "$1" "{LOGS}/$2"; shift 2; done; shift; exec "$@"'
)
"""The container's shell script: it links each run's event files under the run's name."""
PATIENCE_S = 60.0
Say = Callable[[str], None]


@dataclass(frozen=True)
class EventFiles:
    """A run's output, and the directory `below` it that TensorBoard reads; "" for the whole output.

    A task may create a link there at any moment. So the output itself is mounted, and a link in it
    cannot lead out of the container.
    """

    output: Path
    below: str = ""

    @classmethod
    def of(cls, output: Path) -> EventFiles:
        return cls(output, USUAL if is_directory(output, USUAL) else "")

    def exist(self) -> bool:
        """Whether a task has written one."""
        return any(files(self.output, self.below, matches=lambda name: "tfevents" in name))


@contextlib.contextmanager
def serving(
    host: Host, folders: Mapping[str, EventFiles], port: int, user: str, say: Say
) -> Iterator[str]:
    """Run TensorBoard on 127.0.0.1 during the `with` block; its value is the URL.

    Args:
        folders: event files by the name under which they are shown; new files appear when written.
        port: 0 for a free one.
        user: `uid:gid` that may read the folders.
    Raises:
        EngineError: it could not be started, or does not answer.
        HostError: the image cannot be made, or the port is taken.
    """
    image = host.image_tag("cpu")
    if not present(host, image):
        ensure_image(host, "cpu", say)
    say("starting TensorBoard (some seconds)")
    name = f"cluster-kit-tensorboard-{secrets.token_hex(4)}"
    with host.processes.afterwards(["docker", "rm", "--force", name]):
        container = start(host, command(folders, port, user, image, name=name), port)
        url = url_of(host, container)
        _wait(host, url, container)
        yield url


def start(host: Host, starting: list[str], port: int = 0) -> str:
    """Start the container by its command, and return its id.

    Raises:
        EngineError: it could not be started.
        HostError: the port is taken.
    """
    done = host.processes.run(starting, timeout_s=PATIENCE_S)
    if not done.ok:
        if "port is already allocated" in done.errors or "address already in use" in done.errors:
            raise HostError(f"port {port} of 127.0.0.1 is taken", "name another, or none: --port N")
        raise EngineError(f"TensorBoard cannot be started:\n{done.tail()}", "`cluster-kit doctor`")
    return done.output.strip()


def command(
    folders: Mapping[str, EventFiles],
    port: int,
    user: str,
    image: str,
    board_labels: Mapping[str, str] = MappingProxyType({}),
    name: str = "",
) -> list[str]:
    """The command that starts the container, and prints its id.

    Args:
        board_labels: further labels.
        name: the container's name; the engine chooses one without it.
    """
    places = {run: f"{RUNS}/{number}" for number, run in enumerate(folders)}
    mounts = (f"{bind(folders[run].output, place)},readonly" for run, place in places.items())
    links = ((f"{place}/{folders[run].below}", run) for run, place in places.items())
    return [
        *("docker", "run", "--detach", "--init", "--pull=never", "--read-only"),
        *(*RIGHTLESS, "--workdir=/", TMP),
        *(f"--user={user}", f"--label={labels.BOARD}={','.join(folders)}"),
        *(f"--label={key}={value}" for key, value in board_labels.items()),
        *([f"--name={name}"] if name else []),
        f"--publish=127.0.0.1:{port or ''}:{INSIDE}",
        *mounts,
        *("--entrypoint=sh", image, "-c", LINKS, "sh", *chain.from_iterable(links), "--"),
        *("python3", "-m", "tensorboard.main"),
        *(f"--logdir={LOGS}", "--host=0.0.0.0", f"--port={INSIDE}", "--reload_interval=5"),
    ]


def left_behind(host: Host) -> list[str]:
    """Names of the containers of the verb `tensorboard` that have ended, as after a crash of this
    host, and that no process will remove; [] if no engine answers."""
    shown = '{{.Names}} {{.State}} {{.Label "' + labels.BOARD_OF + '"}}'
    done = host.processes.run(
        [
            "docker",
            "container",
            "ls",
            "--all",
            f"--filter=label={labels.BOARD}",
            f"--format={shown}",
        ]
    )
    lines = [line.split() for line in done.output.splitlines()] if done.ok else []
    return [words[0] for words in lines if len(words) == 2 and words[1] != "running"]


def url_of(host: Host, container: str) -> str:
    """Its URL on this host; raises EngineError if it has ended."""
    done = host.processes.run(["docker", "port", container, str(INSIDE)])
    if not done.ok or ":" not in done.output:
        raise EngineError(
            f"TensorBoard ended at once:\n{_said(host, container)}", "`cluster-kit doctor`"
        )
    return f"http://127.0.0.1:{done.output.split()[0].rpartition(':')[2]}/"


def _wait(host: Host, url: str, container: str) -> None:
    """Wait until it answers; raises EngineError if it ends, or does not answer within
    PATIENCE_S."""
    import urllib.error
    import urllib.request  # it takes 20 ms, which every other command would pay

    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        with contextlib.suppress(urllib.error.URLError, OSError):
            direct.open(url, timeout=5).close()
            return
        if not is_up(host, container):
            break
        time.sleep(0.3)
    raise EngineError(
        f"TensorBoard does not answer at {url}:\n{_said(host, container)}", "`cluster-kit doctor`"
    )


def is_up(host: Host, container: str) -> bool:
    """Whether a container runs."""
    done = host.processes.run(["docker", "inspect", "--format={{.State.Running}}", container])
    return done.output.strip() == "true"


def _said(host: Host, container: str) -> str:
    return host.processes.run(["docker", "logs", "--tail=10", container]).tail()


def ensure(host: Host, cluster: Cluster, say: Say) -> None:
    """Build the image that it runs from if it is absent; raises HostError."""
    if cluster.tensorboard and not present(host, image := _image(host, cluster)):
        say(f"building {image} for TensorBoard")
        ensure_image(host, "cpu", say)


def begin(run: Run, cluster: Cluster) -> str:
    """Start TensorBoard if the cluster wants it and has none; returns its URL for a sentence.

    If it cannot be started, this is only a warning, and training continues.
    """
    if not cluster.tensorboard:
        return ""
    try:
        boards = _running(run.host, cluster.name, run.id)
        run.view.phase("starting TensorBoard")
        where = url_of(run.host, boards or start(run.host, _command(run, cluster)))
    except KitError as error:
        run.view.warn(error.message)
        return ""
    run.view.log("tensorboard", f"shows this run at {where}")
    return f", TensorBoard at {where}"


def note_of(run: Run, cluster: Cluster) -> list[str]:
    """The lines about a TensorBoard that stays after the end; [] if there is none."""
    if not cluster.tensorboard or not (boards := _running(run.host, cluster.name, run.id)):
        return []
    until = f"until `cluster-kit down {cluster.name}`"
    try:
        return [f"TensorBoard stays at {url_of(run.host, boards)} {until}"]
    except KitError:
        return []


def _command(run: Run, cluster: Cluster) -> list[str]:
    shown = {name_of(run.directory): EventFiles(run.directory.output)}
    board_labels = {labels.BOARD_OF: cluster.name, labels.RUN: run.id}
    return command(shown, 0, cluster.user, _image(run.host, cluster), board_labels)


def name_of(run: RunDirectory) -> str:
    """The name of a run in TensorBoard: `quickstart-20261122-101500`."""
    return f"{run.path.parent.name}-{run.path.name}"


def _image(host: Host, cluster: Cluster) -> str:
    """The tasks' image if it is the kit's, which has TensorBoard; else the kit's image."""
    return cluster.image if cluster.variant else host.image_tag("cpu")


def _running(host: Host, cluster: str, run: str) -> str:
    """The id of TensorBoard's container, "" if there is none."""
    wanted = (f"{labels.BOARD_OF}={cluster}", f"{labels.RUN}={run}")
    filters = [f"--filter=label={label}" for label in wanted]
    return host.processes.run(["docker", "container", "ls", "--quiet", *filters]).output.strip()


LOOK_S = 1.0
"""Seconds between checks; a sidecar counts as crashed if two checks in a row find it down. A
restart by a user takes less time."""


class Sidecars:
    """Checks the sidecars of one run from time to time, and reports each crash once.

    `has_failed`: one that the job needs has crashed, or one that programs wait for has ended.
    """

    def __init__(self, run: Run, cluster: Cluster) -> None:
        self.has_failed = False
        self._run = run
        self._clock = run.host.clock
        self._cluster = cluster
        self._required = {one.name for one in cluster.sidecars if one.required}
        self._next = self._clock.monotonic() + LOOK_S if cluster.sidecars else float("inf")
        self._down: set[tuple[str, float]] = set()
        self._told: set[tuple[str, float]] = set()

    def look(self, seen: RunState) -> None:
        """Check which sidecars are down, if the last check is long enough ago; raises
        EngineError."""
        if self._clock.monotonic() < self._next:
            return
        self._next = self._clock.monotonic() + LOOK_S
        if _is_to_end(seen):
            self._down = set()
            return
        sidecars = self._run.sidecars()
        unready = ended_unready(self._cluster, seen, sidecars)
        ended = [*crashed(sidecars), *(one for one in sidecars if one.name in unready)]
        down = {(one.name, one.finished): one for one in ended}
        for key, one in down.items():
            if key not in self._down:
                continue
            if key not in self._told:
                self._told.add(key)
                self._run.view.phase(words(one))
                self.has_failed |= one.name in self._required
            self.has_failed |= one.name in unready
        self._down = set(down)


def _is_to_end(seen: RunState) -> bool:
    """Whether a user has stopped or removed the cluster."""
    started = seen.started_at(seen.leader)
    return user_requests.last(seen.requests, seen.leader, started) is not None
