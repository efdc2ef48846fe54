"""Measures planning and rendering of hundreds of tasks, in this process, for a fixed host."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from ipaddress import IPv4Network

import kubernetes_validate
import yaml

from cluster_kit.facts import HostFacts, Network
from cluster_kit.plan.plan import OwnImages
from cluster_kit.platforms.compose.compose_file import render
from cluster_kit.platforms.kubernetes.kubernetes_platform import Kubernetes
from cluster_kit.platforms.platform import load as read
from cluster_kit.platforms.platform import plan
from cluster_kit.platforms.rendered_file import spec_text
from cluster_kit.platforms.swarm.stack_file import render as render_stack
from cluster_kit.programs.resolve import resolve
from cluster_kit.resolved import Cluster
from tests.bench.bench import Bench, load
from tests.bench.measured import Bar, Measured

REPEATS = 7
MANIFEST = 'format = 1\nname = "thousand"\nchief = 1\nworker = 699\nps = 299\nevaluator = 1\n'
ON_SWARM = (
    'format = 1\nname = "large"\nengine = "swarm"\n'
    "chief = 1\nworker = 500\nps = 50\nevaluator = 1\n"
)
ON_KUBERNETES = ON_SWARM.replace("swarm", "kubernetes")
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
LARGEST_OBJECT = 1_500_000
"""The maximum bytes of a request to etcd."""
LARGEST_MESSAGE = 4 * 2**20
"""The maximum bytes of a message in a swarm, which is gRPC's default."""
FACTS = HostFacts(
    cpus=64,
    memory=256 * 2**30,
    user="1000:1000",
    networks=(Network("Docker network bridge", IPv4Network("172.17.0.0/16")),),
)


def measure(bench: Bench) -> list[Measured]:
    on_one_host = _measured(bench, "plan and render 1,000 tasks", MANIFEST, 0.5, render)
    on_swarm = _measured(
        bench, "plan and render 552 tasks for a swarm", ON_SWARM, 1.0, render_for_swarm
    )
    what = "plan, render and validate 552 tasks for Kubernetes"
    on_kubernetes = _measured(bench, what, ON_KUBERNETES, 1.0, render_for_kubernetes)
    return [on_one_host, on_swarm, on_kubernetes]


def render_for_kubernetes(cluster: Cluster) -> str:
    """Render the file, and check each of its objects against Kubernetes' schema and etcd's
    limit."""
    text = Kubernetes().render(cluster)
    for one in filter(None, yaml.load_all(text, LOADER)):
        kubernetes_validate.validate(one, "1.35", strict=True)
        assert len(json.dumps(one)) < LARGEST_OBJECT
    return text


def render_for_swarm(cluster: Cluster) -> str:
    """Render the stack file and the file next to it; check their size against the limit of a
    swarm."""
    text = render_stack(cluster) + spec_text(cluster)
    assert len(text) < LARGEST_MESSAGE
    return text


def _measured(
    bench: Bench, what: str, manifest: str, bar: float, rendered: Callable[[Cluster], str]
) -> Measured:
    file = bench.scratch / "thousand.toml"
    file.write_text(manifest)
    load_before = load()
    took = []
    for _ in bench.times(REPEATS, 3):
        began = time.monotonic()
        loaded = read(file)
        images = OwnImages(cpu=bench.image, gpu=bench.image)
        text = rendered(plan(loaded, resolve(loaded.manifest, bench.scratch), FACTS, images))
        took.append(time.monotonic() - began)
        bench.say(f"{what}: {took[-1]:.2f} s ({len(text) / 1e6:.1f} MB)")
    keys = {"swarm": "planning_swarm", "Kubernetes": "planning_kubernetes"}
    key = next((key for word, key in keys.items() if word in what), "planning")
    return Measured(*(key, what, "s", Bar(bar), tuple(took)), load=(load_before, load()))
