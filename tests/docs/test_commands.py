"""Every command on a page exists, and a test runs it, or its output was recorded from a real run.

The block says which: `console run`, `console shown 2026-11-21`, or `console elsewhere` for commands
on a machine that the tests do not have.
"""

from __future__ import annotations

import shutil
from datetime import date
from pathlib import Path

import pytest

from tests.docs.commands import (
    ELSEWHERE,
    RUN,
    SHOWN,
    everywhere,
    in_blocks,
    in_prose,
    parsed,
    words_for_kit,
)
from tests.docs.markdown import Page, all_pages
from tests.docs.on_kubernetes import ON_KUBERNETES
from tests.docs.on_slurm import ON_SLURM
from tests.docs.run_by import BY_THE_PAGE, RUN_BY
from tests.make import ROOT
from tests.unit.command_line import Cli

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")

PAGES = list(all_pages().values())
WITH_COMMANDS = [p for p in PAGES if any(c.mark == RUN for c in in_blocks(p))]
STACK = (
    "deploy --resolve-image never -c stack.yaml cluster-kit-quickstart",
    "ps cluster-kit-quickstart",
    "rm cluster-kit-quickstart",
)
FOR_ANOTHER_MACHINE = {
    "prometheus-node-exporter --collector.textfile.directory='/home/you/project/runs/*/latest'",
    "sudo nvidia-ctk runtime configure --runtime=docker",
    "sudo systemctl restart docker",
    *(f"docker stack {words}" for words in STACK),
    "docker swarm init --advertise-addr 127.0.0.1",
    "docker swarm leave --force",
    *(f"cluster-kit {verb} quickstart --engine swarm" for verb in ("doctor", "up", "down")),
    "cluster-kit image push quickstart --to ssh://you@host-2 --to ssh://you@host-3",
    "cd compose/quickstart",
    "cluster-kit render quickstart --engine swarm",
    "docker service logs cluster-kit-quickstart_chief-0",
    "cluster-kit up smoke --program tests/bench/step_probe.py --style all-tasks --chief 0 --ps 0 "
    '--set evaluator=0 --workers 1 --args="fit 10000"',  # minutes, on a quiet machine
    "make bench ARGS=growth",  # half an hour
    *ON_KUBERNETES,
    *ON_SLURM,
}
ONLY_OF_UP = {
    "--keep",
    "--resume",
    "--detach",
    "--json",
    "--exit-code",
    "program",
    "--serve",
    "--watch",
    "--debug",
    "chief-0",
}
WITHOUT_ENGINE = ("render", "new", "schema")


def test_no_page_guesses_the_name_of_the_image() -> None:
    """An engine may have images for several versions of TensorFlow; `image tag` prints the right
    one."""
    lines = {c.line for page in PAGES for c in in_blocks(page)}
    assert any("cluster-kit image tag" in line for line in lines)
    assert [line for line in lines if "docker images" in line or "docker image ls" in line] == []


def test_a_block_of_commands_says_how_it_is_tested(subtests: pytest.Subtests) -> None:
    for page in PAGES:
        with subtests.test(page=page.name):
            for block in page.blocks:
                language, _, rest = block.info.partition(" ")
                if language == "console":
                    assert rest in (RUN, ELSEWHERE) or date.fromisoformat(
                        rest.removeprefix(f"{SHOWN} ")
                    )
                elif page.name != "CONTRIBUTING.md" and language:
                    assert not block.text.startswith(("$ ", "make ", "cluster-kit ", "docker "))


def test_every_command_of_the_kit_exists(subtests: pytest.Subtests) -> None:
    for page in PAGES:
        with subtests.test(page=page.name):
            for command in (*in_blocks(page), *in_prose(page)):
                words = words_for_kit(command)
                if words is not None:
                    parsed(words)


def test_a_command_is_run_by_a_test(subtests: pytest.Subtests) -> None:
    for command in (c for c in everywhere() if c.mark == RUN):
        with subtests.test(page=command.page, command=command.line):
            words = words_for_kit(command) or [""]
            known = command.line in RUN_BY or command.page in BY_THE_PAGE
            assert known or words[0] in WITHOUT_ENGINE, (
                f"enter `{command.line}` in tests/docs/run_by.py, with the test that runs it"
            )


def test_run_by_has_only_commands_on_pages() -> None:
    assert RUN_BY.keys() <= {command.line for command in everywhere() if command.mark == RUN}


def test_the_test_that_runs_a_command_is_there(subtests: pytest.Subtests) -> None:
    for test in sorted({*RUN_BY.values(), *BY_THE_PAGE.values()}):
        with subtests.test(test=test):
            file, _, name = test.partition("::")
            assert f"def {name}(" in (ROOT / file).read_text(encoding="utf-8")


def test_commands_that_no_test_can_run_are_listed() -> None:
    assert {c.line for c in everywhere() if c.mark == ELSEWHERE} == FOR_ANOTHER_MACHINE


@pytest.fixture
def things(root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace with the kit's manifests, and the files that the pages' commands name."""
    for manifest in (ROOT / "compose").glob("*.toml"):
        shutil.copy(manifest, root / "compose")
    files = root / "path" / "to"
    files.mkdir(parents=True)
    for name in ("train.py", "old.py"):
        (files / name).write_text("print('hello')\n")
    (files / "requirements.txt").write_text("tqdm\n")
    for part in ("Train", "Validate", "Test"):
        (root / "images" / part).mkdir(parents=True)
    for name in ("rose", "tulip"):
        (files / "flowers" / name).mkdir(parents=True)
        (files / "flowers" / name / "1.jpg").touch()
    (root / "mine").mkdir()
    for name in ("pipeline.toml", "pipeline.config"):
        (root / "mine" / name).write_text("")
    (root / "measurements").mkdir()
    (root / "measurements" / "points.csv").write_text("0,1\n1,3\n")
    monkeypatch.setenv("HOME", str(root))
    return root


@pytest.mark.parametrize("page", WITH_COMMANDS, ids=lambda page: page.name)
def test_commands_without_an_engine_run_and_every_cluster_can_be_planned(
    page: Page, cli: Cli, things: Path
) -> None:
    for command in in_blocks(page):
        words = words_for_kit(command) if command.mark == RUN else None
        if not words or "mine.toml" in words:
            continue
        if words[0] == "up":
            words = ["render", *(w for w in words[1:] if w not in ONLY_OF_UP), "--dry-run"]
        if words[0] in WITHOUT_ENGINE:
            result = cli(*words)
            assert result.code == 0, f"{command.line}: {result.err}"
