"""The lines of `doctor`: engine, GPUs, networks, ports, proxies, secrets, disk and memory of this
host, each with its fix. `up` refuses to start if one that it needs fails."""

from __future__ import annotations

import errno
import json
import os
import shutil
import socket
from collections.abc import Collection, Iterator, Mapping
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from cluster_kit.errors import HostError
from cluster_kit.facts import EngineKind, GpuSetup, HostFacts
from cluster_kit.host import Host
from cluster_kit.image.kit_image import image_present
from cluster_kit.plan import addresses
from cluster_kit.plan.gpus import devices, in_use
from cluster_kit.plan.plan import CLOSED, is_closed
from cluster_kit.platform_table import DEFAULT
from cluster_kit.platforms.platform import Check, Tool, platform_of
from cluster_kit.resolved import LOOPBACK, Cluster
from cluster_kit.util.masking import without_url_passwords

HANDS_OUT = {"nvidia": "NVIDIA's runtime", "cdi": "CDI"}


def gpu_checks(facts: HostFacts) -> list[Check]:
    """One line if nothing is missing; else one line for each missing part.

    A host without a GPU passes, since it can use the CPU.
    """
    setup = facts.gpu_setup
    if facts.no_gpu:
        if not setup.hardware:
            return [Check("gpus", "ok", f"CPU only ({facts.no_gpu})")]
        hardware = f"{setup.hardware} from NVIDIA on the PCI bus"
        if not setup.driver:
            hint = "`nvidia-smi` shows more; in MIG mode, create slices: `nvidia-smi mig -cgi … -C`"
            return [Check("gpus", "warn", f"{hardware}, but {facts.no_gpu}", hint)]
        hint = "install NVIDIA's driver; if it is installed, load it: `modprobe nvidia`"
        return [Check("gpu driver", "warn", f"{hardware}, but no driver: {setup.driver}", hint)]
    names = ", ".join(f"{device.short}: {device.name}" for device in devices(facts.gpus))
    if not facts.gpu_refusal:
        well = Check("gpus", "ok", f"{names}, handed out by {HANDS_OUT[facts.gpu_driver]}")
        return [well, *_in_use(facts)]
    missing = _missing(setup)
    hint = "restart the engine; its log (`journalctl -u docker`) shows why"
    if missing:
        hint = "fix the problems above, then restart the engine"
    refused = f"{names}, but the engine refuses them: {facts.gpu_refusal}"
    return [*missing, Check("gpus", "warn", refused, hint)]


def _in_use(facts: HostFacts) -> list[Check]:
    """The check of GPUs that other programs use; [] if none is used."""
    used = [f"{device.short} is used by {user}" for device, user in in_use(facts).items()]
    if not used:
        return []
    hint = 'end that program; or leave it: `gpus = "auto"` skips them, a list does not'
    return [Check("gpus in use", "warn", "\n".join(used), hint)]


def _missing(setup: GpuSetup) -> list[Check]:
    """The missing parts of an engine that refuses GPUs, in the order in which to install them."""
    lines = []
    if not setup.toolkit:
        lines.append(
            Check(
                "gpu toolkit",
                "warn",
                "the NVIDIA Container Toolkit was not found: no nvidia-ctk in PATH",
                "install nvidia-container-toolkit from NVIDIA's package repository",
            )
        )
    if not setup.runtime:
        lines.append(
            Check(
                "gpu runtime",
                "warn",
                "the engine has no runtime `nvidia`",
                "`sudo nvidia-ctk runtime configure --runtime=docker`, then restart the engine",
            )
        )
    if setup.cdi and not setup.cdi_spec:
        lines.append(
            Check(
                "gpu cdi",
                "warn",
                "the engine reads CDI specifications, but there is none for nvidia.com/gpu",
                "`sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml`",
            )
        )
    return lines


SEE = "see docs/elsewhere.md"
TRIED = ("x86_64", "amd64", "")
"""Processors for which the kit's image is tested; "" if the engine does not report its
processor."""
LOCKED = (*TRIED, "aarch64", "arm64")
"""Processors for which the image's packages are locked."""


MINIMUM_PODMAN = (4, 3)
"""The oldest tested version of Podman."""


def podman(version: str) -> Check:
    """The line about Podman instead of a Docker engine."""
    numbers = tuple(int(part) for part in version.split("-")[0].split(".")[:2] if part.isdigit())
    if numbers < MINIMUM_PODMAN:
        return Check("engine", "fail", f"Podman {version}", "needs 4.3 or newer: upgrade")
    finding = f"Podman {version}, through its Docker-compatible API"
    return Check("engine", "warn", finding, f"some commands do not work with Podman: {SEE}")


def podman_builds(lacks: str) -> Check:
    """The line about building with Podman; `lacks` is the tag of the image to build, "" if none."""
    finding = "Podman cannot build the kit's images: `docker buildx` needs BuildKit in the engine"
    image = lacks or "IMAGE"
    hint = f"build it with a Docker engine, and copy it: `docker save {image} | podman load`"
    return Check("buildx", "fail" if lacks else "warn", finding, hint)


def check_kind(kind: EngineKind, cluster: Cluster | None) -> Iterator[Check]:
    """One line for each difference from a Docker engine that runs as root on this host."""
    if kind.rootless:
        finding = "rootless: tasks run as root in their containers, which is this user on the host"
        yield Check("rootless", "ok", finding)
    if kind.desktop:
        finding = (
            "Docker Desktop: a virtual machine; this host has no route to the tasks' addresses"
        )
        yield Check(
            "desktop",
            "warn",
            finding,
            f"share the project's folder with the virtual machine; {SEE}",
        )
    if kind.remote:
        finding = (
            f"the engine is on another machine ({kind.remote}): it needs the same folders "
            "at the same paths"
        )
        yield Check("remote", "warn", finding, f"run the kit there, or share the folder; {SEE}")
    if kind.outside:
        finding = (
            "this is a container, and the engine is outside: it needs the same folders at the same "
            "paths"
        )
        yield Check(
            "container", "warn", finding, f"mount the project under its path on the host; {SEE}"
        )
    if kind.machine not in TRIED and (cluster is None or cluster.variant is not None):
        yield _processor(kind.machine, cluster)
    if kind.unlimited:
        yield _limits(kind, cluster)


def _processor(machine: str, cluster: Cluster | None) -> Check:
    """Checks that the kit's image was tested on the engine's processor, or can be built for it."""
    user_image = f'name an image that has TensorFlow for this processor (`image = "…"`); {SEE}'
    if machine not in LOCKED:
        finding = f"{machine}: the kit's image can be built for x86_64 and aarch64 only"
        return Check("processor", "warn" if cluster is None else "fail", finding, user_image)
    if cluster is not None and cluster.variant == "gpu":
        finding = f"{machine}: TensorFlow's packages for it do not support GPUs"
        return Check("processor", "fail", finding, f'write `gpus = "none"`, or {user_image}')
    finding = f"{machine}: the kit's image can be built for it, but was not tested"
    return Check("processor", "warn", finding, f"if the build fails, {user_image}")


def _limits(kind: EngineKind, cluster: Cluster | None) -> Check:
    """The line about limits that the engine cannot enforce, with the tasks that set them."""
    wanted = {
        f"{task.name}: {limit}"
        for limit in kind.unlimited
        for task in (cluster.tasks if cluster else ())
        if getattr(task, limit) is not None
    }
    finding = f"this engine cannot limit {' or '.join(kind.unlimited)}"
    hint = "enable cgroups for it (rootless: cgroup v2 with delegation by systemd)"
    if not wanted:
        return Check("limits", "warn", finding, hint)
    listed = ", ".join(sorted(wanted))
    return Check("limits", "fail", f"{finding} ({listed})", f"{hint}, or remove the limits")


OWN_EXCEPTIONS = "no_grpc_proxy"
"""The variable with hosts that gRPC reaches without a proxy; if unset, gRPC reads `no_proxy`."""
USERS = Path("/etc/passwd")
FIRST_USER, NOBODY = 1000, 65534
"""The range of people's user ids: from the first to below the second."""
NO_SHELLS = ("nologin", "false")
MOST_NAMED = 5
NO_CLUSTER = "."
"""A name that no cluster can have: it begins with a dot."""


def check_subnet(facts: HostFacts, cluster: Cluster | None) -> Check:
    """Checks that the cluster's subnet is still free; without a cluster, that any subnet is."""
    if cluster is None:
        subnet = addresses.pick_subnet(NO_CLUSTER, addresses.WHOLE, facts.networks)
        if subnet is not None:
            return Check("subnet", "ok", "a subnet is free; the kit chooses one for each manifest")
        pools = ", ".join(map(str, addresses.POOLS))
        finding = f"Docker networks and routes of this host use all of {pools}"
        hint = "remove unused networks (`docker network prune`), or set `subnet` in manifests"
        return Check("subnet", "fail", finding, hint)
    for network in facts.networks:
        if network.cluster != cluster.name and network.subnet.overlaps(cluster.subnet):
            finding = f"{cluster.subnet} overlaps {network.subnet} of {network.owner}"
            hint = 'set another `subnet`, or `subnet = "auto"`'
            return Check("subnet", "fail", finding, hint)
    return Check("subnet", "ok", f"{cluster.subnet} is free")


def check_proxy(cluster: Cluster | None) -> Check:
    """Checks that the cluster's connections bypass the proxies that containers get.

    Docker's client passes the proxies of its configuration to containers. The kit exempts the
    subnet by `no_proxy`, but gRPC prefers `no_grpc_proxy` if a manifest sets it.
    """
    for task in cluster.tasks if cluster else ():
        variables = {name.lower(): value for name, value in task.environment}
        exceptions = variables.get(OWN_EXCEPTIONS, "")
        if cluster and exceptions and str(cluster.subnet) not in exceptions.split(","):
            finding = (
                f"{task.name} sets {OWN_EXCEPTIONS} without {cluster.subnet}: its connections "
            )
            hint = f"take {OWN_EXCEPTIONS} out of `environment`: the kit sets no_proxy"
            return Check("proxy", "fail", f"{finding}to other tasks would use the proxy", hint)
    file = Path(os.environ.get("DOCKER_CONFIG", Path.home() / ".docker")) / "config.json"
    try:
        proxies = _proxies(file)
    except (OSError, ValueError, AttributeError) as error:
        return Check(
            "proxy",
            "warn",
            f"{file} cannot be read: {error}",
            "fix the file: Docker's client reads registry passwords and proxies from it",
        )
    local = {name: url for name, url in proxies.items() if _is_loopback(url)}
    if local:
        listed = ", ".join(f"{name} = {without_url_passwords(url)}" for name, url in local.items())
        return Check(
            "proxy",
            "warn",
            f"{file} passes {listed} to containers, but in a container that address is the "
            "container itself",
            "use an address of the proxy that containers can reach, e.g. the host's address on "
            "its network",
        )
    if proxies:
        return Check("proxy", "ok", f"set in {file}; the cluster's subnet is exempted by no_proxy")
    return Check("proxy", "ok", "containers get no proxy")


def check_strangers(
    host: Host, facts: HostFacts, users: Path = USERS, this: Collection[int] = ()
) -> Iterator[Check]:
    """Yields checks of who can reach the tasks' servers, which do not authenticate clients.

    Args:
        users: a file like /etc/passwd.
        this: ids that count as this user; by default those of the caller, also behind sudo.
    """
    if facts.kind.remote or facts.kind.desktop or facts.kind.podman:
        return
    yield _check_users(users, this or {os.getuid(), int(os.environ.get("SUDO_UID") or 0)})
    newer = f"install Docker Engine {CLOSED} or newer: https://docs.docker.com/engine/install"
    if is_closed(facts.engine):
        yield Check(
            "isolation", "ok", "the engine blocks other machines from ports that are not published"
        )
    else:
        finding = f"Docker Engine {facts.engine} is older than {CLOSED}: only the policy of the "
        finding += (
            "firewall's chain FORWARD can block other machines from ports that are not published"
        )
        yield Check("isolation", "warn", finding, newer)
    yield _check_forward(host)


def _check_users(users: Path, this: Collection[int]) -> Check:
    try:
        rows = [line.split(":") for line in users.read_text(errors="replace").splitlines()]
    except OSError as error:
        finding = f"unknown: {users} cannot be read ({error.strerror})"
        return Check("users", "warn", finding, "check who else can log in to this host")
    other_users = sorted(
        row[0]
        for row in rows
        if len(row) > 6 and row[2].isdecimal() and FIRST_USER <= int(row[2]) < NOBODY
        if int(row[2]) not in this and not row[6].endswith(NO_SHELLS)
    )
    if not other_users:
        return Check("users", "ok", f"no other user of {users} can log in")
    listed = ", ".join(other_users[:MOST_NAMED]) + (", …" if len(other_users) > MOST_NAMED else "")
    return Check(
        "users",
        "warn",
        f"{listed} can log in and reach the tasks' servers, which run code for anyone",
        "use another host for data that these users must not see: docs/how-it-works.md#confinement",
    )


def _check_forward(host: Host) -> Check:
    """Checks the policy of the firewall's chain FORWARD; reading it needs root and iptables."""
    done = host.processes.run(["iptables", "--wait", "2", "--list-rules", "FORWARD"], timeout_s=10)
    first = done.output.partition("\n")[0].split()
    if not done.ok or first[:2] != ["-P", "FORWARD"]:
        finding = "unknown: reading the firewall's chain FORWARD needs root and iptables"
        return Check(
            "forward",
            "warn",
            finding,
            "the first line of `sudo iptables -S FORWARD` must end with DROP",
        )
    if first[2:] == ["DROP"]:
        return Check("forward", "ok", "the firewall drops forwarded packets that no rule allows")
    finding = f"the policy of the firewall's chain FORWARD is {' '.join(first[2:])}"
    return Check(
        "forward", "warn", finding, "`iptables -P FORWARD DROP`, unless this host is a router"
    )


def _proxies(file: Path) -> dict[str, str]:
    """The URLs of proxies in Docker's client configuration, by name; {} without a file.

    Raises:
        OSError, ValueError, AttributeError: the file cannot be read, or does not have Docker's
        format.
    """
    if not file.exists():
        return {}
    of_hosts: Mapping[str, Mapping[str, str]] = json.loads(file.read_text()).get("proxies") or {}
    return {
        name: str(url)
        for proxies in of_hosts.values()
        for name, url in proxies.items()
        if name.endswith("Proxy") and name != "noProxy"
    }


def _is_loopback(url: str) -> bool:
    try:
        host = urlsplit(url if "//" in url else f"//{url}").hostname or ""
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def check_ports(cluster: Cluster | None) -> list[Check]:
    """Checks that the ports that tasks publish are free; [] if tasks publish none."""
    ports = cluster.ports if cluster else ()
    if not ports or _is_elsewhere():
        return []
    addresses = ", ".join(f"{LOOPBACK}:{port.host}" for _, port in ports)
    taken = [f"{LOOPBACK}:{port.host} (for {name})" for name, port in ports if is_taken(port.host)]
    if taken:
        hint = (
            "end the program or the cluster that listens there, or publish another port of this "
            "host in `ports`"
        )
        return [Check("ports", "fail", f"taken: {', '.join(taken)}", hint)]
    return [Check("ports", "ok", f"free: {addresses}")]


def _is_elsewhere() -> bool:
    """Whether the engine publishes ports on another machine."""
    return os.environ.get("DOCKER_HOST", "").startswith(("tcp:", "ssh:"))


def is_taken(port: int) -> bool:
    """Whether a program listens on a port of this host; False if unknown."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as tried:
        # Like the engine, ignore connections that are about to end.
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind((LOOPBACK, port))
        except OSError as error:
            return error.errno == errno.EADDRINUSE
    return False


def check_secrets(cluster: Cluster | None, environment: Mapping[str, str]) -> list[Check]:
    """Checks that the caller has set all variables that tasks need; [] if they need none."""
    needed = cluster.from_caller if cluster else ()
    absent = [name for name in needed if not environment.get(name)]
    if not needed:
        return []
    if absent:
        hint = f"`export {absent[0]}=…`, or remove it from the manifest"
        return [Check("secrets", "fail", f"not set: {', '.join(absent)}", hint)]
    return [Check("secrets", "ok", f"set: {', '.join(needed)}")]


MINIMUM_ENGINE = (23, 0)
DISK_TO_BUILD = 8 * 2**30
DISK_TO_RUN = 1 * 2**30
SERVER_MEMORY = 200 * 2**20
PROGRAM_MEMORY = 900 * 2**20
"""The private resident memory of a server and of a program in bytes, measured and rounded up."""
SMALLEST = PROGRAM_MEMORY + 2 * SERVER_MEMORY
"""The memory of the smallest cluster in bytes: a chief, a worker and a ps."""


def check_host(
    host: Host, facts: HostFacts, cluster: Cluster | None, *, warns: bool = True
) -> list[Check]:
    """The checks of this host, and of the needs of `cluster`, if given.

    Args:
        warns: False leaves out the check of the program that builds images if it could only warn.
    """
    platform = platform_of(cluster.engine if cluster else DEFAULT)
    tool = _tool(platform.tool(host))
    if cluster is not None and not platform.by_docker:
        platform_checks = platform.checks(host, cluster) if tool.state == "ok" else []
        return [tool, *platform_checks, *check_secrets(cluster, os.environ)]
    lacks = "" if cluster is None or _built(host, cluster) else cluster.image  # to build first
    return [
        podman(facts.engine) if facts.kind.podman else _engine(facts.engine),
        *check_kind(facts.kind, cluster),
        tool,
        *([_builds(host, facts, lacks)] if warns or lacks else []),
        _disk(facts.engine_root or "/", lacks),
        _memory(facts.memory, cluster if cluster and cluster.one_host else None),
        *platform.checks(host, cluster),
        *gpu_checks(facts),
        check_subnet(facts, cluster),
        check_proxy(cluster),
        *check_secrets(cluster, os.environ),
        *check_ports(cluster),
    ]


def refuse_if_unfit(host: Host, facts: HostFacts, cluster: Cluster) -> None:
    """Raise HostError with all failed checks; warnings are ignored."""
    failed = [
        check for check in check_host(host, facts, cluster, warns=False) if check.state == "fail"
    ]
    if failed:
        problems = "\n".join(f"  {check.name}: {check.found}" for check in failed)
        hints = "\n    ".join(check.hint for check in failed)
        raise HostError(f"this host is not fit to run {cluster.name}:\n{problems}", hints)


def _engine(version: str) -> Check:
    numbers = tuple(int(part) for part in version.split("+")[0].split(".")[:2] if part.isdigit())
    if numbers < MINIMUM_ENGINE:
        return Check("engine", "fail", f"Docker Engine {version}", "needs 23.0 or newer: upgrade")
    return Check("engine", "ok", f"Docker Engine {version}")


def _tool(tool: Tool) -> Check:
    """The check of the platform's program."""
    needed = ".".join(map(str, tool.minimum))
    if tool.version is None:
        return Check(tool.name, "fail", tool.absent, f"{tool.install}, {needed} or newer")
    text = f"{tool.title} {'.'.join(map(str, tool.version))}"
    if tool.version < tool.minimum:
        return Check(tool.name, "fail", text, f"needs {needed} or newer: upgrade it")
    return Check(tool.name, "ok", text)


def _builds(host: Host, facts: HostFacts, lacks: str) -> Check:
    return podman_builds(lacks) if facts.kind.podman else _buildx(host, lacks)


def _buildx(host: Host, lacks: str) -> Check:
    done = host.processes.run(["docker", "buildx", "version"])
    if done.ok:
        return Check("buildx", "ok", done.output.split()[1] if done.output.split() else "found")
    problem, hint = "the Buildx plugin was not found", "install it: building images needs it"
    return Check("buildx", "fail" if lacks else "warn", problem, hint)


def _disk(root: str, lacks: str) -> Check:
    path = Path(root)
    if not path.exists():
        return Check("disk", "ok", "the engine's disk is not visible from here")
    free = shutil.disk_usage(path).free
    needed = DISK_TO_BUILD if lacks else DISK_TO_RUN
    text = f"{free / 2**30:.1f} GiB free in {root}"  # 0.9 are not the 1 that it needs
    if free < needed:
        hint = f"needs {needed / 2**30:.0f} GiB: free space on the disk (docker system prune)"
        return Check("disk", "fail", text, hint)
    return Check("disk", "ok", text)


def _built(host: Host, cluster: Cluster) -> bool:
    """Whether the kit needs to build no image for a cluster."""
    if cluster.variant is None or cluster.tensorflow:
        return not cluster.image_is_built or image_present(host, cluster.image)
    return image_present(host, host.image_tag(cluster.variant))


def _memory(total: int, cluster: Cluster | None) -> Check:
    text = f"{total / 2**30:.1f} GiB"
    if cluster is None:
        if total >= SMALLEST:
            return Check("memory", "ok", text)
        needs = f"the smallest cluster needs about {SMALLEST / 2**30:.1f} GiB"
        return Check("memory", "warn", f"{text}; {needs}", "give the engine more memory")
    usual = ((SERVER_MEMORY if task.serves else PROGRAM_MEMORY, task) for task in cluster.tasks)
    needed = sum(min(usually, task.memory or usually) for usually, task in usual)
    text += f", about {needed / 2**30:.1f} GiB needed, without the program's data"
    if needed > total:
        hint = "ask for fewer tasks, give them a `memory` limit, or the engine more memory"
        return Check("memory", "fail", text, hint)
    return Check("memory", "ok", text)
