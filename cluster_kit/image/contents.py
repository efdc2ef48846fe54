"""What is inside an image: its packages, with versions and licences."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Literal

from cluster_kit.errors import EngineError
from cluster_kit.host import Host
from cluster_kit.image.base_image import CONFINED


@dataclass(frozen=True)
class Package:
    """A package in an image: Python's own, one from PyPI, or one of Debian's or Ubuntu's.

    `licence` is an SPDX expression or what else the package says, "" if it says nothing.
    """

    kind: Literal["python", "pypi", "deb"]
    name: str
    version: str
    licence: str
    system: str = ""
    """Whose package it is: `debian` or `ubuntu`."""


def packages_of(host: Host, tag: str) -> list[Package]:
    """All packages of an image of the kit, asked in a container of it.

    Raises:
        EngineError: the container did not start, or the image is not one of the kit's.
    """
    command = (
        *("docker", "run", *CONFINED),
        *("--entrypoint=python3", tag, "/opt/trainer/list_packages.py"),
    )
    done = host.processes.run(command)
    if not done.ok:
        raise EngineError(
            f"{tag} does not tell what is inside:\n{done.tail()}", "run `cluster-kit image build`"
        )
    return [Package(**json.loads(line)) for line in done.output.splitlines()]
