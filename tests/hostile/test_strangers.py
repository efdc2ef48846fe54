"""A stranger on the host connects to the beacon of a run without knowing its secret."""

from __future__ import annotations

import contextlib
import re
import resource
import socket
import struct
from collections.abc import Iterator

import docker
import pytest

from cluster_kit.platforms.variables import BEACON_SECRET
from tests.e2e.running import read_until, running
from tests.kit import Kit, mine, why_no_engine

WHY_NOT = why_no_engine()
pytestmark = [pytest.mark.engine, pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)]

CONNECTIONS = 2_000
LINES = [
    *(b"beat 0 %s 0 0 0 - - -" % value for value in (b"nan", b"inf", b"1e999")),
    b"end " + b"9" * 5000,
    b"report failed worker-0 a stranger ends it",
    b"hello worker-0 stranger\ndone worker-0",
    b"answer " + b"0" * 32 + b" " + b"0" * 64 + b"\nhello worker-0 stranger",
    b"\xff" * 100_000,
]
"""Lines each of which ended the leader's thread or the job when connections did not have to be
authenticated."""
PROGRAM = f"""
import os, pathlib, time
out = pathlib.Path("/output")
(out / "secret").write_text(os.environ.get({BEACON_SECRET!r}, "none"))
print("attack me", flush=True)
until = time.monotonic() + 60
while not (out / "over").exists() and time.monotonic() < until:
    time.sleep(0.05)
"""


@pytest.fixture
def many_files() -> Iterator[None]:
    """Raises the limit of open files to the number of the test's connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 2 * CONNECTIONS + soft), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("many_files")
def test_strangers_cannot_end_a_run_or_keep_its_tasks_out(kit: Kit) -> None:
    arguments = (
        *("up", "quickstart", "--name", kit.name, "--program", kit.program(PROGRAM)),
        *("--style", "coordinator", "--workers", "1", "--ps", "1", "--set", "evaluator=0"),
        *("--set", "args=[]", "--set", "role.chief.ulimits={nofile=1024}"),
    )
    with running(kit, *arguments) as process, contextlib.ExitStack() as held:
        read_until(process, "attack me")
        with contextlib.closing(docker.from_env()) as client:
            containers, _ = mine(client, kit.name)
            secrets = {_secret(one) for one in containers}
            chief = next(one for one in containers if one.name.endswith("chief-0"))
            (network,) = chief.attrs["NetworkSettings"]["Networks"].values()
        beacon = (network["IPAddress"], 2223)
        for line in LINES:
            stranger = held.enter_context(socket.create_connection(beacon, timeout=10))
            with contextlib.suppress(ConnectionError):
                stranger.sendall(line + b"\n")
        for count in range(CONNECTIONS):
            stranger = held.enter_context(socket.create_connection(beacon, timeout=10))
            if count % 3 == 0:
                stranger.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                stranger.close()
        output = kit.root / "runs" / kit.name / "latest" / "output"
        (output / "over").touch()
        printed = process.communicate(timeout=120)[0]
        assert process.returncode == 0, printed
    assert kit.outcome()["success"]
    (secret,) = secrets
    assert re.fullmatch(r"[0-9a-f]{32}", secret)
    assert (output / "secret").read_text() == "none", "programs do not get it"
    files = [file for file in kit.root.rglob("*") if file.is_file()]
    assert [str(file) for file in files if secret.encode() in file.read_bytes()] == []


def _secret(container: docker.models.containers.Container) -> str:
    variables = dict(text.split("=", 1) for text in container.attrs["Config"]["Env"])
    return str(variables[BEACON_SECRET])
