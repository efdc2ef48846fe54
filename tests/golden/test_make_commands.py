"""What `make` would run, to the letter: every variable reaches the command as it was given."""

from __future__ import annotations

import shlex
import shutil
import subprocess

import pytest

from tests.make import ROOT

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")

OPTIONS = {
    "N_CHIEF": "--chief",
    "N_WORKERS": "--workers",
    "N_PS": "--ps",
    "STYLE": "--style",
    "NAME": "--name",
    "PROGRAM": "--program",
    "ARGS": "--args",
    "REQUIREMENTS": "--requirements",
    "DATA": "--data",
    "GPUS": "--gpus",
    "SET": "--set",
}


def command(target: str, *given: str) -> list[str]:
    """The words of the kit's command that a target ends in, as the shell would see them."""
    done = subprocess.run(
        ["make", "--dry-run", "--no-print-directory", target, *given],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return shlex.split(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("variable", OPTIONS)
@pytest.mark.parametrize("value", ["it's", "'a','b'", 'say"so"', "-1", "$$HOME;ls", "{{ index }}"])
def test_a_variable_reaches_the_command_to_the_letter(variable: str, value: str) -> None:
    if variable == "SET" and " " in value:
        pytest.skip("SET is a list of words")
    words = command("cluster", f"{variable}={value}")
    wanted = f"{OPTIONS[variable]}={value.replace('$$', '$')}"
    assert words[1:] == ["up", "quickstart", wanted]


@pytest.mark.parametrize("target", ["cluster", "render", "logs", "down"])
def test_a_cluster_with_an_apostrophe_is_one_word(target: str) -> None:
    assert command(target, "CLUSTER=it's.toml")[-1] == "it's.toml"


def test_what_is_not_given_overrides_nothing() -> None:
    assert command("cluster")[1:] == ["up", "quickstart"]
    assert command("new", "NAME=it's", "STYLE=all-tasks")[1:] == [
        "new",
        "it's",
        "--style=all-tasks",
    ]
