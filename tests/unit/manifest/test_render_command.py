"""The command in a file's header gives the same overrides as the original command."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from cluster_kit.cli.manifest_options import values
from cluster_kit.manifest.command_line import OVERRIDES, SET_OPTION, masked_words, render_command
from cluster_kit.util.paths import MANIFESTS

ROOT = Path("/home/you/kit")
MANIFEST = ROOT / "compose" / "demo.toml"


def parsed(words: list[str]) -> dict[str, object]:
    """Returns what typer makes of options; each has a value, unless it is a switch."""
    keys = {override.option: override.key for override in OVERRIDES}
    for override in OVERRIDES:
        if override.kind == "switch" and override.option in words:
            after = words.index(override.option) + 1
            words = [*words[:after], "True", *words[after:]]
    pairs = list(zip(words[::2], words[1::2], strict=True))
    texts = {keys[name]: text for name, text in pairs if name != SET_OPTION}
    return values(texts, [text for name, text in pairs if name == SET_OPTION])


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--chief", "0", "--workers", "3", "--ps", "0", "--style", "all-tasks", "--name", "x"],
        ["--program", "classifier", "--args", "--a 'b c' --rank={{ index }} '{{ ps_hosts }}'"],
        ["--args", "--x={{ index if role == 'ps' else 'a b' }}"],
        ["--program", "linear-regression", "--set", "evaluator=1", "--requirements", ""],
        ["--program", "classifier", "--tf1", "--requirements", "r.txt"],
        ["--set", "tf1=false"],
        ["--gpus", "0,1", "--set", "deadline.start=30", "--set", "role.ps.cpus=0.5"],
        ["--gpus", "auto", "--set", 'server="python"', "--set", 'args=["a", "b"]'],
        ["--set", "role.worker={cpus = 1, environment = {A = 'it''s'}}"],
    ],
)
def test_the_command_gives_the_same_overrides(words: list[str]) -> None:
    overrides = parsed(words)
    typed = shlex.split(render_command(MANIFEST, overrides, ROOT))
    assert typed[:3] == ["cluster-kit", "render", "demo"]
    assert parsed(typed[3:]) == overrides


def test_paths_are_relative_to_the_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    overrides = parsed(["--program", "mine/train.py", "--data", "/data", "--requirements", "r.txt"])
    other = tmp_path / "more" / "x.toml"
    command = render_command(other, overrides, tmp_path)
    assert command == (
        "cluster-kit render more/x.toml --program mine/train.py --requirements r.txt --data /data"
    )
    assert parsed(shlex.split(command)[3:]) == overrides


def test_a_path_of_set_stays_one_that_starts_at_the_manifests_folder() -> None:
    overrides = parsed(["--set", 'data="../shards"', "--set", "worker=3"])
    command = render_command(MANIFEST, overrides, ROOT, by_set={"data", "worker"})
    assert shlex.split(command)[3:] == ["--workers", "3", "--set", 'data="../shards"']


def test_a_manifest_of_the_kit_has_its_name_unless_the_folder_has_one_of_that_name(
    tmp_path: Path,
) -> None:
    shipped = MANIFESTS / "quickstart.toml"
    overrides = parsed(["--program", "classifier", "--args", "--lr 0.1"])
    command = "cluster-kit render quickstart --program classifier --args '--lr 0.1'"
    assert render_command(shipped, overrides, tmp_path) == command
    (tmp_path / "compose").mkdir()
    (tmp_path / "compose" / "quickstart.toml").touch()
    assert str(shipped) in render_command(shipped, overrides, tmp_path)


def test_a_secret_is_not_written() -> None:
    overrides = parsed(["--set", "role.chief.environment.API_TOKEN=hush-hush"])
    command = render_command(MANIFEST, overrides, ROOT)
    assert "hush" not in command
    assert "role.chief.environment.API_TOKEN=***" in command


def test_the_value_of_an_option_in_another_key_is_masked() -> None:
    overrides = {
        "extra_args": ["mine-a7", "--more"],
        "sidecar": {"web": {"command": ["mine-b7", "x"]}, "db": {"command": ["mine-c7"]}},
    }
    merged = {
        "args": ["--api-token", "mine-a7", "--more"],
        "sidecar": {
            "web": {"command": ["mine-b7", "x"], "entrypoint": ["serve", "--password"]},
            "db": {"command": ["mine-c7"], "entrypoint": 5},
        },
    }
    command = render_command(MANIFEST, overrides, ROOT, merged)
    assert [word for word in shlex.split(command) if "mine" in word] == [
        'sidecar.db.command=["mine-c7"]'
    ]
    assert "'***' --more" in shlex.split(command)
    whole = {"sidecar": {"web": {"entrypoint": ["x", "--api-key"], "command": ["mine"]}}}
    assert "mine" not in render_command(MANIFEST, whole, ROOT)
    odd = {"sidecar": {"web": {"command": ["x"]}}, "extra_args": ["y"]}
    for tables in ({"sidecar": 5}, {"sidecar": {"web": 5}}, {"args": 5, "sidecar": {}}):
        assert render_command(MANIFEST, odd, ROOT, tables) == render_command(MANIFEST, odd, ROOT)


def test_a_secret_in_a_shell_line_is_masked() -> None:
    lines = ["export WANDB_API_KEY='mine a' OTHER=1", "login --token mine-b7", "A_TOKEN=$A_TOKEN"]
    command = render_command(MANIFEST, {"slurm": {"setup": lines}}, ROOT)
    assert "mine" not in command and "A_TOKEN=$A_TOKEN" in command


def test_the_command_has_no_secret_of_an_argument_or_an_address() -> None:
    overrides = {
        "extra_args": ["--api-token", "mine-a7", "--db=postgres://me:mine-b7@db"],
        "sidecar": {"web": {"command": ["--password=mine-c7"], "environment": {"A_KEY": "mine-d"}}},
        "role": {"worker": {"environment": {"PROXY": "http://me:mine-e7@proxy"}}},
    }
    command = render_command(MANIFEST, overrides, ROOT)
    assert "mine" not in command and command.count("***") == 5


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        ('role.worker.environment={API_TOKEN="s3cr3t-1", A=1}', '{API_TOKEN = "***", A = 1}'),
        ('role.worker={environment={"API_TOKEN" = "s3cr3t-1"}}', '{API_TOKEN = "***"}'),
        ("role.worker.environment.API_TOKEN=s3cr3t-1", "***"),
        ('args=["--api-token", "s3cr3t-1"]', '"***"'),
    ],
)
def test_a_typed_command_is_shown_without_secrets(typed: str, shown: str) -> None:
    apart = masked_words(["render", "demo", "--set", typed, "--ps", "2"])
    assert "s3cr3t-1" not in " ".join(apart) and apart[-2:] == ["--ps", "2"]
    assert shown in apart[3]
    assert masked_words(["render", f"--set={typed}"])[1].endswith(apart[3])


def test_a_typed_command_without_secrets_is_shown_unchanged() -> None:
    typed = ["render", "demo", "--set", 'role.worker.environment={A="b c"}', "--set", "x", "--set"]
    assert masked_words(typed) == typed
