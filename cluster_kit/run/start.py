"""Starts clusters; only one at a time gets GPUs, since free GPUs are known only at the start."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import tempfile
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path

from cluster_kit.advice.sources import files, read, settings
from cluster_kit.errors import EngineError, HostError, Setting
from cluster_kit.facts import EngineKind
from cluster_kit.host import Host, moment
from cluster_kit.image import debugger, user_image
from cluster_kit.image import user_image as own_image
from cluster_kit.image.base_image import bind
from cluster_kit.image.kit_image import image_present
from cluster_kit.machine.host_facts import arp_table
from cluster_kit.manifest.command_line import Caller
from cluster_kit.observe.task_view import State
from cluster_kit.plan import addresses
from cluster_kit.platforms.engine import Engine, gpus_taken
from cluster_kit.platforms.platform import (
    ImageMissing,
    SubnetTaken,
    keep_edited,
    kept_sentence,
    platform_of,
)
from cluster_kit.platforms.variables import without_secrets
from cluster_kit.programs import resolve
from cluster_kit.resolved import Cluster
from cluster_kit.run import cluster_lock, lifecycle, run_directory
from cluster_kit.run.known_secrets import values_of
from cluster_kit.run.prepare import Prepared, prepare_again
from cluster_kit.run.run import Run
from cluster_kit.run.run_directory import (
    Record,
    is_recorded,
    kept_run,
    run_of,
    unjudged,
    write_record,
)
from cluster_kit.show.view import View
from cluster_kit.util import locks
from cluster_kit.util.masking import masker
from cluster_kit.workspace import RENDERED, Workspace, ignore_in_git, write_atomically

WAIT_S = 120.0
"""Seconds that the engine may need to create and start the containers of another cluster."""


@contextlib.contextmanager
def turn(host: Host, engine: Engine, cluster: Cluster) -> Iterator[None]:
    """Hold the lock for assigning an engine's GPUs to clusters on this host, in the `with` block.

    A cluster without GPUs does not wait.

    Raises:
        HostError: another start has held it for more than WAIT_S, or the lock cannot be created.
        EngineError: the engine does not answer.
    """
    with contextlib.ExitStack() as held:
        if any(task.gpus for task in cluster.tasks):
            key = cluster_lock.lock_of(engine, ".gpus")  # no name of a cluster begins with a dot
            now = datetime.fromtimestamp(host.clock.time())
            about = f"process {os.getpid()} ({cluster.name}) since {now:%H:%M:%S}"
            try:
                held.enter_context(
                    locks.lock(cluster_lock.file_of(host, key), about, wait_s=WAIT_S)
                )
                held.enter_context(
                    host.locks.between_users(key, cluster_lock.may_use_engine, WAIT_S)
                )
            except locks.Locked as locked:
                raise HostError(
                    f"for {WAIT_S:.0f} s GPUs have been handed out by {locked.about}",
                    "end that process if it hangs, then try again",
                ) from None
            except OSError as error:
                raise cluster_lock.no_lock(error) from None
        yield


def planned_now(host: Host, prepared: Prepared, engine: Engine) -> Prepared:
    """The plan, or a new one if other clusters have taken or freed GPUs since it was made.

    Raises:
        ManifestError: there are no longer enough.
        EngineError: the engine does not answer.
    """
    if not prepared.facts.gpus or gpus_taken(engine) == prepared.facts.gpus_taken:
        return prepared
    return prepare_again(host, prepared, engine)


OTHER = Setting("name", "OTHER")
PLANS = 3
"""Maximum number of plans to try if another network takes each plan's subnet before the start."""
BUILD = "build"
"""The name before a build's lines in the view."""


def make_room(engine: Engine, name: str, caller: Caller = Caller.SHELL) -> None:
    """Remove the containers and networks that an earlier run of this name left behind.

    Raises:
        HostError: a cluster of this name is up, has ended without being judged, or was kept.
        EngineError: the engine cannot remove it, or does not answer.
    """
    containers = engine.containers(name)
    up = [
        container.name
        for container in containers
        if State.of_engine(container.state) not in (State.ENDED, State.CREATED)
    ]
    down = f"`cluster-kit down {name}` removes it"
    second = f"{caller.setting(OTHER)} runs a second one"
    other = f"{down}, {second}"
    if up:
        whose = ""
        if is_recorded(containers):
            whose = f"; its run is {run_of(containers).path}"
            resume = ", after which `--resume` continues it with other options"
            then = resume if caller is Caller.SHELL else ""
            other = f"`cluster-kit attach {name}` continues it; {down}{then}, {second}"
        raise HostError(f"the cluster {name} is already up: {', '.join(up)}{whose}", other)
    if lifecycle.is_stopped(containers):
        raise HostError(
            f"the cluster {name} is stopped: its run is {run_of(containers).path}",
            f"`cluster-kit start {name}` continues it; {other}",
        )
    if unjudged(containers):
        raise HostError(
            f"the cluster {name} has ended, and was neither judged nor saved",
            f"`cluster-kit attach {name}` does that; {other}",
        )
    if containers and (kept_directory := kept_run(containers)):
        raise HostError(
            f"the cluster {name} was kept after its end, to be looked at: {kept_directory.path}",
            other,
        )
    if containers or engine.sidecars(name):
        engine.remove(name)


def ensure_image(host: Host, cluster: Cluster, workspace: Workspace, view: View) -> None:
    """Build the cluster's image if it is missing, and is the kit's own or a Dockerfile's; inspect
    an image that is not the kit's.

    If a program waits for a debugger, the debugger is fetched, too.

    Raises:
        HostError, ManifestError, EngineError: see `image.user_image` and
            `image.debugger`.
    """
    if platform_of(cluster.engine).pulls_images:
        return
    if any(task.debug for task in cluster.tasks):
        debugger.ensure(host, view.phase)
    user_image.build_dockerfile(host, cluster, view.phase, lambda line: view.log(BUILD, line))
    if cluster.mounts_trainer:
        own_image.refuse_if_unfit(host, cluster, view.phase)
    for one in cluster.sidecars:
        if one.image != cluster.image and not image_present(host, one.image):
            view.phase(f"pulling {one.image} for the sidecar {one.name}")
    if cluster.variant is None or image_present(host, cluster.image):
        return
    view.phase(f"building the shared image {cluster.image}")
    view.close()
    user_image.build_layer(host, cluster, workspace.manifests, view.phase, show=view.draws)


def _can_mount_closed(prepared: Prepared) -> bool:
    """Whether the engine can mount a directory that only its owner may enter."""
    anothers = prepared.facts.kind.rootless and os.geteuid() == 0
    return prepared.cluster.one_host and not anothers


def up(run: Run, prepared: Prepared, text: str) -> Cluster:
    """Write the cluster's file, start its containers, and return the cluster that was started.

    If the subnet or a GPU has been taken since the plan, a new plan finds others; if the kit's own
    image has been removed, it is built again.

    Raises:
        HostError: the workspace cannot be written, or other starts assign GPUs for too long.
        SubnetTaken: the manifest's fixed subnet is taken, or the subnets of PLANS plans were taken.
        EngineError: the engine failed.
        ManifestError: no subnet is free any more, or too few GPUs are.
    """
    for attempt in range(1, PLANS + 1):
        try:
            with (
                run.timings.step("up"),
                turn(run.host, run.engine, prepared.cluster),
            ):
                now = planned_now(run.host, prepared, run.engine)
                if now is not prepared:
                    prepared, text = now, run.platform.render(now.cluster)
                file, program = _write(run, prepared, text)
                if override := run.platform.merges(file):
                    run.view.phase(f"merging {override}")
                if _can_mount_closed(prepared):
                    run.directory.close_to_others()
                else:
                    run.directory.open_to_others()
                _make_room_in_arp_table(run, prepared)
                output = run.directory.output
                for warning in run.platform.up(run.host, prepared.cluster, file, output, run.id):
                    run.view.warn(f"{override}: {warning}")
                _refuse_others(run)
            with contextlib.suppress(OSError):  # the end of the run reports it
                _record(run, prepared.cluster, program)
            with contextlib.suppress(EngineError, OSError):
                containers = run.containers() if override else ()
                mask = masker(values_of(prepared.cluster, containers))
                run_directory.keep_override(run.directory, override, mask)
            return prepared.cluster
        except ImageMissing:
            if attempt == PLANS or not prepared.cluster.image_is_built:
                raise
            run.engine.remove(run.name, run.id)
            ensure_image(run.host, prepared.cluster, run.workspace, run.view)
        except SubnetTaken:
            if attempt == PLANS or prepared.manifest.manifest.subnet != "auto":
                raise
            run.engine.remove(run.name, run.id)
            prepared = prepare_again(run.host, prepared, run.engine)
            text = run.platform.render(prepared.cluster)
    raise AssertionError("unreachable")


def _make_room_in_arp_table(run: Run, prepared: Prepared) -> None:
    """Let the kernel's ARP table hold the addresses of all tasks, or warn if only root may do it.

    If it is full, tasks do not reach each other: TensorFlow's sessions wait for all of them.
    """
    cluster = prepared.cluster
    if not cluster.one_host or not run.platform.by_docker:
        return
    table = arp_table(run.host, prepared.facts.kind)
    if table is None:
        return
    limit = addresses.arp_limit(cluster, table)
    if limit is None:
        return
    needed = table.entries + addresses.arp_entries(cluster)
    why = f"{len(cluster.tasks)} tasks need {needed:,} entries of the kernel's ARP table"
    try:
        run.host.widen_arp_table(limit)
    except OSError:
        thresholds = {"gc_thresh3": limit, "gc_thresh2": limit // 2}
        settings = [f"net.ipv4.neigh.default.{name}={size}" for name, size in thresholds.items()]
        run.view.warn(
            f"{why}, which has room for {table.limit:,}: some will not reach others. Run "
            f"`sudo sysctl -w {' '.join(settings)}` (until the next boot)"
        )
    else:
        run.view.phase(f"{why}: it has room for {limit:,} now, not {table.limit:,}")


def _write(run: Run, prepared: Prepared, text: str) -> tuple[Path, Mapping[str, str]]:
    """Write the cluster's file, and into the run's directory a copy, the sources and the record.

    Returns the file's path, and the hashes of the program's files.
    """
    with run_directory.writing(run.workspace.root):
        file = run.platform.file(run.workspace, prepared.cluster.name)
        if kept := keep_edited(file, text):
            run.view.warn(kept_sentence(str(file), kept.name))
        file = run.platform.write(run.workspace, prepared.cluster, text)
        ignore_in_git(file.parent, RENDERED)
    with run_directory.writing(run.directory.path):  # perhaps on another disk
        shown = without_secrets(prepared.cluster)
        copy = text if shown == prepared.cluster else run.platform.render(shown)
        write_atomically(run.directory.path / file.name, copy)
        mask = masker(values_of(prepared.cluster, ()))
        command = prepared.cluster.origin.command
        run_directory.keep_manifest(run.directory, prepared.manifest, command, mask)
        run_directory.keep_requirements(run.directory, prepared.cluster.requirements, mask)
        program = run_directory.keep_program(run.directory, *_program_files(prepared), mask)
        run_directory.reserve(run.directory)
        _record(run, prepared.cluster, program)
    return file, program


def _program_files(prepared: Prepared) -> tuple[list[Path], list[Path]]:
    """The user's program and its modules, and its files of settings; none if it is built in."""
    loaded = prepared.manifest
    program = resolve.program_file(loaded.manifest, loaded.path.parent)
    if program is None:
        return [], []
    sources, _ = read(program)
    return files(program, sources), settings(program, sources, loaded.manifest.args)


def _refuse_others(run: Run) -> None:
    """Raise EngineError if the containers belong to another run, for example of another host."""
    run_ids = {container.id for container in run.containers()}
    strangers = [c for c in run.engine.containers(run.name) if c.id not in run_ids]
    if strangers:
        raise EngineError(
            f"another run has started the cluster {run.name} at the same moment: "
            f"{run_of(strangers).path}, perhaps on another machine",
            "run it with `--name OTHER`, or when that run has ended",
        )


def _record(run: Run, cluster: Cluster, program: Mapping[str, str]) -> None:
    timings, clock = run.timings, run.host.clock
    began = moment(clock, clock.monotonic() - timings.began)
    shown = without_secrets(cluster)
    steps = dict(timings.timings)
    record = Record(run.id, shown, began, run.since, steps, run.sizes, program)
    write_record(run.directory, record)


_ABSENT = "bind source path does not exist"


def refuse_if_not_shared(host: Host, kind: EngineKind, image: str, runs: Path) -> None:
    """Try to mount a new folder below `runs` if the engine may have other folders than the kit.

    This creates a container without starting it: the engine then looks for the mount's source.

    Raises:
        HostError: the engine does not find the folder, or the folder cannot be created.
        EngineError: the engine refused the container for another reason.
    """
    if not (kind.remote or kind.outside):
        return
    with run_directory.writing(runs):
        runs.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".shared-", dir=runs) as folder:
        mount = bind(Path(folder).resolve(), "/mnt")
        done = host.processes.run(
            ["docker", "create", "--pull=never", "--network=none", mount, image]
        )
        if done.ok:
            host.processes.run(["docker", "rm", "--force", done.output.strip()])
            return
    if _ABSENT in done.errors and not kind.remote:
        raise HostError(
            f"this is a container, and the engine outside does not have {runs}: programs, data and "
            "results are mounted from there",
            f"mount the project's folder into this container under {_path_outside(host, runs)}; "
            "`cluster-kit new --devcontainer` writes a dev container that does",
        )
    if _ABSENT in done.errors:
        raise HostError(
            f"the engine is on another machine ({kind.remote}), which does not have {runs}: "
            "programs, data and results are mounted from there",
            "run the kit on that machine, or share this folder with it under the same path; for "
            "the engine of this machine: `unset DOCKER_HOST`, `docker context use default`",
        )
    where = f"at {kind.remote}" if kind.remote else "outside this container"
    raise EngineError(f"the engine {where} refused a mount:\n{done.tail()}", "see there")


def _path_outside(host: Host, path: Path) -> str:
    """The path on the engine's machine of the mount that `path` is in, as its own engine reports
    the mounts of this container."""
    form = "{{range .Mounts}}{{println (json .)}}{{end}}"
    own = ["docker", "container", "inspect", "--format", form, socket.gethostname()]
    mounts = [json.loads(line) for line in host.processes.run(own).output.split("\n") if line]
    inside = [mount for mount in mounts if path.is_relative_to(mount["Destination"])]
    if not inside:
        return "the same path as outside"
    mount = max(inside, key=lambda mount: len(mount["Destination"]))
    return f"the same path as outside: {mount['Source']}, not {mount['Destination']}"
