"""The same cluster in both ways: the kit's rendered compose file, and a hand-written one."""

from __future__ import annotations

import json
from pathlib import Path

from cluster_kit.machine.host_facts import gather
from cluster_kit.plan.plan import OwnImages
from cluster_kit.plan.tasks import tf_configs
from cluster_kit.platforms.compose.compose_file import render
from cluster_kit.platforms.docker.docker_engine import connect
from cluster_kit.platforms.platform import load, plan
from cluster_kit.programs.resolve import resolve
from cluster_kit.resolved import Cluster
from cluster_kit.this_host import this_host
from tests.bench.bench import HERE, JOB, OWN, Bench

MANIFEST = 'format = 1\nname = "bench"\n'


def planned(
    bench: Bench, way: str, workers: int, ps: int, *args: str, program: Path = JOB, chief: int = 1
) -> Cluster:
    """Returns a cluster with a chief that runs the job and these servers, on a free subnet.

    Without a chief, each worker runs it.
    """
    file = bench.scratch / "bench.toml"
    file.write_text(MANIFEST)
    overrides = {
        "name": f"{bench.name}-{way}",
        "worker": workers,
        "ps": ps,
        "chief": chief,
        "style": "coordinator" if chief else "all-tasks",
        "program": str(program),
        "args": list(args),
    }
    loaded = load(file, overrides)
    engine = connect()
    facts = gather(this_host(), engine)
    engine.close()
    images = OwnImages(cpu=bench.image, gpu=bench.image)
    return plan(loaded, resolve(loaded.manifest, bench.scratch), facts, images)


def kit_file(
    bench: Bench, workers: int, ps: int, *args: str, program: Path = JOB, chief: int = 1
) -> tuple[Cluster, Path]:
    """The cluster as the kit renders it."""
    cluster = planned(bench, "kit", workers, ps, *args, program=program, chief=chief)
    return cluster, _written(bench, "kit", render(cluster))


def plain_file(
    bench: Bench, workers: int, ps: int, *args: str, program: Path = JOB, chief: int = 1
) -> tuple[Cluster, Path]:
    """Write the same tasks, with similar addresses, as containers that all run the job.

    This is how articles and examples write it: an image, the program, TF_CONFIG, and a fixed
    address.
    """
    cluster = planned(bench, "plain", workers, ps, *args, program=program, chief=chief)
    configs = tf_configs(cluster)
    services = {
        task.name: {
            "image": cluster.image,
            "container_name": f"{cluster.name}-{task.name}",
            "entrypoint": ["python3", f"/program/{program.name}", *args],
            "volumes": [f"{HERE}:/program:ro"],
            "environment": {"TF_CONFIG": configs[task.name], "no_proxy": str(cluster.subnet)},
            "networks": {"cluster": {"ipv4_address": str(task.ip)}},
            "labels": {OWN: bench.name},
        }
        for task in cluster.tasks
    }
    network = {
        "ipam": {"config": [{"subnet": str(cluster.subnet), "gateway": str(cluster.gateway)}]},
        "labels": {OWN: bench.name},
    }
    text = {"name": cluster.project, "services": services, "networks": {"cluster": network}}
    return cluster, _written(bench, "plain", json.dumps(text, indent=2).replace("$", "$$"))


def _written(bench: Bench, way: str, text: str) -> Path:
    file = bench.scratch / way / "compose.yaml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    return file
