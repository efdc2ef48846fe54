"""Every kind of mistake in a manifest: its key, its value, the rule, and the fix."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster_kit.errors import ManifestError
from cluster_kit.manifest.command_line import CommandLine
from cluster_kit.platforms.platform import load, plan
from tests.make import GIB, OWN, gpus, host, inputs, network, problems_of
from tests.unit.command_line import Cli
from tests.unit.mistakes import MISTAKES, command_line, files

HEAD = 'format = 1\nname = "demo"\n'
NETWORKS = (
    network("172.17.0.0/16"),
    network("172.30.0.0/16", "Docker network other"),
    network("10.8.0.0/16", "a route of this host (tun0)"),
)
HOST = host(cpus=8, memory=16 * GIB, gpus=gpus(2), networks=NETWORKS)


def test_a_mistake_is_reported_alone_with_key_value_rule_and_hint(
    tmp_path: Path, subtests: pytest.Subtests
) -> None:
    for name, (text, *expected) in MISTAKES:
        with subtests.test(mistake=name):
            assert_reported_alone(text, tmp_path, *expected)


def test_a_file_that_cannot_be_used_is_reported_alone(
    tmp_path: Path, subtests: pytest.Subtests
) -> None:
    for number, (name, (made, text, *expected)) in enumerate(files.MISTAKES.items()):
        with subtests.test(mistake=name):
            folder = tmp_path / str(number)
            folder.mkdir()
            for path, content in made.items():
                file = folder / path
                (file if path.endswith("/") else file.parent).mkdir(parents=True, exist_ok=True)
                if not path.endswith("/"):
                    file.write_bytes(content)
            assert_reported_alone(text, folder, *expected)


def assert_reported_alone(
    text: str, folder: Path, place: str, value: str, rule: str, hint: str
) -> None:
    (problem,) = problems_of(HEAD + text, folder, HOST)
    assert (problem.place, problem.value) == (place, value)
    assert rule in problem.rule
    assert hint in problem.hint_text(CommandLine())


def test_a_mistake_on_the_command_line_exits_with_2_place_rule_and_hint(
    cli: Cli, root: Path, subtests: pytest.Subtests
) -> None:
    for name, (words, key_path, rule, hint) in command_line.MISTAKES.items():
        with subtests.test(mistake=name):
            (root / "notes.txt").write_text("root:x:0:0\n", encoding="utf-8")
            (root / "train.py").touch()
            result = cli(*words)
            text = " ".join(result.err.replace("│", " ").split())
            assert (result.code, result.out) == (2, "")
            assert "Traceback" not in text
            assert key_path in text and rule in text and hint in text, result.err
            assert not (root / "compose" / "demo").exists()


def test_problems_of_structure_and_meaning_are_reported_together_in_order(tmp_path: Path) -> None:
    text = HEAD + (
        'wrker = 3\nchief = 2\nworker = 0\nps = -1\nevaluator = 7\nprogram = "no.py"\n'
        'data = "nowhere"\nsubnet = "8.8.8.0/24"\nport = "x"\naddressing = "dns"\n'
        'gpus = ["0", "9"]\nretries = 1.5\n'
        '[deadline]\njob = "soon"\n[role.worker]\ncpus = 99\nmemory = "9999g"\n'
        '[role.ps.environment]\nTF_CONFIG = "x"\n'
        "[task.wrkr-1]\ncpus = 1\n"
    )
    found = [problem.key_path for problem in problems_of(text, tmp_path, HOST)]
    assert found == [
        "chief", "worker", "ps", "evaluator", "program", "data", "subnet", "port", "addressing",
        "gpus", "retries", "deadline.job",
        "role.worker.cpus", "role.worker.memory", "role.ps.environment.TF_CONFIG",
        "task.wrkr-1", "wrker",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "key_paths"),
    [
        ('worker = "3"\n[task.worker-2]\ncpus = 1', ["worker"]),
        ('worker = "3"\ngpus = [0]', ["worker"]),
        ('chief = "1"\nps = 0', ["chief"]),
        ('style = "x"\nps = 0', ["style"]),
        ('style = 5\nchief = 0\nps_runs = "program"', ["style"]),
        ('worker = "1"\nchief = 0\nps = 0\nprogram = "linear-regression"', ["worker"]),
        ('chief = true\nps_runs = "program"', ["chief"]),
        ('subnet = 5\n[task.worker-0]\nip = "172.28.0.7"', ["subnet"]),
        ('program = 5\ndata = "."', ["program"]),
        ('worker = "1"\nsubnet = "10.7.0.0/29"\nps = 1', ["worker"]),
        ('share_gpus = "yes"\ngpus = [0]', ["share_gpus"]),
        ('subnet = 5\n[task.ps-0]\nip = "172.28.0.7"\ngps = 1', ["subnet", "task.ps-0.gps"]),
    ],
)
def test_an_invalid_key_causes_no_second_problem_about_its_default(
    text: str, key_paths: list[str], tmp_path: Path
) -> None:
    assert [p.key_path for p in problems_of(HEAD + text, tmp_path, HOST)] == key_paths


def test_an_invalid_key_hides_no_independent_problem(tmp_path: Path) -> None:
    text = HEAD + (
        'wrker = 3\nworker = "3"\nstyle = 5\nprogram = 5\nchief = 2\nps = 3\nsubnet = "nonsense"\n'
        'gpus = ["0", "9"]\nshare_gpus = "yes"\ndata = "nowhere"\n[role.worker]\ncpus = 0\n'
        "[role.ps]\ngpus = [0]\n[task.boss-1]\ncpus = 1\n[task.ps-3]\ncpus = 99\n"
        '[task.worker-0]\nip = "300.0.0.1"\nmemory = "9999g"\nenvironment = {TF_CONFIG = "x"}\n'
    )
    found = [problem.key_path for problem in problems_of(text, tmp_path, HOST)]
    assert found == [
        "chief", "worker", "style", "program", "data", "subnet", "gpus", "share_gpus",
        "role.worker.cpus", "role.ps.gpus", "task.boss-1", "task.ps-3", "task.ps-3.cpus",
        "task.worker-0.memory", "task.worker-0.environment.TF_CONFIG", "task.worker-0.ip", "wrker",
    ]  # fmt: skip


def test_the_error_names_file_and_count_and_every_line(tmp_path: Path) -> None:
    file = tmp_path / "demo.toml"
    file.write_text(HEAD + "worker = 0\nport = 80\n", encoding="utf-8")
    read = load(file)
    with pytest.raises(ManifestError) as caught:
        plan(read, inputs(read.manifest), host(), OWN)
    assert caught.value.message.splitlines() == [
        f"{file}: 2 problems",
        "  worker = 0: a cluster needs at least one worker",
        "    → write `worker = 1`",
        "  port = 80: must be 1024 to 65534 (unprivileged; the next port is the beacon's)",
        "    → write `port = 2222`",
    ]
    assert caught.value.exit_code == 2


def test_there_are_at_least_two_hundred_mistakes() -> None:
    """Different ones; scenarios, Make variables and the host's have separate tests."""
    inputs_of = {mistake[0] for _, mistake in MISTAKES}
    words = {mistake[0] for mistake in command_line.MISTAKES.values()}
    made = {(tuple(mistake[0].items()), mistake[1]) for mistake in files.MISTAKES.values()}
    assert len(inputs_of) + len(words) + len(made) >= 200
