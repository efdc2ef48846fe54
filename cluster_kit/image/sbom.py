"""An image's packages as a software bill of materials, in the format of CycloneDX."""

from __future__ import annotations

from collections.abc import Sequence

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot5
from packageurl import PackageURL

from cluster_kit.image.contents import Package
from cluster_kit.version import __version__


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
    """The package's URL, by which databases of vulnerabilities know it."""
    kind = {"python": "generic", "pypi": "pypi", "deb": "deb"}[package.kind]
    return PackageURL(kind, package.system or None, package.name, package.version)
