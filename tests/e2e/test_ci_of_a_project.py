"""CI in a user's project: the files that `new --ci` writes into an empty repository work unchanged.

They run step by step, and install the wheel that `new` has put next to them.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest

from tests.ci.gitlab import job
from tests.ci.steps import Runner
from tests.ci.test_schemas import check
from tests.e2e.others import Others, named
from tests.kit import Kit, remove
from tests.make import ROOT

pytestmark = [pytest.mark.xdist_group("ci-of-a-project"), pytest.mark.more]
NAME = f"e2e-ci-{secrets.token_hex(3)}"
QUICKLY = {"PIP_NO_COMPILE": "1"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    build = ("pip", "--quiet", "wheel", "--no-deps", "--wheel-dir", str(folder), str(ROOT))
    subprocess.run(["python3", "-m", *build], check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Path:
    """A repository that was empty before `new` wrote into it."""
    root = tmp_path_factory.mktemp("project")
    subprocess.run(["git", "init", "--quiet", root], check=True)
    kit = Kit(root, NAME)
    for system in ("github", "gitlab"):
        name = NAME if system == "github" else f"{NAME}-lab"
        done = kit.run("new", name, "--ci", system, "--kit", str(wheel))
        assert done.returncode == 0, done.stderr
    return root


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("temp")


@pytest.fixture(autouse=True)
def removed(client: docker.DockerClient) -> Iterator[None]:
    yield
    remove(client, NAME)


def test_the_files_are_valid(repository: Path) -> None:
    assert check("github-actions", repository / ".github/actions/cluster-kit/action.yml") == ""
    assert check("github-workflows", *repository.glob(".github/workflows/*.yml")) == ""
    pipeline = [repository / ".gitlab-ci.yml", *repository.glob(".gitlab/*.yml")]
    assert check("gitlab-ci", *pipeline, transform="gitlab-ci") == ""


def test_the_workflow_trains_the_starter(repository: Path, machine: Path) -> None:
    others = Others()
    runner = Runner(repository, machine, others.doubles(), QUICKLY)
    assert runner.workflow(f".github/workflows/cluster-{NAME}.yml", "cluster"), runner.said
    outputs = named(runner, f"Run the cluster {NAME}").outputs
    assert (outputs["success"], outputs["exit-code"]) == ("true", "0")
    runs = Path(outputs["outcome"]).parent.parent
    assert runs.parent == repository / "runs"
    assert runs.name.startswith(f"{NAME}-"), "its name is its own, on an engine with other jobs"
    assert runner.summary.startswith(f"## ✅ {runs.name} succeeded after ")
    assert outputs["run"] in others.given["actions/upload-artifact"]["path"].splitlines()


def test_gitlabs_job_keeps_its_verdict_and_returns_its_exit_code(
    repository: Path, machine: Path
) -> None:
    """With a manifest without a worker: nothing is started."""
    (venv,) = machine.glob("cluster-kit-venv-*")
    manifest = repository / "compose" / f"{NAME}-lab.toml"
    manifest.write_text(manifest.read_text().replace("worker = 2", "worker = 0"))
    little_to_install = {"VENV": str(venv), **QUICKLY}
    code, output = job(repository, f"cluster {NAME}-lab", little_to_install)
    assert code == 2, output
    assert "worker = 0" in output and "cluster-kit/trainer:cpu-" in output
    assert (repository / "cluster-kit.md").read_text().startswith("## ❌ The cluster did not start")
    values = (repository / "cluster-kit.env").read_text().splitlines()
    assert {"cluster_success=false", "cluster_reason=manifest"} <= set(values)


def test_gitlabs_job_keeps_the_image_under_its_tag(
    repository: Path, tmp_path: Path, client: docker.DockerClient
) -> None:
    """The kit is a double that names a tiny image; the engine is real."""
    tag = f"cluster-kit-test/ci:{os.getpid()}"
    subprocess.run(["docker", "import", "-", tag], input=bytes(10240), check=True)
    shutil.copytree(repository, tmp_path / "project", symlinks=True)
    programs = tmp_path / "venv" / "bin"
    programs.mkdir(parents=True)
    double = f'#!/bin/sh\ncase "$1 $2" in "image tag") echo {tag};; *) echo success=true;; esac\n'
    try:
        for program, text in {"cluster-kit": double, "python": "#!/bin/sh\n"}.items():
            (programs / program).write_text(text)
            (programs / program).chmod(0o755)
        tools = tmp_path / "tools"
        tools.mkdir()
        (tools / "python3").write_text("#!/bin/sh\n")  # the virtual environment exists
        (tools / "python3").chmod(0o755)
        variables = {"VENV": str(programs.parent), "PATH": f"{tools}:{os.environ['PATH']}"}
        code, output = job(tmp_path / "project", f"cluster {NAME}-lab", variables)
        assert code == 0, output
        (saved,) = (tmp_path / "project" / ".cluster-kit").iterdir()
        assert saved.name == f"{tag.replace('/', '_').replace(':', '_')}.tar"
        identity, written = client.images.get(tag).id, saved.stat().st_mtime_ns
        client.images.remove(tag)
        code, output = job(tmp_path / "project", f"cluster {NAME}-lab", variables)
        assert code == 0 and client.images.get(tag).id == identity, output
        assert saved.stat().st_mtime_ns == written
    finally:
        subprocess.run(["docker", "image", "rm", tag], capture_output=True)
