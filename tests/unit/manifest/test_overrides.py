"""What is wrong with the command line is told in its own words, not in the file's."""

from __future__ import annotations

from pathlib import Path

import pytest

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


def test_what_stands_in_the_file_is_still_told_as_the_files(cli: Cli, root: Path) -> None:
    (root / "compose" / "demo.toml").write_text(MANIFEST + "port = 1\n[task.worker-1]\ncpus = 1\n")
    said = cli("render", "demo", "--workers", "1", "--ps", "-1")
    assert "demo.toml and the command line: 3 problems" in said.err
    assert "  port = 1: " in said.err
    assert "write `port = 2222`" in said.err
    assert "  task.worker-1: there is no such task: worker = 1" in said.err
    assert "raise --workers (make: N_WORKERS) to 2" in said.err
    alone = cli("render", "demo", "--workers", "2")
    assert "demo.toml: 1 problem" in alone.err
