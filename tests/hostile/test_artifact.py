"""The files that the GitHub action uploads, which would fail for a single invalid name."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.make import ROOT

REFUSED = set('":<>|*?\r\n')


def test_no_file_name_of_a_task_prevents_the_upload(tmp_path: Path) -> None:
    run = tmp_path / "a run"
    output = run / "output"
    output.mkdir(parents=True)
    (run / "outcome.json").touch()
    (output / "result.json").touch()
    (output / "gr\u00fc\u00dfe \U0001f600").mkdir()
    (output / "gr\u00fc\u00dfe \U0001f600" / "model").touch()
    for name in ("a:b", 'a"b', "a\nb", "a\rb", "what?", "*", "<x>", "a|b"):
        (output / name).mkdir()
        (output / name / "inside").touch()
        (output / f"file {name}").touch()
    Path(os.fsdecode(os.fsencode(output) + b"/\xff\xfe")).touch()
    (output / "link").symlink_to("/etc/passwd")
    os.mkfifo(output / "fifo")
    here = os.open(output, os.O_RDONLY)
    for _ in range(60):
        os.mkdir("d" * 200, dir_fd=here)
        inner = os.open("d" * 200, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)
    lines = (line.strip() for line in (ROOT / "action.yml").read_text().splitlines())
    steps = [line for line in lines if 'find "$run/"' in line]
    subprocess.run(
        ["bash", "-euc", "\n".join(steps)], env={**os.environ, "run": str(run)}, check=True
    )
    left = list(run.rglob("*"))
    assert all(path.is_dir() or path.is_file() for path in left)
    assert not any(path.is_symlink() for path in left)
    for path in left:
        assert len(os.fsencode(path.relative_to(run))) < 3_500
        assert not REFUSED & set(path.name) and path.name.encode()
    files = {path.relative_to(run).as_posix() for path in left if path.is_file()}
    assert files == {
        "outcome.json",
        "output/result.json",
        "output/gr\u00fc\u00dfe \U0001f600/model",
    }
