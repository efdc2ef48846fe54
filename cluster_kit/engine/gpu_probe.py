"""Whether the engine hands out a GPU, found by trying: `docker info` does not tell."""

from __future__ import annotations

import io
import json
import tarfile

from docker import DockerClient
from docker.errors import APIError
from docker.types import DeviceRequest

from cluster_kit.engine.failures import first_line

_NO_PROGRAM = "/none"


def refusal(client: DockerClient, driver: str, device_id: str) -> str:
    """What the engine says against a container with this GPU, "" where it hands it out.

    The container's image is empty, so that with the GPU the start fails later, for want of a
    program. The image has no name: two probes at once would take it from each other.
    """
    empty = io.BytesIO()
    tarfile.open(fileobj=empty, mode="w").close()
    image = json.loads(client.api.import_image_from_data(empty.getvalue()))["status"]
    try:
        return _start_fails(client, image, driver, device_id)
    finally:
        client.images.remove(image, force=True)


def _start_fails(client: DockerClient, image: str, driver: str, device_id: str) -> str:
    request = DeviceRequest(driver=driver, device_ids=[device_id], capabilities=[["gpu"]])
    probe = client.containers.create(
        image, [_NO_PROGRAM], device_requests=[request], network_disabled=True
    )
    try:
        probe.start()
    except APIError as error:
        words = first_line(error)
        return "" if _NO_PROGRAM in words else words
    finally:
        probe.remove(force=True)
    return ""
