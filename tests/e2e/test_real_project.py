"""What surrounds a program: mounts, secrets, a port, limits, an override, fetched data. One run
by the kit, and one of the same files by plain `docker compose up`."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import docker
import pytest

from tests.e2e.running import running
from tests.e2e.waiting import wait_for
from tests.kit import Kit, mine

CLEAR, CALLERS, FILES, ENV_FILES = "clear-it's$5", "of-the-caller", "of-a-file", "of-an-env-file"
MANIFEST = """
format = 1
name = "{name}"
chief = 0
worker = 1
ps = 1
style = "all-tasks"
program = "../mine/train.py"

[data]
fetch = "fetch.py"
args = ["it's", "b c"]

[[mount]]
source = "../corpus"
target = "/corpus"

[[mount]]
source = "../scratch"
target = "/scratch"
read_only = false
roles = ["worker"]

[secret]
file = "token"
caller = {{ environment = "E2E_CALLERS" }}

[network]
mtu = 1400

[sidecar.files]
command = ["python3", "-m", "http.server", "--directory", "/corpus"]
required = true

[[sidecar.files.mount]]
source = "../corpus"
target = "/corpus"

[role.worker]
shm_size = "96m"
ulimits = {{ nofile = "1000:2000" }}
ports = ["{port}:8000"]
env_file = "my.env"
environment = {{ API_TOKEN = "{clear}" }}
"""
FETCH = """
import sys
from pathlib import Path
print("fetching", sys.argv[1:], flush=True)
Path("fetched.txt").write_text(" ".join(sys.argv[1:]))
"""
PROGRAM = """
import http.server, json, os, resource, threading, time
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

def text(path):
    return Path(path).read_text()

def fetched(url):
    for attempt in range(100):
        try:
            return urlopen(url, timeout=5).read().decode()
        except URLError:
            time.sleep(0.1)

facts = {
    "data": text("/data/fetched.txt"),
    "corpus": (text("/corpus/a"), os.access("/corpus", os.W_OK)),
    "secrets": {name: text(f"/run/secrets/{name}") for name in sorted(os.listdir("/run/secrets"))},
    "mtu": int(text("/sys/class/net/eth0/mtu")),
    "shm": os.statvfs("/dev/shm").f_blocks * os.statvfs("/dev/shm").f_frsize,
    "nofile": resource.getrlimit(resource.RLIMIT_NOFILE),
    "variables": {k: os.environ.get(k) for k in ("API_TOKEN", "OTHER_KEY", "E2E_CALLERS", "MORE")},
    "hosts": "10.0.0.7" in text("/etc/hosts"),
    "sidecar": fetched("http://files:8000/a"),
}
Path("/scratch/written").write_text("yes")
print("told", json.dumps(facts), flush=True)
asked = threading.Event()

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(facts).encode())
        if self.path == "/end":
            asked.set()

server = http.server.ThreadingHTTPServer(("0.0.0.0", 8000), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
assert asked.wait(60), "nobody asked for the end"
server.shutdown()
"""
OVERRIDE = """
services:
  worker-0:
    extra_hosts: ["registry.internal:10.0.0.7"]
    environment: {MORE: "yes"}
"""
WANTED = {
    "data": "it's b c",
    "corpus": ["corpus", False],
    "secrets": {"caller": CALLERS, "file": FILES},
    "mtu": 1400,
    "shm": 96 * 2**20,
    "nofile": [1000, 2000],
    "variables": {
        "API_TOKEN": CLEAR,
        "OTHER_KEY": ENV_FILES,
        "E2E_CALLERS": None,
        "MORE": "yes",
    },
    "hosts": True,
    "sidecar": "corpus",
}


def free_port() -> int:
    with socket.socket() as asked:
        asked.bind(("127.0.0.1", 0))
        return int(asked.getsockname()[1])


def project(kit: Kit, port: int) -> None:
    """A project's files around its program."""
    texts = {
        "compose/demo.toml": MANIFEST.format(name=kit.name, port=port, clear=CLEAR),
        "compose/fetch.py": FETCH,
        "compose/token": FILES,
        "compose/my.env": f"OTHER_KEY={ENV_FILES}\n",
        "corpus/a": "corpus",
        "mine/train.py": PROGRAM,
        f"compose/{kit.name}/compose.override.yaml": OVERRIDE,
    }
    for name, text in texts.items():
        (kit.root / name).parent.mkdir(parents=True, exist_ok=True)
        (kit.root / name).write_text(text)
    (kit.root / "scratch").mkdir()


def ask(port: int, path: str = "") -> Any:
    """What the program answers on this host's port, as soon as it does; `end` ends it."""

    def look() -> Any:
        try:
            with urlopen(f"http://127.0.0.1:{port}/{path}", timeout=2) as answer:
                return json.loads(answer.read())
        except (URLError, OSError):
            return None

    return wait_for("the program's answer", look)


def test_all_of_it_reaches_the_tasks_and_no_secret_is_kept(
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
        said, _ = process.communicate(timeout=60)
    assert process.returncode == 0, said
    saved = kit.root / "runs" / kit.name / "latest" / "logs" / "files.log"
    assert '"GET /a HTTP/1.1" 200' in saved.read_text()
    assert "data | fetching" in said and f"at 127.0.0.1:{port}" in said
    assert (kit.root / "scratch" / "written").stat().st_uid == os.getuid()
    log = (kit.root / "runs" / kit.name / "latest" / "logs" / "worker-0.log").read_text()
    assert '"caller": "***", "file": "***"' in log and '"OTHER_KEY": "***"' in log
    for value in (CLEAR[:8], CALLERS, FILES, ENV_FILES):
        assert value not in said
        assert not [path for path in files(kit.root / "runs") if value in path.read_text()]
    made = kit.root / "compose" / kit.name
    assert [path.name for path in files(made) if CLEAR[:8] in path.read_text()] == ["secrets.yaml"]
    assert (made / "compose.override.yaml").read_text() == OVERRIDE
    plain_compose(made, port)
    assert mine(client, kit.name) == ([], [])


def plain_compose(folder: Path, port: int) -> None:
    """The same files without the kit."""
    command = ["docker", "compose", "up"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as process:
        assert ask(port) == WANTED
        ask(port, "end")
        said, _ = process.communicate(timeout=60)
    assert process.returncode == 0 and "worker-0 exited with code 0" in said
    asked = ["docker", "compose", "ps", "--services", "--status", "running"]
    left = subprocess.run(asked, cwd=folder, check=True, capture_output=True, text=True)
    assert left.stdout.split() == ["files"], "as the file's header says"
    subprocess.run(["docker", "compose", "down"], cwd=folder, check=True, capture_output=True)


def files(folder: Path) -> list[Path]:
    """All texts below a folder."""
    return [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".png"]
