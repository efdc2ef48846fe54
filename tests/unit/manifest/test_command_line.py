"""Problems of the command line are reported by its options, not by keys of the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster_kit.advice.of_program import Hint
from cluster_kit.errors import Problem, Setting
from cluster_kit.manifest.command_line import Caller, CommandLine
from cluster_kit.util.paths import CALLED_BY
from tests.unit.command_line import MANIFEST, Cli


@pytest.mark.parametrize(
    ("arguments", "key_path", "hint"),
    [
        (
            ("--workers", "0"),
            "--workers = 0: a cluster needs at least one worker",
            "write `--workers 1`",
        ),
        (
            ("--workers", "abc"),
            '--workers = "abc": must be a whole number',
            "for example `--workers 2`: Number of workers: 1 or more",
        ),
        (
            ("--style", "alltasks"),
            "--style = \"alltasks\": must be 'auto', 'coordinator' or 'all-tasks'",
            "did you mean `--style all-tasks`?",
        ),
        (("--name", "A_b"), '--name = "A_b"', "`--name a-b`"),
        (
            ("--ps", "0"),
            "--ps = 0: at least 1 ps task is needed",
            "write `--ps 1`, or `--chief 0`, or `--style all-tasks` if each worker trains, too",
        ),
        (
            ("--set", "role.ps.cpus=4096"),
            "--set role.ps.cpus = 4096: this host has",
            "at most `--set role.ps.cpus=",
        ),
        (("--args", "{{ ro }}"), '--args = "{{ ro }}"', "did you mean `role`?"),
        (("--set", "port=1"), "--set port = 1", "write `--set port=2222`"),
        (
            ("--set", "deadline.start=x"),
            '--set deadline.start = "x"',
            "for example `--set deadline.start=120`",
        ),
    ],
)
def test_an_overridden_key_is_reported_as_its_option(
    cli: Cli, arguments: tuple[str, str], key_path: str, hint: str
) -> None:
    result = cli("render", "demo", *arguments)
    assert result.code == 2
    assert result.err.startswith("error: the command line: 1 problem")
    assert key_path in result.err
    assert hint in result.err
    assert "demo.toml" not in result.err


def test_a_problem_of_a_program_on_the_command_line_is_reported_there(cli: Cli, root: Path) -> None:
    (root / "bad.py").write_text("x = 1\ndef f(:\n")
    given = cli("render", "demo", "--program", "bad.py")
    assert given.err.startswith("error: the command line: 1 problem\n  bad.py:2 = "), given.err
    (root / "compose" / "demo.toml").write_text(MANIFEST + 'program = "../bad.py"\n')
    found = cli("render", "demo", "--workers", "2")
    assert "demo.toml: 1 problem" in found.err and "the command line" not in found.err


def test_a_problem_in_the_file_is_still_reported_by_its_key(cli: Cli, root: Path) -> None:
    (root / "compose" / "demo.toml").write_text(MANIFEST + "port = 1\n[task.worker-1]\ncpus = 1\n")
    result = cli("render", "demo", "--workers", "1", "--ps", "-1")
    assert "demo.toml and the command line: 3 problems" in result.err
    assert "  port = 1: " in result.err
    assert "write `port = 2222`" in result.err
    assert "  task.worker-1: no such task: worker = 1" in result.err
    assert "write `--workers 2`, or remove the table" in result.err
    alone = cli("render", "demo", "--workers", "2")
    assert "demo.toml: 1 problem" in alone.err


def test_an_argument_in_the_file_belongs_to_the_file_even_if_the_same_is_typed(
    cli: Cli, root: Path
) -> None:
    (root / "compose" / "demo.toml").write_text(MANIFEST + 'args = ["{{ ro }}"]\n')
    result = cli("render", "demo", "--args", "{{ ro }}")
    assert "demo.toml and the command line: 2 problems" in result.err
    assert '  args.0 = "{{ ro }}": ' in result.err
    assert '  --args = "{{ ro }}": ' in result.err


def test_a_setting_whose_key_was_typed_is_reported_as_its_option() -> None:
    problem = Problem(
        "ps", "0", "too few", ("write ", Setting("ps", 1), " or ", Setting("chief", 0))
    )
    message = CommandLine(frozenset({"chief"})).error(Path("demo.toml"), [problem]).message
    assert message.splitlines() == [
        "demo.toml: 1 problem",
        "  ps = 0: too few",
        "    → write `ps = 1` or `--chief 0`",
    ]


def test_keys_of_a_typed_table_and_added_arguments_are_identified() -> None:
    given = CommandLine.of({"ps": 1, "deadline": {"start": 3}, "args": []}, range(2, 4))
    assert given.keys == {"ps", "deadline.start", "args", "args.2", "args.3"}


def test_a_value_of_set_is_not_reported_as_the_keys_own_option(cli: Cli, root: Path) -> None:
    result = cli("render", "demo", "--set", "worker=-1")
    assert "  --set worker = -1: " in result.err and "  --workers = " not in result.err
    assert "  --workers = -1: " in cli("render", "demo", "--workers", "-1").err
    assert '  --set data = "": ' in cli("render", "demo", "--set", 'data=""').err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("task.worker-7.cpus=1", "--set task.worker-7: no such task"),
        ("role.wrker.cpus=1", "--set role.wrker = {cpus = 1}: no such key"),
        ("evaluator.memory=1g", '--set evaluator = {memory = "1g"}: must be a whole'),
        ('task.worker-0.ports=["80:80000"]', '--set task.worker-0.ports.0 = "80:80000": a port'),
        ('mount=[{source="/no",target="/x"}]', '--set mount.0.source = "/no": neither'),
    ],
)
def test_a_part_of_a_value_of_set_is_no_fault_of_the_file(
    words: str, says: str, cli: Cli, root: Path
) -> None:
    result = cli("render", "demo", "--set", words)
    assert f"error: the command line: 1 problem\n  {says}" in result.err


@pytest.mark.parametrize(
    ("setting", "shell", "make", "python"),
    [
        (Setting("worker", 2), "--workers 2", "N_WORKERS=2", "worker = 2"),
        (Setting("tf1", True), "--tf1", "TF1=1", "tf1 = true"),
        (Setting("tf1", False), "--set tf1=false", "SET=tf1=false", "tf1 = false"),
        (Setting("data", "my dir"), "--data 'my dir'", "DATA='my dir'", 'data = "my dir"'),
        (Setting("args", ("-x", "y")), "--args '-x y'", "ARGS='-x y'", 'args = ["-x", "y"]'),
        (
            Setting("deadline.start", 30),
            "--set deadline.start=30",
            "SET=deadline.start=30",
            "start = 30` under [deadline]",
        ),
        (
            Setting("subnet", "10.0.0.0/24"),
            "--set subnet=10.0.0.0/24",
            "SET=subnet=10.0.0.0/24",
            'subnet = "10.0.0.0/24"',
        ),
        (
            Setting("tensorflow", "2.15"),
            "--set 'tensorflow=\"2.15\"'",
            "SET='tensorflow=\"2.15\"'",
            'tensorflow = "2.15"',
        ),
        (
            Setting("role.ps.x", ("a", "b")),
            '--set \'role.ps.x=["a", "b"]\'',
            'x = ["a", "b"]` under [role.ps]',
            'x = ["a", "b"]` under [role.ps]',
        ),
    ],
)
def test_a_setting_is_written_as_the_caller_would_give_it(
    setting: Setting, shell: str, make: str, python: str
) -> None:
    told = {caller: caller.setting(setting, "") for caller in Caller}
    texts = (shell, make, python)
    assert list(told.values()) == [
        f"`{text}" if "` under" in text else f"`{text}`" for text in texts
    ]


def test_callers_of_make_see_only_its_variables(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    typed = ("render", "demo", "--workers", "0", "--set", "port=1", "--data", "nosuch")
    shell = cli(*typed).err
    assert "`--workers 1`" in shell and "`--data DIR`" in shell and "N_WORKERS" not in shell
    monkeypatch.setenv(CALLED_BY, "make")
    make = cli(*typed).err
    assert "  N_WORKERS = 0: " in make and "`N_WORKERS=1`" in make
    assert "  SET port = 1: " in make and "`SET=port=2222`" in make and "`DATA=DIR`" in make
    assert "--" not in make


def test_a_hint_about_a_program_names_the_place_that_has_named_it() -> None:
    """The file that has the program, or the command line."""
    hint = Hint("program", "old code", "", ("write ", Setting("tf1", True)), "train.py:3")
    assert hint.told_by(CommandLine()).fix == "write `tf1 = true`"
    for caller, told in ((Caller.SHELL, "`--tf1`"), (Caller.MAKE, "`TF1=1`")):
        given = CommandLine(frozenset({"program"}), caller=caller)
        assert hint.told_by(given).fix == f"write {told}"
    typed = CommandLine.of({}, range(1))
    assert typed.setting(Setting("style", "all-tasks"), "args") == "`--style all-tasks`"
