"""The Dockerfile that a manifest names."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster_kit.programs.resolve import find_dockerfile
from cluster_kit.resolved import Dockerfile
from tests.make import problems, problems_of


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Returns a project's `compose/`, next to it a directory with a Dockerfile and one without."""
    for name in ("compose", "image", "empty"):
        (tmp_path / name).mkdir()
    (tmp_path / "image/Dockerfile").write_text("FROM a\n")
    (tmp_path / "image/gpu.dockerfile").write_text("FROM a\n")
    (tmp_path / "image/gpu.dockerfile.dockerignore").write_text("x\n")
    return tmp_path / "compose"


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("../image", "Dockerfile"),
        ("../image/", "Dockerfile"),
        ("../image/Dockerfile", "Dockerfile"),
        ("../image/gpu.dockerfile", "gpu.dockerfile"),
    ],
)
def test_a_directory_or_a_file_is_built_from_its_directory(
    name: str, file: str, folder: Path
) -> None:
    context = folder.parent / "image"
    assert find_dockerfile(name, folder) == (
        Dockerfile(name, f"{context / file}", f"{context}"),
        [],
    )
    assert find_dockerfile(str(folder / name), folder)[0] is not None


def test_without_the_key_nothing_is_built() -> None:
    assert find_dockerfile("", Path("/")) == (None, [])


@pytest.mark.parametrize(
    ("name", "rule", "hint"),
    [
        ("../nowhere", "neither a Dockerfile nor a directory that has one", "fix the path"),
        ("https://example.org/a.git", "neither a Dockerfile nor", "fix the path"),
        ("a\\u0000b", "cannot hold a NUL character", "path of a Dockerfile"),
        ("../empty", "there is no Dockerfile in ", "write one there"),
    ],
)
def test_a_missing_file_is_reported_with_the_searched_paths(
    name: str, rule: str, hint: str, folder: Path
) -> None:
    text = f'format = 1\nname = "demo"\nbuild = "{name}"\n'
    (problem,) = problems_of(text, folder)
    assert problem.key_path == "build" and rule in problem.rule and hint in problem.hint_text()


def test_a_directory_with_other_dockerfiles_names_them(folder: Path) -> None:
    (folder.parent / "image/Dockerfile").unlink()
    _, (problem,) = find_dockerfile("../image", folder)
    assert problem.hint == 'name the file: "../image/gpu.dockerfile"'


@pytest.mark.parametrize(
    ("keys", "key_path", "words"),
    [
        ({"image": "mine:1"}, "image", "remove `image` or `build`"),
        ({"image": "trainer"}, "image", "remove `image` or `build`"),
        ({"requirements": "more.txt"}, "requirements", "install them in your Dockerfile"),
        ({"tensorflow": "2.16"}, "tensorflow", "install it in your Dockerfile"),
    ],
)
def test_keys_that_a_dockerfile_replaces_are_refused(
    keys: dict[str, str], key_path: str, words: str
) -> None:
    assert not problems(build="image")
    (problem,) = problems(build="image", **keys)
    assert (
        problem.key_path == key_path and words in problem.hint_text() and "`build`" in problem.rule
    )
