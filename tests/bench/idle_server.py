"""Measures one idle server in a container: the time until it answers, and its private memory."""

from __future__ import annotations

import json
from dataclasses import dataclass

from tests.bench.bench import HERE, OWN, Bench, docker, load
from tests.bench.measured import Bar, Measured

PAIRS = 5
KIT = ("python3", "-m", "trainer", "serve")
PLAIN = ("python3", "/program/job.py")


@dataclass(frozen=True)
class Server:
    """`anon_mb` is private memory (RssAnon), one second after the first answer."""

    start_s: float
    anon_mb: float
    rss_mb: float
    threads: int


def measure(bench: Bench) -> list[Measured]:
    # Read the files once, so that no pair includes the time of the disk.
    for command in (KIT, PLAIN):
        _serve(bench, command)
    kit, plain, load_before = [], [], load()
    for _ in bench.times(PAIRS):
        plain.append(_serve(bench, PLAIN))
        kit.append(_serve(bench, KIT))
        bench.say(f"idle server: plain {_words(plain[-1])}; kit {_words(kit[-1])}")
    loads = (load_before, load())

    def measured(key: str, title: str, unit: str, bar: Bar, field: str) -> Measured:
        ours, others = (tuple(getattr(one, field) for one in way) for way in (kit, plain))
        return Measured(key, title, unit, bar, ours, others, load=loads)

    return [
        measured("server_start", "idle server, start", "s", Bar(0.25), "start_s"),
        measured("server_memory", "idle server, private memory", "MB", Bar(0.4), "anon_mb"),
    ]


def _serve(bench: Bench, command: tuple[str, ...]) -> Server:
    output = docker(
        *("run", "--rm", "--pull=never", "--init", "--network=none", f"--label={OWN}={bench.name}"),
        *(f"--volume={HERE}:/program:ro", "--entrypoint=python3", bench.image),
        *("/program/server_probe.py", *command),
    )
    line = next(line for line in output.splitlines() if line.startswith('{"start_s"'))
    return Server(**json.loads(line))


def _words(server: Server) -> str:
    return f"{server.start_s:.2f} s, {server.anon_mb:.0f} MB, {server.threads} threads"
