"""Runs a user's program on the smallest cluster with every role."""

from __future__ import annotations

from pathlib import Path

from tests.kit import Kit

PROGRAMS = Path(__file__).parent / "programs"


def up(kit: Kit, program: str, *arguments: str) -> tuple[int, str]:
    """Run a program on one chief, one worker and one ps; returns exit code and output."""
    path = str(PROGRAMS / program)
    done = kit.run("up", "smoke", "--name", kit.name, "--program", path, *arguments)
    return done.returncode, done.stdout + done.stderr
