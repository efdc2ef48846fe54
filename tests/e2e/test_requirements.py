"""The requirements of users' programs: installed once, or reported."""

from __future__ import annotations

import re
import secrets
from pathlib import Path
from typing import Any

import docker
import pytest

from cluster_kit.programs.resolve import EXTRA, digest, lines_of
from tests.e2e.own_program import PROGRAMS, up
from tests.kit import Kit, mine


@pytest.fixture
def requirements(kit: Kit, client: docker.DockerClient) -> Any:
    """A requirements file that no other test uses, so that its image can be removed again."""
    file = kit.root / "requirements.txt"
    unique = secrets.randbelow(10**9)
    file.write_text(f"# small and pure\niniconfig>=1.0,!=1.0.{unique}\ntensorflow>=2.15\n")
    yield file
    kept = "".join(f"{line}\n" for line in lines_of(file.read_text()))
    for tag in [tag for image in client.images.list() for tag in image.tags]:
        if tag.endswith(EXTRA + digest(kept)):
            client.images.remove(tag)


def test_a_programs_own_requirements_are_installed_once(
    kit: Kit, client: docker.DockerClient, requirements: Path
) -> None:
    manifest = kit.root / "mine.toml"
    manifest.write_text(
        f'format = 1\nname = "{kit.name}"\nworker = 1\nps = 1\nrequirements = "requirements.txt"\n'
        f'program = "{PROGRAMS / "needs_a_package.py"}"\n'
    )
    built = kit.run("image", "build", str(manifest))
    assert built.returncode == 0, built.stdout + built.stderr
    found = re.search(r"installing 2 requirements into (\S+-with-\w+)", built.stderr)
    assert found, built.stderr
    done = kit.run("up", str(manifest))
    output = done.stdout + done.stderr
    assert done.returncode == 0, output
    assert "installing" not in output
    assert re.search(r"iniconfig \S+ from /opt/venv/\S+, TensorFlow 2\.", output), output
    size = client.images.get(found[1]).attrs["Size"]
    trainer = client.images.get(found[1].partition("-with-")[0]).attrs["Size"]
    assert 0 < size - trainer < 2_000_000, "no second TensorFlow, and no pip"


def test_a_requirement_that_does_not_fit_the_image_is_reported(
    kit: Kit, client: docker.DockerClient
) -> None:
    file = kit.root / "old.txt"
    file.write_text("iniconfig\nnumpy==1.26.4\n")
    code, output = up(kit, "needs_a_package.py", "--requirements", str(file))
    assert code == 2, output
    assert "--requirements: pip cannot install it with the image's packages" in output
    assert "The user requested numpy==1.26.4" in output
    assert re.search(r"The image has numpy==(?!1\.26\.4)\d", output), output
    assert "Traceback" not in output
    assert mine(client, kit.name) == ([], [])
