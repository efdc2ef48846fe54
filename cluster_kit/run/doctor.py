"""The lines of `doctor` about GPUs: from the hardware to the engine. Pure."""

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
from cluster_kit.facts import CLOSED, EngineKind, GpuSetup, HostFacts, is_closed
from cluster_kit.host import Host
from cluster_kit.image.kit_image import image_present
from cluster_kit.plan import addresses
from cluster_kit.plan.gpus import devices, in_use
from cluster_kit.platform_table import DEFAULT
from cluster_kit.platforms.platform import Check, Tool, platform_of
from cluster_kit.resolved import LOOPBACK, Cluster

HANDS_OUT = {"nvidia": "NVIDIA's runtime", "cdi": "CDI"}


def gpu_checks(facts: HostFacts) -> list[Check]:
    """One line if all is well, or if there is nothing to be done; else one for each missing part.

    A host without a GPU passes, since it can use the CPU.
    """
    setup = facts.gpu_setup
    if facts.no_gpu:
        if not setup.hardware:
            return [Check("gpus", "ok", f"CPU only ({facts.no_gpu})")]
        hardware = f"{setup.hardware} of NVIDIA's on the PCI bus"
        if not setup.driver:
            hint = "`nvidia-smi` says more; in MIG mode, make slices: `nvidia-smi mig -cgi … -C`"
            return [Check("gpus", "warn", f"{hardware}, but {facts.no_gpu}", hint)]
        hint = "install NVIDIA's driver; if it is installed, load it: `modprobe nvidia`"
        return [Check("gpu driver", "warn", f"{hardware}, but no driver: {setup.driver}", hint)]
    names = ", ".join(f"{device.short}: {device.name}" for device in devices(facts.gpus))
    if not facts.gpu_refusal:
        well = Check("gpus", "ok", f"{names}, handed out by {HANDS_OUT[facts.gpu_driver]}")
        return [well, *_in_use(facts)]
    missing = _missing(setup)
    hint = "restart the engine; its log (`journalctl -u docker`) says more"
    if missing:
        hint = "repair what is missing above, then restart the engine"
    refused = f"{names}, but the engine refuses them: {facts.gpu_refusal}"
    return [*missing, Check("gpus", "warn", refused, hint)]


def _in_use(facts: HostFacts) -> list[Check]:
    """The GPUs that others use, if any."""
    used = [f"{device.short} is used by {user}" for device, user in in_use(facts).items()]
    if not used:
        return []
    hint = 'end it, or let it be: `gpus = "auto"` takes others, a list takes those that it names'
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
"""Machines on which the kit's image is tested; "" if the engine does not report its machine."""
LOCKED = (*TRIED, "aarch64", "arm64")
"""For which its packages are locked."""


MINIMUM_PODMAN = (4, 3)
"""The oldest that was tried."""


def podman(version: str) -> Check:
    """The line about Podman instead of a Docker engine."""
    numbers = tuple(int(part) for part in version.split("-")[0].split(".")[:2] if part.isdigit())
    if numbers < MINIMUM_PODMAN:
        return Check("engine", "fail", f"Podman {version}", "needs 4.3 or newer: upgrade")
    finding = f"Podman {version}, by its interface for Docker's clients"
    return Check("engine", "warn", finding, f"what does not work there: {SEE}")


def podman_builds(lacks: str) -> Check:
    """The line about building there; `lacks` is the tag of the image to be built, "" if none."""
    finding = "Podman builds no images for the kit: `docker buildx` needs BuildKit in the engine"
    image = lacks or "IMAGE"
    hint = f"build it with a Docker engine, and bring it: `docker save {image} | podman load`"
    return Check("buildx", "fail" if lacks else "warn", finding, hint)


def check_kind(kind: EngineKind, cluster: Cluster | None) -> Iterator[Check]:
    """A line for each thing that differs; none for an engine of this host that runs as root."""
    if kind.rootless:
        finding = "rootless: tasks are root in their containers, which is this user on the host"
        yield Check("rootless", "ok", finding)
    if kind.desktop:
        finding = (
            "Docker Desktop: a virtual machine; this host has no route to the tasks' addresses"
        )
        yield Check("desktop", "warn", finding, f"share the project's folder with it; {SEE}")
    if kind.remote:
        finding = f"the engine is on another machine ({kind.remote}): it must see the same folders"
        yield Check("remote", "warn", finding, f"run the kit there, or share the folder; {SEE}")
    if kind.machine not in TRIED and (cluster is None or cluster.variant is not None):
        yield _processor(kind.machine, cluster)
    if kind.unlimited:
        yield _limits(kind, cluster)


def _processor(machine: str, cluster: Cluster | None) -> Check:
    """Whether the kit's own image can be built for it: its packages are locked, if not tried."""
    user_image = f'name an image with TensorFlow for it (`image = "…"`); {SEE}'
    if machine not in LOCKED:
        finding = (
            f"{machine}: the packages of the kit's own image are locked for x86_64 and aarch64"
        )
        return Check("processor", "warn" if cluster is None else "fail", finding, user_image)
    if cluster is not None and cluster.variant == "gpu":
        finding = f"{machine}: the TensorFlow that is published for it has no support of GPUs"
        return Check("processor", "fail", finding, f'write `gpus = "none"`, or {user_image}')
    finding = f"{machine}: the packages of the kit's own image are locked for it; it was not tried"
    return Check("processor", "warn", finding, f"if the image does not build, {user_image}")


def _limits(kind: EngineKind, cluster: Cluster | None) -> Check:
    """Which limits the engine cannot hold, and which of them the cluster asks for."""
    wanted = {
        f"{task.name}: {limit}"
        for limit in kind.unlimited
        for task in (cluster.tasks if cluster else ())
        if getattr(task, limit) is not None
    }
    finding = f"this engine cannot limit {' or '.join(kind.unlimited)}"
    hint = "give it cgroups (rootless: cgroup v2 with delegation by systemd)"
    if not wanted:
        return Check("limits", "warn", finding, hint)
    listed = ", ".join(sorted(wanted))
    return Check("limits", "fail", f"{finding} ({listed})", f"{hint}, or take the limits out")


OWN_EXCEPTIONS = "no_grpc_proxy"
"""Hosts that gRPC reaches without a proxy; it looks into `no_proxy` only if this is not set."""
USERS = Path("/etc/passwd")
FIRST_USER, NOBODY = 1000, 65534
"""Ids of people's users: from the first to below the second."""
NO_SHELLS = ("nologin", "false")
MOST_NAMED = 5
NO_CLUSTER = "."
"""The name of no cluster: none begins with a dot."""


def check_subnet(facts: HostFacts, cluster: Cluster | None) -> Check:
    """Whether the cluster's subnet is still free; without a cluster, whether any is."""
    if cluster is None:
        subnet = addresses.pick_subnet(NO_CLUSTER, addresses.WHOLE, facts.networks)
        if subnet is not None:
            return Check("subnet", "ok", "there is a free one; it is chosen for each manifest")
        pools = ", ".join(map(str, addresses.POOLS))
        finding = f"every part of {pools} is taken by a Docker network or a route of this host"
        hint = "remove unused networks (`docker network prune`), or state a `subnet` in manifests"
        return Check("subnet", "fail", finding, hint)
    for network in facts.networks:
        if network.cluster != cluster.name and network.subnet.overlaps(cluster.subnet):
            finding = f"{cluster.subnet} overlaps {network.subnet} of {network.owner}"
            hint = 'remove that network, or write another `subnet` or `subnet = "auto"`'
            return Check("subnet", "fail", finding, hint)
    return Check("subnet", "ok", f"{cluster.subnet} is free")


def check_proxy(cluster: Cluster | None) -> Check:
    """Whether proxies that containers get leave the cluster's own connections alone.

    Docker's client passes those of its configuration to containers. The kit exempts the subnet by
    `no_proxy`, but gRPC prefers a `no_grpc_proxy` if a manifest sets one.
    """
    for task in cluster.tasks if cluster else ():
        variables = {name.lower(): value for name, value in task.environment}
        exceptions = variables.get(OWN_EXCEPTIONS, "")
        if cluster and exceptions and str(cluster.subnet) not in exceptions.split(","):
            finding = (
                f"{task.name} sets {OWN_EXCEPTIONS} without {cluster.subnet}: its connections "
            )
            hint = f"take {OWN_EXCEPTIONS} out of `environment`: the kit sets no_proxy"
            return Check("proxy", "fail", f"{finding}to other tasks go through the proxy", hint)
    file = Path(os.environ.get("DOCKER_CONFIG", Path.home() / ".docker")) / "config.json"
    try:
        proxies = _proxies(file)
    except (OSError, ValueError, AttributeError) as error:
        return Check(
            "proxy",
            "warn",
            f"{file} cannot be read: {error}",
            "fix it: Docker's client takes registries' passwords and proxies from it",
        )
    local = {name: url for name, url in proxies.items() if _is_loopback(url)}
    if local:
        listed = ", ".join(f"{name} = {url}" for name, url in local.items())
        return Check(
            "proxy",
            "warn",
            f"{file} passes {listed} to containers, where that is the container itself",
            "name the proxy by an address that containers reach, e.g. the host's on its network",
        )
    if proxies:
        return Check("proxy", "ok", f"set in {file}; the cluster's subnet is exempted by no_proxy")
    return Check("proxy", "ok", "none handed to containers")


def check_strangers(
    host: Host, facts: HostFacts, users: Path = USERS, this: Collection[int] = ()
) -> Iterator[Check]:
    """Yields who can reach the tasks' servers, which authenticate nobody.

    Args:
        users: the list of users, as /etc/passwd.
        this: ids of users who are this one; by default the one who calls, also by sudo.
    """
    if facts.kind.remote or facts.kind.desktop or facts.kind.podman:
        return
    yield _check_users(users, this or {os.getuid(), int(os.environ.get("SUDO_UID") or 0)})
    newer = f"install Docker Engine {CLOSED} or newer: https://docs.docker.com/engine/install"
    if is_closed(facts.engine):
        yield Check("isolation", "ok", "the engine keeps other machines from unpublished ports")
    else:
        finding = f"Docker Engine {facts.engine} is older than {CLOSED}: only the policy of the "
        finding += "firewall's chain FORWARD keeps other machines from unpublished ports"
        yield Check("isolation", "warn", finding, newer)
    yield _check_forward(host)


def _check_users(users: Path, this: Collection[int]) -> Check:
    try:
        rows = [line.split(":") for line in users.read_text(errors="replace").splitlines()]
    except OSError as error:
        finding = f"not known: {users} cannot be read ({error.strerror})"
        return Check("users", "warn", finding, "look who else can log in to this host")
    other_users = sorted(
        row[0]
        for row in rows
        if len(row) > 6 and row[2].isdecimal() and FIRST_USER <= int(row[2]) < NOBODY
        if int(row[2]) not in this and not row[6].endswith(NO_SHELLS)
    )
    if not other_users:
        return Check("users", "ok", f"no other user can log in, by {users}")
    listed = ", ".join(other_users[:MOST_NAMED]) + (", …" if len(other_users) > MOST_NAMED else "")
    return Check(
        "users",
        "warn",
        f"{listed} can log in, and reach the tasks' servers, which run code for anyone",
        "see docs/how-it-works.md#confinement: run what they must not see on another host",
    )


def _check_forward(host: Host) -> Check:
    """The policy of the firewall's chain FORWARD, which takes root and iptables to read."""
    done = host.processes.run(["iptables", "--wait", "2", "--list-rules", "FORWARD"], timeout_s=10)
    first = done.output.partition("\n")[0].split()
    if not done.ok or first[:2] != ["-P", "FORWARD"]:
        finding = "not known: reading the firewall's chain FORWARD takes root and iptables"
        return Check("forward", "warn", finding, "`sudo iptables -S FORWARD` must begin with DROP")
    if first[2:] == ["DROP"]:
        return Check("forward", "ok", "the firewall drops forwarded packets that no rule allows")
    finding = f"the policy of the firewall's chain FORWARD is {' '.join(first[2:])}"
    return Check(
        "forward", "warn", finding, "`iptables -P FORWARD DROP`, unless this host is a router"
    )


def _proxies(file: Path) -> dict[str, str]:
    """The URLs of proxies in Docker's client configuration, by name; {} without a file.

    Raises:
        OSError, ValueError, AttributeError: it cannot be read, or is not what Docker writes.
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
    """Whether nothing else listens on the ports that tasks publish; [] if none does."""
    ports = cluster.ports if cluster else ()
    if not ports or _is_elsewhere():
        return []
    addresses = ", ".join(f"{LOOPBACK}:{port.host}" for _, port in ports)
    taken = [f"{LOOPBACK}:{port.host} ({name})" for name, port in ports if is_taken(port.host)]
    if taken:
        hint = "end what listens there, or publish another port of this host in `ports`"
        return [Check("ports", "fail", f"taken: {', '.join(taken)}", hint)]
    return [Check("ports", "ok", f"free: {addresses}")]


def _is_elsewhere() -> bool:
    """Whether the engine publishes ports on another machine."""
    return os.environ.get("DOCKER_HOST", "").startswith(("tcp:", "ssh:"))


def is_taken(port: int) -> bool:
    """Whether something listens on a port of this host; False if that cannot be known."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as tried:
        # As the engine does: connections that are about to end do not count.
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind((LOOPBACK, port))
        except OSError as error:
            return error.errno == errno.EADDRINUSE
    return False


def check_secrets(cluster: Cluster | None, environment: Mapping[str, str]) -> list[Check]:
    """Whether all variables that tasks take from the caller are set; [] if there are none."""
    needed = cluster.from_caller if cluster else ()
    absent = [name for name in needed if not environment.get(name)]
    if not needed:
        return []
    if absent:
        hint = f"`export {absent[0]}=…`, or take it out of `secrets`"
        return [Check("secrets", "fail", f"not set: {', '.join(absent)}", hint)]
    return [Check("secrets", "ok", f"set: {', '.join(needed)}")]


MINIMUM_ENGINE = (23, 0)
DISK_TO_BUILD = 8 * 2**30
DISK_TO_RUN = 1 * 2**30
SERVER_MEMORY = 200 * 2**20
PROGRAM_MEMORY = 900 * 2**20
"""In bytes: resident private memory of a server and of a program, measured and rounded up."""
SMALLEST = PROGRAM_MEMORY + 2 * SERVER_MEMORY
"""The bytes of memory that a chief, a worker and a ps need."""


def check_host(host: Host, facts: HostFacts, cluster: Cluster | None) -> list[Check]:
    """The checks of this host, and of what `cluster` needs if one is given."""
    platform = platform_of(cluster.engine if cluster else DEFAULT)
    tool = _tool(platform.tool(host))
    if cluster is not None and not platform.by_docker:
        platform_checks = platform.checks(host, cluster) if tool.state == "ok" else []
        return [tool, *platform_checks, *check_secrets(cluster, os.environ)]
    return [
        podman(facts.engine) if facts.kind.podman else _engine(facts.engine),
        *check_kind(facts.kind, cluster),
        tool,
        podman_builds(_lacks(host, cluster)) if facts.kind.podman else _buildx(host, cluster),
        _disk(host, facts.engine_root or "/", cluster),
        _memory(facts.memory, cluster if cluster and cluster.one_host else None),
        *platform.checks(host, cluster),
        *gpu_checks(facts),
        check_subnet(facts, cluster),
        check_proxy(cluster),
        *check_secrets(cluster, os.environ),
        *check_ports(cluster),
    ]


def refuse_if_unfit(host: Host, facts: HostFacts, cluster: Cluster) -> None:
    """Raises HostError with all failed checks; warnings are ignored."""
    failed = [check for check in check_host(host, facts, cluster) if check.state == "fail"]
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


def _buildx(host: Host, cluster: Cluster | None) -> Check:
    done = host.processes.run(["docker", "buildx", "version"])
    if done.ok:
        return Check("buildx", "ok", done.output.split()[1] if done.output.split() else "found")
    found, hint = "the Buildx plugin was not found", "install it: building images needs it"
    return Check("buildx", "fail" if _lacks(host, cluster) else "warn", found, hint)


def _lacks(host: Host, cluster: Cluster | None) -> str:
    """The tag of the image that has to be built first; "" if there is nothing to build."""
    return "" if cluster is None or _built(host, cluster) else cluster.image


def _disk(host: Host, root: str, cluster: Cluster | None) -> Check:
    path = Path(root)
    if not path.exists():
        return Check("disk", "ok", "the engine's disk is not visible from here")
    free = shutil.disk_usage(path).free
    needed = DISK_TO_RUN if cluster is None or _built(host, cluster) else DISK_TO_BUILD
    text = f"{free / 2**30:.0f} GiB free in {root}"
    if free < needed:
        hint = f"needs {needed / 2**30:.0f} GiB: free some (docker system prune)"
        return Check("disk", "fail", text, hint)
    return Check("disk", "ok", text)


def _built(host: Host, cluster: Cluster) -> bool:
    """Whether the kit has nothing to build for a cluster."""
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
    needed = sum(SERVER_MEMORY if task.serves else PROGRAM_MEMORY for task in cluster.tasks)
    text += f", about {needed / 2**30:.1f} GiB needed before the program's own"
    if needed > total:
        return Check("memory", "fail", text, "ask for fewer tasks, or give the engine more memory")
    return Check("memory", "ok", text)
