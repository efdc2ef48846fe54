"""Builds the trainer image with a user's requirements on top, once for each set of them."""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path

from cluster_kit.errors import EngineError, ManifestError, Problem
from cluster_kit.host import Host
from cluster_kit.image.base_image import choose_base
from cluster_kit.image.kit_image import (
    SOURCE,
    Say,
    build_command,
    ensure_image,
    image_present,
    lock_file,
    turn,
)
from cluster_kit.image.pip_config import build_secrets
from cluster_kit.platforms.docker.docker_errors import disk_hint
from cluster_kit.programs.resolve import EXTRA, digest
from cluster_kit.resolved import Cluster

_STEP = re.compile(r"^#\d+ \d+\.\d+ ")
"""BuildKit's prefix of each line that a step prints, with plain progress."""
_LINE = re.compile(r"-r /mnt/requirements\.txt \(line (\d+)\)")
_REASON = re.compile(r"The conflict is caused by:|    (The user requested|\S+ \S+ depends on) ")
_PIN = "The user requested (constraint) "
"""Pip's prefix for a package of the image: the build passes all of them as constraints."""
_ADVICE = ("To fix this", "1. ", "2. ", "[notice]", "ERROR: ResolutionImpossible")
_NO_INDEX = ("Retrying (", "Could not fetch URL", "Temporary failure in name resolution")
_HINT = (
    "a package that cannot be fetched means that pip's configuration (`pip config list`, "
    "https_proxy) does not reach an index from this host"
)


def ensure(host: Host, cluster: Cluster, folder: Path, say: Say, *, show: bool = False) -> bool:
    """Build a cluster's image if it is absent; returns whether it was built.

    Args:
        folder: of the manifests, where the lock file of another TensorFlow lies.

    Raises:
        HostError: no base image can be pulled or made on this host.
        ManifestError: a requirement was not found, or conflicts with the image's packages.
        EngineError: the build failed otherwise.
    """
    if cluster.variant is None or image_present(host, cluster.image):
        return False
    trainer = cluster.image.partition(EXTRA)[0]
    with turn(host, trainer, say):
        if image_present(host, cluster.image):
            return False
        if cluster.tensorflow:
            lock = lock_file(folder, cluster.tensorflow, cluster.variant)
            ensure_image(host, cluster.variant, say, show=show, tag=trainer, lock=lock)
        else:
            ensure_image(host, cluster.variant, say, show=show)
        if cluster.requirements:
            _build(host, cluster, say)
    return True


def _build(host: Host, cluster: Cluster, say: Say) -> None:
    packages = cluster.requirements.count("\n")
    say(f"installing {packages} requirement{'s' if packages > 1 else ''} into {cluster.image}")
    base = choose_base(host, say)
    with (
        tempfile.TemporaryDirectory(prefix="cluster-kit-") as folder,
        build_secrets(host) as secrets,
    ):
        context = Path(folder)
        (context / "requirements.txt").write_text(cluster.requirements, encoding="utf-8")
        shutil.copy(SOURCE / "recipe" / "extra.py", context)
        arguments = {"BASE": base, "TRAINER": cluster.image.rpartition(EXTRA)[0]}
        arguments["REQUIREMENTS"] = digest(cluster.requirements)
        command = build_command(
            host,
            cluster.image,
            arguments,
            secrets,
            context,
            file=SOURCE / "recipe" / "Dockerfile.extra",
        )
        done = host.processes.run(command, env={"DOCKER_BUILDKIT": "1"})
    if done.ok:
        return
    errors = pip_errors(done.errors, cluster.requirements)
    if errors and not any(sign in done.errors for sign in _NO_INDEX):
        rule = "pip cannot install it beside what the image has:\n      " + "\n      ".join(errors)
        hint = "take the version out, or name one that fits the image's packages"
        raise ManifestError(cluster.source, [Problem("requirements", "", rule, hint)])
    details = "\n".join(errors) or done.tail()
    hint = disk_hint(details) or _HINT
    raise EngineError(f"building {cluster.image} failed (exit {done.code}):\n{details}", hint)


def pip_errors(output: str, requirements: str) -> list[str]:
    """Pip's errors in a build's output, from the first one on, and then the reasons for them.

    Pip prints errors and reasons to two streams, which a build mixes in any order.
    """
    lines = [_STEP.sub("", line).rstrip() for line in output.splitlines() if _STEP.match(line)]
    reasons = [line for line in lines if _REASON.match(line)]
    start = next((i for i, line in enumerate(lines) if line.startswith("ERROR: ")), len(lines))
    errors = [
        line.removeprefix("ERROR: ")
        for line in lines[start:]
        if line and not line.startswith(_ADVICE) and line not in reasons
    ]
    required = requirements.splitlines()
    return [
        _LINE.sub(lambda match: required[int(match[1]) - 1], line).replace(_PIN, "The image has ")
        for line in (*errors, *reasons)
    ]
