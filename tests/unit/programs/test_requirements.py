"""A file of requirements: its packages, what a build cannot use, and pip's messages."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster_kit.image.user_image import pip_errors
from cluster_kit.programs.resolve import lines_of, read_requirements, requirement_fault, resolve
from tests.make import OWN, cluster, manifest, problems

FILE = """\
# what my program needs

iniconfig == 2.0.0   # small
tqdm[notebook]>=4,\\
  <5
--extra-index-url https://wheels.example/simple#frag
package @ https://wheels.example/package-1.0-py3-none-any.whl
"""


def test_comments_and_blank_lines_are_ignored_and_continued_lines_joined() -> None:
    assert lines_of(FILE) == {
        3: "iniconfig == 2.0.0",
        4: "tqdm[notebook]>=4, <5",
        6: "--extra-index-url https://wheels.example/simple#frag",
        7: "package @ https://wheels.example/package-1.0-py3-none-any.whl",
    }
    assert not any(map(requirement_fault, lines_of(FILE).values()))
    assert lines_of("a\\\n\\\r\n>1 # more\n\nb\\") == {1: "a >1", 5: "b"}


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("-r base.txt", "sees this one file"),
        ("-c pins.txt", "sees this one file"),
        ("--constraint=pins.txt", "sees this one file"),
        ("-e .", "sees this one file"),
        ("--find-links wheels", "sees this one file"),
        (".", "no path of this host"),
        (".[dev]", "no path of this host"),
        ("..", "no path of this host"),
        ("./mine", "no path of this host"),
        ("../mine-1.0.tar.gz", "no path of this host"),
        ("/opt/mine-1.0-py3-none-any.whl", "no path of this host"),
        ("mine-1.0-py3-none-any.whl", "no path of this host"),
        ("~/mine.zip", "no path of this host"),
        ("mine @ file:///opt/mine.whl", "no path of this host"),
        ("git+https://host.example/mine.git@v1", "has no git"),
        ("mine @ git+ssh://git@host.example/mine.git", "has no git"),
    ],
)
def test_files_outside_of_the_requirements_are_not_available_to_the_build(
    line: str, fault: str
) -> None:
    assert fault in requirement_fault(line)


@pytest.mark.parametrize("text", ["", "\n\n", "# only words\n", "--pre\n"])
def test_a_file_without_a_package_is_a_problem(text: str, tmp_path: Path) -> None:
    (tmp_path / "req.txt").write_text(text)
    (problem,) = resolve(manifest(requirements="req.txt"), tmp_path).problems
    assert (problem.key_path, problem.value) == ("requirements", '"req.txt"')
    assert "names no package" in problem.rule


def test_the_path_is_relative_to_the_manifest_and_every_fault_is_named(tmp_path: Path) -> None:
    (tmp_path / "req.txt").write_text("# mine\n-r a.txt\n\n./b\ntqdm\n")
    first, second = resolve(manifest(requirements="../req.txt"), tmp_path / "compose").problems
    assert first.key_path == second.key_path == "requirements"
    assert first.text().startswith("req.txt:2 = `-r a.txt`: the build sees this one file")
    assert second.text().startswith("req.txt:4 = `./b`: the build sees no path of this host")


@pytest.mark.parametrize("name", ["nowhere.txt", ".", "x" * 5000, "latin.txt"])
def test_a_file_that_cannot_be_read_is_a_problem(name: str, tmp_path: Path) -> None:
    (tmp_path / "latin.txt").write_bytes("tqdm # für".encode("latin-1"))
    (problem,) = resolve(manifest(requirements=name), tmp_path).problems
    assert problem.key_path == "requirements"
    assert problem.hint_text()


def test_the_packages_are_part_of_the_images_name(tmp_path: Path) -> None:
    (tmp_path / "one.txt").write_text("tqdm\n")
    (tmp_path / "same.txt").write_text("# a comment\n\ntqdm  # progress\n")
    one, same = (
        resolve(manifest(requirements=f"{name}.txt"), tmp_path).requirements
        for name in ("one", "same")
    )
    assert one == same == "tqdm\n"
    made = cluster(requirements="any.txt")
    assert made.variant == "cpu"
    assert made.image.startswith(f"{OWN.cpu}-with-")
    assert cluster().image == OWN.cpu
    assert (cluster().requirements, made.requirements) == ("", "some-package==1.0\n")


def test_a_users_image_is_not_extended() -> None:
    (problem,) = problems(image="mine:1", requirements="req.txt")
    assert problem.key_path == "requirements"
    assert "only in its own image" in problem.rule


ERRORS = """\
#8 1.502 ERROR: Cannot install -r /mnt/requirements.txt (line 2) and numpy because these conflict.
"""
REASONS = """\
#8 1.502
#8 1.502 The conflict is caused by:
#8 1.502     The user requested tensorflow==2.15
#8 1.502     old-keras 2.1 depends on numpy<2 and >=1.2
#8 1.502     The user requested (constraint) tensorflow==2.21.0
#8 1.502
#8 1.502 To fix this you could try to:
#8 1.502 1. loosen the range of package versions you've specified
"""
END = """\
#8 1.503 ERROR: ResolutionImpossible: for help visit https://pip.example/
"""
FIRST, *OTHERS = REASONS.splitlines(keepends=True)


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(ERRORS + REASONS + END, id="errors first"),
        pytest.param(REASONS + ERRORS + END, id="reasons first"),
        pytest.param(ERRORS + END + REASONS, id="errors, all of them, first"),
        pytest.param(
            "".join([FIRST, *OTHERS[:2], ERRORS, *OTHERS[2:], END]), id="among the reasons"
        ),
    ],
)
def test_pips_own_message_is_found_in_the_output_of_the_build(message: str) -> None:
    build = (
        "#7 [stage-1 1/2] FROM docker.io/cluster-kit/trainer:cpu-0\n"
        "#7 DONE 0.0s\n"
        "#8 [stage-1 2/2] RUN pip install\n"
        "#8 1.052 Requirement already satisfied: numpy in /opt/venv (2.4.6)\n"
        f"{message}"
        '#8 ERROR: process "/bin/sh -c pip" did not complete successfully: exit code: 1\n'
        "------\n > [stage-1 2/2] RUN pip install\n"
        "1.502 ERROR: Cannot install because these conflict.\n"
    )
    assert pip_errors(build, "numpy\ntensorflow==2.15\n") == [
        "Cannot install tensorflow==2.15 and numpy because these conflict.",
        "The conflict is caused by:",
        "    The user requested tensorflow==2.15",
        "    old-keras 2.1 depends on numpy<2 and >=1.2",
        "    The image has tensorflow==2.21.0",
    ]


def test_an_unknown_package_is_reported_with_pips_message() -> None:
    message = (
        "#8 2.0 Collecting iniconfig (from -r /mnt/requirements.txt (line 1))\n"
        "#8 2.1 ERROR: Could not find a version that satisfies the requirement no-such==1\n"
        "#8 2.1 ERROR: No matching distribution found for no-such==1\n"
    )
    assert pip_errors(message, "iniconfig\nno-such==1\n") == [
        "Could not find a version that satisfies the requirement no-such==1",
        "No matching distribution found for no-such==1",
    ]


def test_of_all_versions_of_a_package_the_newest_are_named() -> None:
    known = ", ".join(f"1.{minor}" for minor in range(90))
    message = f"#8 2.1 ERROR: Could not find iniconfig==9 (from versions: {known})\n"
    assert pip_errors(message, "iniconfig==9\n") == [
        "Could not find iniconfig==9 "
        "(from versions: …, 1.82, 1.83, 1.84, 1.85, 1.86, 1.87, 1.88, 1.89)"
    ]
    message = "#8 2.1 ERROR: Could not find inconfig (from versions: none)\n"
    assert pip_errors(message, "inconfig\n") == ["Could not find inconfig (from versions: none)"]


def test_no_error_has_the_password_of_an_address(tmp_path: Path) -> None:
    address = "https://me:in-clear-1@pip.example"
    message = "#8 2.1 ERROR: no such file -r /mnt/requirements.txt (line 1)\n"
    assert pip_errors(message, f"a @ {address}/a.whl\n") == [
        "no such file a @ https://me:***@pip.example/a.whl"
    ]
    (tmp_path / "needs.txt").write_text(f"-e git+{address}/a\n")
    found = read_requirements("needs.txt", tmp_path).problems
    assert "git+https://me:***@pip.example/a" in found[0].value and "in-clear" not in str(found)


def test_a_failed_build_without_pip_has_no_message_of_pip() -> None:
    assert pip_errors("#4 ERROR: failed to do request: no such host\n", "tqdm\n") == []
