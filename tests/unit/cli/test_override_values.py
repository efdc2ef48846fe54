"""Command-line options become overrides of the manifest, table by table."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster_kit.cli.manifest_options import values
from cluster_kit.errors import UsageError
from cluster_kit.manifest.command_line import Caller


def test_options_that_are_not_given_override_nothing() -> None:
    assert values({}) == {}


def test_counts_and_names_are_used_unchanged() -> None:
    assert values({"worker": "3", "ps": "0", "name": "other"}) == {
        "worker": 3,
        "ps": 0,
        "name": "other",
    }


def test_another_program_drops_the_manifests_arguments_and_evaluator() -> None:
    here = str(Path.cwd() / "train.py")
    assert values({"program": "train.py"}) == {
        "program": here,
        "args": [],
        "evaluator": 0,
        "requirements": "",
        "tf1": False,
    }
    assert values({"program": "train.py", "tf1": "True"})["tf1"] is True


def test_an_evaluator_can_be_requested_nevertheless() -> None:
    assert values({"program": "train.py"}, ["evaluator=1"])["evaluator"] == 1


def test_paths_are_relative_to_the_current_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "train.py").touch()
    (tmp_path / "images").mkdir()
    monkeypatch.chdir(tmp_path)
    given = values({"program": "train.py", "data": "images"})
    assert given["program"] == str(tmp_path / "train.py")
    assert given["data"] == str(tmp_path / "images")
    assert values({"data": "digits"})["data"] == "digits"
    asked = values({"program": "train.py", "requirements": "more.txt"})["requirements"]
    assert asked == str(tmp_path / "more.txt")


def test_a_home_directory_that_the_shell_did_not_expand_is_expanded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`make cluster DATA="~/images"`."""
    monkeypatch.setenv("HOME", str(tmp_path))
    assert values({"data": "~/images"}) == {"data": str(tmp_path / "images")}
    assert values({"requirements": "~/r.txt"}) == {"requirements": str(tmp_path / "r.txt")}
    nobody = values({"data": "~no-such-user/images"})
    assert nobody == {"data": str(Path("~no-such-user/images").absolute())}


def test_arguments_are_split_like_a_shell_does() -> None:
    assert values({"args": "--epochs 3 --name 'a b'"})["extra_args"] == [
        "--epochs",
        "3",
        "--name",
        "a b",
    ]


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (
            "--job_name={{ role }} --ps_hosts={{ps_hosts}}",
            ["--job_name={{ role }}", "--ps_hosts={{ps_hosts}}"],
        ),
        ("'{{ role }} x' {{ name }}", ["{{ role }} x", "{{ name }}"]),
        ("a={{ 'it' ~ \"s\" }}b {% if index == 0 %}c{% endif %}", None),
        ("{{ role", ["{{", "role"]),
        ("--a={ b }", ["--a={", "b", "}"]),
        ("\ue0000\ue001 {{ a }}", ["", "{{ a }}"]),
    ],
)
def test_a_template_stays_one_word(args: str, words: list[str] | None) -> None:
    expected = words or ["a={{ 'it' ~ \"s\" }}b", "{% if index == 0 %}c{% endif %}"]
    assert values({"args": args})["extra_args"] == [word for word in expected if word]


def test_counts_and_style_can_be_given_with_another_program() -> None:
    given = values({"chief": "0", "ps": "1", "style": "all-tasks"})
    assert given == {"chief": 0, "ps": 1, "style": "all-tasks"}
    assert values({"worker": "2 "}) == {"worker": 2}, "Make keeps the space before a comment"


def test_an_open_quote_is_refused_without_printing_a_secret() -> None:
    with pytest.raises(UsageError) as refused:
        values({"args": "--api-token in-clear-1 'x"})
    assert "--api-token *** 'x" in refused.value.message


def test_an_open_quote_is_refused() -> None:
    with pytest.raises(UsageError) as caught:
        values({"args": "--name 'a b"})
    assert caught.value.hint == "close the quote"


def test_errors_name_what_the_caller_wrote() -> None:
    for caller, args, sets, example in (
        (Caller.SHELL, '--args "a \'b": ', "--set 'gpus'", "`--set deadline.start=30`"),
        (Caller.MAKE, 'ARGS="a \'b": ', "SET='gpus'", "`SET=deadline.start=30`"),
    ):
        with pytest.raises(UsageError) as caught:
            values({"args": "a 'b"}, caller=caller)
        assert caught.value.message.startswith(args)
        with pytest.raises(UsageError) as caught:
            values({}, ["gpus"], caller)
        assert caught.value.message == f"{sets} is not key=value"
        assert caught.value.hint.startswith(f"for example {example}")
        assert ("split at spaces" in caught.value.hint) is (caller is Caller.MAKE)
        with pytest.raises(UsageError) as caught:
            values({}, ["deadline=3", "deadline.start=30"], caller)
        assert caught.value.message.startswith(f"{sets.partition(chr(39))[0]}'deadline.start=30': ")


@pytest.mark.parametrize(
    ("text", "wish"),
    [("none", "none"), ("auto", "auto"), ("0", ["0"]), ("0, GPU-a,", ["0", "GPU-a"]), ("", [])],
)
def test_gpus_are_a_word_or_a_list(text: str, wish: object) -> None:
    assert values({"gpus": text})["gpus"] == wish


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("port=4000", {"port": 4000}),
        ("deadline.start=30", {"deadline": {"start": 30}}),
        ("task.worker-1.cpus=0.5", {"task": {"worker-1": {"cpus": 0.5}}}),
        ("name=on", {"name": "on"}),
        ("subnet=172.28.0.0/24", {"subnet": "172.28.0.0/24"}),
        ('gpus=["0", "1"]', {"gpus": ["0", "1"]}),
        ("image=", {"image": ""}),
        ("image=a=b", {"image": "a=b"}),
        (" port = 1 ", {"port": 1}),
        ("port=" + "9" * 5000, {"port": "9" * 5000}),
    ],
)
def test_set_parses_a_value_as_toml_or_else_as_a_text(text: str, found: object) -> None:
    assert values({}, [text]) == found


def test_several_sets_fill_one_table() -> None:
    given = values({}, ["deadline.start=1", "deadline.job=2", "deadline.job=3"])
    assert given == {"deadline": {"start": 1, "job": 3}}


@pytest.mark.parametrize("text", ["port", "=3", " =3"])
def test_a_set_without_key_or_value_is_refused(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        values({}, [text])
    assert "not key=value" in caught.value.message


def test_a_value_cannot_be_a_table_too() -> None:
    with pytest.raises(UsageError) as caught:
        values({"worker": "2"}, ["worker.cpus=1"])
    assert "worker has been given a value already" in caught.value.message


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        ("tensorflow=2.20", {"tensorflow": "2.20"}),
        ('tensorflow="2.15"', {"tensorflow": "2.15"}),
        ("role.ps.environment.LEVEL=3", {"role": {"ps": {"environment": {"LEVEL": "3"}}}}),
        ("slurm.account=17", {"slurm": {"account": "17"}}),
        ("worker=3", {"worker": 3}),
        ("deadline.start=30", {"deadline": {"start": 30}}),
        ("no.such.key=3", {"no": {"such": {"key": 3}}}),
    ],
)
def test_a_number_becomes_a_text_for_a_key_that_takes_one(
    given: str, taken: dict[str, object]
) -> None:
    assert values({}, [given]) == taken
