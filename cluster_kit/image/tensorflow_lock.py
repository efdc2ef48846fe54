"""The kit's image with another TensorFlow: its packages, resolved once into a file.

The file lies with the manifests, to be committed: who has it installs the same bytes. It is of one
kind of processor, since it has the hashes of the files that pip chose for that.
"""

from __future__ import annotations

import platform
import re
import tempfile
import time
from pathlib import Path

from cluster_kit.errors import EngineError, HostError, ManifestError
from cluster_kit.host import Host
from cluster_kit.image.base_image import choose_base
from cluster_kit.image.kit_image import SOURCE, Say, Variant, build_command, tag_of
from cluster_kit.image.pip_config import build_secrets
from cluster_kit.platforms.docker.docker_errors import disk_hint
from cluster_kit.problem import HintText, Problem, Setting
from cluster_kit.programs.style import NIGHTLY
from cluster_kit.resolved import Cluster
from cluster_kit.workspace import write_atomically

UNLOCKED = "unlocked"
"""Ends the tag of an image whose packages are not resolved yet."""
_FROM = re.compile(r"satisfies the requirement (\S+) \(from versions: ([^)]*)\)")
_PYTHON = re.compile(r"resolving for Python (\S+)")
_MACHINES = {"arm64": "aarch64", "AMD64": "x86_64"}


def lock_file(folder: Path, version: str, variant: Variant) -> Path:
    """Where the packages of a version are written down, below the folder of the manifests."""
    machine = _MACHINES.get(platform.machine(), platform.machine())
    return folder / f"tensorflow-{version}-{variant}-{machine}.lock"


def tag(folder: Path, version: str, variant: Variant) -> str:
    """The tag of the image with this TensorFlow; it ends with UNLOCKED without a lock file."""
    file = lock_file(folder, version, variant)
    if not file.is_file():
        return f"cluster-kit/trainer:{variant}-tf{version}-{UNLOCKED}"
    return tag_of(variant, version=version, lock=file.read_text(encoding="utf-8"))


def is_unlocked(cluster: Cluster) -> bool:
    """Whether the packages of a cluster's image are not resolved yet."""
    return bool(cluster.tensorflow) and UNLOCKED in cluster.image


def ensure(host: Host, cluster: Cluster, folder: Path, say: Say) -> bool:
    """Write the lock file of a cluster's image if it is missing; returns whether it was.

    Raises:
        ManifestError: the index has no such TensorFlow for the Python of the base image.
        HostError: the file cannot be written.
        EngineError: it could not be resolved otherwise.
    """
    if cluster.variant is None or not is_unlocked(cluster):
        return False
    file = lock_file(folder, cluster.tensorflow, cluster.variant)
    text = _resolved(host, cluster, cluster.variant, say)
    try:
        write_atomically(file, text)
    except OSError as error:
        raise HostError(
            f"{file} cannot be written: {error.strerror}", "make its folder writable"
        ) from None
    say(f"TensorFlow {cluster.tensorflow}: its packages are in {file}")
    return True


def _resolved(host: Host, cluster: Cluster, variant: Variant, say: Say) -> str:
    """The text of the lock file, made by pip in the base image; raises as `ensure` does."""
    base = choose_base(host, say)
    say(f"resolving TensorFlow {cluster.tensorflow} (once; the result is kept)")
    with (
        tempfile.TemporaryDirectory(prefix="cluster-kit-") as folder,
        build_secrets(host) as secrets,
    ):
        arguments = {"BASE": base, "VARIANT": variant, "VERSION": cluster.tensorflow}
        arguments["ASKED"] = f"{time.time():.0f}"  # an index changes: no answer of an earlier day
        recipe = SOURCE / "recipe"
        command = build_command(
            host, "", arguments, secrets, recipe, file=recipe / "Dockerfile.lock", to=folder
        )
        done = host.processes.run(command, env={"DOCKER_BUILDKIT": "1"})
        if done.ok:
            return (Path(folder) / "locked.txt").read_text(encoding="utf-8")
    raise _failure(cluster, done.errors, done.tail())


def _failure(cluster: Cluster, said: str, tail: str) -> ManifestError | EngineError:
    found, python = _FROM.search(said), _PYTHON.search(said)
    if found and found[2] != "none":
        there = list(dict.fromkeys(re.findall(r"\d+\.\d+(?=\.\d)", found[2])))
        rule = (
            f"the index has no such TensorFlow for Python {python[1] if python else '?'}, which "
            f"the base image has; it has {', '.join(there)}"
        )
        newest = Setting("tensorflow", there[-1] if there else "")
        other = ", or name a base with another Python in CLUSTER_KIT_BASE"
        return _problem(cluster, rule, ("write ", newest, other))
    if found and cluster.tensorflow == NIGHTLY:
        rule = "the package index of this host has no nightly TensorFlow"
        hint = "name an index that has it in pip's configuration, or write "
        return _problem(cluster, rule, (hint, Setting("tensorflow", "2.21")))
    return EngineError(
        f"resolving TensorFlow {cluster.tensorflow} failed:\n{tail}",
        disk_hint(said)
        or "see whether pip's configuration (`pip config list`, https_proxy) reaches an index",
    )


def _problem(cluster: Cluster, rule: str, hint: HintText) -> ManifestError:
    problem = Problem("tensorflow", f'"{cluster.tensorflow}"', rule, hint)
    return ManifestError(cluster.source, [problem])
