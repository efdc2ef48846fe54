"""Starts one server inside a container, and measures its first answer and its idle memory.

server_probe.py SERVER-COMMAND… ; prints one JSON line. It imports everything before the clock
starts.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import grpc

GET_STATUS = "/tensorflow.WorkerService/GetStatus"
PORT = 2222
IDLE_S = 1.0
PATIENCE_S = 60.0
CONFIG = {
    "cluster": {
        "chief": ["127.0.0.1:2220"],
        "worker": ["127.0.0.1:2224"],
        "ps": [f"127.0.0.1:{PORT}"],
    },
    "task": {"type": "ps", "index": 0},
}
ENVIRONMENT = {
    **os.environ,
    "TF_CONFIG": json.dumps(CONFIG),
    "CLUSTER_KIT_BEACON": "127.0.0.1:2221",
    "CLUSTER_KIT_OUTPUT": "/tmp/output",
}


def main() -> None:
    Path("/tmp/output/progress").mkdir(parents=True)
    began = time.monotonic()
    server = subprocess.Popen(sys.argv[1:], env=ENVIRONMENT, stdout=subprocess.DEVNULL)
    while not (listens() and answers()):
        if server.poll() is not None or time.monotonic() - began > PATIENCE_S:
            sys.exit("the server did not come up")
        time.sleep(0.005)
    start = time.monotonic() - began
    time.sleep(IDLE_S)
    lines = Path(f"/proc/{server.pid}/status").read_text().splitlines()
    status = dict(line.split(":", 1) for line in lines)
    anonymous, resident = (int(status[key].split()[0]) / 1024 for key in ("RssAnon", "VmRSS"))
    threads = int(status["Threads"])
    server.kill()
    print(
        json.dumps({"start_s": start, "anon_mb": anonymous, "rss_mb": resident, "threads": threads})
    )


def listens() -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", PORT)) == 0


def answers() -> bool:
    """Returns whether the server answers; uses a new channel, since a refused one waits before it
    retries."""
    with grpc.insecure_channel(f"127.0.0.1:{PORT}") as channel:
        try:
            return bool(channel.unary_unary(GET_STATUS)(b"", timeout=5.0))
        except grpc.RpcError:
            return False


if __name__ == "__main__":
    main()
