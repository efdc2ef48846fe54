"""Reading and overriding manifests: any file gives a message, and no traceback."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_kit.errors import ManifestError, Problem
from cluster_kit.manifest.schema import Manifest
from cluster_kit.platforms.platform import load, plan
from tests.make import OWN, ROOT, gpus, host, inputs

BROKEN = {
    "a syntax error": (b'format = 1\nname = "demo"\nworker = = 2\n', "line 3", "fix the line"),
    "a key twice": (b'format = 1\nname = "a"\nname = "b"\n', "Cannot overwrite", "fix the line"),
    "a task's table twice": (
        b"[task.worker-1]\ncpus = 1\n[task.worker-1]\ncpus = 2\n",
        "Cannot declare",
        "fix the line",
    ),
    "an open text": (b'format = 1\nname = "demo', "at end of document", "fix the line"),
    "YAML": (b"format: 1\n", "line 1", "fix the line"),
    "Latin-1": ('format = 1\nname = "Köln"\n'.encode("latin-1"), "utf-8", "save the file as UTF-8"),
    "UTF-16": ("format = 1".encode("utf-16"), "utf-8", "save the file as UTF-8"),
    "a number without end": (b"port = " + b"9" * 5000, "limit", "fix the line"),
    "brackets without end": (b"args = " + b"[" * 100_000, "too deeply", "three levels"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_file_that_is_not_toml_is_one_problem_with_a_hint(what: str, tmp_path: Path) -> None:
    content, rule, hint = BROKEN[what]
    file = tmp_path / "demo.toml"
    file.write_bytes(content)
    (problem,) = _problems(file)
    assert problem.key_path == "demo.toml"
    assert rule in problem.rule
    assert hint in problem.hint_text()


def test_a_rendered_file_is_no_manifest(tmp_path: Path) -> None:
    file = tmp_path / "compose.yaml"
    file.write_text("name: demo\n")
    hint = _problems(file)[0].hint_text()
    assert hint == "name the manifest: compose/NAME.toml; `cluster-kit new` writes one"


def test_a_directory_or_a_removed_file_cannot_be_read(tmp_path: Path) -> None:
    (directory,) = _problems(tmp_path)
    assert "cannot be read: Is a directory" in directory.rule
    (gone,) = _problems(tmp_path / "gone.toml")
    assert "cannot be read: No such file" in gone.rule


def _problems(file: Path) -> tuple[Problem, ...]:
    with pytest.raises(ManifestError) as caught:
        load(file)
    return caught.value.problems


@pytest.mark.parametrize("content", ["﻿format = 1\n", "format = 1\r\n", "\n\nformat=1 # 1\n"])
def test_byte_order_marks_and_line_ends_of_other_systems_are_accepted(
    content: str, tmp_path: Path
) -> None:
    file = tmp_path / "demo.toml"
    file.write_bytes((content + 'name = "demo"').encode())
    assert load(file).manifest.name == "demo"


def test_overrides_replace_values_of_the_file_table_by_table(tmp_path: Path) -> None:
    file = tmp_path / "demo.toml"
    file.write_text(
        'format = 1\nname = "demo"\nworker = 2\nargs = ["-a"]\n[deadline]\nstart = 9\njob = 99\n',
        encoding="utf-8",
    )
    given = {"worker": 5, "deadline": {"start": "1m"}, "extra_args": ["-b", "1"]}
    read = load(file, given).manifest
    assert (read.worker, read.deadline.start, read.deadline.job) == (5, 60.0, 99.0)
    assert read.args == ["-a", "-b", "1"]
    assert given["extra_args"] == ["-b", "1"], "the caller's overrides stay as they were"


def test_additional_arguments_with_broken_ones_are_no_unknown_key(tmp_path: Path) -> None:
    file = tmp_path / "demo.toml"
    file.write_text('format = 1\nname = "demo"\nargs = "x"\n', encoding="utf-8")
    assert [p.key_path for p in load(file, {"extra_args": ["-b"]}).problems] == ["args"]


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(10**12, 10**400)
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["auto", "none", "9" * 400 + "g", "1e9s", "172.28.0.0/24", "worker-0"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["worker-0", "ps-1", "cpus", "x.y", ""]), inner)
        | st.fixed_dictionaries({}, optional=dict.fromkeys(["worker", "ps", "environment"], inner))
        | st.fixed_dictionaries({}, optional=dict.fromkeys(["cpus", "memory", "ip"], inner))
    ),
    max_leaves=5,
)
keys = st.sampled_from([*Manifest.model_fields, "other", "list[0]", "a.b"])


@given(st.dictionaries(keys, anything, max_size=6))
def test_any_input_gives_a_cluster_or_problems(
    nonsense: dict[str, Any],
) -> None:
    file = ROOT / "compose" / "quickstart.toml"
    try:
        read = load(file, nonsense)
        plan(read, inputs(read.manifest), host(gpus=gpus(2)), OWN)
    except ManifestError as error:
        for problem in error.problems:
            assert problem.key_path
            assert problem.rule
            assert problem.hint_text()
        key_paths = [(problem.key_path, problem.rule) for problem in error.problems]
        assert len(set(key_paths)) == len(key_paths), "the same thing said twice"


@pytest.mark.parametrize("value", ['["abcdefg-1"]', "[1234567890]", "1234567890.5", '"abcdefg-1"'])
def test_a_problem_about_a_secret_of_a_wrong_type_does_not_show_it(
    tmp_path: Path, value: str
) -> None:
    path = tmp_path / "demo.toml"
    environment = f"role.worker.environment = {{ A_TOKEN = {value}, B = [1] }}\n"
    path.write_text(f'format = 1\nname = "demo"\n{environment}')
    shown = str(load(path).problems)
    assert "environment.B" in shown and "abcdefg-1" not in shown and "1234567890" not in shown


def test_a_problem_about_a_value_does_not_show_a_secret_in_it(tmp_path: Path) -> None:
    path = tmp_path / "demo.toml"
    path.write_text(
        'format = 1\nname = "demo"\nenvironment = { A_TOKEN = "abcdefgh", B = "https://u:pw1@h" }\n'
    )
    problems = load(path).problems
    assert (
        problems
        and "***" in str(problems)
        and "abcdefgh" not in str(problems)
        and "pw1" not in str(problems)
    )
