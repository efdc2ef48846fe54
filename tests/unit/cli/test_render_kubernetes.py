"""The verb render for Kubernetes: what it writes, what it calls stale, what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cluster_kit.backends.kubernetes.backend import Kubernetes
from cluster_kit.errors import UsageError
from cluster_kit.plan.debug import debugged
from tests.make import cluster
from tests.unit.command_line import Cli

FILE = Path("compose/demo/kubernetes.yaml")
RENDER = ("render", "demo", "--engine", "kubernetes")


@pytest.fixture(autouse=True)
def _manifest(root: Path) -> None:
    (root / "compose" / "demo.toml").write_text('format = 1\nname = "demo"\n')


def test_it_writes_one_file_that_says_how_it_starts(root: Path, cli: Cli) -> None:
    said = cli(*RENDER, "--json")
    assert json.loads(said.out)["file"] == str(root / FILE)
    text = (root / FILE).read_text()
    assert "kubectl apply -f kubernetes.yaml" in text
    assert "cluster-kit render demo --engine kubernetes" in text
    assert cli(*RENDER).err == "compose/demo/kubernetes.yaml: 5 tasks on Kubernetes\n"
    assert not (root / FILE.parent / "compose.yaml").exists()


def test_the_file_of_a_set_names_its_own_objects(root: Path, cli: Cli) -> None:
    assert cli(*RENDER, "--set", "kubernetes.jobset=true").code == 0
    text = (root / FILE).read_text()
    assert "kubectl logs -f job/ck-demo-chief-0" in text
    assert "kubectl delete jobset,svc,cm,netpol -l cluster-kit.cluster=demo" in text


def test_a_stale_file_is_told(root: Path, cli: Cli) -> None:
    assert "is missing" in cli(*RENDER, "--check").err
    cli(*RENDER)
    assert cli(*RENDER, "--check").code == 0
    assert "manifest has changed" in cli(*RENDER, "--workers", "3", "--check").err


def test_values_of_secrets_are_never_in_it(
    root: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANDB_API_KEY", "very-secret")
    (root / "compose" / "token.txt").write_text("hidden-too")
    more = '[secret]\ntoken = "token.txt"\n[role.chief]\nsecrets = ["WANDB_API_KEY"]\n'
    with (root / "compose" / "demo.toml").open("a") as file:
        file.write(more)
    assert cli(*RENDER).code == 0
    text = (root / FILE).read_text()
    assert "very-secret" not in text and "hidden-too" not in text
    assert 'create secret generic ck-demo-env --from-literal=WANDB_API_KEY="$WANDB_API_KEY"' in text
    assert f"--from-file=token={root}/compose/token.txt" in text


def test_a_program_that_is_too_large_is_refused_and_a_small_one_carried(
    root: Path, cli: Cli
) -> None:
    (root / "own").mkdir()
    (root / "own" / "train.py").write_text("print('hello')\n")
    program = ("--program", "own/train.py")
    assert cli(*RENDER, *program).code == 0
    assert "hello" in (root / FILE).read_text()
    (root / "own" / "model.bin").write_bytes(b"x" * 2**20)
    found = cli(*RENDER, *program)
    assert found.code == 2 and 'claims = { "/program" = "CLAIM" }' in found.err


def test_a_debugger_is_refused() -> None:
    made = debugged(cluster(engine="kubernetes"), "chief-0", "/debugpy")
    with pytest.raises(UsageError, match="a pod publishes none on this host"):
        Kubernetes().render(made)
