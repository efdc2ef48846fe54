"""Users' own images: the trainer is mounted into them; they have no part of the kit."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest

from cluster_kit.image.kit_image import image_tag
from tests.e2e.evidence import codes, latest, log
from tests.kit import Kit

NAMED = "cluster-kit-test/own"
DOCKERFILE = f"""
FROM {image_tag("cpu")}
USER 0:0
RUN rm -r /opt/trainer
ENV PYTHONPATH=/app TF_USE_LEGACY_KERAS= USER= HOME=/root
WORKDIR /root
ENTRYPOINT ["/bin/false"]
"""
PROGRAM = """
import os, sys
import tensorflow as tf
assert "/app" in os.environ["PYTHONPATH"].split(":"), os.environ["PYTHONPATH"]
print("home", os.environ["HOME"], "keras", tf.keras.__version__)
"""


@pytest.fixture(scope="module")
def own(engine_client: docker.DockerClient) -> Iterator[str]:
    """Build an image with TensorFlow, and with its own entry point, variables and folder."""
    tag = f"{NAMED}:{id(engine_client):x}"
    command = ["docker", "build", "--quiet", "--tag", tag, "-"]
    subprocess.run(command, input=DOCKERFILE, text=True, check=True, stdout=subprocess.DEVNULL)
    yield tag
    engine_client.images.remove(tag, force=True)


def image(tag: str) -> tuple[str, str]:
    return "--set", f'image="{tag}"'


def test_every_role_runs_in_an_image_without_the_kit(kit: Kit, own: str) -> None:
    done = kit.run("up", "smoke", "--name", kit.name, "--set", "evaluator=0", *image(own))
    assert done.returncode == 0, done.stdout + done.stderr
    assert set(codes(kit).values()) == {0}
    assert "TensorFlow server ready" in log(kit, "ps-0")


def test_variables_of_the_image_are_kept(kit: Kit, own: str, tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    program.write_text(PROGRAM)
    alone = ("--workers", "1", "--ps", "0", "--chief", "0", "--set", "evaluator=0")
    command = ("up", "smoke", "--name", kit.name, "--program", str(program), *alone)
    done = kit.run(*command, *image(own))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "home /tmp keras 3." in log(kit, "worker-0")


def test_a_dockerfile_is_built_when_its_files_have_changed(
    kit: Kit, own: str, tmp_path: Path
) -> None:
    program, folder = tmp_path / "train.py", tmp_path / "image"
    program.write_text('import os; print("variable", os.environ["MINE"])')
    folder.mkdir()
    file = folder / "Dockerfile"
    file.write_text(f"FROM {own}\nENV MINE=first\n")
    alone = ("--workers", "1", "--ps", "0", "--chief", "0", "--set", "evaluator=0")
    command = ("up", "smoke", "--name", kit.name, "--program", str(program), *alone)
    build = ("--set", f'build="{folder}"')
    done = kit.run(*command, *build)
    made = re.search(r"building (cluster-kit/built:\w+) from", done.stderr)
    assert made, done.stdout + done.stderr
    subprocess.run(["docker", "image", "rm", made[1]], check=True, stdout=subprocess.DEVNULL)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "variable first" in log(kit, "worker-0")
    file.write_text(f"FROM {own}\nRUN echo as it says && exit 9\n")
    done = kit.run(*command, *build)
    assert done.returncode == 4, done.stdout + done.stderr
    assert "as it says" in done.stderr and "exit code: 9" in done.stderr
    file.write_text("FROM nosuch.invalid/image:1\n")
    done = kit.run(*command, *build)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "nosuch.invalid/image:1" in done.stderr and "fix its FROM" in done.stderr


def test_an_image_without_tensorflow_is_refused_before_anything_starts(kit: Kit) -> None:
    bases = subprocess.run(
        ["docker", "images", "--format", "{{.Repository}}:{{.Tag}}", "cluster-kit/base"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    if not bases:
        pytest.skip("this engine has no image without TensorFlow")
    done = kit.run("up", "smoke", "--name", kit.name, *image(bases[0]))
    assert done.returncode == 2, done.stdout + done.stderr
    assert "has no TensorFlow" in done.stderr and "only the kit's own image" in done.stderr
    assert not latest(kit).exists()
