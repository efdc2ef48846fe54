"""`render --portable`: the same bytes on every machine, and only files that can be copied with
it."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import pytest
import yaml

from cluster_kit import workspace
from cluster_kit.cli import render as verb
from tests.unit.cli.rendering import ELSEWHERE, PORTABLE, manifest, mine, on
from tests.unit.command_line import MANIFEST, Cli

__all__ = ["mine"]


@pytest.mark.parametrize(
    ("more", "options"),
    [
        ("", ()),
        ('gpus = "auto"\n', ()),
        ('gpus = "require"\n', ()),
        ('gpus = ["1", "0"]\n', ()),
        ("[role.worker]\ncpus = 16\nbandwidth = '10mbit'\n", ()),
        ("", ("--name", "other", "--workers", "3", "--args", "--epochs 1", "--set", "port=4000")),
        ("", ("--program", "train.py")),
    ],
)
def test_hosts_users_and_folders_give_the_same_bytes(
    more: str, options: tuple[str, ...], cli: Cli, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest(root, more)
    (root / "train.py").write_text("print(1)\n")
    copy = root / "elsewhere" / "copy"
    copy.mkdir(parents=True)
    shutil.copytree(root / "compose", copy / "compose")
    shutil.copy(root / "train.py", copy)
    here = cli("render", "demo", "--portable", "--dry-run", *options)
    assert here.code == 0, here.err
    on(monkeypatch, ELSEWHERE)
    monkeypatch.chdir(copy)
    there = cli("render", "compose/demo.toml", *options, "--portable", "--dry-run")
    assert there.out == here.out
    for of_this_host in (str(root), "1000:1000", "/home"):
        assert of_this_host not in here.out


def test_mounts_are_relative_and_tasks_run_as_the_owner_of_the_output(cli: Cli, mine: Path) -> None:
    assert cli("render", "demo", "--portable").code == 0
    text = (mine / PORTABLE).read_text()
    chief = yaml.safe_load(text)["services"]["chief-0"]
    sources = {volume["target"]: volume["source"] for volume in chief["volumes"]}
    assert sources == {
        "/output": "${CLUSTER_KIT_OUTPUT:-./output}",
        "/program": "../../programs/mine",
        "/data": "../../data",
    }
    assert all(((mine / PORTABLE).parent / at).is_dir() for at in list(sources.values())[1:])
    assert chief["volumes"][0]["bind"] == {"create_host_path": True}
    assert chief["user"] == "${UID:-0}:${GID:-${UID:-0}}"
    assert chief["environment"]["CLUSTER_KIT_USER"] == "owner"
    assert chief["cap_drop"] == ["ALL"]
    assert chief["cap_add"] == ["SETUID", "SETGID", "SETPCAP", "KILL"]


def test_the_output_directory_is_committed_without_its_contents(cli: Cli, root: Path) -> None:
    cli("render", "demo", "--portable")
    ignored = (root / "portable/demo/output/.gitignore").read_text().splitlines()
    assert ignored[1:] == ["*", "!.gitignore"]


def test_a_task_with_a_bandwidth_limit_starts_as_root_for_every_caller(
    cli: Cli, root: Path
) -> None:
    manifest(root, "[role.ps]\nbandwidth = '10mbit'\n")
    services = yaml.safe_load(cli("render", "demo", "--portable", "--dry-run").out)["services"]
    assert services["ps-0"]["user"] == "0:0"
    assert services["ps-0"]["environment"]["CLUSTER_KIT_USER"] == "owner"
    assert services["chief-0"]["user"].startswith("${UID")


@pytest.mark.parametrize(
    ("more", "key_path", "hint"),
    [
        ('gpus = ["GPU-00000001-aaaa-bbbb-cccc-0123456789ab"]\n', "gpus", "write its index"),
        ('gpus = ["0:1"]\nworker = 1\n', "gpus", "write its index"),
        ('gpus = ["0"]\nshare_gpus = true\n', "gpu_memory", 'gpu_memory = "8g"'),
        ('[role.chief]\ngpus = ["MIG-a"]\n', "role.chief.gpus", "write its index"),
    ],
)
def test_gpus_that_only_one_host_has_are_refused(
    more: str, key_path: str, hint: str, cli: Cli, root: Path
) -> None:
    manifest(root, more)
    result = cli("render", "demo", "--portable")
    assert result.code == 2
    assert key_path in result.err and hint in result.err


def test_indexes_are_kept_and_auto_means_the_cpu_with_a_note(cli: Cli, root: Path) -> None:
    manifest(root, 'gpus = ["1", "0"]\n')
    services = yaml.safe_load(cli("render", "demo", "--portable", "--dry-run").out)["services"]
    device = services["worker-0"]["deploy"]["resources"]["reservations"]["devices"][0]
    assert device["device_ids"] == ["1"]
    assert (
        '"name": "GPU 1", "pci": "", "uuid": ""'
        in services["worker-0"]["environment"]["CLUSTER_KIT_GPUS"]
    )
    manifest(root, 'gpus = "auto"\n')
    result = cli("render", "demo", "--portable", "--dry-run")
    assert "the workers train on the CPU" in result.err
    assert "device_ids" not in result.out


def test_files_outside_of_the_folder_are_refused(
    cli: Cli, root: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    for part in ("Train", "Validate", "Test"):
        (outside / part).mkdir()
    result = cli("render", "demo", "--portable", "--data", str(outside))
    assert result.code == 2
    assert f"{outside} is outside of {root}" in result.err
    assert "move it into the folder" in result.err
    (outside / "far.toml").write_text(MANIFEST)
    result = cli("render", str(outside / "far.toml"), "--portable")
    assert result.code == 2 and "is outside of" in result.err
    manifest(root, f'data = "{outside}"\n')
    result = cli("render", "demo", "--portable", "--dry-run")
    assert result.code == 0
    assert f"source: '{outside}'" in result.out
    assert "every host that runs the file must have it" in result.err


def test_the_header_names_the_command_that_makes_this_file(
    cli: Cli, mine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = (
        "--name",
        "its-name",
        "--program",
        "programs/mine/train.py",
        "--args",
        "-x '{{ index }}'",
    )
    for portable in ((), ("--portable",)):
        written = cli("render", "compose/demo.toml", *options, *portable, "--dry-run").out
        command = next(line for line in written.splitlines() if "then run `" in line).split("`")[1]
        words = shlex.split(command)
        assert words[:3] == ["cluster-kit", "render", "demo"]
        assert cli(*words[1:]).code == 0
        folder = "portable" if portable else "compose"
        assert (mine / folder / "its-name/compose.yaml").read_text() == written


def test_a_portable_file_is_recognized_by_its_name(root: Path, cli: Cli) -> None:
    cli("render", "demo", "--portable", "--name", "committed")
    assert "committed" in workspace.Workspace(root).known()
    assert verb.platform_of("compose").changed("", "") == ("kit",)
