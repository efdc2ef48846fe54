"""`render --portable`: the same bytes on every machine; `--check`: which source has changed."""

from __future__ import annotations

import shlex
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster_kit import workspace
from cluster_kit.cli import render as verb
from cluster_kit.facts import HostFacts
from cluster_kit.image.base import REGISTRY_BASE
from cluster_kit.run.starting import image_tags, portable_build, prepare
from tests.make import gpus, host, network
from tests.unit.command_line import MANIFEST, Cli

PORTABLE = "portable/demo/compose.yaml"
ELSEWHERE = host(
    cpus=2,
    memory=2**30,
    user="0:0",
    gpus=gpus(3),
    networks=(network("172.16.0.0/12"), network("10.0.0.0/8")),
)


def on(monkeypatch: pytest.MonkeyPatch, facts: HostFacts) -> None:
    monkeypatch.setattr(prepare, "gather", lambda _engine: facts)


def manifest(root: Path, more: str) -> None:
    (root / "compose" / "demo.toml").write_text(MANIFEST + more)


@pytest.fixture
def mine(root: Path) -> Path:
    """A program and data of one's own, in the workspace."""
    for folder in ("programs/mine", "data"):
        (root / folder).mkdir(parents=True)
    (root / "programs/mine/train.py").write_text("print(1)\n")
    manifest(root, 'program = "../programs/mine/train.py"\ndata = "../data"\n')
    return root


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


def test_what_it_mounts_is_relative_and_runs_as_whoever_owns_the_output(
    cli: Cli, mine: Path
) -> None:
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


def test_the_output_directory_is_committed_and_its_content_is_not(cli: Cli, root: Path) -> None:
    cli("render", "demo", "--portable")
    ignored = (root / "portable/demo/output/.gitignore").read_text().splitlines()
    assert ignored[1:] == ["*", "!.gitignore"]


def test_a_task_with_a_bandwidth_limit_starts_as_root_whoever_calls(cli: Cli, root: Path) -> None:
    manifest(root, "[role.ps]\nbandwidth = '10mbit'\n")
    services = yaml.safe_load(cli("render", "demo", "--portable", "--dry-run").out)["services"]
    assert services["ps-0"]["user"] == "0:0"
    assert services["ps-0"]["environment"]["CLUSTER_KIT_USER"] == "owner"
    assert services["chief-0"]["user"].startswith("${UID")


@pytest.mark.parametrize(
    ("more", "place", "cure"),
    [
        ('gpus = ["GPU-00000001-aaaa-bbbb-cccc-0123456789ab"]\n', "gpus", "write its index"),
        ('gpus = ["0:1"]\nworker = 1\n', "gpus", "write its index"),
        ('gpus = ["0"]\nshare_gpus = true\n', "gpu_memory", 'gpu_memory = "8g"'),
        ('[role.chief]\ngpus = ["MIG-a"]\n', "role.chief.gpus", "write its index"),
    ],
)
def test_gpus_that_only_one_host_has_are_refused(
    more: str, place: str, cure: str, cli: Cli, root: Path
) -> None:
    manifest(root, more)
    said = cli("render", "demo", "--portable")
    assert said.code == 2
    assert place in said.err and cure in said.err


def test_indexes_are_kept_and_auto_is_the_cpu_and_says_so(cli: Cli, root: Path) -> None:
    manifest(root, 'gpus = ["1", "0"]\n')
    services = yaml.safe_load(cli("render", "demo", "--portable", "--dry-run").out)["services"]
    device = services["worker-0"]["deploy"]["resources"]["reservations"]["devices"][0]
    assert device["device_ids"] == ["1"]
    assert (
        '"name": "GPU 1", "pci": "", "uuid": ""'
        in services["worker-0"]["environment"]["CLUSTER_KIT_GPUS"]
    )
    manifest(root, 'gpus = "auto"\n')
    said = cli("render", "demo", "--portable", "--dry-run")
    assert "the workers train on the CPU" in said.err
    assert "device_ids" not in said.out


def test_what_lies_outside_of_the_folder_cannot_be_copied_with_it(
    cli: Cli, root: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    for part in ("Train", "Validate", "Test"):
        (outside / part).mkdir()
    said = cli("render", "demo", "--portable", "--data", str(outside))
    assert said.code == 2
    assert f"{outside} is outside of {root}" in said.err
    assert "move it into the folder" in said.err
    (outside / "far.toml").write_text(MANIFEST)
    said = cli("render", str(outside / "far.toml"), "--portable")
    assert said.code == 2 and "is outside of" in said.err
    manifest(root, f'data = "{outside}"\n')
    said = cli("render", "demo", "--portable", "--dry-run")
    assert said.code == 0
    assert f"source: '{outside}'" in said.out
    assert "every host that runs the file must have it" in said.err


def test_the_header_names_the_command_that_makes_exactly_this_file(
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


def test_the_image_is_built_by_compose_where_its_source_is_there(
    cli: Cli, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without = cli("render", "demo", "--portable", "--dry-run").out
    assert "build:" not in without
    assert "`cluster-kit image build --variant cpu` builds it" in without
    monkeypatch.setattr(portable_build, "SOURCE", root.resolve() / "images/trainer")
    text = cli("render", "demo", "--portable", "--dry-run").out
    services = yaml.safe_load(text)["services"]
    assert [name for name, service in services.items() if "build" in service] == ["chief-0"]
    build: dict[str, Any] = services["chief-0"]["build"]
    assert build["context"] == "../../images/trainer"
    assert build["dockerfile"] == "recipe/Dockerfile"
    inputs = services["chief-0"]["image"].rpartition("-")[2]
    assert build["args"] == {
        "BASE": f"${{CLUSTER_KIT_BASE:-{REGISTRY_BASE}}}", "INPUTS": inputs, "VARIANT": "cpu"
    }  # fmt: skip
    monkeypatch.setattr(portable_build, "CLONE", None)
    installed = cli("render", "demo", "--portable", "--dry-run").out
    assert "build:" not in installed, "a wheel in .venv is not copied with the folder"
    monkeypatch.setattr(portable_build, "CLONE", root)
    (root / "more.txt").write_text("left-pad==1.0\n")
    extra = cli("render", "demo", "--portable", "--dry-run", "--requirements", "more.txt").out
    assert "build:" not in extra
    assert "`cluster-kit image build compose/demo` builds it" in extra


def stale(cli: Cli, *words: str) -> str:
    said = cli("render", "demo", *words, "--check")
    assert said.code == 2, said.err
    assert "cluster-kit render demo" in said.err and "--diff" in said.err
    return next(line for line in said.err.splitlines() if "is stale" in line).split("stale: ")[1]


def test_check_says_which_of_manifest_kit_and_host_has_changed(
    cli: Cli, mine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = (mine / "compose/demo.toml").read_text()
    cli("render", "demo")
    (mine / "compose/demo.toml").write_text(before + "# a remark\n")
    assert cli("render", "demo", "--check").code == 0, "a comment changes nothing"
    (mine / "compose/demo.toml").write_text(before + "worker = 40\n")
    assert stale(cli) == "the manifest has changed"
    (mine / "compose/demo.toml").write_text(before)
    assert stale(cli, "--ps", "4") == "the manifest has changed"
    usual = host()
    on(monkeypatch, replace(usual, user="7:7"))
    assert stale(cli) == "the host (user) has changed"
    on(monkeypatch, replace(usual, networks=ELSEWHERE.networks, user="7:7"))
    assert stale(cli) == "the host (user, subnet) has changed"
    on(monkeypatch, usual)
    monkeypatch.setattr(image_tags, "image_tag", lambda variant: f"cluster-kit/trainer:{variant}-9")
    assert stale(cli) == "the kit has changed"
    (mine / "compose/demo.toml").write_text(before + "port = 4000\n")
    assert stale(cli) == "the manifest and the kit have changed"
    monkeypatch.undo()


def test_check_tells_a_file_that_was_edited_or_is_of_an_older_kit(cli: Cli, root: Path) -> None:
    cli("render", "demo", "--portable")
    assert cli("render", "demo", "--portable", "--check").code == 0
    text = (root / PORTABLE).read_text()
    (root / PORTABLE).write_text(text.replace("init: true", "init: false"))
    assert stale(cli, "--portable") == "the file itself was edited"
    (root / PORTABLE).write_text(text.replace("# made of", "# of"))
    assert stale(cli, "--portable") == "the kit has changed"


def test_gpus_that_others_take_are_the_hosts_change(
    cli: Cli, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest(root, 'gpus = "auto"\n')
    facts = host(gpus=gpus(4))
    on(monkeypatch, facts)
    cli("render", "demo")
    on(monkeypatch, replace(facts, gpus_taken=(("0", "other"),)))
    assert stale(cli) == "the host (gpus) has changed"


def test_a_portable_file_is_known_by_its_name(root: Path, cli: Cli) -> None:
    cli("render", "demo", "--portable", "--name", "committed")
    assert "committed" in workspace.Workspace(root).known()
    assert verb.backend("compose").changed("", "") == ("kit",)


def test_a_dockerfile_is_built_by_compose_elsewhere(cli: Cli, root: Path) -> None:
    manifest(root, 'build = "../image"\n')
    (root / "image").mkdir()
    (root / "image/Dockerfile").write_text("FROM cluster-kit/trainer:cpu-0\n")
    assert cli("render", "demo", "--portable").code == 0
    text = (root / PORTABLE).read_text()
    file = yaml.safe_load(text)
    first = next(iter(file["services"].values()))
    built = {"context": "../../image", "dockerfile": "Dockerfile", "network": "host"}
    assert first["build"] == built
    assert file["x-task"]["image"].startswith("cluster-kit/built:")
    assert "entrypoint" not in file["x-task"]
    (root / "image/Dockerfile").write_text("FROM cluster-kit/trainer:cpu-1\n")
    assert stale(cli, "--portable") == "the manifest has changed"


def test_a_dockerfile_outside_of_the_folder_is_refused_elsewhere(
    cli: Cli, root: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("image")
    (outside / "Dockerfile").write_text("FROM a\n")
    manifest(root, f'build = "{outside}"\n')
    said = cli("render", "demo", "--portable")
    assert said.code == 2 and f"{outside} is outside of" in said.err
