"""Problems of a manifest's structure: required keys, formats, types, each with an example."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster_kit.platforms.platform import load
from tests.make import problems_of


def test_format_and_name_are_required(tmp_path: Path) -> None:
    form, name = problems_of("", tmp_path)
    assert (form.key_path, form.rule, form.hint_text()) == (
        "format",
        "is required",
        "add `format = 1`",
    )
    assert (name.key_path, name.hint_text()) == ("name", 'add `name = "my-cluster"`')


@pytest.mark.parametrize(
    ("table", "key", "hint"),
    [
        ("[data]", "data.fetch", "fetch: Path of a Python program"),
        ('[[mount]]\nsource = "."', "mount.0.target", "target: The path in the containers"),
        ("[profile]", "profile.at_step", "at_step: The trace begins"),
    ],
)
def test_another_required_key_is_explained(tmp_path: Path, table: str, key: str, hint: str) -> None:
    (problem,) = problems_of(f'format = 1\nname = "demo"\n{table}', tmp_path)
    assert (problem.key_path, problem.rule) == (key, "is required")
    assert problem.hint_text().startswith(hint)


def test_another_format_is_reported_as_such(tmp_path: Path) -> None:
    (problem,) = problems_of('format = 2\nname = "demo"', tmp_path)
    assert (problem.key_path, problem.value, problem.rule) == (
        "format",
        "2",
        "this kit reads format 1",
    )


@pytest.mark.parametrize("value", ["true", "1.0"])
def test_a_format_of_another_type_is_refused(tmp_path: Path, value: str) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(f'format = {value}\nname = "mine"\n')
    problem = load(file).problems[0]
    assert (problem.key_path, problem.rule) == ("format", "this kit reads format 1")


def test_a_wrong_type_is_answered_with_an_example(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('format = 1\nname = "mine"\nps = "two"\n[deadline]\nstart = []\n')
    hints = {problem.key_path: problem.hint_text() for problem in load(file).problems}
    assert hints["ps"].startswith("for example `ps = 2`: ")
    assert hints["deadline.start"].startswith("for example `start = 120`: ")


def test_a_table_of_secrets_gets_a_hint_to_the_right_table(tmp_path: Path) -> None:
    """`secrets` is a list of variables, and a key of roles and tasks."""
    head = 'format = 1\nname = "mine"\n'
    (top,) = problems_of(head + '[secrets]\ntoken = "t.txt"\n', tmp_path)
    assert top.hint_text() == "did you mean `secret`?"
    (role,) = problems_of(head + '[role.chief.secrets]\ntoken = "t.txt"\n', tmp_path)
    assert role.rule == "must be a list" and "[secret]" in role.hint_text()
    (text,) = problems_of(head + "secrets = 3\n", tmp_path)
    assert "under [role.worker]" in text.hint_text()


def test_no_error_about_an_argument_shows_a_secret(tmp_path: Path) -> None:
    """Errors are printed, and are part of the artifacts of a run that did not start."""
    password, text = "in-clear-1", 'format = 1\nname = "demo"\n'
    words = [
        *(
            "--db",
            f"https://me:{password}@{{{{ nosuch }}}}/x",
            f"--api-token={{{{ no }}}}{password}",
        ),
        *("--api-token", f"{password}{{{{ bad"),
    ]
    found = problems_of(f"{text}args = {words}\n", tmp_path)
    assert [one.key_path for one in found if one.key_path.startswith("args.")] == [
        "args.1", "args.2", "args.4",
    ]  # fmt: skip
    shown = "\n".join(one.text() for one in found)
    assert password not in shown and "https://me:***@{{ nosuch }}/x" in shown
