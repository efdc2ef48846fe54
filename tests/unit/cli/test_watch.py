"""`up --watch`: runs, runs again when files change, reports errors, and waits for a change."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType

import pytest

from cluster_kit.cli import up
from cluster_kit.machine import host_facts
from cluster_kit.run import prepare
from cluster_kit.run.launch import files_of
from cluster_kit.run.request import Request
from cluster_kit.util.changes import Watched
from cluster_kit.workspace import Workspace
from tests.fakes.acting import LEADS, Life, ends, says
from tests.fakes.hosts import Machine
from tests.fakes.stage import MANIFEST, NAME, Stage, set_up
from tests.unit.command_line import Cli

LONG = Life((says(0.1, "start", attempt=1), says(0.4, "ready"), ends(300.0, 0, "finished")))


class FakeChanges:
    """Files change `during` runs, at these seconds, and `between` them; then Ctrl-C is pressed."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.during: list[float] = []
        self.between: list[str] = []
        self.watched: list[Watched] = []
        self.error: OSError | None = None
        self._file = stage.workspace.root / "mine" / "train.py"

    def __call__(self, watched: Watched) -> FakeChanges:
        self.watched.append(watched)
        return self

    def __enter__(self) -> FakeChanges:
        return self

    def __exit__(
        self, _k: type[BaseException] | None, _e: BaseException | None, _t: TracebackType | None
    ) -> None:
        pass

    def taken(self) -> list[Path]:
        if self.error:
            raise self.error
        if self.during and self.stage.clock.monotonic() >= self.during[0]:
            self.during.pop(0)
            return [self._file]
        return []

    def wait(self) -> list[Path]:
        if not self.between:
            raise KeyboardInterrupt
        self._file.write_text(self.between.pop(0))
        return [self._file.with_name("sedGvr3Qp"), *[self._file] * 5]


@pytest.fixture
def stage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: Path, machine: Machine
) -> Iterator[Stage]:
    assert root == tmp_path
    monkeypatch.setattr(prepare, "gather", host_facts.gather)
    for made in set_up(tmp_path, machine):
        (tmp_path / "mine").mkdir()
        (tmp_path / "mine" / "train.py").write_text("print(1)\n")
        (tmp_path / "compose" / f"{NAME}.toml").write_text(
            f'{MANIFEST}program = "../mine/train.py"'
        )
        yield made


@pytest.fixture
def changes(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> FakeChanges:
    fake = FakeChanges(stage)
    monkeypatch.setattr(up, "Changes", fake)
    return fake


def runs(stage: Stage) -> list[Path]:
    return sorted(p for p in stage.workspace.runs(NAME).glob("2*") if not p.is_symlink())


def test_it_runs_again_after_each_change_until_ctrl_c(
    cli: Cli, stage: Stage, changes: FakeChanges
) -> None:
    changes.between = ["print(2)\n", "print(3)\n"]
    result = cli("up", NAME, "--watch")
    assert result.code == 130
    assert result.out.count("success in ") == 3
    assert result.err.count("waiting for a change of its files; Ctrl-C ends it") == 3
    assert result.err.count("changed: mine/train.py, mine/train.py, mine/train.py and 2 more") == 2
    assert "nothing was running" in result.err
    assert len(runs(stage)) == 3
    assert len(changes.watched) == 1
    assert stage.is_clean()


def test_the_directory_of_a_dockerfile_is_watched_too(
    cli: Cli, stage: Stage, changes: FakeChanges
) -> None:
    (stage.workspace.root / "image").mkdir()
    (stage.workspace.root / "image/Dockerfile").write_text("FROM a\n")
    assert cli("up", NAME, "--watch", "--set", 'build="../image"').code == 130
    assert stage.workspace.root / "image" in changes.watched[0].folders


def test_a_run_ends_when_its_files_change(cli: Cli, stage: Stage, changes: FakeChanges) -> None:
    stage.engine.acting = {"chief-0": [LONG]}
    began = stage.clock.monotonic()
    changes.during = [began + 5.0]

    def finish_soon(name: str) -> None:
        if len(runs(stage)) > 1:
            stage.engine.acting = {"chief-0": [LEADS]}

    stage.docker.on_call = finish_soon
    result = cli("up", NAME, "--watch")
    assert result.code == 130
    first, second = (json.loads((run / "outcome.json").read_text()) for run in runs(stage))
    assert (first["reason"], first["exit_code"], first["blame"]) == ("stopped", 7, None)
    assert "its files have changed" in first["message"]
    assert first["timings_s"]["total"] < 10
    assert second["success"]
    assert "changed: mine/train.py; running again" in result.err
    assert result.err.count("waiting for a change") == 1
    assert stage.is_clean()


def test_after_an_invalid_program_it_waits_for_a_change(
    cli: Cli, stage: Stage, changes: FakeChanges
) -> None:
    (stage.workspace.root / "mine" / "train.py").write_text("print(")
    changes.between = ["print(2)\n"]
    result = cli("up", NAME, "--watch")
    assert result.code == 130
    assert "was never closed" in result.err
    assert result.out.count("success in ") == 1
    assert len(runs(stage)) == 1


def test_after_a_failed_run_it_waits_for_a_change(
    cli: Cli, stage: Stage, changes: FakeChanges
) -> None:
    stage.engine.acting = {"chief-0": [Life((ends(1.0, 1, "failed", "NameError: x"),))]}
    result = cli("up", NAME, "--watch", "--json")
    assert result.code == 130
    assert json.loads(result.out[: result.out.rindex("}\n{") + 2])["message"] == "NameError: x"
    assert "waiting for a change" in result.err


def test_ctrl_c_during_a_run_ends_everything(cli: Cli, stage: Stage, changes: FakeChanges) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    stage.clock.at(1.5, interrupt)
    changes.between = ["print(2)\n"]
    result = cli("up", NAME, "--watch")
    assert result.code == 130
    assert stage.saved()["reason"] == "interrupted"
    assert changes.between
    assert stage.is_clean()


def test_a_lost_engine_ends_the_watch(cli: Cli, stage: Stage, changes: FakeChanges) -> None:
    stage.engine.refuses["chief-0"] = "no such device"
    assert cli("up", NAME, "--watch").code == 4
    changes.error = OSError("OS file watch limit reached")
    stage.engine.refuses.clear()
    result = cli("up", NAME, "--watch")
    assert result.code == 3
    assert "cannot tell when files change: OS file watch limit" in result.err
    assert stage.is_clean()


@pytest.mark.parametrize("other", [("--keep",), ("--detach",), ("--exit-code", "program")])
def test_conflicting_options_are_refused(other: Sequence[str], cli: Cli, stage: Stage) -> None:
    result = cli("up", NAME, "--watch", *other)
    assert result.code == 2
    assert f"{' '.join(other)} with --watch" in result.err
    assert cli("up", "dmo", "--watch").code == 2


def test_the_watched_files_are_those_that_containers_see(stage: Stage) -> None:
    root = stage.workspace.root.resolve()
    found = files_of(Request(NAME, {}), Workspace(root))
    assert found.folders == (root / "mine",)
    assert found.files == (root / "compose" / "demo.toml",)
    assert set(found.ignored) >= {root / "runs", root / "compose" / NAME}
    manifest = root / "compose" / "demo.toml"
    manifest.write_text(MANIFEST + 'program = "../mine/absent.py"\nrequirements = "../r.txt"\n')
    found = files_of(Request(NAME, {}), Workspace(root))
    assert (found.folders, found.files) == ((root / "mine",), (manifest, root / "r.txt"))
    manifest.write_text(MANIFEST)
    assert files_of(Request(NAME, {}), Workspace(root)).folders == ()
    manifest.write_text("format = = 1")
    assert files_of(Request(NAME, {}), Workspace(root)) == Watched((), (manifest,))
