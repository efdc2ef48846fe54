"""Slurm on the command line: what `render` writes and refuses; no other command runs a job."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from cluster_kit.cli import render
from cluster_kit.errors import HostError, UsageError
from cluster_kit.plan.portable import debugged
from cluster_kit.platforms.slurm.slurm_platform import Slurm
from cluster_kit.workspace import Workspace
from tests.fakes.hosts import Machine
from tests.make import cluster
from tests.unit.command_line import Cli

FILE = Path("compose/demo/sbatch.sh")
RENDER = ("render", "demo", "--engine", "slurm", "--set", "slurm.image=trainer.sif")


@pytest.fixture(autouse=True)
def _manifest(root: Path) -> None:
    (root / "compose" / "demo.toml").write_text('format = 1\nname = "demo"\n')


def test_it_writes_a_script_with_the_commands_to_submit_it(
    root: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert json.loads(cli(*RENDER, "--json").out)["file"] == str(root / FILE)
    text = (root / FILE).read_text()
    for words in (
        "`sbatch compose/demo/sbatch.sh`",
        "`squeue --me`, `tail -F cluster-kit-demo-*.log`",
        "`scancel --name=cluster-kit-demo`",
        "apptainer build trainer.sif docker-archive://trainer.tar",
        "cluster-kit render demo --engine slurm --set",
    ):
        assert words in text
    assert cli(*RENDER).err == "compose/demo/sbatch.sh: 5 tasks on Slurm\n"
    monkeypatch.setattr(render, "image_present", lambda *_: False)
    assert "make trainer.sif of it" in cli(*RENDER).err
    assert Workspace(root).known() == ["demo"]


def test_without_an_image_no_image_is_needed(root: Path, cli: Cli) -> None:
    result = cli(*RENDER[:4], "--set", "slurm.datasets=/shared/datasets")
    assert (result.code, result.err) == (0, "compose/demo/sbatch.sh: 5 tasks on Slurm\n")


def test_a_password_in_the_requirements_is_in_no_file(root: Path, cli: Cli) -> None:
    address = "https://me:pa55w0rd@pip.example/simple"
    (root / "compose" / "r.txt").write_text(f"--extra-index-url {address}\na\n")
    own = (*RENDER[:4], "--set", "slurm.datasets=/x", "--requirements", "compose/r.txt")
    assert cli(*own).code == 0
    files = [path for path in (root / FILE).parent.rglob("*") if path.is_file()]
    assert not any("pa55w0rd" in path.read_text() for path in files)
    assert "needs: --extra-index-url https://me:***@pip.example" in (root / FILE).read_text()


def test_a_stale_script_is_reported(root: Path, cli: Cli) -> None:
    assert "is missing" in cli(*RENDER, "--check").err
    cli(*RENDER)
    assert cli(*RENDER, "--check").code == 0
    assert "written with other options" in cli(*RENDER, "--workers", "3", "--check").err
    (root / FILE).with_name("sbatch.json").write_text("{}")
    assert "second file sbatch.json was edited" in cli(*RENDER, "--check").err
    (root / FILE).with_name("sbatch.json").unlink()
    assert "second file sbatch.json is missing" in cli(*RENDER, "--check").err


@pytest.mark.parametrize(
    "words",
    [
        ("up", "demo", "--engine", "slurm"),
        ("up", "demo", "--engine", "slurm", "--detach"),
        ("status", "demo", "--engine", "slurm"),
        ("logs", "demo", "--engine", "slurm"),
        ("down", "demo", "--engine", "slurm"),
        ("doctor", "demo", "--engine", "slurm"),
        ("doctor", "--engine", "slurm"),
    ],
)
def test_no_other_command_runs_a_slurm_job(root: Path, cli: Cli, words: tuple[str, ...]) -> None:
    found = cli(*words)
    assert found.code == 2
    assert 'engine = "slurm": the kit writes a script for Slurm and does not run it' in found.err
    assert "--engine slurm`, then `sbatch` with the file that it names" in found.err
    assert not (root / "runs").exists() and not (root / FILE).exists()


def no_engine() -> NoReturn:
    raise HostError("no engine answers", "install one")


@pytest.mark.parametrize("connect", [no_engine, lambda: None], ids=["no engine", "an engine"])
def test_up_refuses_a_manifest_for_slurm(
    connect: Callable[[], None], root: Path, cli: Cli, machine: Machine
) -> None:
    machine.connects(connect)
    with (root / "compose" / "demo.toml").open("a") as file:
        file.write('engine = "slurm"\n[slurm]\nimage = "trainer.sif"\n')
    found = cli("up", "demo")
    assert found.code == 2 and "then `sbatch` with the file that" in found.err
    assert not (root / "runs").exists()


def test_the_script_has_no_values_of_secrets(
    root: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANDB_API_KEY", "very-secret")
    with (root / "compose" / "demo.toml").open("a") as file:
        file.write('[role.chief]\nsecrets = ["WANDB_API_KEY"]\n')
    assert cli(*RENDER).code == 0
    for path in (root / FILE).parent.iterdir():
        assert "very-secret" not in path.read_text()
    assert "WANDB_API_KEY is not set, which tasks are to have" in (root / FILE).read_text()


def test_a_script_with_a_secret_in_the_setup_is_readable_only_by_its_owner(
    root: Path, cli: Cli
) -> None:
    with (root / "compose" / "demo.toml").open("a") as file:
        file.write('[slurm]\nsetup = ["module load cuda"]\n')
    assert cli(*RENDER).code == 0
    assert stat.S_IMODE((root / FILE).stat().st_mode) & 0o044
    lines = ["export WANDB_API_KEY=very-secret", "wandb login --api-key 'very-secret too'"]
    assert cli(*RENDER, "--set", f"slurm.setup={json.dumps(lines)}").code == 0
    script, *others = (root / FILE), *set((root / FILE).parent.iterdir()) - {root / FILE}
    assert not any("very-secret" in other.read_text() for other in others)
    assert stat.S_IMODE(script.stat().st_mode) == 0o600
    text = script.read_text()
    assert {line.strip() for line in text.splitlines() if "very-secret" in line} == {*lines}
    assert cli(*RENDER, "--set", f"slurm.setup={json.dumps(lines)}", "--check").code == 0


def test_a_debugger_is_refused() -> None:
    made = debugged(cluster(engine="slurm", slurm={"image": "a.sif"}), "chief-0", "/debugpy")
    with pytest.raises(UsageError, match="tasks of Slurm publish none on this host"):
        Slurm().render(made)


def test_special_characters_of_the_script_are_refused() -> None:
    made = cluster(engine="slurm", program="train.py", args=["a\ue000b"])
    with pytest.raises(UsageError, match=r"U\+E000"):
        Slurm().render(made)


def test_no_secret_is_an_argument_of_a_process(root: Path, cli: Cli) -> None:
    with (root / "compose" / "demo.toml").open("a") as file:
        file.write('[role.chief]\nsecrets = ["MINE"]\n')
    assert cli(*RENDER).code == 0
    text = (root / FILE).read_text()
    assert 'export APPTAINERENV_MINE="$MINE"' in text and "give MINE" not in text
