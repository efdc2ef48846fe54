"""Functions that make hosts, manifests and clusters for tests that do not depend on their
details."""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

import yaml

from cluster_kit.errors import ManifestError, Problem
from cluster_kit.facts import Gpu, HostFacts, Network
from cluster_kit.manifest.load import Loaded
from cluster_kit.manifest.schema import DataTable, Manifest
from cluster_kit.plan.plan import OwnImages
from cluster_kit.platforms.platform import load, manifest_model, plan
from cluster_kit.programs.catalog import DATA_SETS, PROGRAMS
from cluster_kit.programs.resolve import Inputs, resolve
from cluster_kit.resolved import SECRETS, TRAINER, Cluster, Dockerfile, Fetch, Mount

GIB = 2**30
OWN = OwnImages(
    cpu="cluster-kit/trainer:cpu-0123456789ab",
    gpu="cluster-kit/trainer:gpu-0123456789ab",
    built="cluster-kit/built:0123456789ab",
)
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
ROOT = Path(__file__).resolve().parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
WHEEL = PYPROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
"""Where the wheel has each of the clone's files that the kit reads."""
MANIFESTS = sorted(ROOT / name for name in WHEEL if re.fullmatch(r"compose/[^/]+\.toml", name))
"""The kit's own: a clone's compose/ has its user's, too."""


def gpus(count: int) -> tuple[Gpu, ...]:
    return tuple(
        Gpu(
            index,
            f"GPU-{index:08d}-aaaa-bbbb-cccc-0123456789ab",
            "NVIDIA A100",
            80 * GIB,
            pci=f"00000000:{index + 16:02X}:00.0",
        )
        for index in range(count)
    )


def promised(gpu: Gpu) -> dict[str, str]:
    """Returns what a task is told about a GPU that it was promised."""
    return {"name": f"GPU {gpu.index} ({gpu.uuid})", "pci": gpu.pci, "uuid": gpu.uuid}


def network(cidr: str, owner: str = "Docker network bridge", cluster: str = "") -> Network:
    return Network(owner, IPv4Network(cidr), cluster)


def host(**different: Any) -> HostFacts:
    """Returns a big host: 64 CPUs, 256 GiB, no GPU, a Docker bridge and a route to its own
    network."""
    usual = {
        "cpus": 64,
        "memory": 256 * GIB,
        "user": "1000:1000",
        "networks": (
            network("172.17.0.0/16"),
            network("192.168.1.0/24", "a route of this host (eth0)"),
        ),
    }
    return HostFacts(**{**usual, **different})


def inputs(manifest: Manifest) -> Inputs:
    """Returns program and data as if every named path existed, in the same place everywhere."""
    program, data = manifest.program, f"/opt/datasets/{manifest.data}"
    step = None
    if isinstance(manifest.data, DataTable):
        step = Fetch(
            f"/home/you/{manifest.data.fetch}", tuple(manifest.data.args), (), "/home/you/images"
        )
    mounts: list[Mount] = []
    if program not in PROGRAMS:
        program = f"/program/{Path(program).name}"
        mounts.append(Mount("/home/you/project", "/program"))
    if str(manifest.data) not in DATA_SETS:
        data = "/data"
        mounts.append(Mount("/home/you/images", "/data"))
    requirements = "some-package==1.0\n" if manifest.requirements else ""
    if not manifest.runs_in_kits_image:
        mounts.append(Mount("/kit/trainer", TRAINER))
    files = {
        name: Mount(f"/home/you/{secret.file}", f"{SECRETS}/{name}")
        for name, secret in manifest.secret.items()
        if secret.file
    }
    named = (limits.env_file for _, limits in manifest.limits_by_table())
    env = {name: f"/home/you/{name}" for name in named if name}
    own = tuple(Mount(f"/home/you/{m.source}", m.target, m.read_only) for m in manifest.mount)
    built = Dockerfile(manifest.build, "/home/you/image/Dockerfile", "/home/you/image")
    return Inputs(
        program,
        data,
        tuple(mounts),
        requirements=requirements,
        requirement_places=("requirements.txt:1",) if requirements else (),
        own_mounts=own,
        secret_files=files,
        env_files=env,
        fetch=step,
        dockerfile=built if manifest.build else None,
        sidecar_mounts={
            name: tuple(Mount(f"/home/you/{m.source}", m.target, m.read_only) for m in one.mount)
            for name, one in manifest.sidecar.items()
        },
    )


def manifest(**keys: Any) -> Manifest:
    return manifest_model().model_validate({"format": 1, "name": "demo", **keys})


def loaded(written: Manifest, path: str = "/home/you/compose/demo.toml") -> Loaded:
    return Loaded(written, Path(path))


def cluster(facts: HostFacts | None = None, **keys: Any) -> Cluster:
    """Returns the cluster of a manifest with these keys on a big host."""
    written = manifest(**keys)
    return plan(loaded(written), inputs(written), facts or host(), OWN)


def problems(facts: HostFacts | None = None, **keys: Any) -> tuple[Problem, ...]:
    """Returns all problems that `plan` finds in a manifest of valid structure."""
    try:
        cluster(facts, **keys)
    except ManifestError as error:
        return error.problems
    return ()


def parse_compose(text: str) -> dict[str, Any]:
    """Returns a compose file as Compose reads it: YAML, in which `$$` means `$`."""
    found = _interpolated(_read(text))
    assert isinstance(found, dict)
    return found


@functools.lru_cache(maxsize=4)
def _read(text: str) -> Any:
    """Returns the parsed file. Callers must not change it: a run reads its own file several
    times."""
    return yaml.load(text, Loader=_LOADER)


def _interpolated(value: Any) -> Any:
    if isinstance(value, str):
        return value.replace("$$", "$")
    if isinstance(value, Mapping):
        return {key: _interpolated(inner) for key, inner in value.items()}
    return [_interpolated(inner) for inner in value] if isinstance(value, list) else value


def problems_of(text: str, folder: Path, facts: HostFacts | None = None) -> list[Problem]:
    """Returns all problems of a manifest's text, through `load`, `resolve` and `plan`."""
    file = folder / "demo.toml"
    file.write_text(text, encoding="utf-8")
    try:
        read = load(file)
        plan(read, resolve(read.manifest, folder), facts or host(), OWN)
    except ManifestError as error:
        return list(error.problems)
    return []


def own_program(made: Cluster, program: str) -> Cluster:
    """Returns the cluster, whose tasks run this program instead of the manifest's."""
    tasks = (
        replace(task, command=("run", program)) if task.runs_program else task
        for task in made.tasks
    )
    return replace(made, tasks=tuple(tasks))
