"""The trainer image with a user's requirements on top, built once for each content."""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path

from cluster_kit.cluster import Cluster
from cluster_kit.errors import EngineError, ManifestError
from cluster_kit.image.base import choose_base
from cluster_kit.image.build import (
    SOURCE,
    Say,
    build_command,
    ensure_image,
    image_present,
)
from cluster_kit.image.pip_config import build_secrets
from cluster_kit.problem import Problem
from cluster_kit.programs.requirements import EXTRA, digest
from cluster_kit.util.process import run

_STEP = re.compile(r"^#\d+ \d+\.\d+ ")
"""What BuildKit's plain progress puts before each line that a step prints."""
_LINE = re.compile(r"-r /mnt/requirements\.txt \(line (\d+)\)")
_REASON = re.compile(r"The conflict is caused by:|    (The user requested|\S+ \S+ depends on) ")
_PIN = "The user requested (constraint) "
"""How pip speaks of a package of the image: the build gives it all of them as constraints."""
_ADVICE = ("To fix this", "1. ", "2. ", "[notice]", "ERROR: ResolutionImpossible")
_NO_INDEX = ("Retrying (", "Could not fetch URL", "Temporary failure in name resolution")
_CURE = (
    "a package that cannot be fetched means that pip's configuration (`pip config list`, "
    "https_proxy) does not reach an index from this host"
)


def ensure(cluster: Cluster, say: Say, *, show: bool = False) -> bool:
    """Build the image that a cluster runs on where it is absent; returns whether it was built.

    Raises:
        HostError: no base image can be had on this host.
        ManifestError: a requirement that does not exist, or not together with the image's packages.
        EngineError: the build failed otherwise.
    """
    if cluster.variant is None or image_present(cluster.image):
        return False
    ensure_image(cluster.variant, say, show=show)
    if cluster.requirements:
        _build(cluster, say)
    return True


def _build(cluster: Cluster, say: Say) -> None:
    packages = cluster.requirements.count("\n")
    say(f"installing {packages} requirement{'s' if packages > 1 else ''} into {cluster.image}")
    base = choose_base(say)
    with tempfile.TemporaryDirectory(prefix="cluster-kit-") as folder, build_secrets() as secrets:
        context = Path(folder)
        (context / "requirements.txt").write_text(cluster.requirements, encoding="utf-8")
        shutil.copy(SOURCE / "recipe" / "extra.py", context)
        arguments = {"BASE": base, "TRAINER": cluster.image.rpartition(EXTRA)[0]}
        arguments["REQUIREMENTS"] = digest(cluster.requirements)
        command = build_command(
            cluster.image, arguments, secrets, context, file=SOURCE / "recipe" / "Dockerfile.extra"
        )
        done = run(command, env={"DOCKER_BUILDKIT": "1"})
    if done.ok:
        return
    said = pips_words(done.errors, cluster.requirements)
    if said and not any(word in done.errors for word in _NO_INDEX):
        rule = "pip cannot install it beside what the image has:\n      " + "\n      ".join(said)
        cure = "take the version out, or name one that fits the image's packages"
        raise ManifestError(cluster.source, [Problem("requirements", "", rule, cure)])
    words = "\n".join(said) or done.tail()
    raise EngineError(f"building {cluster.image} failed (exit {done.code}):\n{words}", _CURE)


def pips_words(said: str, requirements: str) -> list[str]:
    """What pip complains of, out of what a build printed: from its first error on, and why.

    pip's errors and its reasons come by two streams, which a build mixes in any order.
    """
    lines = [_STEP.sub("", line).rstrip() for line in said.splitlines() if _STEP.match(line)]
    reasons = [line for line in lines if _REASON.match(line)]
    start = next((i for i, line in enumerate(lines) if line.startswith("ERROR: ")), len(lines))
    errors = [
        line.removeprefix("ERROR: ")
        for line in lines[start:]
        if line and not line.startswith(_ADVICE) and line not in reasons
    ]
    wanted = requirements.splitlines()
    return [
        _LINE.sub(lambda found: wanted[int(found[1]) - 1], line).replace(_PIN, "The image has ")
        for line in (*errors, *reasons)
    ]
