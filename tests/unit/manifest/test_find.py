"""A manifest is found by its path or its name; an unknown one gets a suggestion."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cluster_kit.errors import UsageError
from cluster_kit.manifest import load as manifests
from cluster_kit.manifest.load import find

KITS = ("quickstart", "smoke")


@pytest.fixture(autouse=True)
def kits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder with the kit's own manifests."""
    place = tmp_path / "kit"
    place.mkdir()
    for name in KITS:
        (place / f"{name}.toml").write_text(f'format = 1\nname = "{name}"\n', encoding="utf-8")
    monkeypatch.setattr(manifests, "MANIFESTS", place)
    return place


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "compose"
    place.mkdir()
    for name in ("mine", "smoke"):
        (place / f"{name}.toml").write_text(f'format = 1\nname = "{name}"\n', encoding="utf-8")
    return place


def test_a_manifest_is_found_by_name_and_by_path(folder: Path) -> None:
    file = folder / "smoke.toml"
    assert find("smoke", folder) == find("smoke.toml", folder) == find(str(file), folder) == file


def test_a_missing_manifest_suggests_a_similar_name_and_lists_all(folder: Path) -> None:
    for reference in ("quikstart", "compose/quikstart.toml"):
        with pytest.raises(UsageError) as caught:
            find(reference, folder)
        assert reference in caught.value.message
        assert caught.value.hint == "did you mean `quickstart`? there are: mine, quickstart, smoke"
    (folder / "elsewhere").mkdir()
    (folder / "elsewhere" / "wide-and-deep.toml").touch()
    with pytest.raises(UsageError) as caught:
        find(f"{folder}/elsewhere/wide-and-depe.toml", folder)
    assert f"did you mean `{folder}/elsewhere/wide-and-deep.toml`? " in caught.value.hint


@pytest.mark.parametrize("reference", ["", ".", "x" * 5000, "no/such/folder", "a\0b", "~"])
def test_an_impossible_file_name_is_refused_like_any_other(reference: str, folder: Path) -> None:
    with pytest.raises(UsageError) as caught:
        find(reference, folder)
    assert "there are: mine, quickstart, smoke" in caught.value.hint


def test_of_many_names_only_the_first_are_listed(tmp_path: Path) -> None:
    for index in range(30):
        (tmp_path / f"job-{index:02}.toml").touch()
    with pytest.raises(UsageError) as caught:
        find("other", tmp_path)
    assert caught.value.hint.startswith("there are: job-00, job-01, ")
    assert re.search(r"job-23, and \d+ more$", caught.value.hint)


def test_a_directory_is_reported_as_a_directory(folder: Path) -> None:
    with pytest.raises(UsageError) as caught:
        find(str(folder), folder)
    assert "this is a directory, and a manifest is a TOML file" in caught.value.message
    assert f"name a file in it, or a name in {folder}/" in caught.value.hint
    assert "there are: mine, quickstart, smoke" in caught.value.hint


def test_a_runs_directory_leads_to_its_manifest(folder: Path, tmp_path: Path) -> None:
    run = tmp_path / "runs" / "mine" / "20261122-101500"
    run.mkdir(parents=True)
    (run / "run.json").touch()
    with pytest.raises(UsageError) as caught:
        find(f"{run}/", folder)
    assert "this is a run's directory" in caught.value.message
    assert f"copy {run}/manifest.toml beside the manifest" in caught.value.hint


def test_the_kits_own_manifests_are_found_anywhere_and_the_users_take_precedence(
    folder: Path, kits: Path
) -> None:
    assert find("quickstart", folder) == kits / "quickstart.toml"
    assert find("quickstart", folder / "none") == kits / "quickstart.toml"
    assert find("smoke", folder) == folder / "smoke.toml"


def test_a_manifest_in_the_current_directory_needs_no_suffix(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kit's own messages name its cluster in this way: `cluster-kit up bert`."""
    monkeypatch.chdir(tmp_path)
    for name in ("bert", "smoke"):
        Path(f"{name}.toml").write_text(f'format = 1\nname = "{name}"\n', encoding="utf-8")
    assert find("bert", folder) == tmp_path / "bert.toml"
    assert find("smoke", folder) == folder / "smoke.toml"


@pytest.mark.parametrize("exists", [True, False])
def test_a_program_given_as_a_manifest_gets_a_hint(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exists: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    if exists:
        Path("train.py").write_text("import tensorflow as tf\n", encoding="utf-8")
    with pytest.raises(UsageError, match="this is a program") as caught:
        find("train.py", folder)
    assert "`--program train.py`" in caught.value.hint
