"""A task with `bandwidth` sends and receives no faster, and keeps no privilege from the setup."""

from __future__ import annotations

import json

import pytest

from tests.e2e.evidence import output
from tests.kit import Kit

SENDS_AND_RECEIVES = '''
import json, os, socket, sys, time

SECONDS = 2.0
config = json.loads(os.environ["TF_CONFIG"])
shaped = config["cluster"]["worker"][0].rpartition(":")[0]

def receive(connection):
    """Mbit/s, from the first bytes to the last."""
    first, received = None, 0
    while data := connection.recv(1 << 16):
        last = time.monotonic()
        first = first or last
        received += len(data)
    return received * 8e-6 / (last - first)

def send(connection):
    until, block = time.monotonic() + SECONDS, bytes(1 << 16)
    while time.monotonic() < until:
        connection.sendall(block)
    connection.shutdown(socket.SHUT_WR)
    connection.recv(1)

def connect():
    for _ in range(300):
        try:
            return socket.create_connection((shaped, 5001), timeout=30)
        except OSError:
            time.sleep(0.1)
    sys.exit("worker-0 does not listen")

if config["task"]["index"] == 0:
    listening = socket.create_server(("0.0.0.0", 5001))
    listening.settimeout(60)
    with listening.accept()[0] as connection:
        came_in = receive(connection)
    with listening.accept()[0] as connection:
        send(connection)
    with listening.accept()[0] as connection:
        went_out = float(connection.recv(99))
    status = dict(line.split(":", 1) for line in open("/proc/self/status"))
    found = {"in": came_in, "out": went_out, "uid": os.getresuid(), "groups": os.getgroups(),
             "told": os.environ["CLUSTER_KIT_SHAPED_BPS"],
             **{key: value.strip() for key, value in status.items() if key.startswith("Cap")}}
    with open("/output/found.json", "w") as file:
        json.dump(found, file)
else:
    with connect() as connection:
        send(connection)
    with connect() as connection:
        rate = receive(connection)
    with connect() as connection:
        connection.sendall(str(rate).encode())
'''


@pytest.mark.alone
def test_bandwidth_limits_a_task_in_both_directions_and_leaves_no_capability(kit: Kit) -> None:
    done = kit.run(
        "up", "smoke", "--name", kit.name, "--program", kit.program(SENDS_AND_RECEIVES),
        "--workers", "2", "--ps", "0", "--set", "chief=0",
        "--set", 'task.worker-0.bandwidth="50mbit"',
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((output(kit) / "found.json").read_text())
    assert 42 <= found["in"] <= 57.5, found
    assert 42 <= found["out"] <= 57.5, found
    assert found["told"] == "50000000"
    assert {found[name] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {
        "0" * 16
    }
    owner = output(kit).stat()
    assert found["uid"] == [owner.st_uid] * 3
    assert found["groups"] == []
