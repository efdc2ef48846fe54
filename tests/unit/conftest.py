"""Fails every unit test that uses Docker or starts a program, with a message that says so.

`cli` calls the command line in a temporary workspace.
"""

from __future__ import annotations

import functools
import importlib
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import docker
import pytest
import typer.main

from cluster_kit import __main__, this_host
from cluster_kit.cli import app, render
from cluster_kit.image import kit_image
from cluster_kit.platforms.docker.docker_engine import DockerEngine
from cluster_kit.run import prepare
from cluster_kit.util import process, stdio
from tests.fakes.hosts import Machine, fake_host
from tests.make import host
from tests.unit.command_line import MANIFEST, Cli, CommandResult


def _refuse(what: str) -> Any:
    def refuse(*arguments: object, **_options: object) -> NoReturn:
        shown = " ".join(str(argument) for argument in arguments[:1])
        pytest.fail(f"a unit test {what} ({shown}): give it a fake, or move it to tests/e2e")

    return refuse


@pytest.fixture(autouse=True)
def no_docker_no_programs(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.node.get_closest_marker("draws"):
        # On a machine where matplotlib was never used, it starts programs that list the fonts.
        importlib.import_module("matplotlib.font_manager")
    connects = _refuse("connects to the Docker engine")
    monkeypatch.setattr(docker, "from_env", connects)
    monkeypatch.setattr(docker, "DockerClient", connects)
    monkeypatch.setattr(docker, "APIClient", connects)
    monkeypatch.setattr(DockerEngine, "__init__", connects)
    monkeypatch.setattr(subprocess, "Popen", _refuse("starts a program"))


app.load_all()  # Once for all: the test processes of `make test-unit` are forked from this one.


@pytest.fixture(scope="session", autouse=True)
def commands_made_once() -> Iterator[None]:
    """Caches Typer's commands, which it otherwise builds again from the functions' signatures at
    each call."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.main, "get_command", functools.cache(typer.main.get_command))
        yield


image_tag = functools.cache(kit_image.image_tag)
"""The hash of 250 files, which no test with a workspace changes."""


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    """The machine that the command line, the Python API and the pytest plugin use."""
    made = Machine(replace(fake_host(), image_tag=image_tag))
    monkeypatch.setattr(this_host, "this_host", lambda: made.host)
    return made


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, machine: Machine) -> Path:
    """A workspace with one manifest, on a host without an engine."""
    (tmp_path / "compose").mkdir()
    (tmp_path / "compose" / "demo.toml").write_text(MANIFEST)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(render, "image_present", lambda *_: True, raising=False)
    monkeypatch.setattr(prepare, "gather", lambda *_: host())
    monkeypatch.setattr(process, "interrupt_once", lambda: None)
    monkeypatch.setattr(stdio, "outlive_readers", lambda: None)
    monkeypatch.setattr(stdio, "name_full_disk", lambda: None)
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path


@pytest.fixture
def cli(root: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Cli:
    """Returns a function that calls `cluster-kit` with these words, in this process."""

    def call(*arguments: str) -> CommandResult:
        monkeypatch.setattr(sys, "argv", ["cluster-kit", *arguments])
        with pytest.raises(SystemExit) as ended:
            __main__.main()
        code = ended.value.code
        out, err = capfd.readouterr()
        return CommandResult(code if isinstance(code, int) else 0, out, err)

    return call
