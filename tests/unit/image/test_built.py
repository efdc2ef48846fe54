"""An image that a Dockerfile makes: when it is built, and what is reported if the build fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from cluster_kit.errors import EngineError, ManifestError
from cluster_kit.image import user_image
from cluster_kit.resolved import Dockerfile
from cluster_kit.util.process import Completed
from tests.fakes.hosts import Machine
from tests.make import cluster

ABSENT = """\
#2 [internal] load metadata for docker.io/nosuch/thing:1
#2 ERROR: failed to do request: Head "https://registry/v2/": no such host
------
 > [internal] load metadata for docker.io/nosuch/thing:1:
------
Dockerfile:1
--------------------
   1 | >>> FROM nosuch/thing:1
--------------------
ERROR: failed to solve: nosuch/thing:1: failed to resolve source metadata for nosuch/thing:1
"""
INVALID = (
    "#1 transferring dockerfile: 43B done\n"
    "ERROR: failed to solve: dockerfile parse error on line 1: unknown instruction: FRM\n"
)
FAILED = """\
#5 0.263 hello
------
 > [2/2] RUN echo hello && false:
0.263 hello
------
ERROR: failed to solve: process "/bin/sh -c echo hello && false" did not complete: exit code: 1
"""
LOST = "ERROR: Cannot connect to the Docker daemon at unix:///var/run/docker.sock.\n"
FULL = "ERROR: failed to solve: write /x: no space left on device\n"


@pytest.fixture
def own(tmp_path: Path) -> Dockerfile:
    (tmp_path / "src").mkdir()
    (tmp_path / "Dockerfile").write_text("FROM a\nCOPY src /src\n")
    (tmp_path / "src/a.py").write_text("1\n")
    return Dockerfile("..", str(tmp_path / "Dockerfile"), str(tmp_path))


def tag(own: Dockerfile, written: Sequence[Path] = ()) -> str:
    made, problems = user_image.built_tag(own, written)
    assert not problems
    return made


def test_the_same_files_give_the_same_tag_wherever_they_are(own: Dockerfile) -> None:
    assert user_image.built_tag(own, ())[0].startswith("cluster-kit/built:")
    root = Path(own.context)
    copy = root.parent / f"{root.name}-copy"
    (copy / "src").mkdir(parents=True)
    for name in ("Dockerfile", "src/a.py"):
        (copy / name).write_bytes((root / name).read_bytes())
    assert tag(Dockerfile("x", str(copy / "Dockerfile"), str(copy))) == tag(own)


@pytest.mark.parametrize(
    "change",
    [
        lambda root: (root / "Dockerfile").write_text("FROM b\n"),
        lambda root: (root / "src/a.py").write_text("2\n"),
        lambda root: (root / "src/a.py").chmod(0o600),
        lambda root: (root / "src/a.py").rename(root / "src/b.py"),
        lambda root: (root / "src/empty").mkdir(),
        lambda root: (root / "link").symlink_to("src"),
    ],
)
def test_files_in_the_build_context_change_the_tag(
    change: Callable[[Path], object], own: Dockerfile
) -> None:
    (Path(own.context) / "src/a.py").chmod(0o644)
    before = tag(own)
    change(Path(own.context))
    assert tag(own) != before


def test_ignored_files_and_files_of_the_kit_do_not_change_the_tag(own: Dockerfile) -> None:
    root = Path(own.context)
    (root / ".dockerignore").write_text("data\n")
    before = tag(own, [root / "runs"])
    for name in ("data/x", "runs/demo/latest/outcome.json"):
        (root / name).parent.mkdir(parents=True)
        (root / name).write_text("new")
    assert tag(own, [root / "runs"]) == before
    assert tag(own) != before


def test_a_file_that_cannot_be_read_is_a_problem(
    own: Dockerfile, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied", "/x/secret")

    monkeypatch.setattr(user_image, "files_of", refuse)
    made, (problem,) = user_image.built_tag(own, ())
    assert made == "" and problem.key_path == "build"
    assert problem.rule == "/x/secret cannot be read: Permission denied"
    assert ".dockerignore" in problem.hint_text()


@pytest.fixture
def build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, machine: Machine
) -> Callable[[int, str], list[str]]:
    """Returns the output of a build that ends in this way."""
    outputs: list[str] = []

    def run(code: int, says: str) -> list[str]:
        def stream(command: tuple[str, ...], each: Callable[[str], None]) -> Completed:
            for line in says.splitlines():
                each(line)
            outputs.append(" ".join(command))
            return Completed(command, code, "", says)

        machine.locks_in(tmp_path)
        monkeypatch.setattr(user_image, "present", lambda *_: False)
        machine.starts(stream=stream)
        machine.starts(run=lambda command: Completed((), 0, "", ""))
        machine.starts(run=lambda command: Completed((), 0, "mine", ""))
        assert user_image.build_dockerfile(
            machine.host, cluster(build="image"), outputs.append, outputs.append
        )
        return outputs

    return run


def test_the_build_gets_the_hosts_access_as_secrets_and_shows_its_output(
    build: Callable[[int, str], list[str]],
) -> None:
    first, *lines, command = build(0, "#1 one\n#2 two")
    assert first.startswith("building cluster-kit/built:") and "/home/you/image" in first
    assert lines == ["#1 one", "#2 two"]
    assert "--tag=cluster-kit/built:0123456789ab" in command
    assert "--secret=id=pip.conf" in command and "--secret=id=ca.pem" in command
    assert command.endswith("--file=/home/you/image/Dockerfile /home/you/image")


@pytest.mark.parametrize(
    ("says", "error", "words", "hint"),
    [
        (ABSENT, ManifestError, "FROM nosuch/thing:1", "fix its FROM"),
        (INVALID, ManifestError, "unknown instruction: FRM", "fix /home/you/image/Dockerfile"),
        (FAILED, EngineError, "0.263 hello", "fix the step that failed"),
        (LOST, EngineError, "Cannot connect", "cluster-kit doctor"),
        (FULL, EngineError, "no space left", "docker system df"),
    ],
)
def test_a_failed_build_is_reported_with_its_own_error(
    says: str,
    error: type[ManifestError | EngineError],
    words: str,
    hint: str,
    build: Callable[[int, str], list[str]],
) -> None:
    with pytest.raises(error) as told:
        build(1, says)
    assert words in told.value.message and hint in f"{told.value.message}{told.value.hint}"
    assert "#5 0.263" not in told.value.message and "#1" not in told.value.message


def test_an_existing_image_is_not_built(monkeypatch: pytest.MonkeyPatch, machine: Machine) -> None:
    monkeypatch.setattr(user_image, "present", lambda *_: True)
    assert not user_image.build_dockerfile(machine.host, cluster(build="image"), print, print)
    assert not user_image.build_dockerfile(machine.host, cluster(), print, print)
