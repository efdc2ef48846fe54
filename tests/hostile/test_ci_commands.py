"""Output and exceptions of a task, as the kit's verbs print them on GitHub's runner."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.runners import commands
from tests.unit.summary.runs import failed, saved
from tests.unit.util.test_runner_commands import COMMANDS

WORDS = "\n".join(COMMANDS)
ON_GITHUB = {
    **os.environ,
    "GITHUB_ACTIONS": "true",
    "DOCKER_HOST": "unix:///nonexistent/docker.sock",
}


@pytest.mark.parametrize(
    "verb",
    [("summary", "demo"), ("summary", "demo", "--json"), ("runs",)],
)
def test_output_of_a_task_is_no_command(tmp_path: Path, verb: tuple[str, ...]) -> None:
    (tmp_path / "compose").mkdir()
    outcome = replace(failed(), message=WORDS, last_words=WORDS, notes=[WORDS], cure=WORDS)
    saved(tmp_path, outcome)
    done = subprocess.run(
        [sys.executable, "-m", "cluster_kit", *verb],
        cwd=tmp_path,
        env=ON_GITHUB,
        capture_output=True,
        timeout=60,
    )
    output = (done.stdout + done.stderr).decode()
    assert done.returncode == 0, output
    assert commands(output) == []
    if verb == ("summary", "demo", "--json"):
        assert json.loads(done.stdout)["message"] == WORDS
    elif verb[0] == "summary":
        assert "add-mask" in output
