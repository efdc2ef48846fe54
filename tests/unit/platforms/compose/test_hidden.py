"""No compose file has values of secrets: they are in a separate file for its owner alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cluster_kit.platforms.compose.compose_file import render, render_hidden
from cluster_kit.platforms.compose.compose_platform import Compose
from cluster_kit.platforms.container import plan_hash
from cluster_kit.platforms.platform import platform_of
from cluster_kit.resolved import Cluster
from cluster_kit.workspace import Workspace
from tests.make import cluster, parse_compose
from tests.unit.command_line import MANIFEST, Cli

VALUE = "in-clear-it's$5\\"


def made(value: str = VALUE) -> Cluster:
    return cluster(role={"chief": {"environment": {"API_TOKEN": value, "OPEN": "plain"}}})


@pytest.mark.parametrize("value", [VALUE, "a\nb", "'", "\\'", "${HOME}", "😀", " x "])
def test_any_value_can_be_read_back(value: str) -> None:
    beside = parse_compose(render_hidden(made(value)))["services"]
    assert beside == {"chief-0": {"environment": {"API_TOKEN": value}}}
    assert "API_TOKEN" not in render(made(value))


def test_neither_the_file_nor_a_hash_in_it_depends_on_the_value() -> None:
    assert render(made("one")) == render(made("another"))
    assert plan_hash(made("one")) == plan_hash(made("another"))
    assert plan_hash(made()) != plan_hash(cluster())


def test_a_command_line_with_a_secret_is_in_the_separate_file() -> None:
    words = ["--api-token", VALUE]
    web = {"image": "nginx", "entrypoint": ["web", f"--auth-token={VALUE}"], "command": words}
    done = cluster(args=words, program="train.py", style="all-tasks", sidecar={"web": web})
    file, beside = parse_compose(render(done)), parse_compose(render_hidden(done))["services"]
    command = ["run", "/program/train.py", *words]
    assert beside["worker-0"] == {"command": command}
    assert beside["web"] == {"entrypoint": web["entrypoint"], "command": words}
    for name in beside:
        assert {"command", "entrypoint"}.isdisjoint(file["services"][name])
        assert file["services"][name]["extends"] == {"file": "secrets.yaml", "service": name}
    assert "in-clear-it" not in render(done)
    portable = replace(done, origin=replace(done.origin, portable=True))
    assert parse_compose(render(portable))["services"]["worker-0"]["command"] == command


@pytest.mark.parametrize("engine", ["compose", "swarm", "slurm"])
def test_a_file_with_a_secret_argument_is_readable_only_by_its_owner(
    engine: str, tmp_path: Path
) -> None:
    """Such a short value is not searched for in files, where other words may be the same."""
    table = {"slurm": {"image": "trainer.sif"}} if engine == "slurm" else {}
    for words, mode in ([], 0o644), (["--password", "hunter2"], 0o600):
        done = cluster(engine=engine, args=words, program="train.py", **table)
        platform = platform_of(engine)
        file = platform.write(Workspace(tmp_path), done, platform.render(done))
        assert file.stat().st_mode & 0o777 == mode
        if engine == "compose":
            file = platform.write_portable(Workspace(tmp_path), done, "")
            assert file.stat().st_mode & 0o777 == mode


def test_the_file_is_readable_only_by_its_owner_and_ignored_by_git(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    file = Compose().write(workspace, made(), render(made()))
    beside = file.with_name("secrets.yaml")
    assert beside.stat().st_mode & 0o777 == 0o600
    assert "secrets.yaml" in file.with_name(".gitignore").read_text().splitlines()
    beside.chmod(0o644)
    Compose().write(workspace, made(), render(made()))
    assert beside.stat().st_mode & 0o777 == 0o600
    Compose().write(workspace, cluster(), render(cluster()))
    assert not beside.exists()


def test_render_check_detects_a_changed_value(cli: Cli, root: Path) -> None:
    manifest = root / "compose" / "demo.toml"
    more = '[role.chief.environment]\nAPI_TOKEN = "{}"\n'
    manifest.write_text(MANIFEST + more.format("first-value"))
    assert cli("render", "demo").code == 0
    assert cli("render", "demo", "--check").code == 0
    manifest.write_text(MANIFEST + more.format("second-value"))
    result = cli("render", "demo", "--check")
    assert result.code == 2 and "the value of a secret has changed" in result.err
    assert "first-value" not in result.err and "second-value" not in result.err
    assert cli("render", "demo", "--diff").out == ""
