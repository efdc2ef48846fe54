"""Planning and rendering a thousand tasks, in this process, on a host that is written down."""

from __future__ import annotations

import time
from ipaddress import IPv4Network

from cluster_kit.backends.compose.render import render
from cluster_kit.facts import HostFacts, Network
from cluster_kit.manifest.load import load as read
from cluster_kit.plan.plan import OwnImages, plan
from cluster_kit.programs.resolve import resolve
from tests.bench.bench import Bench, load
from tests.bench.measured import Bar, Measured

REPEATS = 7
MANIFEST = 'format = 1\nname = "thousand"\nchief = 1\nworker = 699\nps = 299\nevaluator = 1\n'
FACTS = HostFacts(
    cpus=64,
    memory=256 * 2**30,
    user="1000:1000",
    networks=(Network("Docker network bridge", IPv4Network("172.17.0.0/16")),),
)


def measure(bench: Bench) -> list[Measured]:
    file = bench.scratch / "thousand.toml"
    file.write_text(MANIFEST)
    load_before = load()
    took = []
    for _ in bench.times(REPEATS):
        began = time.monotonic()
        loaded = read(file)
        images = OwnImages(cpu=bench.image, gpu=bench.image)
        cluster = plan(loaded, resolve(loaded.manifest, bench.scratch), FACTS, images)
        text = render(cluster)
        took.append(time.monotonic() - began)
        assert len(cluster.tasks) == 1000
        bench.say(
            f"planning and rendering 1,000 tasks: {took[-1]:.2f} s ({len(text) / 1e6:.0f} MB)"
        )
    return [
        Measured(
            *("planning", "plan and render 1,000 tasks", "s", Bar(0.5), tuple(took)),
            load=(load_before, load()),
        )
    ]
