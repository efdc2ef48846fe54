"""The files of a directory that a build sees."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster_kit.platforms.docker.build_context import files_of, ignore_file, patterns_of

FILES = ("Dockerfile", "a.py", "b.pyc", "data/x.bin", "data/keep/y.py", "src/a/__pycache__/z.pyc")


@pytest.fixture
def context(tmp_path: Path) -> Path:
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    return tmp_path


def seen(context: Path, ignored: str) -> set[str]:
    found = files_of(context, patterns_of(ignored))
    return {path.relative_to(context).as_posix() for path in found}


@pytest.mark.parametrize(
    ("ignored", "left_out"),
    [
        ("", set()),
        ("# a.py\n\n", set()),
        ("data", {"data/x.bin", "data/keep/y.py"}),
        ("/data/\n", {"data/x.bin", "data/keep/y.py"}),
        ("*.pyc", {"b.pyc"}),
        ("**/*.pyc", {"b.pyc", "src/a/__pycache__/z.pyc"}),
        ("**/__pycache__", {"src/a/__pycache__/z.pyc"}),
        ("data\n!data/keep", {"data/x.bin"}),
        ("*\n!**/*.py\n", {"Dockerfile", "b.pyc", "data/x.bin", "src/a/__pycache__/z.pyc"}),
        ("!a.py\na.py", {"a.py"}),
        ("  a.??  \n", {"a.py"}),
    ],
)
def test_the_same_files_are_excluded_as_by_docker(
    ignored: str, left_out: set[str], context: Path
) -> None:
    assert seen(context, ignored) == set(FILES) - left_out


def test_links_are_not_followed_and_empty_directories_count(context: Path) -> None:
    (context / "loop").symlink_to(context)
    (context / "empty").mkdir()
    assert seen(context, "") == {*FILES, "loop", "empty"}


def test_a_dockerfiles_own_ignore_file_takes_precedence(context: Path) -> None:
    file = context / "Dockerfile"
    assert ignore_file(file, context) == context / ".dockerignore"
    own = context / "Dockerfile.dockerignore"
    own.write_text("data\n")
    assert ignore_file(file, context) == own
