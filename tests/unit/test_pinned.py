"""Everything that development and CI install is pinned: packages by hashes, actions by commits."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests import lock

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = [
    *(ROOT / ".github" / "workflows").glob("*.yml"),
    ROOT / "action.yml",
    ROOT / "templates" / "ci" / "github.yml.j2",
    ROOT / "docs" / "your-project.md",
]
USES = re.compile(r"^ *(?:- )?uses: (.+)$", re.MULTILINE)


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
def test_actions_are_pinned_by_commit_and_keep_no_credentials(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    used = [one for one in USES.findall(text) if not one.startswith(("./", "OWNER/"))]
    assert used or "uses: ./" in text
    for one in used:
        assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", one), one
    after = text.split("uses: actions/checkout@")[1:]
    assert all("persist-credentials: false" in one.partition("uses:")[0] for one in after)


@pytest.mark.parametrize("name", lock.HOST)
def test_each_package_of_the_host_is_pinned_with_hashes(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    assert "://" not in text and "--index" not in text and " @ " not in text
    packages = [one for one in re.split(r"\n(?=\S)", text) if not one.startswith("#")]
    assert len(packages) > 20
    for one in packages:
        assert re.match(r"[\w.-]+(\[[\w,-]+\])?==[\w.+!]+( ;.*)? \\\n", one), one
        assert "--hash=sha256:" in one


def test_a_lock_file_for_other_requirements_is_stale(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert lock.stale_files() == []
    monkeypatch.setattr(lock, "ROOT", tmp_path)
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for name in lock.HOST:
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    (tmp_path / "pyproject.toml").write_text(project.replace("# the command line", "# words"))
    assert lock.stale_files() == []
    (tmp_path / "pyproject.toml").write_text(project.replace("rich>=13.9", "rich>=13.10"))
    monkeypatch.setattr("sys.argv", ["lock", "--check"])
    assert lock.main() == 1
    assert "requirements.lock is stale: run `make lock`" in capsys.readouterr().err
