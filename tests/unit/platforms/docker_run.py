"""A backend that is not Compose: `docker run`, made from what a task is given and nothing else."""

from __future__ import annotations

from cluster_kit.platforms.compose.compose_file import GATEWAY_MODE
from cluster_kit.platforms.container import ContainerSpec, NetworkSpec, SharedSpec, SidecarSpec
from cluster_kit.platforms.rendered_file import LOG_FILES
from cluster_kit.resolved import LOOPBACK, Bounds

FLAGS = {"--init", "--read-only"}


def docker_network(spec: NetworkSpec, name: str) -> list[str]:
    """The words that make the network of a cluster."""
    words = ["docker", "network", "create", "--driver=bridge"]
    words += [f"--subnet={spec.subnet}", f"--gateway={spec.gateway}"]
    words += ["--internal"] if spec.internal else []
    words += [f"--opt=com.docker.network.driver.mtu={spec.mtu}"] if spec.mtu else []
    words += [f"--opt={GATEWAY_MODE}=isolated"] if spec.isolated else []
    words += [f"--label={key}={value}" for key, value in spec.labels.items()]
    return [*words, name]


def docker_run(spec: ContainerSpec, network: str, output: str) -> list[str]:
    """The words that start one task. They are a program's arguments: nothing needs quoting.

    Args:
        output: the host's directory for what the tasks write.
    """
    shared, words = spec.shared, ["docker", "run", "--detach"]
    words += [f"--name={spec.name}", f"--hostname={spec.hostname}", f"--user={spec.user}"]
    words += [f"--network={network}", f"--ip={spec.ip}"]
    words += [f"--pull={'never' if shared.image_is_local else 'missing'}"]
    words += [f"--restart={f'on-failure:{spec.restarts}' if spec.restarts else 'no'}"]
    words += [f"--stop-timeout={shared.stop_grace_s}"]
    words += ["--init"] if shared.init else []
    words += ["--read-only"] if shared.read_only else []
    words += ["--security-opt=no-new-privileges:true"] if shared.no_new_privileges else []
    words += [f"--cap-drop={name}" for name in shared.cap_drop]
    words += [f"--cap-add={name}" for name in spec.cap_add]
    words += _in_memory(shared) + _bounds(shared.bounds)
    words += [f"--volume={output}:{shared.output}"]
    words += [
        f"--volume={mount.source}:{mount.target}{':ro' if mount.read_only else ''}"
        for mount in (*shared.mounts, *spec.mounts)
    ]
    open_ = (name for name in spec.environment if name not in spec.hidden)
    words += [f"--env={name}={spec.environment[name]}" for name in open_]
    words += [f"--env={name}" for name in (*spec.secrets, *spec.hidden)]
    words += [f"--env-file={spec.env_file}"] if spec.env_file else []
    words += [f"--label={name}={value}" for name, value in spec.labels.items()]
    words += [f"--cpus={spec.cpus:g}"] if spec.cpus is not None else []
    words += [f"--cpu-shares={spec.cpu_shares}"] if spec.cpu_shares is not None else []
    words += [f"--memory={spec.memory}b"] if spec.memory is not None else []
    words += [f"--shm-size={spec.shm}"] if spec.shm is not None else []
    words += [f"--ulimit={u.name}={u.soft}:{u.hard}" for u in spec.ulimits]
    words += [f"--publish={LOOPBACK}:{port.host}:{port.container}" for port in spec.ports]
    if spec.devices is not None:
        named = f'"device={",".join(spec.devices.ids)}"'
        able = f'"capabilities={",".join(spec.devices.capabilities)}"'
        words += [f"--gpus=driver={spec.devices.driver},{named},{able}"]
    words += [f"--entrypoint={shared.entrypoint[0]}"] if shared.entrypoint else []
    return [*words, shared.image, *shared.entrypoint[1:], *spec.command]


def _in_memory(spec: SharedSpec | SidecarSpec) -> list[str]:
    size = "" if spec.bounds.tmp is None else f",size={spec.bounds.tmp}"
    return [f"--tmpfs={path}:mode={mode:o}{size}" for path, mode in spec.tmpfs.items()]


def _bounds(bounds: Bounds) -> list[str]:
    words = [] if bounds.pids is None else [f"--pids-limit={bounds.pids}"]
    if bounds.logs is not None:
        size = f"--log-opt=max-size={-(-bounds.logs // LOG_FILES)}"
        words += ["--log-driver=json-file", size, f"--log-opt=max-file={LOG_FILES}"]
    return words


def docker_run_sidecar(spec: SidecarSpec, network: str) -> list[str]:
    """The words that start one sidecar, before the tasks."""
    words = ["docker", "run", "--detach", f"--name={spec.name}", f"--hostname={spec.hostname}"]
    words += [f"--network={network}", f"--ip={spec.ip}", "--restart=no"]
    words += [f"--pull={'never' if spec.image_is_local else 'missing'}"]
    words += [f"--stop-timeout={spec.stop_grace_s}"]
    words += [f"--user={spec.user}"] if spec.user else []
    words += ["--init"] if spec.init else []
    words += [f"--security-opt=no-new-privileges:{str(spec.no_new_privileges).lower()}"]
    words += [f"--cap-drop={name}" for name in spec.cap_drop]
    words += ["--read-only"] if spec.read_only else []
    words += _in_memory(spec) + _bounds(spec.bounds)
    words += [
        f"--volume={mount.source}:{mount.target}{':ro' if mount.read_only else ''}"
        for mount in spec.mounts
    ]
    words += [f"--env={name}={text}" for name, text in spec.environment.items()]
    words += [f"--env={name}" for name in (*spec.secrets, *spec.hidden)]
    words += [f"--label={name}={text}" for name, text in spec.labels.items()]
    words += [f"--publish={LOOPBACK}:{port.host}:{port.container}" for port in spec.ports]
    if spec.entrypoint is not None:
        words += [f"--entrypoint={spec.entrypoint[0]}"]
    return [*words, spec.image, *(spec.entrypoint or ())[1:], *spec.command]
