"""From a cluster to the bytes of its compose file. Pure."""

from __future__ import annotations

import hashlib
import json
import shlex
from dataclasses import asdict, dataclass
from pathlib import Path

from cluster_kit import __version__, labels
from cluster_kit.cluster import Cluster, Mount, Task
from cluster_kit.plan.tf_config import tf_configs
from cluster_kit.roles import ROLES
from cluster_kit.util import templating

NO_GPU = "-1"
ROOT = "0:0"
SHAPER_CAPABILITIES = ("NET_ADMIN", "SETUID", "SETGID", "SETPCAP", "KILL")
"""To shape its own interface, and then to become the caller's user for good, with no capability
left. KILL lets the init process, which stays root, hand on SIGTERM."""


@dataclass(frozen=True)
class Pair:
    """A key and its value, ready as YAML."""

    name: str
    value: str


@dataclass(frozen=True)
class Service:
    """One service of the compose file; every field but the names is ready as YAML."""

    name: str
    container: str
    command: str
    user: str
    capabilities: str
    restart: str
    cpu_shares: str
    ip: str
    environment: tuple[Pair, ...]
    limits: tuple[Pair, ...]
    devices: str
    driver: str
    labels: tuple[Pair, ...]


def render(cluster: Cluster) -> str:
    """The compose file's text. Same cluster, same bytes."""
    digest = plan_hash(cluster)
    return templating.own("compose.yaml.j2").render(
        header={
            "generator": f"cluster-kit {__version__}",
            "source": _comment(cluster.source),
            "command": _comment(f"cluster-kit render {shlex.quote(Path(cluster.source).stem)}"),
            "hash": digest,
        },
        project=cluster.project,
        image=quote(cluster.image),
        pull_policy="missing" if cluster.variant is None else "never",
        user=quote(cluster.user),
        mounts=[Mount(quote(m.source), quote(m.target)) for m in cluster.mounts],
        environment=_common_environment(cluster),
        services=_services(cluster, digest),
        subnet=str(cluster.subnet),
        gateway=str(cluster.gateway),
        network_labels=(
            Pair(labels.CLUSTER, quote(cluster.name)),
            Pair(labels.PLAN, quote(digest)),
        ),
    )


def plan_hash(cluster: Cluster) -> str:
    """12 hex digits over everything the cluster says and the version of the kit that says it."""
    text = json.dumps([__version__, asdict(cluster)], default=str, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def quote(text: str) -> str:
    """A YAML scalar that Compose reads back as exactly this text: it interpolates `$`."""
    escaped = text.replace("$", "$$")
    if escaped.isprintable():
        return "'" + escaped.replace("'", "''") + "'"
    return '"' + "".join(map(_escape, escaped)) + '"'


def _escape(character: str) -> str:
    """In YAML's double quotes. JSON's escapes do not do: they write `😀` as two halves."""
    if character in _SHORT:
        return _SHORT[character]
    return character if character.isprintable() else f"\\U{ord(character):08x}"


_SHORT = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def _comment(text: str) -> str:
    """A file's name may hold a line break; a comment may not."""
    return "".join(c if c.isprintable() else "?" for c in text)


def _common_environment(cluster: Cluster) -> tuple[Pair, ...]:
    """What all tasks share. Proxies that Docker hands on must not catch the cluster's own gRPC."""
    deadlines = cluster.deadlines
    values = {
        "CLUSTER_KIT_BEACON": cluster.beacon,
        "CLUSTER_KIT_DATA": cluster.data,
        "CLUSTER_KIT_EVALUATOR_GRACE_S": f"{deadlines.evaluator_grace:.15g}",
        "CLUSTER_KIT_GPU_CHECK": "on" if cluster.gpu_check else "off",
        "CLUSTER_KIT_JOB_DEADLINE_S": f"{deadlines.job:.15g}",
        "CLUSTER_KIT_LEADER": cluster.leader.name,
        "CLUSTER_KIT_RETRIES": str(cluster.retries),
        "CLUSTER_KIT_SERVER": cluster.server,
        "CLUSTER_KIT_SERVERS": ",".join(task.name for task in cluster.tasks if task.serves),
        "CLUSTER_KIT_START_DEADLINE_S": f"{deadlines.start:.15g}",
        "NO_PROXY": _no_proxy(cluster),
        "no_proxy": _no_proxy(cluster),
    }
    return tuple(Pair(name, quote(value)) for name, value in values.items())


def _no_proxy(cluster: Cluster) -> str:
    names = [task.name for task in cluster.tasks] if cluster.addressing == "name" else []
    return ",".join(["localhost", "127.0.0.1", str(cluster.subnet), *names])


def _services(cluster: Cluster, digest: str) -> list[Service]:
    configs = tf_configs(cluster)
    leader = cluster.leader
    return [
        _service(cluster, task, configs[task.name], digest, leads=task is leader)
        for task in cluster.tasks
    ]


def _service(cluster: Cluster, task: Task, config: str, digest: str, *, leads: bool) -> Service:
    own = dict(task.environment)
    for key in {"NO_PROXY", "no_proxy"} & own.keys():
        own[key] = f"{own[key]},{_no_proxy(cluster)}"
    identity = {"CLUSTER_KIT_TASK": task.name, "TF_CONFIG": config}
    if ROLES[task.role].sidecar:
        # It is alone in its own TF_CONFIG, where nobody serves.
        identity["CLUSTER_KIT_SERVERS"] = ""
    identity |= _gpu_environment(cluster, task, leads=leads)
    if task.bandwidth is not None:
        identity["CLUSTER_KIT_BANDWIDTH_BPS"] = str(task.bandwidth)
        identity["CLUSTER_KIT_USER"] = cluster.user
    limits = []
    if task.cpus is not None:
        limits.append(Pair("cpus", quote(f"{task.cpus:g}")))
    if task.memory is not None:
        limits.append(Pair("memory", quote(f"{task.memory}b")))
    return Service(
        name=task.name,
        container=f"{cluster.name}-{task.name}",
        command=_flow(task.command),
        user="" if task.bandwidth is None else quote(ROOT),
        capabilities="" if task.bandwidth is None else _flow(SHAPER_CAPABILITIES),
        restart=_restart(cluster, task, leads),
        cpu_shares=str(ROLES[task.role].cpu_shares or ""),
        ip=str(task.ip),
        environment=tuple(
            Pair(name, quote(value)) for name, value in sorted({**own, **identity}.items())
        ),
        limits=tuple(limits),
        devices=_flow(task.gpus) if task.gpus else "",
        driver=cluster.gpu_driver,
        labels=(
            Pair(labels.CLUSTER, quote(cluster.name)),
            Pair(labels.ROLE, task.role),
            Pair(labels.INDEX, quote(str(task.index))),
            Pair(labels.GPUS, quote(",".join(task.gpus))),
            Pair(labels.LEADER, quote(str(leads).lower())),
            Pair(labels.PLAN, quote(digest)),
        ),
    )


def _gpu_environment(cluster: Cluster, task: Task, *, leads: bool) -> dict[str, str]:
    """What a task is promised, and the leader what it promises, so that both can be checked."""
    found = {}
    if task.gpus:
        found["CLUSTER_KIT_GPUS"] = ",".join(task.gpu_names)
        # One bridge network, one interface: NCCL would otherwise try them all.
        found["NCCL_SOCKET_IFNAME"] = "eth0"
    else:
        found["CUDA_VISIBLE_DEVICES"] = NO_GPU
        if ROLES[task.role].gpus == "pool" and cluster.simulate_gpus:
            found["CLUSTER_KIT_SIMULATE_GPUS"] = str(cluster.simulate_gpus)
    if task.gpu_memory_mib is not None:
        found["CLUSTER_KIT_GPU_MEMORY_MB"] = str(task.gpu_memory_mib)
    promises = {t.name: t.gpu_names for t in cluster.tasks if t.serves and t.gpus}
    if leads and promises:
        found["CLUSTER_KIT_PROMISES"] = json.dumps(promises)
    return found


def _restart(cluster: Cluster, task: Task, leads: bool) -> str:
    """Docker brings a crashed task back, but never the leader: its end is the verdict."""
    if leads or cluster.retries == 0 or not ROLES[task.role].restarts:
        return '"no"'
    return f"on-failure:{cluster.retries}"


def _flow(items: tuple[str, ...]) -> str:
    return "[" + ", ".join(quote(item) for item in items) + "]"
