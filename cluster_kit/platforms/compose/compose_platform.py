"""The platform Docker Compose: one compose file per cluster, and `docker compose up`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cluster_kit import labels
from cluster_kit.errors import EngineError, UsageError
from cluster_kit.host import Host
from cluster_kit.platforms.docker import docker_engine
from cluster_kit.platforms.docker.docker_connection import disk_hint
from cluster_kit.platforms.engine import Engine
from cluster_kit.platforms.platform import ImageMissing, Platform, SidecarUnready, SubnetTaken, Tool
from cluster_kit.platforms.rendered_file import Build
from cluster_kit.platforms.variables import new_secret
from cluster_kit.resolved import OUTPUT, RESERVED, Cluster
from cluster_kit.workspace import Workspace, write_atomically

if TYPE_CHECKING:
    from cluster_kit.errors import Problem
    from cluster_kit.manifest.schema import Manifest
    from cluster_kit.util.process import Completed


NAMES = (
    "compose.override.yml",
    "compose.override.yaml",
    "docker-compose.override.yml",
    "docker-compose.override.yaml",
)
"""The names of a user's override file, in Compose's order: Compose uses the first that exists."""
_OWN = frozenset(text for name, text in vars(labels).items() if name.isupper())


def find_override(file: Path) -> Path | None:
    """The file that `docker compose up` in this directory merges into `file`; None without one."""
    paths = (file.with_name(name) for name in NAMES)
    return next((path for path in paths if path.is_file()), None)


def broken(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """The changes in the merged configuration that break the kit or its tasks.

    Both are as `docker compose config` prints them, without and with the override.
    """
    problems = [] if before["name"] == after["name"] else ["the project's name"]
    for name, service in before["services"].items():
        other = after["services"].get(name)
        if other is None:
            problems.append(f"{name}: it is not started")
            continue
        problems += [f"{name}: its {key}" for key in _changed(_of_service(service, other))]
    for name in sorted(after["services"].keys() - before["services"].keys()):
        problems.append(
            f"{name}: a service of its own: write it into the manifest, as [sidecar.{name}]"
        )
    network, other = (project["networks"]["cluster"] for project in (before, after))
    compared = {
        "subnet": (network.get("ipam"), other.get("ipam")),
        "labels": (_labels(network), _labels(other)),
    }
    return [*problems, *(f"the network: its {key}" for key in _changed(compared))]


def _changed(compared: Mapping[str, tuple[Any, Any]]) -> Iterator[str]:
    yield from (key for key, (old, new) in compared.items() if old != new)


def _of_service(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Settings of a service that must not change but do: their values before and after, by name."""
    pairs = {
        "labels": (_labels(old), _labels(new)),
        "address": (_address(old), _address(new)),
        "variables": (_variables(old), _variables(new)),
        "output directory": (_output(old), _output(new)),
    }
    names = "container_name hostname user command entrypoint network_mode restart"
    return pairs | {key: (old.get(key), new.get(key)) for key in names.split()}


def _labels(made: Mapping[str, Any]) -> dict[str, Any]:
    return {key: text for key, text in (made.get("labels") or {}).items() if key in _OWN}


def _address(service: Mapping[str, Any]) -> Any:
    networks = service.get("networks") or {}
    return (networks.get("cluster") or {}).get("ipv4_address")


def _variables(service: Mapping[str, Any]) -> dict[str, Any]:
    variables = service.get("environment") or {}
    return {key: text for key, text in variables.items() if RESERVED.fullmatch(key)}


def _output(service: Mapping[str, Any]) -> list[Any]:
    volumes = service.get("volumes") or ()
    return [volume.get("source") for volume in volumes if volume.get("target") == OUTPUT]


MINIMUM = (2, 20)


def version(host: Host) -> tuple[int, ...] | None:
    """Returns Compose's version, None if this client has no Compose v2."""
    done = host.processes.run(["docker", "compose", "version", "--short"])
    match = re.match(r"v?(\d+)\.(\d+)(?:\.(\d+))?", done.output.strip())
    return tuple(int(part) for part in match.groups() if part) if done.ok and match else None


_UNREADY = re.compile(
    r"dependency failed to start: container (\S+) (?:exited \((\d+)\)|is unhealthy)"
)
"""Compose's message if a container ends while others wait for its health check, or fails it."""


def up(host: Host, cluster: Cluster, file: Path, output: Path, run_id: str) -> list[str]:
    """Create and start every container, and return without waiting for them to end.

    A user's override file in that directory is merged, as Compose does by default.

    Returns:
        Compose's warnings about the override file, as of a variable that is not set.
    Raises:
        UsageError: the override file is invalid, or changes what the kit needs.
        SubnetTaken: another network has taken the subnet meanwhile.
        ImageMissing: the image no longer exists.
        SidecarUnready: a sidecar ended, or its command `ready` has not ended with 0 in time.
        EngineError: Compose or the engine failed otherwise.
    """
    from cluster_kit.platforms.compose.compose_file import awaited

    variables = {
        "CLUSTER_KIT_OUTPUT": str(output),
        "CLUSTER_KIT_RUN": run_id,
        **new_secret(),
        "COMPOSE_ANSI": "never",
    }
    files = ["-f", str(file)]
    warnings = []
    if override := find_override(file):
        files += ["-f", str(override)]
        warnings = _check_override(host, file, override, variables)
    compose = ("docker", "compose", *files)
    command = [*compose, "up", "--detach", "--no-recreate"]
    if waits := awaited(cluster):
        _refuse_failed(host.processes.run([*command, *waits], env=variables))
        listing = [*compose, "ps", "--all", "--quiet", *waits]
        _wait_until_ready(host, listing, variables, cluster.deadlines.start)
    _refuse_failed(host.processes.run(command, env=variables))
    return warnings


_LOOK_S = 0.25
_STATE = "{{.Name}} {{.State.Status}} {{.State.ExitCode}} {{with .State.Health}}{{.Status}}{{end}}"


def _wait_until_ready(
    host: Host, listing: Sequence[str], variables: Mapping[str, str], most_s: float
) -> None:
    """Wait until the health checks of sidecars have succeeded. Compose itself would count checks,
    which take more than a second each on a busy machine.

    Args:
        listing: the command that prints the ids of their containers.
    Raises:
        SidecarUnready: one has ended, or is not ready after `most_s` seconds.
        EngineError: the engine does not answer.
    """
    until = host.clock.monotonic() + most_s
    ids = host.processes.run(listing, env=variables).output.split()
    while ids:
        done = host.processes.run(["docker", "inspect", f"--format={_STATE}", *ids])
        if not done.ok:
            raise EngineError(f"docker inspect failed:\n{done.tail()}", _hint(done.errors))
        states = [line.split(" ") for line in done.output.splitlines() if line]
        unready = [state for state in states if state[3] != "healthy"]
        late = host.clock.monotonic() >= until
        for name, state, code, _ in unready:
            ended = int(code) if state in ("exited", "dead") else None
            if late or ended is not None:
                why = f"the container {name[1:]} is {state} ({code}), and not ready"
                raise SidecarUnready(why, "`cluster-kit logs` shows why", name[1:], ended)
        if not unready:
            return
        host.clock.sleep(_LOOK_S)


def _refuse_failed(done: Completed) -> None:
    """Raise the error of a failed `docker compose up`; see `up`."""
    if done.ok:
        return
    errors = _errors(done.errors)
    if "Pool overlaps" in errors:
        raise SubnetTaken(f"the subnet is taken: {errors}", "run it again")
    if "No such image" in errors:
        raise ImageMissing(f"docker compose up failed: {errors}", _hint(errors))
    if unready := _UNREADY.search(errors):
        ended = int(unready[2]) if unready[2] else None
        raise SidecarUnready(errors, "`cluster-kit logs` shows why", unready[1], ended)
    raise EngineError(f"docker compose up failed (exit {done.code}):\n{errors}", _hint(errors))


def _check_override(
    host: Host, file: Path, override: Path, variables: Mapping[str, str]
) -> list[str]:
    """Compose's warnings about the merged files.

    Raises:
        UsageError: Compose cannot merge them, or the kit could not run the result.
        EngineError: Compose fails otherwise.
    """
    problems = []
    for files in ([file], [file, override]):
        named = [word for path in files for word in ("-f", str(path))]
        done = host.processes.run(
            ["docker", "compose", *named, "config", "--format", "json"], env=variables
        )
        if not done.ok:
            words = _errors(done.errors)
            if files == [file]:
                raise EngineError(f"docker compose config failed:\n{words}", _hint(words))
            raise UsageError(f"{override} cannot be merged:\n{words}", f"fix {override}")
        problems.append(json.loads(done.output))
    if faults := broken(*problems):
        lines = "\n".join(f"  {fault}" for fault in faults)
        raise UsageError(
            f"{override} changes what the kit needs:\n{lines}",
            "remove it there; what the manifest has a key for belongs there",
        )
    return [text.replace('\\"', '"') for text in _WARNING.findall(done.errors)]


_WARNING = re.compile(r'^time="[^"]*" level=warning msg="(.*)"$', re.MULTILINE)
"""A warning in Compose's log, whose lines have this form without a terminal."""


def _errors(stderr: str) -> str:
    """The last lines of Compose's stderr, without its progress (`Container x  Started`)."""
    lines = [line.strip() for line in stderr.splitlines()]
    errors = [line for line in lines if line and not re.match(r"(Container|Network) \S+  \w", line)]
    return "\n".join(errors[-15:])


def _hint(errors: str) -> str:
    """The hint for an error of Compose."""
    if "could not select device driver" in errors:
        return 'install the NVIDIA Container Toolkit (cluster-kit doctor), or set `gpus = "none"`'
    if hint := disk_hint(errors):
        return hint
    if re.search(r"pull access denied|manifest unknown|failed to resolve|lookup .* on ", errors):
        return "`docker pull` or build the image that is named, or fix its name (`image`)"
    if "No such image" in errors:
        return "build or pull the image that the manifest names (`image`)"
    if "is already in use by container" in errors:
        return "another container has this name: `cluster-kit status`, then `cluster-kit down NAME`"
    if re.search(r"port is already allocated|bind.*address already in use", errors):
        return "something else listens on that port: publish another one in `ports`"
    if "error setting rlimit" in errors:
        return "this host does not allow so much: lower it in `ulimits`"
    if "bind source path does not exist" in errors:
        return "create it, or remove it from the manifest"
    if "Address already in use" in errors:
        return "something else has this address: choose another `subnet`"
    return "fix what the engine says and run it again"


IGNORE_RESULTS = "# Results are not committed; this file keeps their directory.\n*\n!.gitignore\n"


class Compose(Platform):
    """See `Platform`, whose methods these are."""

    name = "compose"
    title = "this host"
    meaning = '`"compose"` on this host'
    one_host = True

    @property
    def not_portable(self) -> UsageError:
        raise AssertionError("its file is portable")

    def refusals(self, manifest: Manifest) -> Iterator[Problem]:
        from cluster_kit.errors import Setting
        from cluster_kit.platforms import refusals

        rule = "Docker Compose runs all tasks on this host"
        hint = ("remove it, or write ", Setting("engine", "swarm"))
        for table, limits in manifest.limits_by_table():
            yield from refusals.in_limits(table, limits, {"nodes": (rule, hint)})
        if manifest.network.encrypted:
            encrypted = f"{rule}: nothing leaves it"
            yield refusals.refused("network.encrypted", "true", encrypted, hint)

    def engine(self, settings: Mapping[str, Any] | None = None) -> Engine:
        return docker_engine.connect()

    def tool(self, host: Host) -> Tool:
        return Tool(
            name="compose",
            title="Docker Compose",
            version=version(host),
            minimum=MINIMUM,
            absent="Compose v2 was not found",
            install="install its plugin",
        )

    def render(self, cluster: Cluster) -> str:
        from cluster_kit.platforms.compose.compose_file import render
        from cluster_kit.platforms.variables import refuse_in_text

        return refuse_in_text(render(cluster), self.file_name, cluster, options=False)

    def render_portable(self, cluster: Cluster, build: Build | None) -> str:
        from cluster_kit.platforms.compose.compose_file import render
        from cluster_kit.platforms.variables import refuse_in_text

        return refuse_in_text(render(cluster, build), self.file_name, cluster)

    def write_portable(self, workspace: Workspace, cluster: Cluster, text: str) -> Path:
        """Write the compose file, and an output directory that Git keeps although it is empty.

        Docker would create a missing directory as root, and the results would belong to root.
        """
        from cluster_kit.platforms.variables import mode_of

        file = workspace.portable(cluster.name)
        write_atomically(file, text, mode_of(cluster))
        write_atomically(file.parent / "output" / ".gitignore", IGNORE_RESULTS)
        return file

    def stale_beside(self, file: Path, cluster: Cluster) -> str:
        from cluster_kit.platforms.compose.compose_file import is_current

        return "" if is_current(file.parent, cluster) else "the value of a secret has changed"

    def write(self, workspace: Workspace, cluster: Cluster, text: str) -> Path:
        """Write the compose file and create the output directory of a plain `docker compose up`.

        Docker would make a missing directory as root.
        """
        from cluster_kit.platforms.compose.compose_file import write_hidden
        from cluster_kit.platforms.variables import mode_of

        file = workspace.generated(cluster.name)
        write_hidden(file.parent, cluster)
        write_atomically(file, text, mode_of(cluster))
        (file.parent / "output").mkdir(exist_ok=True)
        return file

    def merges(self, file: Path) -> Path | None:
        return find_override(file)

    def up(self, host: Host, cluster: Cluster, file: Path, output: Path, run: str) -> Sequence[str]:
        return up(host, cluster, file, output, run)
