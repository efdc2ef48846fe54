"""Copies an image from one engine to another, both started by the tests, without a registry."""

from __future__ import annotations

import io
import subprocess
import tarfile
from collections.abc import Iterator

import pytest

from cluster_kit.image.push import push
from cluster_kit.this_host import this_host
from tests.e2e import nodes
from tests.e2e.node import Node

pytestmark = [
    pytest.mark.skipif(bool(nodes.why_not()), reason=nodes.why_not() or "-"),
]
IMAGE = "pushed:1"


@pytest.fixture(scope="module")
def two() -> Iterator[list[Node]]:
    with nodes.engines(count=2) as made:
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as archive:
            one = tarfile.TarInfo("file")
            one.size = 2**20
            archive.addfile(one, io.BytesIO(bytes(2**20)))
        importing = ["docker", "-H", made[0].host, "import", "-", IMAGE]
        subprocess.run(importing, input=packed.getvalue(), check=True, capture_output=True)
        yield made


def test_the_image_arrives_and_is_not_sent_twice(
    two: list[Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = two
    monkeypatch.setenv("DOCKER_HOST", ours.host)
    gone = "unix:///nowhere/docker.sock"
    first, failed = push(this_host(), IMAGE, [theirs.host, gone], print)
    assert first.state == "loaded", first
    assert (failed.state, failed.target) == ("failed", gone) and "info" in failed.hint
    asked = ("image", "inspect", "--format", "{{.Id}}", IMAGE)
    assert theirs.said(*asked) == ours.said(*asked)
    (again,) = push(this_host(), IMAGE, [theirs.host], print)
    assert again.state == "present"


def test_a_context_is_a_target(two: list[Node], monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = two
    monkeypatch.setenv("DOCKER_HOST", ours.host)
    monkeypatch.setenv("DOCKER_CONFIG", str(ours.folder / "config"))
    (ours.folder / "config").mkdir()
    create = ["docker", "context", "create", "there", "--docker", f"host={theirs.host}"]
    subprocess.run(create, check=True, capture_output=True)
    there, wrong = push(this_host(), IMAGE, ["there", "nowhere"], print)
    assert there.state in ("loaded", "present"), there
    assert wrong.state == "failed" and "docker context ls" in wrong.hint
