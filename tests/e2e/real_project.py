"""A project with mounts, secrets, a port, limits, an override, and fetched data."""

from __future__ import annotations

from tests.kit import Kit

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
assert asked.wait(60), "the program was not asked to end"
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


def project(kit: Kit, port: int) -> None:
    """Write the files of the project."""
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
