"""A manifest with seven mistakes, and what the kit says about it."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from cluster_kit.errors import ManifestError
from cluster_kit.facts import HostFacts
from cluster_kit.plan.plan import OwnImages
from cluster_kit.platforms.platform import load, plan
from cluster_kit.programs.resolve import resolve

TEXT = """\
format = 1
name = "My Cluster"
chief = 2
wrker = 3
subnet = "8.8.8.0/24"
gpus = ["0"]

[task.worker-7]
cpus = 64
"""
HOST = HostFacts(cpus=2, memory=24 * 2**30, user="1000:1000")


def example() -> str:
    """The manifest, the command, and its answer on a host with 2 CPUs and no GPU."""
    command = f"$ cluster-kit up mine.toml\nplanning\nerror: {answer()}"
    return f"```toml\n{TEXT}```\n\n```console run\n{command}\n```"


def answer() -> str:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "mine.toml"
        file.write_text(TEXT, encoding="utf-8")
        try:
            read = load(file)
            plan(read, resolve(read.manifest, file.parent), HOST, OwnImages("cpu", "gpu"))
        except ManifestError as error:
            return str(error).replace(folder, "/home/you/project")
    raise AssertionError("a wrong manifest was taken for a right one")
