"""`render` for Kubernetes: what it writes, when a file is stale, and what it refuses."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from cluster_kit.cli import render
from cluster_kit.errors import UsageError
from cluster_kit.plan.portable import debugged
from cluster_kit.platforms.kubernetes.kubernetes_platform import Kubernetes
from cluster_kit.platforms.variables import refused_secrets
from cluster_kit.resolved import SECRETS, Mount
from tests.make import cluster
from tests.unit.command_line import Cli

FILE = Path("compose/demo/kubernetes.yaml")
RENDER = ("render", "demo", "--engine", "kubernetes")


@pytest.fixture(autouse=True)
def _manifest(root: Path) -> None:
    (root / "compose" / "demo.toml").write_text('format = 1\nname = "demo"\n')


def test_it_writes_one_file_with_the_commands_to_start_it(root: Path, cli: Cli) -> None:
    result = cli(*RENDER, "--json")
    assert json.loads(result.out)["file"] == str(root / FILE)
    text = (root / FILE).read_text()
    assert "kubectl apply -f kubernetes.yaml" in text
    assert "cluster-kit render demo --engine kubernetes" in text
    assert cli(*RENDER).err == "compose/demo/kubernetes.yaml: 5 tasks on Kubernetes\n"
    assert not (root / FILE.parent / "compose.yaml").exists()


def test_the_file_of_a_jobset_names_its_objects(root: Path, cli: Cli) -> None:
    assert cli(*RENDER, "--set", "kubernetes.jobset=true").code == 0
    text = (root / FILE).read_text()
    assert "kubectl logs -f job/ck-demo-chief-0" in text
    assert "kubectl delete jobset,svc,cm,netpol -l cluster-kit.cluster=demo" in text


def test_a_stale_file_is_reported(root: Path, cli: Cli) -> None:
    assert "is missing" in cli(*RENDER, "--check").err
    cli(*RENDER)
    assert cli(*RENDER, "--check").code == 0
    assert "written with other options" in cli(*RENDER, "--workers", "3", "--check").err


def test_the_file_has_no_values_of_secrets(
    root: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANDB_API_KEY", "very-secret")
    (root / "compose" / "token.txt").write_text("hidden-too")
    more = '[secret]\ntoken = "token.txt"\n[role.chief]\nsecrets = ["WANDB_API_KEY"]\n'
    with (root / "compose" / "demo.toml").open("a") as file:
        file.write(more)
    assert cli(*RENDER).code == 0
    text = (root / FILE).read_text()
    assert (root / FILE).stat().st_mode & 0o777 == 0o600
    assert "very-secret" not in text and "hidden-too" not in text
    create = "create secret generic ck-demo-env"
    assert f'{create} --from-file=WANDB_API_KEY=<(printf %s "$WANDB_API_KEY")' in text
    assert f"--from-file=token={root}/compose/token.txt" in text


OWN = ("--program", "own/train.py")
PEM = "-----BEGIN KEY-----\nMIIEvQIBADANBgkq\nhkiG9w0BAQEFAASC\n-----END KEY-----\n"


@pytest.fixture
def own(root: Path) -> Path:
    """Returns the directory of a program, with a secret and a rendered cluster in it."""
    folder = root / "own"
    for name, text in {
        "train.py": "print('hello')\n", "lib/credentials.py": "NAMES = 1\n",
        "hf": PEM, "private.env": "A=first-leak", "lib/server.KEY": "second-leak",
        "out/compose.yaml": "# cluster-kit 0.1 wrote this", "out/secrets.yaml": "third-leak",
        "data/images.bin": "images",
    }.items():  # fmt: skip
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (root / "elsewhere").write_text("fifth-leak")
    for name, target in {
        "lib/link": "../train.py", "out-of-it": "../elsewhere", "to-secret": "private.env",
        "folder": "lib", "loop": "loop",
    }.items():  # fmt: skip
        (folder / name).symlink_to(target)
    more = 'data = "../own/data"\n[secret]\nhf = { file = "../own/hf", roles = ["chief"] }\n'
    with (root / "compose" / "demo.toml").open("a") as file:
        file.write(more)
    return folder


def test_files_with_secrets_are_left_out_and_named(cli: Cli, root: Path, own: Path) -> None:
    result = cli(*RENDER, *OWN)
    assert result.code == 0, result.err
    text = (root / FILE).read_text()
    assert "hello" in text and "NAMES" in text and "path: 'lib/link'" in text
    assert not [leak for leak in ("-leak", "MIIE", "hkiG") if leak in text]
    (line,) = (line for line in result.err.splitlines() if "left out" in line)
    gone = ("hf", "private.env", "lib/server.KEY", "out/", "data/", "out-of-it", "to-secret",
            "folder", "loop")  # fmt: skip
    assert [name for name in gone if f"{own}/{name}" not in line] == []
    assert "credentials.py" not in line
    assert "what is data, looks like a secret," in line


def test_an_image_that_is_built_here_is_to_be_pushed(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = (*RENDER, "--set", "kubernetes.registry=ghcr.io/me")
    monkeypatch.setattr(render, "image_present", lambda _, tag: not tag.startswith("ghcr.io"))
    tagged = "`docker tag cluster-kit/trainer:"
    assert f"is built, but not pushed from here: {tagged}" in cli(*words).err
    monkeypatch.setattr(render, "image_present", lambda *_: False)
    assert f"is not built yet: `cluster-kit image build`, then {tagged}" in cli(*words).err


def test_a_roles_secret_next_to_the_program_leads_to_a_warning(cli: Cli, own: Path) -> None:
    result = cli(*RENDER, *OWN)
    assert "secret.hf.roles" in result.err and "every task sees as /program" in result.err
    assert "secret.hf.roles" not in cli(*RENDER).err


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-be", "utf-32"])
@pytest.mark.parametrize("content", [PEM, f"key = {PEM!r}", "x = 'MIIEvQIBADANBgkq'"])
def test_a_file_with_a_known_secret_is_refused(
    cli: Cli, root: Path, own: Path, content: str, encoding: str
) -> None:
    (own / "config.py").write_text(content, encoding=encoding)
    result = cli(*RENDER, *OWN)
    assert result.code == 2 and not (root / FILE).exists()
    assert f"{own}/config.py has the value of a secret ({own}/hf)" in result.err
    assert "MIIE" not in result.err and "move the file out" in result.err


@pytest.mark.parametrize("engine", ["kubernetes", "swarm", "slurm", "compose"])
def test_a_known_secret_in_the_text_is_refused(
    cli: Cli, root: Path, monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    monkeypatch.setenv("MINE", "it's$ MIIEvQIBADANBgkq")
    more = 'secrets = ["MINE"]\nenvironment = { OPEN = "<it\'s$ MIIEvQIBADANBgkq>" }\n'
    more += '[slurm]\ndatasets = "/shared"\n' if engine == "slurm" else ""
    with (root / "compose" / "demo.toml").open("a") as file:
        file.write(f"[role.worker]\n{more}")
    result = cli("render", "demo", "--engine", engine)
    assert result.code == 2 and "would have the value of a secret in clear: MINE" in result.err
    assert "MIIE" not in result.err
    assert not [path for path in (root / "compose").rglob("*") if path.suffix in (".yaml", ".sh")]


AWS = "/wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
HOOK = "https://hooks.slack.com/services/T0/B0/XXXX0123456789abcdef"


@pytest.mark.parametrize("value", [AWS, HOOK, "~wJalrXUtnFEMIK7MDENG", "https://intern.example/"])
@pytest.mark.parametrize("engine", ["kubernetes", "swarm", "slurm", "compose"])
def test_a_declared_secret_that_looks_like_a_path_or_an_address_is_refused(
    cli: Cli, root: Path, monkeypatch: pytest.MonkeyPatch, engine: str, value: str
) -> None:
    monkeypatch.setenv("MINE", value)
    more = f'secrets = ["MINE"]\nenvironment = {{ OPEN = "<{value}>" }}\n'
    more += '[slurm]\ndatasets = "/shared"\n' if engine == "slurm" else ""
    with (root / "compose" / "demo.toml").open("a") as file:
        file.write(f"[role.worker]\n{more}")
    result = cli("render", "demo", "--engine", engine)
    assert result.code == 2 and "would have the value of a secret in clear: MINE" in result.err


@pytest.mark.parametrize("value", [AWS, HOOK])
def test_a_file_with_a_declared_secret_that_looks_like_a_path_or_an_address_is_refused(
    cli: Cli, root: Path, own: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("MINE", value)
    (own / "config.py").write_text(f"key = {value!r}")
    with (root / "compose" / "demo.toml").open("a") as file:
        file.write('[role.worker]\nsecrets = ["MINE"]\n')
    result = cli(*RENDER, *OWN)
    assert result.code == 2 and f"{own}/config.py has the value of a secret (MINE)" in result.err
    assert value not in result.err


def test_a_value_that_only_its_name_makes_a_secret_may_be_a_path_or_an_address(
    root: Path,
) -> None:
    (root / "key.pem").write_text("")
    token = Mount(str(root / "token"), f"{SECRETS}/token")

    def refused(value: str) -> bool:
        made = cluster(worker=1)
        tasks = [replace(task, environment=(("A_TOKEN", value),)) for task in made.tasks]
        made = replace(made, tasks=tuple(tasks), mounts=(token, Mount("/home/you/x", "/data")))
        return value in refused_secrets(made)

    places = (f"{root}/key.pem", "~", f"{SECRETS}/token", "/data/weights-0123456789abc.h5",
              "https://hub.example:5000/v2/", "s3://bucket/data?page=2")  # fmt: skip
    assert not [value for value in places if refused(value)]
    secrets = (AWS, HOOK, "~wJalrXUtnFEMIK7MDENG", "https://user:password@hub.example",
               "https://hub.example/?sig=0123456789abcdef", "/database/x")  # fmt: skip
    assert [value for value in secrets if refused(value)] == [*secrets]


def test_a_declared_secret_that_is_a_files_path_may_also_be_mounted(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "credentials.json").write_text("{}")
    monkeypatch.setenv("CREDENTIALS", str(root / "credentials.json"))
    made = cluster(worker=1, role={"worker": {"secrets": ["CREDENTIALS"]}})
    assert not refused_secrets(made)


def test_a_program_that_is_too_large_is_refused_and_a_small_one_included(
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
