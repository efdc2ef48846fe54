"""The table `[data]`: what is refused before anything starts; `data = "PATH"` works as before."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster_kit.plan.portable import check_portable
from cluster_kit.platforms.platform import load
from cluster_kit.programs.resolve import resolve
from tests.make import manifest, problems_of

LEAST = 'format = 1\nname = "demo"\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "fetch.py").write_text("print()\n")
    (tmp_path / "bad.py").write_text("print(\n")
    return tmp_path


@pytest.mark.parametrize(
    ("table", "key_path"),
    [
        ('[data]\nfetch = "absent.py"', "data.fetch"),
        ('[data]\nfetch = "."', "data.fetch"),
        ('[data]\nfetch = ""', "data.fetch"),
        ("[data]\nfetch = 1", "data.fetch"),
        ("[data]", "data.fetch"),
        ('[data]\nfetch = "fetch.py"\nargs = "x"', "data.args"),
        ('[data]\nfetch = "fetch.py"\nsecrets = ["no name"]', "data.secrets"),
        ('[data]\nfetch = "fetch.py"\nfetsh = 1', "data.fetsh"),
        ("data = 1", "data"),
        ('data = ["digits"]', "data"),
        ('data = "absent"', "data"),
    ],
)
def test_invalid_data_tables(table: str, key_path: str, folder: Path) -> None:
    (problem,) = problems_of(f"{LEAST}{table}\n", folder)
    assert problem.key_path == key_path, problem
    assert problem.hint_text()


def test_a_program_that_is_not_python(folder: Path) -> None:
    (problem,) = problems_of(f'{LEAST}[data]\nfetch = "bad.py"\n', folder)
    assert "not valid Python" in problem.rule


def test_both_forms(folder: Path) -> None:
    assert problems_of(f'{LEAST}[data]\nfetch = "fetch.py"\n', folder) == []
    assert problems_of(f'{LEAST}data = "digits"\n', folder) == []
    found = resolve(manifest(data={"fetch": "fetch.py"}), folder, folder / "fetched")
    assert (found.data, found.mounts[0].target) == ("/data", "/data")
    assert found.fetch is not None and found.mounts[0].source == found.fetch.directory


def test_the_command_line_overrides_the_table(folder: Path) -> None:
    (folder / "demo.toml").write_text(f'{LEAST}[data]\nfetch = "fetch.py"\n')
    assert load(folder / "demo.toml", {"data": "digits"}).manifest.data == "digits"


def test_a_portable_file_refuses_the_table(folder: Path) -> None:
    (problem,) = check_portable(manifest(data={"fetch": "fetch.py"}))
    assert problem.key_path == "data.fetch"
