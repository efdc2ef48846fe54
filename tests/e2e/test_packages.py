"""The published packages: the sdist has everything for a wheel, and tools that install commands
accept the wheel."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from cluster_kit.image.kit_image import image_tag
from cluster_kit.version import __version__
from tests.make import ROOT


def uv(*words: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "uv", "--quiet", *words]
    done = subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist and the wheel of this tree."""
    folder = tmp_path_factory.mktemp("dist")
    uv("build", "--sdist", "--out-dir", folder, ROOT)
    uv("build", "--wheel", "--out-dir", folder, ROOT)
    return folder


def contents(wheel: Path) -> dict[str, bytes]:
    """Returns each file of a wheel, without the list of files, which depends on the others."""
    with zipfile.ZipFile(wheel) as file:
        return {n: file.read(n) for n in file.namelist() if not n.endswith("/RECORD")}


@pytest.mark.xdist_group("packages")
def test_the_sdist_gives_the_same_wheel(dist: Path, tmp_path: Path) -> None:
    (sdist,) = dist.glob("*.tar.gz")
    uv("build", "--wheel", "--out-dir", tmp_path, sdist)
    (one,), (other,) = dist.glob("*.whl"), tmp_path.glob("*.whl")
    assert one.name == other.name == f"cluster_kit-{__version__}-py3-none-any.whl"
    files = contents(one)
    assert contents(other) == files
    for name in ("py.typed", "files/action.yml", "files/templates/ci/github.yml.j2"):
        assert f"cluster_kit/{name}" in files
    metadata = files[f"cluster_kit-{__version__}.dist-info/METADATA"].decode()
    assert "Classifier: Typing :: Typed\n" in metadata
    assert f"\nVersion: {__version__}\n" in metadata


@pytest.mark.xdist_group("packages")
def test_the_packages_contain_no_tests_and_no_build_files(dist: Path) -> None:
    (sdist,), (wheel,) = dist.glob("*.tar.gz"), dist.glob("*.whl")
    with tarfile.open(sdist) as file:
        names = [*contents(wheel), *file.getnames()]
    strange = ("/tests/", "/runs/", "__pycache__", "compose.yaml\n", "/.venv/")
    assert not [name for name in names if any(word in f"/{name}\n" for word in strange)]


@pytest.mark.xdist_group("packages")
def test_tools_that_install_commands_accept_the_wheel(dist: Path, tmp_path: Path) -> None:
    (wheel,) = dist.glob("*.whl")
    folders = {"UV_TOOL_DIR": str(tmp_path / "tools"), "UV_TOOL_BIN_DIR": str(tmp_path / "bin")}
    uv("tool", "install", wheel, **folders)
    check(tmp_path / "bin" / "cluster-kit", "--version")


@pytest.mark.slow
def test_pipx_runs_the_wheel(dist: Path, tmp_path: Path) -> None:
    (wheel,) = dist.glob("*.whl")
    run = (sys.executable, "-m", "pipx", "run", "--spec", str(wheel), "cluster-kit", "--version")
    check(*run, PIPX_HOME=str(tmp_path))


def check(*command: str | Path, **environment: str) -> None:
    """Fail unless the command prints the kit's version, and the image of this tree's files."""
    environment = {**os.environ, **environment}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.startswith(f"cluster-kit {__version__}, "), done.stderr
    assert f"\n{image_tag('cpu')}, " in done.stdout
