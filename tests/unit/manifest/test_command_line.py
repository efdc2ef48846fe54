"""What is wrong with the command line is told in its own words, not in the file's."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster_kit.manifest.command_line import CommandLine
from cluster_kit.problem import Problem, Setting
from tests.unit.command_line import MANIFEST, Cli


@pytest.mark.parametrize(
    ("arguments", "place", "cure"),
    [
        (
            ("--workers", "0"),
            "--workers (make: N_WORKERS) = 0: a cluster needs at least one worker",
            "write `--workers 1` (make: `N_WORKERS=1`)",
        ),
        (
            ("--workers", "abc"),
            '--workers (make: N_WORKERS) = "abc": must be a whole number',
            "for example `--workers 2` (make: `N_WORKERS=2`): Number of workers: 1 or more",
        ),
        (
            ("--style", "alltasks"),
            "--style (make: STYLE) = \"alltasks\": must be 'auto', 'coordinator' or 'all-tasks'",
            "did you mean `--style all-tasks` (make: `STYLE=all-tasks`)?",
        ),
        (("--name", "A_b"), '--name (make: NAME) = "A_b"', "`--name a-b` (make: `NAME=a-b`)"),
        (
            ("--ps", "0"),
            "--ps (make: N_PS) = 0: at least 1 ps task is needed",
            "write `--ps 1` (make: `N_PS=1`), or `--chief 0` (make: `N_CHIEF=0`), or "
            "`--style all-tasks` (make: `STYLE=all-tasks`) if each worker trains, too",
        ),
        (
            ("--set", "role.ps.cpus=4096"),
            "--set role.ps.cpus (make: SET) = 4096: this host has",
            "at most `--set role.ps.cpus=",
        ),
        (("--args", "{{ ro }}"), '--args (make: ARGS) = "{{ ro }}"', "did you mean `role`?"),
        (("--set", "port=1"), "--set port (make: SET) = 1", "write `--set port=2222`"),
        (
            ("--set", "deadline.start=x"),
            '--set deadline.start (make: SET) = "x"',
            "for example `--set deadline.start=120`",
        ),
    ],
)
def test_an_overridden_key_is_told_as_its_option(
    cli: Cli, arguments: tuple[str, str], place: str, cure: str
) -> None:
    said = cli("render", "demo", *arguments)
    assert said.code == 2
    assert said.err.startswith("error: the command line: 1 problem")
    assert place in said.err
    assert cure in said.err
    assert "demo.toml" not in said.err


def test_a_fault_in_a_program_that_was_named_here_is_the_command_lines(
    cli: Cli, root: Path
) -> None:
    (root / "bad.py").write_text("x = 1\ndef f(:\n")
    given = cli("render", "demo", "--program", "bad.py")
    assert given.err.startswith("error: the command line: 1 problem\n  bad.py:2 = "), given.err
    (root / "compose" / "demo.toml").write_text(MANIFEST + 'program = "../bad.py"\n')
    found = cli("render", "demo", "--workers", "2")
    assert "demo.toml: 1 problem" in found.err and "the command line" not in found.err


def test_what_stands_in_the_file_is_still_told_as_the_files(cli: Cli, root: Path) -> None:
    (root / "compose" / "demo.toml").write_text(MANIFEST + "port = 1\n[task.worker-1]\ncpus = 1\n")
    said = cli("render", "demo", "--workers", "1", "--ps", "-1")
    assert "demo.toml and the command line: 3 problems" in said.err
    assert "  port = 1: " in said.err
    assert "write `port = 2222`" in said.err
    assert "  task.worker-1: there is no such task: worker = 1" in said.err
    assert "write `--workers 2` (make: `N_WORKERS=2`), or take the table out" in said.err
    alone = cli("render", "demo", "--workers", "2")
    assert "demo.toml: 1 problem" in alone.err


def test_an_argument_of_the_file_is_the_files_even_if_the_same_is_typed(
    cli: Cli, root: Path
) -> None:
    (root / "compose" / "demo.toml").write_text(MANIFEST + 'args = ["{{ ro }}"]\n')
    said = cli("render", "demo", "--args", "{{ ro }}")
    assert "demo.toml and the command line: 2 problems" in said.err
    assert '  args.0 = "{{ ro }}": ' in said.err
    assert '  --args (make: ARGS) = "{{ ro }}": ' in said.err


def test_a_setting_whose_key_was_typed_is_told_as_its_option_wherever_the_problem_is() -> None:
    problem = Problem(
        "ps", "0", "too few", ("write ", Setting("ps", 1), " or ", Setting("chief", 0))
    )
    message = CommandLine(frozenset({"chief"})).error(Path("demo.toml"), [problem]).message
    assert message.splitlines() == [
        "demo.toml: 1 problem",
        "  ps = 0: too few",
        "    → write `ps = 1` or `--chief 0` (make: `N_CHIEF=0`)",
    ]


def test_a_table_that_was_typed_is_its_keys_and_added_arguments_have_their_numbers() -> None:
    given = CommandLine.of({"ps": 1, "deadline": {"start": 3}, "args": []}, range(2, 4))
    assert given.keys == {"ps", "deadline.start", "args", "args.2", "args.3"}


def test_a_value_that_set_gave_is_not_told_as_the_option_that_its_key_has_too(
    cli: Cli, root: Path
) -> None:
    said = cli("render", "demo", "--set", "worker=-1")
    assert "  --set worker (make: SET) = -1: " in said.err and "--workers (make" not in said.err
    assert "  --workers (make: N_WORKERS) = -1: " in cli("render", "demo", "--workers", "-1").err
    assert '  --set data (make: SET) = "": ' in cli("render", "demo", "--set", 'data=""').err
