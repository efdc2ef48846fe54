"""Finds out by trying whether the engine hands out a GPU: `docker info` does not tell."""

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
    """The engine's error for a container with this GPU, "" if it hands it out.

    The container's image is empty: if the engine grants the GPU, the start fails later, because
    there is no program. The image has no name, so that two probes at once do not share it.
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
        message = first_line(error)
        return "" if _NO_PROGRAM in message else message
    finally:
        probe.remove(force=True)
    return ""
