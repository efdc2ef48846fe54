"""The exact commands that `make` would run: every variable reaches the command unchanged."""

from __future__ import annotations

import itertools
import re
import shlex
import shutil
import subprocess

import pytest

from cluster_kit.manifest.command_line import OVERRIDES, SET_OPTION, SET_VARIABLE
from cluster_kit.util.paths import CALLED_BY
from cluster_kit.workspace import RENDERED
from tests.make import ROOT

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")

SWITCHES = {o.variable: o.option for o in OVERRIDES if o.kind == "switch"}
OPTIONS = {o.variable: o.option for o in OVERRIDES if o.kind != "switch"}
OPTIONS |= {SET_VARIABLE: SET_OPTION}


def command(target: str, *given: str) -> list[str]:
    """Returns the words of the kit's command in which a target ends, as the shell would see
    them."""
    done = subprocess.run(
        ["make", "--dry-run", "--no-print-directory", target, *given],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return shlex.split(done.stdout.splitlines()[-1])


VALUES = ["it's", "'a','b'", 'say"so"', "-1", "$$HOME;ls", "{{ index }}"]


def test_a_variable_reaches_the_command_unchanged(subtests: pytest.Subtests) -> None:
    for variable, value in itertools.product(OPTIONS, VALUES):
        with subtests.test(variable=variable, value=value):
            if variable == "SET" and " " in value:
                continue  # SET is a list of words
            words = command("cluster", f"{variable}={value}")
            wanted = f"{OPTIONS[variable]}={value.replace('$$', '$')}"
            assert words[1:] == ["up", "quickstart", wanted]


def test_a_value_of_several_lines_is_one_word() -> None:
    assert command("cluster", "ARGS=--a 1\n--b")[1:] == ["up", "quickstart", "--args=--a 1 --b"]
    words = ["up", "quickstart", "--set=retries=1", "--set=tf1=true"]
    assert command("cluster", "SET=retries=1\ntf1=true")[1:] == words


@pytest.mark.parametrize("variable", SWITCHES)
def test_a_switch_is_on_or_omitted(variable: str) -> None:
    assert command("cluster", f"{variable}=1")[1:] == ["up", "quickstart", SWITCHES[variable]]
    for off in ("", "0", "no", "false"):
        assert command("cluster", f"{variable}={off}")[1:] == ["up", "quickstart"]


def test_zero_switches_an_option_off() -> None:
    assert command("cluster", "KEEP=0", "RESUME=0")[1:] == ["up", "quickstart"]
    assert command("render", "PORTABLE=0", "CHECK=0")[1:] == ["render", "quickstart"]
    assert "--again" not in command("drill", "ROLE=ps", "AGAIN=0")


def test_the_name_of_a_host_is_not_a_clusters_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """WSL sets it in every environment."""
    monkeypatch.setenv("NAME", "DESKTOP-7")
    assert command("cluster")[1:] == ["up", "quickstart"]
    assert command("cluster", "NAME=two")[1:] == ["up", "quickstart", "--name=two"]


def test_targets_whose_messages_name_variables_say_that_make_calls() -> None:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    (targets,) = re.findall(rf"^([a-z ]+): \\\n  export {CALLED_BY} := make$", text, re.MULTILINE)
    overridden = re.findall(
        r"^([a-z]+):(?:.*\n)(?:(?:\t|#|ifeq|else).*\n)*?\t.*\$\(OVERRIDES\)", text, re.MULTILINE
    )
    assert overridden and set(overridden) <= set(targets.split())


@pytest.mark.parametrize("target", ["compare"])
def test_arguments_of_measurements_reach_them(target: str) -> None:
    assert command(target, "ARGS=--only clones")[1:] == [target, "--only", "clones"]


@pytest.mark.parametrize("target", ["cluster", "render", "logs", "down"])
def test_a_cluster_name_with_an_apostrophe_is_one_word(target: str) -> None:
    assert command(target, "CLUSTER=it's.toml")[-1] == "it's.toml"


def test_variables_that_are_not_given_override_nothing() -> None:
    assert command("cluster")[1:] == ["up", "quickstart"]
    assert command("new", "NAME=it's", "STYLE=all-tasks")[1:] == [
        "new",
        "it's",
        "--style=all-tasks",
    ]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([], ["matrix"]),
        (["ROLE=ps leader", "FAULT=freeze 10 s", "AGAIN=1"],
         ["matrix", "--role=ps", "--role=leader", "--fault=freeze 10 s", "--again"]),
        (["CLUSTER=clones", "ROLE=ps"], ["matrix", "clones", "--role=ps"]),
        (["CLUSTER=clones"], ["drill", "clones"]),
        (["N_PS=1"], ["drill", "quickstart", "--ps=1"]),
        (["CLUSTER=smoke", "SCENARIO=it's.toml", "SEED=1"],
         ["drill", "smoke", "it's.toml", "--seed=1"]),
    ],
)  # fmt: skip
def test_variables_decide_between_one_drill_and_the_matrix(
    given: list[str], words: list[str]
) -> None:
    assert command("drill", *given)[1:] == words


def test_variables_that_the_matrix_does_not_accept_are_refused() -> None:
    made = ["make", "--dry-run", "drill", "ROLE=ps", "SEED=3"]
    done = subprocess.run(made, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2
    assert "ROLE choose cells of the matrix, which takes no SEED" in done.stderr


def test_the_makefiles_overrides_equal_those_of_the_table() -> None:
    """Make cannot read Python, so its list is a copy: the same pairs, in the same order."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8").replace("\\\n", " ")
    for name, switches in (("PAIRS", False), ("SWITCHES", True)):
        (pairs,) = [line for line in makefile.splitlines() if line.startswith(f"{name} := ")]
        rows = [o for o in OVERRIDES if (o.kind == "switch") is switches]
        assert pairs.split()[2:] == [f"{o.option.removeprefix('--')}={o.variable}" for o in rows]


def test_mistyped_variables_are_refused_with_the_existing_ones() -> None:
    mistyped = [f"{variable}X" for variable in (*OPTIONS, *SWITCHES)]
    made = ["make", "--dry-run", "cluster", *(f"{name}=1" for name in mistyped)]
    made += ["PYTHON=true"]  # The next test is about the nearest name.
    done = subprocess.run(made, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2
    refusal, _, known = done.stderr.partition("; there are: ")
    assert set(refusal.partition("no such variable: ")[2].split()) == set(mistyped)
    assert set(OPTIONS) <= set(known.rstrip(". \n").replace(".  Stop", "").split())


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("N_WORKER=3", "no such variable: N_WORKER; did you mean N_WORKERS?; there are: CLUSTER "),
        ("name=second", "no such variable: name; did you mean NAME?; there are: "),
        ("data=x", "no such variable: data; did you mean DATA?; there are: "),
        ("XYZZYQ=3", "no such variable: XYZZYQ; there are: "),
        ("PORTABLE=1", "only `make render` reads PORTABLE"),
        ("KEEP=1", "only `make cluster` reads KEEP"),
    ],
)
def test_a_variable_that_is_not_read_is_refused(given: str, told: str) -> None:
    done = subprocess.run(
        ["make", "--dry-run", "status", given], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert told in done.stderr


@pytest.mark.parametrize("target", ["status", "logs", "down"])
def test_without_a_name_the_command_finds_the_cluster(
    target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert command(target)[1:] == [target]
    assert command(target, "NAME=second")[1:] == [target, "second"]
    monkeypatch.setenv("CLUSTER", "of-the-shell")
    assert command(target)[1:] == [target, "of-the-shell"]


def test_clean_removes_rendered_files() -> None:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    (names,) = re.findall(r"^RENDERED := (.*)$", text, re.MULTILINE)
    assert set(names.split()) == set(RENDERED) - {"output/"}  # results are kept


def test_help_has_one_column_of_targets_and_one_of_what_they_do() -> None:
    done = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith("  make ")]
    assert len(lines) > 20
    begins = {len(re.match(r"  make [a-z-]+ +", line)[0]) for line in lines}  # type: ignore[index]
    assert len(begins) == 1
    assert all(line[next(iter(begins)) - 2] == " " for line in lines)
