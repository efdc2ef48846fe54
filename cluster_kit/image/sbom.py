"""An image's packages with their licences, as a list and as CycloneDX."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot5
from packageurl import PackageURL

from cluster_kit.errors import EngineError
from cluster_kit.host import Host
from cluster_kit.image.base_image import CONFINED
from cluster_kit.version import __version__


@dataclass(frozen=True)
class Package:
    """A package in an image: Python's own, one from PyPI, or one of Debian's or Ubuntu's.

    `licence` is an SPDX expression or the package's own text, "" if it has none.
    """

    kind: Literal["python", "pypi", "deb"]
    name: str
    version: str
    licence: str
    system: str = ""
    """The distribution of the package: `debian` or `ubuntu`."""


def packages_of(host: Host, tag: str) -> list[Package]:
    """All packages of an image of the kit, read in a container of it.

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
            f"the packages of {tag} cannot be listed:\n{done.tail()}",
            "run `cluster-kit image build`",
        )
    return [Package(**json.loads(line)) for line in done.output.splitlines()]


def sbom(tag: str, packages: Sequence[Package]) -> str:
    """The bill of materials of an image, as JSON of CycloneDX 1.5."""
    bom, licences = Bom(), LicenseFactory()
    bom.metadata.tools.components.add(
        Component(name="cluster-kit", version=__version__, type=ComponentType.APPLICATION)
    )
    bom.metadata.component = _image(tag)
    for package in packages:
        url = _url(package)
        bom.components.add(
            Component(
                name=package.name,
                version=package.version,
                type=ComponentType.LIBRARY,
                bom_ref=url.to_string(),
                purl=url,
                licenses=[licences.make_from_string(package.licence)] if package.licence else [],
            )
        )
    bom.register_dependency(bom.metadata.component, bom.components)
    return str(JsonV1Dot5(bom).output_as_string(indent=2))


def _image(tag: str) -> Component:
    name, _, version = tag.rpartition(":")
    return Component(name=name, version=version, type=ComponentType.CONTAINER, bom_ref=tag)


def _url(package: Package) -> PackageURL:
    """The package's URL, which databases of vulnerabilities use."""
    kind = {"python": "generic", "pypi": "pypi", "deb": "deb"}[package.kind]
    return PackageURL(kind, package.system or None, package.name, package.version)
