"""What `--version` names: the kit, and what it works with on this host."""

from __future__ import annotations

import contextlib

from cluster_kit.errors import KitError
from cluster_kit.host import Host
from cluster_kit.image.kit_image import image_present
from cluster_kit.platforms.registry import DEFAULT, platform_of
from cluster_kit.util.kit_files import FILES
from cluster_kit.version import __version__


def versions(host: Host) -> list[str]:
    """One line each: kit, engine, the platform's program, image. Says so if one is not there."""
    tool = platform_of(DEFAULT).tool(host)
    found = tool.version and ".".join(map(str, tool.version))
    tag = host.image_tag("cpu")
    return [
        f"cluster-kit {__version__}, {FILES}",
        _engine(host),
        f"{tool.title} {found}" if found else tool.absent,
        f"{tag}, {'built' if image_present(host, tag) else 'not built'}",
    ]


def _engine(host: Host) -> str:
    try:
        with contextlib.closing(host.connect()) as engine:
            return f"Docker Engine {engine.info()['ServerVersion']}"
    except KitError as error:
        return error.message
