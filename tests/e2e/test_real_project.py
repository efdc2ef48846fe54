"""What surrounds a program: mounts, secrets, a port, limits, an override, fetched data.

The kit runs it once, and plain `docker compose up` runs the same files once.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import docker
import pytest

from tests.e2e.real_project import CALLERS, CLEAR, ENV_FILES, FILES, OVERRIDE, WANTED, project
from tests.e2e.running import running
from tests.e2e.waiting import wait_for
from tests.kit import Kit, mine
from tests.ports import free_port


def ask(port: int, path: str = "") -> Any:
    """Returns the program's answer on this host's port as soon as there is one; `end` ends it."""

    def look() -> Any:
        try:
            with urlopen(f"http://127.0.0.1:{port}/{path}", timeout=2) as answer:
                return json.loads(answer.read())
        except (URLError, OSError):
            return None

    return wait_for("the program's answer", look)


def test_everything_reaches_the_tasks_and_no_secret_is_kept(
    kit: Kit, client: docker.DockerClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("E2E_CALLERS", CALLERS)
    port = free_port()
    project(kit, port)
    with running(kit, "up", "demo") as process:
        assert ask(port) == WANTED
        (worker,) = [
            c for c in mine(client, kit.name)[0] if c.attrs["Config"]["Hostname"] == "worker-0"
        ]
        published = worker.attrs["HostConfig"]["PortBindings"]
        assert published == {"8000/tcp": [{"HostIp": "127.0.0.1", "HostPort": str(port)}]}
        shown = kit.run("status", "--json")
        (beside,) = json.loads(shown.stdout)["sidecars_of"][kit.name]
        assert (beside["name"], beside["state"]) == ("files", "running")
        ask(port, "end")
        output, _ = process.communicate(timeout=60)
    assert process.returncode == 0, output
    saved = kit.root / "runs" / kit.name / "latest" / "logs" / "files.log"
    assert '"GET /a HTTP/1.1" 200' in saved.read_text()
    assert "data | fetching" in output and f"at 127.0.0.1:{port}" in output
    assert (kit.root / "scratch" / "written").stat().st_uid == os.getuid()
    log = (kit.root / "runs" / kit.name / "latest" / "logs" / "worker-0.log").read_text()
    assert '"caller": "***", "file": "***"' in log and '"OTHER_KEY": "***"' in log
    for value in (CLEAR[:8], CALLERS, FILES, ENV_FILES):
        assert value not in output
        assert not [path for path in files(kit.root / "runs") if value in path.read_text()]
    made = kit.root / "compose" / kit.name
    assert [path.name for path in files(made) if CLEAR[:8] in path.read_text()] == ["secrets.yaml"]
    assert (made / "compose.override.yaml").read_text() == OVERRIDE
    plain_compose(made, port)
    assert mine(client, kit.name) == ([], [])


def plain_compose(folder: Path, port: int) -> None:
    """Run the same files without the kit."""
    command = ["docker", "compose", "up"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as process:
        assert ask(port) == WANTED
        ask(port, "end")
        output, _ = process.communicate(timeout=60)
    assert process.returncode == 0 and "worker-0 exited with code 0" in output
    asked = ["docker", "compose", "ps", "--services", "--status", "running"]
    left = subprocess.run(asked, cwd=folder, check=True, capture_output=True, text=True)
    assert left.stdout.split() == ["files"], "as the file's header says"
    subprocess.run(["docker", "compose", "down"], cwd=folder, check=True, capture_output=True)


def files(folder: Path) -> list[Path]:
    """Returns all texts below a folder."""
    return [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".png"]
