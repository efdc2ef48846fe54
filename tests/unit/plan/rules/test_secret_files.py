"""Secrets as files, and files of variables: what is refused before anything starts."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cluster_kit.resolved import SECRETS
from tests.make import cluster, problems_of

LEAST = 'format = 1\nname = "demo"\n'


def key_paths(text: str, folder: Path) -> list[str]:
    return [problem.key_path for problem in problems_of(LEAST + text, folder)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "token").write_text("abc")
    (tmp_path / "my.env").write_text("# comment\nA=1\nexport B='x'\n\nC: yaml\n")
    return tmp_path


@pytest.mark.parametrize(
    "table",
    ['a = "token"', 'a = { environment = "HF_TOKEN" }', 'a = { file = "token", roles = ["ps"] }'],
)
def test_sources_of_a_secret(table: str, folder: Path) -> None:
    assert key_paths(f"[secret]\n{table}\n", folder) == []


@pytest.mark.parametrize(
    ("table", "key_path"),
    [
        ('a = "absent"', "secret.a"),
        ('a = "."', "secret.a"),
        ('a = ""', "secret.a"),
        ("a = {}", "secret.a"),
        ('a = { file = "token", environment = "B" }', "secret.a"),
        ('a = { environment = "not a name" }', "secret.a.environment"),
        ('a = { environment = "TF_CONFIG" }', "secret.a.environment"),
        ('a = { file = "token", roles = ["chef"] }', "secret.a.roles"),
        ('"../a" = "token"', 'secret."../a"'),
        ("a = 1", "secret.a"),
        ('a = { fil = "token" }', "secret.a.fil"),
    ],
)
def test_invalid_secrets(table: str, key_path: str, folder: Path) -> None:
    found = key_paths(f"[secret]\n{table}\n", folder)
    assert found and all(key.replace('"', "") == key_path.replace('"', "") for key in found[:1])


@pytest.mark.parametrize(
    "text",
    ["TF_CONFIG=x", "export CUDA_VISIBLE_DEVICES=", " CLUSTER_KIT_X: a", "A=1\nTF_CONFIG="],
)
def test_a_file_of_variables_must_not_set_the_kits_own(text: str, folder: Path) -> None:
    (folder / "my.env").write_text(text)
    (problem,) = problems_of(f'{LEAST}[role.ps]\nenv_file = "my.env"\n', folder)
    assert problem.key_path == "role.ps.env_file"
    assert "the kit's own" in problem.rule


def test_a_file_of_variables_must_exist_and_be_readable(folder: Path) -> None:
    assert key_paths('[role.ps]\nenv_file = "my.env"\n', folder) == []
    for name in ("absent", ".", ""):
        assert key_paths(f'[task.ps-0]\nenv_file = "{name}"\n', folder) == ["task.ps-0.env_file"]
    (folder / "my.env").write_bytes(b"\xff\xfe")
    assert key_paths('[role.ps]\nenv_file = "my.env"\n', folder) == ["role.ps.env_file"]


@pytest.mark.skipif(os.getuid() == 0, reason="root may read every file")
def test_an_unreadable_file_is_refused(folder: Path) -> None:
    (folder / "token").chmod(0)
    assert key_paths('[secret]\na = "token"\n', folder) == ["secret.a"]


def test_which_tasks_have_a_secret() -> None:
    made = cluster(
        secret={
            "all": "one",
            "some": {"file": "two", "roles": ["worker"]},
            "mine": {"environment": "MINE", "roles": ["chief"]},
        }
    )
    assert [mount.target for mount in made.mounts] == [f"{SECRETS}/all"]
    for task in made.tasks:
        targets = [mount.target for mount in task.mounts]
        assert targets == ([f"{SECRETS}/some"] if task.role == "worker" else [])
        assert task.from_caller == (("MINE",) if task.role == "chief" else ())
